//! Anatomy (Xiao and Tao, VLDB 2006): groups of l records with l different sensitive values.
//!
//! Buckets hold the rows of one sensitive value in random order. As long as l buckets are non-empty,
//! one group takes one row from each of the l largest. The remaining rows, at most one per
//! bucket, join a group that lacks their value.

use std::collections::BinaryHeap;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use crate::random::{below, shuffle};

/// Groups the rows; `-1` means that no group can take the row.
pub fn group(codes: &[i32], domain: usize, l: usize, key: [u8; 32]) -> (Vec<i64>, i64) {
    let mut rng = ChaCha20Rng::from_seed(key);
    let mut buckets: Vec<Vec<u32>> = vec![Vec::new(); domain];
    for (row, &code) in codes.iter().enumerate() {
        buckets[code as usize].push(row as u32);
    }
    for bucket in &mut buckets {
        shuffle(bucket, &mut rng);
    }
    let mut groups = vec![-1i64; codes.len()];
    let made = form(&mut buckets, l, &mut groups, &mut rng);
    place_rest(codes, &buckets, made, &mut groups, &mut rng);
    (groups, made)
}

/// Takes one row from each of the l largest buckets until fewer than l are left; ties are broken at random.
fn form(buckets: &mut [Vec<u32>], l: usize, groups: &mut [i64], rng: &mut ChaCha20Rng) -> i64 {
    let mut heap: BinaryHeap<(usize, u32, usize)> = buckets
        .iter()
        .enumerate()
        .filter(|(_, bucket)| !bucket.is_empty())
        .map(|(value, bucket)| (bucket.len(), rng.next_u32(), value))
        .collect();
    let mut made = 0i64;
    let mut taken = Vec::with_capacity(l);
    while heap.len() >= l {
        taken.extend((0..l).filter_map(|_| heap.pop()));
        for (size, _, value) in taken.drain(..) {
            if let Some(row) = buckets[value].pop() {
                groups[row as usize] = made;
            }
            if size > 1 {
                heap.push((size - 1, rng.next_u32(), value));
            }
        }
        made += 1;
    }
    made
}

/// Puts each remaining row into a random group that does not have its value yet.
///
/// At most l - 1 values have rows left, so one pass over the rows per such value is cheap.
fn place_rest(
    codes: &[i32],
    buckets: &[Vec<u32>],
    made: i64,
    groups: &mut [i64],
    rng: &mut ChaCha20Rng,
) {
    for (value, bucket) in buckets.iter().enumerate().filter(|(_, b)| !b.is_empty()) {
        let mut has = vec![false; made as usize];
        for (&code, &group) in codes.iter().zip(groups.iter()) {
            if code as usize == value && group >= 0 {
                has[group as usize] = true;
            }
        }
        let mut free: Vec<i64> = (0..made).filter(|&g| !has[g as usize]).collect();
        for &row in bucket {
            if free.is_empty() {
                break;
            }
            groups[row as usize] = free.swap_remove(below(rng, free.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_group_has_different_values_and_at_least_l_of_them() {
        let codes: Vec<i32> = (0..100).map(|i| i % 7).collect();
        let (groups, count) = group(&codes, 7, 4, [1; 32]);
        assert_eq!(count, 25);
        for number in 0..count {
            let rows = (0..100).filter(|&r| groups[r] == number);
            let values: Vec<i32> = rows.map(|r| codes[r]).collect();
            assert!(values.len() >= 4);
            assert_eq!(values.iter().collect::<HashSet<_>>().len(), values.len());
        }
        assert!(groups.iter().all(|&g| g >= 0));
    }

    #[test]
    fn rows_that_no_group_can_take_stay_ungrouped() {
        // Five of six records have the same value: one group of two, and four records that nothing can hide.
        let (groups, count) = group(&[0, 0, 0, 0, 0, 1], 2, 2, [1; 32]);
        assert_eq!(count, 1);
        assert_eq!(groups.iter().filter(|&&g| g < 0).count(), 4);
    }
}
