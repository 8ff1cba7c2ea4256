//! One device's request queue: bios in, requests out. It merges, plugs and counts; the scheduler orders.
//!
//! Source: note on merging and plugging, section A (2.6.35 `elevator.c`, `blk-core.c`, `blk-merge.c`).

use std::collections::BTreeSet;

use crate::event::Tap;
use crate::hardware::{HardwareQueues, HardwareRules};
use crate::plug::{Plug, PlugRules};
use crate::pool::{Pool, PoolRules, Waking};
use crate::scheduler::hooks::Hooks;
use crate::scheduler::{OwnMerge, Scheduler};
use crate::wbt::{Wbt, WbtRules};
use crate::{
    Bio, Direction, EventKind, QueueEvent, Request, RequestId, Requests, Sector, Side, TaskId,
};
use events::slab::Slab;
use events::station::{Station, Violation};
use events::time::Time;

/// What a kernel and a device allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// The largest request that merging may make, in sectors of 512 bytes.
    pub request_sectors_max: u32,
    /// Segments of memory that a request may have.
    pub request_segments_max: u16,
    /// Which merges are tried.
    pub merges: Merges,
    /// How requests are shared out among tasks.
    pub pool: PoolRules,
    /// Whether the pool's classes are sync and async I/O; otherwise reads and writes, as until 2.6.
    pub pool_by_sync: bool,
    /// When the queue holds requests back to let them merge.
    pub plug: PlugRules,
}

/// The `nomerges` tunable: 0, 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merges {
    /// 0: with any queued request.
    All,
    /// Only with the request that was merged into or inserted last.
    LastOnly,
    /// 2: none.
    Never,
}

const PAGE_SECTORS: u32 = 8;

/// What became of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It joined that queued request at that end.
    Merged(RequestId, Side),
    /// A new request was made for it.
    Queued(RequestId),
    /// There is no request for it: its task sleeps until `completed` names it, and submits it again.
    MustWait,
}

/// What a queue has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bios taken in; one that had to wait counts when it is submitted again.
    pub bios: u64,
    /// Bios that joined a request at its end.
    pub merges_back: u64,
    /// Bios that joined a request at its start.
    pub merges_front: u64,
    /// Requests that became part of another.
    pub merges_of_requests: u64,
    /// Requests sent to the device.
    pub issued: u64,
    /// Requests that the device has completed.
    pub completed: u64,
}

/// The queue of one device: takes bios in, merges them into requests, and dispatches these by a scheduler's order.
pub struct RequestQueue {
    rules: QueueRules,
    scheduler: Box<dyn Scheduler>,
    requests: Requests,
    bios: Slab<Bio>,
    /// Queued requests that may still be merged into, by their ends.
    ends: BTreeSet<(Sector, RequestId)>,
    last_merge: Option<RequestId>,
    /// Two classes; of blk-mq one for each set of tags.
    pools: Vec<Pool>,
    plug: Plug,
    /// None: writeback is not throttled.
    wbt: Option<Wbt>,
    /// Who may try again, told by `take_woken`.
    woken: Vec<TaskId>,
    hardware: HardwareQueues,
    hooks: Hooks,
    in_flight: u32,
    counts: Counts,
    station: Station,
    tap: Tap,
}

impl RequestQueue {
    /// An empty queue with one hardware queue of no limit.
    pub fn new(rules: QueueRules, scheduler: Box<dyn Scheduler>) -> RequestQueue {
        RequestQueue {
            rules,
            scheduler,
            requests: Slab::new(),
            bios: Slab::new(),
            ends: BTreeSet::new(),
            last_merge: None,
            pools: vec![Pool::new(rules.pool); 2],
            plug: Plug::new(rules.plug),
            wbt: None,
            woken: Vec::new(),
            hardware: HardwareQueues::new(HardwareRules::SINGLE),
            hooks: Hooks::NONE,
            in_flight: 0,
            counts: Counts::default(),
            station: Station::default(),
            tap: Tap::default(),
        }
    }

