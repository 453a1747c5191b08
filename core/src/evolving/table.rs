//! The face of the strategies towards Python: rows and codes in, changed rows and their classes out.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::classes::{NONE, Table, Tally};
use super::cuckoo::mix;
use super::eac::Eac;
use super::enc::Enc;
use super::locate::{Filters, Locator, Lost, Runs};
use super::red;

/// Enough to find a class that lacks the value unless nearly all hold it, and few enough to keep a change cheap.
const PROBES: usize = 64;

enum Strategy {
    Red,
    Eac(Eac),
    Enc(Enc),
}

/// Changed rows, their classes (-1: held back), and what was done: touched, dissolved, relocated, held.
type Change<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<i32>>,
    (usize, usize, usize, usize),
);

/// Equivalence classes under one strategy: `red`, `eac`, `enc`, `encc` or `indexed`.
#[pyclass(module = "reticent._core.evolving")]
pub struct Classes {
    table: Table,
    strategy: Strategy,
}

/// Identity of a record as the scans compare it. The row is part of it, so that equal tuples stay apart in the filters; it is
/// mixed before the first code comes in, or near rows with near codes would have equal hashes. 0 marks an empty place.
fn hash(row: u32, codes: &[i32], value: i32) -> u64 {
    let spread = |word: u32| u64::from(word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let words = codes.iter().chain([&value]);
    words
        .fold(mix(spread(row)), |h, &word| mix(h ^ spread(word as u32)))
        .max(1)
}

impl Classes {
    fn admit(&mut self, rows: &[u32], values: &[i32], qi: &[i32]) {
        let width = qi.len().checked_div(rows.len()).unwrap_or(0);
        for (i, (&row, &value)) in rows.iter().zip(values).enumerate() {
            let codes = &qi[i * width..(i + 1) * width];
            self.table.admit(row, value, hash(row, codes, value));
            if let Strategy::Eac(eac) = &mut self.strategy {
                eac.admit(row, codes);
            }
        }
    }

    fn put(&mut self, rows: &[u32], key: [u8; 32]) {
        match &mut self.strategy {
            Strategy::Red => red::redo(&mut self.table, key),
            Strategy::Eac(eac) => eac.insert(&mut self.table, rows, key),
            Strategy::Enc(enc) => enc.insert(&mut self.table, rows, key),
        }
    }

    fn take(&mut self, rows: &[u32], key: [u8; 32]) -> Result<(), Lost> {
        match &mut self.strategy {
            Strategy::Red => {
                red::delete(&mut self.table, rows)?;
                red::redo(&mut self.table, key);
                Ok(())
            }
            Strategy::Eac(eac) => eac.delete(&mut self.table, rows),
            Strategy::Enc(enc) => enc.delete(&mut self.table, rows),
        }
    }

    fn start(&mut self) {
        self.table.moved.clear();
        self.table.seen.clear();
        self.table.tally = Tally::default();
    }

    fn report<'py>(&mut self, py: Python<'py>) -> Change<'py> {
        let table = &mut self.table;
        table.moved.sort_unstable();
        table.moved.dedup();
        table.seen.sort_unstable();
        table.seen.dedup();
        let moved: Vec<u32> = table
            .moved
            .iter()
            .copied()
            .filter(|&r| table.live(r))
            .collect();
        let classes: Vec<i32> = moved.iter().map(|&r| table.class_of[r as usize]).collect();
        let did = (
            table.seen.len(),
            table.tally.dissolved,
            table.tally.relocated,
            table.held.len(),
        );
        (moved.into_pyarray(py), classes.into_pyarray(py), did)
    }

    fn check(&self, rows: &[u32], live: bool) -> PyResult<()> {
        let mut sorted = rows.to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        if twice || rows.iter().any(|&r| self.table.live(r) != live) {
            return Err(PyValueError::new_err("a row is there twice, or not at all"));
        }
        Ok(())
    }
}

