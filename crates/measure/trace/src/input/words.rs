//! Numbers and words of lines, without copying.

/// What is left of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Words<'a> {
    /// The next word between blanks.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let length = self.0.iter().position(|&byte| is_blank(byte));
        let (word, rest) = self.0.split_at(length.unwrap_or(self.0.len()));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// What comes before the byte; the rest begins after it.
    #[inline]
    pub(crate) fn until(&mut self, byte: u8) -> Option<&'a [u8]> {
        let at = memchr::memchr(byte, self.0)?;
        let before = &self.0[..at];
        self.0 = &self.0[at + 1..];
        Some(before)
    }

    /// A number that is the next word.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        number(self.next()?)
    }

    /// Takes that byte if it is the next that is no blank.
    pub(crate) fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    #[inline]
    fn skip_blanks(&mut self) {
        let blanks = self.0.iter().position(|&byte| !is_blank(byte));
        self.0 = &self.0[blanks.unwrap_or(self.0.len())..];
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Digits, all of them.
#[inline]
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The digits that a text begins with, as a number, and how many they are: none of a number of more than 18.
#[inline]
pub(crate) fn leading_number(text: &[u8]) -> (u64, usize) {
    match rows::digits(text, 0, 0) {
        (value, length) if length <= NUMBER_DIGITS_MAX => (value, length),
        _ => (0, 0),
    }
}

const NUMBER_DIGITS_MAX: usize = 18;

/// Digits with a sign.
pub(crate) fn signed(digits: &[u8]) -> Option<i64> {
    match digits.strip_prefix(b"-") {
        Some(digits) => Some(-i64::try_from(number(digits)?).ok()?),
        None => i64::try_from(number(digits)?).ok(),
    }
}

/// `12.345` in units of which this many nanoseconds are one, to the nanosecond.
#[inline]
pub(crate) fn time_ns(text: &[u8], unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let whole_ns = number(whole)?.checked_mul(unit_ns)?;
    let mut scale_ns = unit_ns;
    let mut sum_ns = 0;
    for &byte in fraction {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        scale_ns /= 10;
        sum_ns += u64::from(digit) * scale_ns;
    }
    whole_ns.checked_add(sum_ns)
}

/// `8,16`: the number of a device.
pub(crate) fn device(text: &[u8], between: u8) -> Option<crate::event::Device> {
    let at = memchr::memchr(between, text)?;
    let (major, minor) = (number(&text[..at])?, number(&text[at + 1..])?);
    let (major, minor) = (u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    (major < 1 << 12).then(|| crate::event::Device::new(major, minor))
}

/// The beginning of a line, for a message.
pub(crate) fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn leading_digits_are_the_number_that_they_say(value in 0..10u64.pow(18), zeros in 0..4usize, rest in "[^0-9][ -~]{0,20}|") {
            let digits = format!("{}{value}", "0".repeat(zeros));
            let text = format!("{digits}{rest}");
            let expected = match digits.len() <= NUMBER_DIGITS_MAX {
                true => (value, digits.len()),
                false => (0, 0),
            };
            prop_assert_eq!(leading_number(text.as_bytes()), expected);
        }

        #[test]
        fn no_bytes_are_taken_for_digits_that_are_none(text in prop::collection::vec(any::<u8>(), 0..30)) {
            let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let expected = match length <= NUMBER_DIGITS_MAX {
                true => (number(&text[..length]).unwrap_or(0), length),
                false => (0, 0),
            };
            prop_assert_eq!(leading_number(&text), expected);
        }
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(time_ns(b"12.000000345", 1_000_000_000), Some(12_000_000_345));
        assert_eq!(time_ns(b"979.333266", 1_000_000_000), Some(979_333_266_000));
        assert_eq!(time_ns(b"0.25", 1_000_000), Some(250_000));
        assert_eq!(time_ns(b"7", 1000), Some(7000));
        assert_eq!(time_ns(b"7.x", 1000), None);
        assert_eq!(time_ns(b"99999999999999", 1_000_000_000), None);
    }
}
