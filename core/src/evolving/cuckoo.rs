//! Cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher, CoNEXT 2014): a set that answers "no" or "maybe" and supports
//! deletion.
//!
//! Four 16-bit fingerprints share one 64-bit bucket. A key has two possible buckets, each reachable from the other by
//! the fingerprint alone. A lookup compares eight fingerprints, so a key that was never added is reported with
//! probability at most 8 / 65,535 (0 is an empty slot), about 0.012%. Delete only added keys: deleting another may
//! remove a colliding key.

const SLOTS: usize = 4;
const LANES: u64 = 0x0001_0001_0001_0001;
const HIGH: u64 = 0x8000_8000_8000_8000;
/// After this many evictions the filter counts as full; the value is from the paper.
const KICKS: usize = 500;

/// Finalizer of splitmix64: spreads every input bit over the whole word.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a lookup needs of a key, computed once for many filters.
#[derive(Clone, Copy)]
pub struct KeyHash {
    print: u64,
    first: u64,
    other: u64,
}

impl KeyHash {
    pub fn new(key: u64) -> Self {
        let h = mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let print = (h >> 48) % 65_535 + 1;
        KeyHash {
            print,
            first: h & 0xffff_ffff,
            other: mix(print) & 0xffff_ffff,
        }
    }

    /// Not zero if the bucket has the fingerprint: equal lanes become zero, and only a zero borrows its high bit.
    #[inline]
    pub fn hits(self, bucket: u64) -> u64 {
        let x = bucket ^ self.print.wrapping_mul(LANES);
        x.wrapping_sub(LANES) & !x & HIGH
    }
}

fn lane(bucket: u64, slot: usize) -> u64 {
    (bucket >> (16 * slot)) & 0xffff
}

/// The number of buckets for this many keys: above 95% load insertions start to fail.
pub fn buckets_for(keys: usize) -> usize {
    let wanted = (keys as f64 / 0.95 / SLOTS as f64).ceil() as usize;
    wanted.max(1).next_power_of_two()
}

/// The two possible buckets of a key, in a filter of this many buckets.
pub fn pair(key: KeyHash, buckets: usize) -> (usize, usize) {
    let mask = buckets as u64 - 1;
    let first = key.first & mask;
    (first as usize, ((first ^ key.other) & mask) as usize)
}

pub fn contains(buckets: &[u64], key: KeyHash) -> bool {
    let (a, b) = pair(key, buckets.len());
    key.hits(buckets[a]) | key.hits(buckets[b]) != 0
}

/// Adds a key; false if the filter is full, and then nothing has changed.
pub fn insert(buckets: &mut [u64], key: KeyHash) -> bool {
    let (a, b) = pair(key, buckets.len());
    if put(&mut buckets[a], key.print) || put(&mut buckets[b], key.print) {
        return true;
    }
    let before = buckets.to_vec();
    let (mut at, mut print) = (b, key.print);
    for kick in 0..KICKS {
        let slot = (mix(print + kick as u64) % SLOTS as u64) as usize;
        let evicted = lane(buckets[at], slot);
        buckets[at] ^= (evicted ^ print) << (16 * slot);
        print = evicted;
        at = ((at as u64 ^ (mix(print) & 0xffff_ffff)) & (buckets.len() as u64 - 1)) as usize;
        if put(&mut buckets[at], print) {
            return true;
        }
    }
    buckets.copy_from_slice(&before);
    false
}

fn put(bucket: &mut u64, print: u64) -> bool {
    let free = (0..SLOTS).find(|&slot| lane(*bucket, slot) == 0);
    if let Some(slot) = free {
        *bucket |= print << (16 * slot);
    }
    free.is_some()
}

/// Deletes an added key; false if no such fingerprint is there.
pub fn delete(buckets: &mut [u64], key: KeyHash) -> bool {
    let (a, b) = pair(key, buckets.len());
    for at in [a, b] {
        if let Some(slot) = (0..SLOTS).find(|&slot| lane(buckets[at], slot) == key.print) {
            buckets[at] &= !(0xffff << (16 * slot));
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(keys: std::ops::Range<u64>) -> Vec<u64> {
        let mut buckets = vec![0; buckets_for(keys.clone().count())];
        assert!(
            keys.into_iter()
                .all(|k| insert(&mut buckets, KeyHash::new(k)))
        );
        buckets
    }

    #[test]
    fn every_added_key_is_found_and_few_others() {
        let buckets = fill(0..1000);
        assert!((0..1000).all(|k| contains(&buckets, KeyHash::new(k))));
        let errors = (1000..101_000).filter(|&k| contains(&buckets, KeyHash::new(k)));
        assert!(errors.count() < 40);
    }

    #[test]
    fn a_key_added_twice_is_deleted_twice() {
        let (mut buckets, key) = (vec![0; 4], KeyHash::new(5));
        assert!(insert(&mut buckets, key) && insert(&mut buckets, key));
        assert!(delete(&mut buckets, key) && contains(&buckets, key));
        assert!(delete(&mut buckets, key) && !contains(&buckets, key));
        assert!(!delete(&mut buckets, key));
    }

    #[test]
    fn a_full_filter_rejects_keys_and_stays_unchanged() {
        let mut buckets = vec![0; 1];
        let taken = (0..100).take_while(|&k| insert(&mut buckets, KeyHash::new(k)));
        let taken: Vec<u64> = taken.collect();
        assert_eq!(taken.len(), 4);
        assert!(taken.iter().all(|&k| contains(&buckets, KeyHash::new(k))));
    }
}
