//! From a trace's events to what a replay offers: each I/O once, with its arrival, its place and whose it is.

use std::collections::{BTreeMap, BTreeSet};

use base::SECTOR_BYTES;
use workload::job::OpKind;
use workload::traced::{Process, Schedule, ScheduledIo, Side, TraceChoice, TracedDevice};

use crate::event::{Device, Marks, Op, Step, TraceEvent};
use crate::input::{ReadError, TraceInfo};
use crate::request::{Change, Io, RequestTracker};

/// More take more memory than a replay should: 400 MB.
const IOS_MAX: usize = 8_000_000;
const UNKNOWN_NS: u64 = u64::MAX;
/// A longer read or write is none of a block device: 64 MiB.
const SECTORS_MAX: u32 = 1 << 17;
/// A bio counts its bytes in 32 bits.
const CLEARED_SECTORS_MAX: u32 = u32::MAX >> 9;
/// No device reaches further: 8 EiB.
const END_SECTOR_MAX: u64 = 1 << 54;
/// Collects the I/Os of a trace's events, taken in the order of time.
pub struct Arrivals {
    side: Side,
    from_ns: u64,
    length_ns: Option<u64>,
    began_ns: Option<u64>,
    follow: RequestTracker,
    found: Vec<TracedIo>,
    bios: Bios,
    /// Whether the trace reports what the driver got.
    issues: bool,
    /// Requests that were to be durable, which their driver was not told: a flush of its own follows them.
    not_durable: BTreeSet<(Device, u64)>,
    left_out: u64,
}

#[derive(Clone, Copy)]
struct TracedIo {
    at_ns: u64,
    took_ns: u64,
    sector: u64,
    sectors: u32,
    pid: u32,
    device: Device,
    kind: OpKind,
}

/// Bios that have been queued and have not ended, by device and first sector: numbers in `found`, and the sectors that
/// are still to end.
#[derive(Default)]
struct Bios {
    in_flight: BTreeMap<(Device, u64), Vec<(usize, u64)>>,
    seen: bool,
}

impl Arrivals {
    /// The arrivals that `choice` selects.
    pub fn new(choice: &TraceChoice) -> Arrivals {
        Arrivals {
            side: choice.side,
            from_ns: choice.from_ns,
            length_ns: choice.length_ns,
            began_ns: None,
            follow: RequestTracker::default(),
            found: Vec::new(),
            bios: Bios::default(),
            issues: false,
            not_durable: BTreeSet::new(),
            left_out: 0,
        }
    }

    /// The next event.
    pub fn add(&mut self, event: &TraceEvent) -> Result<(), ReadError> {
        let began_ns = event.began_ns();
        if event.step != Step::Lost {
            self.began_ns.get_or_insert(began_ns);
        }
        let (mut ended, mut durable) = (None, None);
        self.follow.add(event, |_, change| match change {
            Change::Ended { io, .. } => ended = Some(*io),
            Change::Issued { io, .. } if io.marks.has(Marks::FUA) => durable = Some(*io),
            _ => {}
        });
        self.issues |= event.step == Step::Issue;
        if let (Side::Issued, Some(io)) = (self.side, durable)
            && !event.marks.has(Marks::FUA)
        {
            self.not_durable.insert((io.device, io.sector));
        }
        if self.side == Side::Queued && event.step == Step::Queue {
            self.queued(event);
        }
        if let Some(io) = ended {
            match self.bios.seen {
                true => self.bios.ended(&io, &mut self.found),
                false => self.requested(&io),
            }
        }
        if self.found.len() > IOS_MAX {
            let what = format!("more than {IOS_MAX} I/Os to replay: take a part, with skip and take");
            return Err(ReadError(what));
        }
        Ok(())
    }

    /// A bio: what was asked for.
    fn queued(&mut self, event: &TraceEvent) {
        self.bios.seen = true;
        let has_data = event.sectors > 0;
        if event.marks.has(Marks::PREFLUSH) && has_data && event.op == Op::Write {
            self.put(event.at_ns, UNKNOWN_NS, event, OpKind::Fdatasync);
        }
        let Some(kind) = kind(event.op, event.marks, event.sectors) else {
            self.left_out += 1;
            return;
        };
        if let Some(number) = self.put(event.at_ns, UNKNOWN_NS, event, kind) {
            self.bios.began(event, number);
        }
    }

