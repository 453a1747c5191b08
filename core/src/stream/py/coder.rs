//! The coder of records as Python sees it.

use numpy::PyArray1;
use pyo3::prelude::*;

use super::capsules::{Capsules, batch, unreadable};
use crate::py::{array, refuse};
use crate::stream::coder::{self, Columns, Strange};

type Values = Vec<(usize, Vec<Option<String>>)>;

/// A batch on codes: persons, units, codes by field and rows; or what is to be taught first, or how many name nobody.
#[pyclass(frozen, get_all, module = "reticent._core.stream")]
#[derive(Default)]
pub struct Coded {
    persons: Option<Py<PyArray1<u64>>>,
    units: Option<Py<PyArray1<u64>>>,
    codes: Option<Vec<Py<PyArray1<i32>>>>,
    rows: Option<Py<PyArray1<u32>>>,
    missing: usize,
    values: Values,
    combinations: Vec<Vec<i32>>,
}

/// Turns records into codes; learns what raw values stand for.
#[pyclass(module = "reticent._core.stream")]
pub struct Coder(coder::Coder);

#[pymethods]
impl Coder {
    /// So many fields; the codes of those in `by` lead to rows.
    #[new]
    fn new(key: [u8; 32], fields: usize, by: Vec<usize>) -> PyResult<Self> {
        let coder = coder::Coder::new(key, fields, by);
        coder
            .map(Coder)
            .ok_or_else(|| refuse("rows by fields that are not there"))
    }

    /// The codes that raw values of a field have from now on.
    fn learn(
        &mut self,
        field: usize,
        values: Vec<Option<String>>,
        codes: Vec<i32>,
    ) -> PyResult<()> {
        if values.len() != codes.len() {
            return Err(refuse("columns of different length"));
        }
        for (value, code) in values.into_iter().zip(codes) {
            let learned = self.0.learn(field, value.map(String::into_bytes), code);
            learned.ok_or_else(|| refuse("no such field"))?;
        }
        Ok(())
    }

    /// The row that the codes of the fields lead to from now on.
    fn learn_row(&mut self, codes: Vec<i32>, row: u32) {
        self.0.learn_row(codes, row);
    }

    /// Forgets what was taught.
    fn forget(&mut self) {
        self.0.forget();
    }

    /// How many raw values are remembered of the field that has most.
    fn remembered(&self) -> usize {
        self.0.remembered()
    }

    /// A batch on codes; columns are given by number.
    #[pyo3(signature = (batch, person, fields, unit=None))]
    fn read(
        &self,
        py: Python<'_>,
        batch: Capsules<'_>,
        person: usize,
        fields: Vec<usize>,
        unit: Option<usize>,
    ) -> PyResult<Coded> {
        let rows = self::batch(&batch)?;
        let column = |number: usize| rows.column(number).map_err(unreadable);
        let columns = Columns {
            person: column(person)?,
            unit: unit.map(column).transpose()?,
            fields: fields
                .into_iter()
                .map(column)
                .collect::<PyResult<Vec<_>>>()?,
        };
        if columns.fields.len() != self.0.fields() {
            return Err(refuse("another number of fields"));
        }
        match py.detach(|| self.0.read(&columns)) {
            Ok(coded) => Ok(Coded {
                persons: Some(array(py, coded.persons)),
                units: coded.units.map(|units| array(py, units)),
                codes: Some(
                    coded
                        .codes
                        .into_iter()
                        .map(|codes| array(py, codes))
                        .collect(),
                ),
                rows: Some(array(py, coded.rows)),
                ..Coded::default()
            }),
            Err(Strange::Nobody(missing)) => Ok(Coded {
                missing,
                ..Coded::default()
            }),
            Err(Strange::Rows(combinations)) => Ok(Coded {
                combinations,
                ..Coded::default()
            }),
            Err(Strange::Values(values)) => {
                let texts = values
                    .into_iter()
                    .map(|(field, raw)| (field, raw.into_iter().map(text).collect()));
                Ok(Coded {
                    values: texts.collect(),
                    ..Coded::default()
                })
            }
        }
    }
}

/// Arrow text is UTF-8; an exporter who says otherwise is told apart by the replacement.
fn text(raw: coder::Raw) -> Option<String> {
    raw.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
