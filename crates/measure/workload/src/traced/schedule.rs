//! The I/Os of a trace as a replay needs them: when, where, how large, whose, and how long they took.

use std::fmt::Write;

use base::SECTOR_BYTES;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::op::OpKind;
use base::time::Time;

/// One I/O of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledIo {
    /// When it arrived, since the first.
    pub at_ns: Time,
    /// How long it took; `UNKNOWN_NS` if the trace does not report it.
    pub took_ns: Time,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// Length in the same; 0 of a flush.
    pub sectors: u32,
    /// Whose, by number in `Schedule::processes`.
    pub process: u32,
    /// The device's number in `Schedule::devices`.
    pub device: u16,
    /// What is done; `Fdatasync` is a flush.
    pub kind: OpKind,
}

/// Its duration is unknown.
pub const UNKNOWN_NS: Time = Time::MAX;

impl ScheduledIo {
    /// When it was over in the trace; never at its arrival, so that nothing waits for itself.
    pub fn ended_ns(&self) -> Option<Time> {
        (self.took_ns != UNKNOWN_NS).then(|| self.at_ns.saturating_add(self.took_ns.max(1)))
    }
}

/// A device of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TracedDevice {
    /// `major:minor`, or its name in the trace.
    pub name: String,
    /// The end of what was read and written last on it, in bytes.
    pub extent_bytes: u64,
    /// Its I/Os.
    pub ios: u64,
}

/// A process of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Process {
    /// Its number in the trace.
    pub pid: u32,
    /// What it is called; empty if unknown.
    pub name: String,
    /// Its I/Os, flushes among them.
    pub ios: u64,
    /// The reads among them.
    pub reads: u64,
    /// The writes among them.
    pub writes: u64,
    /// The flushes among them, and writes that are durable when they complete.
    pub flushes: u64,
    /// The discards among them, and writes of zeroes that carry no data.
    pub discards: u64,
    /// The most in flight at once, of those whose end is known.
    pub depth_max: u64,
}

/// All of them, in the order of arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// The I/Os.
    pub ios: Vec<ScheduledIo>,
    /// Those of most I/Os first.
    pub devices: Vec<TracedDevice>,
    /// Those of most I/Os first.
    pub processes: Vec<Process>,
    /// Commands of drivers, and what is longer than any I/O: not replayed.
    pub left_out: u64,
    digest: String,
}

/// A schedule without its I/Os.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ScheduleSummary {
    /// I/Os that are replayed.
    pub ios: u64,
    /// From the first arrival to the last.
    pub elapsed_ns: Time,
    /// The longest read or write, in bytes.
    pub largest_bytes: u64,
    /// Share of the I/Os whose end is known.
    pub ended_share: f64,
    /// Commands of drivers, and what is longer than any I/O: not replayed.
    pub left_out: u64,
    /// Names it: the same I/Os have the same.
    pub digest: String,
    /// Those of most I/Os first.
    pub devices: Vec<TracedDevice>,
    /// Those of most I/Os first.
    pub processes: Vec<Process>,
    /// For each device, how many regions of it are touched.
    pub regions: Vec<u64>,
}

impl Schedule {
    /// The I/Os in the order of arrival; devices and processes by their numbers.
    pub fn new(ios: Vec<ScheduledIo>, devices: Vec<TracedDevice>, processes: Vec<Process>, left_out: u64) -> Schedule {
        Schedule { digest: digest(&ios), ios, devices, processes, left_out }
    }

    /// Fills in how many of each process's I/Os were in flight at once, at most.
    pub fn count_depths(&mut self) {
        let mut steps: Vec<(Time, bool, u32)> = Vec::with_capacity(2 * self.ios.len());
        for io in &self.ios {
            if let Some(ended_ns) = io.ended_ns() {
                steps.push((io.at_ns, true, io.process));
                steps.push((ended_ns, false, io.process));
            }
        }
        // Ends before beginnings.
        steps.sort_unstable();
        let mut depths = vec![0u64; self.processes.len()];
        for (_, begins, process) in steps {
            let depth = &mut depths[process as usize];
            if begins {
                *depth += 1;
                let most = &mut self.processes[process as usize].depth_max;
                *most = (*most).max(*depth);
            } else {
                *depth -= 1;
            }
        }
    }

