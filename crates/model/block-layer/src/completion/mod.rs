//! From a device's interrupt to a completed request: which CPU does it, how it is notified, at what cost.
//!
//! Its owner makes requests (`begin`), reports interrupts, and hands back each `CompletionStep` that the processors
//! report as done.

mod route;
mod spec;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::QueueMap;
use events::SpecError;
use events::slab::{Id, Slab};
use events::smp::{CpuSet, Done, Kind, ObjectId, Processors, Rank, TaskNumber, TaskSpec, Work};
use events::time::Time;
pub use spec::{Affinity, CompletionSpec, CompletionVariant, RequestAffinity};

/// The completion path of one machine: lists and threads of its CPUs, its queues, and the requests in flight.
#[derive(Clone, Debug)]
pub struct Completions {
    spec: CompletionSpec,
    cpus: Vec<CpuCompletions>,
    queues: Vec<Queue>,
    requests: Slab<Request>,
    /// What function calls of the first variant go through, one at a time.
    calls: ObjectId,
}

/// A piece of work of completions is done: to be handed back with the CPU that did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionStep {
    /// The driver's handler has run for that request.
    Interrupted(RequestId),
    /// The softirq for that CPU's list runs.
    Softirq(u16),
    /// A function call carried this here.
    Called(Item),
    /// A message has come for that CPU's list.
    ListCalled(u16),
    /// That CPU's thread runs.
    Woken(u16),
    /// That request has been completed.
    Completed(RequestId),
    /// The bio with that token has been put into its queue.
    Entered(u32),
}

/// What goes from one CPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A request to be completed there.
    Complete(RequestId),
    /// By the owner's token.
    Enter(u32),
}

/// Results for the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bio with that token is in its queue.
    Entered {
        /// The owner's, as given to `enter`.
        token: u32,
        /// The CPU that queued it.
        cpu: u16,
    },
    /// A request is over; its name is free again.
    Completed {
        /// The queue's number, as `add_queue` returned it.
        queue: u32,
        /// The owner's, as given to `begin`.
        token: u32,
        /// The CPU that completed it.
        cpu: u16,
    },
}

/// The counters of one queue, as the two kernels of 2008 counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bios that were submitted on the CPU that puts them into the queue.
    pub queued_local: u64,
    /// Bios that were submitted on another CPU than that.
    pub queued_remote: u64,
    /// Requests whose interrupt came to the completion CPU or, if none is set, to the submitter (inferred).
    pub completed_local: u64,
    /// All other completed requests.
    pub completed_remote: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.queued_local += other.queued_local;
        self.queued_remote += other.queued_remote;
        self.completed_local += other.completed_local;
        self.completed_remote += other.completed_remote;
    }
}

impl std::ops::Sub for Counters {
    type Output = Counters;

    /// What has been counted since the other.
    fn sub(self, other: Counters) -> Counters {
        Counters {
            queued_local: self.queued_local - other.queued_local,
            queued_remote: self.queued_remote - other.queued_remote,
            completed_local: self.completed_local - other.completed_local,
            completed_remote: self.completed_remote - other.completed_remote,
        }
    }
}

/// Names a request from `begin` to its completion.
pub type RequestId = Id<Request>;

/// From submission to completion.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    queue: u32,
    token: u32,
    submitted_on: u16,
    objects: Objects,
}

/// Request, bios, and what the task sees of them.
type Objects = [ObjectId; 3];

#[derive(Clone, Debug)]
struct CpuCompletions {
    done: VecDeque<RequestId>,
    /// From other CPUs.
    handed_over: VecDeque<Item>,
    list: ObjectId,
    thread: Option<TaskNumber>,
}

#[derive(Clone, Debug)]
struct Queue {
    affinity: Affinity,
    counters: Counters,
    /// The hardware queue of each CPU.
    map: QueueMap,
    /// By hardware queue, free requests, still in the caches where they were completed.
    free: Vec<Vec<Objects>>,
}

impl Completions {
    /// Adds to the processors what the variant needs: a list for each CPU, one for calls, threads if it has them.
    pub fn new<T: Copy>(spec: CompletionSpec, smp: &mut Processors<T>) -> Completions {
        let cpus = (0..smp.cpus())
            .map(|cpu| CpuCompletions {
                done: VecDeque::new(),
                handed_over: VecDeque::new(),
                list: smp.add_object(Kind::CompletionList, spec.list_lines),
                thread: (spec.variant == CompletionVariant::Thread).then(|| {
                    smp.add_task(TaskSpec {
                        rank: Rank::Normal,
                        allowed: Some(CpuSet::of(smp.cpus(), [cpu])),
                        last_cpu: cpu,
                        sleeps_for_io: false,
                    })
                }),
            })
            .collect();
        Completions {
            spec,
            cpus,
            queues: Vec::new(),
            requests: Slab::new(),
            calls: smp.add_object(Kind::CallList, spec.list_lines),
        }
    }

