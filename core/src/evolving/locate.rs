//! Three methods to find the class of a record: the exact map, the scan of the paper, the scan over cuckoo filters.

use std::collections::HashMap;

use super::classes::Table;
use super::cuckoo::{self, KeyHash};

/// A live row that is neither withheld nor found in any class: the table and its locator disagree.
#[derive(Debug, PartialEq, Eq)]
pub struct NotFound;

pub enum Locator {
    Index,
    Scan(Runs),
    Filters(Filters),
}

/// The records of all classes, a run of equal length per class, so that a scan is sequential; 0 is an empty place.
/// Records that do not fit the run of their class are in `rest`.
pub struct Runs {
    tuples: Vec<u64>,
    stride: usize,
    rest: Vec<(u64, u32)>,
}

impl Runs {
    pub fn new(l: usize) -> Self {
        Runs {
            tuples: Vec::new(),
            stride: l + l / 4 + 1,
            rest: Vec::new(),
        }
    }

    /// The first class with an equal hash that `check` accepts: different records may have equal hashes.
    fn find(&self, tuple: u64, check: impl Fn(u32) -> bool) -> Option<u32> {
        let runs = self.tuples.chunks_exact(self.stride).enumerate();
        // Without an early exit inside a run the comparison is vectorized.
        let in_runs = runs
            .filter(|(_, run)| run.iter().fold(false, |any, &t| any | (t == tuple)))
            .map(|(class, _)| class as u32);
        let in_rest = self.rest.iter().filter(|e| e.0 == tuple).map(|e| e.1);
        in_runs.chain(in_rest).find(|&class| check(class))
    }

    fn run(&mut self, class: u32) -> &mut [u64] {
        let at = class as usize * self.stride;
        if self.tuples.len() < at + self.stride {
            self.tuples.resize(at + self.stride, 0);
        }
        &mut self.tuples[at..][..self.stride]
    }

    fn add(&mut self, class: u32, tuple: u64) {
        match self.run(class).iter_mut().find(|t| **t == 0) {
            Some(place) => *place = tuple,
            None => self.rest.push((tuple, class)),
        }
    }

    /// Removes one entry: another record of the class may have an equal hash.
    fn remove(&mut self, class: u32, tuple: u64) {
        if let Some(place) = self.run(class).iter_mut().find(|t| **t == tuple) {
            *place = 0;
        } else if let Some(at) = self.rest.iter().position(|&e| e == (tuple, class)) {
            self.rest.swap_remove(at);
        }
    }

    fn clear(&mut self, class: u32) {
        self.run(class).fill(0);
        self.rest.retain(|e| e.1 != class);
    }
}

/// One cuckoo filter of records and one of values per class.
///
/// A key has the same two buckets in every record filter of the usual size, so these filters are stored bucket by
/// bucket: a query of all classes reads two contiguous runs. The few classes that outgrow the usual size have filters
/// of their own.
pub struct Filters {
    /// `records[b][c]` is bucket b of class c.
    records: Vec<Vec<u64>>,
    values: Vec<u64>,
    /// Record and value filters of the classes that outgrew the usual size.
    large: HashMap<u32, [Vec<u64>; 2]>,
}

/// Classes that are checked together; a block without a hit costs no branch.
const BLOCK: usize = 64;

impl Filters {
    pub fn new(l: usize) -> Self {
        let stride = cuckoo::buckets_for(l + l / 4 + 1);
        Filters {
            records: vec![Vec::new(); stride],
            values: Vec::new(),
            large: HashMap::new(),
        }
    }

    fn stride(&self) -> usize {
        self.records.len()
    }

    /// The first class whose record filter says "maybe" and that `check` accepts.
    fn find(&self, key: KeyHash, check: impl Fn(u32) -> bool) -> Option<u32> {
        let (a, b) = cuckoo::pair(key, self.stride());
        let blocks = self.records[a]
            .chunks(BLOCK)
            .zip(self.records[b].chunks(BLOCK));
        for (number, (left, right)) in blocks.enumerate() {
            let any = left
                .iter()
                .zip(right)
                .fold(0, |any, (&x, &y)| any | key.hits(x) | key.hits(y));
            if any == 0 {
                continue;
            }
            for (i, (&x, &y)) in left.iter().zip(right).enumerate() {
                let class = (number * BLOCK + i) as u32;
                if key.hits(x) | key.hits(y) != 0 && check(class) {
                    return Some(class);
                }
            }
        }
        let mut large = self
            .large
            .iter()
            .filter(|(_, f)| cuckoo::contains(&f[0], key));
        large
            .find(|&(&class, _)| check(class))
            .map(|(&class, _)| class)
    }

