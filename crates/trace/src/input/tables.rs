//! Texts of a line per I/O: biosnoop of bcc, biosnoop.bt of bpftrace, and fio's logs of what it did.

use super::about::About;
use super::streamed::DecodeLine;
use super::words::{Words, number, time_ns};
use crate::event::{Device, Marks, Op, Step, TraceEvent};

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const SECTOR_BYTES: u64 = 512;

/// bcc's biosnoop: `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`.
#[derive(Default)]
pub(crate) struct Biosnoop {
    columns: Vec<Vec<u8>>,
}

impl DecodeLine for Biosnoop {
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut About) {
        if line.starts_with(b"TIME(") {
            self.columns = words(line).map(<[u8]>::to_vec).collect();
            if line.starts_with(b"TIME(ms)") {
                about.note("times and latencies are whole milliseconds, rounded down: 0 is anything below one");
            }
            return;
        }
        if self.columns.is_empty() || line.trim_ascii().is_empty() {
            return;
        }
        about.records += 1;
        match self.event(line, about) {
            Some(event) => events.push(event),
            None => about.malformed(|| format!("no I/O in the line: {}", shown(line))),
        }
    }
}

impl Biosnoop {
    fn event(&self, line: &[u8], about: &mut About) -> Option<TraceEvent> {
        let found: Vec<&[u8]> = words(line).collect();
        // A name may hold blanks: what comes before it is counted from the front, the rest from the end.
        let more = found.len().checked_sub(self.columns.len())?;
        let name_at = self.columns.iter().position(|column| column == b"COMM")?;
        let value = |column: &[u8]| {
            let at = self.columns.iter().position(|name| name == column)?;
            found
                .get(if at > name_at { at + more } else { at })
                .copied()
        };
        let at_ns = match value(b"TIME(s)") {
            Some(time) => time_ns(time, SECOND_NS)?,
            None => time_ns(value(b"TIME(ms)")?, MILLISECOND_NS)?,
        };
        let latency_ns = time_ns(value(b"LAT(ms)")?, MILLISECOND_NS)?;
        let pid = u32::try_from(number(value(b"PID")?)?).ok()?;
        about.name(pid, &found[name_at..=name_at + more].join(&b' '));
        let device = value(b"DISK").map(|disk| about.device(disk));
        let queued_ns = value(b"QUE(ms)").and_then(|time| time_ns(time, MILLISECOND_NS));
        if queued_ns.is_some() {
            about.note("the column QUE(ms) is not used: the latency is the device's");
        }
        Some(TraceEvent {
            sector: value(b"SECTOR").and_then(number).unwrap_or(0),
            sectors: value(b"BYTES")
                .and_then(number)
                .unwrap_or(0)
                .div_ceil(SECTOR_BYTES) as u32,
            argument: latency_ns,
            device: Device(device.unwrap_or(0)),
            pid,
            op: match value(b"T") {
                Some(b"R") => Op::Read,
                Some(b"W") => Op::Write,
                Some(b"D") => Op::Discard,
                Some(b"F") => Op::Flush,
                _ => Op::Other,
            },
            ..TraceEvent::new(at_ns, Step::DeviceDone)
        })
    }
}

/// fio's log of I/Os, `write_iolog`: version 2 without times but waits, version 3 with microseconds.
pub(crate) struct IoLog {
    version: u32,
    now_ns: u64,
    /// Where the last command of each file ended.
    ends: u64,
}

impl IoLog {
    pub(crate) fn new() -> IoLog {
        IoLog {
            version: 0,
            now_ns: 0,
            ends: 0,
        }
    }

    fn event(&mut self, line: &[u8], about: &mut About) -> Option<Option<TraceEvent>> {
        let mut words = Words(line);
        if self.version == 3 {
            self.now_ns = words.number()?.checked_mul(1000)?;
        }
        let file = words.next()?;
        let action = words.next()?;
        let op = match action {
            b"add" | b"open" | b"close" => return Some(None),
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Discard,
            b"sync" | b"datasync" | b"syncfilerange" => Op::Flush,
            b"wait" => {
                self.now_ns = self
                    .now_ns
                    .checked_add(words.number()?.checked_mul(1000)?)?;
                return Some(None);
            }
            _ => return None,
        };
        let (offset, length) = match op {
            Op::Flush => (0, 0),
            _ => (words.number()?, words.number()?),
        };
        self.ends = offset.checked_add(length)?;
        Some(Some(TraceEvent {
            sector: offset / SECTOR_BYTES,
            sectors: u32::try_from(length.div_ceil(SECTOR_BYTES)).ok()?,
            device: Device(about.device(file)),
            op,
            marks: match op {
                Op::Flush => Marks::PREFLUSH,
                _ => Marks::default(),
            },
            ..TraceEvent::new(self.now_ns, Step::Arrival)
        }))
    }
}

impl DecodeLine for IoLog {
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut About) {
        if line.starts_with(b"fio version ") {
            self.version = if line.starts_with(b"fio version 3") {
                3
            } else {
                2
            };
            if self.version == 2 {
                about.note("a log of version 2 has no times: only its waits are known");
            }
            return;
        }
        if line.is_empty() {
            return;
        }
        about.records += 1;
        match self.event(line, about) {
            Some(Some(event)) => events.push(event),
            Some(None) => about.records_skipped += 1,
            None => about.malformed(|| format!("no action in the line: {}", shown(line))),
        }
    }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut words = Words(line);
    std::iter::from_fn(move || words.next())
}

/// The beginning of a line, for a message.
pub(crate) fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned()
}
