//! Records as rows of Arrow columns, with the same rules as JSON lines.

use super::json::float;
use super::number;
use super::rows::{Kind, Rows};
use super::rules::Rules;
use crate::stream::column::{Cell, Column};

/// The records of equally long columns in the order of the rules; the caller has their input.
pub fn rows(rules: &Rules, columns: &[Column]) -> Rows {
    let mut rows = Rows::new(rules.names.len());
    for row in 0..columns.first().map_or(0, Column::len) {
        let mut fault = None;
        for (at, column) in columns.iter().enumerate() {
            let reason = lay(&mut rows, at, &column.cell(row));
            fault = fault.or(reason);
        }
        rows.settle(rules, fault.map(str::to_owned), b"");
    }
    rows
}

fn lay(rows: &mut Rows, column: usize, cell: &Cell) -> Option<&'static str> {
    match *cell {
        Cell::Null => rows.push(column, b"", Kind::Null),
        Cell::Text(text) => rows.push(column, text, Kind::Text),
        Cell::Int(x) => rows.push(column, x.to_string().as_bytes(), Kind::Bare),
        Cell::Bool(x) => rows.push(column, if x { b"true" } else { b"false" }, Kind::Bare),
        Cell::Float(x) if number::fits(x) => float(rows, column, x),
        Cell::Float(x) => {
            rows.push(column, b"", Kind::Null);
            return Some(if x.is_finite() {
                super::json::LARGE
            } else {
                "not a finite number"
            });
        }
    }
    None
}
