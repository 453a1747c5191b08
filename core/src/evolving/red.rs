//! RED: re-anonymise the entire dataset by Anatomy after every change. The baseline of the paper.

use super::classes::{NONE, Table};
use super::enc::Enc;
use super::locate::Locator;

pub fn redo(table: &mut Table, key: [u8; 32]) {
    let open: Vec<u32> = (0..table.classes.len() as u32)
        .filter(|&c| table.size(c) > 0)
        .collect();
    table.tally.relocated += open.iter().map(|&c| table.size(c) as usize).sum::<usize>();
    for class in open {
        table.dissolve(class);
    }
    let rows: Vec<u32> = (0..table.value.len() as u32)
        .filter(|&r| table.value[r as usize] != NONE)
        .collect();
    let mut grouper = Enc {
        locator: Locator::Index,
        probes: 0,
    };
    table.held.clear();
    for row in grouper.form(table, &rows, key) {
        match table.smallest() {
            Some(class) => table.add(class, row),
            None => table.hold(row),
        }
    }
}

pub fn delete(table: &mut Table, rows: &[u32]) {
    for &row in rows {
        if let Some(class) = Locator::Index.host(table, row) {
            table.remove(class, row);
        }
        table.drop_row(row);
    }
}
