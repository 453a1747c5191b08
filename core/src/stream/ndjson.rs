//! The wire format of a stream: one JSON object per line, written directly from Arrow columns.

use super::column::{Cell, Column};
use super::json_cell::{TOKEN, number, quote, value};

/// Lines from which the length of the others is estimated.
const SAMPLE: usize = 64;

/// Characters of a group's published name: a letter and 64 bits in hexadecimal.
const NAME: usize = 17;

fn name(out: &mut Vec<u8>, letter: u8, id: u64) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = [letter; NAME];
    for (i, digit) in text[1..].iter_mut().enumerate() {
        *digit = HEX[(id >> (60 - 4 * i) & 15) as usize];
    }
    out.extend_from_slice(&text);
}

fn group_id(out: &mut Vec<u8>, id: u64) {
    out.push(b'"');
    name(out, b'g', id);
    out.push(b'"');
}

/// Bytes that are copied at once, needed or not: faster than a branch on the length.
const AT_ONCE: usize = 32;

/// A piece of a line that occurs often.
struct Piece {
    bytes: Vec<u8>,
    padded: [u8; AT_ONCE],
}

impl Piece {
    fn new(bytes: Vec<u8>) -> Self {
        let mut padded = [0; AT_ONCE];
        let size = bytes.len().min(AT_ONCE);
        padded[..size].copy_from_slice(&bytes[..size]);
        Piece { bytes, padded }
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        let size = self.bytes.len();
        if size > AT_ONCE {
            return out.extend_from_slice(&self.bytes);
        }
        let end = out.len() + size;
        out.extend_from_slice(&self.padded);
        out.truncate(end);
    }
}

/// Writes the lines of groups and tuples; knows the names of the columns and the labels of the values.
pub struct LineWriter {
    /// `"name":` per column, quasi-identifiers first.
    names: Vec<Vec<u8>>,
    quasi: usize,
    labels: Vec<Vec<u8>>,
    /// The labels with a comma after each.
    list_items: Vec<Piece>,
}

/// Opened groups with their candidates in compressed rows; group i is announced before row `at[i]`.
pub struct OpenedGroups<'a> {
    pub ids: &'a [u64],
    pub at: &'a [i64],
    pub offsets: &'a [i64],
    pub codes: &'a [i32],
    pub counts: &'a [i32],
}

impl OpenedGroups<'_> {
    fn is_consistent(&self) -> bool {
        self.offsets.len() == self.ids.len() + 1
            && self.at.len() == self.ids.len()
            && self.codes.len() == self.counts.len()
            && self.counts.iter().all(|&n| n >= 0)
            && self.offsets[0] == 0
            && self.offsets.is_sorted()
            && self.offsets[self.ids.len()] as usize == self.codes.len()
    }
}

/// Veiled records as columns: the stratum of the prior, the event of the person, l candidates each, and optional
/// pseudonyms.
pub struct VeiledRecords<'a> {
    pub seqs: &'a [u64],
    pub strata: &'a [u32],
    pub events: &'a [u32],
    pub candidates: &'a [u16],
    pub persons: Option<&'a [u64]>,
}

