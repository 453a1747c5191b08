//! The result of a push: the group of every tuple, and the groups that were opened.

use super::draw::derive;
use super::sip::Sip;

/// The groups of tuples, and the opened groups with their candidates in compressed rows.
#[derive(Default)]
pub struct Placement {
    pub groups: Vec<u64>,
    pub opened: Vec<u64>,
    /// The group is announced before this row.
    pub at: Vec<i64>,
    pub offsets: Vec<i64>,
    pub codes: Vec<i32>,
    pub counts: Vec<i32>,
}

impl Placement {
    pub fn with_capacity(rows: usize) -> Self {
        Placement {
            groups: Vec::with_capacity(rows),
            offsets: vec![0],
            ..Placement::default()
        }
    }

    pub fn announce(&mut self, id: u64, candidates: impl Iterator<Item = (i32, i32)>) {
        self.opened.push(id);
        self.at.push(self.groups.len() as i64);
        for (code, count) in candidates {
            self.codes.push(code);
            self.counts.push(count);
        }
        self.offsets.push(self.codes.len() as i64);
    }
}

/// Group ids: a keyed permutation of (shard, number), so they never repeat and disclose neither.
pub struct Ids {
    sip: Sip,
    shard: u64,
    pub next: u64,
}

impl Ids {
    pub fn new(key: [u8; 32], shard: u64) -> Self {
        Ids {
            sip: Sip::new(&derive(key, 1)),
            shard,
            next: 0,
        }
    }

    pub fn draw(&mut self) -> u64 {
        let plain = self.shard << 48 | self.next;
        self.next += 1;
        let (mut left, mut right) = (plain >> 32, plain & 0xffff_ffff);
        for round in 0..6 {
            let mixed = left ^ (self.sip.words([round, right, 0]) & 0xffff_ffff);
            (left, right) = (right, mixed);
        }
        left << 32 | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_within_and_across_shards() {
        let mut seen = HashSet::new();
        for shard in 0..3 {
            let mut ids = Ids::new([1; 32], shard);
            assert!((0..5000).all(|_| seen.insert(ids.draw())));
        }
    }
}
