//! CFQ before it had groups: one line of queues, each served for a slice, idling in hope of its task's next request.
//!
//! Source: `block/cfq-iosched.c` of 2.6.29 and `elv_dispatch_sort` of `block/elevator.c`. The kernels from 2.6.18 on had it
//! with small differences, which are left out: until 2.6.28 it idled on devices without seeks too; 2.6.30 to 2.6.32 found
//! cooperating queues and sent one request a call.

mod queue;
#[cfg(test)]
mod tests;

use crate::scheduler::Scheduler;
use crate::scheduler::backward_seeks::BackwardSeekRule;
use crate::scheduler::cfq::{CfqTunables, Surroundings};
use crate::scheduler::dispatch_list::DispatchList;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::scheduler::sorted_set::SortedSet;
use crate::scheduler::task_queues::{IoContext, QueueId, TaskQueues};
use crate::{Bio, IoClass, RequestId, Requests, Sector, TaskId};
use events::time::{MILLISECOND, Tick, Time};
use queue::{Queue, ServiceOrder};

/// The state of one queue's CFQ.
#[derive(Clone, Debug)]
pub struct CfqSlices {
    tunables: CfqTunables,
    ticks: Ticks,
    tick: Tick,
    rotational: bool,
    backwards: BackwardSeekRule,
    queues: TaskQueues<Queue>,
    fifos: RequestFifos,
    /// Queues that have requests, in the order of service.
    line: SortedSet<ServiceOrder>,
    next_sequence: u64,
    active: Option<QueueId>,
    /// Whose request was the first of this slice: the task that is waited for.
    active_task: Option<TaskId>,
    idle_timer: Option<u64>,
    kicked: Option<Time>,
    /// Out of their queues, on their way to the driver: two ascending sweeps.
    dispatch_list: DispatchList,
    /// Where the last request that the driver took ends.
    last_position: Sector,
    queued: u32,
    in_driver: u32,
    /// Requests of sync queues, on the dispatch list or at the driver.
    sync_in_flight: u32,
    depth: DeviceDepth,
    now: Time,
    jiffies: u64,
}

/// Tunables in ticks.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    fifo_expire: [u64; 2],
    slice: [u64; 2],
    slice_idle: u64,
    /// The longest wait for a task that seeks (`CFQ_MIN_TT`).
    slice_idle_seeky: u64,
    /// How far behind the last an idle-class queue joins (`CFQ_IDLE_DELAY`).
    join_delay: u64,
}

/// Whether the device takes several requests at once (`hw_tag`): taken to, until known otherwise.
#[derive(Clone, Copy, Debug)]
struct DeviceDepth {
    is_deep: bool,
    samples: u32,
    peak: u32,
}

const DEEP_DEVICE: u32 = 5;
const DEPTH_SAMPLES: u32 = 50;
const LEVELS: u32 = 8;

/// Longer steps are seeks (`CIC_SEEKY`).
const SEEK_SECTORS: u64 = 8 * 1024;

fn is_seeky(task: &IoContext) -> bool {
    task.mean_seek().is_some_and(|mean| mean > SEEK_SECTORS)
}

impl CfqSlices {
    /// An idle scheduler.
    pub fn new(tunables: CfqTunables, surroundings: Surroundings) -> CfqSlices {
        let hz = u64::from(surroundings.hz);
        let ticks = |ns: Time| (ns * hz).div_ceil(1_000_000_000);
        CfqSlices {
            ticks: Ticks {
                fifo_expire: [ticks(tunables.fifo_expire_async_ns), ticks(tunables.fifo_expire_sync_ns)],
                slice: [ticks(tunables.slice_async_ns), ticks(tunables.slice_sync_ns)],
                slice_idle: ticks(tunables.slice_idle_ns),
                slice_idle_seeky: ticks(2 * MILLISECOND),
                join_delay: hz / 5,
            },
            tunables,
            tick: Tick::of_hz(surroundings.hz),
            rotational: surroundings.rotational,
            backwards: BackwardSeekRule {
                sectors_max: tunables.back_seek_max_kib * 2,
                penalty: tunables.back_seek_penalty,
            },
            queues: TaskQueues::default(),
            fifos: RequestFifos::default(),
            line: SortedSet::default(),
            next_sequence: 0,
            active: None,
            active_task: None,
            idle_timer: None,
            kicked: None,
            dispatch_list: DispatchList::default(),
            last_position: 0,
            queued: 0,
            in_driver: 0,
            sync_in_flight: 0,
            depth: DeviceDepth { is_deep: true, samples: 0, peak: 0 },
            now: 0,
            jiffies: 0,
        }
    }

