//! Unbiased choices from ChaCha20, shared by all kernels.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// Draws an index below `n` without bias (Lemire 2019: a multiplication, rarely a rejection).
#[inline]
pub fn below(rng: &mut impl Rng, n: usize) -> usize {
    let n = n as u64;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(n);
        let low = wide as u64;
        if low >= n || low >= n.wrapping_neg() % n {
            return (wide >> 64) as usize;
        }
    }
}

/// Fisher-Yates.
pub fn shuffle<T>(items: &mut [T], rng: &mut impl Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(rng, i + 1));
    }
}

/// A random permutation of `n` items.
pub fn permutation(n: usize, key: [u8; 32]) -> Vec<i64> {
    let mut order: Vec<i64> = (0..n as i64).collect();
    shuffle(&mut order, &mut ChaCha20Rng::from_seed(key));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_uniform_below_the_bound() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[below(&mut rng, 5)] += 1);
        assert!(seen.iter().all(|&n| (150..250).contains(&n)), "{seen:?}");
    }

    #[test]
    fn a_permutation_is_complete_and_depends_on_its_key() {
        let mut order = permutation(100, [2; 32]);
        assert_eq!(order, permutation(100, [2; 32]));
        assert_ne!(order, permutation(100, [3; 32]));
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
