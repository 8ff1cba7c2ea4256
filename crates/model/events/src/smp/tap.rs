//! What a tracer of the scheduler sees: who leaves a CPU for whom, and who wakes whom.

use super::Processors;
use super::cpu::State;
use super::run_queue::TaskNumber;
use crate::time::Time;

/// An event of the task scheduler, as the kernel's trace events `sched_switch` and `sched_wakeup` show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerEvent {
    /// In simulated time.
    pub at: Time,
    /// The CPU; for a wake-up, the waker's, or the one to which the task goes if nobody wakes it.
    pub cpu: u16,
    /// What happened.
    pub what: SchedulerEventKind,
}

/// A task is None if it is the CPU's idle task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerEventKind {
    /// A task left the CPU and another took it.
    Switch {
        /// The task that left.
        previous: Option<TaskNumber>,
        /// It would rather have stayed.
        preempted: bool,
        /// The task that took the CPU.
        next: Option<TaskNumber>,
    },
    /// The task is runnable.
    Woken(TaskNumber),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tap {
    on: bool,
    /// By CPU: whom the last event left there.
    shown: Vec<Option<TaskNumber>>,
    events: Vec<SchedulerEvent>,
}

impl<T: Copy> Processors<T> {
    /// From now on events are kept for `take_scheduled`.
    pub fn tap(&mut self) {
        self.tap.on = true;
        self.tap.shown = self.cpus.iter().map(|cpu| cpu.task).collect();
    }

    /// Stops recording and drops what was not taken.
    pub fn untap(&mut self) {
        self.tap = Tap::default();
    }

    /// Appends what has happened since the last time, in the order of time.
    pub fn take_scheduled(&mut self, into: &mut Vec<SchedulerEvent>) {
        into.append(&mut self.tap.events);
    }

    pub(super) fn show_woken(&mut self, cpu: u16, task: TaskNumber) {
        if self.tap.on {
            let what = SchedulerEventKind::Woken(task);
            let at = self.now;
            self.tap.events.push(SchedulerEvent { at, cpu, what });
        }
    }

    /// What the CPU has decided to do is done by another task than before. Interrupts run in whichever it was.
    pub(super) fn show_current(&mut self, number: u16) {
        if !self.tap.on {
            return;
        }
        let cpu = &self.cpus[usize::from(number)];
        let next = match cpu.state {
            State::Idle { .. } | State::Offline => None,
            State::Running(_) if cpu.task.is_some() => cpu.task,
            State::Running(_) | State::Waking => return,
        };
        let previous = std::mem::replace(&mut self.tap.shown[usize::from(number)], next);
        if previous != next {
            let preempted = previous.is_some_and(|task| !self.tasks[task as usize].asleep);
            let what = SchedulerEventKind::Switch { previous, preempted, next };
            let (at, cpu) = (self.now, number);
            self.tap.events.push(SchedulerEvent { at, cpu, what });
        }
    }
}
