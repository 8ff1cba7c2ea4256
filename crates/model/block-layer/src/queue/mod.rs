//! One device's request queue: bios in, requests out. It merges, plugs and counts; the scheduler orders.
//!
//! Source: `block/elevator.c`, `block/blk-core.c` and `block/blk-merge.c` of 2.6.35
//! (docs/model/sources/plugging.md#merging).

mod merging;
mod outcome;
mod tap;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::event::Tap;
use crate::hardware::{HardwareQueues, HardwareRules};
use crate::io_cost::{CostRules, IoCost};
use crate::io_latency::{IoLatency, LatencyRules};
use crate::plug::Plug;
use crate::pool::Pool;
use crate::qos::Qos;
use crate::qos_ticket::QosTicket;
use crate::queue_thread::QueueThread;
use crate::scheduler::Scheduler;
use crate::scheduler::hooks::Hooks;
use crate::wbt::{Wbt, WbtRules};
use crate::{Bio, Direction, EventKind, Request, RequestId, RequestLimits, Requests, Sector, Side, TaskId};
use events::slab::Slab;
use events::station::{Station, Violation};
use events::time::Time;
use kernels::queue::{QueueRules, WakeRule};
pub use outcome::{AllocateOutcome, Counts, SubmitOutcome};

const PAGE_SECTORS: u32 = 8;

