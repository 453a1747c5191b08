//! What a record has to be under a policy, by the numbers of its columns.

use std::collections::HashSet;

use super::number::is_number;
use super::rows::Rows;

#[derive(Default)]
pub struct Rules {
    pub names: Vec<String>,
    /// Which columns go out as they came.
    pub published: Vec<bool>,
    /// Which columns go out in some form: a record without any of them is none.
    pub released: Vec<bool>,
    /// Columns that name somebody or something, and what is said where they do not.
    pub required: Vec<(usize, String)>,
    /// Columns whose cells have to be numbers.
    pub numbers: Vec<usize>,
    /// Text that stands for a missing cell.
    pub missing: HashSet<Vec<u8>>,
}

/// Why a record is set aside; names columns, never a cell.
pub type Reason = String;

impl Rules {
    /// Whether all columns that are named by number are there.
    pub fn is_consistent(&self) -> bool {
        let size = self.names.len();
        let required = self.required.iter().map(|(column, _)| column);
        self.published.len() == size
            && self.released.len() == size
            && required.chain(&self.numbers).all(|&column| column < size)
    }

    pub fn column(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|own| own.as_bytes() == name)
    }

    /// Why the record whose cells were just laid down cannot be released.
    pub fn refusal(&self, rows: &Rows) -> Option<Reason> {
        let absent =
            |(column, _): &&(usize, String)| rows.last(*column).is_none_or(<[u8]>::is_empty);
        if let Some((_, word)) = self.required.iter().find(absent) {
            return Some(word.clone());
        }
        let strange = |&&column: &&usize| !rows.last(column).is_some_and(is_number);
        let column = *self.numbers.iter().find(strange)?;
        Some(format!("no number in '{}'", self.names[column]))
    }
}
