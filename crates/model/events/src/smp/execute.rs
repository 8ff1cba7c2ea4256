//! What a CPU does next, and what that costs.

use super::cpu::{Active, Level, State};
use super::work::Work;
use super::{Done, Event, Processors};
use crate::time::{SECOND, Time};

impl<T: Copy> Processors<T> {
    /// Decides what the CPU does from now on, and when to look again.
    pub(super) fn decide(&mut self, number: u16) {
        let now = self.now;
        let cpu = &mut self.cpus[usize::from(number)];
        cpu.undecided = false;
        cpu.deciding = false;
        cpu.account(now);
        match cpu.state {
            State::Waking | State::Offline => return,
            State::Idle { since } => {
                if cpu.hard.is_empty() && cpu.soft.is_empty() && cpu.ready.is_empty() {
                    // The work that it was called for has gone elsewhere.
                    self.idle.put(number, true);
                    if let Some(task) = self.steal(number) {
                        self.enqueue(task, number, None, true);
                    }
                    return;
                }
                self.idle.put(number, false);
                let exit_ns = self.exit_ns(now - since);
                if exit_ns > 0 {
                    self.cpus[usize::from(number)].state = State::Waking;
                    self.look_again(number, now + exit_ns);
                    return;
                }
            }
            State::Running(_) => {}
        }
        match self.choose(number) {
            Some(level) => {
                let cpu = &mut self.cpus[usize::from(number)];
                cpu.state = State::Running(level);
                let active = cpu.active[level as usize].expect("chosen");
                let mut at = now + active.left_ns;
                if active.masked_until > now {
                    at = at.min(active.masked_until);
                } else if level == Level::Task && !cpu.ready.is_empty() {
                    at = at.min(now + cpu.slice_left.max(1));
                }
                self.look_again(number, at);
            }
            None if self.online.has(number) => {
                let cpu = &mut self.cpus[usize::from(number)];
                cpu.state = State::Idle { since: now };
                cpu.turn += 1;
                self.idle.put(number, true);
            }
            None => {
                let cpu = &mut self.cpus[usize::from(number)];
                cpu.state = State::Offline;
                cpu.turn += 1;
            }
        }
    }

    /// The time has come at which the CPU wanted to look again.
    pub(super) fn review(&mut self, number: u16, done: &mut Vec<Done<T>>) {
        let now = self.now;
        let cpu = &mut self.cpus[usize::from(number)];
        cpu.account(now);
        match cpu.state {
            State::Waking => cpu.state = State::Running(Level::Hard),
            State::Running(level) => {
                let active = &mut cpu.active[level as usize];
                match active {
                    Some(Active { left_ns: 0, .. }) => {
                        let finished = active.take().expect("just seen");
                        cpu.deciding = true;
                        cpu.last_context = finished.context;
                        done.extend(finished.tag.map(|tag| Done { at: now, cpu: number, tag }));
                    }
                    _ => cpu.gives_way |= level == Level::Task && cpu.slice_left == 0,
                }
            }
            State::Idle { .. } | State::Offline => {}
        }
        self.mark_undecided(number);
    }

    /// Work that was finished continues for as long as this takes.
    pub(super) fn extend(&mut self, number: u16, work: Work<T>) {
        let begins = self.now + self.charged_ns(number);
        let (cost_ns, masked_until) = self.begin(number, &work, begins);
        let cpu = &mut self.cpus[usize::from(number)];
        let State::Running(level) = cpu.state else {
            unreachable!("only what runs finishes something");
        };
        let active = cpu.active[level as usize].get_or_insert(Active {
            left_ns: 0,
            context: cpu.last_context,
            tag: None,
            masked_until: 0,
        });
        active.left_ns += cost_ns;
        active.masked_until = active.masked_until.max(masked_until);
        if active.left_ns == 0 {
            cpu.active[level as usize] = None;
        }
    }

    /// What has been charged to what was finished.
    pub(super) fn charged_ns(&self, number: u16) -> Time {
        let cpu = &self.cpus[usize::from(number)];
        match cpu.state {
            State::Running(level) if cpu.deciding => cpu.active[level as usize].map_or(0, |active| active.left_ns),
            _ => 0,
        }
    }

    /// The work as begun on that CPU at the present moment.
    pub(super) fn started(&mut self, number: u16, work: Work<T>) -> Active<T> {
        let (left_ns, masked_until) = self.begin(number, &work, self.now);
        Active { left_ns, context: work.context, tag: work.tag, masked_until }
    }

    /// The best that there is to do there, begun; None: nothing.
    fn choose(&mut self, number: u16) -> Option<Level> {
        let now = self.now;
        let cpu = &mut self.cpus[usize::from(number)];
        if cpu.active[Level::Hard as usize].is_some() {
            return Some(Level::Hard);
        }
        if let State::Running(level) = cpu.state
            && cpu.masked_until().is_some_and(|until| until > now)
        {
            return Some(level);
        }
        if let Some(work) = cpu.hard.pop_front() {
            return Some(self.start_at(number, Level::Hard, work));
        }
        if cpu.active[Level::Soft as usize].is_some() {
            return Some(Level::Soft);
        }
        if let Some(work) = cpu.soft.pop_front() {
            return Some(self.start_at(number, Level::Soft, work));
        }
        self.choose_task(number).then_some(Level::Task)
    }

    fn start_at(&mut self, number: u16, level: Level, work: Work<T>) -> Level {
        let active = self.started(number, work);
        self.cpus[usize::from(number)].active[level as usize] = Some(active);
        level
    }

    /// How long a piece of work takes there that begins then, and until when interrupts are off.
    pub(super) fn begin(&mut self, number: u16, work: &Work<T>, begins: Time) -> (Time, Time) {
        let clock_hz = self.spec.clock_hz;
        let mut transfers = 0;
        for &object in work.touches() {
            transfers += u64::from(self.lines.touch(object, number));
        }
        let (mut spun_ns, mut masked_until) = (0, 0);
        if let Some((lock, hold_cycles)) = work.lock {
            let got = self.lines.wait_for(lock, begins);
            let transfer = u64::from(self.lines.touch(lock, number));
            transfers += transfer;
            spun_ns = got - begins;
            let held = (transfer + u64::from(hold_cycles)) * SECOND;
            masked_until = got + held.div_ceil(clock_hz);
            self.lines.hold(lock, masked_until);
        }
        let cycles = u64::from(work.cycles);
        let stalled = u64::from(work.stalled_cycles).min(cycles);
        let share = u64::from(self.spec.computing_stall_per_mille);
        let cpu = &mut self.cpus[usize::from(number)];
        cpu.stalls.transfers += transfers;
        cpu.stalls.computing += stalled + (cycles - stalled) * share / 1000;
        cpu.stalls.spinning += spun_ns * clock_hz / SECOND;
        let cost_ns = spun_ns + cpu.time_of(cycles + transfers, clock_hz);
        (cost_ns.max(masked_until.saturating_sub(begins)), masked_until)
    }

    fn exit_ns(&self, idle_ns: Time) -> Time {
        self.spec.idle_states.iter().rev().find(|state| state.after_ns <= idle_ns).map_or(0, |state| state.exit_ns)
    }

    fn look_again(&mut self, number: u16, at: Time) {
        let cpu = &mut self.cpus[usize::from(number)];
        cpu.turn += 1;
        self.events.put(at, Event::Cpu(number, cpu.turn));
    }
}