/// The queue of one device: takes bios in, merges them into requests, and dispatches these by a scheduler's order.
pub struct RequestQueue {
    rules: QueueRules,
    scheduler: Box<dyn Scheduler>,
    requests: Requests,
    bios: Slab<Bio>,
    /// Queued requests that may still be merged into, by their ends.
    ends: BTreeSet<(Sector, RequestId)>,
    last_merge: Option<RequestId>,
    /// What goes before all that the scheduler has (`ELEVATOR_INSERT_FRONT`, `blk_mq_request_bypass_insert` at the
    /// head), the last one first.
    in_front: VecDeque<RequestId>,
    /// Two classes; of blk-mq one for each set of tags.
    pools: Vec<Pool>,
    /// The tags of a word that bios may have whose tasks wait, by task, tag and place. A limit is determined once, before
    /// the first try (`limit_depth` of `__blk_mq_alloc_requests`), and holds for all later ones (`blk_mq_get_tag`).
    limits_of_waiting: BTreeMap<(TaskId, u32, Sector), u32>,
    plug: Plug,
    /// None: writeback is not throttled.
    wbt: Option<Wbt>,
    qos: Qos,
    /// The tasks that may try again, which `take_woken` returns.
    woken: Vec<TaskId>,
    hardware: HardwareQueues,
    /// The scheduler is asked when the device next takes a request: something has happened that has the queue run.
    runs: bool,
    /// When it runs again, because the scheduler kept what it has.
    runs_again_at: Option<Time>,
    /// Runs the queue for completions; None: a completion does.
    thread: Option<QueueThread>,
    /// The last request that was dispatched was the only one that the run took from the scheduler at once.
    is_single: bool,
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
            pools: vec![pool(&rules, scheduler.as_ref()); 2],
            rules,
            scheduler,
            requests: Slab::new(),
            bios: Slab::new(),
            ends: BTreeSet::new(),
            last_merge: None,
            in_front: VecDeque::new(),
            limits_of_waiting: BTreeMap::new(),
            plug: Plug::new(rules.plug),
            wbt: None,
            qos: Qos::default(),
            woken: Vec::new(),
            hardware: HardwareQueues::new(HardwareRules::SINGLE),
            runs: true,
            runs_again_at: None,
            thread: None,
            is_single: false,
            hooks: Hooks::NONE,
            in_flight: 0,
            counts: Counts::default(),
            station: Station::default(),
            tap: Tap::default(),
        }
    }

    /// In front of hardware queues with tags, as blk-mq has them.
    pub fn with_hardware(mut self, rules: HardwareRules) -> RequestQueue {
        let pools = rules.tag_sets().max(2);
        self.pools = vec![pool(&self.rules, self.scheduler.as_ref()); pools];
        self.hardware = HardwareQueues::new(rules);
        self
    }

    /// With writeback throttled.
    pub fn with_wbt(mut self, rules: Option<WbtRules>) -> RequestQueue {
        self.wbt = rules.map(Wbt::new);
        self
    }

    /// With the latencies of groups protected.
    pub fn with_latencies(mut self, rules: LatencyRules) -> RequestQueue {
        self.qos.add(Box::new(IoLatency::new(rules)));
        self
    }

    /// With the device shared by a model of its cost.
    pub fn with_cost(mut self, rules: CostRules) -> RequestQueue {
        self.qos.add(Box::new(IoCost::new(rules)));
        self
    }

    /// Whether tasks sleep here for their control group's sake.
    pub fn holds_groups(&self) -> bool {
        self.qos.is_on()
    }

    /// How fast io.cost lets the device's virtual time pass, in percent of wall time; None: it is off.
    pub fn vrate_percent(&self) -> Option<f64> {
        self.qos.vrate_percent()
    }

    /// The largest bio that becomes one request, in sectors: whole pages, each a segment of its own. Larger ones are
    /// never made (`bio_add_page` of 2.5 to 4.2) or are cut before they come in (`blk_queue_split` from 4.3 on).
    pub fn bio_sectors_max(&self) -> u32 {
        let of_segments = u32::from(self.rules.request_segments_max) * PAGE_SECTORS;
        let sectors = self.rules.request_sectors_max / PAGE_SECTORS * PAGE_SECTORS;
        of_segments.min(sectors).max(PAGE_SECTORS)
    }

    /// What a request may hold.
    pub fn request_limits(&self) -> RequestLimits {
        RequestLimits { sectors: self.rules.request_sectors_max, segments: self.rules.request_segments_max }
    }

    /// Whether it asks the scheduler for one more request than its device takes.
    pub fn pulls_ahead(&self) -> bool {
        self.hardware.runs().pulls_ahead
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

    /// Sets of the device's tags that its hardware queues draw from.
    pub fn tag_sets(&self) -> usize {
        self.hardware.tag_sets()
    }

    /// Takes a bio in, if there is a request for it.
    pub fn submit(&mut self, now: Time, bio: Bio) -> SubmitOutcome {
        self.come(now, bio, false)
    }

    /// The same of a bio that there was no request for, when its task has been woken.
    pub fn submit_again(&mut self, now: Time, bio: Bio) -> SubmitOutcome {
        self.come(now, bio, true)
    }

    /// The same into the plug of the bio's task (`blk_mq_submit_bio`): it joins a queued request, or gets one of its own,
    /// which the queue knows of when the plug is flushed. `has_waited`: its task was woken for it.
    pub fn allocate_for_plug(&mut self, now: Time, mut bio: Bio, has_waited: bool) -> AllocateOutcome {
        let found = self.find_merge_of(&bio, has_waited);
        if found.is_none() && self.is_let_in(now, &bio) && self.allocate(now, &bio) {
            let class = self.class_of(bio.direction, bio.sync, bio.cpu);
            bio.allocated = Some(self.pools[class].last_taken());
            bio.qos = self.qos.ticket_of(now, &bio);
            self.took(now, &bio, has_waited);
            return AllocateOutcome::Plugged(bio);
        }
        if self.tap.is_on() {
            self.tap.came(now, &bio);
        }
        if let Some((request, side)) = found {
            self.joins(now, request, side, bio);
            return AllocateOutcome::Merged;
        }
        self.waits(now, &bio);
        AllocateOutcome::MustWait(bio)
    }

    fn come(&mut self, now: Time, bio: Bio, has_waited: bool) -> SubmitOutcome {
        self.emit_plug(now, false, None);
        if self.tap.is_on() {
            self.tap.came(now, &bio);
        }
        let submitted = self.take_in(now, bio, has_waited);
        self.emit_messages();
        submitted
    }

    /// `__make_request`.
    fn take_in(&mut self, now: Time, mut bio: Bio, has_waited: bool) -> SubmitOutcome {
        let found = self.find_merge_of(&bio, has_waited);
        if let Some((request, side)) = found {
            self.joins(now, request, side, bio);
            return SubmitOutcome::Merged(request, side);
        }
        if bio.allocated.is_none() {
            if !self.is_let_in(now, &bio) || !self.allocate(now, &bio) {
                self.waits(now, &bio);
                return SubmitOutcome::MustWait;
            }
            bio.qos = self.qos.ticket_of(now, &bio);
            self.took(now, &bio, has_waited);
        }
        self.station.enter(now);
        self.counts.bios += 1;
        let request = self.add_request(now, bio);
        SubmitOutcome::Queued(request)
    }

    /// The bio becomes part of a queued request. One that it had got already is free again.
    fn joins(&mut self, now: Time, request: RequestId, side: Side, mut bio: Bio) {
        let first = self.first_ticket(&self.requests[request]);
        bio.qos = self.qos.merged(now, &self.requests[request], first, &bio);
        self.qos.take_woken(&mut self.woken);
        if let Some(wbt) = self.wbt.as_mut().filter(|_| bio.writeback) {
            wbt.joined(bio.task);
        }
        if let Some(tag) = bio.allocated {
            let class = self.class_of(bio.direction, bio.sync, bio.cpu);
            self.pools[class].free(now, tag, &mut self.woken);
            if let Some(wbt) = self.wbt.as_mut().filter(|_| bio.writeback) {
                wbt.merged();
            }
        }
        if !self.limits_of_waiting.is_empty() {
            let waiting = (bio.task, bio.tag, bio.start);
            self.limits_of_waiting.remove(&waiting);
        }
        self.station.enter(now);
        self.counts.bios += 1;
        self.merge(now, request, side, bio);
    }

    /// What the bio can join; one that has waited looks again in some kernels only.
    fn find_merge_of(&mut self, bio: &Bio, has_waited: bool) -> Option<(RequestId, Side)> {
        let looks = !has_waited || self.rules.pool.merges_after_waiting;
        looks.then(|| self.find_merge(bio)).flatten()
    }

    /// Whether its pool has a request for the bio, whatever the scheduler allows.
    pub fn has_room_for(&self, bio: &Bio) -> bool {
        self.pools[self.class_of(bio.direction, bio.sync, bio.cpu)].has_room()
    }

    /// A task is about to sleep for a tag, or was woken for one (`blk_mq_get_tag`).
    pub fn runs_for_waiter(&mut self) {
        self.runs |= self.has_tags();
    }

    /// A kernel thread whose CPU time counts runs it for completions.
    pub fn runs_by_thread(&mut self) {
        self.thread = Some(QueueThread::default());
    }

    /// When that thread runs it; None: nobody has called it, or an interrupt has the CPU.
    pub fn thread_runs_at(&self) -> Option<Time> {
        self.thread.as_ref()?.runs_at()
    }

    /// Whether a completion has called the thread.
    pub fn has_called_thread(&self) -> bool {
        self.thread.as_ref().is_some_and(QueueThread::is_called)
    }

    /// An interrupt takes the thread's CPU.
    pub fn hold_thread(&mut self, now: Time) {
        if let Some(thread) = &mut self.thread {
            thread.hold(now);
        }
    }

    /// The interrupt is over: when the thread runs the queue, `switch_ns` from now if the interrupt has called it.
    pub fn release_thread(&mut self, now: Time, switch_ns: Time) -> Option<Time> {
        self.thread.as_mut()?.release(now, switch_ns)
    }

    /// Whether the last request that was dispatched was the only one of its batch (`max_dispatch` of
    /// `__blk_mq_do_dispatch_sched`).
    pub fn is_single(&self) -> bool {
        self.is_single
    }

    /// Whether a scheduler gives the requests out.
    pub fn has_scheduler(&self) -> bool {
        self.hooks != Hooks::NONE
    }

    /// A task without a plug has submitted a bio.
    pub fn runs_for_single(&mut self) {
        if self.hardware.runs().by_thread {
            self.runs_again_at = None;
        }
    }

    /// There is no request for the bio.
    fn waits(&mut self, now: Time, bio: &Bio) {
        if self.tap.is_on() {
            self.tap.must_wait(now, bio);
        }
        self.plug.unplug();
        self.emit_plug(now, false, None);
    }

    /// The bio has got a request.
    fn took(&mut self, now: Time, bio: &Bio, has_waited: bool) {
        if has_waited && self.has_tags() {
            let class = self.class_of(bio.direction, bio.sync, bio.cpu);
            self.pools[class].has_looked_again();
        }
        if let Some(wbt) = self.wbt.as_mut().filter(|_| bio.writeback) {
            wbt.took(now, bio.task);
        }
    }

    /// The next request for the device (`blk_peek_request`).
    pub fn dispatch(&mut self, now: Time) -> Option<RequestId> {
        self.emit_plug(now, false, None);
        if self.plug.is_plugged() {
            return None;
        }
        let id =
            self.dispatch_from_front().or_else(|| self.dispatch_held()).or_else(|| self.dispatch_from_scheduler(now));
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

    /// The device is done with the request: its bios, in ascending order, go into `done`. `take_woken` returns who may
    /// try again to get a request.
    pub fn completed(&mut self, now: Time, id: RequestId, done: &mut Vec<Bio>) {
        self.completed_on(now, id, self.requests[id].cpu, done);
    }

    /// The same, on that CPU (`elv_completed_request`).
    pub fn completed_on(&mut self, now: Time, id: RequestId, cpu: u16, done: &mut Vec<Bio>) {
        if self.tap.is_on() {
            self.tap.completed(now, &self.requests[id], cpu);
        }
        if !self.requests[id].behind_flush {
            self.scheduler.completed(now, &self.requests, id);
        }
        // If only tags can keep a request, asking does no harm.
        let at_once = self.thread.is_none() && !self.scheduler.runs_queue();
        self.runs |= self.hardware.runs().after_completions || at_once;
        self.emit_messages();
        let request = self.requests.take(id);
        let first = self.first_ticket(&request);
        let class = self.class_of(request.direction, request.sync, request.cpu);
        let woken_before = self.woken.len();
        self.pools[class].free(now, request.pool_tag, &mut self.woken);
        if let Some(wbt) = &mut self.wbt {
            wbt.completed(now, id, &request, &mut self.woken);
        }
        if self.woken.len() == woken_before {
            self.pools[class].wake_forgotten(&mut self.woken);
        }
        if self.hardware.give_back(request.cpu) {
            // The same work, so that it comes at no other time (`blk_mq_delay_run_hw_queue`).
            match &mut self.thread {
                None => self.runs = true,
                Some(thread) => thread.call(),
            }
            self.runs_again_at = None;
        }
        self.in_flight -= 1;
        self.counts.completed += 1;
        let mut next = request.bios.map(|(first, _)| first);
        while let Some(bio) = next {
            let bio = self.bios.take(bio);
            next = bio.next;
            self.station.leave(now, bio.submitted_at);
            self.qos.done_bio(now, &bio);
            done.push(bio);
        }
        self.qos.done(now, &request, first);
        self.qos.take_woken(&mut self.woken);
    }

    /// Appends who has been woken since the last time, and may try again to get a request.
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

    /// When throttling wants `wake` to be called, whatever the device is doing.
    pub fn next_look(&self) -> Option<Time> {
        let wbt = self.wbt.as_ref().and_then(Wbt::next_wakeup);
        [wbt, self.qos.next_wakeup()].into_iter().flatten().min()
    }

    /// A task waits for what is queued.
    pub fn unplug(&mut self) {
        self.plug.unplug();
    }

    /// When `wake` has something to do; None: not before something else happens.
    pub fn next_wakeup(&self) -> Option<Time> {
        let times = [self.plug.next_wakeup(), self.scheduler.next_wakeup(), self.runs_again_at, self.thread_runs_at()];
        times.into_iter().flatten().min()
    }

    /// Lets the timers of the plug, of the throttling and of the scheduler act, if they have expired.
    pub fn wake(&mut self, now: Time) {
        if let Some(wbt) = &mut self.wbt
            && wbt.next_wakeup().is_some_and(|at| at <= now)
        {
            wbt.look(now, &mut self.woken);
        }
        self.qos.wake(now);
        self.qos.take_woken(&mut self.woken);
        self.emit_plug(now, false, None);
        self.plug.wake(now);
        self.emit_plug(now, true, None);
        if self.scheduler.next_wakeup().is_some_and(|at| at <= now) {
            self.runs = true;
            self.scheduler.wake(now, &self.requests);
            self.emit_messages();
        }
        if self.runs_again_at.is_some_and(|at| at <= now) {
            self.runs_again_at = None;
            self.runs = true;
        }
        self.runs |= self.thread.as_mut().is_some_and(|thread| thread.take_due(now));
    }

    /// Informs the scheduler that the task submits no more I/O.
    pub fn exited(&mut self, now: Time, task: TaskId) {
        self.runs = true;
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
        self.qos.check()?;
        self.station.check(name, now, still)
    }

    /// The last one that goes before all others, unless its hardware queue has no tag: then it waits for one there.
    fn dispatch_from_front(&mut self) -> Option<RequestId> {
        let id = self.in_front.pop_front()?;
        let cpu = self.requests[id].cpu;
        if self.hardware.take_tag_first(cpu, id) {
            return Some(id);
        }
        self.dispatch_from_front()
    }

    /// One that had found no tag, which its queue was to be run for.
    fn dispatch_held(&mut self) -> Option<RequestId> {
        if self.thread.is_some() && !self.runs {
            return None;
        }
        let Some(id) = self.hardware.take_held() else {
            // Who runs it finds no tag for what was held back.
            self.runs &= self.thread.is_none() || !self.hardware.is_held_up();
            return None;
        };
        self.runs = true;
        self.is_single = true;
        Some(id)
    }

    /// One for which its hardware queue has a tag; those for which it has none are held back, and no more are asked for
    /// when every queue holds one, or every queue that could take one.
    fn dispatch_from_scheduler(&mut self, now: Time) -> Option<RequestId> {
        while self.runs && self.hardware.may_ask() {
            let Some(id) = self.scheduler.dispatch(now, &self.requests) else {
                self.got_nothing(now);
                break;
            };
            self.no_more_merges(id);
            let cpu = self.requests[id].cpu;
            self.is_single = self.hardware.is_busy(cpu);
            if self.hardware.take_tag(cpu, id) {
                return Some(id);
            }
        }
        self.runs &= self.thread.is_none();
        None
    }

    /// The scheduler has none or keeps what it has (`blk_mq_do_dispatch_sched`).
    fn got_nothing(&mut self, now: Time) {
        self.runs = self.hardware.runs().after_completions;
        if self.runs_again_at.is_none() && self.scheduler.queued() > 0 {
            self.runs_again_at = self.hardware.runs_again_at(now);
        }
    }

    /// Whether throttling lets the bio have a request (`rq_qos_throttle`).
    fn is_let_in(&mut self, now: Time, bio: &Bio) -> bool {
        let by_wbt = match &mut self.wbt {
            Some(wbt) if bio.writeback => {
                let is_allowed = wbt.allows(now, bio.task, bio.sync);
                if !is_allowed {
                    let class = self.class_of(bio.direction, bio.sync, bio.cpu);
                    self.pools[class].passes_on(bio.task, &mut self.woken);
                }
                is_allowed
            }
            _ => true,
        };
        let is_let_in = by_wbt && self.qos.lets_go(now, bio);
        self.qos.take_woken(&mut self.woken);
        is_let_in
    }

    fn first_ticket(&self, request: &Request) -> QosTicket {
        let first = request.bios.map(|(first, _)| self.bios[first].qos);
        first.unwrap_or_default()
    }

    fn allocate(&mut self, now: Time, bio: &Bio) -> bool {
        let has_tags = self.has_tags();
        let class = self.class_of(bio.direction, bio.sync, bio.cpu);
        let pool = &mut self.pools[class];
        if bio.behind_flush {
            return pool.allocate_below(now, bio.task, u32::MAX, bio.workers);
        }
        if !self.scheduler.lets_queue(bio) {
            pool.wait(bio.task, bio.workers);
            return false;
        }
        if !has_tags {
            return pool.allocate_below(now, bio.task, u32::MAX, bio.workers)
                || self.scheduler.may_exceed_pool(bio) && pool.allocate_beyond();
        }
        let counts = pool.tags();
        if !self.scheduler.limits_vary() {
            let most = self.scheduler.tags_allowed(bio, counts);
            return pool.allocate_below(now, bio.task, most, bio.workers);
        }
        let waiting = (bio.task, bio.tag, bio.start);
        let before = self.limits_of_waiting.get(&waiting).copied();
        let most = before.unwrap_or_else(|| self.scheduler.tags_allowed(bio, counts));
        let is_allocated = pool.allocate_below(now, bio.task, most, bio.workers);
        match (is_allocated, before) {
            (true, Some(_)) => self.limits_of_waiting.remove(&waiting),
            (false, None) => self.limits_of_waiting.insert(waiting, most),
            _ => None,
        };
        is_allocated
    }

    /// `elv_insert`.
    fn add_request(&mut self, now: Time, bio: Bio) -> RequestId {
        let head_is_there = self.rules.plug.head_stays && self.in_flight > 0;
        let was_empty = self.scheduler.queued() == 0 && !head_is_there;
        let class = self.class_of(bio.direction, bio.sync, bio.cpu);
        let pool_tag = bio.allocated.unwrap_or(self.pools[class].last_taken());
        let bio_id = self.bios.put(bio);
        let mut request = Request::of(bio_id, &self.bios[bio_id]);
        request.pool_tag = pool_tag;
        let end = request.end();
        let id = self.requests.put(request);
        self.runs = true;
        self.emit_request(now, EventKind::GetRequest, id);
        if self.requests[id].behind_flush {
            self.in_front.push_front(id);
            self.emit_request(now, EventKind::Insert, id);
            return id;
        }
        self.ends.insert((end, id));
        self.last_merge = Some(id);
        self.scheduler.add(now, &self.requests, id);
        let was_plugged = self.plug.is_plugged();
        self.plug.inserted(now, was_empty, self.scheduler.queued() as u32);
        if !was_plugged {
            self.emit_plug(now, false, Some(id));
        }
        self.emit_request(now, EventKind::Insert, id);
        self.emit_plug(now, false, None);
        id
    }

    /// Whether its requests are tags of blk-mq.
    pub fn has_tags(&self) -> bool {
        matches!(self.rules.pool.waking, WakeRule::Tags(_))
    }

    /// The pool of such a request: the tags of blk-mq are for all I/O of the CPUs that share a hardware queue.
    #[inline]
    fn class_of(&self, direction: Direction, sync: bool, cpu: u16) -> usize {
        match self.rules.pool.waking {
            WakeRule::Tags(_) => self.hardware.tag_set_of(cpu),
            _ if self.rules.pool_by_sync => usize::from(sync),
            _ => usize::from(direction == Direction::Read),
        }
    }
}

/// A class of the pool, or a set of tags.
fn pool(rules: &QueueRules, scheduler: &dyn Scheduler) -> Pool {
    let fewest = scheduler.fewest_tags(Pool::counts(rules.pool));
    Pool::new(rules.pool, fewest)
}

#[cfg(test)]
mod tests;
