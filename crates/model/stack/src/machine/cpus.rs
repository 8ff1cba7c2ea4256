//! The CPUs of a machine file: simple, or detailed if their table has a `topology`.

use serde::Deserialize;
use serde_json::Value;

use super::drive::DrivePlan;
use super::{Table, read};
use crate::world::{CALL_NS_MAX, CallCycles, CpuSpec, Cpus, DetailedSpec, DriveCpus, QueueRunCosts, World};
use block_layer::completion::{CompletionSpec, CompletionVariant};
use events::SpecError;
use events::smp::{SmpSpec, Topology};
use events::spec_error::{share, within};
use events::time::{SECOND, Time};
use kernels::Kernel;
use kernels::scheduling::TaskOrder;

#[derive(Clone, Debug)]
pub(super) enum CpusPlan {
    Simple(Box<CpuSpec>),
    Detailed(Box<DetailedPlan>),
}

#[derive(Clone, Debug)]
pub(super) struct DetailedPlan {
    smp: SmpSpec,
    calls: CallCycles,
    /// None until `complete`.
    completion: Option<CompletionSpec>,
    rq_affinity: u8,
    offline: Vec<OfflineCpu>,
}

/// A CPU that is taken out for a while, or for good.
#[derive(Clone, Copy, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfflineCpu {
    /// Its number, from 0.
    cpu: u16,
    /// Since the machine was switched on.
    from_ns: Time,
    /// Left out: for good.
    until_ns: Option<Time>,
}

/// What the table `cpus` holds, for the schema.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never made: it says what the table holds")]
pub(super) enum CpusTable {
    Simple(Box<CpuSpec>),
    Detailed(DetailedCpusTable),
}

/// CPUs with places, caches and interrupts of their own.
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "never made: it says what the table holds")]
pub(super) struct DetailedCpusTable {
    #[serde(flatten)]
    smp: SmpSpec,
    #[serde(flatten)]
    calls: CallCycles,
    /// CPUs that are taken out.
    #[serde(default)]
    offline: Vec<OfflineCpu>,
}

const CPUS_MAX: u16 = 1024;

/// Of the table `cpus`, what tasks do there.
const CALL_KEYS: [&str; 6] =
    ["submit_cycles", "user_cycles", "reap_cycles", "page_copy_cycles", "poll_cycles", "jitter"];

impl CpusPlan {
    /// From the table `cpus`.
    pub(super) fn read(mut table: Table) -> Result<CpusPlan, SpecError> {
        if !table.contains_key("topology") {
            let spec: CpuSpec = read("cpus", Value::Object(table))?;
            check_simple(&spec).map_err(|error| error.within("cpus"))?;
            return Ok(CpusPlan::Simple(Box::new(spec)));
        }
        let calls: Table = CALL_KEYS.iter().filter_map(|&key| table.remove_entry(key)).collect();
        let offline = table.remove("offline").unwrap_or(Value::Array(Vec::new()));
        let plan = DetailedPlan {
            calls: read("cpus", Value::Object(calls))?,
            offline: read("cpus.offline", offline)?,
            smp: read("cpus", Value::Object(table))?,
            completion: None,
            rq_affinity: 0,
        };
        plan.check().map_err(|error| error.within("cpus"))?;
        Ok(CpusPlan::Detailed(Box::new(plan)))
    }

    pub(super) fn are_detailed(&self) -> bool {
        matches!(self, CpusPlan::Detailed(_))
    }

    /// Where they are; simple ones are cores of one socket.
    pub(super) fn topology(&self) -> Topology {
        match self {
            CpusPlan::Simple(spec) => Topology::flat(spec.count),
            CpusPlan::Detailed(plan) => plan.smp.topology,
        }
    }

    /// With the table `completion`; then drives, kernel and CPUs fit together.
    pub(super) fn complete(
        &mut self,
        completion: Option<Table>,
        kernel: &Kernel,
        drives: &[DrivePlan],
    ) -> Result<(), SpecError> {
        match self {
            CpusPlan::Simple(spec) => {
                if completion.is_some() {
                    return Err(SpecError::of("completion", ONLY_DETAILED));
                }
                for (number, drive) in drives.iter().enumerate() {
                    if spec.timer_interrupts.is_some() && !drive.completes_by_timer() {
                        let what = "expected a null device under blk-mq, without io_poll: cpus.timer_interrupts completes each request by a timer";
                        return Err(SpecError::of(&format!("drives.{number}.device"), what));
                    }
                    if let Some(key) = drive.needs_detailed_cpus() {
                        return Err(SpecError::of(&format!("drives.{number}.{key}"), ONLY_DETAILED));
                    }
                }
                Ok(())
            }
            CpusPlan::Detailed(plan) => {
                plan.complete(completion, kernel, drives)?;
                plan.drives(drives).map(|_| ())
            }
        }
    }

