//! Files of blktrace: records of version 7 and, with 64 bits of action, of version 8.

use super::stream::Decode;
use super::trace_info::{LastEventTimes, Numbers, ReadError, TraceInfo};
use crate::event::{Device, Marks, NO_DETAIL, Op, Step, TraceEvent};
use crate::output::remark::Remark;
use base::SECTOR_BYTES;

/// Reads one file: of one CPU, or of all as blkparse merges them.
#[derive(Default)]
pub(crate) struct Blktrace {
    numbers: Numbers,
    last: LastEventTimes,
    newest_ns: u64,
}

/// What a file of blktrace begins with, the version in the low byte.
pub(crate) const MAGIC: u32 = 0x6561_7400;
const MAGIC_7: u32 = MAGIC | 7;
const MAGIC_8: u32 = MAGIC | 8;
const HEADER_7: usize = 48;
const HEADER_8: usize = 64;
/// No tracer mixes up more.
const BACK_NS: u64 = 1_000_000_000;
const NOTE: u64 = 1 << 26;
const MESSAGE: u64 = 2;
const OF_CGROUP: u64 = 1 << 8;
/// Among the categories: an append, 16, has data.
const ZONE_MANAGEMENT: u64 = 0b11_1110 << 16;
const CGROUP_BYTES: usize = 8;

/// The numbers of a record, whichever its version.
struct Header {
    sequence: u32,
    at_ns: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
}

impl Decode for Blktrace {
    fn decode(
        &mut self,
        bytes: &[u8],
        _end: bool,
        events: &mut Vec<TraceEvent>,
        about: &mut TraceInfo,
    ) -> Result<usize, ReadError> {
        let mut at = 0;
        while let Some(magic) = u32_at(bytes, at) {
            let header_bytes = match magic {
                MAGIC_7 => HEADER_7,
                MAGIC_8 => HEADER_8,
                _ => {
                    at += self.resynchronise(&bytes[at..], magic, about)?;
                    continue;
                }
            };
            let Some(header) = bytes.get(at..at + header_bytes) else {
                break;
            };
            let (header, payload_bytes) = match header_bytes {
                HEADER_7 => header_7(header),
                _ => header_8(header),
            };
            let end = at + header_bytes + payload_bytes;
            let Some(payload) = bytes.get(at + header_bytes..end) else {
                break;
            };
            about.records += 1;
            if header.action & NOTE == 0 {
                self.refuse_one_after_the_other(&header)?;
            }
            self.record(&header, payload, events, about);
            at = end;
        }
        Ok(at)
    }
}

impl Blktrace {
    #[inline]
    fn record(&mut self, header: &Header, payload: &[u8], events: &mut Vec<TraceEvent>, about: &mut TraceInfo) {
        let cpu = header.cpu as u16;
        if header.action & NOTE != 0 {
            self.remark(header, payload, events);
            return note(header, payload, about);
        }
        self.count(header, cpu, events);
        self.last.seen(cpu, header.at_ns);
        let Some((step, argument, detail)) = step(header.action, payload) else {
            about.records_skipped += 1;
            return;
        };
        let (op, marks) = operation(header.action);
        events.push(TraceEvent {
            at_ns: header.at_ns,
            sector: header.sector,
            argument,
            sectors: header.bytes / SECTOR_BYTES as u32,
            device: Device(header.device),
            detail,
            pid: header.pid,
            cpu,
            error: header.error as i16,
            step,
            op,
            marks,
        });
    }

    /// Files of CPUs that somebody put into one, one after the other: in this order, what one CPU began has ended
    /// before another is told of, and would be paired with what is not its own.
    #[inline]
    fn refuse_one_after_the_other(&mut self, header: &Header) -> Result<(), ReadError> {
        let went_back = header.at_ns.saturating_add(BACK_NS) < self.newest_ns;
        self.newest_ns = self.newest_ns.max(header.at_ns);
        if went_back && !self.numbers.knows(header.cpu as u16) {
            return Err(ReadError(format!(
                "files of several CPUs, one after the other (CPU {} begins before the others end): name the files \
                 themselves, or merge them with blkparse -d",
                header.cpu
            )));
        }
        Ok(())
    }

