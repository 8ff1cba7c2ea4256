//! A device of a machine file: the choice of its kind.

use serde::Deserialize;

use crate::Device;
use crate::array::{Array, ArraySpec};
use crate::disk::{Disk, DiskSpec};
use crate::flash::{Flash, FlashSpec};
use crate::lun::{Lun, LunSpec};
use crate::null::{Null, NullSpec};
use events::SpecError;

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
