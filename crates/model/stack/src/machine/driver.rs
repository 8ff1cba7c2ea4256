//! Which of a kernel's drivers has a drive, by the drive's description.

use crate::drive_name::Driver;
use devices::DeviceSpec;
use kernels::Kernel;

/// Of Ultra DMA, modes 2 to 6, in MB/s: no mode of SCSI and of SATA has one of these.
const PARALLEL_ATA_RATES: [u64; 5] = [33, 44, 66, 100, 133];

/// A device that a kernel has no driver for yet keeps its name, so that kernels compare.
pub(super) fn driver_of(device: &DeviceSpec, kernel: &Kernel) -> Driver {
    match device {
        DeviceSpec::Null(_) => Driver::NullBlk,
        DeviceSpec::Flash(spec) if !spec.interface.half_duplex => Driver::Nvme,
        DeviceSpec::Disk(spec) if kernel.has_parallel_ata_by_ide() => {
            let rate = spec.interface_bytes_per_s / 1_000_000;
            match PARALLEL_ATA_RATES.contains(&rate) {
                true => Driver::Ide,
                false => Driver::Scsi,
            }
        }
        _ => Driver::Scsi,
    }
}