    /// A new queue's number, from 0. The error names a setting that the variant does not have.
    pub fn add_queue(&mut self, affinity: Affinity, map: QueueMap) -> Result<u32, SpecError> {
        affinity.check(self.spec.variant)?;
        self.queues.push(Queue {
            affinity,
            counters: Counters::default(),
            free: vec![Vec::new(); usize::from(map.queues())],
            map,
        });
        Ok(self.queues.len() as u32 - 1)
    }

    /// A bio enters a queue. True: here and now, and its cost is the caller's. False: another CPU does it, and
    /// `Entered` comes with the token.
    pub fn enter<T: Copy + From<CompletionStep>>(
        &mut self,
        smp: &mut Processors<T>,
        now: Time,
        queue: u32,
        here: u16,
        token: u32,
    ) -> bool {
        let queue = &mut self.queues[queue as usize];
        let target = queue.affinity.queue.unwrap_or(here);
        if target == here {
            queue.counters.queued_local += 1;
            return true;
        }
        queue.counters.queued_remote += 1;
        if !smp.is_online(target) {
            return true;
        }
        self.hand_over(smp, now, here, target, Item::Enter(token));
        false
    }

    /// A new request of a bio that came from that CPU.
    pub fn begin<T: Copy>(&mut self, smp: &mut Processors<T>, queue: u32, cpu: u16, token: u32) -> RequestId {
        let of = &mut self.queues[queue as usize];
        let free = of.free[of.map.queue_of(cpu)].pop();
        let objects = free.unwrap_or_else(|| {
            [
                smp.add_object(Kind::Request, self.spec.request_lines),
                smp.add_object(Kind::Bio, self.spec.bio_lines),
                smp.add_object(Kind::ControlBlock, self.spec.control_block_lines),
            ]
        });
        self.requests.put(Request { queue, token, submitted_on: cpu, objects })
    }

    /// What is in the caches of those who work on the request.
    pub fn objects(&self, request: RequestId) -> [ObjectId; 3] {
        self.requests[request].objects
    }

    /// The device interrupts that CPU: the request is done.
    pub fn interrupt<T: Copy + From<CompletionStep>>(
        &mut self,
        smp: &mut Processors<T>,
        now: Time,
        cpu: u16,
        request: RequestId,
    ) {
        let work = Work::of(self.spec.interrupt_cycles)
            .stalled_for(self.spec.interrupt_stalled_cycles)
            .tagged(CompletionStep::Interrupted(request).into());
        smp.interrupt(now, cpu, work);
    }

    /// The cost of completing the request for the task that polled for it.
    pub fn polled<T: Copy + From<CompletionStep>>(&mut self, request: RequestId) -> Work<T> {
        let queue = self.requests[request].queue;
        self.queues[queue as usize].counters.completed_local += 1;
        self.completing(request)
    }

    /// Goes on from a step that the processors have done. None: the owner has nothing to do yet.
    pub fn handle<T: Copy + From<CompletionStep>>(
        &mut self,
        smp: &mut Processors<T>,
        step: Done<CompletionStep>,
    ) -> Option<Outcome> {
        let (now, here) = (step.at, step.cpu);
        match step.tag {
            CompletionStep::Interrupted(request) => self.route(smp, now, here, request),
            CompletionStep::Softirq(of) => {
                while let Some(request) = self.cpus[usize::from(of)].done.pop_front() {
                    let work = self.completing(request);
                    smp.softirq(now, here, work);
                }
            }
            CompletionStep::Called(item) => self.arrived(smp, now, here, item),
            CompletionStep::ListCalled(of) => {
                while let Some(item) = self.cpus[usize::from(of)].handed_over.pop_front() {
                    self.arrived(smp, now, here, item);
                }
            }
            CompletionStep::Woken(of) => {
                let thread = self.cpus[usize::from(of)].thread.expect("it was woken");
                while let Some(item) = self.cpus[usize::from(of)].handed_over.pop_front() {
                    let work = match item {
                        Item::Complete(request) => self.completing(request),
                        Item::Enter(token) => self.entering(token),
                    };
                    smp.wake(now, thread, None, work.of_kernel_thread());
                }
            }
            CompletionStep::Completed(request) => {
                let request = self.requests.take(request);
                let of = &mut self.queues[request.queue as usize];
                of.free[of.map.queue_of(request.submitted_on)].push(request.objects);
                return Some(Outcome::Completed { queue: request.queue, token: request.token, cpu: here });
            }
            CompletionStep::Entered(token) => return Some(Outcome::Entered { token, cpu: here }),
        }
        None
    }