    /// A request: what the device saw.
    fn requested(&mut self, io: &Io) {
        // A requested flush: the device sees the one that the block layer makes of it.
        let asked_for = io.op == Op::Write && io.sectors == 0 && io.issued_ns.is_none();
        if self.side == Side::Issued && asked_for && self.issues {
            return;
        }
        let marks = match self.not_durable.remove(&(io.device, io.sector)) {
            true => Marks::default(),
            false => io.marks,
        };
        let Some(kind) = kind(io.op, marks, io.sectors) else {
            self.left_out += 1;
            return;
        };
        let at_ns = match self.side {
            Side::Issued => io.issued_ns.unwrap_or_else(|| io.arrived_ns()),
            Side::Queued => io.arrived_ns(),
        };
        let took_ns = io
            .completed_ns
            .filter(|_| io.issued_ns.or(io.queued_ns).is_some())
            .map_or(UNKNOWN_NS, |ended| ended.saturating_sub(at_ns));
        let event = TraceEvent {
            sector: io.sector,
            sectors: io.sectors,
            pid: io.pid,
            device: io.device,
            ..TraceEvent::new(at_ns, Step::Issue)
        };
        self.put(at_ns, took_ns, &event, kind);
    }

    fn put(&mut self, at_ns: u64, took_ns: u64, event: &TraceEvent, kind: OpKind) -> Option<usize> {
        let since_ns = at_ns.saturating_sub(self.began_ns.unwrap_or(0));
        let until_ns = self.length_ns.map_or(u64::MAX, |length| self.from_ns.saturating_add(length));
        if !(self.from_ns..until_ns).contains(&since_ns) {
            return None;
        }
        let end = event.sector.saturating_add(u64::from(event.sectors));
        let sectors_max = match kind.clears() {
            true => CLEARED_SECTORS_MAX,
            false => SECTORS_MAX,
        };
        if !kind.is_sync() && (event.sectors > sectors_max || end > END_SECTOR_MAX) {
            self.left_out += 1;
            return None;
        }
        let is_sync = kind.is_sync();
        self.found.push(TracedIo {
            at_ns,
            took_ns,
            sector: if is_sync { 0 } else { event.sector },
            sectors: if is_sync { 0 } else { event.sectors },
            pid: event.pid,
            device: event.device,
            kind,
        });
        Some(self.found.len() - 1)
    }

    /// The trace ended.
    pub fn finish(mut self, choice: &TraceChoice, about: &TraceInfo) -> Result<Schedule, ReadError> {
        if !self.bios.seen {
            for io in self.follow.all_issued() {
                self.requested(&io);
            }
        }
        let name = |device: Device| about.device_name(device);
        let mut found = self.found;
        if let Some(wanted) = &choice.device {
            found.retain(|io| *wanted == name(io.device) || *wanted == io.device.to_string());
        }
        found.sort_unstable_by_key(|io| {
            let what = (io.sector, io.sectors, io.kind as u8, io.pid, io.took_ns);
            (io.at_ns, what)
        });
        let Some(first_ns) = found.first().map(|io| io.at_ns) else {
            let what = match &choice.device {
                Some(device) => format!("nothing to replay of the device {device}"),
                None => "no read, write, flush or discard to replay".into(),
            };
            return Err(ReadError(what));
        };
        let (pids, processes) = processes(&found, about);
        let (numbers, devices) = devices(&found, name);
        let ios = found.iter().map(|io| ScheduledIo {
            at_ns: io.at_ns - first_ns,
            took_ns: io.took_ns,
            sector: io.sector,
            sectors: io.sectors,
            process: pids[&io.pid],
            device: numbers[&io.device],
            kind: io.kind,
        });
        let mut schedule = Schedule::new(ios.collect(), devices, processes, self.left_out);
        schedule.count_depths();
        Ok(schedule)
    }
}

fn kind(op: Op, marks: Marks, sectors: u32) -> Option<OpKind> {
    match (op, sectors) {
        (Op::Read, 1..) => Some(OpKind::Read),
        (Op::Discard, 1..) => Some(OpKind::Discard),
        (Op::Write, 1..) if marks.has(Marks::ZEROES) => Some(OpKind::WriteZeroes),
        (Op::Write, 1..) if marks.has(Marks::FUA) => Some(OpKind::DurableWrite),
        (Op::Write, 1..) => Some(OpKind::Write),
        (Op::Write, 0) | (Op::Flush, _) => Some(OpKind::Fdatasync),
        _ => None,
    }
}

