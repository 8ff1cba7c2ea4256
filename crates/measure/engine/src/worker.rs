//! A group's thread: gets ready, waits for the common start, runs, hands over, and only then cleans up.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use workload::assemble::GroupMeasured;
use workload::phase::EngineKind;

use crate::affinity;
use crate::backend::libaio::Libaio;
use crate::backend::mmap::Mmap;
use crate::backend::null::Null;
use crate::backend::passthrough::Passthrough;
use crate::backend::serial::{Psync, Pvsync};
use crate::backend::uring::Uring;
use crate::backend::{IoQueue, Serial, Target};
use crate::call_flags::CallFlags;
use crate::clock::{Clock, Origin, Tsc};
use crate::error::{RunError, StartError};
use crate::files::OpenFile;
use crate::group::Group;
use crate::progress::PhaseState;
use crate::setup::PreparedGroup;

pub enum Message<M> {
    Ready(Result<(), StartError>),
    Over(usize, Result<M, RunError>),
}

/// Holds the threads until all are ready.
#[derive(Debug, Default)]
pub struct Gate {
    decision: Mutex<Option<Decision>>,
    decided: Condvar,
}

#[derive(Clone, Copy, Debug)]
pub enum Decision {
    Start(Origin),
    Abandon,
}

impl Gate {
    pub fn open(&self, decision: Decision) {
        *self.decision.lock().unwrap_or_else(PoisonError::into_inner) = Some(decision);
        self.decided.notify_all();
    }

