//! Columns of text that grow cell by cell; an invalid record is taken back.

use std::collections::HashSet;

use super::rules::{Reason, Rules};

/// The kind of a cell in the input; it is written as the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    Null = 0,
    Text = 1,
    /// An integer, a boolean or a float: its text is its JSON.
    Bare = 2,
    /// A whole float: its JSON ends with `.0`.
    Whole = 3,
    /// -0.0, which the engines use as 0.
    Minus = 4,
}

#[derive(Default)]
pub struct Texts {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
    pub kinds: Vec<Kind>,
}

impl Texts {
    fn close(&mut self, kind: Kind) {
        self.ends.push(self.bytes.len());
        self.kinds.push(kind);
    }

    fn truncate(&mut self, rows: usize) {
        if self.ends.len() > rows {
            self.bytes
                .truncate(if rows > 0 { self.ends[rows - 1] } else { 0 });
            self.ends.truncate(rows);
            self.kinds.truncate(rows);
        }
    }

    /// Makes the last cell missing if its text means that.
    fn clear_marker(&mut self, markers: &HashSet<Vec<u8>>) {
        let Some(row) = self.ends.len().checked_sub(1) else {
            return;
        };
        if self.kinds[row] != Kind::Null && markers.contains(self.cell(row)) {
            self.truncate(row);
            self.close(Kind::Null);
        }
    }

    pub fn cell(&self, row: usize) -> &[u8] {
        let start = if row > 0 { self.ends[row - 1] } else { 0 };
        &self.bytes[start..self.ends[row]]
    }
}

/// A record that cannot be released: its number, the reason, and its input.
pub struct Bad {
    pub row: usize,
    pub reason: Reason,
    pub payload: Vec<u8>,
}

pub struct Rows {
    pub columns: Vec<Texts>,
    /// The number of each good record among all records.
    pub rows: Vec<i64>,
    pub total: usize,
    pub bad: Vec<Bad>,
}

impl Rows {
    pub fn new(columns: usize) -> Self {
        Rows {
            columns: (0..columns).map(|_| Texts::default()).collect(),
            rows: Vec::new(),
            total: 0,
            bad: Vec::new(),
        }
    }

    /// Reserves memory for more records like the ones so far.
    pub fn reserve(&mut self, more: usize) {
        let size = self.rows.len().max(1);
        for texts in &mut self.columns {
            texts
                .bytes
                .reserve(texts.bytes.len() / size * more / 16 * 17);
            texts.ends.reserve(more);
            texts.kinds.reserve(more);
        }
    }

    /// Whether the current record has this cell already.
    #[inline]
    pub fn has(&self, column: usize) -> bool {
        self.columns[column].ends.len() > self.rows.len()
    }

    #[inline]
    pub fn push(&mut self, column: usize, text: &[u8], kind: Kind) {
        let texts = &mut self.columns[column];
        texts.bytes.extend_from_slice(text);
        texts.close(kind);
    }

    /// Adds a cell that `write` writes; it returns the kind.
    pub fn push_with(&mut self, column: usize, write: impl FnOnce(&mut Vec<u8>) -> Kind) {
        let texts = &mut self.columns[column];
        let kind = write(&mut texts.bytes);
        texts.close(kind);
    }

    /// The last cell of a column, none if it is null.
    pub fn last(&self, column: usize) -> Option<&[u8]> {
        let texts = &self.columns[column];
        let row = texts.ends.len().checked_sub(1)?;
        (texts.kinds[row] != Kind::Null).then(|| texts.cell(row))
    }

    /// Removes the current, incomplete record.
    pub fn retract(&mut self) {
        let size = self.rows.len();
        self.columns
            .iter_mut()
            .for_each(|texts| texts.truncate(size));
    }

    /// Ends the current record, or takes it back for a reason; absent cells are null.
    pub fn settle(&mut self, rules: &Rules, reason: Option<Reason>, payload: &[u8]) {
        let size = self.rows.len();
        if reason.is_none() {
            for texts in &mut self.columns {
                if texts.ends.len() == size {
                    texts.close(Kind::Null);
                }
            }
        }
        if !rules.missing.is_empty() {
            let columns = self.columns.iter_mut();
            columns.for_each(|texts| texts.clear_marker(&rules.missing));
        }
        match reason.or_else(|| rules.refusal(self)) {
            None => self.rows.push(self.total as i64),
            Some(reason) => {
                self.retract();
                let (row, payload) = (self.total, payload.to_vec());
                self.bad.push(Bad {
                    row,
                    reason,
                    payload,
                });
            }
        }
        self.total += 1;
    }
}
