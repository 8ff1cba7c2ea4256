//! Devices whose zones take writes in sequence only (host-managed): what jobs have to be like there, and a zone is emptied
//! before it is written anew.

use std::os::fd::RawFd;

use workload::job::Op;
use workload::phase::GroupSpec;
use workload::spec::{JobSpec, Pattern};

use crate::error::StartError;
use crate::files::{OpenFile, reads, writes};
use crate::queue::queue_attribute;

/// By the file's index in the phase; None: it takes writes anywhere.
#[derive(Debug)]
pub struct Zones(Vec<Option<ZonedFile>>);

#[derive(Clone, Copy, Debug)]
struct ZonedFile {
    fd: RawFd,
    base: u64,
    zone_bytes: u64,
}

/// `struct blk_zone_report` with one `struct blk_zone` (include/uapi/linux/blkzoned.h, Linux 6.12).
#[derive(Default)]
#[repr(C)]
struct Report {
    sector: u64,
    zones: u32,
    flags: u32,
    start: u64,
    length: u64,
    write_pointer: u64,
    kind: u8,
    condition: u8,
    others: [u8; 6],
    capacity: u64,
    reserved: [u64; 3],
}

const BLKREPORTZONE: libc::Ioctl = 0xc010_1282_u32 as libc::Ioctl;
const BLKRESETZONE: libc::Ioctl = 0x4010_1283;
const CONVENTIONAL: u8 = 1;
const EMPTY: u8 = 1;

impl Zones {
    /// None if all files take writes anywhere.
    pub fn of(files: &[Option<OpenFile>]) -> Option<Box<Zones>> {
        let zoned = |file: &OpenFile| Some(ZonedFile { fd: file.fd(), base: file.base, zone_bytes: zone_bytes(file)? });
        let zones: Vec<_> = files.iter().map(|file| file.as_ref().and_then(zoned)).collect();
        let any = zones.iter().any(Option::is_some);
        any.then(|| Box::new(Zones(zones)))
    }

    /// Before an operation starts: empties the zone that a write begins. What the device refuses, the write then shows.
    #[cold]
    pub fn prepare(&self, op: &Op) {
        let Some(file) = self.0[op.file as usize].filter(|_| op.kind.is_write()) else {
            return;
        };
        let offset = file.base + op.offset;
        if offset.is_multiple_of(file.zone_bytes)
            && let Some(zone) = reported(file.fd, offset)
            && zone.kind != CONVENTIONAL
            && zone.condition != EMPTY
        {
            let range = [offset / 512, file.zone_bytes / 512];
            // SAFETY: the request reads two numbers through the pointer, which outlives the call.
            unsafe { libc::ioctl(file.fd, BLKRESETZONE, &range) };
        }
    }
}

/// Whether the jobs of the group write as the zones of their files ask for.
pub fn check_zones(files: &[Option<OpenFile>], group: &GroupSpec) -> Result<(), StartError> {
    for job in &group.jobs {
        for file in job.files.iter().filter_map(|&file| files.get(file as usize)?.as_ref()) {
            check_job(file, job, group)?;
        }
    }
    Ok(())
}

fn check_job(file: &OpenFile, job: &JobSpec, group: &GroupSpec) -> Result<(), StartError> {
    let Some(zone_bytes) = zone_bytes(file).filter(|_| writes(job)) else {
        return Ok(());
    };
    let block = job.all_blocks().map(|block| u64::from(block.bytes)).max();
    let block = block.unwrap_or(1);
    let in_flight = (u64::from(job.queue_depth) - 1) * block;
    let ends = [file.base, job.offset_bytes, job.length_bytes];
    let obstacle = if !matches!(job.pattern, Pattern::Sequential) || job.replay.is_some() {
        Some("pattern = \"sequential\"".to_owned())
    } else if reads(job) {
        Some("read_percent = 0".to_owned())
    } else if !group.direct {
        Some("direct = true".to_owned())
    } else if job.all_blocks().count() > 1 || !zone_bytes.is_multiple_of(block) {
        Some("one block_size that divides a zone".to_owned())
    } else if ends.iter().any(|bytes| !bytes.is_multiple_of(zone_bytes)) {
        Some("ranges and a file_size of whole zones".to_owned())
    } else if in_flight > job.length_bytes - zone_bytes {
        Some("a lower queue_depth, or more zones".to_owned())
    } else {
        let zone = reported(file.fd(), file.base + job.offset_bytes);
        zone.filter(|zone| zone.capacity != 0 && zone.capacity != zone.length)
            .map(|_| "zones that can be written to their ends".to_owned())
    };
    obstacle.map_or(Ok(()), |expected| {
        Err(StartError::spec(format!(
            "{}: its zones of {zone_bytes} bytes take writes in sequence only (host-managed), and job {:?} does not write \
             so: it takes {expected}",
            file.path, job.name
        )))
    })
}

fn zone_bytes(file: &OpenFile) -> Option<u64> {
    if !file.is_device || queue_attribute(file.device, "zoned")? != "host-managed" {
        return None;
    }
    let sectors: u64 = queue_attribute(file.device, "chunk_sectors")?.parse().ok()?;
    (sectors > 0).then_some(sectors * 512)
}

/// The zone that begins at the offset.
fn reported(fd: RawFd, offset: u64) -> Option<Report> {
    let mut report = Report { sector: offset / 512, zones: 1, ..Report::default() };
    // SAFETY: the request stores a header and as many zones as the header asks for, one, into the structure.
    let status = unsafe { libc::ioctl(fd, BLKREPORTZONE, &mut report) };
    (status == 0 && report.zones == 1).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_laid_out_as_the_kernel_fills_it() {
        assert_eq!(size_of::<Report>(), 16 + 64);
        assert_eq!(std::mem::offset_of!(Report, capacity), 16 + 32);
    }
}
