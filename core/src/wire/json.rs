//! Records as JSON objects, one per line or one per message: flat, each field once, each with a role in the policy.

use super::number;
use super::rows::{Kind, Rows};
use super::rules::{Reason, Rules};
use super::scan::{JsonResult, NotJson, Scan, Value, unescape};

const NOT_JSON: &str = "not JSON";
const NO_OBJECT: &str = "not a JSON object";
const NO_ROLE: &str = "a field without a role in the policy";
const TWICE: &str = "a field twice";
const NOTHING: &str = "none of the policy's columns";
const NESTED: &str = "a field that is not a single value";
pub const LARGE: &str = "a number too large to keep";

/// Reads one object after the other; nearly all objects of a feed have their fields in the same order.
pub struct Objects<'r> {
    rules: &'r Rules,
    pub rows: Rows,
    /// The column that followed each column, and the first one.
    next: Vec<usize>,
    scratch: Vec<u8>,
}

/// The faults of an object that is JSON, by rank.
#[derive(Default)]
struct Faults {
    role: bool,
    twice: bool,
    released: bool,
    cell: Option<&'static str>,
}

impl Faults {
    fn reason(&self) -> Option<&'static str> {
        match self {
            Faults { role: true, .. } => Some(NO_ROLE),
            Faults { twice: true, .. } => Some(TWICE),
            Faults {
                released: false, ..
            } => Some(NOTHING),
            Faults { cell, .. } => *cell,
        }
    }
}

impl<'r> Objects<'r> {
    pub fn new(rules: &'r Rules) -> Self {
        let size = rules.names.len();
        Objects {
            rules,
            rows: Rows::new(size),
            next: (1..=size).chain([0]).collect(),
            scratch: Vec::new(),
        }
    }

    /// Reads one object; `utf8` says that its bytes are known to be valid.
    pub fn read(&mut self, text: &[u8], utf8: bool) {
        let readable = utf8 || std::str::from_utf8(text).is_ok();
        let reason = match readable.then(|| self.object(text)) {
            Some(Ok(reason)) => reason,
            _ => Some(NOT_JSON),
        };
        self.rows.settle(self.rules, reason.map(Reason::from), text);
    }

    /// A message without a value.
    pub fn nothing(&mut self) {
        self.rows.settle(self.rules, Some(NO_OBJECT.into()), b"");
    }

    fn object(&mut self, text: &[u8]) -> JsonResult<Option<&'static str>> {
        let mut scan = Scan::new(text);
        scan.blank();
        if !scan.take(b'{') {
            if let Value::Text(text, true) = scan.value()? {
                unescape(text, &mut Vec::new())?;
            }
            return scan.end().map(|()| Some(NO_OBJECT));
        }
        let mut faults = Faults::default();
        scan.blank();
        if !scan.take(b'}') {
            self.fields(&mut scan, &mut faults)?;
        }
        scan.end()?;
        Ok(faults.reason())
    }

    fn fields(&mut self, scan: &mut Scan, faults: &mut Faults) -> JsonResult<()> {
        let mut before = self.next.len() - 1;
        loop {
            if !scan.take(b'"') {
                return Err(NotJson);
            }
            let (key, escaped) = scan.text()?;
            let column = self.column(key, escaped, before)?;
            scan.colon()?;
            let value = scan.value()?;
            match column {
                Some(column) if !self.rows.has(column) => {
                    self.next[before] = column;
                    before = column;
                    faults.released |= self.rules.released[column];
                    let fault = self.cell(column, &value)?;
                    faults.cell = faults.cell.or(fault);
                }
                _ => {
                    faults.twice |= column.is_some();
                    faults.role |= column.is_none();
                    if let Value::Text(text, true) = value {
                        unescape(text, &mut Vec::new())?;
                    }
                }
            }
            scan.blank();
            if scan.take(b'}') {
                return Ok(());
            }
            if !scan.take(b',') {
                return Err(NotJson);
            }
            scan.blank();
        }
    }

    /// The column of a key; nearly always the one that was there before.
    fn column(&mut self, key: &[u8], escaped: bool, before: usize) -> JsonResult<Option<usize>> {
        if escaped {
            self.scratch.clear();
            unescape(key, &mut self.scratch)?;
            return Ok(self.rules.column(&self.scratch));
        }
        let guess = self.next[before];
        let names = &self.rules.names;
        if names.get(guess).is_some_and(|name| name.as_bytes() == key) {
            return Ok(Some(guess));
        }
        Ok(self.rules.column(key))
    }

    /// Stores a cell; returns its fault.
    fn cell(&mut self, column: usize, value: &Value) -> JsonResult<Option<&'static str>> {
        let rows = &mut self.rows;
        match *value {
            Value::Text(text, false) => rows.push(column, text, Kind::Text),
            Value::Text(text, true) => {
                self.scratch.clear();
                unescape(text, &mut self.scratch)?;
                rows.push(column, &self.scratch, Kind::Text);
            }
            Value::Int(text) => rows.push(column, text, Kind::Bare),
            Value::Bool(x) => rows.push(column, if x { b"true" } else { b"false" }, Kind::Bare),
            Value::Null => rows.push(column, b"", Kind::Null),
            Value::Float(x) if number::fits(x) => float(rows, column, x),
            Value::Float(_) | Value::Nested => {
                rows.push(column, b"", Kind::Null);
                let nested = matches!(value, Value::Nested);
                return Ok(Some(if nested { NESTED } else { LARGE }));
            }
        }
        Ok(None)
    }
}

