//! A bucket: the records whose previous groups had the same update set signature.

use std::collections::HashMap;

use super::knowledge::Knowledge;
use super::matching::others_represented;

/// A place in a group: a record of the table, or a counterfeit (row -1) that borrows its place from `donor`.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub row: i32,
    pub value: u32,
    pub donor: u32,
}

/// Records that may share groups, and the entries (candidate update sets) every such group must fill.
pub struct Bucket {
    /// Set ids, sorted; one per place of a group.
    pub entries: Vec<u32>,
    /// Rows of the table in this bucket.
    pub rows: Vec<u32>,
    allowed: HashMap<(u32, u32), bool>,
}

impl Bucket {
    pub fn new(entries: Vec<u32>) -> Self {
        Self {
            entries,
            rows: Vec::new(),
            allowed: HashMap::new(),
        }
    }

    /// Whether a value may take an entry without leaving the others unable to differ from it.
    pub fn allows(&mut self, knowledge: &Knowledge, entry: usize, value: u32) -> bool {
        let id = self.entries[entry];
        if !knowledge.covers(id, value) {
            return false;
        }
        let entries = &self.entries;
        *self
            .allowed
            .entry((id, value))
            .or_insert_with(|| others_represented(knowledge, entries, entry, value))
    }

    /// Whether some entry takes the value.
    pub fn takes(&mut self, knowledge: &Knowledge, value: u32) -> bool {
        (0..self.entries.len()).any(|e| self.allows(knowledge, e, value))
    }
}