    fn at(&mut self, now: Time) {
        self.now = now;
        self.jiffies = self.tick.count(now);
    }

    fn kick(&mut self) {
        self.kicked = Some(self.now);
    }

    // Who is served.

    /// The queue to dispatch from (`cfq_select_queue`); None: nothing is there, or what is there has to wait.
    fn select(&mut self) -> Option<QueueId> {
        let Some(active) = self.active else {
            return self.activate_first();
        };
        let queue = &self.queues[active];
        if queue.slice_used(self.jiffies) {
            self.expire_active(false);
        } else if queue.priority.class != IoClass::RealTime && self.real_time_waits() {
            self.expire_active(true);
        } else if queue.queued > 0 {
            return Some(active);
        } else if self.idle_timer.is_some() || queue.dispatched > 0 && queue.idle_window {
            return None;
        } else {
            self.expire_active(false);
        }
        self.activate_first()
    }

    /// `cfq_set_active_queue`.
    fn activate_first(&mut self) -> Option<QueueId> {
        let id = self.line.first()?.queue;
        self.queues[id].activate();
        self.active = Some(id);
        Some(id)
    }

    fn real_time_waits(&self) -> bool {
        self.line.first().is_some_and(|first| first.class == IoClass::RealTime)
    }

    /// The slice of the queue being served is over (`__cfq_slice_expired`); what is left of it counts if it idled, timed
    /// out or was interrupted.
    fn expire_active(&mut self, timed_out: bool) {
        let Some(id) = self.active.take() else {
            return;
        };
        self.active_task = None;
        let jiffies = self.jiffies;
        let queue = &mut self.queues[id];
        if std::mem::take(&mut queue.waits_for_request) {
            self.idle_timer = None;
        }
        if timed_out && !queue.slice_new {
            queue.slice_residual = queue.slice_end as i64 - jiffies as i64;
        }
        if queue.place.is_some() {
            self.stand(id, false);
        }
        self.release_if_over(id);
    }

    /// Puts the queue into the line, or moves it to its new place there (`cfq_service_tree_add`).
    fn stand(&mut self, id: QueueId, at_front: bool) {
        if let Some(old) = self.queues[id].place.take() {
            self.line.remove(&old);
        }
        let others = self.line.len() as i64;
        let queue = &self.queues[id];
        let class = queue.priority.class;
        let key = if class == IoClass::Idle {
            let last = self.line.last().map_or(self.jiffies as i64, |last| last.key);
            last + self.ticks.join_delay as i64
        } else if at_front {
            0
        } else {
            // Queues of lower priority, and async ones, stand as much further behind as their slices are shorter.
            let shorter = self.slice_of(true, 0) as i64 - self.slice_of(queue.sync, queue.priority.level) as i64;
            others * shorter + self.jiffies as i64 + queue.slice_residual
        };
        if class != IoClass::Idle && !at_front {
            self.queues[id].slice_residual = 0;
        }
        let place = ServiceOrder { class, key, sequence: self.next_sequence, queue: id };
        self.next_sequence += 1;
        self.line.insert(place);
        self.queues[id].place = Some(place);
    }

    /// `cfq_prio_slice`.
    fn slice_of(&self, sync: bool, level: u8) -> u64 {
        let base = self.ticks.slice[usize::from(sync)] as i64;
        (base + base / 5 * (4 - i64::from(level))).max(0) as u64
    }

    // Requests come in.

    /// `cfq_insert_request`.
    fn enqueue(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let queue_id = self.queue_for(request.task, request.sync, request.priority);
        let deadline = self.jiffies + self.ticks.fifo_expire[usize::from(request.sync)];
        self.fifos.add(requests, id, queue_id, deadline);
        self.dispatch_list.came(id);
        self.queued += 1;
        let queue = &mut self.queues[queue_id];
        queue.queued += 1;
        queue.metadata_queued += u32::from(request.metadata);
        let next = queue.next;
        if queue.place.is_none() {
            self.stand(queue_id, false);
        }
        self.queues[queue_id].next = self.backwards.better(requests, self.last_position, next, Some(id));
        self.learn(requests, id, queue_id);
        self.notice(requests, id, queue_id);
    }

