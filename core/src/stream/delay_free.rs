//! Delay-free anonymization with late validation (Kim, Sung and Chung, 2014), on codes.

use super::bytes::{Read, Reader, Writer};
use super::draw::{Draw, derive};
use super::placement::{Ids, Placement};
use super::pools::{Kind, Pool};
use super::slots::Slots;

/// Settings of a stream; `literal` above 0 is the draw limit of the paper's own generation.
pub struct Settings {
    pub key: [u8; 32],
    pub shard: u64,
    pub l: usize,
    pub pool: Kind,
    pub weights: Vec<u64>,
    /// The published order of all values.
    pub rank: Vec<u32>,
    pub retire_after: u64,
    pub literal: usize,
}

/// Totals of a stream: tuples, slots offered, groups opened, open and retired, tuples of the most frequent value.
pub struct Totals {
    pub tuples: u64,
    pub offered: u64,
    pub groups: u64,
    pub open: u64,
    pub retired: u64,
    pub top: u64,
}

/// The state of one stream under `delay-free`.
pub struct DelayFree {
    slots: Slots,
    pool: Pool,
    rank: Vec<u32>,
    value_counts: Vec<u64>,
    ids: Ids,
    draw: Draw,
    retire_after: u64,
    literal: usize,
    tuples: u64,
    offered: u64,
    retired: u64,
    candidates: Vec<u32>,
}

