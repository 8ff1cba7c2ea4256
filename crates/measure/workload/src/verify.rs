//! Block stamps: what a block on the device must look like, and what is reported if it does not.
//!
//! ```text
//! 0         8         16        24            28     32
//! checksum  file id   offset    generation    0      pseudo-random bytes to the end of the block
//! ```
//! All numbers little-endian; the checksum is XXH3-64 of everything after it.

use std::fmt;

use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use crate::spec::JobSpec;
use base::rng::{GOLDEN_GAMMA, mix64};

/// The smallest block that carries a stamp, in bytes.
pub const BLOCK_BYTES_MIN: u32 = 512;
/// The largest block that carries a stamp, in bytes.
pub const BLOCK_BYTES_MAX: u32 = 4096;

/// The size of a verified block: the largest power of two up to 4096 that divides the job's sizes, offsets and
/// alignment, so that no operation touches a part of one. `None` when that is less than 512.
pub fn block_bytes(spec: &JobSpec) -> Option<u32> {
    let sizes = spec.all_blocks().map(|block| u64::from(block.bytes));
    let bits =
        sizes.chain(spec.alignments()).fold(spec.offset_bytes | u64::from(BLOCK_BYTES_MAX), |bits, size| bits | size);
    let bytes = 1 << bits.trailing_zeros();
    (bytes >= BLOCK_BYTES_MIN).then_some(bytes)
}

/// Which write of which place a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The file's number in the stamp.
    pub file_id: u64,
    /// The block's offset in the file, in bytes.
    pub offset: u64,
    /// Counts the writes of this place.
    pub generation: u32,
}

/// A block that is not what was written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{fault}: expected {}, found {}", self.expected(), self.found())]
pub struct Mismatch {
    /// What is wrong with the block.
    pub fault: Fault,
    file_id: u64,
    offset: u64,
    generation: Option<u32>,
    /// What the block claims to be, whether or not that can be believed.
    pub claimed: Identity,
    checksum: Checksum,
}

/// The ways in which a block can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing but zeros: never written, or lost.
    Zeroed,
    /// The checksum is not that of the content: torn, or changed.
    Corrupt,
    /// A whole block, but of another file or offset.
    Misplaced,
    /// The right place, but another write of it: an old one came back, or one was lost.
    WrongGeneration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checksum {
    stored: u64,
    computed: u64,
}

const HEADER_BYTES: usize = 32;

