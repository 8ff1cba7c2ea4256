//! Sizes, durations and rates as people write them. Integers only: what has no exact value is refused, not rounded.

use thiserror::Error;

/// A text that is not a quantity: names the text, what was wrong, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{text}\": {problem}; expected {expected}")]
pub struct UnitError {
    /// The text as it was given.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
    /// What is accepted, with examples.
    pub expected: &'static str,
}

/// A size in bytes: "4KiB", "1.5 GB", "4096". KiB is 1024 bytes, KB is 1000; letter case does not matter.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    parse(text, &BYTES).map_err(|problem| UnitError { text: text.into(), problem, expected: BYTES.expected })
}

/// A duration in nanoseconds: "8ms", "1.5s", "2min", "0".
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    parse(text, &DURATIONS).map_err(|problem| UnitError { text: text.into(), problem, expected: DURATIONS.expected })
}

/// A rate in bytes per second: "100MiB/s".
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    let error = |problem| UnitError { text: text.into(), problem, expected: "a rate such as 100MiB/s" };
    let size = text.trim().strip_suffix("/s").ok_or_else(|| error("a rate ends in /s".into()))?;
    parse(size, &BYTES).map_err(error)
}

/// The text with the shortest number that `parse_bytes` reads as exactly this size.
pub fn format_bytes(bytes: u64) -> String {
    format(bytes, &BYTES)
}

/// The text with the shortest number that `parse_duration_ns` reads as exactly this duration.
pub fn format_duration_ns(duration_ns: u64) -> String {
    format(duration_ns, &DURATIONS)
}

/// `1 drive`, `2 drives`: how many there are of something whose plural ends in s.
pub fn counted(count: impl TryInto<u64>, what: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// A kind of quantity: its units, the base unit first.
struct Dimension {
    units: &'static [Unit],
    expected: &'static str,
    /// Whether a number alone is in the base unit. Zero is zero in any unit.
    bare_number: bool,
}

struct Unit {
    name: &'static str,
    factor: u64,
}

const fn unit(name: &'static str, factor: u64) -> Unit {
    Unit { name, factor }
}

const BYTES: Dimension = Dimension {
    units: &[
        unit("B", 1),
        unit("KiB", 1 << 10),
        unit("MiB", 1 << 20),
        unit("GiB", 1 << 30),
        unit("TiB", 1 << 40),
        unit("PiB", 1 << 50),
        unit("EiB", 1 << 60),
        unit("KB", 1_000),
        unit("MB", 1_000_000),
        unit("GB", 1_000_000_000),
        unit("TB", 1_000_000_000_000),
        unit("PB", 1_000_000_000_000_000),
        unit("EB", 1_000_000_000_000_000_000),
    ],
    expected: "a size such as 4096, 4KiB (4 x 1024 bytes) or 4KB (4 x 1000 bytes)",
    bare_number: true,
};

const DURATIONS: Dimension = Dimension {
    units: &[
        unit("ns", 1),
        unit("us", 1_000),
        unit("ms", 1_000_000),
        unit("s", 1_000_000_000),
        unit("min", 60_000_000_000),
        unit("h", 3_600_000_000_000),
    ],
    expected: "a duration such as 8ms, 1.5s, 2min or 0 (units: ns, us, ms, s, min, h)",
    bare_number: false,
};

fn parse(text: &str, dimension: &Dimension) -> Result<u64, String> {
    let text = text.trim();
    let number_end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit_name) = (&text[..number_end], text[number_end..].trim_start());
    let decimal = Decimal::parse(number).ok_or("it does not begin with a number")?;
    let base = &dimension.units[0];
    let unit = if unit_name.is_empty() && (dimension.bare_number || decimal.digits == 0) {
        base
    } else if unit_name.is_empty() {
        return Err("the unit is missing".into());
    } else {
        find_unit(unit_name, dimension)?
    };
    let scaled = decimal.digits.checked_mul(u128::from(unit.factor)).ok_or(TOO_LARGE)?;
    if scaled % decimal.scale != 0 {
        return Err(format!("it is not a whole number of {}", base.name));
    }
    u64::try_from(scaled / decimal.scale).map_err(|_| TOO_LARGE.into())
}

const TOO_LARGE: &str = "it is too large";

fn find_unit<'a>(name: &str, dimension: &'a Dimension) -> Result<&'a Unit, String> {
    let name = if name == "µs" || name == "μs" { "us" } else { name };
    dimension.units.iter().find(|unit| unit.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let readings: Vec<&str> = dimension
            .units
            .iter()
            .map(|unit| unit.name)
            .filter(|unit| unit.len() > name.len() && unit.is_char_boundary(name.len()))
            .filter(|unit| unit[..name.len()].eq_ignore_ascii_case(name))
            .collect();
        match readings[..] {
            [one] => format!("unknown unit \"{name}\" (did you mean {one}?)"),
            [one, other] => format!("ambiguous unit \"{name}\" ({one} or {other}?)"),
            _ => format!("unknown unit \"{name}\""),
        }
    })
}

/// A number written in decimal: `digits / scale`.
struct Decimal {
    digits: u128,
    scale: u128,
}