    fn values(&self, class: u32) -> &[u64] {
        match self.large.get(&class) {
            Some(filters) => &filters[1],
            None => &self.values[class as usize * self.stride()..][..self.stride()],
        }
    }

    fn reserve(&mut self, class: u32) {
        let count = class as usize + 1;
        if self.records[0].len() < count {
            self.records
                .iter_mut()
                .for_each(|column| column.resize(count, 0));
            self.values.resize(count * self.stride(), 0);
        }
    }

    /// Changes both filters of a class; returns the result of `work`.
    fn change<T>(&mut self, class: u32, work: impl FnOnce(&mut [u64], &mut [u64]) -> T) -> T {
        self.reserve(class);
        if let Some([records, values]) = self.large.get_mut(&class) {
            return work(records, values);
        }
        let (at, stride) = (class as usize, self.stride());
        let mut records: Vec<u64> = self.records.iter().map(|column| column[at]).collect();
        let done = work(&mut records, &mut self.values[at * stride..][..stride]);
        for (column, bucket) in self.records.iter_mut().zip(records) {
            column[at] = bucket;
        }
        done
    }

    fn clear(&mut self, class: u32) {
        self.large.remove(&class);
        self.change(class, |records, values| {
            records.fill(0);
            values.fill(0);
        });
    }

    /// Rebuilds the filters from the members with room to grow, doubled until everything fits.
    fn enlarge(&mut self, table: &Table, class: u32) {
        self.clear(class);
        let entry = &table.classes[class as usize];
        let mut buckets = cuckoo::buckets_for(entry.rows.len() + 1).max(2 * self.stride());
        loop {
            let (mut records, mut values) = (vec![0; buckets], vec![0; buckets]);
            let fits = entry
                .tuples
                .iter()
                .all(|&t| cuckoo::insert(&mut records, KeyHash::new(t)))
                && entry
                    .values
                    .iter()
                    .all(|&(v, _)| cuckoo::insert(&mut values, KeyHash::new(v as u64)));
            if fits {
                self.large.insert(class, [records, values]);
                return;
            }
            buckets *= 2;
        }
    }

    fn add(&mut self, table: &Table, class: u32, row: u32) {
        let (tuple, value) = (table.tuple[row as usize], table.value[row as usize]);
        let first = table.classes[class as usize]
            .values
            .iter()
            .any(|&(v, n)| v == value && n == 1);
        let fits = self.change(class, |records, values| {
            cuckoo::insert(records, KeyHash::new(tuple))
                && (!first || cuckoo::insert(values, KeyHash::new(value as u64)))
        });
        if !fits {
            self.enlarge(table, class);
        }
    }

    fn remove(&mut self, table: &Table, class: u32, row: u32) {
        let (tuple, value) = (table.tuple[row as usize], table.value[row as usize]);
        let last = !table.classes[class as usize].holds(value);
        self.change(class, |records, values| {
            cuckoo::delete(records, KeyHash::new(tuple));
            if last {
                cuckoo::delete(values, KeyHash::new(value as u64));
            }
        });
    }
}

impl Locator {
    /// The class of a live row; none for a withheld row.
    pub fn host(&self, table: &Table, row: u32) -> Result<Option<u32>, NotFound> {
        if table.withheld.contains(&row) {
            return Ok(None);
        }
        let tuple = table.tuple[row as usize];
        // A "maybe" is checked against the members: a false positive only costs time.
        let check = |class| member(table, class, row);
        let class = match self {
            Locator::Index => u32::try_from(table.class_of[row as usize]).ok(),
            Locator::Scan(runs) => runs.find(tuple, check),
            Locator::Filters(filters) => filters.find(KeyHash::new(tuple), check),
        };
        class.map(Some).ok_or(NotFound)
    }

