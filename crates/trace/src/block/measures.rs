//! What is counted and timed of the bios and requests of one device.

use super::device::Origin;
use super::event::{BlockEvent, Kind, Op};
use super::report::{Activities, Activity, Columns, DeviceReport, Series};
use crate::intervals::{Absorb, Intervals};

#[derive(Clone, Debug)]
pub(super) struct Measures {
    events: [u64; KINDS.len()],
    unmatched: u64,
    activities: Activities,
    /// Where the last issued request ended: of reads and writes together, and of each direction.
    heads: [Option<u64>; 4],
    queued_by_cpu: Vec<u64>,
    completed_by_cpu: Vec<u64>,
    series: Intervals<Interval>,
    /// Requests that the driver has, and that wait to be issued, since `level_since_ns`.
    in_device: u64,
    waiting: u64,
    level_since_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merged {
    Back,
    Front,
    Request,
}

/// When a request was where.
#[derive(Clone, Debug, Default)]
pub(super) struct Timing {
    inserted_at_ns: Option<u64>,
    first_issued_at_ns: Option<u64>,
    /// With the driver now, since then.
    issued_at_ns: Option<u64>,
    /// Given back by the driver, since then.
    requeued_at_ns: Option<u64>,
    in_scheduler_ns: u64,
    in_device_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Interval {
    /// Requests times nanoseconds.
    depth_ns: u128,
    depth_max: u64,
    waiting_ns: u128,
    completed: u64,
    bytes: u64,
    merges: u64,
}

impl Timing {
    pub(super) fn is_issued(&self) -> bool {
        self.issued_at_ns.is_some()
    }

    pub(super) fn inserted(&mut self, now_ns: u64) {
        self.inserted_at_ns.get_or_insert(now_ns);
    }

    /// Whether for the first time.
    pub(super) fn issued(&mut self, now_ns: u64) -> bool {
        let waited_since_ns = self.requeued_at_ns.take().or(self.inserted_at_ns);
        if let Some(since_ns) = waited_since_ns {
            self.in_scheduler_ns += now_ns.saturating_sub(since_ns);
        }
        self.issued_at_ns = Some(now_ns);
        let first_try = self.first_issued_at_ns.is_none();
        self.first_issued_at_ns.get_or_insert(now_ns);
        first_try
    }

    pub(super) fn requeued(&mut self, now_ns: u64) {
        self.in_device_ns += self
            .issued_at_ns
            .take()
            .map_or(0, |at_ns| now_ns.saturating_sub(at_ns));
        self.requeued_at_ns = Some(now_ns);
    }
}

impl Measures {
    pub(super) fn new(started_ns: u64, interval_ns: u64) -> Measures {
        Measures {
            events: [0; KINDS.len()],
            unmatched: 0,
            activities: Activities::default(),
            heads: [None; 4],
            queued_by_cpu: Vec::new(),
            completed_by_cpu: Vec::new(),
            series: Intervals::new(started_ns, interval_ns),
            in_device: 0,
            waiting: 0,
            level_since_ns: started_ns,
        }
    }

    pub(super) fn count(&mut self, event: &BlockEvent) {
        self.events[kind_index(event.kind)] += 1;
    }

    pub(super) fn unmatched(&mut self) {
        self.unmatched += 1;
    }

    pub(super) fn queued(&mut self, event: &BlockEvent) {
        self.both(event, |activity| activity.bios_queued += 1);
        count_on(&mut self.queued_by_cpu, event.cpu);
    }

    pub(super) fn merged(&mut self, event: &BlockEvent, merged: Merged) {
        self.both(event, |activity| match merged {
            Merged::Back => activity.back_merges += 1,
            Merged::Front => activity.front_merges += 1,
            Merged::Request => activity.request_merges += 1,
        });
        self.series.at(event.at_ns).merges += 1;
    }

    /// A request was made; it waits.
    pub(super) fn arrived(&mut self, now_ns: u64) {
        self.level(now_ns, 0, 1);
    }

    /// A request is no more: merged into another, or given up.
    pub(super) fn left(&mut self, now_ns: u64, issued: bool) {
        match issued {
            true => self.level(now_ns, -1, 0),
            false => self.level(now_ns, 0, -1),
        }
    }

    pub(super) fn issued(
        &mut self,
        event: &BlockEvent,
        first_try: bool,
        bios: impl Iterator<Item = Origin>,
    ) {
        self.level(event.at_ns, 1, -1);
        if !first_try {
            return;
        }
        let (mut local, mut remote) = (0, 0);
        for bio in bios {
            match bio.cpu == event.cpu {
                true => local += 1,
                false => remote += 1,
            }
        }
        self.both(event, |activity| {
            activity.requests_issued += 1;
            activity.queue_local += local;
            activity.queue_remote += remote;
            if event.sectors > 0 {
                activity
                    .request_bytes
                    .record(event.sectors.saturating_mul(SECTOR_BYTES));
            }
        });
        if event.sectors > 0 {
            self.sought(event);
        }
    }

