//! The Python interface of the veil's persons.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::super::kernel::Kind;
use super::super::people;
use super::{Codes, Veil, demand, kind_of};
use crate::py::{Later, array, refuse, table};
use crate::stream::py::coder::CodedBatch;
use crate::stream::sip::Sip;

/// What a batch publishes. Private: whether each true value is a candidate. Columns become arrays on first use.
#[pyclass(frozen, module = "reticent._core.veil")]
pub struct VeiledEvents {
    candidates: Later<u16, PyArray2<u16>>,
    strata: Later<u32, PyArray1<u32>>,
    events: Later<u32, PyArray1<u32>>,
    offered: Later<bool, PyArray1<bool>>,
    l: usize,
    size: usize,
    omitted: usize,
}

#[pymethods]
impl VeiledEvents {
    fn __len__(&self) -> usize {
        self.size
    }

    /// The number of omitted true values.
    #[getter]
    fn omitted(&self) -> usize {
        self.omitted
    }

    #[getter]
    fn candidates(&self, py: Python<'_>) -> Py<PyArray2<u16>> {
        self.candidates.get(py, |cells| table(py, cells, self.l))
    }

    #[getter]
    fn strata(&self, py: Python<'_>) -> Py<PyArray1<u32>> {
        self.strata.get(py, |column| array(py, column))
    }

    #[getter]
    fn events(&self, py: Python<'_>) -> Py<PyArray1<u32>> {
        self.events.get(py, |column| array(py, column))
    }

    #[getter]
    fn offered(&self, py: Python<'_>) -> Py<PyArray1<bool>> {
        self.offered.get(py, |column| array(py, column))
    }
}

/// The memories of all persons.
#[pyclass(module = "reticent._core.veil")]
pub struct People {
    veil: Py<Veil>,
    people: people::People,
}

impl People {
    fn add(&mut self, py: Python<'_>, batch: &people::Batch) -> PyResult<VeiledEvents> {
        let (veil, size) = (self.veil.get(), batch.persons.len());
        veil.check_strata(size, batch.strata)?;
        veil.check_values(size, batch.values)?;
        demand(
            batch.households.len() == size,
            "the columns differ in length",
        )?;
        let people = &mut self.people;
        let veiled = py
            .detach(|| people.add_events(&veil.0, batch))
            .map_err(refuse)?;
        Ok(VeiledEvents {
            omitted: veiled.offered.iter().filter(|&&offered| !offered).count(),
            candidates: Later::new(veiled.candidates),
            strata: Later::new(veiled.strata),
            events: Later::new(veiled.events),
            offered: Later::new(veiled.offered),
            l: veil.0.l,
            size,
        })
    }
}

#[pymethods]
impl People {
    #[new]
    fn new(veil: Py<Veil>) -> Self {
        let people = people::People::new(veil.get().0.l);
        People { veil, people }
    }

    fn __len__(&self) -> usize {
        self.people.len()
    }

    /// Whether each person has had an event before.
    fn is_known(
        &self,
        py: Python<'_>,
        persons: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<Py<PyArray1<bool>>> {
        let persons = persons.as_slice()?.iter();
        let flags = persons.map(|&person| self.people.knows(person)).collect();
        Ok(array(py, flags))
    }

    /// Adds the next event of every record's person, in the order of the records.
    #[pyo3(signature = (persons, households, strata, values, kind="visit", *, now=None))]
    #[expect(clippy::too_many_arguments, reason = "one parameter per column")]
    fn add_events(
        &mut self,
        py: Python<'_>,
        persons: PyReadonlyArray1<'_, u64>,
        households: PyReadonlyArray1<'_, u64>,
        strata: Codes<'_>,
        values: PyReadonlyArray1<'_, i32>,
        kind: &str,
        now: Option<u32>,
    ) -> PyResult<VeiledEvents> {
        let batch = people::Batch {
            persons: persons.as_slice()?,
            households: households.as_slice()?,
            strata: strata.as_slice()?,
            values: values.as_slice()?,
            kind: kind_of(kind)?,
            now,
        };
        self.add(py, &batch)
    }

    /// Adds the next event of every person of a stream's batch.
    fn add_batch(&mut self, py: Python<'_>, batch: &CodedBatch) -> PyResult<VeiledEvents> {
        let coded = batch.codes()?;
        let batch = people::Batch {
            persons: &coded.persons,
            households: coded.households.as_ref().unwrap_or(&coded.persons),
            strata: &coded.strata,
            values: coded.values(),
            kind: Kind::Visit,
            now: None,
        };
        self.add(py, &batch)
    }

    /// The whole state, for a snapshot.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.people.to_bytes()))
    }

    /// Restores what `to_bytes` wrote.
    fn load(&mut self, data: &[u8]) -> PyResult<()> {
        let loaded = self.people.load(&self.veil.get().0, data);
        loaded.ok_or_else(|| refuse("the memory belongs to another parameter set, or is corrupt"))
    }
}

/// Keyed pseudonyms of persons, for recipients who may link records within one publication.
#[pyfunction]
#[pyo3(signature = (persons, *, key))]
pub fn pseudonyms(
    py: Python<'_>,
    persons: PyReadonlyArray1<'_, u64>,
    key: [u8; 32],
) -> PyResult<Py<PyArray1<u64>>> {
    let sip = Sip::new(&key);
    let persons = persons.as_slice()?.iter();
    Ok(array(
        py,
        persons.map(|&person| sip.words([person, 0, 0])).collect(),
    ))
}
