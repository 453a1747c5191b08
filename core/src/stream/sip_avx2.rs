//! SipHash-2-4 of eight messages in parallel, with AVX2: two registers of four states, interleaved.

use std::arch::x86_64::*;
use std::mem::transmute;

const LANES: usize = 8;

/// One word of four states in each.
type Halves = [__m256i; 2];

/// Replaces each word by the hash of a state that takes it, then 0, then the length of three words.
#[target_feature(enable = "avx2")]
pub unsafe fn each(state: &[u64; 4], words: &mut [u64]) {
    for words in words.chunks_mut(LANES) {
        let mut padded = [0; LANES];
        padded[..words.len()].copy_from_slice(words);
        // SAFETY: the caller guarantees AVX2.
        let hashes = unsafe { lanes(state, padded) };
        words.copy_from_slice(&hashes[..words.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn lanes(state: &[u64; 4], words: [u64; LANES]) -> [u64; LANES] {
    // SAFETY: the caller guarantees AVX2; Halves and eight numbers are the same 64 bytes.
    unsafe {
        let mut states: [Halves; 4] = state.map(|word| [_mm256_set1_epi64x(word as i64); 2]);
        take(&mut states, transmute::<[u64; LANES], Halves>(words));
        rounds::<2>(&mut states); // a word of zeros changes nothing else
        take(&mut states, [_mm256_set1_epi64x(24 << 56); 2]);
        states[2] = xor(states[2], [_mm256_set1_epi64x(0xff); 2]);
        rounds::<4>(&mut states);
        let sum = xor(xor(states[0], states[1]), xor(states[2], states[3]));
        transmute::<Halves, [u64; LANES]>(sum)
    }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn take(states: &mut [Halves; 4], words: Halves) {
    // SAFETY: the caller guarantees AVX2.
    unsafe {
        states[3] = xor(states[3], words);
        rounds::<2>(states);
        states[0] = xor(states[0], words);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn rounds<const N: usize>(states: &mut [Halves; 4]) {
    // SAFETY: the caller guarantees AVX2.
    unsafe {
        for _ in 0..N {
            let [mut a, mut b, mut c, mut d] = *states;
            a = add(a, b);
            b = xor(rotate::<13, 51>(b), a);
            a = swap(a);
            c = add(c, d);
            d = xor(rotate::<16, 48>(d), c);
            a = add(a, d);
            d = xor(rotate::<21, 43>(d), a);
            c = add(c, b);
            b = xor(rotate::<17, 47>(b), c);
            c = swap(c);
            *states = [a, b, c, d];
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn add(a: Halves, b: Halves) -> Halves {
    [_mm256_add_epi64(a[0], b[0]), _mm256_add_epi64(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn xor(a: Halves, b: Halves) -> Halves {
    [_mm256_xor_si256(a[0], b[0]), _mm256_xor_si256(a[1], b[1])]
}

/// Rotates every word left by `LEFT` bits; both numbers sum to 64.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(words: Halves) -> Halves {
    let rotated = |half| {
        _mm256_or_si256(
            _mm256_slli_epi64::<LEFT>(half),
            _mm256_srli_epi64::<RIGHT>(half),
        )
    };
    [rotated(words[0]), rotated(words[1])]
}

/// Rotates every word by 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn swap(words: Halves) -> Halves {
    [
        _mm256_shuffle_epi32::<0xb1>(words[0]),
        _mm256_shuffle_epi32::<0xb1>(words[1]),
    ]
}