impl LineWriter {
    /// Columns by name, the first `quasi` of them quasi-identifiers.
    pub fn new(names: &[String], quasi: usize) -> Result<Self, &'static str> {
        if quasi > names.len() {
            return Err("more quasi-identifiers than columns");
        }
        let escape = |name: &String| {
            let mut out = Vec::new();
            quote(&mut out, name.as_bytes());
            out.push(b':');
            out
        };
        Ok(LineWriter {
            names: names.iter().map(escape).collect(),
            quasi,
            labels: Vec::new(),
            list_items: Vec::new(),
        })
    }

    /// Sets the JSON text of every candidate value, by code.
    pub fn set_labels(&mut self, labels: Vec<Vec<u8>>) {
        let list_items = labels.iter().map(|label| [label, &b","[..]].concat());
        self.list_items = list_items.map(Piece::new).collect();
        self.labels = labels;
    }

    /// Whether every tuple has its cells and its group, and every candidate of a group a label.
    pub fn fits(
        &self,
        columns: &[Field],
        seqs: &[u64],
        groups: &[u64],
        opened: &OpenedGroups,
    ) -> bool {
        let has_label = |&code: &i32| code >= 0 && (code as usize) < self.labels.len();
        columns.len() == self.names.len()
            && columns.iter().all(|field| field.fits(seqs.len()))
            && groups.len() == seqs.len()
            && opened.is_consistent()
            && opened.codes.iter().all(has_label)
    }

    /// The lines of one batch, each group before its first tuple.
    pub fn write(
        &self,
        columns: &[Field],
        seqs: &[u64],
        groups: &[u64],
        opened: &OpenedGroups,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(seqs.len() * 200);
        let mut next = 0;
        for row in 0..=seqs.len() {
            while next < opened.ids.len() && opened.at[next] <= row as i64 {
                let span = opened.offsets[next] as usize..opened.offsets[next + 1] as usize;
                let (codes, counts) = (&opened.codes[span.clone()], &opened.counts[span]);
                self.group(&mut out, opened.ids[next], codes, counts);
                next += 1;
            }
            if row < seqs.len() {
                self.tuple(&mut out, groups[row], seqs[row], columns, row);
            }
        }
        out
    }

    /// Whether every record has its cells, and every candidate a label.
    pub fn fits_veil(&self, columns: &[Field], veiled: &VeiledRecords) -> bool {
        let size = veiled.seqs.len();
        let has_label = |&code: &u16| usize::from(code) < self.labels.len();
        columns.len() == self.names.len()
            && columns.iter().all(|field| field.fits(size))
            && veiled.strata.len() == size
            && veiled.events.len() == size
            && veiled.persons.is_none_or(|persons| persons.len() == size)
            && veiled.candidates.len() % size.max(1) == 0
            && veiled.candidates.iter().all(has_label)
    }

    /// Appends the lines of veiled records.
    pub fn write_veil(&self, out: &mut Vec<u8>, columns: &[Field], veiled: &VeiledRecords) {
        let size = veiled.seqs.len();
        let width = veiled.candidates.len() / size.max(1);
        let fields: Vec<Cells> = self.names.iter().zip(columns).map(Cells::new).collect();
        let (quasi, plain) = fields.split_at(self.quasi);
        for (row, &seq) in veiled.seqs.iter().enumerate() {
            if row == SAMPLE {
                // Lines have similar lengths: reserve for the length of the first ones and a little more, so that
                // memory is not moved.
                out.reserve(out.len() / SAMPLE * (size - SAMPLE) / 16 * 17);
            }
            out.extend_from_slice(b"{\"type\":\"record\",\"seq\":");
            number(out, seq);
            out.extend_from_slice(b",\"quasi\":{");
            list(out, quasi, row);
            out.extend_from_slice(b"},\"plain\":{");
            list(out, plain, row);
            if let Some(persons) = veiled.persons {
                out.extend_from_slice(b"},\"person\":\"");
                name(out, b'p', persons[row]);
                out.extend_from_slice(b"\",\"stratum\":");
            } else {
                out.extend_from_slice(b"},\"stratum\":");
            }
            number(out, veiled.strata[row].into());
            out.extend_from_slice(b",\"event\":");
            number(out, veiled.events[row].into());
            out.extend_from_slice(b",\"candidates\":[");
            for &code in &veiled.candidates[row * width..][..width] {
                self.list_items[usize::from(code)].write(out);
            }
            out.truncate(out.len() - usize::from(width > 0));
            out.extend_from_slice(b"]}\n");
        }
    }

    fn object(&self, out: &mut Vec<u8>, columns: &[Field], from: usize, to: usize, row: usize) {
        out.push(b'{');
        let fields = self.names.iter().zip(columns);
        for (i, (name, field)) in fields.take(to).skip(from).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            value(out, &field.cell(row), field.form);
        }
        out.push(b'}');
    }

    fn group(&self, out: &mut Vec<u8>, id: u64, codes: &[i32], counts: &[i32]) {
        out.extend_from_slice(b"{\"type\":\"group\",\"group\":");
        group_id(out, id);
        out.extend_from_slice(b",\"candidates\":[");
        for (i, (&code, &count)) in codes.iter().zip(counts).enumerate() {
            out.extend_from_slice(if i > 0 { b",[" } else { b"[" });
            out.extend_from_slice(&self.labels[code as usize]);
            out.push(b',');
            number(out, count as u64);
            out.push(b']');
        }
        out.extend_from_slice(b"]}\n");
    }

    fn tuple(&self, out: &mut Vec<u8>, id: u64, seq: u64, columns: &[Field], row: usize) {
        out.extend_from_slice(b"{\"type\":\"tuple\",\"group\":");
        group_id(out, id);
        out.extend_from_slice(b",\"seq\":");
        number(out, seq);
        out.extend_from_slice(b",\"quasi\":");
        self.object(out, columns, 0, self.quasi, row);
        out.extend_from_slice(b",\"plain\":");
        self.object(out, columns, self.quasi, self.names.len(), row);
        out.extend_from_slice(b"}\n");
    }
}

