//! A fast keyed hash for tables of short text and codes: without the process's key nobody can construct collisions.

use std::hash::{BuildHasher, Hasher, RandomState};

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Builds hashers under a random key.
#[derive(Clone)]
pub struct FastHash {
    key: u64,
    other: u64,
}

impl Default for FastHash {
    fn default() -> Self {
        let source = RandomState::new();
        let (key, other) = (source.hash_one(1), source.hash_one(2) | 1);
        FastHash { key, other }
    }
}

impl BuildHasher for FastHash {
    type Hasher = Mix;

    #[inline]
    fn build_hasher(&self) -> Mix {
        Mix {
            sum: self.key,
            by: self.other,
        }
    }
}

pub struct Mix {
    sum: u64,
    by: u64,
}

impl Mix {
    /// Both halves of a product depend on all bits of both factors.
    #[inline]
    fn fold(&mut self, word: u64) {
        let wide = u128::from(self.sum ^ word) * u128::from(self.by);
        self.sum = (wide as u64) ^ (wide >> 64) as u64;
    }
}

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        self.sum.wrapping_mul(ODD) ^ (self.sum >> 32)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.fold(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let word = rest
                .iter()
                .fold(0, |word, &byte| word << 8 | u64::from(byte));
            self.fold(word);
        }
    }

    #[inline]
    fn write_usize(&mut self, size: usize) {
        self.sum = self.sum.wrapping_add(size as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn hashes_are_stable_and_keyed() {
        let fast_hash = FastHash::default();
        let texts: Vec<String> = (0..20_000).map(|i| format!("{i:x}")).collect();
        let hash = |fast_hash: &FastHash, text: &String| fast_hash.hash_one(text.as_bytes());
        let hashes: HashSet<u64> = texts.iter().map(|text| hash(&fast_hash, text)).collect();
        assert_eq!(hashes.len(), texts.len());
        assert_eq!(hash(&fast_hash, &texts[7]), hash(&fast_hash, &texts[7]));
        assert_ne!(
            hash(&fast_hash, &texts[7]),
            hash(&FastHash::default(), &texts[7])
        );
        assert_ne!(
            fast_hash.hash_one(&b"a"[..]),
            fast_hash.hash_one(&b"a\0"[..])
        );
    }
}
