//! The entries of a line: where each ends, and what number it is.

/// What stands for a missing number, in any case. NaN is missing too.
const ABSENT: [&str; 6] = ["", "na", "n/a", "null", "none", "-"];

/// Up to this, every whole number is a double, and so are the powers of ten below.
const MANTISSA_MAX: u64 = 1 << 53;
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
const DIGITS_MAX: usize = 19;

/// How the entries of a line are written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub separator: u8,
    /// Point or comma.
    pub decimal: u8,
}

impl Style {
    /// The text that starts at `at`, without quotes and the white space around it, and where it ends: at a separator, a
    /// line's end or the end of all. `None` for quotes that are
    /// doubled, unclosed, or have something before or behind them.
    #[inline]
    pub fn text(self, lines: &[u8], at: usize) -> Option<(&[u8], usize)> {
        if lines.get(at) == Some(&b'"') {
            return self.quoted(lines, at + 1);
        }
        let end = find_either(lines, at, self.separator, b'\n');
        let text = lines[at..end].trim_ascii();
        (text.first() != Some(&b'"')).then_some((text, end))
    }

    /// The number that starts at `at`, NaN for a missing one, and where it ends. `None` for what is neither.
    #[inline]
    pub fn number(self, lines: &[u8], at: usize) -> Option<(f64, usize)> {
        if let Some((number, end)) = self.plain_number(lines, at)
            && lines.get(end).is_none_or(|&byte| self.ends(byte))
        {
            return Some((number, end));
        }
        let (text, end) = self.text(lines, at)?;
        Some((self.any_number(text)?, end))
    }

    #[inline]
    fn ends(self, byte: u8) -> bool {
        byte == self.separator || byte == b'\n'
    }

    fn quoted(self, lines: &[u8], begin: usize) -> Option<(&[u8], usize)> {
        let length = lines[begin..].iter().position(|&byte| byte == b'"' || byte == b'\n')?;
        let quote = begin + length;
        let mut end = quote + 1;
        if lines[quote] != b'"' {
            return None;
        }
        if lines.get(end) == Some(&b'\r') {
            end += 1;
        }
        let is_end = lines.get(end).is_none_or(|&byte| self.ends(byte));
        is_end.then_some((lines[begin..quote].trim_ascii(), end))
    }

    /// Digits with at most one decimal sign, few enough that one division gives the nearest double (Clinger's fast path:
    /// "How to read floating point numbers accurately", 1990).
    #[inline]
    fn plain_number(self, lines: &[u8], begin: usize) -> Option<(f64, usize)> {
        let is_negative = lines.get(begin) == Some(&b'-');
        let first = begin + usize::from(is_negative);
        let (whole, point) = digits(lines, first, 0);
        let has_point = lines.get(point) == Some(&self.decimal);
        let start = point + usize::from(has_point);
        let (mantissa, end) = if has_point { digits(lines, start, whole) } else { (whole, point) };
        let decimals = end - start;
        let count = point - first + decimals;
        if !(1..=DIGITS_MAX).contains(&count) || mantissa > MANTISSA_MAX || decimals >= POWERS.len() {
            return None;
        }
        let size = mantissa as f64 / POWERS[decimals];
        Some((if is_negative { -size } else { size }, end))
    }

    fn any_number(self, text: &[u8]) -> Option<f64> {
        let text = std::str::from_utf8(text).ok()?;
        if ABSENT.iter().any(|absent| text.eq_ignore_ascii_case(absent)) {
            return Some(f64::NAN);
        }
        if self.decimal == b'.' {
            return text.parse().ok();
        }
        let is_foreign = text.contains('.');
        (!is_foreign).then(|| text.replace(char::from(self.decimal), ".").parse().ok()).flatten()
    }
}

