//! Arrow columns, read in place through the Arrow C data interface: cells as bytes, hashed or written out.

use std::ffi::{CStr, c_char, c_void};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: *const c_void,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: *const c_void,
    private_data: *mut c_void,
}

enum Data<'a> {
    Text {
        offsets: &'a [i32],
        bytes: *const u8,
    },
    LongText {
        offsets: &'a [i64],
        bytes: *const u8,
    },
    Int(&'a [i64]),
    Float(&'a [f64]),
    Bool {
        bits: *const u8,
        offset: usize,
    },
    Null,
}

/// One cell, in the types that a source can give.
pub enum Cell<'a> {
    Null,
    Text(&'a [u8]),
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// A column borrowed from Arrow for the length of one call.
pub struct Column<'a> {
    len: usize,
    offset: usize,
    valid: *const u8,
    data: Data<'a>,
}

// Arrow buffers never change once they are shared.
unsafe impl Send for Column<'_> {}
unsafe impl Sync for Column<'_> {}

fn bit(bits: *const u8, at: usize) -> bool {
    unsafe { *bits.add(at / 8) >> (at % 8) & 1 == 1 }
}

impl<'a> Column<'a> {
    /// Borrows a column of text, 64-bit numbers, truth values or nothing; the capsules keep it alive.
    pub fn from_capsules(
        schema: &'a Bound<'_, PyCapsule>,
        array: &'a Bound<'_, PyCapsule>,
    ) -> PyResult<Self> {
        let (schema, array) = structures(schema, array)?;
        Self::from_structures(schema, array)
    }

    fn from_structures(schema: &'a ArrowSchema, array: &'a ArrowArray) -> PyResult<Self> {
        let format = unsafe { CStr::from_ptr(schema.format) }.to_bytes();
        let (len, offset) = (array.length as usize, array.offset as usize);
        let buffer = |i: usize| unsafe { *array.buffers.add(i) };
        let data = unsafe { Self::data(format, len, offset, &buffer)? };
        let valid = if array.null_count == 0 || matches!(data, Data::Null) {
            std::ptr::null()
        } else {
            buffer(0).cast()
        };
        Ok(Column {
            len,
            offset,
            valid,
            data,
        })
    }

    unsafe fn data(
        format: &[u8],
        len: usize,
        offset: usize,
        buffer: &dyn Fn(usize) -> *const c_void,
    ) -> PyResult<Data<'a>> {
        // An empty column may come without buffers.
        unsafe fn view<'a, T>(at: *const c_void, offset: usize, len: usize) -> &'a [T] {
            if len == 0 || at.is_null() {
                return &[];
            }
            unsafe { std::slice::from_raw_parts(at.cast::<T>().add(offset), len) }
        }
        let filled = usize::from(len > 0);
        Ok(unsafe {
            match format {
                b"u" => Data::Text {
                    offsets: view(buffer(1), offset, len + filled),
                    bytes: buffer(2).cast(),
                },
                b"U" => Data::LongText {
                    offsets: view(buffer(1), offset, len + filled),
                    bytes: buffer(2).cast(),
                },
                b"l" => Data::Int(view(buffer(1), offset, len)),
                b"g" => Data::Float(view(buffer(1), offset, len)),
                b"b" => Data::Bool {
                    bits: buffer(1).cast(),
                    offset,
                },
                b"n" => Data::Null,
                _ => {
                    return Err(PyTypeError::new_err(
                        "a column of a type that the core does not read",
                    ));
                }
            }
        })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn cell(&self, row: usize) -> Cell<'_> {
        if !self.valid.is_null() && !bit(self.valid, self.offset + row) {
            return Cell::Null;
        }
        match &self.data {
            Data::Text { offsets, bytes } => {
                text(*bytes, offsets[row] as usize, offsets[row + 1] as usize)
            }
            Data::LongText { offsets, bytes } => {
                text(*bytes, offsets[row] as usize, offsets[row + 1] as usize)
            }
            Data::Int(numbers) => Cell::Int(numbers[row]),
            Data::Float(numbers) => Cell::Float(numbers[row]),
            Data::Bool { bits, offset } => Cell::Bool(bit(*bits, offset + row)),
            Data::Null => Cell::Null,
        }
    }
}

fn text<'a>(bytes: *const u8, from: usize, to: usize) -> Cell<'a> {
    if from == to {
        return Cell::Text(&[]);
    }
    Cell::Text(unsafe { std::slice::from_raw_parts(bytes.add(from), to - from) })
}

fn structures<'a>(
    schema: &'a Bound<'_, PyCapsule>,
    array: &'a Bound<'_, PyCapsule>,
) -> PyResult<(&'a ArrowSchema, &'a ArrowArray)> {
    let schema = schema
        .pointer_checked(Some(c"arrow_schema"))?
        .cast::<ArrowSchema>();
    let array = array
        .pointer_checked(Some(c"arrow_array"))?
        .cast::<ArrowArray>();
    // The exporter keeps both structures valid until the capsules are dropped.
    let (schema, array) = unsafe { (schema.as_ref(), array.as_ref()) };
    if schema.release.is_null() || array.release.is_null() {
        return Err(PyValueError::new_err(
            "the Arrow column was already released",
        ));
    }
    Ok((schema, array))
}

/// The columns of a record batch, borrowed as a whole and handed out by number.
pub struct Batch<'a> {
    schema: &'a ArrowSchema,
    array: &'a ArrowArray,
}

impl<'a> Batch<'a> {
    pub fn from_capsules((schema, array): &'a Capsules<'_>) -> PyResult<Self> {
        let (schema, array) = structures(schema, array)?;
        let whole = unsafe { CStr::from_ptr(schema.format) }.to_bytes() == b"+s"
            && array.offset == 0
            && array.n_children == schema.n_children;
        if !whole {
            return Err(PyTypeError::new_err("not a record batch"));
        }
        Ok(Batch { schema, array })
    }

    pub fn rows(&self) -> usize {
        self.array.length as usize
    }

    pub fn column(&self, number: usize) -> PyResult<Column<'a>> {
        if number >= self.array.n_children as usize {
            return Err(PyValueError::new_err("the batch has no such column"));
        }
        let column = unsafe {
            let (schema, array) = (
                *self.schema.children.add(number),
                *self.array.children.add(number),
            );
            Column::from_structures(&*schema, &*array)?
        };
        if column.len() != self.rows() {
            return Err(PyValueError::new_err("columns of different length"));
        }
        Ok(column)
    }
}

/// The capsules of one column, as `__arrow_c_array__` gives them.
pub type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

pub fn borrow<'a>(columns: &'a [Capsules<'_>], rows: usize) -> PyResult<Vec<Column<'a>>> {
    let read: Vec<Column> = columns
        .iter()
        .map(|(s, a)| Column::from_capsules(s, a))
        .collect::<PyResult<_>>()?;
    if read.iter().any(|c| c.len() != rows) {
        return Err(PyValueError::new_err("columns of different length"));
    }
    Ok(read)
}