    /// In front of hardware queues with tags, as blk-mq has them.
    pub fn with_hardware(mut self, rules: HardwareRules) -> RequestQueue {
        let sets = match rules.shared_tags {
            true => 1,
            false => usize::from(rules.map.queues()),
        };
        self.pools = vec![Pool::new(self.rules.pool); sets.max(2)];
        self.hardware = HardwareQueues::new(rules);
        self
    }

    /// With writeback throttled.
    pub fn with_wbt(mut self, rules: Option<WbtRules>) -> RequestQueue {
        self.wbt = rules.map(Wbt::new);
        self
    }

    /// The largest bio that becomes one request, in sectors: whole pages, each a segment of its own. Larger ones are never made
    /// (`bio_add_page` of 2.5 to 4.2) or are cut before they come in (`blk_queue_split` from 4.3 on).
    pub fn bio_sectors_max(&self) -> u32 {
        let of_segments = u32::from(self.rules.request_segments_max) * PAGE_SECTORS;
        let sectors = self.rules.request_sectors_max / PAGE_SECTORS * PAGE_SECTORS;
        of_segments.min(sectors).max(PAGE_SECTORS)
    }

    /// With what its scheduler costs.
    pub fn with_hooks(mut self, hooks: Hooks) -> RequestQueue {
        self.hooks = hooks;
        self
    }

    /// What its scheduler costs the CPUs.
    pub fn hooks(&self) -> Hooks {
        self.hooks
    }

    /// Hardware queues in front of the device.
    pub fn hardware_queues(&self) -> u16 {
        self.hardware.count()
    }

    /// From now on events are kept for `take_events`, which has to be called now and then, under that number for the
    /// drive; among them what the scheduler has to say.
    pub fn tap(&mut self, drive: u16) {
        self.tap.open(drive, self.plug.is_plugged());
        self.scheduler.keep_messages(true);
    }

    /// Nobody listens any more.
    pub fn untap(&mut self) {
        self.tap = Tap::default();
        self.scheduler.keep_messages(false);
    }

    /// Appends the events since the last time, in the order in which they happened.
    pub fn take_events(&mut self, into: &mut Vec<QueueEvent>) {
        self.tap.drain(into);
    }

    /// Takes a bio in, if there is a request for it.
    pub fn submit(&mut self, now: Time, bio: Bio) -> Submitted {
        self.emit_plug(now, false, None);
        if self.tap.is_on() {
            self.tap.came(now, &bio);
        }
        let submitted = self.take_in(now, bio);
        self.emit_messages();
        submitted
    }

    fn take_in(&mut self, now: Time, bio: Bio) -> Submitted {
        if let Some((request, side)) = self.find_merge(&bio) {
            self.station.enter(now);
            self.counts.bios += 1;
            self.merge(now, request, side, bio);
            return Submitted::Merged(request, side);
        }
        if !self.is_let_in(now, &bio) || !self.allocate(now, &bio) {
            if self.tap.is_on() {
                self.tap.must_wait(now, &bio);
            }
            self.plug.unplug();
            self.emit_plug(now, false, None);
            return Submitted::MustWait;
        }
        if let Some(wbt) = self.wbt.as_mut().filter(|_| bio.writeback) {
            wbt.took(now);
        }
        self.station.enter(now);
        self.counts.bios += 1;
        let request = self.add_request(now, bio);
        Submitted::Queued(request)
    }

    /// The next request for the device.
    pub fn dispatch(&mut self, now: Time) -> Option<RequestId> {
        self.emit_plug(now, false, None);
        if self.plug.is_plugged() {
            return None;
        }
        let held = self.hardware.take_held();
        let id = held.or_else(|| self.dispatch_from_scheduler(now));
        self.emit_messages();
        let id = id?;
        self.emit_request(now, EventKind::Issue, id);
        self.requests[id].issued_at = Some(now);
        if let Some(wbt) = &mut self.wbt {
            wbt.issued(now, id, &self.requests[id]);
        }
        self.in_flight += 1;
        self.counts.issued += 1;
        Some(id)
    }