    /// Cycles a second; None: simple CPUs whose file has no clock.
    pub(super) fn clock_hz(&self) -> Option<u64> {
        match self {
            CpusPlan::Simple(spec) => spec.clock_hz,
            CpusPlan::Detailed(plan) => Some(plan.smp.clock_hz),
        }
    }

    /// What runs of hardware queues cost; None: nothing of their own.
    pub(super) fn queue_run_costs(&self) -> Option<QueueRunCosts> {
        match self {
            CpusPlan::Simple(spec) => {
                spec.timer_interrupts.map(|of| QueueRunCosts { dequeue_ns: of.dequeue_ns, issue_ns: of.issue_ns })
            }
            CpusPlan::Detailed(_) => None,
        }
    }

    /// What a call costs that submits I/O, and copying a page.
    pub(super) fn call_costs_ns(&self) -> (Time, Time) {
        match self {
            CpusPlan::Simple(spec) => (spec.call_ns, spec.page_copy_ns),
            CpusPlan::Detailed(plan) => {
                let ns = |cycles: u32| u64::from(cycles) * SECOND / plan.smp.clock_hz;
                (ns(plan.calls.submit_cycles), ns(plan.calls.page_copy_cycles))
            }
        }
    }

    /// The CPUs that a phase's group names.
    pub(super) fn allowed(&self, cpus: &[u32]) -> Result<Vec<u16>, SpecError> {
        let CpusPlan::Detailed(plan) = self else {
            return Err(SpecError::of("cpus", ONLY_DETAILED));
        };
        if cpus.is_empty() {
            return Err(SpecError::of("cpus", "expected at least one CPU"));
        }
        let last = plan.smp.topology.cpus() - 1;
        cpus.iter().map(|&cpu| within("cpus", u64::from(cpu), 0, last).map(|()| cpu as u16)).collect()
    }

    pub(super) fn build(&self, kernel: &Kernel, drives: &[DrivePlan]) -> Result<Cpus, SpecError> {
        match self {
            CpusPlan::Simple(spec) => {
                let order = kernel.task_order();
                if spec.start.is_some() && order != TaskOrder::ByTimeHad {
                    let what = format!(
                        "expected a kernel from 2.6.23 to 6.5: tasks of {} do not begin behind one another",
                        kernel.name()
                    );
                    return Err(SpecError::of("start", what).within("cpus"));
                }
                Ok(Cpus::simple(**spec, order))
            }
            CpusPlan::Detailed(plan) => {
                let spec = DetailedSpec {
                    smp: plan.smp.clone(),
                    completion: plan.completion.expect("a complete plan"),
                    calls: plan.calls,
                    drives: plan.drives(drives)?,
                };
                Cpus::detailed(&spec)
            }
        }
    }

    #[cfg(test)]
    pub(super) fn placements(&self, drives: &[DrivePlan]) -> Vec<DriveCpus> {
        match self {
            CpusPlan::Simple(_) => Vec::new(),
            CpusPlan::Detailed(plan) => plan.drives(drives).unwrap(),
        }
    }

    pub(super) fn plan_offline(&self, world: &mut World) {
        if let CpusPlan::Detailed(plan) = self {
            for offline in &plan.offline {
                world.plan_online(offline.from_ns, offline.cpu, false);
                if let Some(until) = offline.until_ns {
                    world.plan_online(until, offline.cpu, true);
                }
            }
        }
    }
}

const ONLY_DETAILED: &str = "simple CPUs have no such thing; give cpus a topology";

impl DetailedPlan {
    fn check(&self) -> Result<(), SpecError> {
        self.smp.check()?;
        self.calls.check()?;
        let last = self.smp.topology.cpus() - 1;
        for (number, offline) in self.offline.iter().enumerate() {
            let key = format!("offline.{number}");
            within(&format!("{key}.cpu"), u64::from(offline.cpu), 0, last)?;
            within(&format!("{key}.from_ns"), offline.from_ns, 0, Time::MAX >> 1)?;
            if let Some(until) = offline.until_ns {
                let key = format!("{key}.until_ns");
                within(&key, until, offline.from_ns, Time::MAX >> 1)?;
            }
        }
        Ok(())
    }

