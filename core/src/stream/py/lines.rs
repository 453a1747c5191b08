//! The Python interface of the line writer.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::capsules::{Capsules, column};
use crate::py::refuse;
use crate::stream::ndjson;

/// Most bytes of scratch memory between batches.
const MAX_SCRATCH: usize = 64 << 20;

/// Opened groups: ids, rows, offsets, codes, counts.
type OpenedGroups<'py> = (
    PyReadonlyArray1<'py, u64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i32>,
    PyReadonlyArray1<'py, i32>,
);

/// Writes the lines of groups and tuples; knows the names of the columns and the labels of the values.
#[pyclass(module = "reticent._core.stream")]
pub struct LineWriter {
    lines: ndjson::LineWriter,
    /// Memory for the lines, reused from batch to batch: allocating costs more than writing.
    scratch: Vec<u8>,
}

#[pymethods]
impl LineWriter {
    #[new]
    fn new(names: Vec<String>, quasi: usize) -> PyResult<Self> {
        let lines = ndjson::LineWriter::new(&names, quasi);
        let (lines, scratch) = (lines.map_err(refuse)?, Vec::new());
        Ok(LineWriter { lines, scratch })
    }

    /// Sets the JSON text of every candidate value, by code.
    fn set_labels(&mut self, labels: Vec<Vec<u8>>) {
        self.lines.set_labels(labels);
    }

    /// The lines of one batch, each group before its first tuple; `forms` gives the form of every column's text.
    fn write<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<Capsules<'py>>,
        forms: Vec<u8>,
        seqs: PyReadonlyArray1<'py, u64>,
        groups: PyReadonlyArray1<'py, u64>,
        opened: OpenedGroups<'py>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (seqs, groups) = (seqs.as_slice()?, groups.as_slice()?);
        let opened = ndjson::OpenedGroups {
            ids: opened.0.as_slice()?,
            at: opened.1.as_slice()?,
            offsets: opened.2.as_slice()?,
            codes: opened.3.as_slice()?,
            counts: opened.4.as_slice()?,
        };
        let read = columns.iter().map(column).collect::<PyResult<Vec<_>>>()?;
        let has_forms = forms.len() == read.len();
        let columns: Vec<ndjson::Field> = read
            .into_iter()
            .zip(forms)
            .map(|(column, form)| ndjson::Field::new(column, form))
            .collect();
        if !has_forms || !self.lines.fits(&columns, seqs, groups, &opened) {
            return Err(refuse("the batch does not fit its columns"));
        }
        let lines = py.detach(|| self.lines.write(&columns, seqs, groups, &opened));
        Ok(PyBytes::new(py, &lines))
    }

    /// The lines of veiled records; `persons` if the records of a person may be linked.
    #[pyo3(signature = (columns, forms, codes, seqs, strata, events, candidates, persons=None))]
    #[expect(clippy::too_many_arguments, reason = "one parameter per column")]
    fn write_veil<'py>(
        &mut self,
        py: Python<'py>,
        columns: Vec<Capsules<'py>>,
        forms: Vec<u8>,
        codes: Vec<Option<PyReadonlyArray1<'py, i32>>>,
        seqs: PyReadonlyArray1<'py, u64>,
        strata: PyReadonlyArray1<'py, u32>,
        events: PyReadonlyArray1<'py, u32>,
        candidates: PyReadonlyArray2<'py, u16>,
        persons: Option<PyReadonlyArray1<'py, u64>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let persons = persons.as_ref().map(|p| p.as_slice()).transpose()?;
        let veiled = ndjson::VeiledRecords {
            seqs: seqs.as_slice()?,
            strata: strata.as_slice()?,
            events: events.as_slice()?,
            candidates: candidates.as_slice()?,
            persons,
        };
        let read = columns.iter().map(column).collect::<PyResult<Vec<_>>>()?;
        let has_forms = forms.len() == read.len() && codes.len() == read.len();
        let codes = codes
            .iter()
            .map(|codes| codes.as_ref().map(|c| c.as_slice()).transpose());
        let codes = codes.collect::<Result<Vec<_>, _>>()?;
        let columns: Vec<ndjson::Field> = read
            .into_iter()
            .zip(forms)
            .zip(codes)
            .map(|((column, form), codes)| ndjson::Field {
                column,
                form,
                codes,
            })
            .collect();
        if !has_forms || !self.lines.fits_veil(&columns, &veiled) {
            return Err(refuse("the batch does not fit its columns"));
        }
        let LineWriter { lines, scratch } = self;
        scratch.clear();
        py.detach(|| lines.write_veil(scratch, &columns, &veiled));
        let bytes = PyBytes::new(py, scratch);
        if scratch.capacity() > MAX_SCRATCH {
            *scratch = Vec::new();
        }
        Ok(bytes)
    }
}