    /// The content of iolab's own note on what no record holds.
    fn remark(&mut self, header: &Header, payload: &[u8], events: &mut Vec<TraceEvent>) {
        if header.action & 0xff != MESSAGE {
            return;
        }
        let cpu = header.cpu as u16;
        match Remark::of(payload) {
            Some(Remark::Lost { count, until_ns }) => {
                self.numbers.skip(cpu, count.max(1));
                events.push(TraceEvent::lost(header.at_ns, until_ns, count, cpu));
            }
            Some(Remark::Restart) => events.push(TraceEvent::new(header.at_ns, Step::Restart)),
            None => {}
        }
    }

    /// Numbers that are left out of the records of a device on a CPU are of records that found no room.
    #[inline]
    fn count(&mut self, header: &Header, cpu: u16, events: &mut Vec<TraceEvent>) {
        let missing = self.numbers.missing(Device(header.device), cpu, u64::from(header.sequence));
        if missing > 0 {
            let lost = self.last.loss(cpu, header.at_ns, missing);
            events.push(lost);
        }
    }

    /// Where the next record begins after bytes that are none.
    fn resynchronise(&mut self, bytes: &[u8], magic: u32, about: &mut TraceInfo) -> Result<usize, ReadError> {
        if magic & !0xff == MAGIC {
            let version = magic as u8;
            return Err(ReadError(format!(
                "records of blktrace version {version}; 7 and 8 are the ones that are known"
            )));
        }
        if about.records == 0 {
            return Err(ReadError("no record of blktrace at its beginning".into()));
        }
        let records = about.records;
        about.malformed(|| format!("after {records} records: bytes that are no record"));
        let found = bytes
            .windows(4)
            .skip(1)
            .position(|window| window[1..] == (MAGIC.to_le_bytes())[1..] && matches!(window[0], 7 | 8));
        Ok(found.map_or(bytes.len().saturating_sub(3).max(1), |at| at + 1))
    }
}

fn header_7(header: &[u8]) -> (Header, usize) {
    let number = |at| u32_at(header, at).unwrap_or(0);
    let header = Header {
        sequence: number(4),
        at_ns: u64_at(header, 8),
        sector: u64_at(header, 16),
        bytes: number(24),
        action: u64::from(number(28)),
        pid: number(32),
        device: number(36),
        cpu: number(40),
        error: number(44) as u16,
    };
    (header, (number(44) >> 16) as usize)
}

fn header_8(header: &[u8]) -> (Header, usize) {
    let number = |at| u32_at(header, at).unwrap_or(0);
    let action = u64_at(header, 32);
    let header = Header {
        sequence: number(4),
        at_ns: u64_at(header, 8),
        sector: u64_at(header, 16),
        bytes: number(24),
        pid: number(28),
        // The event in the low half and its categories above, as before; more of each.
        action,
        device: number(40),
        cpu: number(44),
        error: number(48) as u16,
    };
    (header, (number(48) >> 16) as usize)
}

fn note(header: &Header, payload: &[u8], about: &mut TraceInfo) {
    about.records_skipped += 1;
    if header.action & 0xff == 0 {
        let name = payload.split(|&byte| byte == 0).next();
        about.rename(header.pid, name.unwrap_or_default());
    }
}

#[inline]
fn step(action: u64, payload: &[u8]) -> Option<(Step, u64, u32)> {
    let number = |at: usize| {
        let skipped = if action & OF_CGROUP != 0 { CGROUP_BYTES } else { 0 };
        let bytes = payload.get(skipped + at..skipped + at + 8)?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    };
    let counted = |step| Some((step, number(0)?, NO_DETAIL));
    let step = match action & 0xff {
        1 => Step::Queue,
        2 => Step::BackMerge,
        3 => Step::FrontMerge,
        4 => Step::GetRequest,
        5 => Step::Sleep,
        6 => Step::Requeue,
        7 => Step::Issue,
        8 => Step::Complete,
        9 => Step::Plug,
        10 => return counted(Step::Unplug),
        11 => return counted(Step::TimerUnplug),
        12 => Step::Insert,
        13 => return counted(Step::Split),
        15 => return Some((Step::Remap, number(8)?, (number(0)? >> 32) as u32)),
        _ => return None,
    };
    Some((step, 0, NO_DETAIL))
}

