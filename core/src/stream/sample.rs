//! Hand-made Arrow arrays, and written text, for the tests of this folder.

use std::ffi::{CStr, c_void};

use super::column::{ArrowArray, ArrowSchema, Column, Readable};

pub struct Sample {
    pub schema: ArrowSchema,
    pub array: ArrowArray,
    pub pointers: Vec<*const c_void>,
    pub offsets: Vec<i32>,
    bytes: Vec<u8>,
    valid: Vec<u8>,
    ints: Vec<i64>,
}

impl Sample {
    fn new(format: &'static CStr, length: usize) -> Self {
        Sample {
            schema: ArrowSchema {
                format: format.as_ptr(),
                name: std::ptr::null(),
                metadata: std::ptr::null(),
                flags: 0,
                n_children: 0,
                children: std::ptr::null_mut(),
                dictionary: std::ptr::null_mut(),
                release: std::ptr::dangling(),
                private_data: std::ptr::null_mut(),
            },
            array: ArrowArray {
                length: length as i64,
                null_count: 0,
                offset: 0,
                n_buffers: 0,
                n_children: 0,
                buffers: std::ptr::null(),
                children: std::ptr::null_mut(),
                dictionary: std::ptr::null_mut(),
                release: std::ptr::dangling(),
                private_data: std::ptr::null_mut(),
            },
            pointers: vec![],
            offsets: vec![0],
            bytes: vec![],
            valid: vec![0; length.div_ceil(8)],
            ints: vec![],
        }
    }

    pub fn text(cells: &[Option<&str>]) -> Self {
        let mut sample = Self::new(c"u", cells.len());
        for (row, cell) in cells.iter().enumerate() {
            sample.valid[row / 8] |= u8::from(cell.is_some()) << (row % 8);
            sample.array.null_count += i64::from(cell.is_none());
            sample.bytes.extend(cell.unwrap_or_default().as_bytes());
            sample.offsets.push(sample.bytes.len() as i32);
        }
        let (valid, offsets) = (sample.valid.as_ptr(), sample.offsets.as_ptr());
        let bytes = sample.bytes.as_ptr();
        sample.point(&[valid.cast(), offsets.cast(), bytes.cast()])
    }

    pub fn ints(cells: &[i64]) -> Self {
        let mut sample = Self::new(c"l", cells.len());
        sample.ints = cells.to_vec();
        let ints = sample.ints.as_ptr();
        sample.point(&[std::ptr::null(), ints.cast()])
    }

    pub fn bools(bits: u8, cells: usize) -> Self {
        let mut sample = Self::new(c"b", cells);
        sample.bytes = vec![bits];
        let bytes = sample.bytes.as_ptr();
        sample.point(&[std::ptr::null(), bytes.cast()])
    }

    fn point(mut self, pointers: &[*const c_void]) -> Self {
        self.array.n_buffers = pointers.len() as i64;
        self.pointers = pointers.to_vec();
        self.array.buffers = self.pointers.as_ptr();
        self
    }

    pub fn column(&self) -> Readable<Column<'_>> {
        // SAFETY: the vectors behind the pointers are borrowed as long as the column is.
        unsafe { Column::new(&self.schema, &self.array) }
    }
}

pub fn text_of(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}