/// Stores a float that is not too large; whole floats are stored as integers.
pub fn float(rows: &mut Rows, column: usize, x: f64) {
    rows.push_with(column, |out| match number::write(out, x) {
        true if x == 0.0 && x.is_sign_negative() => Kind::Minus,
        true => Kind::Whole,
        false => Kind::Bare,
    });
}

/// The objects of some lines; blank lines are skipped.
pub fn lines(rules: &Rules, data: &[u8]) -> Rows {
    let utf8 = std::str::from_utf8(data).is_ok();
    let mut objects = Objects::new(rules);
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let mut rest = data;
    while !rest.is_empty() {
        let end = newline(rest);
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        if !line.iter().all(blank) {
            objects.read(line, utf8);
            if objects.rows.total == SAMPLE {
                let more = rest.len() / (end + 1);
                objects.rows.reserve(more);
            }
        }
    }
    objects.rows
}

/// Records from which the number of the others is estimated.
const SAMPLE: usize = 64;

/// The end of the first line.
pub fn newline(data: &[u8]) -> usize {
    const ENDS: u64 = 0x0a0a_0a0a_0a0a_0a0a;
    let mut at = 0;
    while let Some(word) = data[at..].first_chunk::<8>() {
        let x = u64::from_le_bytes(*word) ^ ENDS;
        let flags = x.wrapping_sub(0x0101_0101_0101_0101) & !x & 0x8080_8080_8080_8080;
        if flags != 0 {
            return at + (flags.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = &data[at..];
    at + rest
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            names: vec!["who".into(), "age".into(), "ill".into()],
            published: vec![true; 3],
            released: vec![false, true, true],
            required: vec![(0, "no person".into())],
            ..Rules::default()
        }
    }

    fn reasons(data: &str) -> Vec<(usize, String)> {
        let rows = lines(&rules(), data.as_bytes());
        rows.bad
            .into_iter()
            .map(|bad| (bad.row, bad.reason))
            .collect()
    }

    #[test]
    fn cells_keep_their_kind_and_absent_ones_are_null() {
        let data = "{\"who\":1,\"age\":5.0,\"ill\":\"a\\u0062\"}\n \n{\"ill\":null , \"who\":\"p\"}\r\n{\"who\":true,\"age\":-0.0}";
        let rows = lines(&rules(), data.as_bytes());
        assert!(rows.bad.is_empty() && rows.rows == [0, 1, 2]);
        let [who, age, ill] = &rows.columns[..] else {
            panic!()
        };
        assert_eq!(
            (who.cell(0), who.cell(1), who.cell(2)),
            (&b"1"[..], &b"p"[..], &b"true"[..])
        );
        assert_eq!(age.kinds, [Kind::Whole, Kind::Null, Kind::Minus]);
        assert_eq!(
            (age.cell(0), age.cell(2), ill.cell(0)),
            (&b"5"[..], &b"0"[..], &b"ab"[..])
        );
        assert_eq!(ill.kinds, [Kind::Text, Kind::Null, Kind::Null]);
    }

    #[test]
    fn the_gravest_fault_is_reported_and_the_record_is_taken_back() {
        let cases = [
            ("{\"who\":1,\"age\":[1],\"x\":2,\"age\":3", NOT_JSON),
            ("[1]", NO_OBJECT),
            ("{\"who\":1,\"age\":[1],\"x\":2,\"age\":3}", NO_ROLE),
            ("{\"who\":1,\"age\":[1],\"a\\u0067e\":3}", TWICE),
            ("{\"who\":1}", NOTHING),
            ("{}", NOTHING),
            ("{\"age\":1e19,\"ill\":[1]}", LARGE),
            ("{\"age\":{},\"ill\":1e19}", NESTED),
            ("{\"age\":1}", "no person"),
            ("{\"age\":1,\"who\":\"\"}", "no person"),
        ];
        for (text, reason) in cases {
            assert_eq!(reasons(text), [(0, reason.to_string())], "{text}");
        }
        let rows = lines(
            &rules(),
            b"{\"who\":1,\"age\":2}\n{\"who\":1,\"age\":{}}\n{\"who\":3,\"age\":4}",
        );
        assert_eq!((rows.rows, rows.total), (vec![0, 2], 3));
        assert_eq!(
            (rows.columns[0].cell(1), rows.columns[1].cell(1)),
            (&b"3"[..], &b"4"[..])
        );
        assert_eq!(rows.bad[0].payload, b"{\"who\":1,\"age\":{}}");
    }

    #[test]
    fn invalid_bytes_affect_only_their_own_line() {
        let rows = lines(
            &rules(),
            b"{\"who\":\"\xff\",\"age\":1}\n{\"who\":\"\xc3\xa9\",\"age\":1}",
        );
        assert_eq!((rows.rows, rows.bad.len()), (vec![1], 1));
    }
}
