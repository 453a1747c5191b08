//! RED: re-anonymizes the entire dataset by Anatomy after every change. The baseline of the paper.

use super::classes::{NONE, Table};
use super::enc::Enc;
use super::locate::{Locator, NotFound};

pub fn redo(table: &mut Table, key: [u8; 32]) {
    // Includes classes that a deletion emptied, or their numbers would be lost.
    for class in 0..table.classes.len() as u32 {
        table.tally.relocated += table.dissolve(class).len();
    }
    let rows: Vec<u32> = (0..table.value.len() as u32)
        .filter(|&r| table.value[r as usize] != NONE)
        .collect();
    let mut grouper = Enc {
        locator: Locator::Index,
        probes: 0,
    };
    table.withheld.clear();
    for row in grouper.form(table, &rows, key) {
        match table.smallest() {
            Some(class) => table.add(class, row),
            None => table.withhold(row),
        }
    }
}

pub fn delete(table: &mut Table, rows: &[u32]) -> Result<(), NotFound> {
    for (row, host) in Locator::Index.hosts(table, rows)? {
        if let Some(class) = host {
            table.remove(class, row);
        }
        table.drop_row(row);
    }
    Ok(())
}
