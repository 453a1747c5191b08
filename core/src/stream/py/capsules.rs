//! Arrow columns from `__arrow_c_array__`: two capsules, which own their contents.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::stream::column::{ArrowArray, ArrowSchema, Batch, Column, Unreadable};

/// The capsules of a schema and of an array.
pub type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

pub fn to_py_error(error: Unreadable) -> PyErr {
    match error {
        Unreadable::Type(message) => PyTypeError::new_err(message),
        Unreadable::Shape(message) => PyValueError::new_err(message),
    }
}

fn structures<'a>(
    (schema, array): &'a Capsules<'_>,
) -> PyResult<(&'a ArrowSchema, &'a ArrowArray)> {
    let schema = schema
        .pointer_checked(Some(c"arrow_schema"))?
        .cast::<ArrowSchema>();
    let array = array
        .pointer_checked(Some(c"arrow_array"))?
        .cast::<ArrowArray>();
    if !schema.is_aligned() || !array.is_aligned() {
        return Err(PyValueError::new_err(
            "the capsules do not hold Arrow structures",
        ));
    }
    // SAFETY: the names say what the capsules hold. Pointers of capsules are not null, and their targets live until the
    // capsules are dropped, which the borrow for `'a` excludes. Their own destructors release them.
    Ok(unsafe { (schema.as_ref(), array.as_ref()) })
}

/// Borrows one column; the capsules keep it alive.
pub fn column<'a>(capsules: &'a Capsules<'_>) -> PyResult<Column<'a>> {
    let (schema, array) = structures(capsules)?;
    // SAFETY: the exporter describes the array correctly, and buffers that Arrow shares never change.
    unsafe { Column::new(schema, array) }.map_err(to_py_error)
}

/// Borrows a record batch; the capsules keep it alive.
pub fn batch<'a>(capsules: &'a Capsules<'_>) -> PyResult<Batch<'a>> {
    let (schema, array) = structures(capsules)?;
    // SAFETY: as for a column.
    unsafe { Batch::new(schema, array) }.map_err(to_py_error)
}
