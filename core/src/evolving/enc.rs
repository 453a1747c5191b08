//! ENC (Temuujin, Ahn, Im, IEEE Access 2019), Algorithms 1 and 2: only classes that a change leaves unsatisfied are
//! examined.
//!
//! Where the paper leaves it open: a class is satisfied with l or more distinct values. Rows that Anatomy cannot group
//! go to the smallest satisfied class; without one, they are withheld.

use std::collections::BTreeSet;

use super::classes::Table;
use super::locate::{Locator, NotFound};
use crate::table::anatomy;

pub struct Enc {
    pub locator: Locator,
    /// How many unsatisfied classes a relocated record may try before it goes to the smallest satisfied one.
    pub probes: usize,
}

impl Enc {
    fn add(&mut self, table: &mut Table, class: u32, row: u32) {
        table.add(class, row);
        self.locator.add(table, class, row);
    }

    /// Algorithm 1. Withheld rows try again with the new ones.
    pub fn insert(&mut self, table: &mut Table, fresh: &[u32], key: [u8; 32]) {
        let mut rows: Vec<u32> = table.withheld.iter().copied().collect();
        rows.extend_from_slice(fresh);
        let rest = self.form(table, &rows, key);
        for row in rest {
            self.place(table, row);
        }
    }

    /// Anatomy over the rows, if they have l distinct values; returns the rows it could not group.
    pub fn form(&mut self, table: &mut Table, rows: &[u32], key: [u8; 32]) -> Vec<u32> {
        let values: Vec<i32> = rows.iter().map(|&r| table.value[r as usize]).collect();
        let mut distinct = values.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < table.l {
            return rows.to_vec();
        }
        let codes: Vec<i32> = values
            .iter()
            .map(|v| distinct.binary_search(v).expect("listed") as i32)
            .collect();
        let (groups, made) = anatomy::group(&codes, distinct.len(), table.l, key);
        let opened: Vec<u32> = (0..made).map(|_| table.open()).collect();
        let mut rest = Vec::new();
        for (&row, &group) in rows.iter().zip(&groups) {
            match usize::try_from(group) {
                Ok(group) => self.add(table, opened[group], row),
                Err(_) => rest.push(row),
            }
        }
        rest
    }

    fn place(&mut self, table: &mut Table, row: u32) {
        match table.smallest() {
            Some(class) => self.add(table, class, row),
            None => table.withhold(row),
        }
    }

    /// Algorithm 2. If a row is not found, nothing has changed.
    pub fn delete(&mut self, table: &mut Table, rows: &[u32]) -> Result<(), NotFound> {
        let mut unsatisfied = BTreeSet::new();
        for (row, host) in self.locator.hosts(table, rows)? {
            if let Some(class) = host {
                unsatisfied.remove(&(table.size(class), class));
                table.remove(class, row);
                self.locator.remove(table, class, row);
                if !table.is_satisfied(class) {
                    unsatisfied.insert((table.size(class), class));
                }
            }
            table.drop_row(row);
        }
        self.relocate(table, unsatisfied);
        Ok(())
    }

    fn relocate(&mut self, table: &mut Table, mut unsatisfied: BTreeSet<(u32, u32)>) {
        while let Some((_, class)) = unsatisfied.pop_first() {
            let rows = table.dissolve(class);
            self.locator.clear(class);
            table.tally.relocated += rows.len();
            for row in rows {
                match self.find_needy(table, &unsatisfied, table.value[row as usize]) {
                    Some(needy) => {
                        unsatisfied.remove(&(table.size(needy), needy));
                        self.add(table, needy, row);
                        if !table.is_satisfied(needy) {
                            unsatisfied.insert((table.size(needy), needy));
                        }
                    }
                    None => self.place(table, row),
                }
            }
        }
    }

    /// An unsatisfied class that lacks the value.
    fn find_needy(
        &self,
        table: &Table,
        unsatisfied: &BTreeSet<(u32, u32)>,
        value: i32,
    ) -> Option<u32> {
        let mut asked = unsatisfied.iter().take(self.probes);
        asked
            .find(|&&(_, class)| self.locator.lacks(table, class, value))
            .map(|&(_, class)| class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enc() -> Enc {
        Enc {
            locator: Locator::Index,
            probes: usize::MAX,
        }
    }

    fn table(values: &[i32], l: usize) -> (Table, Enc) {
        let (mut table, mut enc) = (Table::new(l), enc());
        for (row, &value) in values.iter().enumerate() {
            table.admit(row as u32, value, row as u64 + 1);
        }
        let rows: Vec<u32> = (0..values.len() as u32).collect();
        enc.insert(&mut table, &rows, [1; 32]);
        (table, enc)
    }

    #[test]
    fn rows_are_withheld_until_there_are_l_values() {
        let (mut table, mut enc) = table(&[0, 0, 1], 3);
        assert_eq!(table.withheld.len(), 3);
        table.admit(3, 2, 4);
        enc.insert(&mut table, &[3], [2; 32]);
        assert!(table.withheld.is_empty());
        assert_eq!(table.satisfied.len(), 1);
    }

    #[test]
    fn rows_of_unsatisfied_classes_are_relocated() {
        let (mut table, mut enc) = table(&[0, 0, 1, 1], 2);
        assert_eq!(table.satisfied.len(), 2);
        enc.delete(&mut table, &[0]).unwrap();
        assert_eq!(table.satisfied.len(), 1);
        assert_eq!(table.tally.relocated, 1);
        // One value is left: nothing can be published any more, and nothing is lost.
        enc.delete(&mut table, &[1]).unwrap();
        assert!(table.satisfied.is_empty());
        assert_eq!(table.withheld.iter().copied().collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn numbers_of_dissolved_classes_are_used_again() {
        let (mut table, mut enc) = table(&[0, 1], 2);
        enc.delete(&mut table, &[0]).unwrap();
        table.admit(2, 5, 9);
        enc.insert(&mut table, &[2], [2; 32]);
        assert_eq!(table.class_of[1..], [0, 0]);
        assert_eq!(table.classes.len(), 1);
    }
}
