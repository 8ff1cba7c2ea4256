//! The one pass.

use std::collections::BTreeMap;

use super::bursts::Bursts;
use super::device::DeviceStudy;
use super::figures::TraceFigures;
use super::group::Group;
use super::maps::{INTERVALS, Maps};
use super::reuse::Reuse;
use super::told::{LARGEST, OTHERS, SMALLEST, absent, by_process, shown_names, size_name};
use super::worst::Worst;
use crate::event::{Device, Op, STEP_NAMES, STEPS, Step, TraceEvent};
use crate::input::About;
use crate::request::{Change, Follow, Io};

/// Takes all events of a trace in the order of time.
#[derive(Clone, Debug)]
pub struct Study {
    follow: Follow,
    began_ns: Option<u64>,
    reached_ns: u64,
    events: [u64; STEPS],
    events_lost: u64,
    all: Group,
    by_op: [Group; OPS.len()],
    by_size: BTreeMap<u32, Group>,
    by_pid: BTreeMap<u32, Group>,
    by_cpu: BTreeMap<u16, Group>,
    devices: Vec<(Device, DeviceStudy)>,
    latest: Option<(Device, usize)>,
    bursts: Bursts,
    reuse: Reuse,
    worst: Worst,
    maps: Maps,
    /// Of each CPU, its hardware queue.
    queue_of: BTreeMap<u16, usize>,
    by_queue: Vec<Group>,
}

const OPS: [(Op, &str); 5] = [
    (Op::Read, "read"),
    (Op::Write, "write"),
    (Op::Discard, "discard"),
    (Op::Flush, "flush"),
    (Op::Other, "other"),
];
/// A group holds histograms: more tasks or CPUs than these are counted together.
const PIDS_MAX: usize = 200;
const CPUS_MAX: usize = 64;
const DEVICES_MAX: usize = 256;

