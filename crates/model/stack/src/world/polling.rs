//! Polling: a task looks for its completions by itself, on its CPU, and the drive does not interrupt.
//!
//! Source: `block/blk-mq.c` (`blk_poll`) of 4.10 to 6.3, `io_uring.c` (`io_do_iopoll`) of 5.1 on.

use super::clock::Event;
use super::cpus::Switch;
use super::task::State;
use super::{GroupSpec, PhaseSpec, World};
use crate::key_reader::KeyReader;
use block_layer::{Direction, TaskId};
use events::Component;
use events::time::Time;

impl World {
    /// The drive that a group's task polls.
    pub(super) fn polled_drive(&self, group: &GroupSpec, phase: &PhaseSpec) -> Option<usize> {
        let job = group.jobs.first().filter(|_| group.polls)?;
        let file = phase.files[*job.files.first()? as usize];
        let drive = self.vfs.file(file).drive;
        let is_local = self.vfs.mount_of(file).is_none();
        (is_local && self.io[drive].can_be_polled()).then_some(drive)
    }

    /// The task, which has that CPU, looks for its completions from now on, or sleeps a little first.
    pub(super) fn poll(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number];
        let drive = task.polled_drive().expect("who polls has a drive");
        self.touched.insert(KeyReader::Polling(drive as u16));
        let has_napped = task.take_nap();
        let direction = match task.reads_only() {
            true => Direction::Read,
            false => Direction::Write,
        };
        let nap_ns = self.io[drive].nap_ns(direction);
        if nap_ns > 0 && !has_napped {
            task.nap_until(now + nap_ns);
            self.clock.put(now + nap_ns, Event::Wake(number));
            self.count_switch(number, Switch::Voluntary);
            return self.leave_cpu(now, cpu, number, true);
        }
        task.polls_on(cpu, now);
        self.plan_wakeup(number);
        self.look_for_completions(now, number);
    }

    fn look_for_completions(&mut self, now: Time, number: TaskId) {
        let drive = self.tasks[number].polled_drive().expect("it polls");
        let next = self.io[drive].next_event().unwrap_or(now);
        self.cpus.look(now, number, next);
    }

    /// The task has looked once more.
    pub(super) fn looked(&mut self, now: Time, number: TaskId) {
        let polls = matches!(self.tasks[number].state(), State::Polling(..));
        // What it finds, it completes; then it looks again, unless that has given it something to do.
        if polls && !self.cpus.complete_polled(now, number) {
            self.look_for_completions(now, number);
        }
    }

    /// It has found something.
    pub(super) fn end_polling(&mut self, now: Time, cpu: u16, since: Time, number: TaskId) {
        self.tasks[number].runs_on(cpu);
        let (used, _) = self.tasks.used(number);
        self.cpus.looked_for(now - since, used);
    }
}
