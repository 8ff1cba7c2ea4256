//! `perf.data` with samples of block tracepoints.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h.

use std::sync::Arc;

use super::blktrace::u32_at;
use super::header::Cursor;
use super::random_access::{Range, ReadAt};
use super::records::Records;
use super::stream::{Decode, DecodedStream};
use super::trace_info::{LastEventTimes, ReadError, TraceInfo};
use crate::event::TraceEvent;
use crate::page::RawEvent;

/// What it begins with.
pub(crate) const MAGIC: &[u8] = b"PERFILE2";
const HEADER_FLAGS_AT: u64 = 72;
const TRACING_DATA: u32 = 1;

/// Opens such a file.
pub(crate) fn open(file: &Arc<dyn ReadAt>) -> Result<DecodedStream<PerfData>, ReadError> {
    let mut header = Cursor(Range::of(file, 8, u64::MAX));
    let header_bytes = header.u64()?;
    if header_bytes < 104 {
        return Err(ReadError("perf.data from a pipe (perf record -o -): write it with perf record -o FILE".into()));
    }
    let (attr_bytes, attrs_at, attrs_bytes) = (header.u64()?, header.u64()?, header.u64()?);
    let (data_at, data_bytes) = (header.u64()?, header.u64()?);
    let flags = Cursor(Range::of(file, HEADER_FLAGS_AT, 8)).u64()?;
    if flags & 1 << TRACING_DATA == 0 {
        return Err(ReadError("perf.data without tracepoints: perf record -e 'block:*' records some".into()));
    }
    let before = (flags & ((1 << TRACING_DATA) - 1)).count_ones();
    let sections = data_at.saturating_add(data_bytes);
    let mut section = Cursor(Range::of(file, sections.saturating_add(16 * u64::from(before)), 16));
    let (tracing_at, tracing_bytes) = (section.u64()?, section.u64()?);
    let mut about = TraceInfo::of("perf.data");
    let records = tracing_data(Cursor(Range::of(file, tracing_at, tracing_bytes)), &mut about)?;
    if attr_bytes < 64 || attrs_bytes < attr_bytes {
        return Err(ReadError("perf.data without a description of its events".into()));
    }
    let mut attr = Cursor(Range::of(file, attrs_at, attr_bytes));
    attr.skip(24)?;
    let sample_type = attr.u64()?;
    attr.skip(8)?;
    let sample_id_all = attr.u64()? & 1 << 18 != 0;
    let decoder = PerfData {
        records,
        sample: Sample { kind: sample_type, sample_id_all },
        last: LastEventTimes::default(),
        round: Vec::new(),
        newest_ns: 0,
        flush_ns: 0,
        events_lost: 0,
        events_lost_in_sum: 0,
    };
    let input = Range::of(file, data_at, data_bytes);
    Ok(DecodedStream::new(Box::new(input), decoder, about))
}

/// The same header as that of trace.dat, of an older version.
fn tracing_data(mut cursor: Cursor<Range>, about: &mut TraceInfo) -> Result<Records, ReadError> {
    cursor.skip(super::trace_dat::MAGIC.len() as u64)?;
    cursor.text()?;
    if cursor.bytes(2)?[0] != 0 {
        return Err(ReadError("perf.data of a big-endian machine: not readable here".into()));
    }
    cursor.u32()?;
    cursor.named()?;
    cursor.named()?;
    cursor.skip_tracers()?;
    let formats = cursor.formats(about)?;
    Records::new(&formats).map_err(|error| ReadError(error.to_string()))
}

/// Reads the records of the data section.
pub(crate) struct PerfData {
    records: Records,
    sample: Sample,
    last: LastEventTimes,
    /// The events of this round, and those of earlier ones that others may still overtake.
    round: Vec<TraceEvent>,
    newest_ns: u64,
    /// Nothing before it can come any more.
    flush_ns: u64,
    events_lost: u64,
    /// Lost events as `perf record` (6.1 on) sums them up at the end, whenever they were lost.
    events_lost_in_sum: u64,
}

/// Which fields a sample has.
struct Sample {
    kind: u64,
    sample_id_all: bool,
}

const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDRESS: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
const RECORD_TRACING_DATA: u32 = 66;
const RECORD_FINISHED_ROUND: u32 = 68;
const RECORD_COMPRESSED: u32 = 81;
const RECORD_COMPRESSED_2: u32 = 83;

impl Decode for PerfData {
    fn decode(
        &mut self,
        bytes: &[u8],
        end: bool,
        events: &mut Vec<TraceEvent>,
        about: &mut TraceInfo,
    ) -> Result<usize, ReadError> {
        let mut at = 0;
        while let (Some(kind), Some(size)) = (u32_at(bytes, at), u32_at(bytes, at + 4)) {
            let length = (size >> 16) as usize;
            if length < 8 {
                about.malformed(|| format!("a record of {length} bytes"));
                at = bytes.len();
                break;
            }
            let Some(record) = bytes.get(at + 8..at + length) else {
                break;
            };
            self.record(kind, record, events, about)?;
            at += length;
        }
        if end {
            self.sum_up();
            self.flush(u64::MAX, events);
        }
        Ok(at)
    }
}

