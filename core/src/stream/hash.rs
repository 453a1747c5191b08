//! Keyed 64-bit hashes of records: equal cells give equal hashes, and nobody without the key can tell more.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::column::{Capsules, Cell, Column, borrow};
use super::draw::derive;
use super::sip::Sip;

fn cell(sip: &Sip, cell: &Cell) -> u64 {
    match *cell {
        Cell::Null => 0x6e75_6c6c,
        Cell::Text(bytes) => sip.bytes(bytes),
        Cell::Int(x) => sip.words([1, x as u64, 0]),
        // 1.0 and -0.0 are the same quasi-identifier as 1 and 0.
        Cell::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => sip.words([1, x as i64 as u64, 0]),
        Cell::Float(x) => sip.words([2, x.to_bits(), 0]),
        Cell::Bool(x) => sip.words([3, u64::from(x), 0]),
    }
}

fn record(sip: &Sip, columns: &[Column], row: usize) -> u64 {
    match columns {
        [only] => cell(sip, &only.cell(row)),
        _ => columns.iter().fold(0, |sum, column| {
            // Multiplying keeps the columns apart; the cells' hashes are already keyed.
            (sum ^ cell(sip, &column.cell(row)))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
        }),
    }
}

/// One hash per row over all columns, keyed by the stream's key and the purpose.
#[pyfunction]
#[pyo3(signature = (columns, rows, *, key, purpose))]
pub fn hash_rows<'py>(
    py: Python<'py>,
    columns: Vec<Capsules<'py>>,
    rows: usize,
    key: [u8; 32],
    purpose: u64,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let read = borrow(&columns, rows)?;
    let sip = Sip::new(&derive(key, 16 + purpose));
    let hashes: Vec<u64> = py.detach(|| (0..rows).map(|row| record(&sip, &read, row)).collect());
    Ok(hashes.into_pyarray(py))
}