impl Default for Study {
    fn default() -> Study {
        Study {
            follow: Follow::default(),
            began_ns: None,
            reached_ns: 0,
            events: [0; STEPS],
            events_lost: 0,
            all: Group::default(),
            by_op: Default::default(),
            by_size: BTreeMap::new(),
            by_pid: BTreeMap::new(),
            by_cpu: BTreeMap::new(),
            devices: Vec::new(),
            latest: None,
            bursts: Bursts::new(),
            reuse: Reuse::new(),
            worst: Worst::default(),
            maps: Maps::new(INTERVALS),
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

    /// Maps over time with at most so many intervals, instead of `INTERVALS`.
    pub fn intervals(&mut self, intervals: usize) {
        self.maps = Maps::new(intervals);
    }

    /// The CPUs of each hardware queue, which no trace tells: requests are counted by queue too.
    pub fn queues(&mut self, queues: &[Vec<u16>]) {
        self.by_queue = vec![Group::default(); queues.len()];
        let of_cpus = queues.iter().enumerate();
        self.queue_of = of_cpus
            .flat_map(|(queue, cpus)| cpus.iter().map(move |&cpu| (cpu, queue)))
            .collect();
    }

    /// Takes in the next event; `each` gets the request that it ends.
    #[inline]
    pub fn add(&mut self, event: &TraceEvent, mut each: impl FnMut(&Io)) {
        let began_ns = *self.began_ns.get_or_insert(event.at_ns);
        self.reached_ns = self.reached_ns.max(event.at_ns);
        self.events[event.step as usize] += 1;
        if event.step == Step::Lost {
            self.events_lost += u64::from(event.sectors);
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
        let Some((device, depth)) = self.follow.latest() else {
            return;
        };
        let at = self.device(device);
        let counted = &mut self.devices[at].1;
        counted.event(event);
        let known = !self.follow.in_doubt(event.at_ns);
        if matches!(event.step, Step::Issue | Step::Requeue | Step::Complete)
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
            self.maps
                .arrived(arrived_ns, event.op, pid, event.sector, event.sectors);
            self.bursts.add(arrived_ns);
            if event.op != Op::Discard {
                self.reuse
                    .add(event.device.0, event.sector, u64::from(event.sectors));
            }
        }
        if let Some(io) = ended {
            self.ended(at, &io, began_ns);
            each(&io);
        }
    }

    /// The disk of the event that came last, and how many requests its driver has.
    pub fn depth(&self) -> Option<(Device, u64)> {
        self.follow.latest()
    }

    fn ended(&mut self, device: usize, io: &Io, began_ns: u64) {
        self.all.add(io);
        let op = OPS
            .iter()
            .position(|(op, _)| *op == io.op)
            .unwrap_or(OPS.len() - 1);
        self.by_op[op].add(io);
        if io.sectors > 0 {
            let class = io.sectors.clamp(SMALLEST, LARGEST).next_power_of_two();
            self.by_size.entry(class).or_default().add(io);
        }
        let pids = self.by_pid.len();
        let known = self.by_pid.contains_key(&io.pid) || pids < PIDS_MAX;
        self.by_pid
            .entry(if known { io.pid } else { OTHERS })
            .or_default()
            .add(io);
        let known = self.by_cpu.contains_key(&io.cpu) || self.by_cpu.len() < CPUS_MAX;
        self.by_cpu
            .entry(if known { io.cpu } else { u16::MAX })
            .or_default()
            .add(io);
        if let Some(&queue) = self.queue_of.get(&io.cpu) {
            self.by_queue[queue].add(io);
        }
        self.devices[device].1.ended(io);
        self.worst.add(io, began_ns);
        let now_ns = io.completed_ns.unwrap_or(io.seen_ns);
        self.maps.completed(now_ns.saturating_sub(began_ns), io);
    }

    fn device(&mut self, device: Device) -> usize {
        if let Some((latest, at)) = self.latest
            && latest == device
        {
            return at;
        }
        let known = self.devices.iter().position(|(known, _)| *known == device);
        let at = known.unwrap_or_else(|| {
            if self.devices.len() < DEVICES_MAX {
                self.devices.push((device, DeviceStudy::default()));
            }
            self.devices.len() - 1
        });
        self.latest = Some((device, at));
        at
    }

    /// The trace ended.
    pub fn finish(mut self, about: &About) -> TraceFigures {
        self.follow.finish();
        let began_ns = self.began_ns.unwrap_or(0);
        let elapsed_ns = self.reached_ns.saturating_sub(began_ns);
        let unknown = self.follow.unknown;
        for (_, device) in &mut self.devices {
            device.depth(self.reached_ns, None);
        }
        self.maps.finish();
        self.devices.sort_by_key(|(device, _)| *device);
        let slowest = std::mem::take(&mut self.worst).finish();
        let absent = absent(&self.events);
        let names = shown_names(&self.by_pid, &slowest, &self.maps, about);
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
            all: self.all.figures("all".into()),
            by_process: by_process(&self.by_pid, about),
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
        let ops = OPS
            .iter()
            .zip(&self.by_op)
            .filter(|(_, group)| group.count() > 0);
        figures.by_operation = ops
            .map(|((_, name), group)| group.figures((*name).into()))
            .collect();
        let sizes = self.by_size.iter();
        figures.by_size = sizes
            .map(|(&class, group)| group.figures(size_name(class)))
            .collect();
        let cpus = self.by_cpu.iter();
        figures.by_cpu = cpus
            .map(|(cpu, group)| group.figures(cpu.to_string()))
            .collect();
        let queues = self.by_queue.iter().enumerate();
        figures.by_queue = queues
            .map(|(queue, group)| group.figures(queue.to_string()))
            .collect();
        let devices = self.devices.into_iter();
        figures.devices = devices
            .map(|(device, counted)| {
                let name = about.device_names.get(&device.0).cloned();
                counted.figures(device, name, elapsed_ns)
            })
            .collect();
        figures
    }
}
