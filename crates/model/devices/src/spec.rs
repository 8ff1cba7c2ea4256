//! A device of a machine file: the choice of its kind.

use serde::Deserialize;

use crate::Device;
use crate::array::{Array, ArraySpec};
use crate::disk::{Disk, DiskSpec};
use crate::flash::{Flash, FlashSpec};
use crate::lun::{Lun, LunSpec};
use crate::null::{Null, NullSpec};
use block_layer::{SECTOR_BYTES, Sector};
use events::SpecError;

/// What a device says of itself before the first command.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Size of the device, in sectors of 512 bytes.
    pub sectors: Sector,
    /// Commands that it takes at once, or each of its queues does.
    pub queue_depth: u32,
    /// Each of its queues takes this many, as with NVMe; otherwise all together, as with a SCSI device, whose depth is
    /// the device's whatever its adapter has (`scsi_device::queue_depth`).
    pub depth_by_queue: bool,
    /// The kernel spreads its interrupts over CPUs, as those of PCI devices.
    pub manages_interrupts: bool,
    /// Seeks cost time: the kernel's `rotational` flag.
    pub rotational: bool,
    /// It acknowledges writes from a cache that forgets without power: the kernel's `write_cache`.
    pub volatile_cache: bool,
}

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

    /// Found without building the device, whose tables take milliseconds. The error is that of `check`.
    pub fn identity(&self) -> Result<Identity, SpecError> {
        self.check()?;
        let scsi_disk = |sectors, queue_depth| Identity {
            sectors,
            queue_depth,
            depth_by_queue: false,
            manages_interrupts: true,
            rotational: true,
            volatile_cache: false,
        };
        Ok(match self {
            DeviceSpec::Null(spec) => Identity {
                depth_by_queue: true,
                manages_interrupts: false,
                rotational: false,
                volatile_cache: spec.volatile_cache,
                ..scsi_disk(spec.capacity_bytes / SECTOR_BYTES, spec.queue_depth)
            },
            DeviceSpec::Disk(spec) => {
                Identity { volatile_cache: spec.cache.write_back, ..scsi_disk(spec.sectors(), spec.queue.depth) }
            }
            DeviceSpec::Lun(spec) => Identity {
                volatile_cache: spec.flush_ns.is_some(),
                ..scsi_disk(spec.capacity_bytes / SECTOR_BYTES, spec.queue_depth)
            },
            DeviceSpec::Array(spec) => scsi_disk(spec.sectors(), spec.queue_depth),
            DeviceSpec::Flash(spec) => Identity {
                depth_by_queue: true,
                rotational: false,
                volatile_cache: spec.firmware.reports_write_cache(),
                ..scsi_disk(spec.sectors(), spec.queue_depth)
            },
        })
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