    /// The device is done with the request: its bios, in ascending order, go into `done`. Returns who may try again to
    /// get a request.
    pub fn completed(&mut self, now: Time, id: RequestId, done: &mut Vec<Bio>) -> Option<TaskId> {
        self.completed_on(now, id, self.requests[id].cpu, done)
    }

    /// The same, told to have happened on that CPU.
    pub fn completed_on(
        &mut self,
        now: Time,
        id: RequestId,
        cpu: u16,
        done: &mut Vec<Bio>,
    ) -> Option<TaskId> {
        if self.tap.is_on() {
            self.tap.completed(now, &self.requests[id], cpu);
        }
        self.scheduler.completed(now, &self.requests, id);
        self.emit_messages();
        let request = self.requests.take(id);
        if let Some(wbt) = &mut self.wbt {
            wbt.completed(now, id, &request, &mut self.woken);
        }
        self.hardware.give_back(request.cpu);
        self.in_flight -= 1;
        self.counts.completed += 1;
        let mut next = request.bios.map(|(first, _)| first);
        while let Some(bio) = next {
            let bio = self.bios.take(bio);
            next = bio.next;
            self.station.leave(now, bio.submitted_at);
            done.push(bio);
        }
        let class = self.class_of(request.direction, request.sync, request.cpu);
        let next = self.pools[class].free(now);
        self.woken.extend(self.pools[class].forgotten());
        next
    }

    /// Appends who, beyond those whom `completed` returned, may try again to get a request.
    pub fn take_woken(&mut self, into: &mut Vec<TaskId>) {
        into.append(&mut self.woken);
    }

    /// A writer sleeps because too much is dirty.
    pub fn held_a_writer(&mut self, now: Time) {
        if let Some(wbt) = &mut self.wbt {
            wbt.held_a_writer(now);
        }
    }

    /// Whether it throttles writeback.
    pub fn throttles(&self) -> bool {
        self.wbt.is_some()
    }

    /// When the throttling of writeback wants `wake` to be called, whatever the device is doing.
    pub fn next_look(&self) -> Option<Time> {
        self.wbt.as_ref().and_then(Wbt::next_wakeup)
    }

    /// Somebody waits for what is queued.
    pub fn unplug(&mut self) {
        self.plug.unplug();
    }

    /// When `wake` has something to do; None: not before something else happens.
    pub fn next_wakeup(&self) -> Option<Time> {
        let times = [self.plug.next_wakeup(), self.scheduler.next_wakeup()];
        times.into_iter().flatten().min()
    }

    /// Lets the timers of the plug, of the throttling and of the scheduler act, if they have expired.
    pub fn wake(&mut self, now: Time) {
        if let Some(wbt) = &mut self.wbt
            && wbt.next_wakeup().is_some_and(|at| at <= now)
        {
            wbt.look(now, &mut self.woken);
        }
        self.emit_plug(now, false, None);
        self.plug.wake(now);
        self.emit_plug(now, true, None);
        if self.scheduler.next_wakeup().is_some_and(|at| at <= now) {
            self.scheduler.wake(now, &self.requests);
            self.emit_messages();
        }
    }

    /// Tells the scheduler that the task submits no more I/O.
    pub fn exited(&mut self, now: Time, task: TaskId) {
        self.scheduler.exited(now, task);
        self.emit_messages();
    }

    /// A request that is queued or at the device; any other panics.
    pub fn request(&self, id: RequestId) -> &Request {
        &self.requests[id]
    }

    /// Whether the pool of such I/O is congested, by the thresholds of the kernel.
    pub fn is_congested(&self, direction: Direction, sync: bool) -> bool {
        self.pools[self.class_of(direction, sync, 0)].is_congested()
    }

    /// The counts up to now.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Requests that the device has and has not completed.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Bios that have come in and not completed.
    pub fn outstanding(&self) -> u64 {
        self.station.inside()
    }

