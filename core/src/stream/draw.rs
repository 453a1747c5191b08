//! Keyed choices: a function of (stream key, shard, sequence number) and nothing else.
//!
//! Every tuple has one ChaCha20 block: the one with its sequence number in the key stream of its shard. Recomputing a
//! batch on another machine gives the same choices; without the key they cannot be distinguished from random ones. A
//! tuple that needs more than its 64 bytes continues in a key stream of its own.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

const WORDS: usize = 16;
/// Blocks computed at a time; ChaCha20 runs four at once in vector registers.
const AHEAD: usize = 4;
/// Words reserved per tuple in the spill stream.
const SPILL: u128 = 1 << 20;

pub struct Draw {
    blocks: ChaCha20Rng,
    spill: ChaCha20Rng,
    words: [u32; WORDS * AHEAD],
    first: Option<u64>,
    seq: u64,
    next: usize,
    end: usize,
    spilled: bool,
}

/// A key for another purpose, from a key stream that no shard uses.
pub fn derive(key: [u8; 32], purpose: u64) -> [u8; 32] {
    let mut rng = ChaCha20Rng::from_seed(key);
    rng.set_stream(u64::MAX - purpose);
    let mut out = [0u8; 32];
    rng.fill_bytes(&mut out);
    out
}

/// Scales 64 random bits to a number below `n`; `None` for the few that would favor some numbers.
#[inline]
pub fn scale(random: u64, n: u64) -> Option<u64> {
    let wide = u128::from(random) * u128::from(n);
    let low = wide as u64;
    (low >= n || low >= n.wrapping_neg() % n).then_some((wide >> 64) as u64)
}

impl Draw {
    pub fn new(key: [u8; 32], shard: u64) -> Self {
        let mut blocks = ChaCha20Rng::from_seed(key);
        blocks.set_stream(shard);
        let mut spill = ChaCha20Rng::from_seed(derive(key, 0));
        spill.set_stream(shard);
        let words = [0; WORDS * AHEAD];
        Draw {
            blocks,
            spill,
            words,
            first: None,
            seq: 0,
            next: 0,
            end: 0,
            spilled: false,
        }
    }

    /// Moves to the block of one tuple.
    pub fn at(&mut self, seq: u64) {
        let first = seq - seq % AHEAD as u64;
        if self.first != Some(first) {
            self.blocks.set_word_pos(u128::from(first) * WORDS as u128);
            for word in &mut self.words {
                *word = self.blocks.next_u32();
            }
            self.first = Some(first);
        }
        self.seq = seq;
        self.next = (seq - first) as usize * WORDS;
        self.end = self.next + WORDS;
        self.spilled = false;
    }

    fn u64(&mut self) -> u64 {
        if self.next < self.end {
            let low = u64::from(self.words[self.next]);
            let high = u64::from(self.words[self.next + 1]);
            self.next += 2;
            return low | high << 32;
        }
        if !self.spilled {
            self.spill.set_word_pos(u128::from(self.seq) * SPILL);
            self.spilled = true;
        }
        self.spill.next_u64()
    }

    /// A uniform number below `n` (Lemire 2019: a multiplication, rarely another draw).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        loop {
            if let Some(x) = scale(self.u64(), n) {
                return x;
            }
        }
    }

    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_draws_from_its_own_block() {
        // The first two blocks of ChaCha20 under a key of zeros.
        let mut draw = Draw::new([0; 32], 0);
        draw.at(0);
        assert_eq!(draw.u64(), 0x903d_f1a0_ade0_b876);
        draw.at(1);
        assert_eq!(draw.u64(), 0x7a38_5155_bee7_079f);
    }

    #[test]
    fn earlier_draws_change_nothing() {
        let take = |draw: &mut Draw, seq| {
            draw.at(seq);
            (0..20).map(|_| draw.below(1000)).collect::<Vec<_>>()
        };
        let mut draw = Draw::new([1; 32], 3);
        let first = take(&mut draw, 9);
        take(&mut draw, 2);
        assert_eq!(take(&mut draw, 9), first);
        assert_ne!(take(&mut Draw::new([1; 32], 4), 9), first);
        assert_ne!(take(&mut draw, 10), first);
    }

    #[test]
    fn keys_of_different_purposes_differ() {
        assert_ne!(derive([1; 32], 0), derive([1; 32], 1));
        assert_ne!(derive([1; 32], 0), derive([2; 32], 0));
    }
}
