//! A simulated machine at work on a thread of its own: the same handle as a real load's, in simulated time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::SpecError;
use engine::panics::caught;
use engine::{BUILD_PROFILE, schedule_file, unix_ns};
use stack::machine::MachineSpec;
use stack::model::{AnyPhase, Model, ObservedPhase, Record};
use workload::record::Snapshot;

/// A machine, switched on. Its phases run one after the other.
pub struct Simulation {
    state: Mutex<State>,
    shared: Arc<SharedProgress>,
}

enum State {
    Idle(Box<Model>),
    Running(Receiver<Done>),
    /// The model panicked: a defect.
    Lost,
}

/// The model and its record, or the message of its panic.
type Done = Result<(Box<Model>, Record), String>;

#[derive(Default)]
struct SharedProgress {
    stop: AtomicBool,
    snapshot: Mutex<Option<Snapshot>>,
}

/// Why a phase can't be.
#[derive(Debug, thiserror::Error)]
pub enum NoPhase {
    /// The phase does not fit the simulated machine.
    #[error(transparent)]
    SpecError(#[from] SpecError),
    /// The simulation can't take a phase now.
    #[error("{0}")]
    Wrong(&'static str),
}

/// The model's thread has died, or a phase is under way.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Busy(Cow<'static, str>);

impl Simulation {
    /// An idle machine; an error names the key of its file that is wrong.
    pub fn new(machine: &MachineSpec) -> Result<Simulation, SpecError> {
        Ok(Simulation { state: Mutex::new(State::Idle(Box::new(Model::new(machine)?))), shared: Arc::default() })
    }

    /// Starts a phase. The one before is over and waited for.
    pub fn start(&self, mut phase: ObservedPhase) -> Result<(), NoPhase> {
        if let AnyPhase::Load(load) = &mut phase.phase {
            schedule_file::attach(load).map_err(|what| SpecError::of("replay", what))?;
        }
        let mut state = self.state();
        let State::Idle(model) = &mut *state else {
            return Err(NoPhase::Wrong("a phase is under way"));
        };
        model.begin(phase)?;
        let State::Idle(mut model) = std::mem::replace(&mut *state, State::Lost) else { unreachable!("it was idle") };
        self.shared.stop.store(false, Relaxed);
        *lock(&self.shared.snapshot) = None;
        let shared = Arc::clone(&self.shared);
        let (outbox, receiver) = channel();
        std::thread::Builder::new()
            .name("iolab-model".into())
            .spawn(move || {
                let done = caught(move || {
                    let started_unix_ns = unix_ns();
                    model.run(|snapshot| {
                        *lock(&shared.snapshot) = Some(snapshot);
                        !shared.stop.load(Relaxed)
                    });
                    let record = model.end(started_unix_ns, BUILD_PROFILE);
                    if let Some(snapshot) = lock(&shared.snapshot).as_mut() {
                        snapshot.done = true;
                    }
                    (model, record)
                });
                // Nobody waits any more when this fails.
                let _ = outbox.send(done);
            })
            .map_err(|_| NoPhase::Wrong("can't start a thread"))?;
        *state = State::Running(receiver);
        Ok(())
    }

    /// In simulated time; all zero before the model has begun.
    pub fn snapshot(&self) -> Snapshot {
        let seen = lock(&self.shared.snapshot).clone();
        seen.unwrap_or(Snapshot {
            elapsed_ns: 0,
            ops: 0,
            bytes: 0,
            errors: 0,
            fraction: None,
            warming_up: false,
            done: false,
        })
    }

    /// The record comes as soon as what is in flight has completed in simulated time.
    pub fn stop(&self) {
        self.shared.stop.store(true, Relaxed);
    }

    /// None while it runs.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Record>, Busy> {
        let mut state = self.state();
        let State::Running(receiver) = &*state else {
            return Err(Busy("no phase is under way".into()));
        };
        match receiver.recv_timeout(timeout) {
            Ok(Ok((model, record))) => {
                *state = State::Idle(model);
                Ok(Some(record))
            }
            Ok(Err(panic)) => {
                *state = State::Lost;
                Err(Busy(format!("the model panicked: {panic}").into()))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                *state = State::Lost;
                Err(Busy("the model's thread has died".into()))
            }
        }
    }

    /// The trace files of the last phase by their names.
    pub fn take_traces(&self) -> Result<BTreeMap<String, Vec<u8>>, Busy> {
        self.between_phases(Model::take_traces)
    }

    /// Asks the machine something between two phases.
    pub fn between_phases<T>(&self, ask: impl FnOnce(&mut Model) -> T) -> Result<T, Busy> {
        match &mut *self.state() {
            State::Idle(model) => Ok(ask(model)),
            State::Running(_) => Err(Busy("a phase is under way".into())),
            State::Lost => Err(Busy("the model's thread has died".into())),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
