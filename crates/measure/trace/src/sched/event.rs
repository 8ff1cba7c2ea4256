//! One scheduler event.

use std::fmt;

use crate::decode::{Layouts, WantedEvent};
use crate::format::{EventFormat, Field, FormatError, Number};
use crate::page::RawEvent;

/// A switch or a wake-up, at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEvent {
    /// On the recording's clock, in nanoseconds.
    pub at_ns: u64,
    /// The CPU on which it happened; for a wake-up, the waker's.
    pub cpu: u32,
    /// What happened.
    pub kind: SchedKind,
}

/// What the scheduler did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedKind {
    /// A task left the CPU and another took it. Task 0 is the CPU's idle task.
    Switch {
        /// The task that left.
        previous: u32,
        /// Its name.
        previous_comm: Comm,
        /// How it left.
        state: State,
        /// The task that took the CPU.
        next: u32,
    },
    /// Somebody wakes the task. It may take an interrupt of another CPU until it is runnable.
    Waking {
        /// The task that is woken.
        pid: u32,
    },
    /// The task is runnable: it waits for its CPU.
    Wakeup {
        /// The task that is runnable.
        pid: u32,
    },
}

/// How a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Against its will: it stays runnable.
    Preempted,
    /// Until it is woken or gets a signal (S).
    Sleep,
    /// Until it is woken: mostly for I/O or a lock (D).
    DiskSleep,
    /// A kernel thread without work (I).
    Idle,
    /// By a signal or a debugger, or parked.
    Stopped,
    /// For good.
    Exited,
}

/// A task's name, up to 15 bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Comm([u8; 16]);

/// What to record. Without `sched_waking` the latency of wake-ups counts from `sched_wakeup`, and without that there is
/// no latency of wake-ups.
pub const EVENTS: &[WantedEvent] = &[
    wanted("sched_switch", true),
    wanted("sched_waking", false),
    wanted("sched_wakeup", false),
    wanted("sched_wakeup_new", false),
];

/// Records as scheduler events.
#[derive(Clone, Debug)]
pub struct SchedDecoder {
    layouts: Layouts<Layout>,
}

impl SchedDecoder {
    /// `formats`: of the recorded events; others may be among them.
    pub fn new(formats: &[EventFormat]) -> Result<SchedDecoder, FormatError> {
        Ok(SchedDecoder { layouts: Layouts::new(EVENTS, formats, Layout::new)? })
    }

    /// None of a record of another event.
    #[inline]
    pub fn decode(&self, cpu: u32, raw: &RawEvent<'_>) -> Result<Option<SchedEvent>, FormatError> {
        let kind = self.layouts.read(raw, Layout::read)?;
        Ok(kind.map(|kind| SchedEvent { at_ns: raw.at_ns, cpu, kind }))
    }
}

impl State {
    /// `prev_state` as kernels since 4.14 record it. Before, tasks preempted on their way to sleep look asleep.
    #[inline]
    pub fn of_prev_state(state: u64) -> State {
        match state & 0xff {
            0 => State::Preempted,
            bits if bits & 0x30 != 0 => State::Exited,
            bits if bits & 0x4c != 0 => State::Stopped,
            bits if bits & 0x02 != 0 => State::DiskSleep,
            bits if bits & 0x01 != 0 => State::Sleep,
            _ => State::Idle,
        }
    }
}

impl Comm {
    pub(super) const OTHERS: Comm = Comm(*b"others\0\0\0\0\0\0\0\0\0\0");

    /// A name of at most 15 bytes; what is longer is cut off.
    pub fn new(name: &[u8]) -> Comm {
        let mut comm = Comm::default();
        let length = name.len().min(comm.0.len() - 1);
        comm.0[..length].copy_from_slice(&name[..length]);
        comm
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.iter().position(|&byte| byte == 0);
        f.write_str(&String::from_utf8_lossy(&self.0[..length.unwrap_or(self.0.len())]))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[derive(Clone, Debug)]
enum Layout {
    Switch { previous: Number, comm: Field, state: Number, next: Number },
    Waking { pid: Number },
    Wakeup { pid: Number },
}

impl Layout {
    fn new(format: &EventFormat) -> Result<Option<Layout>, FormatError> {
        Ok(Some(match format.name.as_str() {
            "sched_switch" => Layout::Switch {
                previous: Number::of(format, &["prev_pid"])?,
                comm: format.field("prev_comm")?,
                state: Number::of(format, &["prev_state"])?,
                next: Number::of(format, &["next_pid"])?,
            },
            "sched_waking" => Layout::Waking { pid: Number::of(format, &["pid"])? },
            "sched_wakeup" | "sched_wakeup_new" => Layout::Wakeup { pid: Number::of(format, &["pid"])? },
            _ => return Ok(None),
        }))
    }

    #[inline]
    fn read(&self, record: &[u8]) -> Option<SchedKind> {
        let pid = |field: &Number| field.read(record).map(|pid| pid as u32);
        Some(match self {
            Layout::Switch { previous, comm, state, next } => SchedKind::Switch {
                previous: pid(previous)?,
                previous_comm: Comm::new(comm.text(record)?),
                state: State::of_prev_state(state.read(record)?),
                next: pid(next)?,
            },
            Layout::Waking { pid: field } => SchedKind::Waking { pid: pid(field)? },
            Layout::Wakeup { pid: field } => SchedKind::Wakeup { pid: pid(field)? },
        })
    }
}

const fn wanted(name: &'static str, required: bool) -> WantedEvent {
    WantedEvent { system: "sched", name, required }
}
