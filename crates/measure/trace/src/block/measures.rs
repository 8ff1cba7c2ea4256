//! What is counted and timed of the bios and requests of one device.

use super::levels::Levels;
use super::report::{Activities, Activity, DeviceReport, Series};
use crate::distribution::Distribution;
use crate::event::{Op, Step, TraceEvent};
use crate::request::{Change, Io, JoinedBio, State};
use base::SECTOR_BYTES;

#[derive(Clone, Debug)]
pub(super) struct Measures {
    events: [u64; KINDS.len()],
    unmatched: u64,
    flushed: u64,
    times_unknown: u64,
    /// The activities of each direction; `total` has the seeks alone, which are between requests of both.
    activities: Activities,
    /// Where the last issued request ended: of reads and writes together, and of each direction.
    heads: [Option<u64>; 4],
    queued_by_cpu: Vec<u64>,
    completed_by_cpu: Vec<u64>,
    levels: Levels,
}

impl Measures {
    pub(super) fn new(started_ns: u64, interval_ns: u64) -> Measures {
        Measures {
            events: [0; KINDS.len()],
            unmatched: 0,
            flushed: 0,
            times_unknown: 0,
            activities: Activities::default(),
            heads: [None; 4],
            queued_by_cpu: Vec::new(),
            completed_by_cpu: Vec::new(),
            levels: Levels::new(started_ns, interval_ns),
        }
    }

    /// Where an event is counted; None for an event about no bio and no request.
    #[inline]
    pub(super) fn kind(step: Step) -> Option<usize> {
        KINDS.iter().position(|kind| *kind == step)
    }

    pub(super) fn count(&mut self, kind: usize) {
        self.events[kind] += 1;
    }

    pub(super) fn has_events(&self) -> bool {
        self.events.iter().any(|&count| count > 0)
    }

    #[inline]
    pub(super) fn change(&mut self, event: &TraceEvent, change: &Change<'_>) {
        let now_ns = event.at_ns;
        match *change {
            Change::Queued => {
                self.own(event).bios_queued += 1;
                count_on(&mut self.queued_by_cpu, event.cpu);
                self.levels.change(now_ns, 0, 1);
            }
            Change::Split | Change::Unqueued => self.levels.change(now_ns, 0, 1),
            Change::Merged { seen } => self.merged(event, seen),
            Change::Issued { io, joined } => self.issued(event, io, joined),
            Change::Requeued => {
                self.levels.change(now_ns, -1, 1);
                self.own(event).requeues += 1;
            }
            Change::Part => {
                let bytes = u64::from(event.sectors) * SECTOR_BYTES;
                self.own(event).bytes_completed += bytes;
                self.levels.transferred(now_ns, bytes);
            }
            Change::Ended { io, joined, from } => {
                self.left(now_ns, from);
                self.ended(event, io, joined, from);
            }
            Change::GivenUp { from } => self.left(now_ns, from),
            Change::Flushed => self.flushed += 1,
            Change::Unmatched => self.unmatched += 1,
        }
    }

    fn merged(&mut self, event: &TraceEvent, seen: bool) {
        if seen {
            self.left(event.at_ns, State::Waiting);
        }
        let activity = self.own(event);
        match event.step {
            Step::BackMerge => activity.back_merges += 1,
            Step::FrontMerge => activity.front_merges += 1,
            Step::RequestMerge => activity.request_merges += 1,
            // That a bio is part of a request shows when the request is issued.
            _ => return,
        }
        self.levels.merged(event.at_ns);
    }

    /// A bio or a request is no more: merged into another, complete, or given up.
    fn left(&mut self, now_ns: u64, from: State) {
        match from {
            State::Issued => self.levels.change(now_ns, -1, 0),
            State::Bio | State::Waiting => self.levels.change(now_ns, 0, -1),
        }
    }

