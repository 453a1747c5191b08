//! The Python interface of the veil: arrays in, named arrays out, without the interpreter's lock.

use numpy::ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::SLOT_LENGTH;
use super::canonical;
use super::first_event::Veil as Core;
use super::kernel::{self, Kind};
use super::memory::{self, Memory};
use super::people::MAX_STEPS;
use super::schedule::FirstEvent;

mod kernels;
mod people;
mod prior;

use kernels::Kernel;

fn reject<T>(text: impl Into<String>) -> PyResult<T> {
    Err(PyValueError::new_err(text.into()))
}

fn demand(holds: bool, text: &'static str) -> PyResult<()> {
    if holds { Ok(()) } else { reject(text) }
}

fn kind_of(word: &str) -> PyResult<Kind> {
    match word {
        "visit" => Ok(Kind::Visit),
        "correction" => Ok(Kind::Correction),
        _ => reject("unknown kind of event: expected visit or correction"),
    }
}

fn to_rows<T: Clone>(array: ArrayView2<'_, T>) -> Vec<Vec<T>> {
    array.outer_iter().map(|row| row.to_vec()).collect()
}

fn to_array<T: Copy + Default>(rows: &[Vec<T>], width: usize) -> Array2<T> {
    Array2::from_shape_fn((rows.len(), width), |(r, c)| rows[r][c])
}

fn is_permutation(permutation: &[u16]) -> bool {
    let mut seen = vec![false; permutation.len()];
    permutation.iter().all(|&value| {
        let fresh = seen.get_mut(usize::from(value));
        fresh.is_some_and(|taken| !std::mem::replace(taken, true))
    })
}

fn check_size(size: usize) -> PyResult<()> {
    demand(
        (1..=65_535).contains(&size),
        "a domain must have 1 to 65,535 values",
    )
}

/// What a batch of events publishes, and the memories that the store keeps.
#[pyclass(frozen, get_all, module = "reticent._core.veil")]
struct Events {
    /// Published: l candidates per record, in canonical order.
    candidates: Py<PyArray2<u16>>,
    /// Published: the stratum of the prior at the first event.
    strata: Py<PyArray1<u32>>,
    /// Published: the number of the event, 0 for the first event.
    events: Py<PyArray1<u32>>,
    /// Private: the memories after the event.
    memories: Py<PyArray2<u8>>,
    /// Private: whether the veil (not chance) put the true value among the candidates.
    offered: Py<PyArray1<bool>>,
}

/// One row of an owned array as a slice.
fn row_slice<'a, T>(row: &'a mut ArrayViewMut1<'_, T>) -> &'a mut [T] {
    row.as_slice_mut().expect("rows are contiguous")
}

struct Columns {
    candidates: Array2<u16>,
    strata: Array1<u32>,
    events: Array1<u32>,
    memories: Array2<u8>,
    offered: Array1<bool>,
}

impl Columns {
    fn new(n: usize, l: usize) -> Self {
        Columns {
            candidates: Array2::zeros((n, l)),
            strata: Array1::zeros(n),
            events: Array1::zeros(n),
            memories: Array2::zeros((n, Memory::size(l))),
            offered: Array1::default(n),
        }
    }

    fn begin(&mut self, veil: &Core, first: &FirstEvent) {
        let i = first.record as usize;
        let (mut candidates, mut memory) = (self.candidates.row_mut(i), self.memories.row_mut(i));
        let (candidates, memory) = (row_slice(&mut candidates), row_slice(&mut memory));
        let true_slot = veil.slots(first, 0, candidates);
        memory::write(memory, first.stratum as u16, 0, true_slot, candidates);
        canonical::sort(candidates);
        self.strata[i] = first.stratum;
        self.offered[i] = true_slot.is_some();
    }

    fn set(&mut self, i: usize, memory: &Memory) {
        let mut row = self.candidates.row_mut(i);
        let candidates = row_slice(&mut row);
        candidates.copy_from_slice(&memory.slots);
        canonical::sort(candidates);
        self.strata[i] = memory.stratum.into();
        self.events[i] = memory.event;
        self.offered[i] = memory.true_slot.is_some();
        memory.write(row_slice(&mut self.memories.row_mut(i)));
    }

    fn into_python(self, py: Python<'_>) -> Events {
        Events {
            candidates: self.candidates.into_pyarray(py).unbind(),
            strata: self.strata.into_pyarray(py).unbind(),
            events: self.events.into_pyarray(py).unbind(),
            memories: self.memories.into_pyarray(py).unbind(),
            offered: self.offered.into_pyarray(py).unbind(),
        }
    }
}

