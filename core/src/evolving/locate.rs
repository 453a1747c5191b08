//! Three ways to find the class of a record: the exact map, the scan of the paper, the scan over cuckoo filters.

use super::classes::{NONE, Table};
use super::cuckoo::{Filter, Hashed};

/// One class's pair of filters: its records, and its sensitive values.
#[derive(Clone, Default)]
pub struct Pair {
    records: Filter,
    values: Filter,
}

pub enum Locator {
    Index,
    Scan,
    Filters(Vec<Pair>),
}

impl Locator {
    pub fn host(&self, table: &Table, row: u32) -> Option<u32> {
        match self {
            Locator::Index => match table.class_of[row as usize] {
                NONE => None,
                class => Some(class as u32),
            },
            Locator::Scan => (0..table.classes.len() as u32).find(|&c| member(table, c, row)),
            Locator::Filters(pairs) => {
                let key = Hashed::new(table.tuple[row as usize]);
                // "Maybe" is checked against the members: a false positive costs time and nothing else.
                (0..pairs.len() as u32)
                    .find(|&c| pairs[c as usize].records.contains(key) && member(table, c, row))
            }
        }
    }

    /// Whether the class surely or really lacks a value; a filter's "no" is certain, its "maybe" is checked.
    pub fn lacks(&self, table: &Table, class: u32, value: i32) -> bool {
        if let Locator::Filters(pairs) = self
            && !pairs[class as usize]
                .values
                .contains(Hashed::new(value as u64))
        {
            return true;
        }
        !table.classes[class as usize].holds(value)
    }

    pub fn added(&mut self, table: &Table, class: u32, row: u32) {
        let Locator::Filters(pairs) = self else {
            return;
        };
        let at = class as usize;
        if pairs.len() <= at {
            pairs.resize(at + 1, Pair::default());
        }
        let (tuple, value) = (table.tuple[row as usize], table.value[row as usize]);
        let first = table.classes[at]
            .values
            .iter()
            .any(|&(v, n)| v == value && n == 1);
        let pair = &mut pairs[at];
        let full = pair.records.is_unset()
            || !pair.records.insert(Hashed::new(tuple))
            || (first && !pair.values.insert(Hashed::new(value as u64)));
        if full {
            *pair = rebuilt(table, at);
        }
    }

    pub fn removed(&mut self, table: &Table, class: u32, row: u32) {
        let Locator::Filters(pairs) = self else {
            return;
        };
        let (tuple, value) = (table.tuple[row as usize], table.value[row as usize]);
        let pair = &mut pairs[class as usize];
        pair.records.delete(Hashed::new(tuple));
        if !table.classes[class as usize].holds(value) {
            pair.values.delete(Hashed::new(value as u64));
        }
    }

    pub fn dissolved(&mut self, class: u32) {
        if let Locator::Filters(pairs) = self {
            pairs[class as usize] = Pair::default();
        }
    }
}

fn member(table: &Table, class: u32, row: u32) -> bool {
    let tuple = table.tuple[row as usize];
    table.classes[class as usize]
        .members
        .iter()
        .any(|m| m.tuple == tuple && m.row == row)
}

/// Filters made anew from the members, with room to grow; doubled until everything fits.
fn rebuilt(table: &Table, class: usize) -> Pair {
    let entry = &table.classes[class];
    let mut capacity = table.l.max(entry.members.len() + 1);
    loop {
        let mut pair = Pair {
            records: Filter::with_capacity(capacity),
            values: Filter::with_capacity(capacity),
        };
        let fits = entry
            .members
            .iter()
            .all(|m| pair.records.insert(Hashed::new(m.tuple)))
            && entry
                .values
                .iter()
                .all(|&(v, _)| pair.values.insert(Hashed::new(v as u64)));
        if fits {
            return pair;
        }
        capacity *= 2;
    }
}