/// Fills `block`, at least 512 bytes, with what belongs at that place; behind the header the `payload`, as long as a
/// block, or pseudo-random bytes.
pub fn stamp(block: &mut [u8], file_id: u64, offset: u64, generation: u32, payload: Option<&[u8]>) {
    assert!(block.len() >= BLOCK_BYTES_MIN as usize, "a verified block has at least {BLOCK_BYTES_MIN} bytes");
    block[8..16].copy_from_slice(&file_id.to_le_bytes());
    block[16..24].copy_from_slice(&offset.to_le_bytes());
    block[24..28].copy_from_slice(&generation.to_le_bytes());
    block[28..HEADER_BYTES].fill(0);
    if let Some(payload) = payload {
        block[HEADER_BYTES..].copy_from_slice(&payload[HEADER_BYTES..]);
    } else {
        let seed = mix64(mix64(file_id ^ u64::from(generation) << 32).wrapping_add(offset));
        fill(&mut block[HEADER_BYTES..], seed);
    }
    let checksum = xxh3_64(&block[8..]);
    block[..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Whether `block` holds what `stamp` put there. With `None`, any generation will do.
pub fn check(block: &[u8], file_id: u64, offset: u64, expected_generation: Option<u32>) -> Result<(), Mismatch> {
    assert!(block.len() >= BLOCK_BYTES_MIN as usize, "a verified block has at least {BLOCK_BYTES_MIN} bytes");
    let checksum = Checksum { stored: word(block, 0), computed: xxh3_64(&block[8..]) };
    let claimed = Identity { file_id: word(block, 8), offset: word(block, 16), generation: word(block, 24) as u32 };
    let fault = if checksum.stored != checksum.computed {
        if block.iter().all(|&byte| byte == 0) { Fault::Zeroed } else { Fault::Corrupt }
    } else if (claimed.file_id, claimed.offset) != (file_id, offset) {
        Fault::Misplaced
    } else if expected_generation.is_some_and(|generation| generation != claimed.generation) {
        Fault::WrongGeneration
    } else {
        return Ok(());
    };
    Err(Mismatch { fault, file_id, offset, generation: expected_generation, claimed, checksum })
}

/// A pattern repeated to the length of a block.
pub fn repeated(pattern: &[u8], block_bytes: usize) -> Vec<u8> {
    pattern.iter().copied().cycle().take(block_bytes).collect()
}

/// Where `block` is not the pattern that `expected` holds: what was expected there and what was found.
pub fn check_pattern(block: &[u8], expected: &[u8]) -> Result<(), (String, String)> {
    let Some(at) = block.iter().zip(expected).position(|(a, b)| a != b) else {
        return Ok(());
    };
    let shown = |bytes: &[u8]| -> String {
        let of_place: Vec<String> = bytes[at..].iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        of_place.join(" ")
    };
    let found = if block.iter().all(|&byte| byte == 0) {
        format!("{}: zeros", Fault::Zeroed)
    } else {
        format!("{}: {}", Fault::Corrupt, shown(block))
    };
    Err((format!("the pattern, {} at byte {at} of the block", shown(expected)), found))
}

impl Mismatch {
    /// What the block has to hold: file, offset, generation.
    pub fn expected(&self) -> String {
        let generation = self.generation.map_or("any generation".into(), |number| format!("generation {number}"));
        format!("file {} offset {} {generation}", self.file_id, self.offset)
    }

    /// What it claims to hold, as far as it can be believed.
    pub fn found(&self) -> String {
        let Identity { file_id, offset, generation } = self.claimed;
        let claimed = format!("file {file_id} offset {offset} generation {generation}");
        match self.fault {
            Fault::Zeroed => "zeros".into(),
            Fault::Corrupt => {
                let Checksum { stored, computed } = self.checksum;
                format!("checksum {stored:016x} over content with {computed:016x}, claiming {claimed}")
            }
            Fault::Misplaced | Fault::WrongGeneration => claimed,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Fault::Zeroed => "zeroed block",
            Fault::Corrupt => "corrupt block",
            Fault::Misplaced => "misplaced block",
            Fault::WrongGeneration => "wrong generation",
        })
    }
}

/// One multiplication per 8 bytes: enough that no device compresses or deduplicates the result.
fn fill(bytes: &mut [u8], seed: u64) {
    let mut state = seed;
    for chunk in bytes.chunks_mut(8) {
        state = state.wrapping_add(GOLDEN_GAMMA);
        let mixed = (state ^ state >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        chunk.copy_from_slice(&(mixed ^ mixed >> 32).to_le_bytes()[..chunk.len()]);
    }
}

fn word(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamped(bytes: usize, file_id: u64, offset: u64, generation: u32) -> Vec<u8> {
        let mut block = vec![0xA5; bytes];
        stamp(&mut block, file_id, offset, generation, None);
        block
    }

    fn fault(block: &[u8], file_id: u64, offset: u64, generation: Option<u32>) -> Option<Fault> {
        check(block, file_id, offset, generation).err().map(|mismatch| mismatch.fault)
    }

    proptest! {
        #[test]
        fn a_stamped_block_passes(
            file_id: u64, offset: u64, generation: u32, bytes in prop::sample::select(vec![512usize, 1000, 4096]),
        ) {
            let block = stamped(bytes, file_id, offset, generation);
            prop_assert_eq!(check(&block, file_id, offset, Some(generation)), Ok(()));
            prop_assert_eq!(check(&block, file_id, offset, None), Ok(()));
        }

        #[test]
        fn any_changed_byte_is_found(offset: u64, at in 0..4096usize, change in 1..=255u8) {
            let mut block = stamped(4096, 1, offset, 9);
            block[at] ^= change;
            prop_assert_eq!(fault(&block, 1, offset, None), Some(Fault::Corrupt));
        }

        #[test]
        fn a_block_from_elsewhere_is_found(file_id in 0..4u64, offset in 0..4u64, generation in 0..4u32) {
            let block = stamped(512, file_id, offset, generation);
            let expected = if (file_id, offset) != (1, 2) {
                Some(Fault::Misplaced)
            } else if generation != 3 {
                Some(Fault::WrongGeneration)
            } else {
                None
            };
            prop_assert_eq!(fault(&block, 1, 2, Some(3)), expected);
        }

        #[test]
        fn a_torn_block_is_found(torn_at in 1..4096usize) {
            let (old, new) = (stamped(4096, 1, 0, 1), stamped(4096, 1, 0, 2));
            let torn = [&new[..torn_at], &old[torn_at..]].concat();
            prop_assume!(torn != new);
            prop_assert_eq!(fault(&torn, 1, 0, None), Some(Fault::Corrupt));
        }
    }

    #[test]
    fn a_block_never_written_is_called_zeros() {
        let mismatch = check(&[0; 4096], 1, 8192, Some(2)).unwrap_err();
        assert_eq!(mismatch.to_string(), "zeroed block: expected file 1 offset 8192 generation 2, found zeros");
    }

    #[test]
    fn a_pattern_fills_the_block_behind_the_stamp_and_any_change_is_found() {
        let payload = repeated(&[0xde, 0xad, 0xbe, 0xef], 512);
        let mut block = vec![0; 512];
        stamp(&mut block, 1, 4096, 3, Some(&payload));
        assert_eq!(block[HEADER_BYTES..], payload[HEADER_BYTES..]);
        assert_eq!(check(&block, 1, 4096, Some(3)), Ok(()));
        block[100] ^= 1;
        assert_eq!(fault(&block, 1, 4096, Some(3)), Some(Fault::Corrupt));
    }

    #[test]
    fn a_block_of_nothing_but_a_pattern_names_the_first_wrong_byte() {
        let expected = repeated(b"abc", 512);
        assert_eq!(check_pattern(&expected, &expected), Ok(()));
        let mut block = expected.clone();
        block[4] = 0;
        let (wanted, found) = check_pattern(&block, &expected).unwrap_err();
        assert_eq!(wanted, "the pattern, 62 63 61 62 63 61 62 63 at byte 4 of the block");
        assert_eq!(found, "corrupt block: 00 63 61 62 63 61 62 63");
        let (_, found) = check_pattern(&[0; 512], &expected).unwrap_err();
        assert_eq!(found, "zeroed block: zeros");
    }

    #[test]
    fn payloads_look_random() {
        let block = stamped(4096, 1, 0, 1);
        let ones: u32 = block[HEADER_BYTES..].iter().map(|byte| byte.count_ones()).sum();
        let bits = (4096 - HEADER_BYTES) as f64 * 8.0;
        assert!((f64::from(ones) - bits / 2.0).abs() < 5.0 * (bits / 4.0).sqrt());
        let next = stamped(4096, 1, 4096, 1);
        assert!(block.chunks(8).zip(next.chunks(8)).skip(HEADER_BYTES / 8).all(|(a, b)| a != b));
    }
}
