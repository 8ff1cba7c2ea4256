//! A device behind its request queue.

use std::collections::VecDeque;

use super::poll_delay::{PollRules, Polling};
use super::queue_run::QueueRunCosts;
use block_layer::{
    AllocateOutcome, Bio, Direction, QueueEvent, Request, RequestId, RequestQueue, Sector, SubmitOutcome, TaskId,
    Throttle,
};
use devices::flash::{FlashSpace, ProgrammedUnits};
use devices::{Command, Completion, Device};
use events::Component;
use events::station::Violation;
use events::time::Time;
use filesystems::allocator::Allocator;

/// The largest bio that direct I/O and the page cache submit, if the queue takes requests as large (`BIO_MAX_PAGES`).
const BIO_SECTORS_MAX: u32 = 2048;

/// A device, its queue, and the filesystem on it if files are `FileLayout::Allocated`.
pub struct DriveParts {
    /// The request queue with its scheduler.
    pub queue: RequestQueue,
    /// What serves the queue's requests.
    pub device: Box<dyn Device>,
    /// Where files go; None: the drive has no filesystem.
    pub filesystem: Option<Box<dyn Allocator>>,
    /// The largest bio in which its files are written back.
    pub write_bio_sectors_max: u32,
    /// Its driver takes a request from the queue before it checks whether the device has room.
    pub peek: bool,
    /// Whether tasks can poll for its completions, and how; None: it always interrupts.
    pub polling: Option<PollRules>,
    /// What it takes to send it requests; None: nothing. Its device takes a command at a later time than now.
    pub run_costs: Option<QueueRunCosts>,
}

/// A device with its request queue, and the requests between the two.
///
/// A component of the machine: it receives bios (`submit`) and requests that CPUs have completed (`completed`), both
/// from the I/O path alone. Any other caller makes the I/O path examine it afterwards (`call_back` or `run`).
pub(in crate::world) struct Drive {
    number: usize,
    /// When it received something that it has not examined yet.
    told_at: Option<Time>,
    queue: RequestQueue,
    device: Box<dyn Device>,
    /// Requests at the device, by tag.
    sent: Vec<Option<RequestId>>,
    free_tags: Vec<u32>,
    peek: bool,
    /// The request that has left the queue and found no room at the device.
    taken_ahead: Option<RequestId>,
    completions: Vec<Completion>,
    /// What CPUs have to do with a request before it is completed; false: it is completed when the device is done with it.
    cpus_complete: bool,
    /// Tags of requests that wait for CPUs to complete them, and of those sent.
    arrived: Vec<u32>,
    newly_sent: Vec<u32>,
    done: Vec<Bio>,
    may_retry: Vec<TaskId>,
    was_congested: [bool; 2],
    /// The largest bio of direct I/O and of reading through the page cache.
    bio_sectors_max: u32,
    write_bio_sectors_max: u32,
    /// fsync waits until the device's cache is on the medium.
    flushes: bool,
    /// It takes writes with force unit access; None: the kernel makes them of flushes.
    fua: Option<FuaRules>,
    /// Who waits for the flush that is in flight, and who came since.
    flush_waiters: [Vec<TaskId>; 2],
    /// For whom one has ended.
    flushed: Vec<TaskId>,
    /// Discards in the order in which they came; the first is in flight.
    discards: VecDeque<(TaskId, Sector, Sector)>,
    /// Whether tasks can poll for its completions, and how.
    polling: Option<Polling>,
    /// Limits of control groups, which bios pass before they come to the queue.
    throttle: Option<Throttle>,
    /// Bios that have waited for their group's limit.
    released: Vec<Bio>,
    run_costs: Option<QueueRunCosts>,
    /// When the last request of the last run was at the device.
    sent_until: Time,
}

/// What a kernel makes of durable direct writes to a drive that takes force unit access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuaRules {
    /// To the drive itself: they have it, and are followed by a flush nevertheless.
    pub of_device: bool,
    /// To blocks that a file has: they have it, and need no flush.
    pub of_files: bool,
}

/// What the machine does for a drive.
pub(in crate::world) enum Effect {
    /// The device is done with the request of that tag, and CPUs complete it: then `Drive::completed`.
    Arrived(u32),
    /// The request of that tag is at the device.
    Sent(u32),
    /// A bio has been read or written.
    Done(Bio),
    /// What the task wanted flushed is on the medium, or what it discarded is gone.
    Flushed(TaskId),
    /// There may be a request for the task.
    Retry(TaskId),
    /// A bio may go to the queue: its group is below its limit again.
    Released(Bio),
}

impl Component for Drive {
    type Effect = Effect;

