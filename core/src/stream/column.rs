//! Arrow columns, read in place through the Arrow C data interface: cells as bytes, to hash or write out.
//!
//! A column is checked once, when it is borrowed: the number of buffers, null pointers, alignment, offsets, and that
//! nothing was released. The interface does not give the length of a buffer; there the exporter is trusted.

use std::ffi::{CStr, c_char, c_void};

/// A type as the Arrow C data interface describes it.
#[repr(C)]
pub struct ArrowSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut ArrowSchema,
    pub dictionary: *mut ArrowSchema,
    pub release: *const c_void,
    pub private_data: *mut c_void,
}

/// An array as the Arrow C data interface hands it over.
#[repr(C)]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *const *const c_void,
    pub children: *mut *mut ArrowArray,
    pub dictionary: *mut ArrowArray,
    pub release: *const c_void,
    pub private_data: *mut c_void,
}

/// Why a column cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The core does not read its type.
    Type(&'static str),
    /// It contradicts its type.
    Shape(&'static str),
}

pub type Readable<T> = Result<T, Unreadable>;

fn invalid<T>(message: &'static str) -> Readable<T> {
    Err(Unreadable::Shape(message))
}

enum Data<'a> {
    Text { offsets: &'a [i32], bytes: &'a [u8] },
    LongText { offsets: &'a [i64], bytes: &'a [u8] },
    Int(&'a [i64]),
    Natural(&'a [u64]),
    Float(&'a [f64]),
    Bool(&'a [u8]),
    Null,
}

/// One cell, in the types that a source can give.
#[derive(Debug, PartialEq)]
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
    /// One bit per cell from the start of the buffer; none if no cell is missing.
    valid: Option<&'a [u8]>,
    data: Data<'a>,
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 == 1
}

/// The buffers of one array.
struct Buffers<'a> {
    all: &'a [*const c_void],
    len: usize,
    offset: usize,
}

impl<'a> Buffers<'a> {
    /// # Safety
    /// `array` is a live structure of the Arrow C data interface, and stays so for `'a`.
    unsafe fn new(array: &'a ArrowArray, count: usize) -> Readable<Self> {
        let sizes = (usize::try_from(array.length), usize::try_from(array.offset));
        let (Ok(len), Ok(offset)) = sizes else {
            return invalid("the Arrow array has a negative length");
        };
        if array.n_buffers != count as i64 || (count > 0 && array.buffers.is_null()) {
            return invalid("the Arrow array lacks buffers");
        }
        let all = match count {
            0 => &[][..],
            // SAFETY: not null, and a live array has `n_buffers` pointers there.
            _ => unsafe { std::slice::from_raw_parts(array.buffers, count) },
        };
        Ok(Buffers { all, len, offset })
    }

    /// The values of a buffer from `from` on; an empty view does not touch the buffer.
    ///
    /// # Safety
    /// Unless null, the buffer holds `from + len` values of type T that do not change for `'a`.
    unsafe fn view<T>(&self, number: usize, from: usize, len: usize) -> Readable<&'a [T]> {
        if len == 0 {
            return Ok(&[]);
        }
        let start = self.all[number].cast::<T>();
        let bytes = from.checked_add(len).map(|n| n.checked_mul(size_of::<T>()));
        if !matches!(bytes, Some(Some(n)) if n <= isize::MAX as usize) {
            return invalid("the Arrow array is too long");
        }
        if start.is_null() || !start.is_aligned() {
            return invalid("an Arrow buffer is missing or not aligned");
        }
        // SAFETY: not null, aligned, no longer than an allocation can be; the caller guarantees the rest.
        Ok(unsafe { std::slice::from_raw_parts(start.add(from), len) })
    }

    /// One bit per cell, those before the offset included.
    ///
    /// # Safety
    /// As for `view`, with bits.
    unsafe fn bits(&self, number: usize) -> Readable<&'a [u8]> {
        let bits = if self.len > 0 {
            self.offset + self.len
        } else {
            0
        };
        // SAFETY: the caller guarantees it.
        unsafe { self.view(number, 0, bits.div_ceil(8)) }
    }

    /// Offsets of text and the bytes they point into.
    ///
    /// # Safety
    /// As for `view`: buffer 1 holds one offset more than there are cells, buffer 2 the bytes up to the last offset.
    unsafe fn text<T: Copy + PartialOrd + TryInto<usize>>(&self) -> Readable<(&'a [T], &'a [u8])> {
        let count = self.len + usize::from(self.len > 0);
        // SAFETY: the caller guarantees it.
        let offsets: &[T] = unsafe { self.view(1, self.offset, count) }?;
        let end = |at: Option<&T>| at.map_or(Some(0), |&x| x.try_into().ok());
        let (Some(_), Some(end)) = (end(offsets.first()), end(offsets.last())) else {
            return invalid("the Arrow array has a negative offset");
        };
        if !offsets.is_sorted_by(|a, b| a <= b) {
            return invalid("the offsets of the Arrow array decrease");
        }
        // SAFETY: the caller guarantees it.
        Ok((offsets, unsafe { self.view(2, 0, end) }?))
    }
}

