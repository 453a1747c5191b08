//! A hasher for numbers that are hashes already, or equally random sums.

use std::hash::{BuildHasherDefault, Hasher};

pub type Build = BuildHasherDefault<KeyHasher>;

#[derive(Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers")
    }

    fn write_u64(&mut self, key: u64) {
        // The upper bits of a product depend on all bits, and they choose the place.
        self.0 = key.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32);
    }
}
