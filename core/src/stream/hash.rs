//! Keyed 64-bit hashes of records: equal cells give equal hashes, and nobody without the key can tell more.

use std::borrow::Cow;
use std::collections::HashMap;

use super::column::{Cell, Column};
use super::draw::derive;
use super::fast_hash::FastHash;
use super::sip::Sip;

/// A cell is the same whatever type its column came with, hence whatever its neighbours are: 5, 5.0 and "5" are one.
fn cell(sip: &Sip, cell: &Cell) -> u64 {
    match cell {
        Cell::Null => 0x6e75_6c6c,
        other => sip.bytes(&text_of(other)),
    }
}

/// The text of a cell as the engines know it.
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
            // Multiplying keeps the columns apart; the cells' hashes are already keyed.
            (sum ^ cell(sip, &column.cell(row)))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
        }),
    }
}

/// Hashes the records of a stream under keys that are derived once, and knows the codes of its sensitive values.
pub struct Hasher {
    quasi: Sip,
    person: Sip,
    codes: HashMap<Vec<u8>, i32, FastHash>,
    missing: Option<i32>,
    known: i32,
}

/// Hashes of quasi-identifiers and of persons, rows without one, and codes, unless a value is not known.
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

    /// Takes in further values; each gets the next code.
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

    /// Hashes of a column of persons, and how many cells name nobody.
    pub fn persons(&self, column: &Column) -> (Vec<u64>, usize) {
        let mut missing = 0;
        let hashes = (0..column.len()).map(|row| {
            let own = column.cell(row);
            missing += usize::from(matches!(own, Cell::Null));
            cell(&self.person, &own)
        });
        (hashes.collect(), missing)
    }

    /// Values are text here; whoever sends numbers has them turned into text first.
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
    fn equal_cells_have_equal_hashes_and_others_do_not() {
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
    fn columns_do_not_change_places_and_keys_matter() {
        let pair = |a, b| [Sample::ints(&[a]), Sample::ints(&[b])];
        let hasher = Hasher::new([1; 32]);
        assert_ne!(read(&hasher, &pair(1, 2)), read(&hasher, &pair(2, 1)));
        assert_ne!(
            read(&hasher, &pair(1, 2)),
            read(&Hasher::new([2; 32]), &pair(1, 2))
        );
    }

    #[test]
    fn whole_numbers_are_the_same_in_both_types() {
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
