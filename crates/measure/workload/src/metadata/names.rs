//! File names: a sequential part, then a random one.

use serde::Deserialize;

use base::rng;

/// How a thread names its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NameSpec {
    /// Length of a name.
    pub bytes: u32,
    /// How many of them, at the end, are random letters and digits.
    pub random_bytes: u32,
    /// The sequential part of file 0, and how much each further file adds: threads that share a directory take turns.
    pub first: u64,
    /// Added to the sequential part per file: the number of threads that share the directory.
    pub step: u64,
}

#[derive(Clone, Debug)]
pub struct Names {
    sequential: usize,
    random: usize,
    first: u64,
    step: u64,
    seed: u64,
}

/// The longest name that Linux filesystems take.
const NAME_BYTES_MAX: u32 = 255;
const DIGITS: &[u8; 16] = b"0123456789abcdef";
const ALPHABET: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Fills a sequential part that has fewer digits.
const PADDING: u8 = b'~';

impl Names {
    pub fn new(spec: &NameSpec, seed: u64) -> Result<Names, String> {
        if !(1..=NAME_BYTES_MAX).contains(&spec.bytes) || spec.random_bytes > spec.bytes {
            return Err(format!(
                "a name of {} bytes, {} of them random; expected 1 to {NAME_BYTES_MAX}, and no more random ones",
                spec.bytes, spec.random_bytes
            ));
        }
        Ok(Names {
            sequential: (spec.bytes - spec.random_bytes) as usize,
            random: spec.random_bytes as usize,
            first: spec.first,
            step: spec.step,
            seed,
        })
    }

    pub fn bytes(&self) -> usize {
        self.sequential + self.random
    }

    /// A function of the file's number: the name is the same whenever it is asked for.
    pub fn write(&self, file: u64, name: &mut [u8]) {
        let (sequential, random) = name.split_at_mut(self.sequential);
        let number = self.first.wrapping_add(file.wrapping_mul(self.step));
        write_number(number, sequential);
        let mut stream = rng::stream(self.seed, file);
        for byte in random {
            *byte = ALPHABET[stream.below(ALPHABET.len() as u64) as usize];
        }
    }
}

/// Hexadecimal, the least significant digits if there is no room for all.
fn write_number(number: u64, field: &mut [u8]) {
    let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1) as usize;
    let shown = digits.min(field.len());
    let (head, padding) = field.split_at_mut(shown);
    for (place, byte) in head.iter_mut().rev().enumerate() {
        *byte = DIGITS[(number >> (4 * place)) as usize & 0xf];
    }
    padding.fill(PADDING);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: u32, random_bytes: u32, file: u64) -> String {
        let spec = NameSpec { bytes, random_bytes, first: 10, step: 1 };
        let names = Names::new(&spec, 7).unwrap();
        let mut name = vec![0; names.bytes()];
        names.write(file, &mut name);
        String::from_utf8(name).unwrap()
    }

    #[test]
    fn the_sequential_part_counts_in_hexadecimal_and_the_rest_is_random() {
        let usual = name(40, 24, 0);
        assert!(usual.starts_with("a~~~~~~~~~~~~~~~"), "{usual}");
        assert!(usual[16..].bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()));
        assert_eq!(name(40, 24, 0), usual);
        assert_ne!(name(40, 24, 1)[16..], usual[16..]);
        assert_eq!(name(6, 0, 0x12345 - 10), "12345~");
    }

    #[test]
    fn a_short_sequential_part_keeps_the_digits_that_change() {
        assert_eq!(name(2, 0, 0x12345 - 10), "45");
        assert_eq!(name(3, 3, 5).len(), 3);
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for (bytes, random_bytes) in [(0, 0), (256, 0), (4, 5)] {
            let spec = NameSpec { bytes, random_bytes, first: 0, step: 1 };
            assert!(Names::new(&spec, 0).unwrap_err().contains("expected 1 to"));
        }
    }
}