    /// The classes of rows, found before any of them is removed.
    pub fn hosts(&self, table: &Table, rows: &[u32]) -> Result<Vec<(u32, Option<u32>)>, NotFound> {
        rows.iter()
            .map(|&row| Ok((row, self.host(table, row)?)))
            .collect()
    }

    /// Whether the class lacks a value; a filter's "no" is certain, its "maybe" is checked.
    pub fn lacks(&self, table: &Table, class: u32, value: i32) -> bool {
        let surely = match self {
            Locator::Filters(filters) => {
                !cuckoo::contains(filters.values(class), KeyHash::new(value as u64))
            }
            _ => false,
        };
        surely || !table.classes[class as usize].holds(value)
    }

    pub fn add(&mut self, table: &Table, class: u32, row: u32) {
        match self {
            Locator::Index => {}
            Locator::Scan(runs) => runs.add(class, table.tuple[row as usize]),
            Locator::Filters(filters) => filters.add(table, class, row),
        }
    }

    pub fn remove(&mut self, table: &Table, class: u32, row: u32) {
        match self {
            Locator::Index => {}
            Locator::Scan(runs) => runs.remove(class, table.tuple[row as usize]),
            Locator::Filters(filters) => filters.remove(table, class, row),
        }
    }

    pub fn clear(&mut self, class: u32) {
        match self {
            Locator::Index => {}
            Locator::Scan(runs) => runs.clear(class),
            Locator::Filters(filters) => filters.clear(class),
        }
    }
}

fn member(table: &Table, class: u32, row: u32) -> bool {
    let tuple = table.tuple[row as usize];
    let entry = &table.classes[class as usize];
    let mut pairs = entry.tuples.iter().zip(&entry.rows);
    pairs.any(|(&t, &r)| t == tuple && r == row)
}

#[cfg(test)]
mod tests {
    use super::super::enc::Enc;
    use super::*;

    fn locators(l: usize) -> [Locator; 3] {
        [
            Locator::Index,
            Locator::Scan(Runs::new(l)),
            Locator::Filters(Filters::new(l)),
        ]
    }

    /// Rows in groups of four with the same hash.
    fn table(locator: Locator, rows: u32) -> (Table, Enc) {
        let mut table = Table::new(3);
        let mut enc = Enc {
            locator,
            probes: usize::MAX,
        };
        for row in 0..rows {
            table.admit(row, (row / 4 % 5) as i32, 1 + u64::from(row / 4));
        }
        enc.insert(&mut table, &(0..rows).collect::<Vec<_>>(), [1; 32]);
        (table, enc)
    }

    #[test]
    fn records_with_equal_hashes_are_distinguished() {
        for locator in locators(3) {
            let (mut table, mut enc) = table(locator, 200);
            for row in (0..200).step_by(3) {
                for other in (0..200).filter(|&r| table.live(r)) {
                    let host = enc.locator.host(&table, other).unwrap();
                    assert_eq!(host.map(|c| c as i32), Some(table.class_of[other as usize]));
                }
                enc.delete(&mut table, &[row]).unwrap();
            }
            let counted: usize = table.classes.iter().map(|c| c.rows.len()).sum();
            assert_eq!(counted, 200 - 67);
            let filled = table.classes.iter().filter(|c| !c.rows.is_empty());
            assert!(filled.clone().all(|c| c.values.len() >= 3));
        }
    }

    #[test]
    fn equal_entries_are_removed_one_at_a_time() {
        let mut runs = Runs::new(1);
        (0..5).for_each(|_| runs.add(0, 9));
        for left in (0..5).rev() {
            runs.remove(0, 9);
            let withheld = runs.tuples.iter().filter(|&&t| t == 9).count() + runs.rest.len();
            assert_eq!(withheld, left);
        }
    }

    #[test]
    fn a_row_in_no_class_is_an_error_and_changes_nothing() {
        for locator in [
            Locator::Scan(Runs::new(3)),
            Locator::Filters(Filters::new(3)),
        ] {
            let (mut table, mut enc) = table(locator, 40);
            enc.locator.clear(table.class_of[7] as u32);
            let before = table.class_of.clone();
            assert_eq!(enc.delete(&mut table, &[0, 7]).err(), Some(NotFound));
            assert_eq!(table.class_of, before);
        }
    }
}