fn processes(found: &[TracedIo], about: &TraceInfo) -> (BTreeMap<u32, u32>, Vec<Process>) {
    let mut by_pid: BTreeMap<u32, Process> = BTreeMap::new();
    for io in found {
        let process = by_pid.entry(io.pid).or_insert_with(|| Process {
            pid: io.pid,
            name: about.names.get(&io.pid).cloned().unwrap_or_default(),
            ios: 0,
            reads: 0,
            writes: 0,
            flushes: 0,
            discards: 0,
            depth_max: 0,
        });
        process.ios += 1;
        process.reads += u64::from(io.kind == OpKind::Read);
        process.writes += u64::from(io.kind.is_write());
        process.discards += u64::from(io.kind.clears());
        process.flushes += u64::from(io.kind.is_sync() || io.kind == OpKind::DurableWrite);
    }
    let mut processes: Vec<Process> = by_pid.into_values().collect();
    processes.sort_by_key(|process| (std::cmp::Reverse(process.ios), process.pid));
    let numbers = (0..).zip(&processes).map(|(number, process)| (process.pid, number));
    (numbers.collect(), processes)
}

fn devices(found: &[TracedIo], name: impl Fn(Device) -> String) -> (BTreeMap<Device, u16>, Vec<TracedDevice>) {
    let mut by_device: Vec<(Device, TracedDevice)> = Vec::new();
    for io in found {
        let at = by_device.iter().position(|(known, _)| *known == io.device);
        let at = at.unwrap_or_else(|| {
            by_device.push((io.device, TracedDevice { name: name(io.device), extent_bytes: 0, ios: 0 }));
            by_device.len() - 1
        });
        let device = &mut by_device[at].1;
        let end = (io.sector.saturating_add(u64::from(io.sectors))).saturating_mul(SECTOR_BYTES);
        device.extent_bytes = device.extent_bytes.max(end);
        device.ios += 1;
    }
    // Stable: of equally many, the one that came first.
    by_device.sort_by_key(|(_, device)| std::cmp::Reverse(device.ios));
    let numbers = (0..).zip(&by_device).map(|(number, (device, _))| (*device, number));
    (numbers.collect(), by_device.into_iter().map(|(_, device)| device).collect())
}

impl Bios {
    fn began(&mut self, event: &TraceEvent, number: usize) {
        let sector = if event.sectors == 0 { 0 } else { event.sector };
        self.in_flight.entry((event.device, sector)).or_default().push((number, u64::from(event.sectors)));
    }

    /// A request ended: so did what of the bios it covers, and a bio with its last part.
    fn ended(&mut self, io: &Io, found: &mut [TracedIo]) {
        let Some(ended_ns) = io.completed_ns else {
            return;
        };
        let (sector, end) = match io.sectors {
            0 => (0, 1),
            sectors => (io.sector, io.sector.saturating_add(u64::from(sectors))),
        };
        // A bio that was split begins before the request of its second part.
        let before = self.in_flight.range((io.device, 0)..(io.device, sector));
        let mut keys: Vec<(Device, u64)> = before.map(|(key, _)| *key).next_back().into_iter().collect();
        let inside = self.in_flight.range((io.device, sector)..(io.device, end));
        keys.extend(inside.map(|(key, _)| *key));
        for key in keys {
            let Some(bios) = self.in_flight.get_mut(&key) else {
                continue;
            };
            bios.retain_mut(|(number, left)| {
                let bio = &mut found[*number];
                let its_end = key.1 + u64::from(bio.sectors);
                let covered = its_end.min(end).saturating_sub(key.1.max(sector));
                let is_flush = io.sectors == 0 && bio.sectors == 0;
                let same = same_operation(bio.kind, io.op) && bio.at_ns <= ended_ns;
                if !same || covered == 0 && !is_flush {
                    return true;
                }
                *left = left.saturating_sub(covered);
                if *left == 0 {
                    bio.took_ns = ended_ns - bio.at_ns;
                }
                *left > 0
            });
            if bios.is_empty() {
                self.in_flight.remove(&key);
            }
        }
    }
}

fn same_operation(kind: OpKind, op: Op) -> bool {
    match op {
        Op::Read => kind == OpKind::Read,
        Op::Write => kind.is_write() || kind.is_sync() || kind == OpKind::WriteZeroes,
        Op::Discard => kind == OpKind::Discard,
        Op::Flush => kind.is_sync(),
        _ => false,
    }
}