    /// Conservation and Little's law of the bios, at the end of a run.
    pub fn check(&self, name: &str, now: Time) -> Result<(), Violation> {
        let still = self.bios.iter().map(|(_, bio)| bio.submitted_at);
        self.station.check(name, now, still)
    }

    /// One for which its hardware queue has a tag; those for which it has none are held back, and no more are asked for
    /// when every queue that could take one holds one.
    fn dispatch_from_scheduler(&mut self, now: Time) -> Option<RequestId> {
        while self.hardware.may_ask() {
            let id = self.scheduler.dispatch(now, &self.requests)?;
            self.no_more_merges(id);
            if self.hardware.take_tag(self.requests[id].cpu, id) {
                return Some(id);
            }
        }
        None
    }

    /// Whether the throttling of writeback lets the bio have a request.
    fn is_let_in(&mut self, now: Time, bio: &Bio) -> bool {
        match &mut self.wbt {
            Some(wbt) if bio.writeback => wbt.allows(now, bio.task, bio.sync),
            _ => true,
        }
    }

    fn allocate(&mut self, now: Time, bio: &Bio) -> bool {
        let class = self.class_of(bio.direction, bio.sync, bio.cpu);
        let pool = &mut self.pools[class];
        if !self.scheduler.lets_queue(bio) {
            pool.wait(bio.task, bio.workers);
            return false;
        }
        let most = self.scheduler.tags_allowed(bio, pool.size());
        if pool.allocate_below(now, bio.task, most, bio.workers) {
            return true;
        }
        self.scheduler.may_exceed_pool(bio) && pool.allocate_beyond()
    }

    fn add_request(&mut self, now: Time, bio: Bio) -> RequestId {
        let head_is_there = self.rules.plug.head_stays && self.in_flight > 0;
        let was_empty = self.scheduler.queued() == 0 && !head_is_there;
        let bio_id = self.bios.put(bio);
        let request = Request::of(bio_id, &self.bios[bio_id]);
        let end = request.end();
        let id = self.requests.put(request);
        self.emit_request(now, EventKind::GetRequest, id);
        self.ends.insert((end, id));
        self.last_merge = Some(id);
        self.scheduler.add(now, &self.requests, id);
        let was_plugged = self.plug.is_plugged();
        self.plug
            .inserted(now, was_empty, self.scheduler.queued() as u32);
        if !was_plugged {
            self.emit_plug(now, false, Some(id));
        }
        self.emit_request(now, EventKind::Insert, id);
        self.emit_plug(now, false, None);
        id
    }

    /// The request that the bio can join, and at which end.
    fn find_merge(&mut self, bio: &Bio) -> Option<(RequestId, Side)> {
        if self.rules.merges == Merges::Never || self.scheduler.queued() == 0 {
            return None;
        }
        match self.scheduler.own_merge(&self.requests, bio) {
            OwnMerge::AskTheQueue => {}
            OwnMerge::Into(id, side) => return self.may_merge(id, bio).then_some((id, side)),
            OwnMerge::Nothing => return None,
        }
        if let Some(last) = self.last_merge {
            let request = &self.requests[last];
            let side = if request.end() == bio.start {
                Some(Side::Back)
            } else if bio.end() == request.start {
                Some(Side::Front)
            } else {
                None
            };
            if let Some(side) = side
                && self.may_merge(last, bio)
            {
                return Some((last, side));
            }
        }
        if self.rules.merges == Merges::LastOnly {
            return None;
        }
        let first = (bio.start, RequestId::FIRST);
        let ending_there = self.ends.range(first..).next().copied();
        if let Some((end, id)) = ending_there
            && end == bio.start
            && self.may_merge(id, bio)
        {
            return Some((id, Side::Back));
        }
        let id = self.scheduler.front_merge(&self.requests, bio)?;
        self.may_merge(id, bio).then_some((id, Side::Front))
    }

