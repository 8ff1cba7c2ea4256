//! One record of blktrace, version 7: 48 bytes and its payload.
//!
//! Source: `include/uapi/linux/blktrace_api.h` of 6.x and blktrace 1.2.0 (docs/model/sources/traces.md#blktrace).

use crate::event::Device;

/// A record as it lies in a file. Numbers are little-endian here; the kernel writes them as its processor has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Counts the records of a CPU from 1; notes are not counted and have 0.
    pub(crate) sequence: u32,
    /// Nanoseconds since the trace began.
    pub(crate) at_ns: u64,
    /// First sector, of 512 bytes.
    pub(crate) sector: u64,
    /// Length of the transfer in bytes.
    pub(crate) bytes: u32,
    /// What happened, and in which categories it falls.
    pub(crate) action: u32,
    /// The task that ran; of a completion, whichever was interrupted.
    pub(crate) pid: u32,
    /// The device that was traced.
    pub(crate) device: Device,
    /// The CPU where it happened.
    pub(crate) cpu: u32,
    /// The low 16 bits of a completion's errno, 0 for success.
    pub(crate) error: u16,
    /// What follows the header: a number, a name or a message, by action.
    pub(crate) payload: &'a [u8],
}

const MAGIC: u32 = 0x6561_7400;
const VERSION: u8 = 7;

impl Record<'_> {
    /// Appends it. A payload beyond 65535 bytes is cut there: records cannot have more.
    pub(crate) fn write(&self, file: &mut Vec<u8>) {
        let payload = &self.payload[..self.payload.len().min(usize::from(u16::MAX))];
        file.extend((MAGIC | u32::from(VERSION)).to_le_bytes());
        file.extend(self.sequence.to_le_bytes());
        file.extend(self.at_ns.to_le_bytes());
        file.extend(self.sector.to_le_bytes());
        for number in [self.bytes, self.action, self.pid, self.device.0, self.cpu] {
            file.extend(number.to_le_bytes());
        }
        file.extend(self.error.to_le_bytes());
        file.extend((payload.len() as u16).to_le_bytes());
        file.extend(payload);
    }
}
