//! Where a new group's candidates come from: `uniform`, `empirical` or `matched`, and the paper's own generation.

use super::draw::Draw;

/// Length of the circle per candidate drawn in `matched`: a value's arc is its inclusion probability times this.
pub const ARC: u64 = 1 << 32;
/// Tries at a fresh value before the weights are summed up again without the values already taken.
const TRIES: usize = 8;
/// Steps of shuffling an opened group may cost; larger domains keep their order for several groups.
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
    /// Running sums of the weights, in `order`.
    sums: Vec<u64>,
    order: Vec<u32>,
    place: Vec<u32>,
    shuffled: Option<u64>,
    orders: Draw,
}

impl Pool {
    pub fn new(
        kind: Kind,
        l: usize,
        weights: Vec<u64>,
        orders: Draw,
    ) -> Result<Self, &'static str> {
        let order: Vec<u32> = (0..weights.len() as u32).collect();
        let (sums, place) = (Vec::new(), order.clone());
        let mut pool = Pool {
            kind,
            l,
            sums,
            place,
            order,
            weights: Vec::new(),
            shuffled: None,
            orders,
        };
        pool.reweigh(weights)?;
        Ok(pool)
    }

    /// Takes other weights for the same values.
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

    /// Adds values that nobody knew of: possible as a tuple's own, never drawn by weight.
    pub fn grow(&mut self, domain: usize) {
        for code in self.weights.len()..domain {
            self.weights.push(0);
            self.order.push(code as u32);
            self.place.push(self.order.len() as u32 - 1);
        }
        self.shuffled = None;
        self.sum();
    }

    fn sum(&mut self) {
        self.sums.clear();
        let mut total = 0u64;
        for &code in &self.order {
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
        self.order[self.sums.partition_point(|&s| s <= point)]
    }

    /// Systematic sampling on a circle in random order, given that `own` is hit.
    ///
    /// The values lie as arcs on a circle of circumference l; l points one apart hit every value with its
    /// inclusion probability. Turning the circle so that a point falls into the own arc is that very sample, given
    /// that the own value is in it.
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
            let code = self.order[self.sums.partition_point(|&s| s <= point)];
            if code != own {
                out.push(code);
            }
        }
        if out.len() > self.l {
            let dropped = 1 + draw.index(self.l);
            out.swap_remove(dropped);
        }
    }

    /// A new random order every few groups, a function of the number of groups opened so far.
    fn reorder(&mut self, opened: u64) {
        let turn = opened / (self.domain() / SHUFFLE).max(1) as u64;
        if self.shuffled == Some(turn) {
            return;
        }
        self.shuffled = Some(turn);
        self.order.sort_unstable();
        self.orders.at(turn);
        self.orders.shuffle(&mut self.order);
        for (at, &code) in self.order.iter().enumerate() {
            self.place[code as usize] = at as u32;
        }
        self.sum();
    }

    /// The paper's generation, word by word: draw with replacement until no count exceeds the total over l.
    pub fn literal(&self, own: u32, limit: usize, draw: &mut Draw) -> Option<Vec<(u32, u32)>> {
        let mut drawn: Vec<(u32, u32)> = vec![(own, 1)];
        let mut total = 1usize;
        let diverse = |drawn: &[(u32, u32)], total: usize| {
            drawn.len() >= self.l && drawn.iter().all(|&(_, n)| n as usize * self.l <= total)
        };
        while !diverse(&drawn, total) {
            if total > limit {
                return None;
            }
            let code = self.any(draw);
            match drawn.iter_mut().find(|(c, _)| *c == code) {
                Some((_, n)) => *n += 1,
                None => drawn.push((code, 1)),
            }
            total += 1;
        }
        Some(drawn)
    }
}
