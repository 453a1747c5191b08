//! Records as lines of CSV, every cell as text: an empty cell is missing, a quoted empty cell is empty text.
//!
//! A quote opens only at the start of a cell. Within quotes, two quotes mean one, and delimiters and line ends are
//! text. Text after the closing quote up to the next delimiter belongs to the cell. Lines end with \n, \r or both;
//! empty lines are no records. An incomplete record at the end of a block is left for the next block, so that no block
//! is cut inside a cell.

use super::rows::{Kind, Rows};
use super::rules::{Reason, Rules};

const QUOTE: u8 = b'"';
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
/// Records from which the number of the others is estimated.
const SAMPLE: usize = 64;

/// The layout of the lines of an input: the column of each cell.
pub struct Layout {
    pub delimiter: u8,
    pub columns: Vec<usize>,
}

/// Iterates over the cells of some lines.
struct Walk<'a> {
    data: &'a [u8],
    at: usize,
    delimiter: u8,
}

/// What follows a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Cell,
    Line,
    /// The data end, and perhaps the line with them.
    End,
    /// The data end within quotes.
    Open,
}

/// The text between quotes, with a flag for doubled quotes, and the text outside.
struct Cell<'a> {
    inside: Option<(&'a [u8], bool)>,
    outside: &'a [u8],
}

