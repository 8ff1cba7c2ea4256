//! The client and its server as one state machine; `transmit` and `receive` have its halves.

use super::call::{Call, DATA_BYTES_MAX};
use super::counters::Counters;
use super::cpu::{Context, CpuTimes};
use super::draw::Draw;
use super::fifo::{Fifo, Worker};
use super::iommu::{Demand, FLUSH_TIMEOUT_NS, Iommu, User};
use super::ring::SendRing;
use super::slots::{Credits, Slots};
use super::spec::NfsSpec;
use super::stages::Tasks;
use super::task::{Stage, Task, TaskId};
use events::SpecError;
use events::event_queue::EventQueue;
use events::station::{Station, Violation};
use events::time::Time;
use kernels::rpcrdma::TransportRules;

/// An NFS client over RDMA with its server, from a call to its release.
#[derive(Clone, Debug)]
pub struct Mount {
    pub(super) spec: NfsSpec,
    pub(super) rules: TransportRules,
    pub(super) events: EventQueue<Event>,
    pub(super) tasks: Tasks,
    pub(super) slots: Slots,
    pub(super) credits: Credits,
    pub(super) ring: SendRing,
    /// The write lock: its holder sends for all that wait.
    pub(super) transmitter: Fifo<TaskId>,
    pub(super) iommu: Iommu,
    /// Who works with the IOMMU or beside it, since when, and what is left when the lock is given back.
    working: [(Time, Time); 4],
    pub(super) server: Fifo<TaskId>,
    pub(super) receive_worker: Worker<TaskId>,
    pub(super) send_worker: Worker<u16>,
    pub(super) signalled: Station,
    /// A completion queue is in order.
    pub(super) send_acked_at: Time,
    pub(super) free_regions: u64,
    pub(super) draws: Draws,
    pub(super) counters: Counters,
    pub(super) cpu: CpuTimes,
}

/// A call that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedCall {
    /// What was called.
    pub call: Call,
    /// When its task started.
    pub submitted_at: Time,
    /// When its task was released.
    pub at: Time,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A worker runs the task.
    Started(TaskId),
    Encoded(TaskId),
    AtServer(TaskId),
    Served(TaskId),
    Replied(TaskId),
    ReceiveWoken,
    /// The receive worker has found the reply's request.
    Found,
    SendAcked(u16),
    SendWoken,
    Released(TaskId),
    Unlocked,
    Done(User),
    FlushTimer,
}

/// A stream per component.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    pub(super) rpciod_wakeup: Draw,
    pub(super) rpciod: Draw,
    pub(super) transmit: Draw,
    pub(super) server: Draw,
    pub(super) receive_wakeup: Draw,
    pub(super) receive: Draw,
    pub(super) send_wakeup: Draw,
    pub(super) send: Draw,
}

impl Mount {
    /// Mounted at time 0.
    pub fn new(spec: &NfsSpec, seed: u64) -> Result<Mount, SpecError> {
        spec.check()?;
        let rules = spec.transport.rules();
        Ok(Mount {
            spec: spec.clone(),
            rules,
            events: EventQueue::new(),
            tasks: Tasks::default(),
            slots: Slots::new(rules.slots, rules.send_buffer_bytes),
            credits: Credits::new(),
            ring: SendRing::new(rules.slots),
            transmitter: Fifo::new(1),
            iommu: Iommu::new(&spec.iommu),
            working: [(0, 0); 4],
            server: Fifo::new(spec.server.threads),
            receive_worker: Worker::new(),
            send_worker: Worker::new(),
            signalled: Station::default(),
            send_acked_at: 0,
            free_regions: 0,
            draws: Draws::new(spec, seed),
            counters: Counters::default(),
            cpu: CpuTimes::default(),
        })
    }

    /// From here on all times are drawn anew.
    pub fn reseed(&mut self, seed: u64) {
        self.draws = Draws::new(&self.spec, seed);
    }

    /// Takes a call; any number may be in flight.
    pub fn submit(&mut self, now: Time, call: Call) {
        debug_assert!(call.data_bytes <= DATA_BYTES_MAX);
        let task = self.tasks.start(now, Task::new(call, now));
        let wakeup_ns = self.draws.rpciod_wakeup.around(self.spec.costs.rpciod_wakeup_ns);
        self.events.put(now + wakeup_ns, Event::Started(task));
    }