/// The whole number at `at` that continues `from` the digits before it, and where it ends. Wraps around.
#[inline]
pub fn digits(lines: &[u8], at: usize, from: u64) -> (u64, usize) {
    let (mut value, mut end) = (from, at);
    while let Some(word) = word_at(lines, end) {
        let places = word ^ repeated(b'0');
        let above_nine = (places.wrapping_add(repeated(0x76)) | places) & HIGH_BITS;
        let count = above_nine.trailing_zeros() as usize / 8;
        if count > 0 {
            let number = eight_digits(places << (64 - 8 * count));
            value = value.wrapping_mul(TENS[count]).wrapping_add(number);
        }
        end += count;
        if count < 8 {
            return (value, end);
        }
    }
    while let Some(digit) = lines.get(end).map(|byte| byte.wrapping_sub(b'0'))
        && digit <= 9
    {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    (value, end)
}

/// Eight bytes are looked at together, the first in the lowest place: entries are short, and a branch per byte is
/// mostly guessed wrong at their ends.
#[inline]
fn word_at(lines: &[u8], at: usize) -> Option<u64> {
    let bytes = lines.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

const HIGH_BITS: u64 = repeated(0x80);
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

const fn repeated(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The value of digits 0 to 9, the first in the lowest byte: pairs, then fours, then all of them at once.
#[inline]
fn eight_digits(places: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x0000_00ff_0000_00ff;
    let pairs = places.wrapping_mul(10).wrapping_add(places >> 8);
    let high = (pairs & EVERY_FOURTH).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & EVERY_FOURTH).wrapping_mul(1 + (10_000 << 32));
    high.wrapping_add(low) >> 32
}

/// Where the first of two bytes is, or the end of all.
#[inline]
fn find_either(lines: &[u8], at: usize, one: u8, other: u8) -> usize {
    let mut place = at;
    while let Some(word) = word_at(lines, place) {
        let found = zeros(word ^ repeated(one)) | zeros(word ^ repeated(other));
        if found != 0 {
            return place + found.trailing_zeros() as usize / 8;
        }
        place += 8;
    }
    lines[place..].iter().position(|&byte| byte == one || byte == other).map_or(lines.len(), |length| place + length)
}

/// The high bit of each byte that is zero; above the first such byte perhaps of others too.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(repeated(1)) & !word & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CSV: Style = Style { separator: b',', decimal: b'.' };

    fn number(text: &str) -> Option<(f64, usize)> {
        CSV.number(text.as_bytes(), 0)
    }

    #[test]
    fn numbers_of_all_spellings() {
        assert_eq!(number("12,3"), Some((12.0, 2)));
        assert_eq!(number("-0.5\n"), Some((-0.5, 4)));
        assert_eq!(number(" 7 ,"), Some((7.0, 3)));
        assert_eq!(number("\"8\",9"), Some((8.0, 3)));
        assert_eq!(number("1e-3\r\n"), Some((1e-3, 5)));
        assert_eq!(number("123456789012345678901234"), Some((1.2345678901234568e23, 24)));
        assert!(number("n/a,").is_some_and(|(value, end)| value.is_nan() && end == 3));
        assert!(number("").is_some_and(|(value, end)| value.is_nan() && end == 0));
        assert_eq!(number("12 MB,"), None);
        assert_eq!(number("1.2.3"), None);
    }

    #[test]
    fn a_decimal_comma_is_no_point() {
        let european = Style { separator: b';', decimal: b',' };
        assert_eq!(european.number(b"1,5;2", 0), Some((1.5, 3)));
        assert_eq!(european.number(b"1,5e3", 0), Some((1500.0, 5)));
        assert_eq!(european.number(b"1.5;2", 0), None);
    }

    #[test]
    fn quotes_end_where_they_must() {
        assert_eq!(CSV.text(b"\"a, b\",c", 0), Some((&b"a, b"[..], 6)));
        assert_eq!(CSV.text(b"\"a\"\r\n", 0), Some((&b"a"[..], 4)));
        assert_eq!(CSV.text(b"\"a\"\"b\",c", 0), None);
        assert_eq!(CSV.text(b"\"a\nb\",c", 0), None);
        assert_eq!(CSV.text(b"\"a", 0), None);
    }

    #[test]
    fn words_end_as_bytes_do() {
        for length in 0..20 {
            for tail in ["", ",", "x", ".5", ",1234567890", "\n:;<=>?@ab"] {
                let number = "9".repeat(length);
                let text = format!("{number}{tail}");
                let value = number.parse().unwrap_or(0);
                assert_eq!(digits(text.as_bytes(), 0, 0), (value, length), "{text}");
                let end = text.find([',', '\n']).unwrap_or(text.len());
                assert_eq!(find_either(text.as_bytes(), 0, b',', b'\n'), end, "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_double_is_read_as_it_is(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            let text = format!("{value},");
            prop_assert_eq!(number(&text), Some((value, text.len() - 1)));
        }

        #[test]
        fn short_decimals_are_read_as_the_library_reads_them(text in "-?[0-9]{1,12}(\\.[0-9]{0,9})?") {
            let read = number(&text).map(|(value, _)| value);
            prop_assert_eq!(read, text.parse().ok());
        }
    }
}