    fn next_event(&self) -> Option<Time> {
        let device = self.device.next_event();
        // With every tag taken, only the device can change anything, but for what is taken ahead.
        let may_dispatch = self.may_dispatch();
        let queue = self.queue.next_wakeup().filter(|_| may_dispatch);
        let throttle = self.throttle.as_ref().and_then(Throttle::next_event);
        [self.told_at, device, queue, self.queue.next_look(), throttle].into_iter().flatten().min()
    }

    /// Collects what the device has done, wakes queue and scheduler, and sends the device what may go.
    fn advance(&mut self, now: Time) {
        self.told_at = None;
        if let Some(throttle) = &mut self.throttle {
            throttle.advance(now, &mut self.released);
        }
        self.collect(now);
        let wanted = [self.queue.next_wakeup(), self.queue.next_look()];
        if wanted.into_iter().flatten().any(|at| at <= now) {
            self.queue.wake(now);
            self.queue.take_woken(&mut self.may_retry);
        }
        self.send_all(now);
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        into.extend(self.arrived.drain(..).map(Effect::Arrived));
        into.extend(self.newly_sent.drain(..).map(Effect::Sent));
        into.extend(self.done.drain(..).map(Effect::Done));
        into.extend(self.flushed.drain(..).map(Effect::Flushed));
        into.extend(self.may_retry.drain(..).map(Effect::Retry));
        into.extend(self.released.drain(..).map(Effect::Released));
    }

    /// Conservation and Little's law in the queue and inside the device.
    fn check(&self, now: Time) -> Result<(), Violation> {
        if let Some(throttle) = &self.throttle {
            throttle.check()?;
        }
        self.queue.check(&format!("drive {}", self.number), now)?;
        self.device.check(now)
    }
}

impl Drive {
    /// `cpus_complete`: CPUs have to do something with a request before it is completed.
    pub(super) fn new(number: usize, parts: DriveParts, cpus_complete: bool) -> Drive {
        let depth = parts.device.queue_depth() * parts.queue.tag_sets() as u32;
        let bio_sectors_max = BIO_SECTORS_MAX.min(parts.queue.bio_sectors_max());
        Drive {
            number,
            told_at: None,
            queue: parts.queue,
            device: parts.device,
            sent: vec![None; depth as usize],
            free_tags: (0..depth).rev().collect(),
            peek: parts.peek,
            taken_ahead: None,
            completions: Vec::new(),
            cpus_complete,
            arrived: Vec::new(),
            newly_sent: Vec::new(),
            done: Vec::new(),
            may_retry: Vec::new(),
            was_congested: [false; 2],
            bio_sectors_max,
            write_bio_sectors_max: parts.write_bio_sectors_max.min(bio_sectors_max),
            flushes: false,
            fua: None,
            flush_waiters: Default::default(),
            flushed: Vec::new(),
            discards: VecDeque::new(),
            polling: parts.polling.map(Polling::new),
            throttle: None,
            released: Vec::new(),
            run_costs: parts.run_costs,
            sent_until: 0,
        }
    }

    pub(super) fn set_throttle(&mut self, throttle: Throttle) {
        self.throttle = Some(throttle);
    }

    /// The bio, if its group's limit lets it go on; else it waits, and comes back as an effect.
    pub(super) fn admit(&mut self, now: Time, mut bio: Bio) -> Option<Bio> {
        if self.queue.holds_groups() {
            // `rq_qos_wait` knows no `REQ_NOWAIT`: a ring's task sleeps itself.
            bio.workers = 0;
        }
        match &mut self.throttle {
            Some(throttle) => throttle.admit(now, bio),
            None => Some(bio),
        }
    }

    pub(super) fn submit(&mut self, now: Time, bio: Bio) -> SubmitOutcome {
        self.submit_after(now, bio, false)
    }

    /// The same, perhaps of a bio that has waited for a request.
    pub(super) fn submit_after(&mut self, now: Time, bio: Bio, has_waited: bool) -> SubmitOutcome {
        self.told_at = Some(now);
        let outcome = match has_waited {
            true => {
                self.run_for_waiter(now);
                self.queue.submit_again(now, bio)
            }
            false => self.queue.submit(now, bio),
        };
        if outcome == SubmitOutcome::MustWait {
            self.run_for_waiter(now);
        }
        self.queue.take_woken(&mut self.may_retry);
        outcome
    }

    /// A bio comes into its task's plug, of which the device sees nothing yet; `has_waited`: its task was woken for it.
    pub(super) fn allocate_for_plug(&mut self, now: Time, bio: Bio, has_waited: bool) -> AllocateOutcome {
        if has_waited {
            self.run_for_waiter(now);
        }
        let outcome = self.queue.allocate_for_plug(now, bio, has_waited);
        if matches!(outcome, AllocateOutcome::MustWait(_)) {
            self.run_for_waiter(now);
        }
        self.queue.take_woken(&mut self.may_retry);
        outcome
    }

