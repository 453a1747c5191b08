//! A bucket: the entries that each of its groups must fill, and its records.

use std::collections::HashMap;

use super::knowledge::Knowledge;
use super::matching::can_represent_others;

/// A place in a group: a record of the table, or a counterfeit (row -1) that borrows its position from `donor`.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub row: i32,
    pub value: u32,
    pub donor: u32,
}

/// Records that may share groups, and the entries (candidate update sets) that each group must fill.
pub struct Bucket {
    /// Set ids, sorted; one per place of a group.
    pub entries: Vec<u32>,
    /// Rows of the table in this bucket.
    pub rows: Vec<u32>,
    allowed: HashMap<u32, Vec<usize>>,
}

impl Bucket {
    /// An empty bucket; `entries` are set ids.
    pub fn new(mut entries: Vec<u32>, knowledge: &Knowledge) -> Self {
        entries.sort_unstable();
        let mut allowed: HashMap<u32, Vec<usize>> = HashMap::new();
        for (entry, &id) in entries.iter().enumerate() {
            for &value in &knowledge.sets[id as usize] {
                // Entries with the same set allow the same values.
                let same_set = entry > 0 && entries[entry - 1] == id;
                let fits = if same_set {
                    allowed
                        .get(&value)
                        .is_some_and(|e| e.contains(&(entry - 1)))
                } else {
                    can_represent_others(knowledge, &entries, entry, value)
                };
                if fits {
                    allowed.entry(value).or_default().push(entry);
                }
            }
        }
        Self {
            entries,
            rows: Vec::new(),
            allowed,
        }
    }

    /// The entries that a value may take while the other entries can still have different values.
    pub fn places(&self, value: u32) -> &[usize] {
        self.allowed.get(&value).map_or(&[], Vec::as_slice)
    }

    /// The values that may occur in the bucket, sorted.
    pub fn domain(&self) -> Vec<u32> {
        let mut values: Vec<u32> = self.allowed.keys().copied().collect();
        values.sort_unstable();
        values
    }
}
