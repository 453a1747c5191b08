//! Reads a block in parallel parts and joins them: all columns one after the other, in Arrow's text layout.

use rayon::prelude::*;

use super::csv::{self, Layout};
use super::json::{self, Objects, newline};
use super::rows::{Bad, Kind, Rows, Texts};
use super::rules::Rules;
use crate::stream::json_cell::quote;

/// Bytes per part, at least.
const PART: usize = 1 << 17;
/// Messages per part, at least.
const MESSAGES: usize = 512;

/// Lines in parts of about the same length.
fn split(data: &[u8]) -> Vec<&[u8]> {
    let count = (data.len() / PART).clamp(1, rayon::current_num_threads());
    let size = data.len().div_ceil(count);
    let (mut parts, mut rest) = (Vec::new(), data);
    while rest.len() > size {
        let end = (size + newline(&rest[size..]) + 1).min(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

fn each<'a>(parts: Vec<&'a [u8]>, read: impl Fn(&'a [u8]) -> Rows + Sync + Send) -> Vec<Rows> {
    match parts[..] {
        [only] => vec![read(only)],
        _ => parts.into_par_iter().map(read).collect(),
    }
}

/// One JSON object per line.
pub fn ndjson(rules: &Rules, data: &[u8]) -> Vec<Rows> {
    each(split(data), |part| json::lines(rules, part))
}

/// Lines of CSV and their length in bytes; with quotes, only reading finds the end of a record.
pub fn csv(rules: &Rules, layout: &Layout, data: &[u8], last: bool) -> (Vec<Rows>, usize) {
    let end = data.iter().rposition(|&byte| byte == b'\n');
    if last || data.contains(&b'"') || end.is_none_or(|end| end < PART) {
        let (rows, size) = csv::lines(rules, layout, data, last);
        return (vec![rows], size);
    }
    let size = end.map_or(0, |end| end + 1);
    let parts = each(split(&data[..size]), |part| {
        csv::lines(rules, layout, part, true).0
    });
    (parts, size)
}

/// Messages of one JSON object each; one without a value is not an object.
pub fn objects(rules: &Rules, values: &[Option<&[u8]>]) -> Vec<Rows> {
    let read = |part: &[Option<&[u8]>]| {
        let mut objects = Objects::new(rules);
        for value in part {
            match value {
                Some(text) => objects.read(text, false),
                None => objects.nothing(),
            }
        }
        objects.rows
    };
    let size = values
        .len()
        .div_ceil(rayon::current_num_threads())
        .max(MESSAGES);
    if values.len() <= size {
        return vec![read(values)];
    }
    values.par_chunks(size).map(read).collect()
}

/// Cells of text in Arrow's layout: offsets, bytes, and a bit per cell if some are missing.
#[derive(Default)]
pub struct ArrowText {
    pub offsets: Vec<i32>,
    pub bytes: Vec<u8>,
    pub valid: Option<Vec<u8>>,
}

/// The JSON of a column whose cells are not all text.
pub enum Tokens {
    /// The text of its cells is JSON already.
    AsText,
    Own(ArrowText),
}

/// The result: all columns one after the other, in the order of the rules.
pub struct ReadBatch {
    pub cells: ArrowText,
    /// By column, for published columns.
    pub tokens: Vec<(usize, Tokens)>,
    pub rows: Vec<i64>,
    pub total: usize,
    pub bad: Vec<Bad>,
}

/// Joins parts; none if the whole text is too long for Arrow.
pub fn join(rules: &Rules, mut parts: Vec<Rows>) -> Option<ReadBatch> {
    let width = rules.names.len();
    let (mut total, mut rows, mut bad) = (0, Vec::new(), Vec::new());
    for part in &mut parts {
        rows.extend(part.rows.iter().map(|&row| row + total as i64));
        bad.extend(part.bad.drain(..).map(|bad| Bad {
            row: bad.row + total,
            ..bad
        }));
        total += part.total;
    }
    let column = |at: usize| parts.iter().map(move |part| &part.columns[at]);
    let cells = lay((0..width).flat_map(column), rows.len() * width)?;
    let mut tokens = Vec::new();
    for at in (0..width).filter(|&at| rules.published[at]) {
        if let Some(own) = tokens_of(column(at), rows.len())? {
            tokens.push((at, own));
        }
    }
    Some(ReadBatch {
        cells,
        tokens,
        rows,
        total,
        bad,
    })
}

fn lay<'a>(texts: impl Iterator<Item = &'a Texts> + Clone, cells: usize) -> Option<ArrowText> {
    let size: usize = texts.clone().map(|texts| texts.bytes.len()).sum();
    i32::try_from(size).ok()?;
    let mut text_array = ArrowText {
        offsets: Vec::with_capacity(cells + 1),
        bytes: Vec::with_capacity(size),
        valid: None,
    };
    text_array.offsets.push(0);
    for texts in texts.clone() {
        let start = text_array.bytes.len();
        text_array.bytes.extend_from_slice(&texts.bytes);
        text_array
            .offsets
            .extend(texts.ends.iter().map(|&end| (start + end) as i32));
    }
    text_array.valid = bits(texts.flat_map(|texts| &texts.kinds), cells);
    Some(text_array)
}

/// A bit per cell; none if no cell is missing.
fn bits<'a>(kinds: impl Iterator<Item = &'a Kind> + Clone, cells: usize) -> Option<Vec<u8>> {
    if !kinds.clone().any(|&kind| kind == Kind::Null) {
        return None;
    }
    let mut bits = vec![0; cells.div_ceil(8)];
    for (at, &kind) in kinds.enumerate() {
        bits[at / 8] |= u8::from(kind != Kind::Null) << (at % 8);
    }
    Some(bits)
}

/// The JSON of a column's cells; none if all of them are text.
fn tokens_of<'a>(
    texts: impl Iterator<Item = &'a Texts> + Clone,
    size: usize,
) -> Option<Option<Tokens>> {
    let any = |kinds: &[Kind]| {
        texts
            .clone()
            .any(|texts| texts.kinds.iter().any(|kind| kinds.contains(kind)))
    };
    let bare = any(&[Kind::Bare]);
    if !any(&[Kind::Text, Kind::Whole, Kind::Minus]) {
        return Some(bare.then_some(Tokens::AsText));
    }
    if !bare && !any(&[Kind::Whole, Kind::Minus]) {
        return Some(None);
    }
    let mut json = Texts::default();
    for texts in texts {
        for (row, &kind) in texts.kinds.iter().enumerate() {
            token(&mut json.bytes, texts.cell(row), kind);
            json.ends.push(json.bytes.len());
            json.kinds.push(kind);
        }
    }
    Some(Some(Tokens::Own(lay(std::iter::once(&json), size)?)))
}

