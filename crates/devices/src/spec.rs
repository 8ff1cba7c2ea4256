//! What every device's specification shares: the error, and the choice of kind.

use serde::Deserialize;

use crate::Device;
use crate::array::{Array, ArraySpec};
use crate::disk::{Disk, DiskSpec};
use crate::flash::{Flash, FlashSpec};
use crate::lun::{Lun, LunSpec};
use crate::null::{Null, NullSpec};
use block_layer::SECTOR_BYTES;
use events::SpecError;
use events::spec_error::{RATE, within};

/// A device of a machine file: its `kind` and that kind's keys.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeviceSpec {
    /// A fixed latency, whatever the load: docs/model/README.md.
    Null(NullSpec),
    /// A disk: docs/model/disk.md.
    Disk(DiskSpec),
    /// A cached LUN: docs/model/lun.md.
    Lun(LunSpec),
    /// A RAID array: docs/model/array.md.
    Array(ArraySpec),
    /// An SSD: docs/model/flash.md.
    Flash(FlashSpec),
}

impl DeviceSpec {
    /// Checks that every value lies in its range. The error names the first key whose value does not,
    /// without the prefix `device`.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            DeviceSpec::Null(spec) => spec.check(),
            DeviceSpec::Disk(spec) => spec.check(),
            DeviceSpec::Lun(spec) => spec.check(),
            DeviceSpec::Array(spec) => spec.check(),
            DeviceSpec::Flash(spec) => spec.check(),
        }
    }

    /// The device, idle. The error is that of `check`.
    pub fn build(&self) -> Result<Box<dyn Device>, SpecError> {
        Ok(match self {
            DeviceSpec::Null(spec) => Box::new(Null::new(spec)?),
            DeviceSpec::Disk(spec) => Box::new(Disk::new(spec)?),
            DeviceSpec::Lun(spec) => Box::new(Lun::new(spec)?),
            DeviceSpec::Array(spec) => Box::new(Array::new(spec)?),
            DeviceSpec::Flash(spec) => Box::new(Flash::new(spec)?),
        })
    }
}

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
        return Err(SpecError::of(
            key,
            format!("expected a positive multiple of 512 bytes, found {bytes}"),
        ));
    }
    Ok(())
}

pub(super) const QUEUE_DEPTH_MAX: u32 = 65_536;

/// No device is larger: 1 PiB.
pub(super) const CAPACITY_BYTES_MAX: u64 = 1 << 50;

/// Longer times in one piece of work than this are mistakes, and keep sums of them far from overflow.
pub(super) const WORK_NS_MAX: u64 = 10_000_000_000;
