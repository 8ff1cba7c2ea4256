//! Tables of a line per I/O, with commas, blanks or other separators: public traces, and any whose columns one names.

use super::about::About;
use super::streamed::DecodeLine;
use super::tables::shown;
use super::words::{number, time_ns};
use crate::event::{Device, Marks, Op, Step, TraceEvent};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// When it arrived (or, with `ended`, when it ended), in units of so many nanoseconds.
    Time {
        /// Nanoseconds of one.
        unit_ns: u64,
    },
    /// How long it took, in units of so many nanoseconds.
    Latency {
        /// Nanoseconds of one.
        unit_ns: u64,
    },
    /// Where it begins, in units of so many bytes.
    Offset {
        /// Bytes of one.
        unit_bytes: u64,
    },
    /// How long it is, in units of so many bytes.
    Size {
        /// Bytes of one.
        unit_bytes: u64,
    },
    /// Read or write: a letter, a word, or 0 for a read.
    Operation,
    /// Which device: a number or a name.
    Device,
    /// Which task.
    Pid,
    /// What the task is called.
    Process,
    /// Something else.
    Ignored,
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
    /// 1 in the column of the operation is a read, 0 a write.
    pub one_reads: bool,
}

const MICROSECOND_NS: u64 = 1_000;
const SECOND_NS: u64 = 1_000_000_000;
const SECTOR_BYTES: u64 = 512;

/// Reads the lines of such a table.
pub(crate) struct Table {
    layout: Layout,
    lines: u64,
}

impl Table {
    pub(crate) fn new(layout: Layout) -> Table {
        Table { layout, lines: 0 }
    }

    #[inline]
    fn event(&self, line: &[u8], about: &mut About) -> Option<TraceEvent> {
        let mut event = TraceEvent::new(0, Step::Arrival);
        let mut rest = line;
        let mut name: &[u8] = b"";
        let (mut latency_ns, mut bytes, mut offset) = (None, 0, 0u64);
        for (index, column) in self.layout.columns.iter().enumerate() {
            if self.layout.separator == b' ' {
                rest = rest.trim_ascii_start();
            }
            let cut = memchr::memchr(self.layout.separator, rest);
            let field = match cut {
                Some(at) => &rest[..at],
                None if index + 1 == self.layout.columns.len() || !rest.is_empty() => rest,
                None => return None,
            };
            rest = cut.map_or(&[][..], |at| &rest[at + 1..]);
            let field = unquoted(field);
            match *column {
                Column::Time { unit_ns } => event.at_ns = time_ns(field, unit_ns)?,
                Column::Latency { unit_ns } => latency_ns = time_ns(field, unit_ns),
                Column::Offset { unit_bytes } => offset = number(field)?.checked_mul(unit_bytes)?,
                Column::Size { unit_bytes } => bytes = number(field)?.checked_mul(unit_bytes)?,
                Column::Operation => {
                    event.op = self.operation(field)?;
                    // As the kernel's letters have it.
                    if field == b"WF" {
                        event.marks = Marks::FUA;
                    }
                }
                Column::Device => {
                    event.device = Device(match number(field) {
                        Some(number) => u32::try_from(number).ok()?,
                        None => about.device(field),
                    });
                }
                Column::Pid => event.pid = u32::try_from(number(field)?).ok()?,
                Column::Process => name = field,
                Column::Ignored => {}
            }
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
    fn operation(&self, field: &[u8]) -> Option<Op> {
        Some(match (field.first()?, self.layout.one_reads) {
            (b'R' | b'r', _) | (b'0', false) | (b'1', true) => Op::Read,
            (b'W' | b'w', _) | (b'1', false) | (b'0', true) => Op::Write,
            (b'D' | b'd' | b'T' | b't' | b'U' | b'u', _) => Op::Discard,
            (b'F' | b'f' | b'S' | b's', _) => Op::Flush,
            // Of Meta's: getChunkData, putChunk.
            (b'g' | b'G', _) => Op::Read,
            (b'p' | b'P', _) => Op::Write,
            _ => Op::Other,
        })
    }
}

impl DecodeLine for Table {
    #[inline]
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut About) {
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
                about.malformed(|| {
                    format!("line {number}: not as its columns say: {}", shown(line))
                });
            }
        }
    }
}

