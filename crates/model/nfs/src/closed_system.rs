//! Threads that each do direct I/O, one record after the other: a closed system round a mount.

use super::cpu::CpuTimes;
use super::direct::{DirectIo, Request};
use super::mount::Mount;
use super::operation::Operation;
use super::spec::NfsSpec;
use events::event_queue::EventQueue;
use events::station::Violation;
use events::time::Time;
use events::{Component, SpecError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub operation: Operation,
    pub threads: u16,
    pub record_bytes: u32,
    pub records_per_thread: u64,
}

/// Runs loads, one after the other, on one mount.
#[derive(Clone, Debug)]
pub struct ClosedSystem {
    io: DirectIo,
    now: Time,
    records_left: Vec<u64>,
    /// When threads have had their CPU time.
    events: EventQueue<u32>,
}

impl ClosedSystem {
    pub fn new(spec: &NfsSpec, seed: u64) -> Result<ClosedSystem, SpecError> {
        Ok(ClosedSystem { io: DirectIo::new(spec, seed)?, now: 0, records_left: Vec::new(), events: EventQueue::new() })
    }

    /// Runs a load to its end; how long it took, in nanoseconds.
    pub fn run(&mut self, load: &Load) -> Time {
        let began_at = self.now;
        self.records_left = vec![load.records_per_thread; usize::from(load.threads)];
        for thread in 0..load.threads {
            self.think(load, u32::from(thread));
        }
        let mut done = Vec::new();
        // The flush timer outlasts a load; no task waits for it.
        while !self.events.is_empty() || self.io.in_flight() > 0 {
            let next = [self.events.next_at(), self.io.next_event()];
            self.now = next.into_iter().flatten().min().expect("one is due");
            while self.events.next_at() == Some(self.now) {
                let (_, thread) = self.events.take().expect("one is due");
                let request = Request { tag: thread, thread, operation: load.operation, bytes: load.record_bytes };
                self.io.start(self.now, request);
            }
            self.io.advance(self.now);
            self.io.take_effects(&mut done);
            for thread in done.drain(..) {
                self.think(load, thread);
            }
        }
        self.now - began_at
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn mount(&self) -> &Mount {
        self.io.mount()
    }

    /// The CPU times of all contexts.
    pub fn cpu(&self) -> CpuTimes {
        self.io.cpu()
    }

    pub fn check(&self) -> Result<(), Violation> {
        self.io.check(self.now)
    }

    fn think(&mut self, load: &Load, thread: u32) {
        let left = &mut self.records_left[thread as usize];
        if *left > 0 {
            *left -= 1;
            let cpu_ns = self.io.cpu_ns(thread, load.operation);
            self.events.put(self.now + cpu_ns, thread);
        }
    }
}
