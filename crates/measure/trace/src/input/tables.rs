//! Texts of a line per I/O: biosnoop and iosnoop, and fio's logs of what it did.

use std::borrow::Cow;

use super::columns::EndClock;
use super::stream::DecodeLine;
use super::trace_info::TraceInfo;
use super::words::{Words, device, number, shown, time_ns};
use crate::event::{Device, Marks, NO_DETAIL, Op, Step, TraceEvent, op_and_marks};
use base::SECTOR_BYTES;

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`, as biosnoop of bcc and of libbpf-tools prints it, and what is
/// like it: biosnoop.bt of bpftrace, iosnoop of perf-tools with its `-ts`, and any of them made a CSV file.
#[derive(Default)]
pub(crate) struct Snoop {
    columns: Vec<Vec<u8>>,
    is_csv: bool,
    clock: EndClock,
}

const BIOSNOOP: [&str; 9] = ["TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "QUE(ms)", "LAT(ms)"];
const QUEUE_AT: usize = 7;
/// What biosnoop of bcc prints for a process that it does not know.
const NOT_KNOWN: &[u8] = b"?";

/// The headings that a line of biosnoop without any stands below, if it can be one: `0.000004 fio 7 sda W 8 4096 0.74`.
pub(crate) fn snoop_without_headings(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let found: Vec<&[u8]> = words(line).collect();
    let (latency, before) = found.split_last()?;
    let is_decimal = |word: &[u8]| {
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        digits.contains(&b'.') && time_ns(digits, SECOND_NS).is_some()
    };
    if !is_decimal(latency) {
        return None;
    }
    let has_queue = before.last().is_some_and(|word| is_decimal(word));
    let rest = &before[..before.len() - usize::from(has_queue)];
    let [time, names @ .., letters, sector, bytes] = rest else {
        return None;
    };
    let is_number = |word: &[u8]| word == NOT_KNOWN || number(word).is_some();
    let are_letters =
        |word: &[u8]| word == NOT_KNOWN || word.len() <= 8 && word.iter().all(|letter| b"RWDFNEASMZ".contains(letter));
    // A name, a process, and a disk unless neither is known.
    let is_io = is_decimal(time) && are_letters(letters) && is_number(sector) && is_number(bytes);
    let has_process = match names {
        [name, pid] => *name == NOT_KNOWN && is_number(pid),
        [_, .., pid, _disk] => is_number(pid),
        _ => false,
    };
    let headings = BIOSNOOP.iter().enumerate();
    (is_io && has_process).then(|| {
        headings
            .filter(|(at, _)| has_queue || *at != QUEUE_AT)
            .map(|(_, heading)| heading.as_bytes().to_vec())
            .collect()
    })
}

/// What such a text is called, by the line of its headings.
pub(crate) fn snoop(line: &[u8]) -> Option<&'static str> {
    let line = spaced(line, is_csv(line));
    let headings: Vec<&[u8]> = words(&line).collect();
    let has = |heading: &str| headings.contains(&heading.as_bytes());
    match *headings.first()? {
        b"TIME(s)" | b"TIMESTAMP" if has("LAT(ms)") => Some("biosnoop"),
        b"TIME(ms)" if has("LAT(ms)") => Some("biosnoop.bt"),
        b"STARTs" | b"ENDs" | b"COMM" if has("LATms") && has("BLOCK") => Some("iosnoop"),
        _ => None,
    }
}

/// Whether headings have commas between them.
fn is_csv(line: &[u8]) -> bool {
    line.contains(&b',') && !line.trim_ascii().iter().any(u8::is_ascii_whitespace)
}

/// The line with blanks for the commas and quotes of a CSV file, if it is of one.
fn spaced(line: &[u8], is_csv: bool) -> Cow<'_, [u8]> {
    if !is_csv {
        return Cow::Borrowed(line);
    }
    let blank = |&byte: &u8| {
        if matches!(byte, b',' | b'"') { b' ' } else { byte }
    };
    Cow::Owned(line.iter().map(blank).collect())
}

impl DecodeLine for Snoop {
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut TraceInfo) {
        let is_heading = snoop(line).is_some();
        if is_heading {
            self.is_csv = is_csv(line);
        }
        let line = &*spaced(line, self.is_csv);
        let columns = match is_heading {
            true => Some(words(line).map(<[u8]>::to_vec).collect()),
            false if self.columns.is_empty() => snoop_without_headings(line),
            false => None,
        };
        if let Some(columns) = columns {
            self.columns = columns;
            if self.has("TIME(ms)") {
                about.note("times and latencies are whole milliseconds, rounded down: 0 is anything below one");
            }
            if self.has("QUE(ms)") {
                about.note(
                    "the queue's time is QUE(ms): from when the kernel made the request, or inserted it into a \
                     scheduler, until its issue",
                );
            }
        }
        if is_heading || self.columns.is_empty() || line.trim_ascii().is_empty() {
            return;
        }
        about.records += 1;
        match self.event(line, about) {
            Some(event) => events.push(event),
            None => about.malformed(|| format!("no I/O in the line: {}", shown(line))),
        }
    }
}

impl Snoop {
    fn has(&self, heading: &str) -> bool {
        self.columns.iter().any(|column| column == heading.as_bytes())
    }

    fn event(&mut self, line: &[u8], about: &mut TraceInfo) -> Option<TraceEvent> {
        let mut found: Vec<&[u8]> = words(line).collect();
        if found.len() + 1 == self.columns.len() {
            // bcc leaves the disk blank if it missed who made the request, and the sector 0.
            let at = |heading: &str| self.columns.iter().position(|one| one == heading.as_bytes());
            let (name_at, disk_at) = (at("COMM")?, at("DISK")?);
            if found.get(name_at) != Some(&NOT_KNOWN) || disk_at > found.len() {
                return None;
            }
            found.insert(disk_at, NOT_KNOWN);
            about.note(
                "biosnoop missed who made some requests: their process, disk (both shown as ?) and sector are unknown",
            );
        }
        // A name may hold blanks: what comes before it is counted from the front, the rest from the end.
        let more = found.len().checked_sub(self.columns.len())?;
        let name_at = self.columns.iter().position(|column| column == b"COMM")?;
        let value = |headings: &[&str]| {
            let is = |column: &Vec<u8>| headings.iter().any(|name| column == name.as_bytes());
            let at = self.columns.iter().position(is)?;
            found.get(if at > name_at { at + more } else { at }).copied()
        };
        let milliseconds = |headings: &[&str]| value(headings).and_then(|time| time_ns(time, MILLISECOND_NS));
        let seconds = |headings: &[&str]| value(headings).map(|time| time_ns(time, SECOND_NS));
        let latency_ns = milliseconds(&["LAT(ms)", "LATms"])?;
        let ended_ns = match (seconds(&["TIME(s)", "ENDs"]), seconds(&["STARTs"])) {
            (Some(ended_ns), _) => ended_ns?,
            (None, Some(began_ns)) => began_ns?.checked_add(latency_ns)?,
            (None, None) => milliseconds(&["TIME(ms)"]).or_else(|| value(&["TIMESTAMP"]).and_then(time_of_day_ns))?,
        };
        let pid = match value(&["PID"])? {
            NOT_KNOWN => 0,
            digits => u32::try_from(number(digits)?).ok()?,
        };
        let op = value(&["T", "TYPE"]).map_or((Op::Other, Marks::default()), op_and_marks);
        let disk = match (value(&["MAJOR"]), value(&["MINOR"])) {
            (Some(major), Some(minor)) => {
                let part = |digits| u32::try_from(number(digits)?).ok();
                Some(Device::new(part(major)?, part(minor)?))
            }
            _ => value(&["DISK", "DEV"]).map(|disk| device(disk, b',').unwrap_or_else(|| about.device(disk))),
        };
        // -1 of a request that never waited in a queue.
        let waited_ns = milliseconds(&["QUE(ms)"]);
        let sector = value(&["SECTOR", "BLOCK"]).and_then(number).unwrap_or(0);
        let bytes = value(&["BYTES"]).and_then(number).unwrap_or(0);
        about.name(pid, &found[name_at..=name_at + more].join(&b' '));
        Some(TraceEvent {
            sector,
            sectors: u32::try_from(bytes.div_ceil(SECTOR_BYTES)).ok()?,
            argument: latency_ns,
            device: disk.unwrap_or(Device(0)),
            pid,
            detail: waited_ns.map_or(NO_DETAIL, |ns| (ns / 1000) as u32),
            op: op.0,
            marks: op.1,
            ..TraceEvent::new(self.clock.of(ended_ns)?, Step::DeviceDone)
        })
    }
}

/// `17:58:57.814`, since midnight.
fn time_of_day_ns(word: &[u8]) -> Option<u64> {
    let mut parts = word.splitn(3, |&byte| byte == b':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds_ns = time_ns(parts.next()?, SECOND_NS)?;
    let is_time = hours < 24 && minutes < 60 && seconds_ns < 61 * SECOND_NS;
    is_time.then(|| (hours * 60 + minutes) * 60 * SECOND_NS + seconds_ns)
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
        IoLog { version: 0, now_ns: 0, ends: 0 }
    }

    fn event(&mut self, line: &[u8], about: &mut TraceInfo) -> Option<Option<TraceEvent>> {
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
                self.now_ns = self.now_ns.checked_add(words.number()?.checked_mul(1000)?)?;
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
            device: about.device(file),
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
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut TraceInfo) {
        if line.starts_with(b"fio version ") {
            self.version = if line.starts_with(b"fio version 3") { 3 } else { 2 };
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