/// The cells of a column, each with its name before it; written out in advance if they repeat.
struct Cells<'a> {
    name: &'a [u8],
    field: &'a Field<'a>,
    pieces: Vec<Piece>,
}

impl<'a> Cells<'a> {
    fn new((name, field): (&'a Vec<u8>, &'a Field<'a>)) -> Self {
        let labels = field.column.len();
        let often = field.codes.is_some_and(|codes| codes.len() > labels);
        let piece = |label: usize| {
            let mut out = name.clone();
            value(&mut out, &field.column.cell(label), field.form);
            Piece::new(out)
        };
        let pieces = (0..if often { labels } else { 0 }).map(piece).collect();
        Cells {
            name,
            field,
            pieces,
        }
    }

    fn write(&self, out: &mut Vec<u8>, row: usize) {
        match self.field.codes {
            Some(codes) if !self.pieces.is_empty() => self.pieces[codes[row] as usize].write(out),
            _ => {
                out.extend_from_slice(self.name);
                value(out, &self.field.cell(row), self.field.form);
            }
        }
    }
}

fn list(out: &mut Vec<u8>, fields: &[Cells], row: usize) {
    for (i, cells) in fields.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        cells.write(out, row);
    }
}

/// A column, and the form of its text: text, a number if it is one, or JSON.
pub struct Field<'a> {
    pub column: Column<'a>,
    pub form: u8,
    /// The cell of each record, if the column holds labels.
    pub codes: Option<&'a [i32]>,
}

impl<'a> Field<'a> {
    pub fn new(column: Column<'a>, form: u8) -> Self {
        let codes = None;
        Field {
            column,
            form,
            codes,
        }
    }

    /// Whether it has a cell for each of this many records.
    fn fits(&self, records: usize) -> bool {
        let size = self.column.len();
        let cells = self.codes.map_or(size == records, |codes| {
            let inside = |&code: &i32| usize::try_from(code).is_ok_and(|code| code < size);
            codes.len() == records && codes.iter().all(inside)
        });
        cells && self.form <= TOKEN
    }

    fn cell(&self, record: usize) -> Cell<'a> {
        let row = self.codes.map_or(record, |codes| codes[record] as usize);
        self.column.cell(row)
    }
}

/// The published names of groups, 17 characters each.
pub fn group_names(ids: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ids.len() * NAME);
    ids.iter().for_each(|&id| name(&mut out, b'g', id));
    out
}

#[cfg(test)]
mod tests {
    use super::super::json_cell::TEXT;
    use super::super::sample::{Sample, text_of};
    use super::*;