/// The number of bytes before the first of three.
#[inline]
fn until(data: &[u8], bytes: [u8; 3]) -> usize {
    let mut at = 0;
    while let Some(word) = data[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let flags = bytes.iter().fold(0, |flags, &byte| {
            let x = word ^ (ONES * u64::from(byte));
            flags | (x.wrapping_sub(ONES) & !x & HIGHS)
        });
        if flags != 0 {
            return at + (flags.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = &data[at..];
    let place = rest.iter().position(|byte| bytes.contains(byte));
    at + place.unwrap_or(rest.len())
}

impl<'a> Walk<'a> {
    /// Skips empty lines.
    fn skip_empty(&mut self) {
        while matches!(self.data.get(self.at), Some(b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    #[inline]
    fn cell(&mut self) -> (Cell<'a>, After) {
        let mut inside = None;
        if self.data.get(self.at) == Some(&QUOTE) {
            inside = self.inside_quotes();
            if inside.is_none() {
                let outside = b"";
                return (Cell { inside, outside }, After::Open);
            }
        }
        let rest = &self.data[self.at..];
        let size = until(rest, [self.delimiter, b'\n', b'\r']);
        let after = match rest.get(size) {
            None => After::End,
            // Whether another byte belongs to the line end is known only with the next block.
            Some(b'\r') if size + 1 == rest.len() => After::End,
            Some(b'\n' | b'\r') => After::Line,
            Some(_) => After::Cell,
        };
        let pair = after == After::Line && rest[size..].starts_with(b"\r\n");
        self.at = (self.at + size + 1 + usize::from(pair)).min(self.data.len());
        let outside = &rest[..size];
        (Cell { inside, outside }, after)
    }

    /// The quoted part of a cell and whether it has doubled quotes; none if it has no end.
    fn inside_quotes(&mut self) -> Option<(&'a [u8], bool)> {
        let rest = &self.data[self.at + 1..];
        let (mut size, mut doubled) = (0, false);
        loop {
            size += until(&rest[size..], [QUOTE; 3]);
            if size == rest.len() {
                self.at = self.data.len();
                return None;
            }
            if rest.get(size + 1) != Some(&QUOTE) {
                self.at += size + 2;
                return Some((&rest[..size], doubled));
            }
            doubled = true;
            size += 2;
        }
    }
}

fn push_quoted_text(out: &mut Vec<u8>, inside: &[u8]) {
    let mut rest = inside;
    while let Some(at) = rest.iter().position(|&byte| byte == QUOTE) {
        out.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
}

/// The records of some lines, and their length in bytes; at the end of the input (`last`) a line needs no line end.
pub fn lines(rules: &Rules, layout: &Layout, data: &[u8], last: bool) -> (Rows, usize) {
    let utf8 = std::str::from_utf8(data).is_ok();
    let mut rows = Rows::new(rules.names.len());
    let delimiter = layout.delimiter;
    let mut walk = Walk {
        data,
        at: 0,
        delimiter,
    };
    walk.skip_empty();
    while walk.at < data.len() {
        let start = walk.at;
        let (count, after) = record(&mut rows, layout, &mut walk);
        if after == After::Open || (after == After::End && !last) {
            rows.retract();
            return (rows, start);
        }
        let line = trim(&data[start..walk.at]);
        let text = utf8 || std::str::from_utf8(line).is_ok();
        rows.settle(rules, fault(text, count, layout.columns.len()), line);
        walk.skip_empty();
        if rows.total == SAMPLE {
            rows.reserve((data.len() - walk.at) / (walk.at / SAMPLE));
        }
    }
    (rows, data.len())
}

fn fault(text: bool, cells: usize, width: usize) -> Option<Reason> {
    match (text, cells == width) {
        (false, _) => Some("not UTF-8".into()),
        (true, false) => Some(format!("{cells} cells where the header has {width}")),
        (true, true) => None,
    }
}

fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Stores the cells of a record; returns their number, and what follows.
fn record(rows: &mut Rows, layout: &Layout, walk: &mut Walk) -> (usize, After) {
    let mut count = 0;
    loop {
        let (cell, after) = walk.cell();
        if let Some(&column) = layout.columns.get(count) {
            lay(rows, column, &cell);
        }
        count += 1;
        if after != After::Cell {
            return (count, after);
        }
    }
}

#[inline]
fn lay(rows: &mut Rows, column: usize, cell: &Cell) {
    match (cell.inside, cell.outside) {
        (None, b"") => rows.push(column, b"", Kind::Null),
        (None, outside) => rows.push(column, outside, Kind::Text),
        (Some((inside, false)), b"") => rows.push(column, inside, Kind::Text),
        (Some((inside, _)), outside) => rows.push_with(column, |out| {
            push_quoted_text(out, inside);
            out.extend_from_slice(outside);
            Kind::Text
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &str, last: bool) -> (Rows, usize) {
        let rules = Rules {
            names: vec!["a".into(), "b".into()],
            published: vec![true; 2],
            released: vec![true; 2],
            required: vec![],
            ..Rules::default()
        };
        let layout = Layout {
            delimiter: b',',
            columns: vec![1, 0],
        };
        lines(&rules, &layout, data.as_bytes(), last)
    }

    fn cells(data: &str) -> Vec<[Option<String>; 2]> {
        let (rows, size) = read(data, true);
        assert!(rows.bad.is_empty() && size == data.len(), "{data}");
        let cell = |column: usize, row: usize| {
            let texts = &rows.columns[column];
            let text = || String::from_utf8(texts.cell(row).to_vec()).unwrap();
            (texts.kinds[row] != Kind::Null).then(text)
        };
        (0..rows.rows.len())
            .map(|row| [cell(1, row), cell(0, row)])
            .collect()
    }

    #[test]
    fn quoted_cells_are_read_correctly() {
        let some = |text: &str| Some(text.to_string());
        assert_eq!(cells("x,y\n"), [[some("x"), some("y")]]);
        assert_eq!(
            cells("\r\n\nx,\r\"\",y"),
            [[some("x"), None], [some(""), some("y")]]
        );
        assert_eq!(
            cells("\"a,\n\"\"b\"c\"d,5\"\n"),
            [[some("a,\n\"bc\"d"), some("5\"")]]
        );
        assert_eq!(cells("x,"), [[some("x"), None]]);
        assert_eq!(
            cells("a long cell,\"another long, cell\"\r\n"),
            [[some("a long cell"), some("another long, cell")]]
        );
    }

    #[test]
    fn records_of_another_width_are_bad() {
        let (rows, _) = read("x\n1,2\n1,2,3\n\n", true);
        assert_eq!((rows.rows, rows.total), (vec![1], 3));
        let bad = |at: usize| {
            let bad = &rows.bad[at];
            (bad.row, bad.reason.as_str(), &bad.payload[..])
        };
        assert_eq!(bad(0), (0, "1 cells where the header has 2", &b"x"[..]));
        assert_eq!(bad(1), (2, "3 cells where the header has 2", &b"1,2,3"[..]));
    }

    #[test]
    fn incomplete_records_are_left() {
        for (data, whole, at_last) in [
            ("", 0, 0),
            ("a,b", 0, 3),
            ("a,b\nc", 4, 5),
            ("a,b\r", 0, 4),
            ("a,b\rc", 4, 5),
            ("a,\"b\n", 0, 0),
            ("x,5\"\ny,\"\n", 5, 5),
            ("a,\"\n\"\nb", 6, 7),
            ("a,b\r\n", 5, 5),
            ("a,", 0, 2),
        ] {
            assert_eq!(read(data, false).1, whole, "{data}");
            assert_eq!(read(data, true).1, at_last, "{data}");
        }
        let (rows, _) = read("a,b\nc,\"d", false);
        assert_eq!((rows.rows.len(), rows.columns[0].ends.len()), (1, 1));
    }
}