#[inline]
fn operation(action: u64) -> (Op, Marks) {
    let has = |bit: u64| action & (1 << (bit + 16)) != 0;
    let data = action & 0xffff_ffff_ffff_0000 != 0;
    let (write, flush, command, discard) = (has(1), has(2), has(9), has(13));
    // Of version 8: reset, finish, open and close of zones, which carry no data.
    let of_zones = action >> 16 & ZONE_MANAGEMENT != 0;
    let op = match (command || of_zones, discard, write) {
        (true, ..) => Op::Other,
        (_, true, _) => Op::Discard,
        (.., true) => Op::Write,
        _ if flush => Op::Flush,
        _ if data => Op::Read,
        _ => Op::Other,
    };
    let mut marks = Marks::default();
    let mut mark = |set: bool, mark: Marks| {
        if set {
            marks = marks.with(mark);
        }
    };
    mark(flush && op != Op::Flush, Marks::PREFLUSH);
    mark(has(3), Marks::SYNC);
    mark(has(11), Marks::READ_AHEAD);
    mark(has(12), Marks::METADATA);
    mark(has(15), Marks::FUA);
    mark(has(22), Marks::ZEROES);
    (op, marks)
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of one CPU at these times, in milliseconds.
    fn file(cpu: u32, times_ms: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (&at_ms, sequence) in times_ms.iter().zip(1..) {
            let record = crate::output::record::Record {
                sequence,
                at_ns: at_ms * 1_000_000,
                sector: 8,
                bytes: 4096,
                action: 1 << 20 | 1 << 16 | 1,
                pid: 1,
                device: Device::new(8, 0),
                cpu,
                error: 0,
                payload: &[],
            };
            record.write(&mut bytes);
        }
        bytes
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<TraceEvent>, ReadError> {
        let mut events = Vec::new();
        let mut about = TraceInfo::default();
        Blktrace::default().decode(bytes, true, &mut events, &mut about)?;
        Ok(events)
    }

    #[test]
    fn files_of_cpus_one_after_the_other_are_refused_and_two_recordings_are_not() {
        let of_cpus = [file(0, &[1, 5000]), file(1, &[2, 5001])].concat();
        let refused = decoded(&of_cpus).expect_err("two CPUs");
        assert!(refused.0.contains("CPU 1 begins before"), "{refused}");
        let recordings = [file(0, &[1, 5000]), file(0, &[2, 5001])].concat();
        assert_eq!(decoded(&recordings).expect("one CPU").len(), 4);
    }

    #[test]
    fn what_version_8_adds_is_told_from_writes_of_data() {
        let of = |bits: &[u64]| operation(bits.iter().map(|bit| 1 << (bit + 16)).sum());
        assert_eq!(of(&[1, 22]), (Op::Write, Marks::ZEROES));
        assert_eq!(of(&[1, 16]), (Op::Write, Marks::default()));
        assert_eq!(of(&[1, 17]), (Op::Other, Marks::default()));
    }

    #[test]
    fn records_of_version_8_are_read_and_numbers_left_out_are_lost_events() {
        let mut bytes = Vec::new();
        for (sequence, at_ns) in [(1u32, 10u64), (5, 90)] {
            bytes.extend((MAGIC | 8).to_le_bytes());
            bytes.extend(sequence.to_le_bytes());
            bytes.extend(at_ns.to_le_bytes());
            bytes.extend(2048u64.to_le_bytes());
            bytes.extend(4096u32.to_le_bytes());
            bytes.extend(77u32.to_le_bytes());
            bytes.extend((1u64 << 17 | 1 << 31 | 1 << 22 | 7).to_le_bytes());
            bytes.extend((8u32 << 20).to_le_bytes());
            bytes.extend(3u32.to_le_bytes());
            bytes.extend([0; 16]);
        }
        let events = decoded(&bytes).expect("version 8");
        assert_eq!((events[0].step, events[0].op, events[0].pid), (Step::Issue, Op::Write, 77));
        assert!(events[0].marks.has(Marks::FUA));
        assert_eq!((events[0].sector, events[0].sectors, events[0].cpu), (2048, 8, 3));
        let lost = events[1];
        assert_eq!((lost.step, lost.at_ns, lost.argument, lost.sectors), (Step::Lost, 10, 90, 3));
    }
}
