//! `reticent._core.table`: one table, released once.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::anatomy;
use super::arrange;
use super::collapse::SensitiveColumn;
use super::texts;
use crate::py::refuse;

mod cancellation;
mod collapsed;
mod model;
mod mondrian;
mod persons;

type Codes<'py> = PyReadonlyArray1<'py, i32>;
/// Codes of a sensitive column, their number, and the tables of its hierarchy (empty if it has none).
type Sensitive<'py> = (Codes<'py>, usize, Vec<Codes<'py>>);

fn in_domain(codes: &[i32], domain: usize, rows: usize) -> PyResult<()> {
    if codes.len() != rows {
        return Err(refuse("the columns differ in length"));
    }
    if codes.iter().any(|&c| c < 0 || c as usize >= domain) {
        return Err(refuse("a code lies outside its domain"));
    }
    Ok(())
}

/// The tables of a hierarchy: one node per leaf on every level.
fn tables(tree: &[Codes<'_>], leaves: usize) -> PyResult<Vec<Vec<u32>>> {
    let table = |codes: &Codes<'_>| {
        let codes = codes.as_slice()?;
        if codes.len() != leaves || codes.iter().any(|&c| c < 0) {
            return Err(refuse("a tree does not fit its column"));
        }
        Ok(codes.iter().map(|&c| c as u32).collect())
    };
    tree.iter().map(table).collect()
}

fn check_sensitive<'a>(
    sensitive: &'a [Sensitive<'_>],
    rows: usize,
) -> PyResult<Vec<SensitiveColumn<'a>>> {
    let column = |(codes, domain, tree): &'a Sensitive<'_>| {
        let codes = codes.as_slice()?;
        in_domain(codes, *domain, rows)?;
        Ok(SensitiveColumn {
            codes,
            domain: *domain,
            tree: tables(tree, *domain)?,
        })
    };
    sensitive.iter().map(column).collect()
}

/// The group of each row (-1: no group can take it), and the number of groups.
#[pyclass(frozen, get_all, module = "reticent._core.table")]
pub struct Groups {
    groups: Py<PyArray1<i64>>,
    count: i64,
}

/// Anatomy's grouping of sensitive codes.
#[pyfunction]
#[pyo3(signature = (codes, *, domain, l, key))]
fn anatomize(
    py: Python<'_>,
    codes: Codes<'_>,
    domain: usize,
    l: usize,
    key: [u8; 32],
) -> PyResult<Groups> {
    let codes = codes.as_slice()?;
    if l == 0 {
        return Err(refuse("l must be at least 1"));
    }
    if codes.iter().any(|&c| c < 0 || c as usize >= domain) {
        return Err(refuse("a code lies outside the domain"));
    }
    let (groups, count) = py.detach(|| anatomy::group(codes, domain, l, key));
    Ok(Groups {
        groups: groups.into_pyarray(py).unbind(),
        count,
    })
}

/// The rows in an order that discloses nothing, and the new number of each group.
#[pyclass(frozen, get_all, module = "reticent._core.table")]
pub struct RowOrder {
    order: Py<PyArray1<i64>>,
    numbers: Py<PyArray1<i64>>,
}

/// Sorts rows by group and key, and groups by their lists of keys.
#[pyfunction]
fn arrange_rows(
    py: Python<'_>,
    keys: PyReadonlyArray1<'_, i64>,
    groups: PyReadonlyArray1<'_, i64>,
) -> PyResult<RowOrder> {
    let (keys, groups) = (keys.as_slice()?, groups.as_slice()?);
    if keys.len() != groups.len() {
        return Err(refuse("the columns differ in length"));
    }
    let count = groups.iter().max().map_or(0, |&last| last + 1) as usize;
    if count > groups.len() || groups.iter().any(|&group| group < 0) {
        return Err(refuse("groups must be numbered from 0, without gaps"));
    }
    let (order, numbers) = py.detach(|| arrange::arrange(keys, groups, count));
    Ok(RowOrder {
        order: order.into_pyarray(py).unbind(),
        numbers: numbers.into_pyarray(py).unbind(),
    })
}

/// The code of each text, and the first row of each code.
#[pyclass(frozen, get_all, module = "reticent._core.table")]
pub struct EncodedTexts {
    codes: Py<PyArray1<i32>>,
    firsts: Py<PyArray1<i64>>,
}

/// Encodes texts by number, in the order of first occurrence.
#[pyfunction]
fn encode_texts(
    py: Python<'_>,
    ends: PyReadonlyArray1<'_, i32>,
    text: PyReadonlyArray1<'_, u8>,
) -> PyResult<EncodedTexts> {
    let (ends, text) = (ends.as_slice()?, text.as_slice()?);
    let encoded = py.detach(|| texts::encode(ends, text));
    let (codes, firsts) = encoded.ok_or_else(|| refuse("the ends do not fit the text"))?;
    Ok(EncodedTexts {
        codes: codes.into_pyarray(py).unbind(),
        firsts: firsts.into_pyarray(py).unbind(),
    })
}

/// Texts, one after the other.
#[pyclass(frozen, get_all, module = "reticent._core.table")]
pub struct DecodedTexts {
    ends: Py<PyArray1<i32>>,
    text: Py<PyArray1<u8>>,
}

/// The texts of codes.
#[pyfunction]
fn decode_texts(
    py: Python<'_>,
    codes: Codes<'_>,
    ends: PyReadonlyArray1<'_, i32>,
    text: PyReadonlyArray1<'_, u8>,
) -> PyResult<DecodedTexts> {
    let (codes, ends, text) = (codes.as_slice()?, ends.as_slice()?, text.as_slice()?);
    let decoded = py.detach(|| texts::decode(codes, ends, text));
    let (ends, text) =
        decoded.ok_or_else(|| refuse("there are codes without a word, or too much text"))?;
    Ok(DecodedTexts {
        ends: ends.into_pyarray(py).unbind(),
        text: text.into_pyarray(py).unbind(),
    })
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "table")?;
    m.add_class::<RowOrder>()?;
    m.add_class::<Groups>()?;
    m.add_class::<collapsed::CollapsedTable>()?;
    m.add_class::<collapsed::Evaluation>()?;
    m.add_class::<collapsed::Recoding>()?;
    m.add_class::<model::Model>()?;
    m.add_class::<mondrian::Axis>()?;
    m.add_class::<mondrian::Partition>()?;
    m.add_class::<EncodedTexts>()?;
    m.add_class::<DecodedTexts>()?;
    m.add_class::<cancellation::CancellationToken>()?;
    m.add_function(wrap_pyfunction!(anatomize, &m)?)?;
    m.add_function(wrap_pyfunction!(arrange_rows, &m)?)?;
    m.add_function(wrap_pyfunction!(mondrian::mondrian, &m)?)?;
    m.add_function(wrap_pyfunction!(encode_texts, &m)?)?;
    m.add_function(wrap_pyfunction!(decode_texts, &m)?)?;
    m.add_function(wrap_pyfunction!(persons::check_classes, &m)?)?;
    m.add_function(wrap_pyfunction!(persons::find_violations, &m)?)?;
    parent.add_submodule(&m)
}