impl PerfData {
    fn record(
        &mut self,
        kind: u32,
        record: &[u8],
        events: &mut Vec<TraceEvent>,
        about: &mut TraceInfo,
    ) -> Result<(), ReadError> {
        match kind {
            RECORD_SAMPLE => {
                let Some((at_ns, cpu, raw)) = self.sample.read(record) else {
                    about.records += 1;
                    about.malformed(|| "a sample that ends before its record".into());
                    return Ok(());
                };
                self.newest_ns = self.newest_ns.max(at_ns);
                self.last.seen(cpu, at_ns);
                let raw = RawEvent { at_ns, record: raw };
                self.records.read(cpu, &raw, &mut self.round, about);
            }
            RECORD_LOST | RECORD_LOST_SAMPLES => {
                let count_at = if kind == RECORD_LOST { 8 } else { 0 };
                let count = long(record, count_at).unwrap_or(0);
                let (at_ns, cpu) = self.sample.trailer(record).unwrap_or((self.newest_ns, 0));
                if kind == RECORD_LOST_SAMPLES && at_ns == 0 {
                    self.events_lost_in_sum = self.events_lost_in_sum.saturating_add(count);
                    return Ok(());
                }
                self.events_lost = self.events_lost.saturating_add(count);
                let lost = self.last.loss(cpu, at_ns, count);
                self.round.push(lost);
            }
            RECORD_COMM => {
                let name = record.get(8..).unwrap_or_default();
                let name = name.split(|&byte| byte == 0).next();
                if let Some(pid) = u32_at(record, 4) {
                    about.rename(pid, name.unwrap_or_default());
                }
            }
            RECORD_FINISHED_ROUND => {
                let until_ns = self.flush_ns;
                self.flush(until_ns, events);
                self.flush_ns = self.newest_ns;
            }
            RECORD_COMPRESSED | RECORD_COMPRESSED_2 => {
                return Err(ReadError(
                    "perf.data with packed records (perf record -z): record without -z, or give iolab the output of perf script".into(),
                ));
            }
            RECORD_TRACING_DATA => {
                return Err(ReadError("perf.data from a pipe: write it with perf record -o FILE".into()));
            }
            _ => {}
        }
        Ok(())
    }

    /// What was lost after a CPU's last event has no record of its own.
    fn sum_up(&mut self) {
        let untold = self.events_lost_in_sum.saturating_sub(self.events_lost);
        if untold > 0 {
            self.events_lost += untold;
            let now_ns = self.newest_ns;
            self.round.push(TraceEvent::lost(now_ns, now_ns, untold, 0));
        }
    }

    fn flush(&mut self, until_ns: u64, events: &mut Vec<TraceEvent>) {
        self.round.sort_by_key(|event| event.at_ns);
        let count = self.round.partition_point(|event| event.at_ns <= until_ns);
        events.extend(self.round.drain(..count));
    }
}

impl Sample {
    /// Time, CPU and the tracepoint's record.
    fn read<'a>(&self, record: &'a [u8]) -> Option<(u64, u16, &'a [u8])> {
        let has = |bit: u64| self.kind & bit != 0;
        let mut at = 8 * (usize::from(has(IDENTIFIER)) + usize::from(has(IP)) + usize::from(has(TID)));
        let at_ns = long(record, at).filter(|_| has(TIME))?;
        at += 8 * (1 + usize::from(has(ADDRESS)) + usize::from(has(ID)) + usize::from(has(STREAM)));
        let cpu = u32_at(record, at).filter(|_| has(CPU))?;
        at += 8 * (1 + usize::from(has(PERIOD)));
        if has(READ) {
            return None;
        }
        if has(CALLCHAIN) {
            let count = usize::try_from(long(record, at)?).ok()?;
            at = at.checked_add(count.checked_add(1)?.checked_mul(8)?)?;
        }
        let length = u32_at(record, at).filter(|_| has(RAW))? as usize;
        let raw = record.get(at + 4..)?.get(..length)?;
        Some((at_ns, cpu as u16, raw))
    }

    /// Time and CPU of a record that is no sample.
    fn trailer(&self, record: &[u8]) -> Option<(u64, u16)> {
        let has = |bit: u64| usize::from(self.kind & bit != 0);
        if !self.sample_id_all {
            return None;
        }
        let length = 8 * (has(TID) + has(TIME) + has(ID) + has(STREAM) + has(CPU) + has(IDENTIFIER));
        let begin = record.len().checked_sub(length)? + 8 * has(TID);
        let at_ns = long(record, begin).filter(|_| has(TIME) == 1)?;
        let cpu = u32_at(record, begin + 8 * (1 + has(ID) + has(STREAM)));
        Some((at_ns, cpu.filter(|_| has(CPU) == 1)? as u16))
    }
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