    #[test]
    fn a_group_precedes_its_first_tuple() {
        let mut lines = LineWriter::new(&["zip".into(), "note".into()], 1).unwrap();
        lines.set_labels(vec![b"\"x\"".to_vec(), b"null".to_vec()]);
        let (zips, notes) = (Sample::ints(&[7, 8]), Sample::text(&[Some("a\"b"), None]));
        let columns = [
            Field::new(zips.column().unwrap(), TEXT),
            Field::new(notes.column().unwrap(), TEXT),
        ];
        let mut opened = OpenedGroups {
            ids: &[255],
            at: &[1],
            offsets: &[0, 2],
            codes: &[0, 1],
            counts: &[1, 2],
        };
        let (seqs, groups) = ([3, 4], [1, 255]);
        assert!(lines.fits(&columns, &seqs, &groups, &opened));
        let text = String::from_utf8(lines.write(&columns, &seqs, &groups, &opened)).unwrap();
        let expected = [
            r#"{"type":"tuple","group":"g0000000000000001","seq":3,"quasi":{"zip":7},"plain":{"note":"a\"b"}}"#,
            r#"{"type":"group","group":"g00000000000000ff","candidates":[["x",1],[null,2]]}"#,
            r#"{"type":"tuple","group":"g00000000000000ff","seq":4,"quasi":{"zip":8},"plain":{"note":null}}"#,
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        opened.codes = &[0, 2];
        assert!(!lines.fits(&columns, &seqs, &groups, &opened), "no label");
        opened = OpenedGroups {
            offsets: &[1, 2],
            codes: &[0, 1],
            ..opened
        };
        assert!(!lines.fits(&columns, &seqs, &groups, &opened), "an offset");
    }

    #[test]
    fn a_veiled_record_is_one_line() {
        let mut lines = LineWriter::new(&["zip".into(), "note".into()], 1).unwrap();
        lines.set_labels(vec![b"\"x\"".to_vec(), b"\"y\"".to_vec()]);
        let (zips, notes) = (Sample::ints(&[7]), Sample::text(&[None]));
        let mut columns = [
            Field::new(zips.column().unwrap(), TEXT),
            Field::new(notes.column().unwrap(), TEXT),
        ];
        let mut veiled = VeiledRecords {
            seqs: &[3],
            strata: &[2],
            events: &[0],
            candidates: &[0, 1, 1],
            persons: None,
        };
        let text = |columns: &[Field], veiled: &VeiledRecords| {
            assert!(lines.fits_veil(columns, veiled));
            text_of(|out| lines.write_veil(out, columns, veiled))
        };
        let expected = r#"{"type":"record","seq":3,"quasi":{"zip":7},"plain":{"note":null},"stratum":2,"event":0,"candidates":["x","y","y"]}"#;
        assert_eq!(text(&columns, &veiled).trim_end(), expected);
        veiled.persons = Some(&[255]);
        assert!(text(&columns, &veiled).contains(r#","person":"p00000000000000ff","stratum":2,"#));
        veiled.candidates = &[0, 1, 2];
        assert!(!lines.fits_veil(&columns, &veiled), "no label");
        veiled.candidates = &[0, 1, 1];
        let labels = Sample::text(&[Some("[0, 9]"), Some("10+")]);
        for (codes, fits) in [
            (&[1][..], true),
            (&[2], false),
            (&[-1], false),
            (&[0, 0], false),
        ] {
            let codes = Some(codes);
            columns[0] = Field {
                column: labels.column().unwrap(),
                form: TEXT,
                codes,
            };
            assert_eq!(lines.fits_veil(&columns, &veiled), fits);
            assert!(!fits || text(&columns, &veiled).contains(r#"{"zip":"10+"}"#));
        }
    }

    #[test]
    fn groups_have_names() {
        assert_eq!(group_names(&[1, 2]), b"g0000000000000001g0000000000000002");
    }
}
