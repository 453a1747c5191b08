//! What a policy requires of a record, by column number.

use std::collections::HashSet;

use super::number::is_number;
use super::rows::Rows;

#[derive(Default)]
pub struct Rules {
    pub names: Vec<String>,
    /// Columns that are published unchanged.
    pub published: Vec<bool>,
    /// Columns that are released in some form: a record without any of them is invalid.
    pub released: Vec<bool>,
    /// Required columns, and the reason given if they are absent.
    pub required: Vec<(usize, String)>,
    /// Columns whose cells must be numbers.
    pub numbers: Vec<usize>,
    /// Text that means a missing cell.
    pub missing: HashSet<Vec<u8>>,
}

/// Why a record becomes a dead letter; names columns, never a cell.
pub type Reason = String;

impl Rules {
    /// Whether all column numbers are valid.
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

    /// Why the current record cannot be released.
    pub fn refusal(&self, rows: &Rows) -> Option<Reason> {
        let absent =
            |(column, _): &&(usize, String)| rows.last(*column).is_none_or(<[u8]>::is_empty);
        if let Some((_, word)) = self.required.iter().find(absent) {
            return Some(word.clone());
        }
        let not_a_number = |&&column: &&usize| !rows.last(column).is_some_and(is_number);
        let column = *self.numbers.iter().find(not_a_number)?;
        Some(format!("no number in '{}'", self.names[column]))
    }
}
