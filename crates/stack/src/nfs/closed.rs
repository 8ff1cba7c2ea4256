//! Threads that each do direct I/O, one record after the other: a closed system round a mount.

use super::call::{Call, Operation};
use super::cpu::{Context, CpuTimes};
use super::draw::Draw;
use super::line::Line;
use super::mount::{Completed, Mount};
use super::spec::NfsSpec;
use crate::Impossible;
use crate::agenda::Agenda;
use crate::station::{Broken, Station};
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub operation: Operation,
    pub threads: u16,
    /// A call each; at most `DATA_BYTES_MAX`.
    pub record_bytes: u32,
    pub records_per_thread: u64,
}

/// Runs loads, one after the other, on one mount.
#[derive(Clone, Debug)]
pub struct Closed {
    spec: NfsSpec,
    seed: u64,
    mount: Mount,
    now: Time,
    cpu: CpuTimes,
    threads: Vec<Thread>,
    agenda: Agenda<Event>,
    /// The work items that end direct I/Os.
    completions: Line<u16>,
    thinking: Station,
}

#[derive(Clone, Debug)]
struct Thread {
    draw: Draw,
    records_left: u64,
    thinks_since: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Calls(u16),
    Completes(u16),
}

/// Streams of threads come after those of the mount's components.
const FIRST_THREAD_STREAM: u64 = 1 << 32;

impl Closed {
    pub fn new(spec: &NfsSpec, seed: u64) -> Result<Closed, Impossible> {
        Ok(Closed {
            mount: Mount::new(spec, seed)?,
            spec: spec.clone(),
            seed,
            now: 0,
            cpu: CpuTimes::default(),
            threads: Vec::new(),
            agenda: Agenda::new(),
            completions: Line::new(1),
            thinking: Station::default(),
        })
    }

    /// Runs a load to its end; how long it took, in nanoseconds.
    pub fn run(&mut self, load: &Load) -> Time {
        let began_at = self.now;
        self.begin(load);
        let mut completed = Vec::new();
        while let Some(at) = self.next_event(load) {
            self.now = at;
            while self.agenda.next_at() == Some(at) {
                match self.agenda.take() {
                    Some((_, Event::Calls(thread))) => self.call(load, thread),
                    Some((_, Event::Completes(thread))) => self.completed(load, thread),
                    None => unreachable!("one is due"),
                }
            }
            self.mount.advance(at, &mut completed);
            for done in completed.drain(..) {
                self.released(&done);
            }
        }
        self.now - began_at
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// Of all contexts.
    pub fn cpu(&self) -> CpuTimes {
        let mut cpu = self.cpu;
        for context in Context::ALL {
            cpu.add(context, self.mount.cpu().of(context));
        }
        cpu
    }

    pub fn check(&self) -> Result<(), Broken> {
        self.mount.check(self.now)?;
        self.completions.check("completions", self.now)?;
        let thinking = self.threads.iter().filter_map(|thread| thread.thinks_since);
        self.thinking.check("threads", self.now, thinking)
    }

    fn begin(&mut self, load: &Load) {
        let spread = self.spec.process.spread;
        for number in self.threads.len()..usize::from(load.threads) {
            let component = FIRST_THREAD_STREAM + number as u64;
            self.threads.push(Thread {
                draw: Draw::new(self.seed, component, spread),
                records_left: 0,
                thinks_since: None,
            });
        }
        for number in 0..load.threads {
            self.threads[usize::from(number)].records_left = load.records_per_thread;
            self.think(load, number);
        }
    }

    /// The flush timer outlasts a load; nobody waits for it.
    fn next_event(&self, load: &Load) -> Option<Time> {
        let threads = &self.threads[..usize::from(load.threads)];
        if self.mount.under_way() == 0
            && self.completions.is_idle()
            && threads.iter().all(|thread| thread.thinks_since.is_none())
        {
            return None;
        }
        [self.agenda.next_at(), self.mount.next_event()]
            .into_iter()
            .flatten()
            .min()
    }

    fn think(&mut self, load: &Load, number: u16) {
        let thread = &mut self.threads[usize::from(number)];
        if thread.records_left == 0 {
            return;
        }
        thread.records_left -= 1;
        thread.thinks_since = Some(self.now);
        self.thinking.enter(self.now);
        let process = &self.spec.process;
        let cpu_ns = thread.draw.around(process.cpu_ns.of(load.operation));
        let wait_ns = thread.draw.around(process.wait_ns.of(load.operation));
        self.cpu.add(Context::Process, cpu_ns);
        self.agenda
            .put(self.now + cpu_ns + wait_ns, Event::Calls(number));
    }

    fn call(&mut self, load: &Load, number: u16) {
        let thread = &mut self.threads[usize::from(number)];
        let since = thread.thinks_since.take().expect("it thought");
        self.thinking.leave(self.now, since);
        let call = Call {
            tag: u64::from(number),
            operation: load.operation,
            data_bytes: load.record_bytes,
        };
        self.mount.submit(self.now, call);
    }

    fn released(&mut self, done: &Completed) {
        self.completions.arrive(self.now, done.call.tag as u16);
        self.complete_next();
    }

    fn completed(&mut self, load: &Load, number: u16) {
        self.completions.finish(self.now, number);
        self.complete_next();
        self.think(load, number);
    }

    fn complete_next(&mut self) {
        if let Some(number) = self.completions.start() {
            let thread = &mut self.threads[usize::from(number)];
            let work_ns = thread.draw.around(self.spec.process.completion_ns);
            self.cpu.add(Context::Rpciod, work_ns);
            self.agenda
                .put(self.now + work_ns, Event::Completes(number));
        }
    }
}