impl Decimal {
    /// At most 19 digits, so that a product with any factor fits in 128 bits; underscores may separate digits.
    fn parse(text: &str) -> Option<Decimal> {
        let (mut digits, mut scale, mut in_fraction, mut any) = (0u128, 1u128, false, false);
        for c in text.chars() {
            match c.to_digit(10) {
                Some(digit) => {
                    digits = digits.checked_mul(10)?.checked_add(u128::from(digit))?;
                    scale = if in_fraction { scale.checked_mul(10)? } else { scale };
                    any = true;
                }
                None if c == '.' && !in_fraction => in_fraction = true,
                None if c == '_' && any => {}
                None => return None,
            }
        }
        (any && !text.ends_with('.')).then_some(Decimal { digits, scale })
    }
}

fn format(quantity: u64, dimension: &Dimension) -> String {
    let numerals = dimension.units.iter().filter_map(|unit| Some((numeral(quantity, unit)?, unit.name)));
    let (numeral, unit) = numerals.min_by_key(|(numeral, _)| numeral.len()).expect("the base unit writes everything");
    numeral + unit
}

/// `None` when it is less than one unit, or takes more than three decimals.
fn numeral(quantity: u64, unit: &Unit) -> Option<String> {
    let (whole, rest) = (quantity / unit.factor, u128::from(quantity % unit.factor));
    let factor = u128::from(unit.factor);
    let (thousandths, inexact) = (rest * 1000 / factor, rest * 1000 % factor);
    if inexact != 0 || (whole == 0 && unit.factor > 1) {
        return None;
    }
    let fraction = if thousandths == 0 { String::new() } else { format!(".{thousandths:03}") };
    Some(format!("{whole}{}", fraction.trim_end_matches('0')))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(counted(1_usize, "drive"), "1 drive");
        assert_eq!(counted(0_u64, "drive"), "0 drives");
        assert_eq!(counted(12_u32, "event"), "12 events");
    }

    #[test]
    fn texts_mean_what_people_mean() {
        let bytes = [
            ("4096", 4096),
            ("4KiB", 4096),
            ("4 kib", 4096),
            ("1GB", 1_000_000_000),
            ("1.5MiB", 1_572_864),
            ("0", 0),
            ("1_000B", 1000),
        ];
        for (text, expected) in bytes {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
        let durations = [
            ("8ms", 8_000_000),
            ("0", 0),
            ("1.5s", 1_500_000_000),
            ("2min", 120_000_000_000),
            ("3µs", 3_000),
            ("1h", 3_600_000_000_000),
        ];
        for (text, expected) in durations {
            assert_eq!(parse_duration_ns(text), Ok(expected), "{text}");
        }
        assert_eq!(parse_rate("100MiB/s"), Ok(104_857_600));
    }

    #[test]
    fn errors_say_what_and_what_instead() {
        let error = |result: Result<u64, UnitError>| result.unwrap_err().to_string();
        let size = "expected a size such as 4096, 4KiB (4 x 1024 bytes) or 4KB (4 x 1000 bytes)";
        let duration = "expected a duration such as 8ms, 1.5s, 2min or 0 (units: ns, us, ms, s, min, h)";
        assert_eq!(error(parse_bytes("4k")), format!("\"4k\": ambiguous unit \"k\" (KiB or KB?); {size}"));
        assert_eq!(error(parse_bytes("4Ki")), format!("\"4Ki\": unknown unit \"Ki\" (did you mean KiB?); {size}"));
        assert_eq!(error(parse_bytes("")), format!("\"\": it does not begin with a number; {size}"));
        assert_eq!(error(parse_bytes("0.3B")), format!("\"0.3B\": it is not a whole number of B; {size}"));
        assert_eq!(error(parse_bytes("16EiB")), format!("\"16EiB\": it is too large; {size}"));
        assert_eq!(error(parse_duration_ns("5")), format!("\"5\": the unit is missing; {duration}"));
        assert_eq!(error(parse_duration_ns("5 apples")), format!("\"5 apples\": unknown unit \"apples\"; {duration}"));
        assert_eq!(error(parse_rate("5MiB")), "\"5MiB\": a rate ends in /s; expected a rate such as 100MiB/s");
    }

    #[test]
    fn formats_are_short() {
        let bytes = [(4096, "4KiB"), (1_000_000_000, "1GB"), (1536, "1.5KiB"), (4097, "4097B"), (0, "0B")];
        for (quantity, expected) in bytes {
            assert_eq!(format_bytes(quantity), expected);
        }
        let durations =
            [(8_000_000, "8ms"), (1_500_000_000, "1.5s"), (500_000_000, "500ms"), (90_000_000_000, "90s"), (1, "1ns")];
        for (quantity, expected) in durations {
            assert_eq!(format_duration_ns(quantity), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_formatted_parses_back(quantity: u64, shift in 0..64u32) {
            let quantity = quantity >> shift;
            prop_assert_eq!(parse_bytes(&format_bytes(quantity)), Ok(quantity));
            prop_assert_eq!(parse_duration_ns(&format_duration_ns(quantity)), Ok(quantity));
            prop_assert_eq!(parse_rate(&format!("{}/s", format_bytes(quantity))), Ok(quantity));
        }
    }
}