/// A field without quotation marks.
fn unquoted(field: &[u8]) -> &[u8] {
    let inner = field
        .strip_prefix(b"\"")
        .and_then(|field| field.strip_suffix(b"\""));
    inner.unwrap_or(field)
}

/// The public trace that a line is of: its name and how it is read.
pub(crate) fn known(line: &[u8]) -> Option<(&'static str, Layout)> {
    use Column::{Device, Ignored, Latency, Offset, Operation, Pid, Process, Size, Time};
    let commas: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
    let digits = |at: usize| commas.get(at).is_some_and(|field| number(field).is_some());
    let layout = |separator: u8, columns: &[Column], ended: bool| Layout {
        separator,
        columns: columns.to_vec(),
        ended,
        one_reads: false,
    };
    let bytes = |column: fn(u64) -> Column| column(1);
    let offset = |unit_bytes| Offset { unit_bytes };
    let size = |unit_bytes| Size { unit_bytes };
    if commas.len() == 7 && digits(0) && commas[0].len() == 18 && digits(4) && digits(6) {
        // Windows' time of 100 ns, at which the I/O was issued.
        let columns = [
            Time { unit_ns: 100 },
            Ignored,
            Device,
            Operation,
            bytes(offset),
            bytes(size),
            Latency { unit_ns: 100 },
        ];
        return Some(("MSR Cambridge", layout(b',', &columns, false)));
    }
    if commas.len() == 5 && digits(0) && matches!(commas[1], b"R" | b"W") && digits(2) && digits(4)
    {
        let time = Time {
            unit_ns: MICROSECOND_NS,
        };
        let columns = [Device, Operation, bytes(offset), bytes(size), time];
        return Some(("Alibaba", layout(b',', &columns, false)));
    }
    if commas.len() == 5 && (0..5).all(digits) && matches!(commas[3], b"0" | b"1") {
        let columns = [
            Time { unit_ns: SECOND_NS },
            offset(SECTOR_BYTES),
            size(SECTOR_BYTES),
            Operation,
            Device,
        ];
        return Some(("Tencent", layout(b',', &columns, false)));
    }
    let blanks: Vec<&[u8]> = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .collect();
    let digits = |at: usize| blanks.get(at).is_some_and(|field| number(field).is_some());
    if blanks.len() == 9
        && digits(0)
        && digits(1)
        && digits(3)
        && digits(4)
        && matches!(blanks[5], b"W" | b"R")
    {
        let columns = [
            Time { unit_ns: 1 },
            Pid,
            Process,
            offset(SECTOR_BYTES),
            size(SECTOR_BYTES),
            Operation,
            Ignored,
            Device,
            Ignored,
        ];
        return Some(("FIU", layout(b' ', &columns, false)));
    }
    None
}

/// Meta's, with their names in the first line.
pub(crate) fn named(line: &[u8]) -> Option<(&'static str, Layout)> {
    let separator = if line.contains(&b',') { b',' } else { b' ' };
    let names: Vec<&[u8]> = line.split(|&byte| byte == separator).collect();
    let has = |name: &[u8]| names.contains(&name);
    if !(has(b"io_offset") && has(b"io_size") && has(b"op_time")) {
        return None;
    }
    let columns = names.iter().map(|&name| match name {
        b"op_time" => Column::Time { unit_ns: SECOND_NS },
        b"io_offset" => Column::Offset { unit_bytes: 1 },
        b"io_size" => Column::Size { unit_bytes: 1 },
        b"op_name" => Column::Operation,
        _ => Column::Ignored,
    });
    let layout = Layout {
        separator,
        columns: columns.collect(),
        ended: false,
        one_reads: false,
    };
    Some(("Meta", layout))
}
