//! The one pass.

use std::collections::BTreeMap;

use super::arrivals::{Arrival, Arrivals};
use super::bursts::Bursts;
use super::device::DeviceStudy;
use super::figures::{DeviceFigures, FailedFigures, TraceFigures};
use super::group::Group;
use super::keyed_values::KeyedValues;
use super::labels::{LARGEST, OTHERS, SMALLEST, absent, by_process, shown_names, size_name};
use super::layers::Layers;
use super::maps::{INTERVALS, Maps};
use super::reuse::Reuse;
use super::slowest_requests::SlowestRequests;
use crate::event::{Device, Marks, Op, STEP_NAMES, STEPS, Step, TraceEvent};
use crate::input::TraceInfo;
use crate::request::{Change, Io, RequestTracker};

/// Takes all events of a trace in the order of time.
#[derive(Clone, Debug)]
pub struct Study {
    follow: RequestTracker,
    began_ns: Option<u64>,
    /// The earliest time in lines of I/Os: a later line may report one that began before the first.
    earliest_ns: Option<u64>,
    reached_ns: u64,
    events: [u64; STEPS],
    events_lost: u64,
    by_op: [Group; OPERATIONS.len()],
    /// By operation and error: how many, and when and where the first was.
    failed: BTreeMap<(usize, i16), (u64, u64, Device, u64)>,
    /// By the power of two that the sectors are rounded up to.
    by_size: [Group; SIZES],
    by_pid: KeyedValues<u32, Group>,
    by_cpu: KeyedValues<u16, Group>,
    devices: Vec<(Device, DeviceStudy)>,
    /// By the number of the disk: where in `devices`.
    places: Vec<Option<usize>>,
    /// Whether lines of I/Os have how long each waited.
    waits_told: bool,
    arrivals: Arrivals,
    bursts: Bursts,
    reuse: Reuse,
    worst: SlowestRequests,
    maps: Maps,
    layers: Layers,
    /// The hardware queue of each CPU.
    queue_of: BTreeMap<u16, usize>,
    by_queue: Vec<Group>,
}

const OPERATIONS: [&str; 6] = ["read", "write", "zeroes", "discard", "flush", "other"];

/// Which of the operations.
#[inline]
fn operation(io: &Io) -> usize {
    match io.kind() {
        Op::Read => 0,
        Op::Write if io.marks.has(Marks::ZEROES) => 2,
        Op::Write => 1,
        Op::Discard => 3,
        Op::Flush => 4,
        Op::Other => 5,
    }
}

/// A group holds histograms: more tasks or CPUs than these are counted together.
const PIDS_MAX: usize = 200;
const CPUS_MAX: usize = 64;
/// Devices that have histograms with room for everything; those of further ones grow with what they hold.
const ROOMY_DEVICES: usize = 64;
const SIZES: usize = LARGEST.ilog2() as usize + 1;

impl Default for Study {
    fn default() -> Study {
        Study {
            follow: RequestTracker::default(),
            began_ns: None,
            earliest_ns: None,
            reached_ns: 0,
            events: [0; STEPS],
            events_lost: 0,
            by_op: Default::default(),
            failed: BTreeMap::new(),
            by_size: Default::default(),
            by_pid: KeyedValues::new(PIDS_MAX, OTHERS),
            by_cpu: KeyedValues::new(CPUS_MAX, u16::MAX),
            devices: Vec::new(),
            places: Vec::new(),
            waits_told: false,
            arrivals: Arrivals::default(),
            bursts: Bursts::new(),
            reuse: Reuse::new(),
            worst: SlowestRequests::default(),
            maps: Maps::new(INTERVALS),
            layers: Layers::default(),
            queue_of: BTreeMap::new(),
            by_queue: Vec::new(),
        }
    }
}

impl Study {
    /// Bios of a partition carry its own number; its disk's requests are theirs.
    pub fn partition(&mut self, partition: Device, disk: Device) {
        self.follow.partition(partition, disk);
    }

    /// Maps over time with at most this many intervals, instead of `INTERVALS`.
    pub fn intervals(&mut self, intervals: usize) {
        self.maps = Maps::new(intervals);
    }

    /// The CPUs of each hardware queue, which no trace reports: requests are counted by queue too.
    pub fn queues(&mut self, queues: &[Vec<u16>]) {
        self.by_queue = vec![Group::default(); queues.len()];
        let of_cpus = queues.iter().enumerate();
        self.queue_of = of_cpus.flat_map(|(queue, cpus)| cpus.iter().map(move |&cpu| (cpu, queue))).collect();
    }

