//! Keyed 64-bit hashes of records: equal cells have equal hashes, which disclose nothing else without the key.

use std::borrow::Cow;
use std::collections::HashMap;

use super::column::{Cell, Column};
use super::draw::derive;
use super::fast_hash::FastHash;
use super::sip::Sip;

/// The hash of a cell does not depend on the type of its column: 5, 5.0 and "5" are equal.
fn cell(sip: &Sip, cell: &Cell) -> u64 {
    match cell {
        Cell::Null => 0x6e75_6c6c,
        other => sip.bytes(&text_of(other)),
    }
}

/// The text of a cell as the engines use it.
pub fn text_of<'a>(cell: &Cell<'a>) -> Cow<'a, [u8]> {
    let text = match *cell {
        Cell::Null => return Cow::Borrowed(b""),
        Cell::Text(bytes) => return Cow::Borrowed(bytes),
        Cell::Bool(x) => return Cow::Borrowed(if x { b"true" } else { b"false" }),
        Cell::Int(x) => x.to_string(),
        Cell::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => (x as i64).to_string(),
        Cell::Float(x) => format!("{x:?}"),
    };
    Cow::Owned(text.into_bytes())
}

fn record(sip: &Sip, columns: &[Column], row: usize) -> u64 {
    match columns {
        [only] => cell(sip, &only.cell(row)),
        _ => columns.iter().fold(0, |sum, column| {
            // Multiplying separates the columns; the hashes of the cells are already keyed.
            (sum ^ cell(sip, &column.cell(row)))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
        }),
    }
}

/// Hashes the records of a stream under keys that are derived once, and maps its sensitive values to codes.
pub struct Hasher {
    quasi: Sip,
    person: Sip,
    codes: HashMap<Vec<u8>, i32, FastHash>,
    missing: Option<i32>,
    known: i32,
}

/// Hashes of quasi-identifiers and persons, the number of records without a person, and codes unless a value is
/// unknown.
pub struct Hashes {
    pub quasi: Vec<u64>,
    pub persons: Option<Vec<u64>>,
    pub missing: usize,
    pub codes: Option<Vec<i32>>,
}

impl Hasher {
    pub fn new(key: [u8; 32]) -> Self {
        Hasher {
            quasi: Sip::new(&derive(key, 16)),
            person: Sip::new(&derive(key, 17)),
            codes: HashMap::default(),
            missing: None,
            known: 0,
        }
    }

    /// Adds values; each gets the next code.
    pub fn learn(&mut self, labels: Vec<Option<String>>) {
        for label in labels {
            match label {
                Some(text) => {
                    self.codes.insert(text.into_bytes(), self.known);
                }
                None => self.missing = Some(self.known),
            }
            self.known += 1;
        }
    }

    /// Hashes and codes of the rows of equally long columns.
    pub fn read(&self, quasi: &[Column], person: Option<&Column>, sensitive: &Column) -> Hashes {
        let rows = sensitive.len();
        let (persons, missing) = person.map(|column| self.persons(column)).unzip();
        Hashes {
            quasi: (0..rows).map(|r| record(&self.quasi, quasi, r)).collect(),
            persons,
            missing: missing.unwrap_or(0),
            codes: (0..rows).map(|r| self.code(&sensitive.cell(r))).collect(),
        }
    }

    /// Hashes of a column of persons, and the number of missing cells.
    pub fn persons(&self, column: &Column) -> (Vec<u64>, usize) {
        let mut missing = 0;
        let hashes = (0..column.len()).map(|row| {
            let own = column.cell(row);
            missing += usize::from(matches!(own, Cell::Null));
            cell(&self.person, &own)
        });
        (hashes.collect(), missing)
    }

    /// Values are text here; the caller converts numbers to text.
    fn code(&self, own: &Cell) -> Option<i32> {
        match own {
            Cell::Null => self.missing,
            Cell::Text(bytes) => self.codes.get(*bytes).copied(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    fn read(hasher: &Hasher, quasi: &[Sample]) -> Vec<u64> {
        let columns: Vec<Column> = quasi.iter().map(|s| s.column().unwrap()).collect();
        hasher.read(&columns, None, &columns[0]).quasi
    }

    #[test]
    fn only_equal_cells_have_equal_hashes() {
        let hasher = Hasher::new([1; 32]);
        let words = Sample::text(&[Some("a"), Some("b"), Some("a"), None, Some("")]);
        let hashes = read(&hasher, &[words]);
        assert_eq!(hashes[0], hashes[2]);
        let mut different = vec![hashes[0], hashes[1], hashes[3], hashes[4]];
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 4);
    }

    #[test]
    fn column_order_and_key_change_the_hash() {
        let pair = |a, b| [Sample::ints(&[a]), Sample::ints(&[b])];
        let hasher = Hasher::new([1; 32]);
        assert_ne!(read(&hasher, &pair(1, 2)), read(&hasher, &pair(2, 1)));
        assert_ne!(
            read(&hasher, &pair(1, 2)),
            read(&Hasher::new([2; 32]), &pair(1, 2))
        );
    }

    #[test]
    fn integers_and_whole_floats_have_equal_hashes() {
        let sip = Sip::new(&[1; 32]);
        assert_eq!(cell(&sip, &Cell::Int(1)), cell(&sip, &Cell::Float(1.0)));
        assert_eq!(cell(&sip, &Cell::Int(0)), cell(&sip, &Cell::Float(-0.0)));
        assert_ne!(cell(&sip, &Cell::Int(1)), cell(&sip, &Cell::Float(1.5)));
        assert_ne!(cell(&sip, &Cell::Int(1)), cell(&sip, &Cell::Bool(true)));
    }

    #[test]
    fn values_have_codes_once_they_are_learned() {
        let mut hasher = Hasher::new([1; 32]);
        let ills = Sample::text(&[Some("x"), None, Some("y")]);
        let column = ills.column().unwrap();
        let codes = |hasher: &Hasher| hasher.read(&[], Some(&column), &column);
        assert_eq!(codes(&hasher).codes, None);
        hasher.learn(vec![Some("y".into()), None, Some("x".into())]);
        assert_eq!(codes(&hasher).codes, Some(vec![2, 1, 0]));
        assert_eq!(codes(&hasher).missing, 1);
    }
}