    pub fn wait(&self) -> Decision {
        let mut decision = self.decision.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *decision {
                Some(decided) => return decided,
                None => decision = self.decided.wait(decision).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Moves the calling thread into a control group of version 1.
fn join(directory: &str) -> io::Result<()> {
    std::fs::write(Path::new(directory).join("tasks"), "0")
}

pub fn run(mut prepared: PreparedGroup, shared: Arc<PhaseState>, gate: &Gate, outbox: Sender<Message<GroupMeasured>>) {
    if let Some(cpus) = &prepared.spec.cpus
        && let Err(error) = affinity::pin(cpus)
    {
        prepared.notes.push(format!("pinning to CPUs {cpus:?} failed ({error}); running anywhere"));
    }
    affinity::wake_on_time();
    if let Some(cgroup) = &prepared.spec.cgroup
        && let Err(error) = join(cgroup)
    {
        let refused = StartError::os(&error, "can't join the control group", cgroup);
        return outbox.emit(Message::Ready(Err(refused)));
    }
    if prepared.spec.realtime
        && let Err(error) = affinity::realtime()
    {
        prepared.notes.push(format!("no real-time priority ({error}); other work on the CPUs may delay operations"));
    }
    let (poll, slots) = (prepared.poll, prepared.slots);
    let (mut group, spec, files) = match prepared.into_group(shared) {
        Ok(parts) => parts,
        Err(error) => {
            return outbox.emit(Message::Ready(Err(StartError::os(&error, "can't map the buffers", "memory"))));
        }
    };
    let targets = Target::all(&files);
    let buffers = Rc::clone(&group.buffers);
    let worker = Worker { name: spec.name.clone(), close_in_time: spec.close_in_time, files, gate, outbox };
    let flags = CallFlags::of_group(&spec);
    match spec.engine {
        EngineKind::IoUring => {
            let notes = &mut group.notes;
            let ring = Uring::new(&spec, slots, poll, targets, buffers, notes);
            worker.run_queued(group, ring, "io_uring");
        }
        EngineKind::IoUringCmd => {
            let notes = &mut group.notes;
            let ring = Passthrough::new(&spec, slots, poll, &worker.files, buffers, notes);
            worker.run_queued(group, ring, "io_uring_cmd");
        }
        EngineKind::Libaio => {
            let context = Libaio::new(slots, targets, buffers, flags);
            worker.run_queued(group, context, "libaio")
        }
        EngineKind::Null => worker.run_queued(group, Ok(Null::new(slots as usize)), "null"),
        EngineKind::Psync => worker.run_serial(group, Ok(Psync::new(targets, buffers)), "psync"),
        EngineKind::Pvsync => worker.run_serial(group, Ok(Pvsync::new(targets, buffers, flags, poll)), "pvsync"),
        EngineKind::Mmap => worker.run_serial(group, Mmap::new(targets, buffers), "mmap"),
    }
}

struct Worker<'a> {
    name: String,
    close_in_time: bool,
    files: Vec<Option<OpenFile>>,
    gate: &'a Gate,
    outbox: Sender<Message<GroupMeasured>>,
}

impl Worker<'_> {
    fn run_queued<B: IoQueue>(self, mut group: Group, backend: io::Result<B>, engine: &str) {
        let Some((mut backend, origin)) = self.ready(backend, engine) else {
            return;
        };
        group.shared.window.enter();
        let (outcome, now) = match own_clock(&group, origin) {
            Some(clock) => (group.run_queued(clock, &mut backend), clock.now()),
            None => (group.run_queued(origin.monotonic(), &mut backend), origin.monotonic().now()),
        };
        group.shared.window.leave();
        group.notes.extend(backend.notes());
        group.write_log(origin.monotonic_ns());
        let outcome = outcome.map_err(|error| RunError {
            errno: error.raw_os_error().unwrap_or(libc::EIO),
            what: format!("{engine} failed"),
            group: self.name.clone(),
        });
        let message = Message::Over(group.index, outcome.map(|()| group.measured(now)));
        if group.in_flight() == 0 {
            drop(backend);
            self.hand_over(message);
        } else {
            self.outbox.emit(message);
            group.drain(&mut backend);
        }
    }

    fn run_serial<B: Serial>(self, group: Group, backend: io::Result<B>, engine: &str) {
        let Some((backend, origin)) = self.ready(backend, engine) else {
            return;
        };
        match own_clock(&group, origin) {
            Some(clock) => self.finish_serial(group, backend, clock, origin),
            None => self.finish_serial(group, backend, origin.monotonic(), origin),
        }
    }

    fn finish_serial<B: Serial, C: Clock>(mut self, mut group: Group, mut backend: B, clock: C, origin: Origin) {
        group.shared.window.enter();
        group.run_serial(clock, &mut backend);
        group.notes.extend(backend.notes());
        if self.close_in_time {
            drop(backend);
            self.files.clear();
            group.closed(clock.now());
        }
        group.shared.window.leave();
        group.write_log(origin.monotonic_ns());
        let message = Message::Over(group.index, Ok(group.measured(clock.now())));
        self.hand_over(message);
    }

    /// Closes the files first: a caller that learns that the phase is over may unmount.
    fn hand_over(self, message: Message<GroupMeasured>) {
        drop(self.files);
        self.outbox.emit(message);
    }

    /// Reports whether this group can start, and waits for the others. None: not to start.
    fn ready<B>(&self, backend: io::Result<B>, engine: &str) -> Option<(B, Origin)> {
        match backend {
            Ok(backend) => {
                self.outbox.emit(Message::Ready(Ok(())));
                match self.gate.wait() {
                    Decision::Start(origin) => Some((backend, origin)),
                    Decision::Abandon => None,
                }
            }
            Err(error) => {
                let what = format!("can't set up {engine} for group {:?}", self.name);
                self.outbox.emit(Message::Ready(Err(StartError::os(&error, what, engine))));
                None
            }
        }
    }
}

/// The time stamp counter drifts from the kernel's clock by some parts per million: not what a log is compared by.
fn own_clock(group: &Group, origin: Origin) -> Option<Tsc> {
    match group.log {
        Some(_) => None,
        None => origin.tsc(),
    }
}

pub trait Emit<M> {
    fn emit(&self, message: Message<M>);
}

impl<M> Emit<M> for Sender<Message<M>> {
    /// Nobody listens any more once the handle is gone.
    fn emit(&self, message: Message<M>) {
        let _ = self.send(message);
    }
}
