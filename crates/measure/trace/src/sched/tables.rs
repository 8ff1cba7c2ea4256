//! Waits by task, and by place. Both tables are bounded: what comes when they are full is together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::event::Comm;
use super::report::{SiteReport, TaskReport};
use super::site::site_of;
use super::waits::{Site, Task};

#[derive(Clone, Debug, Default)]
pub(super) struct Tasks(BTreeMap<(Comm, Option<u32>), Task>);

/// By stack and task's name.
#[derive(Clone, Debug, Default)]
pub(super) struct Sites(BTreeMap<(u32, Comm), Site>);

impl Tasks {
    /// The task's entry. Tasks that come when the table is full share one.
    pub(super) fn of(&mut self, comm: Comm, pid: u32) -> &mut Task {
        let full = self.0.len() >= TASKS_MAX;
        let own = (comm, Some(pid));
        let key = if full && !self.0.contains_key(&own) { OTHERS } else { own };
        self.0.entry(key).or_default()
    }

    pub(super) fn reports(&self) -> Vec<TaskReport> {
        let mut ranked: Vec<_> = self.0.iter().collect();
        // What has no number of its own belongs to the rest, wherever it would rank.
        ranked.sort_by_key(|(key, task)| (key.1.is_none(), Reverse(task.switches)));
        let rest = ranked.split_off(ranked.len().min(TASKS_SHOWN));
        let (others, shown): (Vec<_>, Vec<_>) = ranked.into_iter().partition(|(key, _)| key.1.is_none());
        let mut reports: Vec<TaskReport> =
            shown.iter().map(|((comm, pid), task)| task.report(comm.to_string(), *pid)).collect();
        let mut together = Task::default();
        others.iter().chain(&rest).for_each(|(_, task)| together.merge(task));
        if together.switches > 0 {
            reports.push(together.report("others".to_owned(), None));
        }
        reports
    }
}

impl Sites {
    pub(super) fn of(&mut self, stack_id: u32, comm: Comm) -> &mut Site {
        let full = self.0.len() >= SITES_MAX;
        let own = (stack_id, comm);
        let key = if full && !self.0.contains_key(&own) { (stack_id, OTHERS.0) } else { own };
        self.0.entry(key).or_default()
    }

    /// `switches`: how many there were that a stack may have been taken of. The weights of the samples add up to about as
    /// many, in a short recording to up to twice as many, while the kernel still adapts the period; so they are scaled.
    pub(super) fn reports(&self, switches: u64, frames_of: impl Fn(u32) -> Vec<String>) -> Vec<SiteReport> {
        let sampled: u64 = self.0.values().map(|site| site.switches).sum();
        let by = switches as f64 / sampled.max(1) as f64;
        let mut by_name: BTreeMap<String, Vec<(u32, &Comm, &Site)>> = BTreeMap::new();
        let mut frames = BTreeMap::new();
        for ((stack_id, comm), site) in &self.0 {
            let frames: &Vec<String> = frames.entry(*stack_id).or_insert_with(|| frames_of(*stack_id));
            let names: Vec<&str> = frames.iter().map(String::as_str).collect();
            let name = site_of(&names).unwrap_or(UNKNOWN).to_owned();
            by_name.entry(name).or_default().push((*stack_id, comm, site));
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
                    switches: (whole.switches as f64 * by).round() as u64,
                    stall: whole.times.stall.scaled(by),
                    sleeping: whole.times.sleeping.scaled(by),
                    run_queue_delay: whole.times.run_queue_delay.scaled(by),
                }
            })
            .collect();
        reports.sort_by_key(|site| Reverse((site.switches, site.stall.sum_ns)));
        reports
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
    let stack_id = stacks.iter().max_by_key(|(_, count)| **count).map_or(0, |(id, _)| *id);
    let comm = comms.iter().max_by_key(|(_, count)| **count);
    (stack_id, comm.map_or_else(String::new, |(comm, _)| comm.to_string()))
}

const OTHERS: (Comm, Option<u32>) = (Comm::OTHERS, None);
const UNKNOWN: &str = "unknown";
const TASKS_MAX: usize = 4096;
const TASKS_SHOWN: usize = 64;
const SITES_MAX: usize = 8192;
