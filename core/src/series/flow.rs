//! Balances a bucket: the smallest number of groups, and the value of each counterfeit.
//!
//! A bucket with m entries becomes delta groups if every entry has exactly delta places and no value fills more than
//! delta of them. Records are routed from their values to entries, and counterfeits fill the rest, both by augmenting
//! paths. So delta is the least possible for these records.

use rand_chacha::ChaCha20Rng;

use super::bucket::Bucket;
use super::knowledge::Knowledge;
use crate::random::{below, shuffle};

/// A balanced bucket: the places of records and of counterfeits.
pub struct Balance {
    pub delta: u32,
    pub entries: usize,
    /// Values that may occur in the bucket, sorted.
    pub values: Vec<u32>,
    /// `real[v * m + e]`: places of entry e filled by records with value v.
    pub real: Vec<u32>,
    /// The same for counterfeits.
    pub gaps: Vec<u32>,
    /// Uses of each value, records and counterfeits together.
    pub used: Vec<u32>,
}

struct Network {
    entries: usize,
    chances: Vec<f64>,
    allowed: Vec<bool>,
    flow: Vec<u32>,
    load: Vec<u32>,
    used: Vec<u32>,
}

impl Network {
    fn place(&mut self, v: usize, e: usize) {
        self.flow[v * self.entries + e] += 1;
        self.load[e] += 1;
        self.used[v] += 1;
    }

    /// Routes one more record of value `v` into entries of capacity `delta`; moves other values if necessary.
    fn send(&mut self, v: usize, delta: u32) -> bool {
        let m = self.entries;
        let direct = (0..m)
            .filter(|&e| self.allowed[v * m + e] && self.load[e] < delta)
            .min_by_key(|&e| self.load[e]);
        if let Some(e) = direct {
            self.place(v, e);
            return true;
        }
        let mut from: Vec<Option<(usize, usize)>> = vec![None; m]; // entry <- (value moved in, entry it left)
        let mut queue: Vec<usize> = (0..m).filter(|&e| self.allowed[v * m + e]).collect();
        let mut seen = vec![false; m];
        queue.iter().for_each(|&e| seen[e] = true);
        let mut at = 0;
        while at < queue.len() {
            let e = queue[at];
            at += 1;
            if self.load[e] < delta {
                self.load[e] += 1;
                self.used[v] += 1;
                let mut to = e;
                while let Some((moved, left)) = from[to] {
                    self.flow[moved * m + to] += 1;
                    self.flow[moved * m + left] -= 1;
                    to = left;
                }
                self.flow[v * m + to] += 1;
                return true;
            }
            for u in 0..self.used.len() {
                if self.flow[u * m + e] == 0 {
                    continue;
                }
                for other in 0..m {
                    if !seen[other] && self.allowed[u * m + other] {
                        seen[other] = true;
                        from[other] = Some((u, e));
                        queue.push(other);
                    }
                }
            }
        }
        false
    }

    /// Draws one of the values, likely ones more often: an unlikely counterfeit would make the true value stand out.
    fn draw(&self, values: &[usize], entry: usize, rng: &mut ChaCha20Rng) -> usize {
        const GRAINS: f64 = 1e6;
        let grains = |v: usize| 1 + (self.chances[v * self.entries + entry] * GRAINS) as usize;
        let mut at = below(rng, values.iter().map(|&v| grains(v)).sum());
        for &v in values {
            if at < grains(v) {
                return v;
            }
            at -= grains(v);
        }
        unreachable!("the position lies below the sum of the grains")
    }

    /// Fills one more place of entry `e` with a value used fewer than `delta` times; moves other values if necessary.
    fn fill(&mut self, e: usize, delta: u32, rng: &mut ChaCha20Rng) -> bool {
        let m = self.entries;
        let n = self.used.len();
        let mut from: Vec<Option<(usize, usize)>> = vec![None; m]; // entry <- (value it gave away, entry it went to)
        let mut seen = vec![false; m];
        let mut queue = vec![e];
        seen[e] = true;
        let mut at = 0;
        while at < queue.len() {
            let here = queue[at];
            at += 1;
            let free: Vec<usize> = (0..n)
                .filter(|&v| self.allowed[v * m + here] && self.used[v] < delta)
                .collect();
            if !free.is_empty() {
                let v = self.draw(&free, here, rng);
                self.used[v] += 1;
                self.load[e] += 1;
                self.flow[v * m + here] += 1;
                let mut to = here;
                while let Some((moved, next)) = from[to] {
                    self.flow[moved * m + to] -= 1;
                    self.flow[moved * m + next] += 1;
                    to = next;
                }
                return true;
            }
            for v in (0..n).filter(|&v| self.allowed[v * m + here]) {
                for other in 0..m {
                    if !seen[other] && self.flow[v * m + other] > 0 {
                        seen[other] = true;
                        from[other] = Some((v, here));
                        queue.push(other);
                    }
                }
            }
        }
        false
    }
}