    /// When `advance` has something to do.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.events.next_at()
    }

    /// Does what is due up to `now`, and appends what has completed, in order of completion.
    pub fn advance(&mut self, now: Time, completed: &mut Vec<CompletedCall>) {
        while self.events.next_at().is_some_and(|at| at <= now) {
            let (at, event) = self.events.take().expect("one is due");
            match event {
                Event::Started(task) => self.started(at, task),
                Event::Encoded(task) => self.encoded(at, task),
                Event::AtServer(task) => self.at_server(at, task),
                Event::Served(task) => self.served(at, task),
                Event::Replied(task) => self.replied(at, task),
                Event::ReceiveWoken => self.receive_woken(at),
                Event::Found => self.found(at),
                Event::SendAcked(context) => self.send_acked(at, context),
                Event::SendWoken => self.send_woken(at),
                Event::Released(task) => completed.push(self.released(at, task)),
                Event::Unlocked => self.unlocked(at),
                Event::Done(user) => self.done(at, user),
                Event::FlushTimer => {
                    let demand = self.iommu.flush_in_time();
                    self.work(at, User::FlushTimer, demand);
                }
            }
        }
    }

    /// What the RPC layer and the transport have counted since the mount.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The kernel's share; a process's own is its driver's.
    pub fn cpu(&self) -> &CpuTimes {
        &self.cpu
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        self.tasks.len()
    }

    /// Conservation and Little's law at every station, and that nothing is given out twice.
    pub fn check(&self, now: Time) -> Result<(), Violation> {
        self.tasks.check(now)?;
        self.transmitter.check("write lock", now)?;
        self.server.check("server", now)?;
        self.receive_worker.check("receive worker", now)?;
        self.send_worker.check("send worker", now)?;
        self.iommu.check(now)?;
        self.signalled.check("signalled Sends", now, self.ring.signalled_since())?;
        let violated = |what: String| Err(Violation { station: "mount".to_owned(), what });
        if self.slots.used() > usize::from(self.rules.slots) {
            return violated(format!("{} slots are taken", self.slots.used()));
        }
        if self.credits.used() > self.rules.credits {
            return violated(format!("{} credits are taken", self.credits.used()));
        }
        Ok(())
    }

    /// Begins a piece of work that may need the IOMMU's lock first; `done` follows it.
    pub(super) fn work(&mut self, now: Time, user: User, demand: Demand) {
        self.working[user as usize] = (now, demand.free_ns);
        if demand.locked_ns == 0 {
            self.events.put(now + demand.free_ns, Event::Done(user));
        } else if let Some(at) = self.iommu.lock(now, user, demand.locked_ns) {
            self.events.put(at, Event::Unlocked);
        }
    }

    /// Something may have been put in the flush queue.
    pub(super) fn set_flush_timer(&mut self, now: Time) {
        if self.iommu.wants_timer() {
            self.events.put(now + FLUSH_TIMEOUT_NS, Event::FlushTimer);
        }
    }

    /// The reply is handled or the Send unmapped (`rpcrdma_complete_rqst`): the last of both wakes the task.
    pub(super) fn complete_if_both(&mut self, now: Time, task: TaskId) {
        if !self.tasks.of(task).halves.are_both() {
            return;
        }
        self.tasks.enter(now, task, Stage::Finish);
        let costs = &self.spec.costs;
        let decode_ns = costs.decode_ns.of(self.tasks.of(task).call.operation);
        let wakeup_ns = self.draws.rpciod_wakeup.around(costs.rpciod_wakeup_ns);
        let decode_ns = self.draws.rpciod.around(decode_ns);
        self.cpu.add(Context::Rpciod, decode_ns);
        self.events.put(now + wakeup_ns + decode_ns, Event::Released(task));
    }

    fn started(&mut self, now: Time, task: TaskId) {
        self.tasks.enter(now, task, Stage::Backlog);
        if let Some(slot) = self.slots.reserve(task) {
            self.encode(now, task, slot);
        }
    }

    /// `call_encode`.
    fn encode(&mut self, now: Time, task: TaskId, slot: u16) {
        self.tasks.enter(now, task, Stage::Encode);
        let state = self.tasks.of_mut(task);
        state.slot = Some(slot);
        let grown_bytes = self.slots.grow(slot, state.call.head_bytes());
        self.counters.grown_bytes += u64::from(grown_bytes);
        let encode_ns = self.spec.costs.encode_ns.of(state.call.operation);
        let encode_ns = self.draws.rpciod.around(encode_ns);
        self.cpu.add(Context::Rpciod, encode_ns);
        self.events.put(now + encode_ns, Event::Encoded(task));
    }

    fn encoded(&mut self, now: Time, task: TaskId) {
        self.tasks.enter(now, task, Stage::Transmit);
        self.transmitter.arrive(now, task);
        self.transmit_next(now);
    }

    /// Slot and credit come back, and the caller is notified.
    fn released(&mut self, now: Time, task: TaskId) -> CompletedCall {
        let task = self.tasks.finish(now, task);
        self.counters.completed(&task.call, task.stamped_at - task.started_at, task.rtt_ns, now - task.started_at);
        let slot = task.slot.expect("it was sent");
        if let Some(next) = self.slots.release(slot) {
            self.encode(now, next, slot);
        }
        self.credits.give_back();
        self.transmit_next(now);
        CompletedCall { call: task.call, submitted_at: task.started_at, at: now }
    }

    fn unlocked(&mut self, now: Time) {
        let (user, next_at) = self.iommu.unlock(now);
        if let Some(at) = next_at {
            self.events.put(at, Event::Unlocked);
        }
        let (_, left_ns) = self.working[user as usize];
        self.events.put(now + left_ns, Event::Done(user));
    }

    fn done(&mut self, now: Time, user: User) {
        let (since, _) = self.working[user as usize];
        self.cpu.add(user.context(), now - since);
        match user {
            User::Transmitter => self.transmitted(now),
            User::ReceiveWorker => self.reply_handled(now),
            User::SendWorker => self.send_unmapped(now),
            User::FlushTimer => self.set_flush_timer(now),
        }
    }
}

impl User {
    fn context(self) -> Context {
        match self {
            User::Transmitter => Context::Rpciod,
            User::ReceiveWorker => Context::Receive,
            User::SendWorker => Context::Send,
            User::FlushTimer => Context::Timer,
        }
    }
}

impl Draws {
    fn new(spec: &NfsSpec, seed: u64) -> Draws {
        let (wakeup, work) = (spec.costs.wakeup_spread, spec.costs.work_spread);
        Draws {
            rpciod_wakeup: Draw::new(seed, 0, wakeup),
            rpciod: Draw::new(seed, 1, work),
            transmit: Draw::new(seed, 2, work),
            server: Draw::new(seed, 3, spec.server.spread),
            receive_wakeup: Draw::new(seed, 4, wakeup),
            receive: Draw::new(seed, 5, work),
            send_wakeup: Draw::new(seed, 6, wakeup),
            send: Draw::new(seed, 7, work),
        }
    }
}
