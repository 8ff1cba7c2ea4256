//! What is counted and timed of the bios and requests of one device.

use super::event::{BlockEvent, Kind, Op};
use super::levels::Levels;
use super::report::{Activities, Activity, DeviceReport, Series};
use super::timing::Timing;
use super::under_way::Origin;

#[derive(Clone, Debug)]
pub(super) struct Measures {
    events: [u64; KINDS.len()],
    unmatched: u64,
    flushed: u64,
    /// Of each direction; of `total` the seeks alone, which are between requests of both.
    activities: Activities,
    /// Where the last issued request ended: of reads and writes together, and of each direction.
    heads: [Option<u64>; 4],
    queued_by_cpu: Vec<u64>,
    completed_by_cpu: Vec<u64>,
    levels: Levels,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merged {
    Back,
    Front,
    Request,
}

impl Measures {
    pub(super) fn new(started_ns: u64, interval_ns: u64) -> Measures {
        Measures {
            events: [0; KINDS.len()],
            unmatched: 0,
            flushed: 0,
            activities: Activities::default(),
            heads: [None; 4],
            queued_by_cpu: Vec::new(),
            completed_by_cpu: Vec::new(),
            levels: Levels::new(started_ns, interval_ns),
        }
    }

    pub(super) fn count(&mut self, event: &BlockEvent) {
        self.events[kind_index(event.kind)] += 1;
    }

    pub(super) fn has_events(&self) -> bool {
        self.events.iter().any(|&count| count > 0)
    }

    pub(super) fn unmatched(&mut self) {
        self.unmatched += 1;
    }

    /// The flush after a write's data completed.
    pub(super) fn flushed(&mut self) {
        self.flushed += 1;
    }

    pub(super) fn queued(&mut self, event: &BlockEvent) {
        self.own(event).bios_queued += 1;
        count_on(&mut self.queued_by_cpu, event.cpu);
        self.arrived(event.at_ns);
    }

    pub(super) fn merged(&mut self, event: &BlockEvent, merged: Merged) {
        let activity = self.own(event);
        match merged {
            Merged::Back => activity.back_merges += 1,
            Merged::Front => activity.front_merges += 1,
            Merged::Request => activity.request_merges += 1,
        }
        self.levels.merged(event.at_ns);
    }

    /// A bio, or a request of bios that were not seen, waits.
    pub(super) fn arrived(&mut self, now_ns: u64) {
        self.levels.change(now_ns, 0, 1);
    }

    /// A bio or a request is no more: merged into another, complete, or given up.
    pub(super) fn left(&mut self, now_ns: u64, issued: bool) {
        match issued {
            true => self.levels.change(now_ns, -1, 0),
            false => self.levels.change(now_ns, 0, -1),
        }
    }

    pub(super) fn issued(
        &mut self,
        event: &BlockEvent,
        first_try: bool,
        bios: impl Iterator<Item = Origin>,
    ) {
        self.levels.change(event.at_ns, 1, -1);
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
        let activity = self.own(event);
        activity.requests_issued += 1;
        activity.queue_local += local;
        activity.queue_remote += remote;
        if event.sectors > 0 {
            activity
                .request_bytes
                .record(event.sectors.saturating_mul(SECTOR_BYTES));
            self.sought(event);
        }
    }

    pub(super) fn requeued(&mut self, event: &BlockEvent) {
        self.levels.change(event.at_ns, -1, 1);
        self.own(event).requeues += 1;
    }

    pub(super) fn completed_in_part(&mut self, event: &BlockEvent) {
        let bytes = event.sectors.saturating_mul(SECTOR_BYTES);
        self.own(event).bytes_completed += bytes;
        self.levels.transferred(event.at_ns, bytes);
    }

    pub(super) fn completed(
        &mut self,
        event: &BlockEvent,
        first: Option<Origin>,
        bios: impl Iterator<Item = Origin>,
        timing: &Timing,
    ) {
        let now_ns = event.at_ns;
        self.left(now_ns, timing.is_issued());
        self.ended(event);
        let in_queue_ns = first
            .zip(timing.left_queue_at_ns())
            .map(|(first, at_ns)| at_ns.saturating_sub(first.queued_at_ns));
        let activity = self.own(event);
        if let Some(first) = first {
            activity.completed_at(first.cpu == event.cpu);
        }
        if let Some(in_queue_ns) = in_queue_ns {
            activity.time_in_queue_ns.record(in_queue_ns);
        }
        if let Some(in_scheduler_ns) = timing.in_scheduler_ns() {
            activity.time_in_scheduler_ns.record(in_scheduler_ns);
        }
        if let Some(in_device_ns) = timing.in_device_ns(now_ns) {
            activity.time_in_device_ns.record(in_device_ns);
        }
        for bio in bios {
            activity
                .time_total_ns
                .record(now_ns.saturating_sub(bio.queued_at_ns));
        }
    }

    /// Of a device without requests.
    pub(super) fn bio_completed(&mut self, event: &BlockEvent, origin: Origin) {
        self.ended(event);
        let activity = self.own(event);
        activity.completed_at(origin.cpu == event.cpu);
        activity
            .time_total_ns
            .record(event.at_ns.saturating_sub(origin.queued_at_ns));
    }

    /// `conservation` and the device's name are the caller's.
    pub(super) fn finish(mut self, ended_ns: u64) -> (DeviceReport, Series) {
        let (queue_depth_mean, queue_depth_max) = self.levels.depth(ended_ns);
        let kinds = KINDS.iter().zip(self.events);
        let report = DeviceReport {
            events: kinds.map(|(&name, count)| (name, count)).collect(),
            events_unmatched: self.unmatched,
            writes_flushed: self.flushed,
            queue_depth_mean,
            queue_depth_max,
            activities: self.activities(),
            queued_by_cpu: self.queued_by_cpu,
            completed_by_cpu: self.completed_by_cpu,
            ..DeviceReport::default()
        };
        (report, self.levels.series(ended_ns))
    }

    fn ended(&mut self, event: &BlockEvent) {
        let bytes = event.sectors.saturating_mul(SECTOR_BYTES);
        let activity = self.own(event);
        activity.requests_completed += 1;
        activity.bytes_completed += bytes;
        activity.errors += u64::from(event.error != 0);
        count_on(&mut self.completed_by_cpu, event.cpu);
        self.levels.completed(event.at_ns, bytes);
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

    /// Of the event's direction.
    fn own(&mut self, event: &BlockEvent) -> &mut Activity {
        activity(&mut self.activities, direction(event.op, event.sectors))
    }

    /// Added up at the end: at each event it would cost as much as the directions do.
    fn activities(&mut self) -> Activities {
        let mut found = std::mem::take(&mut self.activities);
        let either = std::mem::take(&mut found.total);
        for part in [&found.read, &found.write, &found.other] {
            found.total.merge(part);
        }
        found.total.seek_sectors = either.seek_sectors;
        found.total.requests_sequential = either.requests_sequential;
        found
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