/// Finds the least delta and a full assignment for the records of a bucket.
pub fn balance(
    bucket: &Bucket,
    knowledge: &Knowledge,
    values: &[i32],
    rng: &mut ChaCha20Rng,
) -> Balance {
    let m = bucket.entries.len();
    let domain = bucket.domain();
    let mut count = vec![0u32; domain.len()];
    for &row in &bucket.rows {
        let at = domain
            .binary_search(&(values[row as usize] as u32))
            .expect("records fit their bucket");
        count[at] += 1;
    }
    let mut allowed = vec![false; domain.len() * m];
    for (v, &value) in domain.iter().enumerate() {
        for &e in bucket.places(value) {
            allowed[v * m + e] = true;
        }
    }
    let chances = domain
        .iter()
        .flat_map(|&value| {
            bucket
                .entries
                .iter()
                .map(move |&id| knowledge.chance(id, value))
        })
        .collect();
    let mut net = Network {
        entries: m,
        chances,
        allowed,
        flow: vec![0; domain.len() * m],
        load: vec![0; m],
        used: vec![0; domain.len()],
    };
    let top = count.iter().copied().max().unwrap_or(0);
    let mut delta = top.max((bucket.rows.len() as u32).div_ceil(m as u32));
    for (v, &n) in count.iter().enumerate() {
        for _ in 0..n {
            while !net.send(v, delta) {
                delta += 1;
            }
        }
    }
    fill_all(&mut net, &mut delta, rng);
    let (real, gaps) = split_real_and_gaps(&net, &count);
    Balance {
        delta,
        entries: m,
        values: domain,
        real,
        gaps,
        used: net.used,
    }
}

/// Divides each value's places between records and counterfeits; the choice of places does not matter yet.
fn split_real_and_gaps(net: &Network, count: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let m = net.entries;
    let (mut real, mut gaps) = (vec![0; net.flow.len()], vec![0; net.flow.len()]);
    for (v, &n) in count.iter().enumerate() {
        let mut left = n;
        for at in v * m..(v + 1) * m {
            real[at] = left.min(net.flow[at]);
            gaps[at] = net.flow[at] - real[at];
            left -= real[at];
        }
    }
    (real, gaps)
}

fn fill_all(net: &mut Network, delta: &mut u32, rng: &mut ChaCha20Rng) {
    let mut order: Vec<usize> = (0..net.entries).collect();
    shuffle(&mut order, rng);
    loop {
        let gap = order.iter().copied().find(|&e| net.load[e] < *delta);
        let Some(e) = gap else { return };
        if !net.fill(e, *delta, rng) {
            *delta += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    /// A bucket of the sets of these values, with one row per value in `values`.
    fn balance_of(knowledge: &Knowledge, entries: &[usize], values: &[i32]) -> Balance {
        let ids: Vec<u32> = entries.iter().map(|&v| knowledge.id[v]).collect();
        let mut bucket = Bucket::new(ids, knowledge);
        bucket.rows = (0..values.len() as u32).collect();
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        balance(&bucket, knowledge, values, &mut rng)
    }

    #[test]
    fn counterfeits_fill_the_remaining_places() {
        // Values never change: two records of value 0 and one of value 1 need one counterfeit of value 1.
        let knowledge = Knowledge::new(&[0, 1, 2], &[0, 1], &[1.0, 1.0]);
        let state = balance_of(&knowledge, &[0, 1], &[0, 0, 1]);
        assert_eq!(state.delta, 2);
        assert_eq!(state.real, [2, 0, 0, 1]);
        assert_eq!(state.gaps, [0, 0, 0, 1]);
    }

    #[test]
    fn every_entry_is_full_and_no_value_is_used_too_often() {
        let all = [0, 1, 2];
        let indices: Vec<i32> = all.iter().chain(&all).chain(&all).copied().collect();
        let knowledge = Knowledge::new(&[0, 3, 6, 9], &indices, &[1.0; 9]);
        for values in [&[0, 0, 0, 1][..], &[0, 1, 2], &[2], &[0, 0, 1, 1, 1]] {
            let state = balance_of(&knowledge, &[0, 1, 2], values);
            let most = *state.used.iter().max().unwrap();
            assert!(most <= state.delta);
            for entry in 0..3 {
                let places = |cells: &[u32]| (0..3).map(|v| cells[v * 3 + entry]).sum::<u32>();
                assert_eq!(places(&state.real) + places(&state.gaps), state.delta);
            }
            assert_eq!(state.real.iter().sum::<u32>(), values.len() as u32);
        }
    }
}
