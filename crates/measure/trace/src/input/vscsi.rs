//! CloudPhysics' traces of virtual disks: records of 32 or 40 bytes, version 1 and 2.
//!
//! Source of the layout and of the units (microseconds, bytes, sectors): libCacheSim's reader of vSCSI traces.

use super::blktrace::u32_at;
use super::stream::Decode;
use super::trace_info::{ReadError, TraceInfo};
use crate::event::{Op, Step, TraceEvent};
use base::SECTOR_BYTES;

/// Reads records of one version.
pub(crate) struct Vscsi {
    second: bool,
}

const BYTES_1: usize = 32;
const BYTES_2: usize = 40;
const MICROSECOND_NS: u64 = 1000;
impl Vscsi {
    /// What a file that begins so is; the records of both versions have it at different places.
    pub(crate) fn of(bytes: &[u8]) -> Option<Vscsi> {
        let is = |second: bool| {
            let vscsi = Vscsi { second };
            let mut records = bytes.chunks_exact(vscsi.bytes()).take(3).peekable();
            records.peek().is_some() && records.all(|record| vscsi.holds(record))
        };
        [false, true].into_iter().find(|&second| is(second)).map(|second| Vscsi { second })
    }

    fn bytes(&self) -> usize {
        if self.second { BYTES_2 } else { BYTES_1 }
    }

    fn command_at(&self) -> usize {
        if self.second { 0 } else { 12 }
    }

    fn holds(&self, record: &[u8]) -> bool {
        let version = record[self.command_at() + 3];
        let known = operation(u16_at(record, self.command_at())).is_some();
        version == 1 + u8::from(self.second) && known
    }
}

impl Decode for Vscsi {
    fn decode(
        &mut self,
        bytes: &[u8],
        _end: bool,
        events: &mut Vec<TraceEvent>,
        about: &mut TraceInfo,
    ) -> Result<usize, ReadError> {
        let records = bytes.chunks_exact(self.bytes());
        let taken = bytes.len() - records.remainder().len();
        for record in records {
            about.records += 1;
            let command = u16_at(record, self.command_at());
            let Some(op) = operation(command) else {
                about.records_skipped += 1;
                continue;
            };
            let number = |at| u32_at(record, at).unwrap_or(0);
            let long = |at| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
            let (length_at, sector_at) = if self.second { (8, 16) } else { (4, 16) };
            let mut event = TraceEvent {
                sector: long(sector_at),
                sectors: number(length_at) / SECTOR_BYTES as u32,
                op,
                ..TraceEvent::new(long(24).saturating_mul(MICROSECOND_NS), Step::Arrival)
            };
            if self.second {
                event.step = Step::WholeDone;
                event.argument = long(32).saturating_mul(MICROSECOND_NS);
                event.at_ns = event.at_ns.saturating_add(event.argument);
            }
            events.push(event);
        }
        Ok(taken)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The operation of a command in hexadecimal digits, as tables have it.
pub(crate) fn hexadecimal(digits: &[u8]) -> Option<Op> {
    let digits = std::str::from_utf8(digits).ok()?;
    operation(u16::from_str_radix(digits, 16).ok()?)
}

/// The operation of a SCSI command that moves data.
fn operation(command: u16) -> Option<Op> {
    Some(match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
        0x0a | 0x2a | 0xaa | 0x8a => Op::Write,
        0x35 | 0x91 => Op::Flush,
        0x42 => Op::Discard,
        _ => return None,
    })
}
