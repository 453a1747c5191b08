//! The Python interface of the coder.

use numpy::{Element, PyArray1};
use pyo3::prelude::*;

use super::capsules::{Capsules, batch, to_py_error};
use crate::py::refuse;
use crate::stream::coder::{self, Columns, Unread};

type Values = Vec<(usize, Vec<Option<String>>)>;

/// A batch as codes, or what must be taught first. Columns become arrays on first use.
#[pyclass(frozen, module = "reticent._core.stream")]
pub struct CodedBatch(Result<coder::CodedRecords, Unread>);

impl CodedBatch {
    pub fn codes(&self) -> PyResult<&coder::CodedRecords> {
        let read = self.0.as_ref();
        read.map_err(|_| refuse("the batch has unknown values: teach their codes first"))
    }
}

#[pymethods]
impl CodedBatch {
    /// Whether everything was known.
    #[getter]
    fn is_complete(&self) -> bool {
        self.0.is_ok()
    }

    #[getter]
    fn persons(&self, py: Python<'_>) -> PyResult<Py<PyArray1<u64>>> {
        Ok(to_array(py, &self.codes()?.persons))
    }

    #[getter]
    fn households(&self, py: Python<'_>) -> PyResult<Option<Py<PyArray1<u64>>>> {
        let households = self.codes()?.households.as_ref();
        Ok(households.map(|households| to_array(py, households)))
    }

    #[getter]
    fn strata(&self, py: Python<'_>) -> PyResult<Py<PyArray1<u32>>> {
        Ok(to_array(py, &self.codes()?.strata))
    }

    /// The codes of the sensitive values, the last field.
    #[getter]
    fn values(&self, py: Python<'_>) -> PyResult<Py<PyArray1<i32>>> {
        Ok(to_array(py, self.codes()?.values()))
    }

    /// The codes of one field.
    fn field(&self, py: Python<'_>, number: usize) -> PyResult<Py<PyArray1<i32>>> {
        let codes = self.codes()?.codes.get(number);
        let codes = codes.ok_or_else(|| refuse("no such field"))?;
        Ok(to_array(py, codes))
    }

    /// Whether persons or households may have several written forms.
    #[getter]
    fn has_odd_names(&self) -> bool {
        matches!(self.0, Err(Unread::Names))
    }

    /// The number of records without a person or a household.
    #[getter]
    fn missing(&self) -> usize {
        match self.0 {
            Err(Unread::Nobody(missing)) => missing,
            _ => 0,
        }
    }

    /// Values without a code, by field.
    #[getter]
    fn unknown_values(&self) -> Values {
        let Err(Unread::Values(values)) = &self.0 else {
            return vec![];
        };
        let texts = values
            .iter()
            .map(|(field, raw)| (*field, raw.iter().map(text).collect()));
        texts.collect()
    }

    /// Codes of the fields without a known stratum.
    #[getter]
    fn unknown_combinations(&self) -> Vec<Vec<i32>> {
        match &self.0 {
            Err(Unread::Combinations(unknown_combinations)) => unknown_combinations.clone(),
            _ => vec![],
        }
    }
}

fn to_array<T: Element + Copy>(py: Python<'_>, column: &[T]) -> Py<PyArray1<T>> {
    PyArray1::from_slice(py, column).unbind()
}

/// Encodes records; learns the codes of raw values.
#[pyclass(module = "reticent._core.stream")]
pub struct Coder(coder::Coder);

#[pymethods]
impl Coder {
    /// Per field, how many characters decide, with the length, the code of a text; the fields in `by` determine the
    /// stratum.
    #[new]
    fn new(key: [u8; 32], leading: Vec<Option<usize>>, by: Vec<usize>) -> PyResult<Self> {
        let coder = coder::Coder::new(key, &leading, by);
        coder
            .map(Coder)
            .ok_or_else(|| refuse("the strata refer to fields that do not exist"))
    }

    /// Sets the codes of raw values of a field.
    fn learn(
        &mut self,
        field: usize,
        values: Vec<Option<String>>,
        codes: Vec<i32>,
    ) -> PyResult<()> {
        if values.len() != codes.len() {
            return Err(refuse("the columns differ in length"));
        }
        for (value, code) in values.into_iter().zip(codes) {
            let learned = self.0.learn(field, value.map(String::into_bytes), code);
            learned.ok_or_else(|| refuse("no such field"))?;
        }
        Ok(())
    }

    /// Sets the stratum of a combination of codes.
    fn learn_stratum(&mut self, codes: Vec<i32>, stratum: u32) {
        self.0.learn_stratum(codes, stratum);
    }

    /// Forgets everything that was taught.
    fn forget(&mut self) {
        self.0.forget();
    }

    /// The largest number of raw values stored for one field.
    fn cache_size(&self) -> usize {
        self.0.cache_size()
    }

    /// A batch as codes; columns are given by number. `normalized`: each person and household has one written form.
    fn read(
        &self,
        py: Python<'_>,
        batch: Capsules<'_>,
        person: usize,
        fields: Vec<usize>,
        household: Option<usize>,
        normalized: bool,
    ) -> PyResult<CodedBatch> {
        let rows = self::batch(&batch)?;
        let column = |number: usize| rows.column(number).map_err(to_py_error);
        let columns = Columns {
            person: column(person)?,
            household: household.map(column).transpose()?,
            fields: fields
                .into_iter()
                .map(column)
                .collect::<PyResult<Vec<_>>>()?,
        };
        if columns.fields.len() != self.0.fields() {
            return Err(refuse("the number of fields does not match the coder"));
        }
        Ok(CodedBatch(py.detach(|| self.0.read(&columns, normalized))))
    }
}

/// Arrow text is UTF-8; invalid text of a wrong exporter becomes the replacement character.
fn text(raw: &coder::Raw) -> Option<String> {
    let bytes = raw.as_ref();
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
