//! The limits that keys of several devices share.

use block_layer::SECTOR_BYTES;
use events::SpecError;
use events::spec_error::{RATE, within};

pub(super) fn queue_depth(key: &str, commands: u32) -> Result<(), SpecError> {
    within(key, u64::from(commands), 1, u64::from(QUEUE_DEPTH_MAX))
}

/// A rate that something could have.
pub(super) fn rate(key: &str, bytes_per_s: u64) -> Result<(), SpecError> {
    within(key, bytes_per_s, RATE.0, RATE.1)
}

/// The size of a device.
pub(super) fn capacity(key: &str, bytes: u64) -> Result<(), SpecError> {
    whole_sectors(key, bytes)?;
    within(key, bytes, SECTOR_BYTES, CAPACITY_BYTES_MAX)
}

/// A positive whole number of sectors.
pub(super) fn whole_sectors(key: &str, bytes: u64) -> Result<(), SpecError> {
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(SpecError::of(key, format!("expected a positive multiple of 512 bytes, found {bytes}")));
    }
    Ok(())
}

pub(super) const QUEUE_DEPTH_MAX: u32 = 65_536;

/// No device is larger: 1 PiB.
pub(super) const CAPACITY_BYTES_MAX: u64 = 1 << 50;

/// Longer times in one piece of work than this are mistakes, and keep sums of them far from overflow.
pub(super) const WORK_NS_MAX: u64 = 10_000_000_000;
