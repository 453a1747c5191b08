//! Three ways to find the class of a record: the exact map, the scan of the paper, the scan over cuckoo filters.

use std::collections::HashMap;

use super::classes::{NONE, Table};
use super::cuckoo::{self, Hashed};

pub enum Locator {
    Index,
    Scan(Runs),
    Filters(Filters),
}

/// The records of all classes side by side, a run of equal length per class, so that the scan is a walk through memory; 0 is an
/// empty place. What does not fit the run of its class stands in `rest`.
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

    fn find(&self, tuple: u64) -> Option<u32> {
        let runs = self.tuples.chunks_exact(self.stride);
        // Without an early exit inside a run the comparison is vectorised.
        let found = runs
            .into_iter()
            .position(|run| run.iter().fold(false, |any, &t| any | (t == tuple)));
        found
            .map(|class| class as u32)
            .or_else(|| self.rest.iter().find(|e| e.0 == tuple).map(|e| e.1))
    }

    fn run(&mut self, class: u32) -> &mut [u64] {
        let at = class as usize * self.stride;
        if self.tuples.len() < at + self.stride {
            self.tuples.resize(at + self.stride, 0);
        }
        &mut self.tuples[at..][..self.stride]
    }

    fn added(&mut self, class: u32, tuple: u64) {
        match self.run(class).iter_mut().find(|t| **t == 0) {
            Some(place) => *place = tuple,
            None => self.rest.push((tuple, class)),
        }
    }

    fn removed(&mut self, class: u32, tuple: u64) {
        match self.run(class).iter_mut().find(|t| **t == tuple) {
            Some(place) => *place = 0,
            None => self.rest.retain(|&e| e != (tuple, class)),
        }
    }

    fn clear(&mut self, class: u32) {
        self.run(class).fill(0);
        self.rest.retain(|e| e.1 != class);
    }
}

/// One cuckoo filter per class. Classes of the usual size lie side by side in one array, so that asking all of them is a walk
/// through memory; the few that outgrow it have their own.
pub struct Filters {
    records: Vec<u64>,
    values: Vec<u64>,
    /// Buckets per filter in the two arrays.
    stride: usize,
    /// Record and value filters of the classes that outgrew the arrays.
    large: HashMap<u32, [Vec<u64>; 2]>,
}

impl Filters {
    pub fn new(l: usize) -> Self {
        let stride = cuckoo::buckets_for(l + l / 4 + 1);
        Filters {
            records: Vec::new(),
            values: Vec::new(),
            stride,
            large: HashMap::new(),
        }
    }

    /// Classes whose record filter says "maybe".
    fn candidates(&self, key: Hashed) -> impl Iterator<Item = u32> {
        let usual = self.records.chunks_exact(self.stride).enumerate();
        let large = self
            .large
            .iter()
            .filter(move |(_, f)| cuckoo::contains(&f[0], key))
            .map(|(&c, _)| c);
        usual
            .filter(move |(_, f)| cuckoo::contains(f, key))
            .map(|(c, _)| c as u32)
            .chain(large)
    }

    fn values(&self, class: u32) -> &[u64] {
        match self.large.get(&class) {
            Some(filters) => &filters[1],
            None => &self.values[class as usize * self.stride..][..self.stride],
        }
    }

    fn pair(&mut self, class: u32) -> (&mut [u64], &mut [u64]) {
        let at = class as usize * self.stride;
        if self.records.len() < at + self.stride {
            self.records.resize(at + self.stride, 0);
            self.values.resize(at + self.stride, 0);
        }
        match self.large.get_mut(&class) {
            Some([records, values]) => (records, values),
            None => (
                &mut self.records[at..][..self.stride],
                &mut self.values[at..][..self.stride],
            ),
        }
    }

    fn clear(&mut self, class: u32) {
        self.large.remove(&class);
        let (records, values) = self.pair(class);
        records.fill(0);
        values.fill(0);
    }

    /// Filters made anew from the members with room to grow, doubled until everything fits.
    fn enlarge(&mut self, table: &Table, class: u32) {
        self.clear(class);
        let entry = &table.classes[class as usize];
        let mut buckets = cuckoo::buckets_for(entry.rows.len() + 1).max(2 * self.stride);
        loop {
            let (mut records, mut values) = (vec![0; buckets], vec![0; buckets]);
            let fits = entry
                .tuples
                .iter()
                .all(|&t| cuckoo::insert(&mut records, Hashed::new(t)))
                && entry
                    .values
                    .iter()
                    .all(|&(v, _)| cuckoo::insert(&mut values, Hashed::new(v as u64)));
            if fits {
                self.large.insert(class, [records, values]);
                return;
            }
            buckets *= 2;
        }
    }

    fn added(&mut self, table: &Table, class: u32, row: u32) {
        let (tuple, value) = (table.tuple[row as usize], table.value[row as usize]);
        let first = table.classes[class as usize]
            .values
            .iter()
            .any(|&(v, n)| v == value && n == 1);
        let (records, values) = self.pair(class);
        let fits = cuckoo::insert(records, Hashed::new(tuple))
            && (!first || cuckoo::insert(values, Hashed::new(value as u64)));
        if !fits {
            self.enlarge(table, class);
        }
    }

    fn removed(&mut self, table: &Table, class: u32, row: u32) {
        let (tuple, value) = (table.tuple[row as usize], table.value[row as usize]);
        let last = !table.classes[class as usize].holds(value);
        let (records, values) = self.pair(class);
        cuckoo::delete(records, Hashed::new(tuple));
        if last {
            cuckoo::delete(values, Hashed::new(value as u64));
        }
    }
}

impl Locator {
    pub fn host(&self, table: &Table, row: u32) -> Option<u32> {
        match self {
            Locator::Index => match table.class_of[row as usize] {
                NONE => None,
                class => Some(class as u32),
            },
            Locator::Scan(runs) => runs
                .find(table.tuple[row as usize])
                .filter(|&c| member(table, c, row)),
            // "Maybe" is checked against the members: a false positive costs time and nothing else.
            Locator::Filters(filters) => {
                let key = Hashed::new(table.tuple[row as usize]);
                filters.candidates(key).find(|&c| member(table, c, row))
            }
        }
    }

    /// Whether the class lacks a value; a filter's "no" is certain, its "maybe" is checked.
    pub fn lacks(&self, table: &Table, class: u32, value: i32) -> bool {
        if let Locator::Filters(filters) = self
            && !cuckoo::contains(filters.values(class), Hashed::new(value as u64))
        {
            return true;
        }
        !table.classes[class as usize].holds(value)
    }

    pub fn added(&mut self, table: &Table, class: u32, row: u32) {
        match self {
            Locator::Index => {}
            Locator::Scan(runs) => runs.added(class, table.tuple[row as usize]),
            Locator::Filters(filters) => filters.added(table, class, row),
        }
    }

    pub fn removed(&mut self, table: &Table, class: u32, row: u32) {
        match self {
            Locator::Index => {}
            Locator::Scan(runs) => runs.removed(class, table.tuple[row as usize]),
            Locator::Filters(filters) => filters.removed(table, class, row),
        }
    }

    pub fn dissolved(&mut self, class: u32) {
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
    entry
        .tuples
        .iter()
        .position(|&t| t == tuple)
        .is_some_and(|at| entry.rows[at] == row)
}
