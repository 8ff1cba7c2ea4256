//! Follows every task from switch to switch.

use std::collections::BTreeMap;

use super::event::{Comm, SchedEvent, SchedKind, State};
use super::rates::Rates;
use super::report::SwitchReport;
use super::tables::{Sites, Tasks};
use super::waits::{CPU_IDLE, States, Times, named};
use crate::page::LostEvents;

/// Takes scheduler events and stacks in the order of time.
#[derive(Clone, Debug)]
pub struct Analysis {
    started_ns: u64,
    report: SwitchReport,
    by_state: States,
    /// Tasks that are off their CPU.
    off: BTreeMap<u32, OffCpu>,
    /// By CPU: a stack that came before the switch it belongs to.
    early_stacks: BTreeMap<u32, Stack>,
    tasks: Tasks,
    sites: Sites,
    rates: Rates,
}

/// Why and since when a task is off its CPU.
#[derive(Clone, Debug)]
struct OffCpu {
    comm: Comm,
    state: State,
    at_ns: u64,
    waking_at_ns: Option<u64>,
    runnable_at_ns: Option<u64>,
    stack: Option<Stack>,
}

#[derive(Clone, Copy, Debug)]
struct Stack {
    at_ns: u64,
    pid: u32,
    weight: u64,
    stack_id: u32,
}

impl Analysis {
    /// `started_ns`: on the trace's clock; times in the report count from there. `interval_ns`: of the time series.
    pub fn new(started_ns: u64, interval_ns: u64) -> Analysis {
        Analysis {
            started_ns,
            report: SwitchReport::default(),
            by_state: States::default(),
            off: BTreeMap::new(),
            early_stacks: BTreeMap::new(),
            tasks: Tasks::default(),
            sites: Sites::default(),
            rates: Rates::new(started_ns, interval_ns),
        }
    }

    /// Takes in the next event; events come in the order of time.
    pub fn add(&mut self, event: &SchedEvent) {
        match event.kind {
            SchedKind::Switch { previous, previous_comm, state, next } => {
                self.report.switches += 1;
                self.rates.count(event.at_ns, event.cpu);
                self.left(event, previous, previous_comm, state);
                self.took(event.at_ns, next);
            }
            SchedKind::Waking { pid } => {
                if let Some(off) = self.off.get_mut(&pid) {
                    off.waking_at_ns.get_or_insert(event.at_ns);
                }
            }
            SchedKind::Wakeup { pid } => {
                if let Some(off) = self.off.get_mut(&pid) {
                    off.runnable_at_ns.get_or_insert(event.at_ns);
                }
            }
        }
    }

    /// The stack of task `pid` at its switch-out, taken at one of `weight` switches; `stack_id` is the caller's name for
    /// it. It may come right before or right after the event of the switch: the two have each its own time stamp.
    pub fn add_stack(&mut self, at_ns: u64, cpu: u32, pid: u32, weight: u64, stack_id: u32) {
        self.report.stacks.taken += 1;
        let stack = Stack { at_ns, pid, weight, stack_id };
        let off = self.off.get_mut(&pid);
        let off = off.filter(|off| off.stack.is_none() && is_close(off.at_ns, at_ns));
        match off {
            Some(off) => {
                off.stack = Some(stack);
                let comm = off.comm;
                self.visited(stack, comm);
            }
            None => {
                let replaced = self.early_stacks.insert(cpu, stack);
                self.report.stacks.unmatched += u64::from(replaced.is_some());
            }
        }
    }

    /// A CPU's events were lost before `at_ns`. Unfinished stalls are forgotten: what would end them may be lost, and
    /// the next switch-in would look as if it did.
    pub fn lost(&mut self, lost: LostEvents) {
        match lost {
            LostEvents::Events(count) => self.report.events_lost += count,
            LostEvents::Uncounted => self.report.losses_uncounted += 1,
        }
        self.off.clear();
    }

