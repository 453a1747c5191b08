//! Encodes texts by number, in the order of first occurrence, and decodes them.
//!
//! A table of few distinct words is looked up once per cell: comparison and hash are the whole cost. Texts lie one
//! after the other; `ends` are the start of each and the end of the last.

use std::hash::{BuildHasher, RandomState};

/// The code of each cell, and the first cell of each code; none if the ends do not fit the text.
pub fn encode(ends: &[i32], text: &[u8]) -> Option<(Vec<i32>, Vec<i64>)> {
    let mut words = Words::new();
    let mut codes = Vec::with_capacity(ends.len().saturating_sub(1));
    let mut firsts = Vec::new();
    for (row, bounds) in ends.windows(2).enumerate() {
        let code = words.code(cell(bounds, text)?);
        if code == firsts.len() {
            firsts.push(row as i64);
        }
        codes.push(code as i32);
    }
    Some((codes, firsts))
}

/// Words up to this length are copied as one block; the next word overwrites the excess.
const SHORT: usize = 16;

/// The texts of codes, one after the other; none if a code has no word, the ends do not fit, or the text is too long.
pub fn decode(codes: &[i32], ends: &[i32], text: &[u8]) -> Option<(Vec<i32>, Vec<u8>)> {
    let words: Vec<&[u8]> = ends
        .windows(2)
        .map(|two| cell(two, text))
        .collect::<Option<_>>()?;
    let pieces: Vec<[u8; SHORT]> = words.iter().map(|word| piece(word)).collect();
    let mut whole = Vec::with_capacity(codes.len() + 1);
    let mut size = 0i32;
    whole.push(0);
    for &code in codes {
        let word = words.get(usize::try_from(code).ok()?)?;
        size = size.checked_add(i32::try_from(word.len()).ok()?)?;
        whole.push(size);
    }
    let mut out = vec![0; size as usize + SHORT];
    for (&code, &start) in codes.iter().zip(&whole) {
        let (word, start) = (words[code as usize], start as usize);
        if word.len() <= SHORT {
            out[start..start + SHORT].copy_from_slice(&pieces[code as usize]);
        } else {
            out[start..start + word.len()].copy_from_slice(word);
        }
    }
    out.truncate(size as usize);
    Some((whole, out))
}

fn piece(word: &[u8]) -> [u8; SHORT] {
    let mut piece = [0; SHORT];
    let size = word.len().min(SHORT);
    piece[..size].copy_from_slice(&word[..size]);
    piece
}

fn cell<'a>(bounds: &[i32], text: &'a [u8]) -> Option<&'a [u8]> {
    text.get(usize::try_from(bounds[0]).ok()?..usize::try_from(bounds[1]).ok()?)
}

/// Words with their hashes, and an open-addressing table over them.
struct Words<'a> {
    keys: (u64, u64),
    words: Vec<(u64, &'a [u8])>,
    /// One more than the number of the word in the slot; 0 if it is free.
    slots: Vec<u32>,
}

impl<'a> Words<'a> {
    fn new() -> Self {
        let source = RandomState::new();
        Words {
            keys: (source.hash_one(1), source.hash_one(2)),
            words: Vec::new(),
            slots: vec![0; 256],
        }
    }

    /// The number of a word; a new one if it is unknown.
    #[inline]
    fn code(&mut self, word: &'a [u8]) -> usize {
        let hash = hash(self.keys, word);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => break,
                slot => {
                    let (other, known) = self.words[slot as usize - 1];
                    if other == hash && known == word {
                        return slot as usize - 1;
                    }
                }
            }
            at = (at + 1) & mask;
        }
        self.words.push((hash, word));
        self.slots[at] = self.words.len() as u32;
        if self.words.len() * 2 > self.slots.len() {
            self.grow();
        }
        self.words.len() - 1
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 4 - 1;
        let mut slots = vec![0; mask + 1];
        for (number, &(hash, _)) in (1..).zip(&self.words) {
            let mut at = hash as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = number;
        }
        self.slots = slots;
    }
}

/// Keyed per process, so that nobody can construct words that collide.
#[inline]
fn hash(keys: (u64, u64), word: &[u8]) -> u64 {
    let mut sum = keys.0 ^ word.len() as u64;
    let mut rest = word;
    while rest.len() > 16 {
        sum = fold(sum ^ eight(rest), keys.1 ^ eight(&rest[8..]));
        rest = &rest[16..];
    }
    let (first, last) = match rest.len() {
        8.. => (eight(rest), eight(&rest[rest.len() - 8..])),
        4.. => (four(rest), four(&rest[rest.len() - 4..])),
        0 => (0, 0),
        size => (
            u64::from(rest[0]) << 8 | u64::from(rest[size / 2]),
            u64::from(rest[size - 1]),
        ),
    };
    fold(sum ^ first, keys.1 ^ last)
}

/// Both halves of a product depend on all bits of both factors.
#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let wide = u128::from(left) * u128::from(right);
    wide as u64 ^ (wide >> 64) as u64
}

#[inline]
fn eight(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

#[inline]
fn four(bytes: &[u8]) -> u64 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode_cells(cells: &[&str]) -> (Vec<i32>, Vec<i64>) {
        let mut ends = vec![0];
        for cell in cells {
            ends.push(ends[ends.len() - 1] + cell.len() as i32);
        }
        encode(&ends, cells.concat().as_bytes()).expect("ends that fit")
    }

    #[test]
    fn equal_texts_have_equal_codes() {
        let (codes, firsts) = encode_cells(&["b", "", "a", "b", "", "ab"]);
        assert_eq!(codes, [0, 1, 2, 0, 1, 3]);
        assert_eq!(firsts, [0, 1, 2, 5]);
    }

    #[test]
    fn texts_of_all_lengths_have_different_codes() {
        let base = "x".repeat(40);
        let mut cells: Vec<String> = (0..=40).map(|size| base[..size].to_owned()).collect();
        for at in 0..40 {
            let mut other = base.clone().into_bytes();
            other[at] = b'y';
            cells.push(String::from_utf8(other).expect("plain letters"));
        }
        cells.extend((0..5_000).map(|number| number.to_string()));
        let twice: Vec<&str> = cells.iter().chain(&cells).map(String::as_str).collect();
        let (codes, firsts) = encode_cells(&twice);
        let expected: Vec<i32> = (0..cells.len() as i32).collect();
        assert_eq!(codes[..cells.len()], expected);
        assert_eq!(codes[cells.len()..], expected);
        assert_eq!(firsts.len(), cells.len());
    }

    #[test]
    fn codes_are_decoded_to_their_words() {
        let long = "a word of more than sixteen letters";
        let text = format!("ab{long}cde");
        let ends = [0, 2, 2, 2 + long.len() as i32, text.len() as i32];
        let (whole, out) = decode(&[3, 0, 2, 1, 0], &ends, text.as_bytes()).expect("words");
        assert_eq!(out, format!("cdeab{long}ab").as_bytes());
        let size = long.len() as i32;
        assert_eq!(whole, [0, 3, 5, 5 + size, 5 + size, 7 + size]);
        assert!(decode(&[4], &ends, text.as_bytes()).is_none());
        assert!(decode(&[-1], &ends, text.as_bytes()).is_none());
    }

    #[test]
    fn invalid_ends_are_rejected() {
        assert!(encode(&[0, 3], b"ab").is_none());
        assert!(encode(&[2, 1], b"ab").is_none());
        assert!(encode(&[-1, 1], b"ab").is_none());
        assert_eq!(encode(&[], b""), Some((vec![], vec![])));
    }
}
