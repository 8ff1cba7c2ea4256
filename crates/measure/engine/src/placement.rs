//! Placement handles of an NVMe namespace (Flexible Data Placement, TP4146 of the NVM Express base specification): what a
//! write names so that the drive keeps it apart from what is written to other handles.

use std::io;
use std::os::fd::RawFd;

use workload::phase::WriteHint;

use crate::nvme_command::Command;

/// I/O management receive, whose operation 1 is the status of reclaim unit handles (`nvme_query_fdp_info` of
/// drivers/nvme/host/core.c, Linux 6.16).
const RECEIVE: u8 = 0x12;
const HANDLE_STATUS: u32 = 1;
/// `NVME_IOCTL_IO_CMD` (include/uapi/linux/nvme_ioctl.h).
const NVME_IOCTL_IO_CMD: libc::Ioctl = 0xc048_4e43_u32 as libc::Ioctl;
const HEADER_BYTES: usize = 16;
const DESCRIPTOR_BYTES: usize = 32;
/// As many as Linux takes (`NVME_MAX_PLIDS`).
const HANDLES_MAX: usize = 128;

/// The placement identifier of writes with this hint, as the kernel chooses it for the hint of an inode: the first handle
/// takes what has none, and so on (`blkdev_direct_IO` of block/fops.c, Linux 6.16).
pub fn identifier(namespace: RawFd, id: u32, hint: WriteHint) -> Result<u16, String> {
    let mut page = [0; HEADER_BYTES + HANDLES_MAX * DESCRIPTOR_BYTES];
    let handles = match receive(namespace, id, &mut page) {
        Ok(0) => identifiers(&page),
        Ok(status) => return Err(none(&format!("it answers status {status:#x}"))),
        Err(error) => return Err(none(&error.to_string())),
    };
    let number = hint as usize;
    handles.get(number - 1).copied().ok_or_else(|| {
        format!(
            "write_hint asks for placement handle {number}, and the namespace has {}; give a shorter one",
            handles.len()
        )
    })
}

fn none(why: &str) -> String {
    format!(
        "the namespace states no placement handles ({why}): the drive has no Flexible Data Placement, or it is off; \
         leave write_hint out"
    )
}

/// The drive's status.
fn receive(namespace: RawFd, id: u32, page: &mut [u8]) -> io::Result<u32> {
    let mut command = Command {
        opcode: RECEIVE,
        namespace: id,
        address: page.as_mut_ptr() as u64,
        data_bytes: page.len() as u32,
        cdw: [HANDLE_STATUS, page.len() as u32 / 4 - 1, 0, 0, 0, 0],
        ..Command::default()
    };
    // SAFETY: the request reads and writes the 72 bytes that its number states, with which the command begins, and writes
    // `data_bytes` of the page, which outlives the call.
    match unsafe { libc::ioctl(namespace, NVME_IOCTL_IO_CMD, std::ptr::from_mut(&mut command)) } {
        status if status >= 0 => Ok(status as u32),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The identifier of each handle, in their order.
fn identifiers(page: &[u8]) -> Vec<u16> {
    let number = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
    let count = usize::from(number(14)).min((page.len() - HEADER_BYTES) / DESCRIPTOR_BYTES);
    (0..count).map(|at| number(HEADER_BYTES + at * DESCRIPTOR_BYTES)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn identifiers_stand_in_the_descriptors_of_the_status() {
        let mut page = vec![0; HEADER_BYTES + 3 * DESCRIPTOR_BYTES];
        page[14] = 3;
        for (at, identifier) in [(16, 0x0100_u16), (48, 0x0203), (80, 7)] {
            page[at..at + 2].copy_from_slice(&identifier.to_le_bytes());
            // The handle behind it, which writes do not name.
            page[at + 2] = 0xff;
        }
        assert_eq!(identifiers(&page), [0x0100, 0x0203, 7]);
        page[14] = 200;
        assert_eq!(identifiers(&page).len(), 3, "no more than the page holds");
    }

    #[test]
    fn what_is_no_namespace_has_no_handles() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let refusal = identifier(file.as_raw_fd(), 1, WriteHint::Short).unwrap_err();
        assert!(refusal.contains("no placement handles"), "{refusal}");
    }
}
