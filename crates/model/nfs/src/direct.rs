//! Direct I/O of threads on a mount: what of it lies outside the RPC layer, and the calls that it makes.
//!
//! A thread spends CPU time (`cpu_ns`), which is its driver's to let pass, then `start`s: it waits, calls once for each
//! `DATA_BYTES_MAX`, and when all calls are released a work item ends the I/O, one at a time for all threads. What was
//! read is ended where its last call is released; a write is queued to nfsiod first (`nfs_direct_write_complete`).

use super::call::{Call, DATA_BYTES_MAX};
use super::cpu::{Context, CpuTimes};
use super::draw::Draw;
use super::fifo::Fifo;
use super::mount::{CompletedCall, Mount};
use super::operation::Operation;
use super::spec::{CostSpec, NfsSpec, ProcessSpec};
use events::event_queue::EventQueue;
use events::slab::{Id, Slab};
use events::station::{Station, Violation};
use events::time::Time;
use events::{Component, SpecError};

/// The direct I/O of all threads on one mount.
#[derive(Clone, Debug)]
pub struct DirectIo {
    process: ProcessSpec,
    costs: CostSpec,
    mount: Mount,
    seed: u64,
    nfsiod_wakeup: Draw,
    /// By thread.
    draws: Vec<Draw>,
    requests: Slab<PendingRequest>,
    events: EventQueue<Event>,
    waiting: Station,
    /// The work items that end direct I/Os.
    completions: Fifo<RequestId>,
    cpu: CpuTimes,
    released: Vec<CompletedCall>,
    done: Vec<u32>,
}

/// What a thread asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's, handed back with the result.
    pub tag: u32,
    /// The thread's number, from 0.
    pub thread: u32,
    /// What is done with the data.
    pub operation: Operation,
    /// How much, from the start of a page on.
    pub bytes: u32,
}

#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    request: Request,
    /// While it waits.
    waits_since: Option<Time>,
    calls_left: u32,
}

type RequestId = Id<PendingRequest>;

#[derive(Clone, Copy, Debug)]
enum Event {
    Calls(RequestId),
    /// A worker runs the work item of a write.
    Woken(RequestId),
    Completes(RequestId),
}

/// Streams of threads come after those of the mount's components.
const FIRST_THREAD_STREAM: u64 = 1 << 32;
const NFSIOD_STREAM: u64 = FIRST_THREAD_STREAM - 1;

fn nfsiod_wakeup(costs: &CostSpec, seed: u64) -> Draw {
    Draw::new(seed, NFSIOD_STREAM, costs.wakeup_spread)
}

impl Component for DirectIo {
    /// The tag of a request that is done.
    type Effect = u32;

    #[inline]
    fn next_event(&self) -> Option<Time> {
        [self.events.next_at(), self.mount.next_event()].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Time) {
        while let Some(at) = self.next_event().filter(|&at| at <= now) {
            while self.events.next_at() == Some(at) {
                match self.events.take() {
                    Some((_, Event::Calls(id))) => self.call(at, id),
                    Some((_, Event::Woken(id))) => self.woken(at, id),
                    Some((_, Event::Completes(id))) => self.completed(at, id),
                    None => unreachable!("one is due"),
                }
            }
            let mut released = std::mem::take(&mut self.released);
            self.mount.advance(at, &mut released);
            for call in released.drain(..) {
                self.released(at, &call);
            }
            self.released = released;
        }
    }

    fn take_effects(&mut self, into: &mut Vec<u32>) {
        into.append(&mut self.done);
    }

    /// Conservation and Little's law for the I/Os here and for the calls in the mount.
    fn check(&self, now: Time) -> Result<(), Violation> {
        self.mount.check(now)?;
        self.completions.check("completions", now)?;
        let waiting = self.requests.iter().filter_map(|(_, request)| request.waits_since);
        self.waiting.check("before the RPC layer", now, waiting)
    }
}

