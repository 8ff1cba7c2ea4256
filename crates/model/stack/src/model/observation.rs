//! A phase with its probes, and a record with what they saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trace::sample::cpu::CpuObservation;
use trace::sample::io_cost::IoCostObservation;

use super::kinds::{AnyPhase, AnyRecord};
use crate::drive_name::DriveName;
use crate::probe::block::{BlockOptions, BlockProbe, Observation};
use crate::probe::counters::{CounterObservation, CounterOptions, CounterProbe};
use crate::probe::cpu::CpuProbe;
use crate::probe::io_cost::IoCostProbe;
use crate::probe::nfs::{NfsObservation, NfsOptions, NfsProbe};
use crate::probe::sampled::SampleOptions;
use crate::world::World;
use block_layer::completion::Counters;
use block_layer::{QueueEvent, TaskId};
use events::SpecError;
use filesystems::switches::{SwitchesObservation, SwitchesOptions};

/// A phase, and the probes that watch it.
#[derive(Clone, Debug)]
pub struct ObservedPhase {
    /// What runs.
    pub phase: AnyPhase,
    /// What watches it.
    pub probes: Probes,
}

/// The probes that the model has, each with its options; extents are asked for when a phase is over.
#[derive(Clone, Copy, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModelProbes")]
pub struct Probes {
    /// `block`: the events of all request queues.
    pub block: Option<BlockOptions>,
    /// `nfs`, of loads: the counters of all mounts.
    pub nfs: Option<NfsOptions>,
    /// Of detailed CPUs, as the next.
    pub cpu: Option<SampleOptions>,
    /// `counters`: cycles and stalled cycles.
    pub counters: Option<CounterOptions>,
    /// Of metadata phases only.
    pub switches: Option<SwitchesOptions>,
    /// `io_cost`: the rate of io.cost on each drive.
    pub io_cost: Option<SampleOptions>,
}

/// A phase's record, with what its probes observed: docs/reference/probes.md.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ModelRecord")]
pub struct Record {
    /// Times, counts and jobs, in the shape that a host's phase has.
    #[serde(flatten)]
    pub phase: AnyRecord,
    /// Under the names of the probes.
    pub probes: Observations,
}

/// What each probe observed; None, and absent in JSON: it was not asked for.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ModelObservations")]
pub struct Observations {
    /// Of the request queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Observation>,
    /// Of the mounts, one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nfs: Option<NfsObservation>,
    /// Of the CPUs, in the shape of a host's probe `cpu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuObservation>,
    /// Of the CPUs' cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterObservation>,
    /// Of who switches to whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<SwitchesObservation>,
    /// Of the rate of io.cost, in the shape of a host's probe `io_cost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_cost: Option<IoCostObservation>,
}

/// What watches a phase.
#[derive(Debug, Default)]
pub(super) struct Watch {
    block: Option<BlockProbe>,
    nfs: Option<NfsProbe>,
    cpu: Option<CpuProbe>,
    counters: Option<CounterProbe>,
    io_cost: Option<IoCostProbe>,
    events: Vec<QueueEvent>,
    /// By drive, at the phase's beginning.
    worked: Vec<Counters>,
}

impl ObservedPhase {
    /// A phase's JSON, perhaps with the key `probes`.
    pub fn from_json(mut json: Value) -> Result<ObservedPhase, SpecError> {
        let probes = match json.as_object_mut().and_then(|table| table.remove("probes")) {
            None => Probes::default(),
            Some(probes) => {
                serde_json::from_value(probes).map_err(|error| SpecError::of("probes", error.to_string()))?
            }
        };
        let phase = AnyPhase::from_json(json)?;
        Ok(ObservedPhase { phase, probes })
    }
}

impl Probes {
    /// What the machine has no mechanism for.
    pub(super) fn check_cpus(&self, has_detailed_cpus: bool) -> Result<(), SpecError> {
        let of_cpus =
            [("switches", self.switches.is_some()), ("cpu", self.cpu.is_some()), ("counters", self.counters.is_some())];
        for (probe, is_on) in of_cpus {
            if is_on && !has_detailed_cpus {
                let what = "simple CPUs have nothing to show; give cpus a topology";
                return Err(SpecError::of(&format!("probes.{probe}"), what));
            }
        }
        Ok(())
    }

    /// Their intervals.
    pub(super) fn check_intervals(&self) -> Result<(), SpecError> {
        for (key, options) in [("probes.cpu", self.cpu), ("probes.io_cost", self.io_cost)] {
            options.map_or(Ok(()), |options| options.check()).map_err(|error| error.within(key))?;
        }
        Ok(())
    }
}

impl Watch {
    /// `names`: what the phase's tasks are called; `drives`: what the drives are.
    pub(super) fn new(probes: &Probes, names: &[(TaskId, String)], drives: Vec<DriveName>, world: &mut World) -> Watch {
        let io_cost = probes.io_cost.map(|options| IoCostProbe::new(&options, &drives, world));
        let block = probes.block.map(|options| BlockProbe::new(&options, world.now(), names, drives));
        if block.is_some() {
            world.tap();
        }
        let sampled = [probes.cpu, probes.io_cost].into_iter().flatten();
        world.poll_every(sampled.map(|options| options.interval_ns).min());
        let now = world.now();
        let cpus = world.processors();
        Watch {
            cpu: probes.cpu.zip(cpus).map(|(options, cpus)| CpuProbe::new(&options, now, cpus)),
            counters: probes.counters.zip(world.processors()).map(|(_, cpus)| CounterProbe::new(now, cpus)),
            worked: world.completion_counters(),
            io_cost,
            block,
            nfs: probes.nfs.map(|_| NfsProbe::new(world.now(), world.mounts())),
            events: Vec::new(),
        }
    }

    /// Takes what has happened since the last time.
    pub(super) fn look(&mut self, world: &mut World) {
        if let Some(block) = &mut self.block {
            world.take_events(&mut self.events);
            block.events(&mut self.events);
        }
        let now = world.now();
        if let Some((cpu, cpus)) = self.cpu.as_mut().zip(world.processors()) {
            cpu.look(now, cpus);
        }
        if let Some(io_cost) = &mut self.io_cost {
            io_cost.look(now, world);
        }
    }

    /// What was seen, and the trace files by their names.
    pub(super) fn end(mut self, world: &mut World, started_unix_ns: u64) -> (Observations, BTreeMap<String, Vec<u8>>) {
        self.look(world);
        let mut observations = Observations::default();
        let mut traces = BTreeMap::new();
        if let Some(block) = self.block {
            world.untap();
            let counted = world.completion_counters().into_iter();
            let worked: Vec<Counters> = counted.zip(self.worked).map(|(after, before)| after - before).collect();
            let (observation, files) = block.finish(world.now(), &worked);
            observations.block = Some(observation);
            traces.extend(files);
        }
        if let Some(nfs) = self.nfs {
            let (observation, files) = nfs.finish(world.now(), world.mounts());
            observations.nfs = Some(observation);
            traces.extend(files);
        }
        world.poll_every(None);
        let now = world.now();
        observations.io_cost = self.io_cost.and_then(|probe| probe.finish(started_unix_ns, world));
        if let Some(cpus) = world.processors() {
            observations.cpu = self.cpu.map(|cpu| cpu.finish(now, started_unix_ns, cpus));
            observations.counters = self.counters.map(|counters| counters.finish(now, cpus));
        }
        (observations, traces)
    }
}