    pub(super) fn requeued(&mut self, event: &BlockEvent) {
        self.level(event.at_ns, -1, 1);
        self.both(event, |activity| activity.requeues += 1);
    }

    pub(super) fn completed_in_part(&mut self, event: &BlockEvent) {
        let bytes = event.sectors.saturating_mul(SECTOR_BYTES);
        self.both(event, |activity| activity.bytes_completed += bytes);
        self.series.at(event.at_ns).bytes += bytes;
    }

    pub(super) fn completed(
        &mut self,
        event: &BlockEvent,
        first: Option<Origin>,
        bios: impl Iterator<Item = Origin> + Clone,
        timing: &Timing,
    ) {
        let now_ns = event.at_ns;
        self.left(now_ns, timing.is_issued());
        self.ended(event);
        let left_queue_ns = timing.inserted_at_ns.or(timing.first_issued_at_ns);
        let in_queue_ns = first
            .zip(left_queue_ns)
            .map(|(first, at_ns)| at_ns.saturating_sub(first.queued_at_ns));
        let scheduled = timing.inserted_at_ns.is_some() && timing.first_issued_at_ns.is_some();
        let in_device_ns = timing
            .issued_at_ns
            .map(|at_ns| timing.in_device_ns + now_ns.saturating_sub(at_ns));
        self.both(event, |activity| {
            if let Some(first) = first {
                activity.completed_at(first.cpu == event.cpu);
            }
            if let Some(in_queue_ns) = in_queue_ns {
                activity.time_in_queue_ns.record(in_queue_ns);
            }
            if scheduled {
                activity.time_in_scheduler_ns.record(timing.in_scheduler_ns);
            }
            if let Some(in_device_ns) = in_device_ns {
                activity.time_in_device_ns.record(in_device_ns);
            }
            for bio in bios.clone() {
                activity
                    .time_total_ns
                    .record(now_ns.saturating_sub(bio.queued_at_ns));
            }
        });
    }

    /// Of a device without requests.
    pub(super) fn bio_completed(&mut self, event: &BlockEvent, origin: Origin) {
        self.ended(event);
        self.both(event, |activity| {
            activity.completed_at(origin.cpu == event.cpu);
            activity
                .time_total_ns
                .record(event.at_ns.saturating_sub(origin.queued_at_ns));
        });
    }

    /// `conservation` and the device's name are the caller's.
    pub(super) fn finish(mut self, started_ns: u64, ended_ns: u64) -> (DeviceReport, Series) {
        self.level(ended_ns, 0, 0);
        let elapsed_ns = ended_ns.saturating_sub(started_ns);
        let items = self.series.items();
        let depth_ns: u128 = items.iter().map(|item| item.depth_ns).sum();
        let kinds = KINDS.iter().zip(self.events);
        let series = self.series(elapsed_ns);
        let report = DeviceReport {
            events: kinds.map(|(&name, count)| (name, count)).collect(),
            events_unmatched: self.unmatched,
            queue_depth_mean: if elapsed_ns > 0 {
                depth_ns as f64 / elapsed_ns as f64
            } else {
                0.0
            },
            queue_depth_max: items.iter().map(|item| item.depth_max).max().unwrap_or(0),
            activities: self.activities,
            queued_by_cpu: self.queued_by_cpu,
            completed_by_cpu: self.completed_by_cpu,
            ..DeviceReport::default()
        };
        (report, series)
    }

    fn ended(&mut self, event: &BlockEvent) {
        let bytes = event.sectors.saturating_mul(SECTOR_BYTES);
        self.both(event, |activity| {
            activity.requests_completed += 1;
            activity.bytes_completed += bytes;
            activity.errors += u64::from(event.error != 0);
        });
        count_on(&mut self.completed_by_cpu, event.cpu);
        let interval = self.series.at(event.at_ns);
        interval.completed += 1;
        interval.bytes += bytes;
    }

    /// The distance from the request that was issued before, of either direction and of this one's.
    fn sought(&mut self, event: &BlockEvent) {
        let end = event.sector.saturating_add(event.sectors);
        let direction = direction(event.op, event.sectors);
        let either = matches!(event.op, Op::Read | Op::Write).then_some(EITHER);
        for index in either.into_iter().chain([direction]) {
            let activity = activity(&mut self.activities, index);
            if let Some(head) = self.heads[index].replace(end) {
                activity.seek_sectors.record(head.abs_diff(event.sector));
                activity.requests_sequential += u64::from(head == event.sector);
            }
        }
    }

