//! What every device's specification shares: the error, and the choice of kind.

use serde::Deserialize;

use crate::Impossible;
use crate::device::Device;
use crate::device::array::{Array, ArraySpec};
use crate::device::disk::{Disk, DiskSpec};
use crate::device::flash::{Flash, FlashSpec};
use crate::device::lun::{Lun, LunSpec};
use crate::device::null::{Null, NullSpec};
use crate::impossible::within;

/// A device of a machine file: its `kind` and that kind's keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeviceSpec {
    Null(NullSpec),
    Disk(DiskSpec),
    Lun(LunSpec),
    Array(ArraySpec),
    Flash(FlashSpec),
}

impl DeviceSpec {
    pub fn check(&self) -> Result<(), Impossible> {
        match self {
            DeviceSpec::Null(spec) => spec.check(),
            DeviceSpec::Disk(spec) => spec.check(),
            DeviceSpec::Lun(spec) => spec.check(),
            DeviceSpec::Array(spec) => spec.check(),
            DeviceSpec::Flash(spec) => spec.check(),
        }
    }

    pub fn build(&self) -> Result<Box<dyn Device>, Impossible> {
        Ok(match self {
            DeviceSpec::Null(spec) => Box::new(Null::new(spec)?),
            DeviceSpec::Disk(spec) => Box::new(Disk::new(spec)?),
            DeviceSpec::Lun(spec) => Box::new(Lun::new(spec)?),
            DeviceSpec::Array(spec) => Box::new(Array::new(spec)?),
            DeviceSpec::Flash(spec) => Box::new(Flash::new(spec)?),
        })
    }
}

pub(super) fn queue_depth(key: &str, commands: u32) -> Result<(), Impossible> {
    within(key, u64::from(commands), 1, 65_536)
}

/// A rate that something could have: 1 MB/s to 1 TB/s.
pub(super) fn rate(key: &str, bytes_per_s: u64) -> Result<(), Impossible> {
    within(key, bytes_per_s, 1_000_000, 1_000_000_000_000)
}

/// The size of a device; no device is larger than 2^50 bytes.
pub(super) fn capacity(key: &str, bytes: u64) -> Result<(), Impossible> {
    whole_sectors(key, bytes)?;
    within(key, bytes, crate::block::SECTOR_BYTES, 1 << 50)
}

/// A positive whole number of sectors.
pub(super) fn whole_sectors(key: &str, bytes: u64) -> Result<(), Impossible> {
    if bytes == 0 || !bytes.is_multiple_of(crate::block::SECTOR_BYTES) {
        return Err(Impossible::of(
            key,
            format!("expected a positive multiple of 512 bytes, found {bytes}"),
        ));
    }
    Ok(())
}

/// Longer times in one piece of work than this are mistakes, and keep sums of them far from overflow.
pub(super) const WORK_NS_MAX: u64 = 10_000_000_000;