    /// `cfq_get_queue`.
    fn queue_for(&mut self, task: TaskId, sync: bool, priority: crate::Priority) -> QueueId {
        if sync {
            self.queues.forget_if_exited(task, self.jiffies);
        }
        let shared_by = (!sync).then_some(priority);
        let new = || Queue::new(sync, priority);
        self.queues.of_task(task, usize::from(sync), shared_by, self.jiffies, new)
    }

    /// The first half of `cfq_rq_enqueued`, with `cfq_update_idle_window`.
    fn learn(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let request = &requests[id];
        let slice_idle = self.ticks.slice_idle;
        let (jiffies, is_deep) = (self.jiffies, self.depth.is_deep);
        let io_context = self.queues.io_context_mut(request.task).expect("it has a queue");
        io_context.learn(request, jiffies, slice_idle);
        let (exited, think) = (io_context.exited, io_context.usual_think());
        let is_seeky = is_seeky(io_context);
        let queue = &mut self.queues[queue_id];
        if !queue.sync || queue.priority.class == IoClass::Idle {
            return;
        }
        if exited || slice_idle == 0 || is_deep && is_seeky {
            queue.idle_window = false;
        } else if let Some(think) = think {
            queue.idle_window = think <= slice_idle;
        }
    }

    /// What a new request means for who is being served (the second half of `cfq_rq_enqueued`, and `cfq_preempt_queue`).
    fn notice(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        if self.active == Some(queue_id) {
            if self.queues[queue_id].waits_for_request {
                self.idle_timer = None;
                self.kick();
            }
        } else if self.should_preempt(requests, id, queue_id) {
            self.expire_active(true);
            self.stand(queue_id, true);
            let queue = &mut self.queues[queue_id];
            queue.slice_end = 0;
            queue.slice_new = true;
            self.kick();
        }
    }

    /// `cfq_should_preempt`.
    fn should_preempt(&self, requests: &Requests, id: RequestId, new: QueueId) -> bool {
        let Some(active) = self.active else {
            return false;
        };
        let (request, active) = (&requests[id], &self.queues[active]);
        let (class, active_class) = (self.queues[new].priority.class, active.priority.class);
        if active.slice_used(self.jiffies) {
            return true;
        }
        if class == IoClass::Idle || active_class == IoClass::Idle {
            return class != IoClass::Idle;
        }
        if request.sync && !active.sync
            || request.metadata && active.metadata_queued == 0
            || class == IoClass::RealTime && active_class != IoClass::RealTime
        {
            return true;
        }
        // As good as what is waited for.
        let awaited = self.active_task.filter(|_| active.waits_for_request);
        let usual = awaited.and_then(|task| self.queues.io_context(task)).and_then(IoContext::usual_seek);
        usual.is_some_and(|seek| self.last_position.abs_diff(request.start) <= seek)
    }

    // Requests go out.

    /// Moves requests of one queue, or of several that nobody idles on, to those that leave (`cfq_dispatch_requests`).
    fn dispatch_round(&mut self, requests: &Requests) {
        while let Some(id) = self.select() {
            let queue = &mut self.queues[id];
            let most = match queue.priority.class {
                IoClass::Idle => 1,
                _ => self.tunables.quantum,
            };
            let others = self.line.len() > 1;
            if queue.dispatched >= most && others || !queue.sync && self.sync_in_flight > 0 {
                return;
            }
            queue.waits_for_request = false;
            self.idle_timer = None;
            self.dispatch_from(requests, id, most);
        }
    }

