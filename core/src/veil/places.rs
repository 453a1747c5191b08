//! Places of keys in the order of their first event. The keys are keyed hashes already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The bits of a keyed hash need no further mixing.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers")
    }

    fn write_u64(&mut self, key: u64) {
        // Multiply anyway, so that keys which are no hashes are slow at worst.
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// At most 2^32 keys.
#[derive(Default)]
pub struct Places {
    places: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    keys: Vec<u64>,
}

impl Places {
    pub fn of(keys: impl Iterator<Item = u64>) -> Self {
        let mut places = Places::default();
        keys.for_each(|key| {
            places.place(key);
        });
        places
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// All keys in order of place.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    pub fn find(&self, key: u64) -> Option<usize> {
        self.places.get(&key).map(|&place| place as usize)
    }

    /// The place of a key; a new key gets the next place.
    pub fn place(&mut self, key: u64) -> usize {
        let next = self.keys.len() as u32;
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.keys.push(key);
        }
        place as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_place() {
        let mut places = Places::of([7, 9, 7].into_iter());
        assert_eq!((places.len(), places.keys()), (2, &[7, 9][..]));
        assert_eq!(
            (places.place(9), places.place(0), places.find(0)),
            (1, 2, Some(2))
        );
        assert_eq!(places.find(8), None);
    }
}