    fn issued(&mut self, event: &TraceEvent, io: &Io, joined: &[JoinedBio]) {
        self.levels.change(event.at_ns, 1, -1);
        if io.requeues > 0 {
            return;
        }
        let (mut local, mut remote) = (0, 0);
        for cpu in cpus(io, joined) {
            match cpu == event.cpu {
                true => local += 1,
                false => remote += 1,
            }
        }
        let activity = self.own(event);
        activity.requests_issued += 1;
        activity.queue_local += local;
        activity.queue_remote += remote;
        if event.sectors > 0 {
            activity.request_bytes.record(u64::from(event.sectors) * SECTOR_BYTES);
            self.sought(event);
        }
    }

    fn ended(&mut self, event: &TraceEvent, io: &Io, joined: &[JoinedBio], from: State) {
        let now_ns = event.at_ns;
        let bytes = u64::from(event.sectors) * SECTOR_BYTES;
        count_on(&mut self.completed_by_cpu, event.cpu);
        self.levels.completed(now_ns, bytes);
        self.times_unknown += u64::from(from == State::Issued && io.issued_ns.is_none());
        let activity = self.own(event);
        activity.requests_completed += 1;
        activity.bytes_completed += bytes;
        activity.errors += u64::from(event.error != 0);
        if io.queued_ns.is_some() {
            activity.completed_at(io.cpu == event.cpu);
        }
        let [queue_ns, scheduler_ns, device_ns, whole_ns] = io.stages();
        let of_joined = joined.iter().filter_map(|bio| bio.queued_ns);
        let of_joined = of_joined.map(|queued_ns| now_ns.saturating_sub(queued_ns));
        record(&mut activity.time_in_queue_ns, queue_ns);
        record(&mut activity.time_in_scheduler_ns, scheduler_ns);
        record(&mut activity.time_in_device_ns, device_ns);
        record(&mut activity.time_total_ns, whole_ns.into_iter().chain(of_joined));
    }

    /// `conservation` and the device's name are the caller's.
    pub(super) fn finish(mut self, ended_ns: u64) -> (DeviceReport, Series) {
        let (queue_depth_mean, queue_depth_max) = self.levels.depth(ended_ns);
        let kinds = KINDS.iter().map(|kind| kind.name()).zip(self.events);
        let report = DeviceReport {
            events: kinds.collect(),
            events_unmatched: self.unmatched,
            writes_flushed: self.flushed,
            times_unknown: self.times_unknown,
            queue_depth_mean,
            queue_depth_max,
            activities: self.activities(),
            queued_by_cpu: self.queued_by_cpu,
            completed_by_cpu: self.completed_by_cpu,
            ..DeviceReport::default()
        };
        (report, self.levels.series(ended_ns))
    }

    /// The distance from the request that was issued before, of either direction and of this one's.
    fn sought(&mut self, event: &TraceEvent) {
        let end = event.sector.saturating_add(u64::from(event.sectors));
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

    /// The activity of the event's direction.
    fn own(&mut self, event: &TraceEvent) -> &mut Activity {
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

fn record(times: &mut Distribution, found: impl IntoIterator<Item = u64>) {
    found.into_iter().for_each(|time_ns| times.record(time_ns));
}

/// Where the bios of a request were queued, as far as is known.
fn cpus(io: &Io, joined: &[JoinedBio]) -> impl Iterator<Item = u16> {
    let first = io.queued_ns.map(|_| io.cpu);
    let others = joined.iter().filter(|bio| bio.queued_ns.is_some());
    first.into_iter().chain(others.map(|bio| bio.cpu))
}

fn count_on(counts: &mut Vec<u64>, cpu: u16) {
    let cpu = usize::from(cpu);
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
fn direction(op: Op, sectors: u32) -> usize {
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

/// The most frequent ones first.
const KINDS: [Step; 11] = [
    Step::Queue,
    Step::Issue,
    Step::Complete,
    Step::Insert,
    Step::BackMerge,
    Step::FrontMerge,
    Step::GetRequest,
    Step::RequestMerge,
    Step::Requeue,
    Step::Split,
    Step::BioComplete,
];
