//! CPUs that go offline and come back: nothing that waits there is lost.

use super::Processors;
use super::cpu::{Level, State};
use crate::time::Time;

impl<T: Copy> Processors<T> {
    /// Takes a CPU out: its tasks, pending interrupts and softirqs go to the nearest other. What it is in the middle of in
    /// an interrupt is still done there. False: it is the last one, and stays.
    pub fn take_offline(&mut self, now: Time, number: u16) -> bool {
        self.reach(now);
        self.decide_all();
        if !self.online.has(number) || self.online.len() == 1 {
            return !self.online.has(number);
        }
        self.online.put(number, false);
        self.idle.put(number, false);
        self.movable.put(number, false);
        let cpu = &mut self.cpus[usize::from(number)];
        cpu.account(now);
        let (hard, soft) = (std::mem::take(&mut cpu.hard), std::mem::take(&mut cpu.soft));
        let running = cpu.active[Level::Task as usize].take();
        let mut ready = std::mem::take(&mut cpu.ready);
        let slice_left = cpu.slice_left;
        if matches!(cpu.state, State::Idle { .. } | State::Waking) {
            cpu.state = State::Offline;
            cpu.turn += 1;
        } else if matches!(cpu.state, State::Running(Level::Task)) {
            cpu.state = State::Running(Level::Hard);
        }
        if let Some(task) = self.put_down_task(number) {
            let state = &mut self.tasks[task as usize];
            state.suspend(running);
            state.slice_left = slice_left;
            self.enqueue(task, self.place(task), None, true);
        }
        while let Some(task) = ready.take() {
            self.enqueue(task, self.place(task), None, true);
        }
        hard.into_iter().for_each(|work| self.interrupt(now, number, work));
        soft.into_iter().for_each(|work| self.softirq(now, number, work));
        self.mark_undecided(number);
        true
    }

    /// Brings a CPU back, idle. Nothing happens to one that is online.
    pub fn bring_online(&mut self, now: Time, number: u16) {
        self.reach(now);
        self.decide_all();
        if self.online.has(number) {
            return;
        }
        self.online.put(number, true);
        let cpu = &mut self.cpus[usize::from(number)];
        cpu.account(now);
        if cpu.state == State::Offline {
            // It looks for what waits elsewhere.
            cpu.state = State::Running(Level::Hard);
        }
        self.mark_undecided(number);
    }

    /// Whether the CPU is online.
    pub fn is_online(&self, number: u16) -> bool {
        self.online.has(number)
    }

    pub(super) fn or_nearest_online(&self, number: u16) -> u16 {
        if self.online.has(number) {
            return number;
        }
        self.nearest(number, &self.online).expect("the last CPU stays online")
    }
}