impl<'a> Column<'a> {
    /// Borrows a column of text, 64-bit numbers, booleans or nulls.
    ///
    /// # Safety
    /// Both are live structures of the Arrow C data interface that describe one array; they and its buffers stay as they
    /// are for `'a`.
    pub unsafe fn new(schema: &'a ArrowSchema, array: &'a ArrowArray) -> Readable<Self> {
        if schema.release.is_null() || array.release.is_null() {
            return invalid("the Arrow column was already released");
        }
        // The codes of a dictionary would pass as numbers.
        if !schema.dictionary.is_null() || !array.dictionary.is_null() {
            return Err(Unreadable::Type(
                "dictionary columns are not supported: decode the column first",
            ));
        }
        // SAFETY: the caller guarantees it.
        let format = unsafe { format(schema) }?;
        let count = match format {
            b"u" | b"U" => 3,
            b"l" | b"L" | b"g" | b"b" => 2,
            b"n" => 0,
            _ => {
                let message = "a column of a type that the core does not read";
                return Err(Unreadable::Type(message));
            }
        };
        // SAFETY: the caller guarantees it; the format says what the buffers hold.
        unsafe {
            let buffers = Buffers::new(array, count)?;
            Ok(Column {
                len: buffers.len,
                offset: buffers.offset,
                valid: valid(array, &buffers)?,
                data: data(format, &buffers)?,
            })
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no text is empty or has a space, a period or a non-ASCII character; checked as a whole, so it may
    /// wrongly say no.
    pub fn is_plain(&self) -> bool {
        let text = match self.data {
            Data::Text { offsets, bytes } => offsets
                .first()
                .map_or(bytes, |&start| &bytes[start as usize..]),
            Data::LongText { offsets, bytes } => offsets
                .first()
                .map_or(bytes, |&start| &bytes[start as usize..]),
            _ => return true,
        };
        let plain = text.iter().fold(true, |plain, byte| {
            plain & matches!(byte, b'!'..=b'-' | b'/'..=b'~')
        });
        plain && (0..self.len).all(|row| self.cell(row) != Cell::Text(b""))
    }

    pub fn cell(&self, row: usize) -> Cell<'a> {
        if self.valid.is_some_and(|bits| !bit(bits, self.offset + row)) {
            return Cell::Null;
        }
        match self.data {
            Data::Text { offsets, bytes } => {
                Cell::Text(&bytes[offsets[row] as usize..offsets[row + 1] as usize])
            }
            Data::LongText { offsets, bytes } => {
                Cell::Text(&bytes[offsets[row] as usize..offsets[row + 1] as usize])
            }
            Data::Int(numbers) => Cell::Int(numbers[row]),
            // A number beyond 63 bits becomes a float, which tells the caller that it cannot be kept exactly.
            Data::Natural(numbers) => {
                i64::try_from(numbers[row]).map_or(Cell::Float(numbers[row] as f64), Cell::Int)
            }
            Data::Float(numbers) => Cell::Float(numbers[row]),
            Data::Bool(bits) => Cell::Bool(bit(bits, self.offset + row)),
            Data::Null => Cell::Null,
        }
    }
}

/// # Safety
/// `schema` is live for `'a`.
unsafe fn format(schema: &ArrowSchema) -> Readable<&[u8]> {
    if schema.format.is_null() {
        return invalid("the Arrow type lacks its format");
    }
    // SAFETY: not null, and the format of a live schema is a C string.
    Ok(unsafe { CStr::from_ptr(schema.format) }.to_bytes())
}

/// # Safety
/// As for `Column::new`.
unsafe fn valid<'a>(array: &ArrowArray, buffers: &Buffers<'a>) -> Readable<Option<&'a [u8]>> {
    match buffers.all.first() {
        None => Ok(None),
        Some(_) if array.null_count == 0 => Ok(None),
        // No count and no bits: nothing is missing.
        Some(bits) if bits.is_null() && array.null_count < 0 => Ok(None),
        // SAFETY: the first buffer of every type with buffers that is read here holds the validity bits.
        Some(_) => unsafe { buffers.bits(0) }.map(Some),
    }
}