    /// An interrupt takes the CPU of the thread that runs the queue.
    pub(in crate::world) fn hold_thread(&mut self, now: Time) {
        self.queue.hold_thread(now);
    }

    /// The interrupt is over: when the thread runs the queue, `switch_ns` from now if the interrupt has called it.
    pub(in crate::world) fn release_thread(&mut self, now: Time, switch_ns: Time) -> Option<Time> {
        self.told_at = Some(now);
        self.queue.release_thread(now, switch_ns)
    }

    /// When the last request of the last run was at the device.
    pub(in crate::world) fn sent_until(&self) -> Time {
        self.sent_until
    }

    /// A task has submitted a bio past its filesystem, alone.
    pub(in crate::world) fn took_single(&mut self) {
        self.queue.runs_for_single();
    }

    /// Who waits for a tag has the queue run, which has nothing of what it is about to submit (`blk_mq_get_tag`).
    fn run_for_waiter(&mut self, now: Time) {
        self.told_at = Some(now);
        self.queue.runs_for_waiter();
        self.send_all(now);
    }

    /// A task waits.
    pub(in crate::world) fn unplug(&mut self, now: Time) {
        self.told_at = Some(now);
        self.queue.unplug();
    }

    fn collect(&mut self, now: Time) {
        if self.device.next_event().is_none_or(|at| now < at) {
            return;
        }
        self.device.advance(now, &mut self.completions);
        let (flush_tag, discard_tag) = (self.flush_tag(), self.discard_tag());
        let (mut has_flushed, mut has_discarded) = (false, false);
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            match completion.tag {
                tag if tag == flush_tag => has_flushed = true,
                tag if tag == discard_tag => has_discarded = true,
                tag if self.cpus_complete => self.arrived.push(tag),
                tag => self.completed(now, tag, None),
            }
        }
        self.completions = completions;
        if has_flushed {
            self.end_flush(now);
        }
        if has_discarded {
            self.end_discard(now);
        }
    }

    /// From now on fsync waits for the device's cache.
    pub(super) fn set_flushes(&mut self, flushes: bool) {
        self.flushes = flushes;
    }

    pub(super) fn set_fua(&mut self, rules: FuaRules) {
        self.fua = Some(rules);
    }

    /// Which durable direct writes go to it with force unit access; None: none, and what a journal writes does not either.
    pub(in crate::world) fn fua(&self) -> Option<FuaRules> {
        self.fua
    }

    /// Whether it has a volatile cache, which the kernel knows of.
    pub(in crate::world) fn flushes(&self) -> bool {
        self.flushes
    }

    /// The task's fsync waits until what the device has acknowledged is on the medium. False: it is. Those who come while a
    /// flush is in flight share the next (`blk-flush.c`).
    pub(in crate::world) fn flush_for(&mut self, now: Time, task: TaskId) -> bool {
        if !self.flushes {
            return false;
        }
        let [in_flight, next] = &mut self.flush_waiters;
        if !in_flight.is_empty() {
            next.push(task);
            return true;
        }
        let waits = self.device.flush(now, self.sent.len() as u32);
        if waits {
            in_flight.push(task);
        }
        waits
    }

    /// The task waits until the device no longer wants those sectors. False: it takes no discards.
    pub(in crate::world) fn discard_for(&mut self, now: Time, task: TaskId, start: Sector, sectors: Sector) -> bool {
        let is_taken = !self.discards.is_empty() || self.device.discard(now, self.discard_tag(), start, sectors);
        if is_taken {
            self.discards.push_back((task, start, sectors));
        }
        is_taken
    }

    fn end_discard(&mut self, now: Time) {
        let ended = self.discards.pop_front();
        self.flushed.extend(ended.map(|(task, ..)| task));
        if let Some(&(_, start, sectors)) = self.discards.front() {
            self.device.discard(now, self.discard_tag(), start, sectors);
        }
    }

    /// No command has it.
    fn flush_tag(&self) -> u32 {
        self.sent.len() as u32
    }

    /// Nor this one.
    fn discard_tag(&self) -> u32 {
        self.sent.len() as u32 + 1
    }

    fn end_flush(&mut self, now: Time) {
        let [in_flight, next] = &mut self.flush_waiters;
        self.flushed.append(in_flight);
        std::mem::swap(in_flight, next);
        if !in_flight.is_empty() && !self.device.flush(now, self.sent.len() as u32) {
            self.flushed.append(&mut self.flush_waiters[0]);
        }
    }

    /// The request with that tag is completed, by that CPU if those are detailed.
    pub(super) fn completed(&mut self, now: Time, tag: u32, cpu: Option<u16>) {
        self.told_at = Some(now);
        let request = self.sent[tag as usize].take().expect("a device completes what it was sent");
        self.free_tags.push(tag);
        if let Some(polling) = &mut self.polling {
            polling.completed(now, self.queue.request(request));
        }
        match cpu {
            Some(cpu) => self.queue.completed_on(now, request, cpu, &mut self.done),
            None => self.queue.completed(now, request, &mut self.done),
        }
        self.queue.take_woken(&mut self.may_retry);
    }

    /// Whether the queue is asked for a request, or has its scheduler asked for one that it holds back.
    fn may_dispatch(&self) -> bool {
        let has_room = !self.free_tags.is_empty();
        has_room || self.queue.pulls_ahead() || self.peek && self.taken_ahead.is_none()
    }

    fn send_all(&mut self, now: Time) {
        let Some(costs) = self.run_costs else {
            while let Some(command) = self.next_command(now) {
                self.newly_sent.push(command.tag);
                self.device.submit(now, command);
            }
            return;
        };
        let has_scheduler = self.queue.has_scheduler();
        let costs = QueueRunCosts { dequeue_ns: if has_scheduler { costs.dequeue_ns } else { 0 }, ..costs };
        let mut commands = Vec::new();
        let mut are_single = Vec::new();
        while let Some(command) = self.next_command(now) {
            commands.push(command);
            are_single.push(self.queue.is_single());
        }
        // One CPU sends them, whoever has it: no two at once.
        let first_at = match self.sent_until {
            0 => now,
            last_at => now.max(last_at + costs.issue_ns),
        };
        for (at, command) in costs.times(first_at, &are_single).into_iter().zip(commands) {
            self.newly_sent.push(command.tag);
            self.device.submit(at, command);
            self.sent_until = at;
        }
    }

    /// What the device is sent next, if anything may go.
    fn next_command(&mut self, now: Time) -> Option<Command> {
        if self.taken_ahead.is_none() && self.may_dispatch() {
            self.taken_ahead = self.queue.dispatch(now);
        }
        let &tag = self.free_tags.last()?;
        let id = self.taken_ahead.take()?;
        self.free_tags.pop();
        let request = self.queue.request(id);
        let command = Command {
            tag,
            direction: request.direction,
            start: request.start,
            sectors: request.sectors,
            force_unit_access: request.force_unit_access && self.fua.is_some(),
            write_stream: request.write_stream,
        };
        self.sent[tag as usize] = Some(id);
        Some(command)
    }

    /// The request that was sent under that tag.
    pub(in crate::world) fn request(&self, tag: u32) -> &Request {
        let id = self.sent[tag as usize].expect("it was sent");
        self.queue.request(id)
    }

    /// By its flash, before `now`.
    pub(in crate::world) fn programmed(&mut self, now: Time) -> ProgrammedUnits {
        self.device.programmed(now)
    }

    /// Of its flash.
    pub(in crate::world) fn flash_space(&mut self, now: Time) -> FlashSpace {
        self.device.flash_space(now)
    }

    pub(in crate::world) fn queue(&self) -> &RequestQueue {
        &self.queue
    }

    /// The largest bio of direct I/O and of reading through the page cache.
    pub(in crate::world) fn bio_sectors_max(&self) -> u32 {
        self.bio_sectors_max
    }

    /// The largest bio in which its files are written back.
    pub(in crate::world) fn write_bio_sectors_max(&self) -> u32 {
        self.write_bio_sectors_max
    }

    /// Tasks can poll for its completions.
    pub(in crate::world) fn can_be_polled(&self) -> bool {
        self.polling.is_some()
    }

    /// How long a task sleeps before it looks for an operation of that direction.
    pub(in crate::world) fn nap_ns(&self, direction: Direction) -> Time {
        let polling = self.polling.as_ref().expect("it can be polled");
        polling.nap_ns(direction)
    }

    /// A task that writes waits: the queue's throttle holds writeback back.
    pub(in crate::world) fn held_a_writer(&mut self, now: Time) {
        self.queue.held_a_writer(now);
    }

    /// From here on its queue emits its events.
    pub(super) fn tap(&mut self) {
        self.queue.tap(self.number as u16);
    }

    pub(super) fn untap(&mut self) {
        self.queue.untap();
    }

    pub(super) fn take_events(&mut self, into: &mut Vec<QueueEvent>) {
        self.queue.take_events(into);
    }

    /// The task submits nothing any more.
    pub(in crate::world) fn exited(&mut self, now: Time, task: TaskId) {
        self.told_at = Some(now);
        self.queue.exited(now, task);
    }

    /// Whether its state of congestion in a direction has changed since it was asked last, and what it is now.
    pub(in crate::world) fn turned_congested(&mut self, direction: Direction) -> Option<bool> {
        let sync = direction == Direction::Read;
        let is = self.queue.is_congested(direction, sync);
        let was = std::mem::replace(&mut self.was_congested[direction as usize], is);
        (is != was).then_some(is)
    }
}