    /// Takes in the next event; `each` gets the request that it ends.
    #[inline]
    pub fn add(&mut self, event: &TraceEvent, mut each: impl FnMut(&Io)) {
        // A loss may reach back to a time before the trace; the line of an I/O reports its end.
        let began_ns = match event.step {
            Step::Lost => self.began_ns.unwrap_or(event.at_ns),
            _ => *self.began_ns.get_or_insert(event.began_ns()),
        };
        self.waits_told |= event.waited_us().is_some();
        if matches!(event.step, Step::DeviceDone | Step::WholeDone) {
            let began_ns = event.began_ns();
            self.earliest_ns = Some(self.earliest_ns.map_or(began_ns, |ns| ns.min(began_ns)));
        }
        self.reached_ns = self.reached_ns.max(event.at_ns);
        self.events[event.step as usize] += 1;
        if event.step == Step::Lost {
            self.events_lost += u64::from(event.sectors);
        }
        match event.step {
            Step::Remap => self.layers.sent(event, &self.follow),
            Step::Restart => self.layers.restart(),
            _ => {}
        }
        let mut ended = None;
        self.follow.add(event, |_, change| {
            if let Change::Ended { io, .. } = change {
                ended = Some(*io);
            }
        });
        if !event.step.is_of_bios() && !matches!(event.step, Step::Lost | Step::Restart) {
            return;
        }
        if matches!(event.step, Step::Lost | Step::Restart) {
            for (_, device) in &mut self.devices {
                device.depth(event.at_ns, None);
            }
            return;
        }
        let (Some(disk), Some((device, depth))) = (self.follow.latest_disk(), self.follow.latest()) else {
            return;
        };
        let at = self.device(disk, device);
        let counted = &mut self.devices[at].1;
        counted.event(event);
        let known = !self.follow.in_doubt(event.at_ns);
        if matches!(event.step, Step::Issue | Step::Requeue | Step::Complete)
            && counted.was_issued()
            && let Some((since_ns, before)) = counted.depth(event.at_ns, known.then_some(depth))
        {
            let since = |at_ns: u64| at_ns.saturating_sub(began_ns);
            self.maps.depth(since(since_ns), since(event.at_ns), before);
        }
        let since_ns = event.at_ns.saturating_sub(began_ns);
        let arrives = match event.step {
            Step::Issue | Step::Arrival => Some(since_ns),
            Step::DeviceDone | Step::WholeDone => Some(since_ns.saturating_sub(event.argument)),
            _ => None,
        };
        if let Some(arrived_ns) = arrives {
            let pid = ended.map_or(event.pid, |io| io.pid);
            // Zeroes are no data that are written.
            let op = match event.marks.has(Marks::ZEROES) {
                true => Op::Other,
                false => event.op,
            };
            self.maps.arrived(arrived_ns, op, pid, event.sector, event.sectors);
            let arrival = Arrival::of(event, at);
            let first = match event.step {
                Step::Issue | Step::Arrival => Some(arrival),
                _ => self.arrivals.add(arrival),
            };
            if let Some(first) = first {
                self.arrived(&first);
            }
        }
        if let Some(io) = ended {
            self.ended(at, &io, began_ns);
            each(&io);
        }
    }

    /// The time of the first event; None before it.
    pub fn began_ns(&self) -> Option<u64> {
        self.began_ns
    }

    /// The disk of the event that came last, and how many requests its driver has.
    pub fn depth(&self) -> Option<(Device, u64)> {
        self.follow.latest()
    }

    fn arrived(&mut self, arrival: &Arrival) {
        self.bursts.add(arrival.at_ns);
        let sectors = u64::from(arrival.sectors);
        self.devices[arrival.place].1.arrived(arrival.sector, sectors);
        if arrival.op != Op::Discard {
            self.reuse.add(arrival.device.0, arrival.sector, sectors);
        }
    }

    fn ended(&mut self, device: usize, io: &Io, began_ns: u64) {
        let stages = io.stages();
        let op = operation(io);
        self.by_op[op].count_stages(io, &stages);
        if io.error != 0 {
            let ended_ns = io.completed_ns.unwrap_or(io.seen_ns);
            let first = (0, ended_ns, io.device, io.sector);
            self.failed.entry((op, io.error)).or_insert(first).0 += 1;
        }
        if io.sectors > 0 {
            let class = io.sectors.clamp(SMALLEST, LARGEST).next_power_of_two();
            self.by_size[class.ilog2() as usize].count_stages(io, &stages);
        }
        self.by_pid.of(io.pid).count_stages(io, &stages);
        self.by_cpu.of(io.cpu).count_stages(io, &stages);
        if let Some(&queue) = self.queue_of.get(&io.cpu) {
            self.by_queue[queue].count_stages(io, &stages);
        }
        self.devices[device].1.ended(io, &stages);
        self.layers.ended(io);
        self.worst.add(io);
        let now_ns = io.completed_ns.unwrap_or(io.seen_ns);
        self.maps.completed(now_ns.saturating_sub(began_ns), io);
    }

