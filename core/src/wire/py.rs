//! `reticent._core.wire`: bytes in, columns of text out.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::csv::Layout;
use super::parts::{self, ArrowText, Tokens};
use super::rows::Rows;
use super::rules::Rules;
use super::table;
use crate::py::{array, refuse};
use crate::stream::py::capsules::{Capsules, batch, to_py_error};

/// Cells of text in Arrow's layout: offsets, bytes, and a bit per cell if some are missing.
#[pyclass(frozen, get_all, module = "reticent._core.wire")]
pub struct Cells {
    offsets: Py<PyArray1<i32>>,
    bytes: Py<PyArray1<u8>>,
    valid: Option<Py<PyArray1<u8>>>,
}

impl Cells {
    fn new(py: Python<'_>, text_array: ArrowText) -> Self {
        Cells {
            offsets: array(py, text_array.offsets),
            bytes: array(py, text_array.bytes),
            valid: text_array.valid.map(|bits| array(py, bits)),
        }
    }
}

/// The result: all columns one after the other, JSON of those that are not all text, and the bad lines.
#[pyclass(frozen, get_all, module = "reticent._core.wire")]
pub struct ReadBatch {
    cells: Py<Cells>,
    /// Pairs of a column and its JSON; None if its text is JSON.
    tokens: Py<PyList>,
    rows: Py<PyArray1<i64>>,
    total: usize,
    /// Row, reason and payload of each bad line.
    bad_lines: Py<PyList>,
}

/// Reads records under a policy.
#[pyclass(frozen, module = "reticent._core.wire")]
pub struct Reader(Rules);

impl Reader {
    fn to_batch(&self, py: Python<'_>, parts: Vec<Rows>) -> PyResult<ReadBatch> {
        let read = py.detach(|| parts::join(&self.0, parts));
        let read = read.ok_or_else(|| {
            refuse("the batch has more text than Arrow can hold: send smaller batches")
        })?;
        let tokens = PyList::empty(py);
        for (column, json) in read.tokens {
            let own = match json {
                Tokens::AsText => None,
                Tokens::Own(text_array) => Some(Cells::new(py, text_array)),
            };
            tokens.append((column, own))?;
        }
        let bad = PyList::empty(py);
        for record in read.bad {
            bad.append((record.row, record.reason, PyBytes::new(py, &record.payload)))?;
        }
        Ok(ReadBatch {
            cells: Py::new(py, Cells::new(py, read.cells))?,
            tokens: tokens.unbind(),
            rows: array(py, read.rows),
            total: read.total,
            bad_lines: bad.unbind(),
        })
    }
}

/// The bytes of a value, none without one; a string that is not valid text becomes an invalid byte.
fn text<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a [u8]>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes()));
    }
    if value.is_none() {
        return Ok(None);
    }
    let text = value.cast::<PyString>()?;
    Ok(Some(text.to_str().map_or(b"\xff", str::as_bytes)))
}

#[pymethods]
impl Reader {
    /// Columns by name: which are published, which are released in any form, which are required, which are numbers; and
    /// the text of missing cells.
    #[new]
    #[pyo3(signature = (names, *, published, released, required, numbers, missing))]
    fn new(
        names: Vec<String>,
        published: Vec<bool>,
        released: Vec<bool>,
        required: Vec<(usize, String)>,
        numbers: Vec<usize>,
        missing: Vec<String>,
    ) -> PyResult<Self> {
        let rules = Rules {
            names,
            published,
            released,
            required,
            numbers,
            missing: missing.into_iter().map(String::into_bytes).collect(),
        };
        if !rules.is_consistent() {
            return Err(refuse("the rules do not fit the columns"));
        }
        Ok(Reader(rules))
    }

    /// One JSON object per line.
    fn ndjson(&self, py: Python<'_>, data: &[u8]) -> PyResult<ReadBatch> {
        let parts = py.detach(|| parts::ndjson(&self.0, data));
        self.to_batch(py, parts)
    }

    /// One JSON object per value.
    fn objects(&self, py: Python<'_>, values: Vec<Bound<'_, PyAny>>) -> PyResult<ReadBatch> {
        let texts = values.iter().map(text).collect::<PyResult<Vec<_>>>()?;
        let parts = py.detach(|| parts::objects(&self.0, &texts));
        self.to_batch(py, parts)
    }

    /// Lines of CSV and their length in bytes; `columns` are those of the cells. An incomplete record is left, unless
    /// it is the last.
    fn csv(
        &self,
        py: Python<'_>,
        data: &[u8],
        delimiter: u8,
        columns: Vec<usize>,
        last: bool,
    ) -> PyResult<(ReadBatch, usize)> {
        let mut sorted = columns.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != columns.len()
            || sorted
                .last()
                .is_some_and(|&last| last >= self.0.names.len())
        {
            return Err(refuse("the cells do not fit the columns"));
        }
        let layout = Layout { delimiter, columns };
        let (parts, size) = py.detach(|| parts::csv(&self.0, &layout, data, last));
        Ok((self.to_batch(py, parts)?, size))
    }

    /// The rows of an Arrow batch with the policy's columns.
    fn table(&self, py: Python<'_>, batch: Capsules<'_>) -> PyResult<ReadBatch> {
        let rows = self::batch(&batch)?;
        let column = |number: usize| rows.column(number).map_err(to_py_error);
        let columns = (0..self.0.names.len())
            .map(column)
            .collect::<PyResult<Vec<_>>>()?;
        let rows = py.detach(|| table::rows(&self.0, &columns));
        self.to_batch(py, vec![rows])
    }
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "wire")?;
    m.add_class::<Cells>()?;
    m.add_class::<ReadBatch>()?;
    m.add_class::<Reader>()?;
    parent.add_submodule(&m)
}
