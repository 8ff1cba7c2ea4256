//! Follows every task from switch to switch.

use std::collections::BTreeMap;

use super::event::{Comm, SchedEvent, SchedKind, State};
use super::report::{Columns, Series, SiteReport, SwitchReport, TaskReport};
use super::site::site_of;
use super::stalls::Sum;
use crate::intervals::{Absorb, Intervals};
use crate::page::Lost;

/// Takes scheduler events and stacks in the order of time.
#[derive(Clone, Debug)]
pub struct Analysis {
    started_ns: u64,
    report: SwitchReport,
    by_state: States,
    /// Tasks that are off their CPU.
    off: BTreeMap<u32, Off>,
    /// By CPU: a stack that came before the switch it belongs to.
    early_stacks: BTreeMap<u32, Stack>,
    tasks: BTreeMap<(Comm, Option<u32>), Task>,
    sites: BTreeMap<(u32, Comm), Site>,
    series: Intervals<PerCpu>,
}

/// Why and since when a task is off its CPU.
#[derive(Clone, Debug)]
struct Off {
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

#[derive(Clone, Debug, Default)]
struct Times {
    stall: Sum,
    sleeping: Sum,
    run_queue_delay: Sum,
}

#[derive(Clone, Debug, Default)]
struct Task {
    switches: u64,
    by_state: States,
    times: Times,
}

#[derive(Clone, Debug, Default)]
struct Site {
    samples: u64,
    switches: u64,
    times: Times,
}

/// Switches of each CPU in an interval.
#[derive(Clone, Debug, Default)]
struct PerCpu(Vec<u64>);

type States = [u64; STATES.len()];

impl Analysis {
    /// `started_ns`: on the trace's clock; times in the report count from there. `interval_ns`: of the time series.
    pub fn new(started_ns: u64, interval_ns: u64) -> Analysis {
        Analysis {
            started_ns,
            report: SwitchReport::default(),
            by_state: States::default(),
            off: BTreeMap::new(),
            early_stacks: BTreeMap::new(),
            tasks: BTreeMap::new(),
            sites: BTreeMap::new(),
            series: Intervals::new(started_ns, interval_ns),
        }
    }