    /// What it holds, with `regions` of this many bytes counted.
    pub fn summary(&self, region_bytes: u64) -> ScheduleSummary {
        let ended = self.ios.iter().filter(|io| io.took_ns != UNKNOWN_NS).count();
        ScheduleSummary {
            ios: self.ios.len() as u64,
            elapsed_ns: self.ios.last().map_or(0, |io| io.at_ns),
            largest_bytes: self.largest_bytes(),
            ended_share: ended as f64 / self.ios.len().max(1) as f64,
            left_out: self.left_out,
            digest: self.digest.clone(),
            devices: self.devices.clone(),
            processes: self.processes.clone(),
            regions: (0..self.devices.len() as u16)
                .map(|device| self.touched(device, region_bytes).len() as u64)
                .collect(),
        }
    }

    /// The longest read or write in bytes.
    pub fn largest_bytes(&self) -> u64 {
        let carries_data = |io: &&ScheduledIo| !io.kind.clears();
        let of_data = self.ios.iter().filter(carries_data);
        let sectors = of_data.map(|io| io.sectors).max().unwrap_or(0);
        u64::from(sectors) * SECTOR_BYTES
    }

    /// The regions of a device that are read or written, in their order.
    pub fn touched(&self, device: u16, region_bytes: u64) -> Vec<u64> {
        let mut regions: Vec<u64> = Vec::new();
        for io in self.ios.iter().filter(|io| io.device == device && io.sectors > 0 && !io.kind.clears()) {
            let first = io.sector * SECTOR_BYTES / region_bytes;
            let last = ((io.sector + u64::from(io.sectors)) * SECTOR_BYTES - 1) / region_bytes;
            if regions.last() != Some(&last) || first != last {
                regions.extend(first..=last);
            }
            if regions.len() == regions.capacity() {
                regions.sort_unstable();
                regions.dedup();
            }
        }
        regions.sort_unstable();
        regions.dedup();
        regions
    }

    /// Names the schedule: 16 hexadecimal digits over all its I/Os.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// A table of the I/Os that reads as the same schedule again: a line per I/O in the order in which they ended, or
    /// arrived if that is not known. `COLUMNS` lists its columns.
    pub fn table(&self) -> String {
        let mut order: Vec<u32> = (0..self.ios.len() as u32).collect();
        let time = |io: &ScheduledIo| match io.took_ns {
            UNKNOWN_NS => io.at_ns,
            took_ns => io.at_ns.saturating_add(took_ns),
        };
        order.sort_by_key(|&index| (time(&self.ios[index as usize]), index));
        let mut text = String::with_capacity(order.len() * 40);
        text.push_str("time,latency,operation,offset,size,device,pid,process\n");
        for io in order.iter().map(|&index| &self.ios[index as usize]) {
            let operation = match io.kind {
                OpKind::Read => "R",
                OpKind::Write => "W",
                OpKind::DurableWrite | OpKind::OsyncWrite => "WF",
                OpKind::Fsync | OpKind::Fdatasync | OpKind::SyncFileRange => "F",
                OpKind::Discard => "D",
                OpKind::WriteZeroes => "WZ",
            };
            let process = &self.processes[io.process as usize];
            // A `String` takes whatever is written to it.
            let _ = write!(text, "{},", time(io));
            if io.took_ns != UNKNOWN_NS {
                let _ = write!(text, "{}", io.took_ns);
            }
            let _ = writeln!(
                text,
                ",{operation},{},{},{},{},{}",
                io.sector * SECTOR_BYTES,
                u64::from(io.sectors) * SECTOR_BYTES,
                self.devices[usize::from(io.device)].name,
                process.pid,
                plain(&process.name),
            );
        }
        text
    }
}

fn digest(ios: &[ScheduledIo]) -> String {
    let mut hash = Xxh3::new();
    for io in ios {
        let numbers = [
            io.at_ns,
            io.took_ns,
            io.sector,
            u64::from(io.sectors) << 32 | u64::from(io.process),
            u64::from(io.device) << 8 | io.kind as u64,
        ];
        let mut bytes = [0; 40];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        hash.update(&bytes);
    }
    format!("{:016x}", hash.digest())
}

/// A name without what separates columns and lines.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c == ',' || c == '"' || c.is_control() { '_' } else { c }).collect()
}