    /// `__cfq_dispatch_requests`.
    fn dispatch_from(&mut self, requests: &Requests, id: QueueId, most: u32) {
        let mut count = 0;
        loop {
            let next = self.next_of(id);
            self.leave(requests, next, id);
            self.active_task.get_or_insert(requests[next].task);
            count += 1;
            let is_real_time = self.queues[id].priority.class == IoClass::RealTime;
            let gives_way = !is_real_time && self.real_time_waits();
            if self.queues[id].queued == 0 || gives_way || count >= most {
                break;
            }
        }
        let queue = &self.queues[id];
        let steps = LEVELS - u32::from(queue.priority.level);
        let of_async = self.tunables.slice_async_rq.saturating_mul(2 * steps);
        let had_enough = !queue.sync && count >= of_async;
        if self.line.len() > 1 && (had_enough || queue.priority.class == IoClass::Idle) {
            self.expire_active(false);
        }
    }

    /// The one that has waited too long, looked at once a slice (`cfq_check_fifo`); else the next in order.
    fn next_of(&mut self, id: QueueId) -> RequestId {
        let queue = &mut self.queues[id];
        let expired = match std::mem::replace(&mut queue.fifo_looked_at, true) {
            true => None,
            false => self.fifos.due(id, self.jiffies),
        };
        expired.unwrap_or_else(|| queue.next.expect("a queue that is chosen has requests"))
    }

    /// `cfq_dispatch_insert`.
    fn leave(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        if self.queues[queue_id].next == Some(id) {
            let (before, after) = self.fifos.around_cyclically(requests, id);
            self.queues[queue_id].next = self.backwards.better(requests, self.last_position, after, before);
        }
        self.fifos.remove(requests, id);
        self.count_out(requests, id, queue_id);
        let queue = &mut self.queues[queue_id];
        queue.dispatched += 1;
        self.sync_in_flight += u32::from(queue.sync);
        let from = self.last_position;
        let place = self.dispatch_list.place_in_sweeps(requests, id, from, true);
        self.dispatch_list.insert(place, id);
    }

    /// The request has left its queue (`cfq_remove_request`).
    fn count_out(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        self.queued -= 1;
        let queue = &mut self.queues[queue_id];
        queue.queued -= 1;
        queue.metadata_queued -= u32::from(requests[id].metadata);
        if queue.queued == 0
            && let Some(place) = queue.place.take()
        {
            self.line.remove(&place);
        }
    }

    // Requests come back.

    /// `cfq_completed_request`.
    fn complete(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let queue_id = self.fifos.fifo_of(id);
        self.learn_depth();
        self.in_driver -= 1;
        let queue = &mut self.queues[queue_id];
        queue.dispatched -= 1;
        self.sync_in_flight -= u32::from(queue.sync);
        if request.sync
            && let Some(io_context) = self.queues.io_context_mut(request.task)
        {
            io_context.last_end = self.jiffies;
        }
        if self.active == Some(queue_id) {
            if self.queues[queue_id].slice_new {
                // The time of a slice begins with its first completion.
                let queue = &self.queues[queue_id];
                let slice = self.slice_of(queue.sync, queue.priority.level);
                let queue = &mut self.queues[queue_id];
                queue.slice_end = self.jiffies + slice;
                queue.slice_new = false;
            }
            let queue = &self.queues[queue_id];
            if queue.slice_used(self.jiffies) || queue.priority.class == IoClass::Idle {
                self.expire_active(true);
            } else if request.sync && queue.queued == 0 {
                self.wait_for_more(queue_id);
            }
        }
        self.release_if_over(queue_id);
        if self.in_driver == 0 {
            self.kick();
        }
    }

    /// Arms the idle timer (`cfq_arm_slice_timer`): nobody else is served until the queue's task sends its next request, or
    /// the time is over.
    fn wait_for_more(&mut self, id: QueueId) {
        let task = self.active_task.and_then(|task| self.queues.io_context(task));
        let Some(task) = task.filter(|task| !task.exited) else {
            return;
        };
        let seeks = task.usual_seek().is_some() && is_seeky(task);
        let is_fast_device = !self.rotational && self.depth.is_deep;
        let queue = &mut self.queues[id];
        if is_fast_device || self.ticks.slice_idle == 0 || !queue.idle_window || self.in_driver > 0 {
            return;
        }
        let ticks = match seeks {
            true => self.ticks.slice_idle.min(self.ticks.slice_idle_seeky),
            false => self.ticks.slice_idle,
        };
        queue.waits_for_request = true;
        self.idle_timer = Some(self.jiffies + ticks);
    }

