//! Numbers as text: the shortest digits that read back as the same number, in one form for every interface.

/// Below this a whole number is exact as a float and as an integer.
const EXACT: f64 = (1u64 << 53) as f64;
/// Floats of at least this magnitude are too large to keep: a parser makes floats of integers that are too long.
const MOST: f64 = (1u64 << 63) as f64;
/// Powers of ten that are written out; others have an exponent.
const PLAIN: std::ops::Range<i32> = -5..16;

/// Whether text is a valid number of a quasi-identifier: digits, perhaps a fraction and an exponent, and finite.
pub fn is_number(text: &[u8]) -> bool {
    let digits = |s: &[u8]| s.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    rest = &rest[whole..];
    let mut sound = whole > 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let n = digits(fraction);
        sound &= n > 0;
        rest = &fraction[n..];
    }
    if let Some(power) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let power = power
            .strip_prefix(b"+")
            .or_else(|| power.strip_prefix(b"-"))
            .unwrap_or(power);
        let n = digits(power);
        sound &= n > 0;
        rest = &power[n..];
    }
    sound && rest.is_empty() && value(text).is_finite()
}

/// The value of text that is a number.
pub fn value(text: &[u8]) -> f64 {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(f64::NAN)
}

pub fn fits(x: f64) -> bool {
    -MOST < x && x < MOST
}

/// Writes a float as the engines use it: 5.0 is 5, whatever its neighbors are; true if it was whole.
pub fn write(out: &mut Vec<u8>, x: f64) -> bool {
    if x.fract() == 0.0 && x.abs() < EXACT {
        out.extend_from_slice((x as i64).to_string().as_bytes());
        return true;
    }
    shortest(out, x);
    false
}

/// The shortest digits that read back as the number, and of those the nearest, even on ties.
fn nearest(x: f64) -> String {
    let text = format!("{x:e}");
    let size = text
        .bytes()
        .take_while(|&byte| byte != b'e')
        .filter(u8::is_ascii_digit)
        .count();
    let other = format!("{x:.0$e}", size - 1);
    if value(other.as_bytes()) == x {
        other
    } else {
        text
    }
}

/// Writes a finite float with its fraction or exponent.
pub fn shortest(out: &mut Vec<u8>, x: f64) {
    let text = nearest(x);
    let (digits, power) = text.split_once('e').expect("an exponent");
    let power: i32 = power.parse().expect("an exponent");
    if !PLAIN.contains(&power) {
        let sign = if power < 0 { "" } else { "+" };
        out.extend_from_slice(format!("{digits}e{sign}{power}").as_bytes());
        return;
    }
    if x < 0.0 {
        out.push(b'-');
    }
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_digit).collect();
    if power < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-power - 1) as usize, b'0');
        out.extend_from_slice(&digits);
        return;
    }
    let whole = power as usize + 1;
    let cut = whole.min(digits.len());
    out.extend_from_slice(&digits[..cut]);
    out.resize(out.len() + whole - cut, b'0');
    out.push(b'.');
    out.extend_from_slice(if cut < digits.len() {
        &digits[cut..]
    } else {
        b"0"
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(x: f64) -> String {
        let mut out = Vec::new();
        write(&mut out, x);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_have_their_shortest_digits() {
        let cases = [
            (5.0, "5"),
            (-0.0, "0"),
            (2.5, "2.5"),
            (-12345678.875, "-12345678.875"),
            (1e-5, "0.00001"),
            (1e-6, "1e-6"),
            (0.00001234, "0.00001234"),
            (1e16, "1e+16"),
            (9007199254740992.0, "9007199254740992.0"),
            (-1.5e300, "-1.5e+300"),
            (854_455_743_865_555.0 + 0.25, "854455743865555.2"),
            (5e-324, "5e-324"),
            (123.0625, "123.0625"),
            (-1e-7, "-1e-7"),
        ];
        for (x, expected) in cases {
            assert_eq!(text(x), expected);
            assert_eq!(value(expected.as_bytes()), x);
        }
    }

    #[test]
    fn numbers_are_recognized_by_their_form() {
        for text in ["0", "-1", "007", "1.50", "1e5", "1E-7", "2.5e+3"] {
            assert!(is_number(text.as_bytes()), "{text}");
        }
        for text in [
            "", "-", "+1", ".5", "1.", "1e", "1e400", "1 ", "nan", "inf", "1.e5", "١",
        ] {
            assert!(!is_number(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_63_bits_do_not_fit() {
        assert!(fits(9.2e18) && fits(-9.2e18) && !fits(MOST) && !fits(-MOST) && !fits(f64::NAN));
    }
}
