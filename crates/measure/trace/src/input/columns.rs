//! Tables of a line per I/O, with commas, blanks or other separators between columns that are known or named.

use super::stream::DecodeLine;
use super::trace_info::TraceInfo;
use super::vscsi::hexadecimal;
use super::words::{leading_number, number, shown, time_ns};
use crate::event::{Device, Marks, Op, Step, TraceEvent};
use base::SECTOR_BYTES;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// When it arrived (or, with `ended`, when it ended), in units of this many nanoseconds.
    Time {
        /// Nanoseconds of one.
        unit_ns: u64,
    },
    /// How long it took, in units of this many nanoseconds.
    Latency {
        /// Nanoseconds of one.
        unit_ns: u64,
    },
    /// Where it begins, in units of this many bytes.
    Offset {
        /// Bytes of one.
        unit_bytes: u64,
    },
    /// The number of the block of this many bytes that the offset counts from.
    Block {
        /// Bytes of one.
        bytes: u64,
    },
    /// How long it is, in units of this many bytes.
    Size {
        /// Bytes of one.
        unit_bytes: u64,
    },
    /// Read or write: a letter, a word, or a number.
    Operation,
    /// Which device: a number or a name.
    Device,
    /// The machine that the device is of.
    Host,
    /// The number of the device's driver; the device is its minor number.
    Major,
    /// Which task.
    Pid,
    /// What the task is called.
    Process,
    /// Something else.
    Ignored,
}

impl Column {
    #[inline]
    fn is_number(self) -> bool {
        !matches!(self, Column::Operation | Column::Process | Column::Host | Column::Ignored)
    }
}

/// How the lines of a table are to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Between the columns; a blank stands for any number of blanks.
    pub separator: u8,
    /// From left to right.
    pub columns: Vec<Column>,
    /// The time is that of the completion.
    pub ended: bool,
    /// What numbers in the column of the operation mean.
    pub operations: Operations,
}

/// Which number is a read and which a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// 0 is a read and 1 a write.
    ZeroReads,
    /// 1 is a read and 0 a write.
    OneReads,
    /// Meta's: 1, 2 and 5 get, 3, 4 and 6 put.
    Meta,
    /// Commands of SCSI in two hexadecimal digits.
    Scsi,
}

/// Reads the lines of such a table.
pub(crate) struct Table {
    layout: Layout,
    lines: u64,
    clock: EndClock,
    name: Vec<u8>,
}

/// The clock of lines that report when an I/O ended. It begins an hour early if the first line is near 0: I/Os began
/// before that line.
#[derive(Default)]
pub(crate) struct EndClock(Option<u64>);

/// No I/O takes longer.
const HOUR_NS: u64 = 3_600_000_000_000;

impl EndClock {
    /// The same moment on a clock on which I/Os begin after 0.
    pub(crate) fn of(&mut self, ended_ns: u64) -> Option<u64> {
        let near_zero = ended_ns < HOUR_NS;
        let shift_ns = *self.0.get_or_insert(if near_zero { HOUR_NS } else { 0 });
        ended_ns.checked_add(shift_ns)
    }
}

impl Table {
    pub(crate) fn new(layout: Layout) -> Table {
        Table { layout, lines: 0, clock: EndClock::default(), name: Vec::new() }
    }