    pub fn add(&mut self, event: &SchedEvent) {
        match event.kind {
            SchedKind::Switch {
                previous,
                previous_comm,
                state,
                next,
            } => {
                self.report.switches += 1;
                self.series.at(event.at_ns).count(event.cpu);
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
        let stack = Stack {
            at_ns,
            pid,
            weight,
            stack_id,
        };
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

    /// A CPU's events were lost before `at_ns`. Stalls that are under way are forgotten: what would end them may be lost,
    /// and the next switch-in would look as if it did.
    pub fn lost(&mut self, lost: Lost) {
        match lost {
            Lost::Events(count) => self.report.events_lost += count,
            Lost::Uncounted => self.report.losses_uncounted += 1,
        }
        self.off.clear();
    }

    /// `frames_of`: a stack's functions, innermost first, by the name that `add_stack` got.
    pub fn finish(mut self, ended_ns: u64, frames_of: impl Fn(u32) -> Vec<String>) -> SwitchReport {
        let elapsed_ns = ended_ns.saturating_sub(self.started_ns);
        self.report.stacks.unmatched += self.early_stacks.len() as u64;
        SwitchReport {
            elapsed_ns,
            by_state: named(&self.by_state),
            tasks: self.task_reports(),
            sites: self.site_reports(frames_of),
            series: self.series_report(elapsed_ns),
            ..self.report
        }
    }

    fn left(&mut self, event: &SchedEvent, pid: u32, comm: Comm, state: State) {
        let early = self.early_stacks.remove(&event.cpu);
        let own = early.filter(|stack| stack.pid == pid && is_close(stack.at_ns, event.at_ns));
        self.report.stacks.unmatched += u64::from(early.is_some() && own.is_none());
        let index = if pid == IDLE_TASK {
            CPU_IDLE
        } else {
            state as usize
        };
        self.by_state[index] += 1;
        // The idle tasks of all CPUs have number 0.
        let comm = if pid == IDLE_TASK {
            Comm::new(b"idle")
        } else {
            comm
        };
        let task = self.task(comm, pid);
        task.switches += 1;
        task.by_state[index] += 1;
        if let Some(stack) = own {
            self.visited(stack, comm);
        }
        if pid == IDLE_TASK || state == State::Exited {
            self.off.remove(&pid);
            return;
        }
        let off = Off {
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
        record(&mut self.task(off.comm, pid).times, 1);
        if let Some(stack) = off.stack {
            record(&mut self.site(stack.stack_id, off.comm).times, stack.weight);
        }
    }

    fn visited(&mut self, stack: Stack, comm: Comm) {
        let site = self.site(stack.stack_id, comm);
        site.samples += 1;
        site.switches += stack.weight;
    }

    /// Of more tasks than are kept apart, those that come late are one.
    fn task(&mut self, comm: Comm, pid: u32) -> &mut Task {
        let full = self.tasks.len() >= TASKS_MAX;
        let own = (comm, Some(pid));
        let key = if full && !self.tasks.contains_key(&own) {
            OTHERS
        } else {
            own
        };
        self.tasks.entry(key).or_default()
    }

    fn site(&mut self, stack_id: u32, comm: Comm) -> &mut Site {
        let full = self.sites.len() >= SITES_MAX;
        let own = (stack_id, comm);
        let key = if full && !self.sites.contains_key(&own) {
            (stack_id, OTHERS.0)
        } else {
            own
        };
        self.sites.entry(key).or_default()
    }

    fn task_reports(&self) -> Vec<TaskReport> {
        let mut ranked: Vec<_> = self.tasks.iter().collect();
        // What has no number of its own belongs to the rest, wherever it would rank.
        ranked.sort_by_key(|(key, task)| (key.1.is_none(), std::cmp::Reverse(task.switches)));
        let rest = ranked.split_off(ranked.len().min(TASKS_SHOWN));
        let (others, shown): (Vec<_>, Vec<_>) =
            ranked.into_iter().partition(|(key, _)| key.1.is_none());
        let mut reports: Vec<TaskReport> = shown
            .iter()
            .map(|((comm, pid), task)| task.report(comm.to_string(), *pid))
            .collect();
        let mut together = Task::default();
        others
            .iter()
            .chain(&rest)
            .for_each(|(_, task)| together.merge(task));
        if together.switches > 0 {
            reports.push(together.report("others".to_owned(), None));
        }
        reports
    }

    fn site_reports(&self, frames_of: impl Fn(u32) -> Vec<String>) -> Vec<SiteReport> {
        let mut by_name: BTreeMap<String, Vec<(u32, &Comm, &Site)>> = BTreeMap::new();
        let mut frames = BTreeMap::new();
        for ((stack_id, comm), site) in &self.sites {
            let frames: &Vec<String> = frames
                .entry(*stack_id)
                .or_insert_with(|| frames_of(*stack_id));
            let names: Vec<&str> = frames.iter().map(String::as_str).collect();
            let name = site_of(&names).unwrap_or(UNKNOWN).to_owned();
            by_name
                .entry(name)
                .or_default()
                .push((*stack_id, comm, site));
        }
        let mut reports: Vec<SiteReport> = by_name
            .into_iter()
            .map(|(name, parts)| {
                let (stack_id, comm) = most(&parts);
                let mut whole = Site::default();
                parts.iter().for_each(|(_, _, site)| whole.merge(site));
                SiteReport {
                    site: name,
                    chain: frames.get(&stack_id).cloned().unwrap_or_default(),
                    comm,
                    samples: whole.samples,
                    switches: whole.switches,
                    stall: whole.times.stall.report(),
                    sleeping: whole.times.sleeping.report(),
                    run_queue_delay: whole.times.run_queue_delay.report(),
                }
            })
            .collect();
        reports.sort_by_key(|site| std::cmp::Reverse((site.switches, site.stall.sum_ns)));
        reports
    }

    fn series_report(&self, elapsed_ns: u64) -> BTreeMap<String, Series> {
        let items = self.series.items();
        let (at_ns, width_ns) = (self.series.starts_ns(), self.series.width_ns());
        let length_s = at_ns
            .iter()
            .map(|start_ns| elapsed_ns.saturating_sub(*start_ns).clamp(1, width_ns) as f64 / 1e9);
        let length_s: Vec<f64> = length_s.collect();
        let series = |count: &dyn Fn(&PerCpu) -> u64| Series {
            at_ns: at_ns.clone(),
            columns: Columns {
                context_switches_per_s: items
                    .iter()
                    .zip(&length_s)
                    .map(|(item, length_s)| count(item) as f64 / length_s)
                    .collect(),
                length_s: length_s.clone(),
            },
        };
        let cpus = items.iter().map(|item| item.0.len()).max().unwrap_or(0);
        let of_cpu = |cpu: usize| {
            let count = move |item: &PerCpu| item.0.get(cpu).copied().unwrap_or(0);
            (format!("cpu{cpu}"), series(&count))
        };
        let all = ("all".to_owned(), series(&|item| item.0.iter().sum()));
        (0..cpus).map(of_cpu).chain([all]).collect()
    }
}

/// The stack and the task's name with most switches.
fn most(parts: &[(u32, &Comm, &Site)]) -> (u32, String) {
    let mut stacks: BTreeMap<u32, u64> = BTreeMap::new();
    let mut comms: BTreeMap<&Comm, u64> = BTreeMap::new();
    for (stack_id, comm, site) in parts {
        *stacks.entry(*stack_id).or_default() += site.switches;
        *comms.entry(comm).or_default() += site.switches;
    }
    let stack_id = stacks
        .iter()
        .max_by_key(|(_, count)| **count)
        .map_or(0, |(id, _)| *id);
    let comm = comms.iter().max_by_key(|(_, count)| **count);
    (
        stack_id,
        comm.map_or_else(String::new, |(comm, _)| comm.to_string()),
    )
}

impl Task {
    fn merge(&mut self, other: &Task) {
        self.switches += other.switches;
        self.by_state
            .iter_mut()
            .zip(other.by_state)
            .for_each(|(ours, theirs)| *ours += theirs);
        self.times.merge(&other.times);
    }

    fn report(&self, comm: String, pid: Option<u32>) -> TaskReport {
        TaskReport {
            comm,
            pid,
            switches: self.switches,
            by_state: named(&self.by_state),
            stall: self.times.stall.report(),
            sleeping: self.times.sleeping.report(),
            run_queue_delay: self.times.run_queue_delay.report(),
        }
    }
}

impl Site {
    fn merge(&mut self, other: &Site) {
        self.samples += other.samples;
        self.switches += other.switches;
        self.times.merge(&other.times);
    }
}

impl Times {
    fn merge(&mut self, other: &Times) {
        self.stall.merge(&other.stall);
        self.sleeping.merge(&other.sleeping);
        self.run_queue_delay.merge(&other.run_queue_delay);
    }
}

impl PerCpu {
    fn count(&mut self, cpu: u32) {
        let cpu = (cpu as usize).min(CPUS_MAX - 1);
        if cpu >= self.0.len() {
            self.0.resize(cpu + 1, 0);
        }
        self.0[cpu] += 1;
    }
}

impl Absorb for PerCpu {
    fn absorb(&mut self, later: PerCpu) {
        self.0.resize(self.0.len().max(later.0.len()), 0);
        self.0
            .iter_mut()
            .zip(later.0)
            .for_each(|(ours, theirs)| *ours += theirs);
    }
}

fn named(states: &States) -> BTreeMap<&'static str, u64> {
    STATES.iter().copied().zip(*states).collect()
}

fn is_close(a_ns: u64, b_ns: u64) -> bool {
    a_ns.abs_diff(b_ns) <= SAME_SWITCH_NS
}

/// In the order of `State`, then the idle tasks.
const STATES: [&str; 7] = [
    "preempted",
    "sleep",
    "disk_sleep",
    "idle",
    "stopped",
    "exited",
    "cpu_idle",
];
const CPU_IDLE: usize = STATES.len() - 1;
const IDLE_TASK: u32 = 0;
const OTHERS: (Comm, Option<u32>) = (Comm::OTHERS, None);
const UNKNOWN: &str = "unknown";
/// Between the time stamps of a switch's event and of its stack, taken by two readers of one tracepoint. An interrupt of
/// the hypervisor may come between.
const SAME_SWITCH_NS: u64 = 200_000;
const TASKS_MAX: usize = 4096;
const TASKS_SHOWN: usize = 64;
const SITES_MAX: usize = 8192;
/// Of Linux: NR_CPUS is at most this.
const CPUS_MAX: usize = 8192;