    /// Whether the bio may join the request; one that has become too large is not asked again.
    fn may_merge(&mut self, id: RequestId, bio: &Bio) -> bool {
        let request = &self.requests[id];
        if request.direction != bio.direction
            || request.no_merge
            || !self.scheduler.may_merge(&self.requests, id, bio)
        {
            return false;
        }
        let fits = request.sectors + bio.sectors <= self.rules.request_sectors_max
            && request.segments + bio.segments <= self.rules.request_segments_max;
        if !fits {
            self.no_more_merges(id);
            self.requests[id].no_merge = true;
        }
        fits
    }

    fn merge(&mut self, now: Time, id: RequestId, side: Side, bio: Bio) {
        let kind = match side {
            Side::Back => EventKind::BackMerge,
            Side::Front => EventKind::FrontMerge,
        };
        if self.tap.is_on() {
            self.tap.bio(now, kind, &bio);
        }
        let was = self.requests[id].start;
        self.ends.remove(&(self.requests[id].end(), id));
        let (start, sectors, segments) = (bio.start, bio.sectors, bio.segments);
        let read_ahead = bio.read_ahead;
        let bio = self.bios.put(bio);
        let request = &mut self.requests[id];
        request.sectors += sectors;
        request.read_ahead &= read_ahead;
        request.segments += segments;
        let (first, last) = request.bios.expect("a queue's requests have bios");
        match side {
            Side::Back => {
                request.bios = Some((first, bio));
                self.bios[last].next = Some(bio);
                self.counts.merges_back += 1;
            }
            Side::Front => {
                request.start = start;
                request.bios = Some((bio, last));
                self.bios[bio].next = Some(first);
                self.counts.merges_front += 1;
            }
        }
        self.ends.insert((self.requests[id].end(), id));
        self.last_merge = Some(id);
        self.scheduler
            .merged_bio(now, &self.requests, id, side, was);
        self.fuse(now, id, side);
    }

    /// After a request has enlarged it may touch its neighbour: then the two become one.
    fn fuse(&mut self, now: Time, enlarged: RequestId, side: Side) {
        let Some(neighbour) = self.scheduler.neighbour(&self.requests, enlarged, side) else {
            return;
        };
        let (survivor, merged) = match side {
            Side::Back => (enlarged, neighbour),
            Side::Front => (neighbour, enlarged),
        };
        if !self.may_fuse(survivor, merged) {
            return;
        }
        self.emit_request(now, EventKind::RequestMerge, merged);
        self.no_more_merges(merged);
        self.scheduler
            .merged_requests(now, &self.requests, survivor, merged);
        self.ends.remove(&(self.requests[survivor].end(), survivor));
        let gone = self.requests.take(merged);
        let request = &mut self.requests[survivor];
        request.sectors += gone.sectors;
        request.segments += gone.segments;
        request.queued_at = request.queued_at.min(gone.queued_at);
        let (first, last) = request.bios.expect("a queue's requests have bios");
        let (next, end) = gone.bios.expect("a queue's requests have bios");
        request.bios = Some((first, end));
        self.bios[last].next = Some(next);
        self.ends.insert((self.requests[survivor].end(), survivor));
        self.last_merge = Some(survivor);
        self.counts.merges_of_requests += 1;
        if let Some(wbt) = self.wbt.as_mut().filter(|_| gone.writeback) {
            wbt.merged();
        }
        let class = self.class_of(gone.direction, gone.sync, gone.cpu);
        // Who waits is woken by the next completion.
        self.pools[class].give_back();
    }

    fn may_fuse(&self, survivor: RequestId, merged: RequestId) -> bool {
        let (front, back) = (&self.requests[survivor], &self.requests[merged]);
        front.end() == back.start
            && front.direction == back.direction
            && front.sync == back.sync
            && !front.no_merge
            && !back.no_merge
            && front.sectors + back.sectors <= self.rules.request_sectors_max
            && front.segments + back.segments <= self.rules.request_segments_max
    }