    /// `cfq_idle_slice_timer`.
    fn idled_long_enough(&mut self) {
        if let Some(id) = self.active {
            let queue = &self.queues[id];
            let used = queue.slice_used(self.jiffies);
            if !used && self.line.is_empty() {
                return;
            }
            if used || queue.queued == 0 {
                self.expire_active(false);
            }
        }
        self.kick();
    }

    /// Judged by what the device has been given when there was plenty (`cfq_update_hw_tag`).
    fn learn_depth(&mut self) {
        self.depth.peak = self.depth.peak.max(self.in_driver);
        if self.queued <= DEEP_DEVICE && self.in_driver <= DEEP_DEVICE {
            return;
        }
        self.depth.samples += 1;
        if self.depth.samples > DEPTH_SAMPLES {
            self.depth = DeviceDepth { is_deep: self.depth.peak >= DEEP_DEVICE, samples: 0, peak: 0 };
        }
    }

    /// A queue whose task is gone and that has nothing left; async queues stay.
    fn release_if_over(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        if queue.is_over() && self.active != Some(id) {
            queue.is_free = true;
            self.queues.free(id);
        }
    }
}

impl Scheduler for CfqSlices {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        self.queues.io_context(bio.task)?.queues[usize::from(bio.sync)]
    }

    /// The request must be in the queue to which the bio would go (`cfq_allow_merge`); sync I/O never waits behind async.
    fn may_merge(&self, requests: &Requests, request: RequestId, bio: &Bio) -> bool {
        if bio.sync && !requests[request].sync || self.dispatch_list.has(request) {
            return false;
        }
        let io_context = self.queues.io_context(bio.task);
        let queue = io_context.and_then(|known| known.queues[usize::from(bio.sync)]);
        queue == Some(self.fifos.fifo_of(request))
    }

    fn front_merged(&mut self, _: Time, requests: &Requests, id: RequestId, was: Sector) {
        self.fifos.front_merged(requests, id, was);
        let next = &mut self.queues[self.fifos.fifo_of(id)].next;
        *next = self.backwards.better(requests, self.last_position, *next, Some(id));
    }

    fn merged_requests(&mut self, now: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        self.at(now);
        let queue = self.fifos.fifo_of(merged);
        if self.queues[queue].next == Some(merged) {
            self.queues[queue].next = Some(survivor);
        }
        self.fifos.merged_requests(requests, survivor, merged);
        self.count_out(requests, merged, queue);
    }

    fn add(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.at(now);
        self.enqueue(requests, request);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        self.at(now);
        self.kicked = None;
        if self.dispatch_list.is_empty() && !self.line.is_empty() {
            self.dispatch_round(requests);
        }
        let id = self.dispatch_list.pop_front()?;
        self.in_driver += 1;
        self.last_position = requests[id].end();
        Some(id)
    }

    fn completed(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.at(now);
        self.complete(requests, request);
    }

    fn next_wakeup(&self) -> Option<Time> {
        let timer = self.idle_timer.map(|tick| self.tick.at(tick));
        [self.kicked, timer].into_iter().flatten().min()
    }

    fn wake(&mut self, now: Time, _: &Requests) {
        self.at(now);
        self.kicked = None;
        if self.idle_timer.is_some_and(|tick| self.tick.at(tick) <= now) {
            self.idle_timer = None;
            self.idled_long_enough();
        }
    }

    fn exited(&mut self, now: Time, task: TaskId) {
        self.at(now);
        let [_, of_sync] = self.queues.exited(task);
        if let Some(id) = of_sync {
            self.queues[id].has_task = false;
            if self.active == Some(id) {
                self.expire_active(false);
                self.kick();
            } else {
                self.release_if_over(id);
            }
        }
    }

    /// The task that is idled for, once a slice (`cfq_may_queue`).
    fn may_exceed_pool(&mut self, bio: &Bio) -> bool {
        let io_context = self.queues.io_context(bio.task);
        let Some(id) = io_context.and_then(|known| known.queues[usize::from(bio.sync)]) else {
            return false;
        };
        let queue = &mut self.queues[id];
        queue.waits_for_request && !std::mem::replace(&mut queue.has_exceeded_pool, true)
    }

    fn queued(&self) -> usize {
        self.queued as usize + self.dispatch_list.len()
    }
}