impl DirectIo {
    /// An idle mount; an error names the key of the specification that is wrong.
    pub fn new(spec: &NfsSpec, seed: u64) -> Result<DirectIo, SpecError> {
        Ok(DirectIo {
            process: spec.process,
            costs: spec.costs,
            mount: Mount::new(spec, seed)?,
            seed,
            nfsiod_wakeup: nfsiod_wakeup(&spec.costs, seed),
            draws: Vec::new(),
            requests: Slab::new(),
            events: EventQueue::new(),
            waiting: Station::default(),
            completions: Fifo::new(1),
            cpu: CpuTimes::default(),
            released: Vec::new(),
            done: Vec::new(),
        })
    }

    /// From here on all times are drawn anew.
    pub fn reseed(&mut self, seed: u64) {
        self.seed = seed;
        self.nfsiod_wakeup = nfsiod_wakeup(&self.costs, seed);
        self.draws.clear();
        self.mount.reseed(seed);
    }

    /// The thread's own CPU time for its next I/O: passes before `start`.
    pub fn cpu_ns(&mut self, thread: u32, operation: Operation) -> Time {
        let mean_ns = self.process.cpu_ns.of(operation);
        let cpu_ns = self.draw(thread).around(mean_ns);
        self.cpu.add(Context::Process, cpu_ns);
        cpu_ns
    }

    /// Takes a request; any number may be in flight.
    pub fn start(&mut self, now: Time, request: Request) {
        let mean_ns = self.process.wait_ns.of(request.operation);
        let wait_ns = self.draw(request.thread).around(mean_ns);
        self.waiting.enter(now);
        let id = self.requests.put(PendingRequest {
            request,
            waits_since: Some(now),
            calls_left: request.bytes.div_ceil(DATA_BYTES_MAX),
        });
        self.events.put(now + wait_ns, Event::Calls(id));
    }

    /// Something has been done that is not reported yet.
    pub fn has_effects(&self) -> bool {
        !self.done.is_empty()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// The RPC client below.
    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// The CPU times of all contexts.
    pub fn cpu(&self) -> CpuTimes {
        let mut cpu = self.cpu;
        for context in Context::ALL {
            cpu.add(context, self.mount.cpu().of(context));
        }
        cpu
    }

    fn call(&mut self, now: Time, id: RequestId) {
        let PendingRequest { request, waits_since, .. } = &mut self.requests[id];
        let since = waits_since.take().expect("it waited");
        self.waiting.leave(now, since);
        let mut left_bytes = request.bytes;
        while left_bytes > 0 {
            let data_bytes = left_bytes.min(DATA_BYTES_MAX);
            left_bytes -= data_bytes;
            let call = Call { tag: u64::from(id.number()), operation: request.operation, data_bytes };
            self.mount.submit(now, call);
        }
    }

    fn released(&mut self, now: Time, call: &CompletedCall) {
        let id = self.requests.id(call.call.tag as u32);
        let request = &mut self.requests[id];
        request.calls_left -= 1;
        if request.calls_left > 0 {
            return;
        }
        match call.call.operation {
            Operation::Read => self.woken(now, id),
            Operation::Write => {
                let wakeup_ns = self.nfsiod_wakeup.around(self.costs.rpciod_wakeup_ns);
                self.events.put(now + wakeup_ns, Event::Woken(id));
            }
        }
    }

    fn woken(&mut self, now: Time, id: RequestId) {
        self.completions.arrive(now, id);
        self.complete_next(now);
    }

    fn completed(&mut self, now: Time, id: RequestId) {
        self.completions.finish(now, id);
        self.complete_next(now);
        self.done.push(self.requests.take(id).request.tag);
    }

    fn complete_next(&mut self, now: Time) {
        if let Some(id) = self.completions.start() {
            let thread = self.requests[id].request.thread;
            let mean_ns = self.process.completion_ns;
            let work_ns = self.draw(thread).around(mean_ns);
            self.cpu.add(Context::Rpciod, work_ns);
            self.events.put(now + work_ns, Event::Completes(id));
        }
    }

    fn draw(&mut self, thread: u32) -> &mut Draw {
        for number in self.draws.len() as u64..=u64::from(thread) {
            let component = FIRST_THREAD_STREAM + number;
            self.draws.push(Draw::new(self.seed, component, self.process.spread));
        }
        &mut self.draws[thread as usize]
    }
}