/// A veil with fixed parameters.
#[pyclass(frozen, module = "reticent._core.veil")]
struct Veil(Core);

type Codes<'py> = PyReadonlyArray1<'py, u32>;

impl Veil {
    fn check_values(&self, n: usize, values: &[i32]) -> PyResult<()> {
        let inside = |&value: &i32| (-1..self.0.values as i32).contains(&value);
        demand(values.len() == n, "the columns differ in length")?;
        demand(
            values.iter().all(inside),
            "a value code lies outside the domain; use -1 for unknown values",
        )
    }

    fn check_strata(&self, n: usize, strata: &[u32]) -> PyResult<()> {
        demand(strata.len() == n, "the columns differ in length")?;
        let inside = strata
            .iter()
            .all(|&stratum| (stratum as usize) < self.0.strata.len());
        demand(inside, "the prior has no such stratum")
    }

    /// Runs `take` on the first events of a batch, grouped by line.
    fn for_each_by_line(
        &self,
        households: &[u64],
        strata: &[u32],
        values: &[i32],
        take: impl FnMut(&FirstEvent),
    ) {
        let first = |i: usize| self.0.first_event(i, households[i], strata[i], values[i]);
        self.0
            .for_each_by_line((0..households.len()).map(first), take);
    }

    /// Two records of a person at one event would share their false candidates and disclose the true value.
    fn check_distinct(persons: &[u64]) -> PyResult<()> {
        let mut sorted = persons.to_vec();
        sorted.sort_unstable();
        let alone = sorted.windows(2).all(|pair| pair[0] < pair[1]);
        demand(
            alone,
            "a person occurs twice in a batch: send one event at a time",
        )
    }

    /// Reads one memory and the event that follows it, or reports the mismatch.
    fn recall(
        &self,
        bytes: &[u8],
        kind: Kind,
        event: Option<u32>,
        memory: &mut Memory,
    ) -> PyResult<u32> {
        let fits = memory.read(bytes, self.0.strata.len(), self.0.values);
        demand(fits, "the memory belongs to another parameter set")?;
        let event = event.unwrap_or(memory.event.saturating_add(1));
        let steps = event.saturating_sub(memory.event);
        let counted = (1..=MAX_STEPS).contains(&steps);
        demand(
            counted,
            "event numbers must increase, by at most 10,000 at once",
        )?;
        demand(
            kind == Kind::Visit || steps == 1,
            "a correction must be the next event of its person",
        )?;
        Ok(event)
    }
}

#[pymethods]
impl Veil {
    #[new]
    #[pyo3(signature = (*, key, l, segments, permutations, kernel=None))]
    fn new(
        key: [u8; 32],
        l: usize,
        segments: PyReadonlyArray2<'_, u64>,
        permutations: PyReadonlyArray2<'_, u16>,
        kernel: Option<&Kernel>,
    ) -> PyResult<Self> {
        demand((2..=254).contains(&l), "l must be between 2 and 254")?;
        let (strata, permutations) = (
            to_rows(segments.as_array()),
            to_rows(permutations.as_array()),
        );
        let size = segments.as_array().ncols();
        check_size(size)?;
        demand(
            (1..=65_535).contains(&strata.len()),
            "a prior must have 1 to 65,535 strata",
        )?;
        let fits =
            |permutation: &Vec<u16>| permutation.len() == size && is_permutation(permutation);
        demand(
            !permutations.is_empty() && permutations.iter().all(fits),
            "every permutation must cover the domain",
        )?;
        let length = |stratum: &Vec<u64>| {
            stratum
                .iter()
                .map(|&length| u128::from(length))
                .sum::<u128>()
        };
        let exact = |stratum: &Vec<u64>| length(stratum) == l as u128 * u128::from(SLOT_LENGTH);
        demand(
            strata.iter().all(exact),
            "the segments of a stratum do not sum to l * SLOT_LENGTH",
        )?;
        let kernel = kernel.map_or(Ok(kernel::Kernel::Identity), |kernel| {
            kernel.bind(&strata, size)
        })?;
        Ok(Veil(Core::new(key, l, strata, permutations, kernel)))
    }