    fn both(&mut self, event: &BlockEvent, change: impl Fn(&mut Activity)) {
        change(activity(&mut self.activities, EITHER));
        change(activity(
            &mut self.activities,
            direction(event.op, event.sectors),
        ));
    }

    fn level(&mut self, now_ns: u64, in_device: i64, waiting: i64) {
        let (depth, waited) = (self.in_device, self.waiting);
        self.series
            .spread(self.level_since_ns, now_ns, |interval, length_ns| {
                interval.depth_ns += u128::from(depth) * u128::from(length_ns);
                interval.waiting_ns += u128::from(waited) * u128::from(length_ns);
                interval.depth_max = interval.depth_max.max(depth);
            });
        self.level_since_ns = self.level_since_ns.max(now_ns);
        self.in_device = self.in_device.saturating_add_signed(in_device);
        self.waiting = self.waiting.saturating_add_signed(waiting);
    }

    fn series(&self, elapsed_ns: u64) -> Series {
        let (at_ns, width_ns) = (self.series.starts_ns(), self.series.width_ns());
        let lengths_ns = at_ns
            .iter()
            .map(|start_ns| elapsed_ns.saturating_sub(*start_ns).clamp(1, width_ns));
        let lengths_ns: Vec<f64> = lengths_ns.map(|length_ns| length_ns as f64).collect();
        let items = || self.series.items().iter().zip(&lengths_ns);
        let mean = |total: fn(&Interval) -> f64| {
            items()
                .map(|(item, length_ns)| total(item) / length_ns)
                .collect()
        };
        let rate = |count: fn(&Interval) -> u64| {
            items()
                .map(|(item, length_ns)| count(item) as f64 * NS_PER_S / length_ns)
                .collect()
        };
        Series {
            columns: Columns {
                length_s: lengths_ns
                    .iter()
                    .map(|length_ns| length_ns / NS_PER_S)
                    .collect(),
                queue_depth: mean(|item| item.depth_ns as f64),
                queue_depth_max: items().map(|(item, _)| item.depth_max).collect(),
                requests_waiting: mean(|item| item.waiting_ns as f64),
                requests_completed_per_s: rate(|item| item.completed),
                bytes_completed_per_s: rate(|item| item.bytes),
                merges_per_s: rate(|item| item.merges),
            },
            at_ns,
        }
    }
}

fn count_on(counts: &mut Vec<u64>, cpu: u32) {
    let cpu = cpu as usize;
    if counts.len() <= cpu {
        counts.resize(cpu + 1, 0);
    }
    counts[cpu] += 1;
}

impl Activity {
    fn completed_at(&mut self, local: bool) {
        match local {
            true => self.completions_local += 1,
            false => self.completions_remote += 1,
        }
    }
}

impl Absorb for Interval {
    fn absorb(&mut self, later: Interval) {
        self.depth_ns += later.depth_ns;
        self.depth_max = self.depth_max.max(later.depth_max);
        self.waiting_ns += later.waiting_ns;
        self.completed += later.completed;
        self.bytes += later.bytes;
        self.merges += later.merges;
    }
}

const EITHER: usize = 0;

/// A write without data is a flush.
fn direction(op: Op, sectors: u64) -> usize {
    match op {
        Op::Read => 1,
        Op::Write if sectors > 0 => 2,
        _ => 3,
    }
}

fn activity(activities: &mut Activities, index: usize) -> &mut Activity {
    match index {
        EITHER => &mut activities.total,
        1 => &mut activities.read,
        2 => &mut activities.write,
        _ => &mut activities.other,
    }
}

const KINDS: [&str; 11] = [
    "queue",
    "split",
    "back_merge",
    "front_merge",
    "get_request",
    "request_merge",
    "insert",
    "issue",
    "requeue",
    "complete",
    "bio_complete",
];

fn kind_index(kind: Kind) -> usize {
    match kind {
        Kind::Queue => 0,
        Kind::Split { .. } => 1,
        Kind::BackMerge => 2,
        Kind::FrontMerge => 3,
        Kind::GetRequest => 4,
        Kind::RequestMerge => 5,
        Kind::Insert => 6,
        Kind::Issue => 7,
        Kind::Requeue => 8,
        Kind::Complete => 9,
        Kind::BioComplete => 10,
    }
}

const SECTOR_BYTES: u64 = 512;
const NS_PER_S: f64 = 1e9;