    /// Whoever unplugs does not say when: it is told with the next step, which unplugging leads to at once. `by`: the
    /// request with which the queue was plugged.
    #[inline]
    fn emit_plug(&mut self, now: Time, by_timer: bool, by: Option<RequestId>) {
        if self.tap.is_on() {
            let requests = self.pools.iter().map(Pool::allocated).sum();
            let by = by.map(|id| &self.requests[id]);
            self.tap
                .plug(now, self.plug.is_plugged(), requests, by_timer, by);
        }
    }

    #[inline]
    fn emit_request(&mut self, now: Time, kind: EventKind, id: RequestId) {
        if self.tap.is_on() {
            self.tap.request(now, kind, &self.requests[id]);
        }
    }

    #[inline]
    fn emit_messages(&mut self) {
        if self.tap.is_on() {
            self.tap.drain_messages(self.scheduler.as_mut());
        }
    }

    /// The pool of such a request: the tags of blk-mq are for all I/O of the CPUs that share a hardware queue.
    #[inline]
    fn class_of(&self, direction: Direction, sync: bool, cpu: u16) -> usize {
        match self.rules.pool.waking {
            Waking::Tags => self.hardware.tag_set_of(cpu),
            _ if self.rules.pool_by_sync => usize::from(sync),
            _ => usize::from(direction == Direction::Read),
        }
    }