impl DelayFree {
    pub fn new(settings: Settings) -> Result<Self, &'static str> {
        let Settings { key, shard, l, .. } = settings;
        let domain = settings.weights.len();
        if l == 0 || domain < l || settings.rank.len() != domain {
            return Err("the domain has fewer than l values");
        }
        let permutation_draw = Draw::new(derive(key, 2), shard);
        let mut slots = Slots::new(l);
        slots.grow(domain);
        Ok(DelayFree {
            slots,
            pool: Pool::new(settings.pool, l, settings.weights, permutation_draw)?,
            rank: settings.rank,
            value_counts: vec![0; domain],
            ids: Ids::new(key, shard),
            draw: Draw::new(key, shard),
            retire_after: settings.retire_after,
            literal: settings.literal,
            tuples: 0,
            offered: 0,
            retired: 0,
            candidates: Vec::new(),
        })
    }

    pub fn domain(&self) -> usize {
        self.pool.domain()
    }

    /// Extends the domain; `rank` is the published order of all values.
    pub fn grow(&mut self, rank: &[u32]) -> Result<(), &'static str> {
        if rank.len() < self.domain() {
            return Err("a domain never shrinks");
        }
        self.rank = rank.to_vec();
        self.pool.grow(rank.len());
        self.value_counts.resize(rank.len(), 0);
        self.slots.grow(rank.len());
        Ok(())
    }

    /// Draws candidates by other weights from now on.
    pub fn reweigh(&mut self, weights: Vec<u64>) -> Result<(), &'static str> {
        if weights.len() != self.domain() {
            return Err("there must be one weight per value");
        }
        self.pool.reweigh(weights)
    }

    /// Releases every tuple at once: its group, and the groups opened for it. All codes must lie in the domain.
    pub fn push(
        &mut self,
        seqs: &[u64],
        quasi: &[u64],
        codes: &[i32],
    ) -> Result<Placement, &'static str> {
        let mut out = Placement::with_capacity(seqs.len());
        for ((&seq, &quasi), &code) in seqs.iter().zip(quasi).zip(codes) {
            self.place(seq, quasi, code as u32, &mut out)?;
        }
        Ok(out)
    }

    pub fn totals(&self) -> Totals {
        Totals {
            tuples: self.tuples,
            offered: self.offered,
            groups: self.ids.next,
            open: self.slots.open_groups(),
            retired: self.retired,
            top: self.value_counts.iter().copied().max().unwrap_or(0),
        }
    }

    /// Tuples per code.
    pub fn value_counts(&self) -> &[u64] {
        &self.value_counts
    }

    pub fn snapshot(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        for x in [self.tuples, self.offered, self.retired, self.ids.next] {
            out.u64(x);
        }
        out.u64s(&self.value_counts);
        self.slots.write(&mut out);
        out.0
    }

    /// Restores a snapshot of an engine with the same settings; an invalid one changes nothing.
    pub fn restore(&mut self, state: &[u8]) -> Read<()> {
        let mut input = Reader(state);
        let numbers = (input.u64()?, input.u64()?, input.u64()?, input.u64()?);
        let value_counts = input.u64s()?;
        let slots = Slots::read(&mut input)?;
        input.end()?;
        if value_counts.len() != self.domain() || slots.lists() != value_counts.len() {
            return Err("the snapshot belongs to another domain");
        }
        (self.tuples, self.offered, self.retired, self.ids.next) = numbers;
        (self.value_counts, self.slots) = (value_counts, slots);
        Ok(())
    }

    fn place(
        &mut self,
        seq: u64,
        quasi: u64,
        code: u32,
        out: &mut Placement,
    ) -> Result<(), &'static str> {
        if self.retire_after > 0 {
            self.retired += self.slots.retire(seq.saturating_sub(self.retire_after));
        }
        self.draw.at(seq);
        let group = match self.slots.join(code, quasi, &mut self.draw) {
            Some(id) => id,
            None => self.open(seq, quasi, code, out)?,
        };
        self.tuples += 1;
        self.value_counts[code as usize] += 1;
        out.groups.push(group);
        Ok(())
    }

    fn open(
        &mut self,
        seq: u64,
        quasi: u64,
        code: u32,
        out: &mut Placement,
    ) -> Result<u64, &'static str> {
        let mut cells = self.generate(code)?;
        // Sorted: the order of drawing would publish the true value first.
        cells.sort_unstable_by_key(|&(c, _)| self.rank[c as usize]);
        let own = cells
            .iter()
            .position(|&(c, _)| c == code)
            .expect("the true value is a candidate");
        let id = self.ids.draw();
        self.slots
            .open(id, seq, &cells, Some((own, quasi)), self.retire_after > 0);
        self.offered += cells.iter().map(|&(_, n)| u64::from(n)).sum::<u64>();
        out.announce(id, cells.iter().map(|&(c, n)| (c as i32, n as i32)));
        Ok(id)
    }

    fn generate(&mut self, code: u32) -> Result<Vec<(u32, u32)>, &'static str> {
        if self.literal > 0 {
            let drawn = self.pool.literal(code, self.literal, &mut self.draw);
            return drawn.ok_or("the literal generation reached its draw limit");
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        self.pool
            .candidates(code, self.ids.next, &mut self.draw, &mut candidates);
        let cells = candidates.iter().map(|&c| (c, 1)).collect();
        self.candidates = candidates;
        Ok(cells)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn over(domain: u32) -> Result<DelayFree, &'static str> {
        DelayFree::new(Settings {
            key: [1; 32],
            shard: 0,
            l: 3,
            pool: Kind::Uniform,
            weights: vec![1; domain as usize],
            rank: (0..domain).collect(),
            retire_after: 0,
            literal: 0,
        })
    }

    fn stream() -> DelayFree {
        over(8).unwrap()
    }

    fn columns(n: u64) -> (Vec<u64>, Vec<u64>, Vec<i32>) {
        let codes = (0..n).map(|i| (i * i % 8) as i32).collect();
        ((0..n).collect(), (0..n).map(|i| i % 40).collect(), codes)
    }

    #[test]
    fn every_group_has_l_candidates_and_no_quasi_identifier_twice() {
        let (seqs, quasi, codes) = columns(2000);
        let placed = stream().push(&seqs, &quasi, &codes).unwrap();
        let mut offered = HashMap::new();
        for (i, &id) in placed.opened.iter().enumerate() {
            let span = placed.offsets[i] as usize..placed.offsets[i + 1] as usize;
            let candidates: Vec<i32> = placed.codes[span].to_vec();
            assert_eq!(candidates.len(), 3);
            assert!(candidates.is_sorted_by(|a, b| a < b), "published sorted");
            offered.insert(id, candidates);
        }
        let mut members = HashSet::new();
        for ((group, &quasi), code) in placed.groups.iter().zip(&quasi).zip(&codes) {
            assert!(offered[group].contains(code));
            assert!(
                members.insert((group, quasi)),
                "a quasi-identifier came twice"
            );
        }
    }

    #[test]
    fn batches_and_restarts_change_nothing() {
        let (seqs, quasi, codes) = columns(300);
        let whole = stream().push(&seqs, &quasi, &codes).unwrap();
        let (mut parts, mut groups) = (stream(), Vec::new());
        for at in (0..300).step_by(60) {
            let mut again = stream();
            again.restore(&parts.snapshot()).unwrap();
            parts = again;
            let to = at + 60;
            let placed = parts.push(&seqs[at..to], &quasi[at..to], &codes[at..to]);
            groups.extend(placed.unwrap().groups);
        }
        assert_eq!(groups, whole.groups);
        assert!(stream().restore(&[1, 2, 3]).is_err());
    }

    #[test]
    fn totals_count_the_offered_slots() {
        let mut stream = stream();
        let (seqs, quasi, codes) = columns(100);
        let placed = stream.push(&seqs, &quasi, &codes).unwrap();
        let totals = stream.totals();
        assert_eq!(totals.tuples, 100);
        assert_eq!(totals.groups, placed.opened.len() as u64);
        assert_eq!(totals.offered, 3 * totals.groups);
    }

    #[test]
    fn a_domain_smaller_than_l_is_rejected() {
        assert!(over(2).is_err());
        assert!(stream().grow(&[0, 1]).is_err());
    }
}
