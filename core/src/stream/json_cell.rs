//! Writes one cell as JSON.

use super::column::Cell;
use crate::wire::number as numbers;

/// Every JSON parser keeps this many digits exactly.
const DIGITS: usize = 18;

/// Whether text is a JSON number: no leading zeros, no plus, no lone period, not too long.
fn is_number(text: &[u8]) -> bool {
    let digits = |s: &[u8]| s.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || whole > DIGITS || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let n = digits(fraction);
        rest = &fraction[n..];
        return n > 0 && rest.is_empty();
    }
    rest.is_empty()
}

/// Whether a JSON number is already in the form that every interface writes: shortest digits, not too many.
fn is_shortest(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    match text.contains(&b'.') {
        false => text != b"-0",
        // Up to fifteen digits no shorter number reads back as the same; very small numbers have an exponent.
        true if unsigned.len() > 16 || unsigned.starts_with(b"0.00000") => false,
        true => text.ends_with(b".0") || !text.ends_with(b"0"),
    }
}

/// Writes a JSON number in its one form.
fn bare(out: &mut Vec<u8>, text: &[u8]) {
    match is_shortest(text) {
        true => out.extend_from_slice(text),
        false if text == b"-0" => out.push(b'0'),
        false => numbers::shortest(out, numbers::value(text)),
    }
}

/// Writes text in quotes, escaped as JSON requires.
pub fn quote(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    // Most text needs no escapes: one scan without a branch per byte.
    let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    if !text.iter().fold(false, |any, &byte| any | special(byte)) {
        out.extend_from_slice(text);
        out.push(b'"');
        return;
    }
    let mut from = 0;
    for (i, &byte) in text.iter().enumerate() {
        if !special(byte) {
            continue;
        }
        out.extend_from_slice(&text[from..i]);
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        from = i + 1;
    }
    out.extend_from_slice(&text[from..]);
    out.push(b'"');
}

pub fn number(out: &mut Vec<u8>, mut x: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (x % 10) as u8;
        x /= 10;
        if x == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Text is written as text.
pub const TEXT: u8 = 0;
/// Text is written as a number if it is one.
pub const NUMBER: u8 = 1;
/// Text is already JSON.
pub const TOKEN: u8 = 2;

/// Writes a cell by its type and, for text, by the form of its column.
pub fn value(out: &mut Vec<u8>, cell: &Cell, form: u8) {
    match *cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Text(text) if form == TOKEN => out.extend_from_slice(text),
        Cell::Text(text) if form == NUMBER && is_number(text) => bare(out, text),
        Cell::Text(text) => quote(out, text),
        Cell::Int(x) if x >= 0 => number(out, x as u64),
        Cell::Int(x) => out.extend_from_slice(x.to_string().as_bytes()),
        Cell::Float(x) if x.is_finite() => out.extend_from_slice(format!("{x:?}").as_bytes()),
        Cell::Float(_) => out.extend_from_slice(b"null"),
        Cell::Bool(x) => out.extend_from_slice(if x { b"true" } else { b"false" }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::text_of;
    use super::*;

    #[test]
    fn text_is_escaped_as_json_requires() {
        let quote = |text: &str| text_of(|out| quote(out, text.as_bytes()));
        assert_eq!(quote("plain é"), r#""plain é""#);
        assert_eq!(quote("a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(quote("\n\r\t\u{1}\u{1f}"), r#""\n\r\t\u0001\u001f""#);
        assert_eq!(quote("\u{7f}"), "\"\u{7f}\"");
    }

    #[test]
    fn only_json_numbers_are_written_unquoted() {
        for text in ["0", "-1", "10.50", "-0.5"] {
            assert!(is_number(text.as_bytes()), "{text}");
        }
        for text in ["", "-", "01", "+1", ".5", "1.", "1e5", "1 ", "nan"] {
            assert!(!is_number(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_number_has_one_written_form() {
        let cases = [
            ("12", "12"),
            ("-0", "0"),
            ("12.5", "12.5"),
            ("12.50", "12.5"),
            ("-7.00", "-7.0"),
            ("100.0", "100.0"),
            ("-0.0", "-0.0"),
            ("0.000", "0.0"),
            ("0.00001", "0.00001"),
            ("0.000001", "1e-6"),
            ("123456789.123456789123", "123456789.12345679"),
            ("12345678901234567.25", "1.2345678901234568e+16"),
        ];
        for (text, written) in cases {
            let cell = Cell::Text(text.as_bytes());
            assert_eq!(text_of(|out| value(out, &cell, NUMBER)), written);
        }
    }

    #[test]
    fn cells_are_written_by_their_type() {
        let cell = |cell: Cell, form| text_of(|out| value(out, &cell, form));
        assert_eq!(cell(Cell::Int(i64::MIN), TEXT), "-9223372036854775808");
        assert_eq!(cell(Cell::Float(1.0), TEXT), "1.0");
        assert_eq!(cell(Cell::Float(f64::NAN), TEXT), "null");
        assert_eq!(cell(Cell::Text(b"12"), NUMBER), "12");
        assert_eq!(cell(Cell::Text(b"12"), TEXT), "\"12\"");
        assert_eq!(cell(Cell::Text(b"[1]"), TOKEN), "[1]");
        assert_eq!(text_of(|out| number(out, u64::MAX)), u64::MAX.to_string());
    }
}
