//! A running phase, as its caller sees it: look, stop, wait.

use std::fmt::Debug;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use workload::assemble::{GroupMeasured, assemble};
use workload::phase::Phase;
use workload::record::{PhaseRecord, Snapshot};

use crate::caches::drop_caches;
use crate::clock::{Origin, monotonic_ns, unix_ns};
use crate::error::{RunError, StartError};
use crate::marker;
use crate::memory::Memory;
use crate::outcome::{Outcome, Start};
use crate::panics;
use crate::progress::PhaseState;
use crate::schedule_file;
use crate::setup::prepare;
use crate::worker::{Decision, Gate, Message, run};

/// A phase whose threads run. Dropping it stops them.
#[derive(Debug)]
pub struct Handle<W: Work = Phase> {
    shared: Arc<PhaseState>,
    start: Start,
    warm_up_ns: u64,
    stop_asked: OnceLock<Instant>,
    inbox: Mutex<Inbox<W>>,
}

/// What runs under a handle: what each of its threads yields, and the record that is made of it.
pub trait Work: Send + Debug + 'static {
    /// What one thread yields.
    type Measurement: Send + Debug + 'static;
    /// What a caller gets when all threads are done.
    type Record: Clone + Send + Debug;
    /// Makes the record of what the threads yielded.
    fn record(&self, outcome: Outcome<Self::Measurement>) -> Self::Record;
}

#[derive(Debug)]
struct Inbox<W: Work> {
    work: W,
    receiver: Receiver<Message<W::Measurement>>,
    results: Vec<Option<W::Measurement>>,
    over: usize,
    start_notes: Vec<String>,
    finished: Option<Result<W::Record, RunError>>,
}

/// A stopped thread that is still not back after this long is stuck in the kernel: it is left there and named.
const GRACE: Duration = Duration::from_millis(90);
/// How long a stopped thread is waited for that only waits for a CPU.
const GRACE_FOR_A_CPU: Duration = Duration::from_secs(10);

/// Checks everything, opens the files, and starts. Nothing was read or written when this fails.
pub fn start(mut phase: Phase, memory: Arc<Memory>) -> Result<Handle, StartError> {
    schedule_file::attach(&mut phase).map_err(StartError::spec)?;
    let prepared = prepare(&phase, &memory)?;
    let start_notes = if phase.drop_caches { drop_caches(&prepared)? } else { Vec::new() };
    let warm_up_ns = phase.warm_up_ns;
    let to_stop = phase.stops_with.as_ref().map_or(usize::MAX, |stops| stops.count());
    let shared = PhaseState::new(prepared.len(), to_stop);
    begin(phase, prepared, run, shared, (warm_up_ns, start_notes))
}

impl Work for Phase {
    type Measurement = GroupMeasured;
    type Record = PhaseRecord;

    fn record(&self, outcome: Outcome<GroupMeasured>) -> PhaseRecord {
        let mut record = assemble(self, outcome.circumstances(), outcome.results);
        if let Some(first) = record.groups.first_mut() {
            first.notes.extend(outcome.start_notes);
        }
        record
    }
}

/// What a thread does with its share of the work: it gets ready, waits at the gate, and reports what it measured.
pub(crate) type ThreadMain<P, M> = fn(P, Arc<PhaseState>, &Gate, Sender<Message<M>>);

/// Runs each of `prepared` on a thread of its own, all from one instant on.
pub(crate) fn begin<W: Work, P: Send + 'static>(
    work: W,
    prepared: Vec<P>,
    run: ThreadMain<P, W::Measurement>,
    shared: PhaseState,
    (warm_up_ns, start_notes): (u64, Vec<String>),
) -> Result<Handle<W>, StartError> {
    let shared = Arc::new(shared);
    let gate = Arc::new(Gate::default());
    let (outbox, receiver) = channel();
    let threads = prepared.len();
    for (index, prepared) in prepared.into_iter().enumerate() {
        let (shared, thread_gate, outbox) = (Arc::clone(&shared), Arc::clone(&gate), outbox.clone());
        let thread = std::thread::Builder::new().name(format!("iolab-{index}"));
        let spawned = thread.spawn(move || {
            panics::end_the_process();
            run(prepared, shared, &thread_gate, outbox);
        });
        if let Err(error) = spawned {
            gate.open(Decision::Abandon);
            return Err(StartError::os(&error, "can't start a thread", "thread"));
        }
    }
    for _ in 0..threads {
        if let Ok(Message::Ready(Err(refused))) = receiver.recv() {
            gate.open(Decision::Abandon);
            return Err(refused);
        }
    }
    marker::wait();
    let origin = Origin::now();
    let start = Start { origin, monotonic_ns: monotonic_ns(), unix_ns: unix_ns() };
    gate.open(Decision::Start(origin));
    let results = (0..threads).map(|_| None).collect();
    let inbox = Inbox { work, receiver, results, over: 0, start_notes, finished: None };
    Ok(Handle { shared, start, warm_up_ns, stop_asked: OnceLock::new(), inbox: Mutex::new(inbox) })
}