    /// The counts of that queue since it was added.
    pub fn counters(&self, queue: u32) -> Counters {
        self.queues[queue as usize].counters
    }

    /// Requests between `begin` and `Completed`.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    fn route<T: Copy + From<CompletionStep>>(&mut self, smp: &mut Processors<T>, now: Time, here: u16, id: RequestId) {
        let request = self.requests[id];
        let queue = &mut self.queues[request.queue as usize];
        let affinity = queue.affinity;
        let has_several_queues = queue.map.queues() > 1;
        if route::compared_with(&affinity, request.submitted_on) == here {
            queue.counters.completed_local += 1;
        } else {
            queue.counters.completed_remote += 1;
        }
        let topology = smp.spec().topology;
        match route::target(&self.spec, &topology, &affinity, request.submitted_on, here) {
            Some(target) if smp.is_online(target) => {
                self.hand_over(smp, now, here, target, Item::Complete(id));
            }
            // A single queue's go through the softirq (`blk_mq_complete_request`, from 4.20 on).
            _ if self.spec.variant == CompletionVariant::MultiQueueDirect
                || self.spec.variant == CompletionVariant::MultiQueue && has_several_queues =>
            {
                let work = self.completing(id);
                smp.interrupt(now, here, work);
            }
            _ => {
                let more_cycles = match self.spec.variant {
                    CompletionVariant::RemoteSoftirq => self.spec.local_cycles,
                    _ => 0,
                };
                self.put_on_list(smp, now, here, id, more_cycles);
            }
        }
    }

    /// Onto the list of this CPU, whose softirq is raised if it was empty (the local half of `__blk_complete_request`).
    fn put_on_list<T: Copy + From<CompletionStep>>(
        &mut self,
        smp: &mut Processors<T>,
        now: Time,
        here: u16,
        request: RequestId,
        more_cycles: u32,
    ) {
        let done = &mut self.cpus[usize::from(here)].done;
        done.push_back(request);
        if done.len() == 1 {
            let work = Work::of(self.spec.softirq_cycles + more_cycles);
            smp.softirq(now, here, work.tagged(CompletionStep::Softirq(here).into()));
        }
    }

    /// `raise_blk_irq`.
    fn hand_over<T: Copy + From<CompletionStep>>(
        &mut self,
        smp: &mut Processors<T>,
        now: Time,
        here: u16,
        target: u16,
        item: Item,
    ) {
        let cycles = self.spec.hand_over_cycles;
        if self.spec.variant == CompletionVariant::RemoteSoftirq {
            smp.charge(now, here, Work::of(cycles).holding(self.calls, cycles));
            let handler =
                Work::of(self.spec.splice_cycles).touching(self.calls).tagged(CompletionStep::Called(item).into());
            smp.ipi(now, here, target, self.spec.call_ns, handler);
            return;
        }
        let per_cpu = &mut self.cpus[usize::from(target)];
        per_cpu.handed_over.push_back(item);
        let was_empty = per_cpu.handed_over.len() == 1;
        let lock = per_cpu.list;
        smp.charge(now, here, Work::of(cycles).holding(lock, cycles));
        if !was_empty {
            return;
        }
        let splice = Work::of(self.spec.splice_cycles).holding(lock, self.spec.splice_cycles);
        match per_cpu.thread {
            Some(thread) => {
                let work = splice.of_kernel_thread();
                smp.wake(now, thread, Some(here), work.tagged(CompletionStep::Woken(target).into()));
            }
            None => {
                let work = splice.tagged(CompletionStep::ListCalled(target).into());
                smp.ipi(now, here, target, 0, work);
            }
        }
    }

    /// `trigger_softirq`.
    fn arrived<T: Copy + From<CompletionStep>>(&mut self, smp: &mut Processors<T>, now: Time, here: u16, item: Item) {
        match item {
            // The message's function itself (`__blk_mq_complete_request_remote`).
            Item::Complete(request) if self.spec.variant == CompletionVariant::MultiQueueDirect => {
                let work = self.completing(request);
                smp.interrupt(now, here, work);
            }
            Item::Complete(request) => self.put_on_list(smp, now, here, request, 0),
            Item::Enter(token) => {
                let work = self.entering(token);
                smp.softirq(now, here, work);
            }
        }
    }

    fn completing<T: Copy + From<CompletionStep>>(&self, request: RequestId) -> Work<T> {
        let [first, second, third] = self.requests[request].objects;
        Work::of(self.spec.complete_cycles)
            .touching(first)
            .touching(second)
            .touching(third)
            .tagged(CompletionStep::Completed(request).into())
    }

    fn entering<T: Copy + From<CompletionStep>>(&self, token: u32) -> Work<T> {
        Work::of(self.spec.enter_cycles).tagged(CompletionStep::Entered(token).into())
    }
}