#[pymethods]
impl Classes {
    #[new]
    #[pyo3(signature = (strategy, *, l, scale))]
    fn new(strategy: &str, l: usize, scale: Vec<f64>) -> PyResult<Self> {
        let enc = |locator, probes| Strategy::Enc(Enc { locator, probes });
        let strategy = match strategy {
            "red" => Strategy::Red,
            "eac" => Strategy::Eac(Eac::new(scale)),
            "enc" => enc(Locator::Scan(Runs::new(l)), usize::MAX),
            "encc" => enc(Locator::Filters(Filters::new(l)), usize::MAX),
            "indexed" => enc(Locator::Index, PROBES),
            _ => return Err(PyValueError::new_err("unknown strategy")),
        };
        if l == 0 {
            return Err(PyValueError::new_err("l must be at least 1"));
        }
        Ok(Classes {
            table: Table::new(l),
            strategy,
        })
    }

    /// Adds rows as one batch.
    #[pyo3(signature = (rows, values, qi, *, key))]
    fn insert<'py>(
        &mut self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
        values: PyReadonlyArray1<'py, i32>,
        qi: PyReadonlyArray2<'py, i32>,
        key: [u8; 32],
    ) -> PyResult<Change<'py>> {
        let (rows, values, qi) = (rows.as_slice()?, values.as_slice()?, qi.as_slice()?);
        if rows.len() != values.len() || values.iter().any(|&v| v < 0) {
            return Err(PyValueError::new_err("one value of zero or more per row"));
        }
        self.check(rows, false)?;
        py.detach(|| {
            self.start();
            self.admit(rows, values, qi);
            self.put(rows, key);
        });
        Ok(self.report(py))
    }

    /// Removes rows, as one batch or (`each`) one after the other.
    #[pyo3(signature = (rows, *, key, each=false))]
    fn delete<'py>(
        &mut self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
        key: [u8; 32],
        each: bool,
    ) -> PyResult<Change<'py>> {
        let rows = rows.as_slice()?;
        self.check(rows, true)?;
        py.detach(|| {
            self.start();
            let step = if each { 1 } else { rows.len().max(1) };
            rows.chunks(step)
                .try_for_each(|batch| self.take(batch, key))
        })
        .map_err(|Lost| PyRuntimeError::new_err("a live row is in no class"))?;
        Ok(self.report(py))
    }

    /// Takes up classes that were formed before: one class number per row, -1 for held back.
    fn load<'py>(
        &mut self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
        values: PyReadonlyArray1<'py, i32>,
        qi: PyReadonlyArray2<'py, i32>,
        classes: PyReadonlyArray1<'py, i32>,
    ) -> PyResult<()> {
        let (rows, values, qi) = (rows.as_slice()?, values.as_slice()?, qi.as_slice()?);
        let classes = classes.as_slice()?;
        if rows.len() != values.len() || rows.len() != classes.len() || !self.table.value.is_empty()
        {
            return Err(PyValueError::new_err(
                "an empty table; rows, values and classes equally long",
            ));
        }
        self.check(rows, false)?;
        py.detach(|| {
            self.admit(rows, values, qi);
            let count = classes.iter().map(|&c| c + 1).max().unwrap_or(0);
            self.table.reserve(count as usize, classes);
            for (&row, &class) in rows.iter().zip(classes) {
                if class == NONE {
                    self.table.hold(row);
                    continue;
                }
                self.table.add(class as u32, row);
                if let Strategy::Enc(enc) = &mut self.strategy {
                    enc.locator.added(&self.table, class as u32, row);
                }
            }
            if let Strategy::Eac(eac) = &mut self.strategy {
                eac.reload(&self.table);
            }
            self.start();
        });
        Ok(())
    }

    /// The class of each row, -1 for held back.
    fn classes_of<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let rows = rows.as_slice()?;
        self.check(rows, true)?;
        let found: Vec<i32> = rows
            .iter()
            .map(|&r| self.table.class_of[r as usize])
            .collect();
        Ok(found.into_pyarray(py))
    }
}
