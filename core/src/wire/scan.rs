//! Strict JSON (RFC 8259): text that only some parsers accept is rejected.

use super::number;

/// Most nested containers.
const DEPTH: usize = 1024;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The text is not JSON.
#[derive(Debug, PartialEq, Eq)]
pub struct NotJson;

pub type JsonResult<T> = Result<T, NotJson>;

/// A value in the text.
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// The text between its quotes; true if it has escapes.
    Text(&'a [u8], bool),
    Int(&'a [u8]),
    Float(f64),
    /// An array or an object, which cannot be a cell.
    Nested,
}

pub struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

/// Flags the bytes of a word that end or interrupt text: quotes, backslashes and control characters.
#[inline]
fn special(word: u64) -> u64 {
    let zero = |x: u64| x.wrapping_sub(ONES) & !x & HIGHS;
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    zero(word ^ (ONES * b'"' as u64)) | zero(word ^ (ONES * b'\\' as u64)) | control
}

impl<'a> Scan<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Scan { text, at: 0 }
    }

    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    pub fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes one byte if it is the next.
    #[inline]
    pub fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Checks that only white space is left.
    pub fn end(&mut self) -> JsonResult<()> {
        self.blank();
        (self.at == self.text.len()).then_some(()).ok_or(NotJson)
    }

    /// Text after its opening quote: the bytes before the closing one, and whether it has escapes.
    #[inline]
    pub fn text(&mut self) -> JsonResult<(&'a [u8], bool)> {
        let (start, mut escaped) = (self.at, false);
        loop {
            while let Some(word) = self.text[self.at..].first_chunk::<8>() {
                let flags = special(u64::from_le_bytes(*word));
                if flags != 0 {
                    self.at += (flags.trailing_zeros() / 8) as usize;
                    break;
                }
                self.at += 8;
            }
            match self.peek().ok_or(NotJson)? {
                b'"' => {
                    self.at += 1;
                    return Ok((&self.text[start..self.at - 1], escaped));
                }
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                    if self.at > self.text.len() {
                        return Err(NotJson);
                    }
                }
                0..0x20 => return Err(NotJson),
                _ => self.at += 1,
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> JsonResult<()> {
        let there = self.text[self.at..].starts_with(word);
        self.at += word.len();
        there.then_some(()).ok_or(NotJson)
    }

    fn digits(&mut self) -> JsonResult<usize> {
        let rest = &self.text[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(NotJson) } else { Ok(count) }
    }

    fn number(&mut self) -> JsonResult<Value<'a>> {
        let start = self.at;
        self.take(b'-');
        let first = self.peek();
        if self.digits()? > 1 && first == Some(b'0') {
            return Err(NotJson);
        }
        let whole = !matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        // Eighteen digits always fit; more of them may be an integer that is too long.
        if whole && (text.len() <= 18 || in_64_bits(text)) {
            return Ok(Value::Int(if text == b"-0" { b"0" } else { text }));
        }
        let x = number::value(text);
        if x.is_finite() {
            Ok(Value::Float(x))
        } else {
            Err(NotJson)
        }
    }

    /// The next value; a container is skipped.
    #[inline]
    pub fn value(&mut self) -> JsonResult<Value<'a>> {
        self.value_at(0)
    }

    fn value_at(&mut self, depth: usize) -> JsonResult<Value<'a>> {
        match self.peek().ok_or(NotJson)? {
            b'"' => {
                self.at += 1;
                let (text, escaped) = self.text()?;
                Ok(Value::Text(text, escaped))
            }
            b'n' => self.word(b"null").map(|()| Value::Null),
            b't' => self.word(b"true").map(|()| Value::Bool(true)),
            b'f' => self.word(b"false").map(|()| Value::Bool(false)),
            b'[' | b'{' => self.skip_nested(depth + 1).map(|()| Value::Nested),
            _ => self.number(),
        }
    }

    fn skip_nested(&mut self, depth: usize) -> JsonResult<()> {
        if depth > DEPTH {
            return Err(NotJson);
        }
        let close = self.text[self.at] + 2; // ASCII: ] is two after [, and } two after {
        self.at += 1;
        self.blank();
        if self.take(close) {
            return Ok(());
        }
        loop {
            if close == b'}' {
                self.key()?;
            }
            if let Value::Text(text, true) = self.value_at(depth)? {
                unescape(text, &mut Vec::new())?;
            }
            self.blank();
            if self.take(close) {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(NotJson);
            }
            self.blank();
        }
    }

    fn key(&mut self) -> JsonResult<()> {
        if !self.take(b'"') {
            return Err(NotJson);
        }
        if let (text, true) = self.text()? {
            unescape(text, &mut Vec::new())?;
        }
        self.colon()
    }

    /// Takes the colon between a key and its value.
    #[inline]
    pub fn colon(&mut self) -> JsonResult<()> {
        self.blank();
        if !self.take(b':') {
            return Err(NotJson);
        }
        self.blank();
        Ok(())
    }
}

