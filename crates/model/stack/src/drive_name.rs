//! What a kernel calls a drive, and the number that it has: each driver counts its own.
//!
//! Sources, all of 6.1: Documentation/admin-guide/devices.txt; `sd_format_disk_name`, `sd_major` and `sd_probe` of
//! `drivers/scsi/sd.c`; `include/uapi/linux/major.h` for IDE; `register_blkdev` of `block/genhd.c`.

use trace::event::Device;

/// A drive in traces and in the names of kernel threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveName {
    /// sda, nvme0n1, ...
    pub name: String,
    /// `major:minor`
    pub device: Device,
}

/// Who drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Disks, LUNs and arrays of SCSI and Fibre Channel, and SATA by libata.
    Scsi,
    /// Disks of parallel ATA before libata had them.
    Ide,
    /// Flash on PCIe.
    Nvme,
    /// A device that only waits.
    NullBlk,
}

impl DriveName {
    /// In the order of the drives.
    pub fn of(drivers: impl IntoIterator<Item = Driver>) -> Vec<DriveName> {
        let mut found = [0; 4];
        let names = drivers.into_iter().map(|driver| {
            let driver = match driver {
                Driver::Ide if found[Driver::Ide as usize] == IDE_DRIVES => Driver::Scsi,
                driver => driver,
            };
            let number = found[driver as usize];
            found[driver as usize] += 1;
            driver.name(number)
        });
        names.collect()
    }
}

/// Of each channel, which has two drives.
const IDE_MAJORS: [u32; 10] = [3, 22, 33, 34, 56, 57, 88, 89, 90, 91];
const IDE_DRIVES: u32 = 2 * IDE_MAJORS.len() as u32;
const BLOCK_EXTENDED_MAJOR: u32 = 259;

/// The highest that is free, from 254 down, in all kernels with this driver (3.13 on). It is 252 if RAID (`mdp`) and
/// the device mapper are built in and come first, as in distributions' kernels; if neither is, 254.
const NULL_BLK_MAJOR: u32 = 252;

impl Driver {
    /// The name of the drive with this number, from 0.
    fn name(self, number: u32) -> DriveName {
        let (name, device) = match self {
            Driver::Scsi => {
                // Sixteen majors with sixteen disks each, then from the first one on again.
                let major = match number >> 4 & 0xf {
                    0 => 8,
                    high @ 1..=7 => 65 + high - 1,
                    high => 128 + high - 8,
                };
                let minor = (number & 0xf) << 4 | number & 0xfff00;
                (format!("sd{}", letters(number)), Device::new(major, minor))
            }
            Driver::Ide => {
                let major = IDE_MAJORS[number as usize / 2];
                let name = format!("hd{}", letters(number));
                (name, Device::new(major, 64 * (number % 2)))
            }
            Driver::Nvme => {
                let device = Device::new(BLOCK_EXTENDED_MAJOR, number);
                (format!("nvme{number}n1"), device)
            }
            Driver::NullBlk => {
                let device = Device::new(NULL_BLK_MAJOR, number);
                (format!("nullb{number}"), device)
            }
        };
        DriveName { name, device }
    }
}

/// a, ..., z, aa, ...
fn letters(number: u32) -> String {
    let (mut letters, mut left) = (Vec::new(), number + 1);
    while left > 0 {
        letters.push(char::from(b'a' + ((left - 1) % 26) as u8));
        left = (left - 1) / 26;
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(drivers: impl IntoIterator<Item = Driver>) -> Vec<String> {
        DriveName::of(drivers).iter().map(|drive| format!("{} {}", drive.name, drive.device)).collect()
    }

    #[test]
    fn each_driver_counts_its_own_drives() {
        use Driver::{Ide, NullBlk, Nvme, Scsi};
        let drives = [Nvme, Scsi, NullBlk, Nvme, Ide, Scsi, Ide, Ide];
        let wanted = [
            "nvme0n1 259:0",
            "sda 8:0",
            "nullb0 252:0",
            "nvme1n1 259:1",
            "hda 3:0",
            "sdb 8:16",
            "hdb 3:64",
            "hdc 22:0",
        ];
        assert_eq!(shown(drives), wanted);
    }

    #[test]
    fn many_disks_have_the_names_and_the_majors_of_sd() {
        let all = shown([Driver::Scsi; 1000]);
        let wanted = [
            (15, "sdp 8:240"),
            (16, "sdq 65:0"),
            (25, "sdz 65:144"),
            (26, "sdaa 65:160"),
            (128, "sddy 128:0"),
            (256, "sdiw 8:256"),
            (701, "sdzz 131:720"),
            (702, "sdaaa 131:736"),
        ];
        for (number, name) in wanted {
            assert_eq!(all[number], name);
        }
    }

    #[test]
    fn disks_that_ide_has_no_channel_for_are_on_another_adapter() {
        let all = shown([Driver::Ide; 21]);
        assert_eq!((&*all[19], &*all[20]), ("hdt 91:64", "sda 8:0"));
    }
}