    #[inline]
    fn device(&mut self, disk: usize, device: Device) -> usize {
        match self.places.get(disk) {
            Some(&Some(at)) => at,
            _ => self.new_device(disk, device),
        }
    }

    #[cold]
    fn new_device(&mut self, disk: usize, device: Device) -> usize {
        let at = self.devices.len();
        self.devices.push((device, DeviceStudy::new(at < ROOMY_DEVICES)));
        if self.places.len() <= disk {
            self.places.resize(disk + 1, None);
        }
        self.places[disk] = Some(at);
        at
    }

    /// The trace ended.
    pub fn finish(mut self, about: &TraceInfo) -> TraceFigures {
        self.follow.finish();
        while let Some(arrival) = self.arrivals.first() {
            self.arrived(&arrival);
        }
        let began_ns = self.earliest_ns.or(self.began_ns).unwrap_or(0);
        let elapsed_ns = self.reached_ns.saturating_sub(began_ns);
        let unknown = self.follow.unknown;
        for (_, device) in &mut self.devices {
            device.depth(self.reached_ns, None);
        }
        self.maps.finish();
        self.devices.sort_by_key(|(device, _)| *device);
        let slowest = std::mem::take(&mut self.worst).finish(about, began_ns);
        let absent = absent(&self.events, self.waits_told);
        let (by_pid, by_cpu) = (self.by_pid.into_map(), self.by_cpu.into_map());
        let names = shown_names(&by_pid, &slowest, &self.maps, about);
        let mut all = Group::default();
        self.by_op.iter().for_each(|group| all.merge(group));
        let mut figures = TraceFigures {
            format: about.format.clone(),
            records: about.records,
            records_skipped: about.records_skipped,
            malformed: about.malformed,
            first_malformed: about.first_malformed.clone(),
            elapsed_ns,
            began_ns,
            events_lost: self.events_lost,
            losses: self.events[Step::Lost as usize],
            events_late: about.events_late,
            restarts: about.restarts,
            events_unmatched: unknown.unmatched,
            unknown_alike: unknown.alike,
            unknown_lost: unknown.lost,
            unended: unknown.unended,
            absent,
            notes: about.notes.clone(),
            all: all.figures("all".into()),
            by_process: by_process(&by_pid, about),
            bursts: self.bursts.figures(),
            reuse: self.reuse.figures(),
            slowest,
            maps: self.maps,
            names,
            ..TraceFigures::default()
        };
        figures.events = STEP_NAMES
            .iter()
            .zip(self.events)
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (*name, count))
            .collect();
        let ops = OPERATIONS.iter().zip(&self.by_op).filter(|(_, group)| group.count() > 0);
        figures.by_operation = ops.map(|(name, group)| group.figures((*name).into())).collect();
        let failed = self.failed.iter();
        figures.failed = failed
            .map(|(&(op, error), &(count, first_ns, device, first_sector))| FailedFigures {
                operation: OPERATIONS[op],
                error,
                count,
                first_ns: first_ns.saturating_sub(began_ns),
                first_device: about.device_name(device),
                first_sector,
            })
            .collect();
        let sizes = (0..).zip(&self.by_size);
        figures.by_size = sizes
            .filter(|(_, group)| group.count() > 0)
            .map(|(power, group)| group.figures(size_name(1 << power)))
            .collect();
        figures.by_cpu = by_cpu.iter().map(|(cpu, group)| group.figures(cpu.to_string())).collect();
        let queues = self.by_queue.iter().enumerate();
        figures.by_queue = queues.map(|(queue, group)| group.figures(queue.to_string())).collect();
        let devices = self.devices.into_iter();
        figures.devices = devices
            .map(|(device, counted)| {
                let name = about.names_device(device).then(|| about.device_name(device));
                let layer = self.layers.figures(device, |device| about.device_name(device));
                DeviceFigures { layer, ..counted.figures(device, name, elapsed_ns) }
            })
            .collect();
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_begins_with_what_happened_and_not_with_a_loss() {
        let mut study = Study::default();
        let read = |at_ns| TraceEvent { op: Op::Read, sectors: 8, ..TraceEvent::new(at_ns, Step::Arrival) };
        for event in [TraceEvent::lost(0, u64::MAX, 0, 1), read(5_000), read(7_000)] {
            study.add(&event, |_| {});
        }
        let figures = study.finish(&TraceInfo::of("test"));
        assert_eq!((figures.began_ns, figures.elapsed_ns), (5_000, 2_000));
        assert_eq!(figures.losses, 1);
    }
}