/// # Safety
/// As for `Column::new`.
unsafe fn data<'a>(format: &[u8], buffers: &Buffers<'a>) -> Readable<Data<'a>> {
    let (offset, len) = (buffers.offset, buffers.len);
    // SAFETY: the caller guarantees it; the buffers are read as the format says.
    Ok(unsafe {
        match format {
            b"u" => {
                let (offsets, bytes) = buffers.text()?;
                Data::Text { offsets, bytes }
            }
            b"U" => {
                let (offsets, bytes) = buffers.text()?;
                Data::LongText { offsets, bytes }
            }
            b"l" => Data::Int(buffers.view(1, offset, len)?),
            b"L" => Data::Natural(buffers.view(1, offset, len)?),
            b"g" => Data::Float(buffers.view(1, offset, len)?),
            b"b" => Data::Bool(buffers.bits(1)?),
            _ => Data::Null,
        }
    })
}

/// The columns of a record batch, borrowed together and returned by number.
pub struct Batch<'a> {
    schemas: &'a [*mut ArrowSchema],
    arrays: &'a [*mut ArrowArray],
    rows: usize,
}

impl<'a> Batch<'a> {
    /// # Safety
    /// As for `Column::new`, the children of both structures included.
    pub unsafe fn new(schema: &'a ArrowSchema, array: &'a ArrowArray) -> Readable<Self> {
        if schema.release.is_null() || array.release.is_null() {
            return invalid("the Arrow batch was already released");
        }
        // SAFETY: the caller guarantees it.
        let whole = unsafe { format(schema) }? == b"+s"
            && array.offset == 0
            && array.null_count == 0
            && array.n_children == schema.n_children;
        let sizes = (
            usize::try_from(array.length),
            usize::try_from(array.n_children),
        );
        let (true, (Ok(rows), Ok(count))) = (whole, sizes) else {
            return Err(Unreadable::Type("not a record batch"));
        };
        if count > 0 && (schema.children.is_null() || array.children.is_null()) {
            return invalid("the Arrow batch lacks columns");
        }
        let (schemas, arrays) = match count {
            0 => (&[][..], &[][..]),
            // SAFETY: neither is null, and live structures have `n_children` pointers there.
            _ => unsafe {
                (
                    std::slice::from_raw_parts(schema.children.cast_const(), count),
                    std::slice::from_raw_parts(array.children.cast_const(), count),
                )
            },
        };
        Ok(Batch {
            schemas,
            arrays,
            rows,
        })
    }

    pub fn column(&self, number: usize) -> Readable<Column<'a>> {
        let (Some(schema), Some(array)) = (self.schemas.get(number), self.arrays.get(number))
        else {
            return invalid("the batch has no such column");
        };
        // SAFETY: the caller of `new` guarantees that the children live for `'a`; null ones are rejected.
        let column = unsafe {
            match (schema.as_ref(), array.as_ref()) {
                (Some(schema), Some(array)) => Column::new(schema, array)?,
                _ => return invalid("the Arrow batch lacks columns"),
            }
        };
        if column.len() != self.rows {
            return invalid("the columns differ in length");
        }
        Ok(column)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    fn refusal(sample: &Sample) -> Unreadable {
        sample.column().err().expect("an invalid column")
    }

