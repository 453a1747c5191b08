//! A table under one method: rows and codes in, the result of each change out.

use super::classes::{NONE, Table, Tally};
use super::cuckoo::mix;
use super::eac::Eac;
use super::enc::Enc;
use super::locate::{Filters, Locator, NotFound, Runs};
use super::red;

/// Enough to find a class that lacks the value unless nearly all have it, and few enough to keep a change cheap.
const PROBES: usize = 64;

enum Method {
    Red,
    Eac(Eac),
    Enc(Enc),
}

/// Rows whose class changed, their classes (-1: withheld), and counts.
pub struct Change {
    pub rows: Vec<u32>,
    pub classes: Vec<i32>,
    pub touched: usize,
    pub dissolved: usize,
    pub relocated: usize,
    pub withheld: usize,
}

/// Equivalence classes under one method.
pub struct Evolving {
    table: Table,
    method: Method,
    /// Number of quasi-identifiers.
    pub width: usize,
}

/// The identity of a record in the scans. The row is part of it, so that equal tuples differ in the filters. The row is
/// mixed before the first code, or near rows with near codes would have equal hashes. 0 is an empty place.
pub fn hash(row: u32, codes: &[i32], value: i32) -> u64 {
    let spread = |word: u32| u64::from(word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let words = codes.iter().chain([&value]);
    words
        .fold(mix(spread(row)), |h, &word| mix(h ^ spread(word as u32)))
        .max(1)
}

impl Evolving {
    /// A table under the method of this name; `scale` has one number per quasi-identifier (see `eac`).
    pub fn new(method: &str, l: usize, scale: Vec<f64>) -> Option<Self> {
        let width = scale.len();
        let enc = |locator, probes| Method::Enc(Enc { locator, probes });
        let method = match method {
            "red" => Method::Red,
            "eac" => Method::Eac(Eac::new(scale)),
            "enc" => enc(Locator::Scan(Runs::new(l)), usize::MAX),
            "encc" => enc(Locator::Filters(Filters::new(l)), usize::MAX),
            "indexed" => enc(Locator::Index, PROBES),
            _ => return None,
        };
        Some(Evolving {
            table: Table::new(l),
            method,
            width,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.table.value.is_empty()
    }

    pub fn live(&self, row: u32) -> bool {
        self.table.live(row)
    }

    /// The class of a live row, -1 if it is withheld.
    pub fn class_of(&self, row: u32) -> i32 {
        self.table.class_of[row as usize]
    }

    /// Adds rows as one batch.
    pub fn insert(&mut self, rows: &[u32], values: &[i32], quasi: &[i32], key: [u8; 32]) -> Change {
        self.start();
        self.admit(rows, values, quasi);
        match &mut self.method {
            Method::Red => red::redo(&mut self.table, key),
            Method::Eac(eac) => eac.insert(&mut self.table, rows, key),
            Method::Enc(enc) => enc.insert(&mut self.table, rows, key),
        }
        self.report()
    }

    /// Removes rows, as one batch or (`each`) one after the other.
    pub fn delete(&mut self, rows: &[u32], key: [u8; 32], each: bool) -> Result<Change, NotFound> {
        self.start();
        let step = if each { 1 } else { rows.len().max(1) };
        rows.chunks(step)
            .try_for_each(|batch| self.take(batch, key))?;
        Ok(self.report())
    }

    fn take(&mut self, rows: &[u32], key: [u8; 32]) -> Result<(), NotFound> {
        match &mut self.method {
            Method::Red => {
                red::delete(&mut self.table, rows)?;
                red::redo(&mut self.table, key);
                Ok(())
            }
            Method::Eac(eac) => eac.delete(&mut self.table, rows),
            Method::Enc(enc) => enc.delete(&mut self.table, rows),
        }
    }

    /// Restores existing classes: one class number per row, -1 for withheld.
    pub fn load(&mut self, rows: &[u32], values: &[i32], quasi: &[i32], classes: &[i32]) {
        self.admit(rows, values, quasi);
        let count = classes.iter().map(|&c| c + 1).max().unwrap_or(0);
        self.table.reserve(count as usize, classes);
        for (&row, &class) in rows.iter().zip(classes) {
            if class == NONE {
                self.table.withhold(row);
                continue;
            }
            self.table.add(class as u32, row);
            if let Method::Enc(enc) = &mut self.method {
                enc.locator.add(&self.table, class as u32, row);
            }
        }
        if let Method::Eac(eac) = &mut self.method {
            eac.reload(&self.table);
        }
        self.start();
    }

    fn admit(&mut self, rows: &[u32], values: &[i32], quasi: &[i32]) {
        for (i, (&row, &value)) in rows.iter().zip(values).enumerate() {
            let codes = &quasi[i * self.width..(i + 1) * self.width];
            self.table.admit(row, value, hash(row, codes, value));
            if let Method::Eac(eac) = &mut self.method {
                eac.admit(row, codes);
            }
        }
    }

    fn start(&mut self) {
        self.table.moved.clear();
        self.table.seen.clear();
        self.table.tally = Tally::default();
    }

    fn report(&mut self) -> Change {
        let table = &mut self.table;
        table.moved.sort_unstable();
        table.moved.dedup();
        table.seen.sort_unstable();
        table.seen.dedup();
        let mut rows = table.moved.clone();
        rows.retain(|&r| table.live(r));
        Change {
            classes: rows.iter().map(|&r| table.class_of[r as usize]).collect(),
            rows,
            touched: table.seen.len(),
            dissolved: table.tally.dissolved,
            relocated: table.tally.relocated,
            withheld: table.withheld.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn near_rows_with_near_codes_have_different_hashes() {
        let mut seen = HashSet::new();
        for row in 0..300 {
            for code in 0..300 {
                assert!(seen.insert(hash(row, &[code], 7)), "{row} {code}");
            }
        }
    }

    #[test]
    fn every_method_keeps_l_values_in_every_class() {
        let (n, l) = (300u32, 3);
        for method in ["red", "eac", "enc", "encc", "indexed"] {
            let mut table = Evolving::new(method, l, vec![0.0]).unwrap();
            let rows: Vec<u32> = (0..n).collect();
            let values: Vec<i32> = rows.iter().map(|r| (r % 6) as i32).collect();
            let quasi: Vec<i32> = rows.iter().map(|r| (r % 50) as i32).collect();
            table.insert(&rows, &values, &quasi, [1; 32]);
            let gone: Vec<u32> = rows.iter().copied().filter(|r| r % 3 == 0).collect();
            let change = table.delete(&gone, [2; 32], false).unwrap();
            assert_eq!(change.withheld, 0);
            let mut classes = std::collections::HashMap::<i32, HashSet<i32>>::new();
            for &row in rows.iter().filter(|r| !gone.contains(r)) {
                let values = classes.entry(table.class_of(row)).or_default();
                values.insert((row % 6) as i32);
            }
            assert!(classes.values().all(|v| v.len() >= l), "{method}");
        }
    }
}
