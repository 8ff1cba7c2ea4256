//! Polling: a task looks for its completions by itself, on its CPU, and the drive does not interrupt.
//!
//! Source: `block/blk-mq.c` (`blk_poll`, `blk_mq_poll_hybrid_sleep`, `blk_mq_poll_nsecs`) of 4.10 to 6.3, `io_uring.c`
//! (`io_do_iopoll`) of 5.1 on.

use super::clock::Event;
use super::cpus::Switch;
use super::task::State;
use super::{FileLayout, GroupSpec, PhaseSpec, World};
use crate::key_reader::KeyReader;
use block_layer::{Direction, Request, TaskId};
use events::Component;
use events::time::{MICROSECOND, MILLISECOND, Time};

/// How tasks poll a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollRules {
    /// They sleep before they look.
    pub delay: PollDelay,
}

/// `io_poll_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollDelay {
    /// -1: not at all.
    Never,
    /// 0: half the mean time that such requests took of late.
    HalfTheMean,
    /// So long.
    Ns(Time),
}

impl PollDelay {
    /// The tunable's value, in microseconds; None: there is no such.
    pub fn of(io_poll_delay: i64) -> Option<PollDelay> {
        match io_poll_delay {
            -1 => Some(PollDelay::Never),
            0 => Some(PollDelay::HalfTheMean),
            usec => u64::try_from(usec)
                .ok()
                .map(|usec| PollDelay::Ns(usec * MICROSECOND)),
        }
    }
}

/// Of a drive that can be polled.
#[derive(Clone, Debug)]
pub(super) struct Polling {
    rules: PollRules,
    /// By direction.
    took: [Took; 2],
}

/// How long requests of a direction take, in windows of 100 ms (`blk_mq_poll_stats_start`).
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    window_ends_at: Time,
    sum_ns: Time,
    count: u64,
    mean_ns_before: Time,
}

const WINDOW_NS: Time = 100 * MILLISECOND;

impl Polling {
    pub(super) fn new(rules: PollRules) -> Polling {
        Polling {
            rules,
            took: Default::default(),
        }
    }

    pub(super) fn completed(&mut self, now: Time, request: &Request) {
        let Some(issued_at) = request.issued_at.filter(|_| request.polled) else {
            return;
        };
        let took = &mut self.took[request.direction as usize];
        if took.window_ends_at == 0 {
            took.window_ends_at = now + WINDOW_NS;
        }
        took.sum_ns += now - issued_at;
        took.count += 1;
        if now >= took.window_ends_at {
            *took = Took {
                mean_ns_before: took.sum_ns / took.count,
                ..Took::default()
            };
        }
    }

    /// How long a task sleeps before it looks for an operation of that direction.
    fn nap_ns(&self, direction: Direction) -> Time {
        match self.rules.delay {
            PollDelay::Never => 0,
            PollDelay::HalfTheMean => self.took[direction as usize].mean_ns_before.div_ceil(2),
            PollDelay::Ns(ns) => ns,
        }
    }
}

impl World {
    /// The drive that a group's task polls.
    pub(super) fn polled_drive(&self, group: &GroupSpec, phase: &PhaseSpec) -> Option<usize> {
        let job = group.jobs.first().filter(|_| group.polls)?;
        let spec = &self.files[phase.files[*job.files.first()? as usize] as usize];
        let is_local = !matches!(spec.place, FileLayout::Mounted);
        (is_local && self.drives[spec.drive].polling.is_some()).then_some(spec.drive)
    }

    /// The task, which has that CPU, looks for its completions from now on, or sleeps a little first.
    pub(super) fn poll(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number];
        let drive = task.polls.expect("who polls has a drive");
        self.touched.insert(KeyReader::Polling(drive as u16));
        let has_napped = task.naps_until.take().is_some();
        let direction = match task.reads_only() {
            true => Direction::Read,
            false => Direction::Write,
        };
        let polling = self.drives[drive]
            .polling
            .as_ref()
            .expect("it can be polled");
        let nap_ns = polling.nap_ns(direction);
        if nap_ns > 0 && !has_napped {
            task.naps_until = Some(now + nap_ns);
            task.state = State::Asleep;
            self.clock.put(now + nap_ns, Event::Wake(number));
            self.count_switch(number, Switch::Voluntary);
            return self.leave_cpu(now, cpu, number, true);
        }
        task.state = State::Polling(cpu, now);
        self.plan_wakeup(number);
        self.look_for_completions(now, number);
    }

    fn look_for_completions(&mut self, now: Time, number: TaskId) {
        let drive = self.tasks[number].polls.expect("it polls");
        let next = self.drives[drive].next_event().unwrap_or(now);
        self.cpus.look(now, number, next);
    }

    /// The task has looked once more.
    pub(super) fn looked(&mut self, now: Time, number: TaskId) {
        let polls = matches!(self.tasks[number].state, State::Polling(..));
        // What it finds, it completes; then it looks again, unless that has given it something to do.
        if polls && !self.cpus.complete_polled(now, number) {
            self.look_for_completions(now, number);
        }
    }

    /// It has found something.
    pub(super) fn end_polling(&mut self, now: Time, cpu: u16, since: Time, number: TaskId) {
        self.tasks[number].state = State::Running(cpu);
        let (used, _) = self.tasks.used(number);
        self.cpus.looked_for(now - since, used);
    }
}