    fn no_more_merges(&mut self, id: RequestId) {
        self.ends.remove(&(self.requests[id].end(), id));
        if self.last_merge == Some(id) {
            self.last_merge = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueMap;
    use crate::scheduler::cfq_round_robin::CfqRoundRobin;
    use crate::scheduler::invariants;
    use crate::scheduler::invariants::bench::bio;
    use crate::scheduler::kyber::Kyber;
    use crate::scheduler::mq_deadline::MqDeadline;
    use crate::scheduler::none::NoScheduler;
    use crate::scheduler::noop::Noop;
    use Direction::{Read, Write};
    use proptest::prelude::*;

    fn queue(scheduler: Box<dyn Scheduler>, tags: u32, hardware: HardwareRules) -> RequestQueue {
        let rules = QueueRules {
            pool: PoolRules::tags(tags),
            ..invariants::rules()
        };
        RequestQueue::new(rules, scheduler).with_hardware(hardware)
    }

    fn two_queues(shared_tags: bool) -> HardwareRules {
        HardwareRules {
            map: QueueMap::modulo(4, 2),
            depth: 2,
            shared_tags,
        }
    }

    fn submit_on(queue: &mut RequestQueue, cpu: u16, start: Sector) {
        let bio = Bio {
            cpu,
            ..bio(0, Read, start)
        };
        assert_ne!(queue.submit(0, bio), Submitted::MustWait);
    }

    fn dispatched(queue: &mut RequestQueue) -> Vec<Sector> {
        let ids = std::iter::from_fn(|| queue.dispatch(0)).collect::<Vec<_>>();
        ids.iter().map(|&id| queue.request(id).start).collect()
    }

    #[test]
    fn a_driver_that_leaves_its_request_in_the_queue_keeps_it_from_being_plugged() {
        for stays in [false, true] {
            let mut queue = RequestQueue::new(
                QueueRules {
                    plug: PlugRules::EXPLICIT.with_head(stays),
                    ..invariants::rules()
                },
                Box::new(Noop::default()),
            );
            submit_on(&mut queue, 0, 100);
            assert_eq!(queue.dispatch(0), None, "plugged");
            queue.unplug();
            let first = queue.dispatch(0).unwrap();
            submit_on(&mut queue, 0, 5000);
            assert_eq!(queue.dispatch(0).is_some(), stays);
            queue.completed(1, first, &mut Vec::new());
        }
    }

    #[test]
    fn who_has_its_share_of_the_pool_waits_until_something_of_it_is_done() {
        let rules = QueueRules {
            pool: PoolRules::LINUX_2_6_35,
            ..invariants::rules()
        };
        let scheduler = CfqRoundRobin::new(Default::default(), 48);
        let mut queue = RequestQueue::new(rules, Box::new(scheduler));
        let of = |task, start| Bio {
            task,
            ..bio(0, Read, start)
        };
        assert_ne!(queue.submit(0, of(2, 0)), Submitted::MustWait);
        let mine = (1..).map(|n| of(1, n * 1000));
        let fits = mine.map(|bio| queue.submit(0, bio));
        // (48 - 8) / 2, and one more.
        assert_eq!(
            fits.take_while(|got| *got != Submitted::MustWait).count(),
            21
        );
        assert_ne!(queue.submit(0, of(2, 900)), Submitted::MustWait);
        let first = queue.dispatch(0).unwrap();
        assert_eq!(queue.completed(1, first, &mut Vec::new()), Some(1));
        assert_ne!(queue.submit(1, of(1, 99_000)), Submitted::MustWait);
    }

    #[test]
    fn each_hardware_queue_has_its_own_tags_unless_they_are_shared() {
        for (shared, expected) in [(false, vec![100, 500, 700, 200]), (true, vec![100, 500])] {
            let mut queue = queue(Box::new(NoScheduler::default()), 64, two_queues(shared));
            for (cpu, start) in [(0, 100), (0, 200), (0, 300), (1, 500), (1, 600), (3, 700)] {
                submit_on(&mut queue, cpu, start);
            }
            assert_eq!(dispatched(&mut queue), expected, "shared: {shared}");
        }
    }

    #[test]
    fn a_request_that_found_no_tag_goes_first_when_there_is_one() {
        let mut queue = queue(
            Box::new(MqDeadline::new(Default::default())),
            64,
            two_queues(false),
        );
        for start in [100, 200, 300, 400] {
            submit_on(&mut queue, 0, start);
        }
        let first = queue.dispatch(0).unwrap();
        assert_eq!(dispatched(&mut queue), [200]);
        submit_on(&mut queue, 0, 50);
        queue.completed(1, first, &mut Vec::new());
        assert_eq!(dispatched(&mut queue), [300]);
    }

    #[test]
    fn nr_requests_are_each_hardware_queues_own() {
        let submitted = |shared_tags| {
            let mut queue = queue(Box::new(NoScheduler::default()), 2, two_queues(shared_tags));
            let on = [0, 0, 0, 1, 1].into_iter().zip(1u64..);
            let bios = on.map(|(cpu, n)| Bio {
                cpu,
                ..bio(cpu.into(), Read, n * 100)
            });
            bios.map(|bio| queue.submit(0, bio) != Submitted::MustWait)
                .collect::<Vec<_>>()
        };
        assert_eq!(submitted(false), [true, true, false, true, true]);
        assert_eq!(submitted(true), [true, true, false, false, false]);
    }

    #[test]
    fn writers_leave_tags_to_readers() {
        let mut queue = queue(
            Box::new(MqDeadline::new(Default::default())),
            8,
            HardwareRules::SINGLE,
        );
        let writes =
            (0..8u64).filter(|n| queue.submit(0, bio(0, Write, n * 100)) != Submitted::MustWait);
        assert_eq!(writes.count(), 6);
        assert_ne!(queue.submit(0, bio(0, Read, 5000)), Submitted::MustWait);
    }

    proptest! {
        #[test]
        fn hardware_queues_lose_nothing(
            load in invariants::arrivals(4),
            depth in 1u32..5,
            queues in 1u16..4,
            shared_tags: bool,
            which in 0u8..3,
        ) {
            let scheduler: Box<dyn Scheduler> = match which {
                0 => Box::new(NoScheduler::default()),
                1 => Box::new(Kyber::new(Default::default(), QueueMap::modulo(4, queues))),
                _ => Box::new(MqDeadline::new(Default::default())),
            };
            let hardware = HardwareRules { map: QueueMap::modulo(4, queues), depth, shared_tags };
            let queue = RequestQueue::new(invariants::rules(), scheduler).with_hardware(hardware);
            invariants::completes_each_once(&invariants::serve_through(queue, &load, 8, 1_000_000));
        }
    }
}
