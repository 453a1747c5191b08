//! The pools of a new group's candidates: `uniform`, `empirical` or `matched`, and the paper's own generation.

use std::collections::HashMap;

use super::draw::Draw;

/// Length of the circle per candidate of `matched`: a value's arc is its inclusion probability times this.
pub const ARC: u64 = 1 << 32;
/// Tries at a new value before the weights are summed again without the values already taken.
const TRIES: usize = 8;
/// Shuffle steps per opened group; larger domains keep their permutation for several groups.
const SHUFFLE: usize = 64;

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Uniform,
    Empirical,
    Matched,
}

impl Kind {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "uniform" => Some(Kind::Uniform),
            "empirical" => Some(Kind::Empirical),
            "matched" => Some(Kind::Matched),
            _ => None,
        }
    }
}

pub struct Pool {
    kind: Kind,
    l: usize,
    weights: Vec<u64>,
    /// Running sums of the weights, in the order of `permutation`.
    sums: Vec<u64>,
    permutation: Vec<u32>,
    place: Vec<u32>,
    shuffled: Option<u64>,
    permutation_draw: Draw,
}

impl Pool {
    pub fn new(
        kind: Kind,
        l: usize,
        weights: Vec<u64>,
        permutation_draw: Draw,
    ) -> Result<Self, &'static str> {
        let permutation: Vec<u32> = (0..weights.len() as u32).collect();
        let (sums, place) = (Vec::new(), permutation.clone());
        let mut pool = Pool {
            kind,
            l,
            sums,
            place,
            permutation,
            weights: Vec::new(),
            shuffled: None,
            permutation_draw,
        };
        pool.reweigh(weights)?;
        Ok(pool)
    }

    /// Sets other weights for the same values.
    pub fn reweigh(&mut self, weights: Vec<u64>) -> Result<(), &'static str> {
        let arcs: u128 = weights.iter().map(|&w| u128::from(w)).sum();
        let fits = arcs == u128::from(ARC) * self.l as u128 && weights.iter().all(|&w| w <= ARC);
        if self.kind == Kind::Matched && !fits {
            return Err("the arcs of a matched pool must sum to l and be at most one each");
        }
        self.weights = weights;
        self.sum();
        Ok(())
    }

    pub fn domain(&self) -> usize {
        self.weights.len()
    }

    /// Adds unknown values: a tuple may have them, but no draw by weight returns them.
    pub fn grow(&mut self, domain: usize) {
        for code in self.weights.len()..domain {
            self.weights.push(0);
            self.permutation.push(code as u32);
            self.place.push(self.permutation.len() as u32 - 1);
        }
        self.shuffled = None;
        self.sum();
    }

    fn sum(&mut self) {
        self.sums.clear();
        let mut total = 0u64;
        for &code in &self.permutation {
            total += self.weights[code as usize];
            self.sums.push(total);
        }
    }

    /// l different values, `own` first.
    pub fn candidates(&mut self, own: u32, opened: u64, draw: &mut Draw, out: &mut Vec<u32>) {
        out.clear();
        out.push(own);
        match self.kind {
            Kind::Matched => self.systematic(own, opened, draw, out),
            Kind::Empirical | Kind::Uniform => {
                while out.len() < self.l {
                    let code = self.other(draw, out);
                    out.push(code);
                }
            }
        }
    }

    /// One value by weight, not yet in `taken`.
    fn other(&self, draw: &mut Draw, taken: &[u32]) -> u32 {
        for _ in 0..TRIES {
            let code = self.any(draw);
            if !taken.contains(&code) {
                return code;
            }
        }
        let weigh = |code: u32| match self.kind {
            Kind::Uniform => 1,
            _ => self.weights[code as usize],
        };
        let rest: Vec<u32> = (0..self.domain() as u32)
            .filter(|c| !taken.contains(c))
            .collect();
        let total: u64 = rest.iter().map(|&c| weigh(c)).sum();
        if total == 0 {
            return rest[draw.index(rest.len())];
        }
        let mut point = draw.below(total);
        for &code in &rest {
            if point < weigh(code) {
                return code;
            }
            point -= weigh(code);
        }
        unreachable!("the point lies below the total")
    }

    /// One value by weight, with replacement.
    pub fn any(&self, draw: &mut Draw) -> u32 {
        let total = self.sums.last().copied().unwrap_or(0);
        if self.kind == Kind::Uniform || total == 0 {
            return draw.index(self.domain()) as u32;
        }
        let point = draw.below(total);
        self.permutation[self.sums.partition_point(|&s| s <= point)]
    }

    /// Systematic sampling on a circle in random order, given that `own` is hit.
    ///
    /// The values are arcs on a circle of circumference l; l points at distance one hit every value with its inclusion
    /// probability. Turning the circle so that a point falls into the own arc gives this sample, conditional on the own
    /// value.
    fn systematic(&mut self, own: u32, opened: u64, draw: &mut Draw, out: &mut Vec<u32>) {
        self.reorder(opened);
        let arc = self.weights[own as usize];
        let start = if arc == 0 {
            draw.below(ARC)
        } else {
            let end = self.sums[self.place[own as usize] as usize];
            (end - arc + draw.below(arc)) % ARC
        };
        for i in 0..self.l as u64 {
            let point = start + i * ARC;
            let code = self.permutation[self.sums.partition_point(|&s| s <= point)];
            if code != own {
                out.push(code);
            }
        }
        if out.len() > self.l {
            let dropped = 1 + draw.index(self.l);
            out.swap_remove(dropped);
        }
    }

    /// Draws a new permutation every few groups, as a function of the number of groups opened so far.
    fn reorder(&mut self, opened: u64) {
        let turn = opened / (self.domain() / SHUFFLE).max(1) as u64;
        if self.shuffled == Some(turn) {
            return;
        }
        self.shuffled = Some(turn);
        self.permutation.sort_unstable();
        self.permutation_draw.at(turn);
        self.permutation_draw.shuffle(&mut self.permutation);
        for (at, &code) in self.permutation.iter().enumerate() {
            self.place[code as usize] = at as u32;
        }
        self.sum();
    }

    /// The paper's generation, literally: draws with replacement until no count exceeds the total over l.
    pub fn literal(&self, own: u32, limit: usize, draw: &mut Draw) -> Option<Vec<(u32, u32)>> {
        let mut counts: HashMap<u32, u32> = HashMap::from([(own, 1)]);
        let (mut total, mut top) = (1usize, 1usize);
        while counts.len() < self.l || top * self.l > total {
            if total > limit {
                return None;
            }
            let count = counts.entry(self.any(draw)).or_insert(0);
            *count += 1;
            top = top.max(*count as usize);
            total += 1;
        }
        Some(counts.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(kind: Kind, l: usize, weights: &[u64]) -> Pool {
        Pool::new(kind, l, weights.to_vec(), Draw::new([1; 32], 0)).unwrap()
    }

    #[test]
    fn candidates_are_l_different_values_including_the_true_one() {
        let arcs = [ARC, ARC / 2, ARC / 2, ARC / 2, ARC / 2];
        let kinds = [
            (Kind::Uniform, &[1, 1, 1, 1, 1]),
            (Kind::Empirical, &[100, 1, 1, 0, 0]),
            (Kind::Matched, &arcs),
        ];
        for (kind, weights) in kinds {
            let (mut pool, mut draw) = (pool(kind, 3, weights), Draw::new([2; 32], 0));
            let mut out = Vec::new();
            for seq in 0..500 {
                draw.at(seq);
                let own = (seq % 5) as u32;
                pool.candidates(own, seq, &mut draw, &mut out);
                assert_eq!(out[0], own);
                out.sort_unstable();
                out.dedup();
                assert_eq!(out.len(), 3);
            }
        }
    }

    #[test]
    fn matched_draws_every_value_in_proportion_to_its_arc() {
        // Own values occur with half their arcs: then every value is offered with its whole arc.
        let arcs = [ARC, ARC / 2, ARC / 4, ARC / 4];
        let (mut pool, mut draw) = (pool(Kind::Matched, 2, &arcs), Draw::new([2; 32], 0));
        let (mut offered, mut out) = ([0u32; 4], Vec::new());
        for seq in 0..8000 {
            draw.at(seq);
            let own = [0, 0, 0, 0, 1, 1, 2, 3][seq as usize % 8];
            pool.candidates(own, seq, &mut draw, &mut out);
            out.iter().for_each(|&code| offered[code as usize] += 1);
        }
        assert_eq!(offered[0], 8000);
        assert!(offered[1].abs_diff(4000) < 250, "{offered:?}");
        assert!(offered[2].abs_diff(2000) < 200, "{offered:?}");
    }

    #[test]
    fn arcs_that_do_not_sum_to_l_are_rejected() {
        let draw = || Draw::new([1; 32], 0);
        assert!(Pool::new(Kind::Matched, 2, vec![ARC, ARC], draw()).is_ok());
        assert!(Pool::new(Kind::Matched, 2, vec![ARC, ARC - 1], draw()).is_err());
        assert!(Pool::new(Kind::Matched, 2, vec![2 * ARC, 0], draw()).is_err());
    }

    #[test]
    fn the_literal_generation_stops_at_l_diversity_or_at_its_limit() {
        let pool = pool(Kind::Empirical, 2, &[1, 1, 1, 1]);
        let mut draw = Draw::new([2; 32], 0);
        for seq in 0..100 {
            draw.at(seq);
            let drawn = pool.literal(0, 1000, &mut draw).unwrap();
            let total: u32 = drawn.iter().map(|&(_, n)| n).sum();
            assert!(drawn.iter().all(|&(_, n)| n * 2 <= total));
        }
        let skewed = self::pool(Kind::Empirical, 2, &[1000, 1]);
        assert!(skewed.literal(0, 50, &mut draw).is_none());
    }
}
