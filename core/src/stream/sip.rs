//! SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short strings that cannot be predicted without the key.

#[derive(Clone, Copy)]
pub struct Sip {
    k0: u64,
    k1: u64,
}

#[derive(Clone, Copy)]
struct State([u64; 4]);

/// A hash of three words with a known first word: hashes with the same first word share its work.
#[derive(Clone, Copy)]
pub struct SipPrefix(State);

impl SipPrefix {
    #[inline]
    pub fn words(&self, words: [u64; 2]) -> u64 {
        let mut state = self.0;
        for word in words {
            state.take(word);
        }
        state.take(24 << 56);
        state.finish()
    }
}

impl SipPrefix {
    /// Replaces each word by `words([word, 0])`, several at once if the processor can.
    #[inline]
    pub fn each(&self, words: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if words.len() > 2 && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the check above says that the processor has AVX2.
            return unsafe { super::sip_avx2::each(&self.0.0, words) };
        }
        words
            .iter_mut()
            .for_each(|word| *word = self.words([*word, 0]));
    }
}

impl State {
    #[inline]
    fn round(&mut self) {
        let v = &mut self.0;
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }

    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        self.0[0] ^ self.0[1] ^ self.0[2] ^ self.0[3]
    }
}

impl Sip {
    pub fn new(key: &[u8; 32]) -> Self {
        let word = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight bytes"));
        Sip {
            k0: word(0),
            k1: word(8),
        }
    }

    fn start(&self) -> State {
        State([
            self.k0 ^ 0x736f_6d65_7073_6575,
            self.k1 ^ 0x646f_7261_6e64_6f6d,
            self.k0 ^ 0x6c79_6765_6e65_7261,
            self.k1 ^ 0x7465_6462_7974_6573,
        ])
    }

    pub fn bytes(&self, data: &[u8]) -> u64 {
        let mut state = self.start();
        let mut words = data.chunks_exact(8);
        for word in &mut words {
            state.take(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let mut last = (data.len() as u64) << 56;
        for (i, &byte) in words.remainder().iter().enumerate() {
            last |= u64::from(byte) << (8 * i);
        }
        state.take(last);
        state.finish()
    }

    #[inline]
    pub fn begin(&self, word: u64) -> SipPrefix {
        let mut state = self.start();
        state.take(word);
        SipPrefix(state)
    }

    pub fn words(&self, [first, second, third]: [u64; 3]) -> u64 {
        self.begin(first).words([second, third])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_vectors_match() {
        let mut key = [0u8; 32];
        (0..16).for_each(|i| key[i] = i as u8);
        let sip = Sip::new(&key);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(sip.bytes(&message), 0xa129_ca61_49be_45e5);
        assert_eq!(sip.bytes(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(sip.bytes(&message[..8]), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn parallel_hashes_equal_single_ones() {
        let prefix = Sip::new(&[7; 32]).begin(5);
        for size in 0..20 {
            let words: Vec<u64> = (0..size).map(|i| u64::MAX / (i + 1)).collect();
            let mut hashes = words.clone();
            prefix.each(&mut hashes);
            let one_by_one = words.iter().map(|&word| prefix.words([word, 0]));
            assert!(one_by_one.eq(hashes));
        }
    }

    #[test]
    fn three_words_hash_like_their_bytes() {
        let sip = Sip::new(&[7; 32]);
        let bytes: Vec<u8> = [1u64, 2, 3].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(sip.words([1, 2, 3]), sip.bytes(&bytes));
    }
}