impl<W: Work> Handle<W> {
    /// How far the phase is. Never waits for the threads.
    pub fn snapshot(&self) -> Snapshot {
        let elapsed_ns = monotonic_ns().saturating_sub(self.start.monotonic_ns);
        let done = match self.inbox.try_lock() {
            Ok(mut inbox) => {
                self.collect(&mut inbox, Instant::now());
                inbox.finished.is_some()
            }
            // Someone waits for the end, so it has not come.
            Err(_) => false,
        };
        let counts = self.shared.counts();
        Snapshot {
            elapsed_ns,
            ops: counts.ops,
            bytes: counts.bytes,
            errors: counts.errors,
            fraction: counts.fraction,
            warming_up: elapsed_ns < self.warm_up_ns,
            done,
        }
    }

    /// Everything ends soon: within 100 ms `wait` has a record, also when the device hangs; later only if the threads
    /// have not run since, on a machine that is short of CPUs.
    pub fn stop(&self) {
        self.stop_asked.get_or_init(Instant::now);
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// None when the phase is still running after `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<Result<W::Record, RunError>> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        self.collect(&mut inbox, Instant::now() + timeout);
        inbox.finished.clone()
    }

    /// Takes in results until the phase is over or the time has come.
    fn collect(&self, inbox: &mut Inbox<W>, until: Instant) {
        while inbox.finished.is_none() {
            let now = Instant::now();
            let given_up_at = self.stop_asked.get().map(|&asked| given_up_at(asked, now));
            if inbox.over == inbox.results.len() || given_up_at.is_some_and(|at| now >= at) {
                inbox.finished = Some(Ok(self.record(inbox)));
                return;
            }
            // In short steps, because another thread may ask for a stop meanwhile.
            let step = given_up_at.unwrap_or(now + GRACE).min(until).saturating_duration_since(now);
            match inbox.receiver.recv_timeout(step) {
                Ok(Message::Over(thread, Ok(measured))) => {
                    inbox.results[thread] = Some(measured);
                    inbox.over += 1;
                }
                Ok(Message::Over(_, Err(failed))) => {
                    self.shared.stop.store(true, Ordering::Relaxed);
                    inbox.finished = Some(Err(failed));
                }
                Ok(Message::Ready(_)) => {}
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => return,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => inbox.over = inbox.results.len(),
            }
        }
    }

    fn record(&self, inbox: &mut Inbox<W>) -> W::Record {
        let results = std::mem::take(&mut inbox.results);
        inbox.work.record(Outcome {
            start: self.start,
            stopped: self.stop_asked.get().is_some(),
            results,
            start_notes: std::mem::take(&mut inbox.start_notes),
        })
    }
}

/// When threads that were asked to stop are given up. On a machine that is short of CPUs they may not have run since.
fn given_up_at(asked: Instant, now: Instant) -> Instant {
    let at = asked + GRACE;
    if now < at || now >= asked + GRACE_FOR_A_CPU || !waits_for_a_cpu() {
        return at;
    }
    now + GRACE
}

/// Whether a thread of an engine, or one that works for its io_uring, has to run and does not, or does now.
fn waits_for_a_cpu() -> bool {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return false;
    };
    tasks.flatten().any(|task| {
        // "PID (NAME) STATE ..."
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
        (name.contains("(iolab-") || name.contains("(iou-wrk")) && rest.starts_with(" R")
    })
}

impl<W: Work> Drop for Handle<W> {
    fn drop(&mut self) {
        self.stop();
    }
}