fn in_64_bits(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok())
}

/// Appends text with its escapes resolved; a lone surrogate is an error.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) -> JsonResult<()> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let byte = *rest.get(at + 1).ok_or(NotJson)?;
        rest = &rest[at + 2..];
        match byte {
            b'"' | b'\\' | b'/' => out.push(byte),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let character = character(&mut rest)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err(NotJson),
        }
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn code_unit(rest: &mut &[u8]) -> JsonResult<u32> {
    let (digits, after) = rest.split_first_chunk::<4>().ok_or(NotJson)?;
    *rest = after;
    digits.iter().try_fold(0, |sum, &byte| {
        let digit = char::from(byte).to_digit(16).ok_or(NotJson)?;
        Ok(sum << 4 | digit)
    })
}

fn character(rest: &mut &[u8]) -> JsonResult<char> {
    let high = code_unit(rest)?;
    if !(0xd800..0xdc00).contains(&high) {
        return char::from_u32(high).ok_or(NotJson);
    }
    *rest = rest.strip_prefix(b"\\u").ok_or(NotJson)?;
    let low = code_unit(rest)?;
    if !(0xdc00..0xe000).contains(&low) {
        return Err(NotJson);
    }
    char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or(NotJson)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(text: &str) -> bool {
        let mut scan = Scan::new(text.as_bytes());
        scan.blank();
        let value = scan.value();
        let escapes = |text: &[u8]| unescape(text, &mut Vec::new()).is_ok();
        let readable = value.is_ok_and(|value| match value {
            Value::Text(text, true) => escapes(text),
            _ => true,
        });
        readable && scan.end().is_ok()
    }

    #[test]
    fn only_strict_json_is_accepted() {
        let deep = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
        for text in [
            "0",
            "-0",
            " 1.5e-3 ",
            "[]",
            "{}",
            "[1, [2], {\"a\": \"\\u00e9\\ud83d\\ude00\"}]",
            "\"twelve chars\"",
            "true",
            &deep,
        ] {
            assert!(sound(text), "{text}");
        }
        let deeper = "[".repeat(DEPTH + 1) + &"]".repeat(DEPTH + 1);
        for text in [
            "",
            "01",
            "+1",
            "1.",
            ".5",
            "-",
            "1e",
            "NaN",
            "nul",
            "tru",
            "\"",
            "\"a",
            "\"\\",
            "\"\\\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\u12\"",
            "\"\n\"",
            "[1,]",
            "[1 2]",
            "{1:2}",
            "{\"a\"}",
            "{\"a\":1,}",
            "[",
            "{",
            "1 2",
            "1e400",
            &deeper,
            "\"123456\u{1}89\"",
            "[\"\\ud800\"]",
            "{\"\\ud800\":1}",
        ] {
            assert!(!sound(text), "{text}");
        }
    }

    #[test]
    fn every_byte_of_a_word_is_checked() {
        for at in 0..8 {
            for byte in 0..=255u8 {
                let mut word = [b'x'; 8];
                word[at] = byte;
                let flags = special(u64::from_le_bytes(word));
                let expected = byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(flags != 0, expected, "{byte}");
                assert!(!expected || flags.trailing_zeros() as usize / 8 == at);
            }
        }
    }
}
