//! Keyed 64-bit hashes of records: equal cells give equal hashes, and nobody without the key can tell more.

use std::collections::HashMap;

use super::column::{Cell, Column};
use super::draw::derive;
use super::sip::Sip;

/// A cell is the same whatever type its column came with, hence whatever its neighbours are: 5, 5.0 and "5" are one.
fn cell(sip: &Sip, cell: &Cell) -> u64 {
    match *cell {
        Cell::Null => 0x6e75_6c6c,
        Cell::Text(bytes) => sip.bytes(bytes),
        Cell::Int(x) => sip.bytes(x.to_string().as_bytes()),
        Cell::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => {
            sip.bytes((x as i64).to_string().as_bytes())
        }
        Cell::Float(x) => sip.bytes(format!("{x:?}").as_bytes()),
        Cell::Bool(x) => sip.bytes(if x { b"true" } else { b"false" }),
    }
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
    codes: HashMap<Vec<u8>, i32>,
    missing: Option<i32>,
    known: i32,
}

/// Hashes of quasi-identifiers, hashes of persons, rows without a person, and codes, unless a value is not known.
pub struct Hashes {
    pub qis: Vec<u64>,
    pub persons: Option<Vec<u64>>,
    pub missing: usize,
    pub codes: Option<Vec<i32>>,
}

impl Hasher {
    pub fn new(key: [u8; 32]) -> Self {
        Hasher {
            quasi: Sip::new(&derive(key, 16)),
            person: Sip::new(&derive(key, 17)),
            codes: HashMap::new(),
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
        let (persons, missing) = person.map(|column| self.persons(column, rows)).unzip();
        Hashes {
            qis: (0..rows).map(|r| record(&self.quasi, quasi, r)).collect(),
            persons,
            missing: missing.unwrap_or(0),
            codes: (0..rows).map(|r| self.code(&sensitive.cell(r))).collect(),
        }
    }

    fn persons(&self, column: &Column, rows: usize) -> (Vec<u64>, usize) {
        let mut missing = 0;
        let hashes = (0..rows).map(|row| {
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