    fn complete(&mut self, completion: Option<Table>, kernel: &Kernel, drives: &[DrivePlan]) -> Result<(), SpecError> {
        let mut table = completion
            .ok_or_else(|| SpecError::of("completion", "detailed CPUs need this table: what completing costs"))?;
        let is_multi_queue = drives.first().is_some_and(|drive| drive.hardware.is_some());
        let other = |drive: &DrivePlan| drive.hardware.is_some() != is_multi_queue;
        if let Some(number) = drives.iter().position(other) {
            let what = "detailed CPUs complete all drives' requests in the same way; \
                        give all a scheduler of blk-mq, or none";
            return Err(SpecError::of(&format!("drives.{number}.scheduler"), what));
        }
        let of_kernel = kernel.completion_form(is_multi_queue);
        table.entry("variant").or_insert(of_kernel.name().into());
        let spec: CompletionSpec = read("completion", Value::Object(table))?;
        spec.check().map_err(|error| error.within("completion"))?;
        self.completion = Some(spec);
        self.rq_affinity = match spec.variant {
            CompletionVariant::Softirq | CompletionVariant::RemoteSoftirq | CompletionVariant::Thread => 0,
            _ => kernel.rq_affinity(),
        };
        Ok(())
    }

    fn drives(&self, drives: &[DrivePlan]) -> Result<Vec<DriveCpus>, SpecError> {
        let variant = self.completion.expect("a complete plan").variant;
        (0..)
            .zip(drives)
            .map(|(number, drive)| {
                let cpus = drive
                    .cpus
                    .resolve(number, &self.smp.topology, drive.hardware.as_ref(), drive.hooks())
                    .map(|cpus| drive.with_rq_affinity(cpus, self.rq_affinity).by_rules_of(variant));
                cpus.and_then(|cpus| cpus.affinity.check(variant).map(|()| cpus))
                    .map_err(|error| error.within(&format!("drives.{number}")))
            })
            .collect()
    }
}

fn check_simple(cpus: &CpuSpec) -> Result<(), SpecError> {
    within("count", u64::from(cpus.count), 1, u64::from(CPUS_MAX))?;
    within("time_slice_ns", cpus.time_slice_ns, 1, CALL_NS_MAX)?;
    for (key, value) in
        [("call_ns", cpus.call_ns), ("completion_ns", cpus.completion_ns), ("page_copy_ns", cpus.page_copy_ns)]
    {
        within(key, value, 0, CALL_NS_MAX)?;
    }
    for (key, value) in [
        ("reap_call_ns", cpus.reap_call_ns),
        ("further_op_ns", cpus.further_op_ns),
        ("further_page_ns", cpus.further_page_ns),
        ("copy_call_ns", cpus.copy_call_ns),
        ("write_call_ns", cpus.write_call_ns),
        ("sync_call_ns", cpus.sync_call_ns),
        ("page_write_ns", cpus.page_write_ns),
    ] {
        within(key, value.unwrap_or(0), 0, CALL_NS_MAX)?;
    }
    if let Some(start) = &cpus.start {
        if cpus.count > 1 {
            let what = "expected one CPU: on several, tasks do not begin behind one another";
            return Err(SpecError::of("start", what));
        }
        start.check().map_err(|error| error.within("start"))?;
    }
    let interrupt_ns = cpus.interrupt_ns.unwrap_or(0);
    within("interrupt_ns", interrupt_ns, 0, CALL_NS_MAX)?;
    within("interrupt_ns", interrupt_ns, 0, cpus.completion_ns)?;
    if let Some(interrupts) = &cpus.timer_interrupts {
        if cpus.count > 1 {
            let what = "expected one CPU: of several it is not known which one a timer interrupts";
            return Err(SpecError::of("timer_interrupts", what));
        }
        for (key, value) in interrupts.values() {
            within(key, value, 0, CALL_NS_MAX).map_err(|error| error.within("timer_interrupts"))?;
        }
    }
    if let Some(clock_hz) = cpus.clock_hz {
        within("clock_hz", clock_hz, 1_000_000, 100_000_000_000)?;
    }
    share("jitter", cpus.jitter)
}