    /// Candidates of single records: rows of a table, first events without memory.
    #[pyo3(signature = (persons, strata, values, events=None))]
    fn candidates<'py>(
        &self,
        py: Python<'py>,
        persons: PyReadonlyArray1<'py, u64>,
        strata: Codes<'py>,
        values: PyReadonlyArray1<'py, i32>,
        events: Option<Codes<'py>>,
    ) -> PyResult<Bound<'py, PyArray2<u16>>> {
        let (persons, strata, values) =
            (persons.as_slice()?, strata.as_slice()?, values.as_slice()?);
        let events = events
            .as_ref()
            .map(|events| events.as_slice())
            .transpose()?;
        self.check_strata(persons.len(), strata)?;
        self.check_values(persons.len(), values)?;
        demand(
            events.is_none_or(|events| events.len() == persons.len()),
            "the columns differ in length",
        )?;
        let mut out = Array2::zeros((persons.len(), self.0.l));
        py.detach(|| {
            let cells = out.as_slice_mut().expect("the array is contiguous");
            self.for_each_by_line(persons, strata, values, |first| {
                let i = first.record as usize;
                let candidates = &mut cells[i * self.0.l..(i + 1) * self.0.l];
                let event = events.map_or(0, |events| events[i]);
                self.0.slots(first, event, candidates);
                canonical::sort(candidates);
            });
        });
        Ok(out.into_pyarray(py))
    }

    /// Whether a value is a candidate in a stratum. Private, for the omission rate.
    fn is_offered<'py>(
        &self,
        py: Python<'py>,
        strata: Codes<'py>,
        values: PyReadonlyArray1<'py, i32>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (strata, values) = (strata.as_slice()?, values.as_slice()?);
        self.check_strata(values.len(), strata)?;
        self.check_values(strata.len(), values)?;
        let pairs = strata.iter().zip(values);
        let flags: Vec<bool> = pairs
            .map(|(&stratum, &value)| self.0.is_offered(stratum as usize, value))
            .collect();
        Ok(flags.into_pyarray(py))
    }

    /// First events of persons who may return.
    fn begin<'py>(
        &self,
        py: Python<'py>,
        persons: PyReadonlyArray1<'py, u64>,
        strata: Codes<'py>,
        values: PyReadonlyArray1<'py, i32>,
    ) -> PyResult<Events> {
        let (persons, strata, values) =
            (persons.as_slice()?, strata.as_slice()?, values.as_slice()?);
        self.check_strata(persons.len(), strata)?;
        self.check_values(persons.len(), values)?;
        Self::check_distinct(persons)?;
        let columns = py.detach(|| {
            let mut columns = Columns::new(persons.len(), self.0.l);
            self.for_each_by_line(persons, strata, values, |first| {
                columns.begin(&self.0, first)
            });
            columns
        });
        Ok(columns.into_python(py))
    }

    /// Later events of persons. Each memory is that of the person's last event; a person occurs once per batch.
    #[pyo3(signature = (persons, memories, values, *, kind, events=None))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        persons: PyReadonlyArray1<'py, u64>,
        memories: PyReadonlyArray2<'py, u8>,
        values: PyReadonlyArray1<'py, i32>,
        kind: &str,
        events: Option<Codes<'py>>,
    ) -> PyResult<Events> {
        let kind = kind_of(kind)?;
        let (persons, values) = (persons.as_slice()?, values.as_slice()?);
        let events = events
            .as_ref()
            .map(|events| events.as_slice())
            .transpose()?;
        self.check_values(persons.len(), values)?;
        Self::check_distinct(persons)?;
        let size = Memory::size(self.0.l);
        demand(
            memories.as_array().ncols() == size,
            "the memories have another l",
        )?;
        let bytes = memories.as_slice()?;
        let sized = bytes.len() == size * persons.len()
            && events.is_none_or(|events| events.len() == persons.len());
        demand(sized, "the columns differ in length")?;
        let columns = py.detach(|| {
            let mut columns = Columns::new(persons.len(), self.0.l);
            let mut memory = Memory::default();
            for (i, bytes) in bytes.chunks_exact(size).enumerate() {
                let event = events.map(|events| events[i]);
                let event = self.recall(bytes, kind, event, &mut memory)?;
                self.0.step(persons[i], values[i], kind, event, &mut memory);
                columns.set(i, &memory);
            }
            PyResult::Ok(columns)
        })?;
        Ok(columns.into_python(py))
    }
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "veil")?;
    m.add("SLOT_LENGTH", SLOT_LENGTH)?;
    m.add_class::<Kernel>()?;
    m.add_class::<Events>()?;
    m.add_class::<Veil>()?;
    m.add_class::<people::People>()?;
    m.add_class::<people::VeiledEvents>()?;
    m.add_function(wrap_pyfunction!(people::pseudonyms, &m)?)?;
    m.add_function(wrap_pyfunction!(prior::segments_of_counts, &m)?)?;
    m.add_function(wrap_pyfunction!(prior::random_permutations, &m)?)?;
    m.add_function(wrap_pyfunction!(prior::hierarchy_permutations, &m)?)?;
    parent.add_submodule(&m)
}
