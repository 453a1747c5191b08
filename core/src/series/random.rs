//! Unbiased draws and shuffles from a keyed ChaCha20 stream.

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

/// Draws an index below `n` without bias.
pub fn below(rng: &mut ChaCha20Rng, n: usize) -> usize {
    let n = n as u64;
    let zone = u64::MAX - u64::MAX % n;
    loop {
        let x = rng.next_u64();
        if x < zone {
            return (x % n) as usize;
        }
    }
}

/// Puts the items into a uniformly random order.
pub fn shuffle<T>(items: &mut [T], rng: &mut ChaCha20Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(rng, i + 1));
    }
}
