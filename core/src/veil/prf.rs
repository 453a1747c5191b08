//! Keyed choices of the veil: a draw depends on the veil key and on what it is for, on nothing else.
//!
//! One SipHash key per purpose, all from ChaCha20 under the veil key, so that an answer to one question says nothing
//! about another. A hash of 64 bits is scaled to n outcomes by multiplication; the few hashes that would favor an
//! outcome are hashed again with the next attempt number (Lemire 2019). Without that step, an outcome's probability
//! would be wrong by a factor of at most 1 + n / 2^64: 2^-24 for a segment of a whole slot. With it, the outcomes are
//! exactly uniform if the hashes are. The proof of the law on the line needs this.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use super::SLOT_LENGTH;
use crate::stream::draw::scale;
use crate::stream::sip::{Sip, SipPrefix};

/// The key stream of the veil's keys: no shard and no other purpose uses this number.
const STREAM: u64 = 0x7665_696c;

#[derive(Clone, Copy)]
pub struct Prf {
    permutation: Sip,
    point: Sip,
    omitted: Sip,
    step: Sip,
}

/// Slots whose questions are hashed together.
pub const BLOCK: usize = 16;

/// The three questions of one step along a kernel.
#[derive(Clone, Copy)]
pub enum Question {
    Stay = 0,
    Within = 1,
    Target = 2,
}

#[inline]
fn below(prefix: &SipPrefix, word: u64, n: u64) -> u64 {
    settle(prefix, word, prefix.words([word, 0]), n)
}

/// Scales the first hash, or that of a later attempt.
#[inline]
fn settle(prefix: &SipPrefix, word: u64, hash: u64, n: u64) -> u64 {
    let again = || (1..).find_map(|attempt| scale(prefix.words([word, attempt]), n));
    scale(hash, n).unwrap_or_else(|| again().expect("attempts do not end"))
}

impl Prf {
    pub fn new(key: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(key);
        rng.set_stream(STREAM);
        let mut sip = || {
            let mut bytes = [0; 32];
            rng.fill_bytes(&mut bytes);
            Sip::new(&bytes)
        };
        Prf {
            permutation: sip(),
            point: sip(),
            omitted: sip(),
            step: sip(),
        }
    }

    /// The index of the person's permutation among `n`.
    pub fn permutation(&self, person: u64, n: usize) -> usize {
        below(&self.permutation.begin(person), 0, n as u64) as usize
    }

    /// The point of a person's value within its segment.
    pub fn point(&self, person: u64, value: u16, segment: u64) -> u64 {
        below(&self.point.begin(person), u64::from(value), segment)
    }

    /// The place U of an omitted value; it does not depend on the value.
    pub fn omitted_place(&self, person: u64, event: u32) -> u64 {
        below(&self.omitted.begin(person), u64::from(event), SLOT_LENGTH)
    }

    /// The source of a person's steps.
    pub fn steps(&self, person: u64) -> Steps {
        Steps(self.step.begin(person))
    }
}

/// The steps of one person.
#[derive(Clone, Copy)]
pub struct Steps(SipPrefix);

impl Steps {
    /// Replaces questions, each in a `word`, by their hashes; `answer` scales them.
    #[inline]
    pub fn hash_words(&self, words: &mut [u64]) {
        self.0.each(words);
    }

    /// The answer below `n` from a question's hash.
    #[inline]
    pub fn answer(&self, word: u64, hash: u64, n: u64) -> u64 {
        settle(&self.0, word, hash, n)
    }
}

/// One question about the step of a slot at an event, packed into a word.
#[inline]
pub fn word(event: u32, slot: usize, question: Question) -> u64 {
    u64::from(event) << 32 | (slot as u64) << 16 | question as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_bounded_and_reproducible() {
        let prf = Prf::new([7; 32]);
        for person in 0..1000 {
            let point = prf.point(person, 3, 17);
            assert!(point < 17 && point == Prf::new([7; 32]).point(person, 3, 17));
            assert!(prf.omitted_place(person, 0) < SLOT_LENGTH && prf.permutation(person, 64) < 64);
        }
    }

    #[test]
    fn every_argument_matters() {
        let prf = Prf::new([7; 32]);
        let n = u64::MAX;
        let answer = |prf: &Prf, person, word| {
            let (steps, mut hashes) = (prf.steps(person), [word]);
            steps.hash_words(&mut hashes);
            steps.answer(word, hashes[0], n)
        };
        let first = answer(&prf, 1, word(2, 3, Question::Stay));
        for other in [
            answer(&prf, 2, word(2, 3, Question::Stay)),
            answer(&prf, 1, word(3, 3, Question::Stay)),
            answer(&prf, 1, word(2, 4, Question::Stay)),
            answer(&prf, 1, word(2, 3, Question::Within)),
            answer(&Prf::new([8; 32]), 1, word(2, 3, Question::Stay)),
            prf.point(1, 2, n),
        ] {
            assert_ne!(first, other);
        }
    }
}