    #[inline]
    fn event(&mut self, line: &[u8], about: &mut TraceInfo) -> Option<TraceEvent> {
        let mut event = TraceEvent::new(0, Step::Arrival);
        let mut rest = line;
        let mut name: &[u8] = b"";
        let (mut latency_ns, mut bytes, mut offset) = (None, 0, 0u64);
        let (mut device, mut host, mut major): (Option<&[u8]>, &[u8], Option<u64>) = (None, b"", None);
        for (index, column) in self.layout.columns.iter().enumerate() {
            if self.layout.separator == b' ' {
                rest = rest.trim_ascii_start();
            }
            // Most fields are digits up to the next separator.
            let (value, digits) = match column.is_number() {
                true => leading_number(rest),
                false => (0, 0),
            };
            let plain = digits > 0 && rest.get(digits).is_none_or(|&next| next == self.layout.separator);
            let cut = match plain {
                true => (digits < rest.len()).then_some(digits),
                false if rest.first() == Some(&b'"') => quoted_end(rest, self.layout.separator),
                false if rest.get(1) == Some(&self.layout.separator) => Some(1),
                false => memchr::memchr(self.layout.separator, rest),
            };
            let field = match cut {
                Some(at) => &rest[..at],
                None if index + 1 == self.layout.columns.len() || !rest.is_empty() => rest,
                None => return None,
            };
            rest = cut.map_or(&[][..], |at| &rest[at + 1..]);
            let field = if plain { field } else { unquoted(field) };
            let whole = || match plain {
                true => Some(value),
                false => number(field),
            };
            let time = |unit_ns| match plain {
                true => value.checked_mul(unit_ns),
                false => time_ns(field, unit_ns),
            };
            match *column {
                Column::Time { unit_ns } => event.at_ns = time(unit_ns)?,
                Column::Latency { unit_ns } => latency_ns = time(unit_ns),
                Column::Offset { unit_bytes } => {
                    offset = offset.checked_add(whole()?.checked_mul(unit_bytes)?)?;
                }
                Column::Block { bytes } => {
                    offset = offset.checked_add(whole()?.checked_mul(bytes)?)?;
                }
                Column::Size { unit_bytes } => bytes = whole()?.checked_mul(unit_bytes)?,
                Column::Operation => {
                    event.op = self.operation(field)?;
                    // As the kernel's letters have it.
                    match field {
                        b"WF" => event.marks = Marks::FUA,
                        b"WZ" => event.marks = Marks::ZEROES,
                        _ => {}
                    }
                }
                Column::Device => device = Some(field),
                Column::Host => host = field,
                Column::Major => major = Some(whole()?),
                Column::Pid => event.pid = u32::try_from(whole()?).ok()?,
                Column::Process => name = field,
                Column::Ignored => {}
            }
        }
        if self.layout.ended {
            event.at_ns = self.clock.of(event.at_ns)?;
        }
        // Only now: a line of headings names no device.
        if let Some(field) = device {
            event.device = self.device(field, host, major, about)?;
        }
        event.sector = offset / SECTOR_BYTES;
        event.sectors = u32::try_from(bytes.div_ceil(SECTOR_BYTES)).ok()?;
        if !name.is_empty() {
            about.name(event.pid, name);
        }
        if let Some(latency_ns) = latency_ns {
            event.step = Step::WholeDone;
            event.argument = latency_ns;
            if !self.layout.ended {
                event.at_ns = event.at_ns.checked_add(latency_ns)?;
            }
        }
        Some(event)
    }

    #[inline]
    fn device(&mut self, field: &[u8], host: &[u8], major: Option<u64>, about: &mut TraceInfo) -> Option<Device> {
        if !host.is_empty() {
            self.name.clear();
            self.name.extend_from_slice(host);
            self.name.push(b'_');
            self.name.extend_from_slice(field);
            return Some(about.device(&self.name));
        }
        let number = number(field).and_then(|number| u32::try_from(number).ok());
        match (number, major) {
            (Some(minor), Some(major)) => Some(Device::new(u32::try_from(major).ok()?, minor)),
            (Some(number), None) => {
                about.devices_numbered = true;
                Some(Device(number))
            }
            (None, _) => Some(about.device(field)),
        }
    }

    #[inline]
    fn operation(&self, field: &[u8]) -> Option<Op> {
        use Operations::{Meta, OneReads, Scsi, ZeroReads};
        if self.layout.operations == Scsi {
            return Some(hexadecimal(field).unwrap_or(Op::Other));
        }
        Some(match (field.first()?, self.layout.operations) {
            (b'R' | b'r', _) | (b'0', ZeroReads) | (b'1', OneReads) => Op::Read,
            (b'W' | b'w', _) | (b'1', ZeroReads) | (b'0', OneReads) => Op::Write,
            (b'D' | b'd' | b'T' | b't' | b'U' | b'u', _) => Op::Discard,
            (b'F' | b'f' | b'S' | b's', _) => Op::Flush,
            (b'1' | b'2' | b'5', Meta) if field.len() == 1 => Op::Read,
            (b'3' | b'4' | b'6', Meta) => Op::Write,
            _ => Op::Other,
        })
    }
}

impl DecodeLine for Table {
    #[inline]
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut TraceInfo) {
        self.lines += 1;
        if line.is_empty() || line[0] == b'#' {
            return;
        }
        match self.event(line, about) {
            Some(event) => {
                about.records += 1;
                events.push(event);
            }
            // A line of names before the first of numbers.
            None if self.lines == 1 => about.records_skipped += 1,
            None => {
                about.records += 1;
                let number = self.lines;
                about.malformed(|| format!("line {number}: not as its columns say: {}", shown(line)));
            }
        }
    }
}

/// Where a field in quotation marks ends, in which separators are text.
fn quoted_end(rest: &[u8], separator: u8) -> Option<usize> {
    let closes = memchr::memchr(b'"', &rest[1..])? + 2;
    memchr::memchr(separator, &rest[closes..]).map(|at| closes + at)
}

/// A field without quotation marks, and without blanks around them.
pub(crate) fn unquoted(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    let inner = field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\""));
    inner.unwrap_or(field)
}