    #[test]
    fn cells_are_read_unchanged() {
        let words = Sample::text(&[Some("ab"), None, Some(""), Some("é")]);
        let column = words.column().unwrap();
        assert_eq!(column.cell(0), Cell::Text(b"ab"));
        assert_eq!(column.cell(1), Cell::Null);
        assert_eq!(column.cell(2), Cell::Text(b""));
        assert_eq!(column.cell(3), Cell::Text("é".as_bytes()));
        let numbers = Sample::ints(&[5, -7]);
        assert_eq!(numbers.column().unwrap().cell(1), Cell::Int(-7));
        let bits = Sample::bools(0b101, 3);
        let column = bits.column().unwrap();
        assert_eq!(column.cell(1), Cell::Bool(false));
        assert_eq!(column.cell(2), Cell::Bool(true));
    }

    #[test]
    fn a_slice_begins_at_its_offset() {
        let mut words = Sample::text(&[Some("ab"), None, Some("c")]);
        (words.array.offset, words.array.length) = (1, 2);
        let column = words.column().unwrap();
        assert_eq!(column.cell(0), Cell::Null);
        assert_eq!(column.cell(1), Cell::Text(b"c"));
    }

    #[test]
    fn plain_text_has_no_space_no_period_and_only_ascii() {
        let plain = |text: &[Option<&str>]| Sample::text(text).column().unwrap().is_plain();
        assert!(plain(&[Some("A-7/~!"), None]) && plain(&[]));
        for other in ["", " 7", "7.0", "\u{ff17}", "7\t", "7\u{7f}"] {
            assert!(!plain(&[Some("7"), Some(other)]));
        }
        let mut words = Sample::text(&[Some("7.0"), Some("7"), Some("8.0")]);
        (words.array.offset, words.array.length) = (1, 1);
        assert!(words.column().unwrap().is_plain());
        assert!(Sample::ints(&[7]).column().unwrap().is_plain());
    }

    #[test]
    fn an_empty_column_needs_no_buffers() {
        let mut words = Sample::text(&[]);
        words.pointers.fill(std::ptr::null());
        assert_eq!(words.column().unwrap().len(), 0);
    }

    #[test]
    fn a_released_column_is_rejected_untouched() {
        let mut numbers = Sample::ints(&[1]);
        numbers.array.release = std::ptr::null();
        numbers.pointers.clear();
        assert!(matches!(refusal(&numbers), Unreadable::Shape(m) if m.contains("released")));
        let mut numbers = Sample::ints(&[1]);
        numbers.schema.release = std::ptr::null();
        assert!(matches!(refusal(&numbers), Unreadable::Shape(m) if m.contains("released")));
    }

    #[test]
    fn missing_and_invalid_buffers_are_rejected() {
        let invalid = |change: fn(&mut Sample)| {
            let mut words = Sample::text(&[Some("ab"), None, Some("cd")]);
            change(&mut words);
            assert!(matches!(refusal(&words), Unreadable::Shape(_)));
        };
        invalid(|s| s.array.length = -1);
        invalid(|s| s.array.offset = -1);
        invalid(|s| s.array.n_buffers = 2);
        invalid(|s| s.schema.format = std::ptr::null());
        invalid(|s| s.pointers[0] = std::ptr::null());
        invalid(|s| s.pointers[1] = std::ptr::null());
        invalid(|s| s.pointers[2] = std::ptr::null());
        invalid(|s| s.pointers[1] = s.pointers[1].wrapping_byte_add(1));
        invalid(|s| s.offsets[1] = 99);
        invalid(|s| s.offsets[0] = -1);
    }

    #[test]
    fn other_types_and_dictionaries_are_rejected() {
        let mut numbers = Sample::ints(&[1]);
        numbers.schema.format = c"c".as_ptr();
        assert!(matches!(refusal(&numbers), Unreadable::Type(_)));
        let mut codes = Sample::ints(&[1]);
        codes.schema.dictionary = std::ptr::dangling_mut();
        assert!(matches!(refusal(&codes), Unreadable::Type(_)));
    }
}