fn token(out: &mut Vec<u8>, text: &[u8], kind: Kind) {
    match kind {
        Kind::Null => {}
        Kind::Text => quote(out, text),
        Kind::Minus => out.extend_from_slice(b"-0.0"),
        Kind::Bare | Kind::Whole => {
            out.extend_from_slice(text);
            out.extend_from_slice(if kind == Kind::Whole { b".0" } else { b"" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let names = vec!["a".into(), "b".into()];
        Rules {
            names,
            published: vec![true; 2],
            released: vec![true; 2],
            required: vec![],
            ..Rules::default()
        }
    }

    fn texts(text_array: &ArrowText) -> Vec<&[u8]> {
        text_array
            .offsets
            .windows(2)
            .map(|span| &text_array.bytes[span[0] as usize..span[1] as usize])
            .collect()
    }

    #[test]
    fn joined_parts_equal_the_whole() {
        let line = |i: usize| match i % 97 {
            0 => "{\"b\":[]}\n".to_string(),
            1 => "\n".into(),
            _ => format!("{{\"a\":\"{i}\",\"b\":{}}}\n", i % 7),
        };
        let data: String = (0..40_000).map(line).collect();
        let whole = join(&rules(), vec![json::lines(&rules(), data.as_bytes())]).unwrap();
        let pieces: Vec<&[u8]> = data
            .as_bytes()
            .split_inclusive(|&byte| byte == b'\n')
            .collect();
        let pieces: Vec<Vec<u8>> = pieces.chunks(1_000).map(<[_]>::concat).collect();
        let parts = pieces
            .iter()
            .map(|piece| json::lines(&rules(), piece))
            .collect();
        for parts in [parts, ndjson(&rules(), data.as_bytes())] {
            let read = join(&rules(), parts).unwrap();
            assert_eq!((&read.rows, read.total), (&whole.rows, whole.total));
            assert!(
                read.cells.bytes == whole.cells.bytes && read.cells.offsets == whole.cells.offsets
            );
            let places = |read: &ReadBatch| read.bad.iter().map(|bad| bad.row).collect::<Vec<_>>();
            assert_eq!(places(&read), places(&whole));
            assert!(matches!(read.tokens[..], [(1, Tokens::AsText)]));
        }
    }

    #[test]
    fn a_column_of_several_kinds_has_its_json() {
        let data =
            b"{\"a\":\"x\\\"\"}\n{\"a\":5.0}\n{\"a\":-0.0}\n{\"a\":true}\n{\"b\":1}\n{\"a\":1e-7}";
        let read = join(&rules(), ndjson(&rules(), data)).unwrap();
        let (0, Tokens::Own(json)) = &read.tokens[0] else {
            panic!()
        };
        let expected: [&[u8]; 6] = [b"\"x\\\"\"", b"5.0", b"-0.0", b"true", b"", b"1e-7"];
        assert_eq!(texts(json), expected);
        assert_eq!(json.valid, Some(vec![0b101111]));
        assert_eq!(
            texts(&read.cells)[..6],
            [&b"x\""[..], b"5", b"0", b"true", b"", b"1e-7"]
        );
    }
}