    /// `frames_of`: a stack's functions, innermost first, by the name that `add_stack` got.
    pub fn finish(mut self, ended_ns: u64, frames_of: impl Fn(u32) -> Vec<String>) -> SwitchReport {
        let elapsed_ns = ended_ns.saturating_sub(self.started_ns);
        self.report.stacks.unmatched += self.early_stacks.len() as u64;
        let of_tasks = self.report.switches - self.by_state[CPU_IDLE];
        SwitchReport {
            elapsed_ns,
            by_state: named(&self.by_state),
            tasks: self.tasks.reports(),
            sites: self.sites.reports(of_tasks, frames_of),
            series: self.rates.series(elapsed_ns),
            ..self.report
        }
    }

    fn left(&mut self, event: &SchedEvent, pid: u32, comm: Comm, state: State) {
        let early = self.early_stacks.remove(&event.cpu);
        let own = early.filter(|stack| stack.pid == pid && is_close(stack.at_ns, event.at_ns));
        self.report.stacks.unmatched += u64::from(early.is_some() && own.is_none());
        let index = if pid == IDLE_TASK { CPU_IDLE } else { state as usize };
        self.by_state[index] += 1;
        // The idle tasks of all CPUs have number 0.
        let comm = if pid == IDLE_TASK { Comm::new(b"idle") } else { comm };
        let task = self.tasks.of(comm, pid);
        task.switches += 1;
        task.by_state[index] += 1;
        if let Some(stack) = own {
            self.visited(stack, comm);
        }
        if pid == IDLE_TASK || state == State::Exited {
            self.off.remove(&pid);
            return;
        }
        let off = OffCpu {
            comm,
            state,
            at_ns: event.at_ns,
            waking_at_ns: None,
            runnable_at_ns: (state == State::Preempted).then_some(event.at_ns),
            stack: own,
        };
        self.off.insert(pid, off);
    }

    fn took(&mut self, now_ns: u64, pid: u32) {
        let Some(off) = self.off.remove(&pid) else {
            return;
        };
        let since = |at_ns: u64| now_ns.saturating_sub(at_ns);
        let stall_ns = since(off.at_ns);
        let runnable_at_ns = off.runnable_at_ns.or(off.waking_at_ns);
        if off.state != State::Idle {
            self.report.stall_ns.record(stall_ns);
        }
        if off.state != State::Preempted
            && let Some(woken_at_ns) = off.waking_at_ns.or(off.runnable_at_ns)
        {
            self.report.wakeup_latency_ns.record(since(woken_at_ns));
        }
        if let Some(at_ns) = runnable_at_ns {
            self.report.run_queue_delay_ns.record(since(at_ns));
        }
        let record = |times: &mut Times, weight: u64| {
            times.stall.add(stall_ns, weight);
            if let Some(at_ns) = runnable_at_ns {
                if off.state != State::Preempted {
                    let slept_ns = at_ns.saturating_sub(off.at_ns);
                    times.sleeping.add(slept_ns, weight);
                }
                times.run_queue_delay.add(since(at_ns), weight);
            }
        };
        record(&mut self.tasks.of(off.comm, pid).times, 1);
        if let Some(stack) = off.stack {
            record(&mut self.sites.of(stack.stack_id, off.comm).times, stack.weight);
        }
    }

    fn visited(&mut self, stack: Stack, comm: Comm) {
        let site = self.sites.of(stack.stack_id, comm);
        site.samples += 1;
        site.switches += stack.weight;
    }
}

fn is_close(a_ns: u64, b_ns: u64) -> bool {
    a_ns.abs_diff(b_ns) <= SAME_SWITCH_NS
}

const IDLE_TASK: u32 = 0;
/// Between the time stamps of a switch's event and of its stack, taken by two readers of one tracepoint. An interrupt of
/// the hypervisor may come between.
const SAME_SWITCH_NS: u64 = 200_000;
