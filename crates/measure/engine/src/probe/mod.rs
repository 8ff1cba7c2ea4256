//! Probes: readers of what the system did while a phase ran. None of them ever fails a phase: what can't be read here is
//! absent, with the reason and what would grant it.
//!
//! [`Probes::start`] starts all that are wanted; [`Probes::stop`] ends them and yields what they saw.

mod block;
mod counters;
pub mod cpus;
mod functions;
mod instance;
pub mod perf;
mod profile;
mod pump;
mod reader;
mod running_probe;
pub mod sample;
pub mod spec;
mod switches;
pub mod symbols;
mod tracefs;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::error::StartError;
pub use running_probe::{ProbeStart, Reason, RunningProbe};
pub use spec::Spec;
pub use tracefs::TracefsPaths;

/// All probes of one phase.
pub struct Probes {
    running: Vec<(&'static str, Box<dyn RunningProbe>)>,
    absent: BTreeMap<&'static str, Reason>,
}

/// What the probes yielded.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ProbeReports {
    /// By the probe's name, its report as JSON.
    #[schemars(with = "Observations")]
    pub observations: BTreeMap<&'static str, Value>,
    /// By the probe's name, why it could not read, and what would grant it.
    pub absent: BTreeMap<&'static str, Reason>,
}

/// What [`ProbeReports::observations`] holds, for the schema: each probe's report.
#[derive(schemars::JsonSchema)]
#[schemars(rename = "HostObservations")]
#[expect(dead_code, reason = "never made: it says of what types the reports are")]
struct Observations {
    block: Option<block::BlockObservation>,
    switches: Option<switches::SwitchesObservation>,
    profile: Option<profile::ProfileObservation>,
    counters: Option<counters::CountersObservation>,
    cpu: Option<trace::sample::cpu::CpuObservation>,
    memory: Option<sample::memory::MemoryObservation>,
    io_cost: Option<trace::sample::io_cost::IoCostObservation>,
}

impl Probes {
    /// Refuses only a specification that makes no sense.
    pub fn start(spec: &Spec) -> Result<Probes, StartError> {
        Probes::start_at(spec, &TracefsPaths::default())
    }

    /// The same if the kernel shows its trace elsewhere.
    pub fn start_at(spec: &Spec, places: &TracefsPaths) -> Result<Probes, StartError> {
        spec.check()?;
        let mut probes = Probes { running: Vec::new(), absent: BTreeMap::new() };
        if let Some(block) = &spec.block {
            let started = block::start(block, &spec.trace_instance, places);
            probes.add("block", started);
        }
        if let Some(switches) = &spec.switches {
            let instance = format!("{}-switches", spec.trace_instance);
            probes.add("switches", switches::start(switches, &instance, places));
        }
        if let Some(profile) = &spec.profile {
            probes.add("profile", profile::start(profile));
        }
        if spec.counters.is_some() {
            probes.add("counters", counters::start());
        }
        if let Some(spec) = &spec.cpu {
            probes.add("cpu", sample::cpu::start(spec.interval()));
        }
        if let Some(spec) = &spec.memory {
            probes.add("memory", sample::memory::start(spec.interval()));
        }
        if let Some(spec) = &spec.io_cost {
            probes.add("io_cost", sample::io_cost::start(spec));
        }
        Ok(probes)
    }

    /// Ends all probes and collects their reports; waits for their threads.
    pub fn stop(self) -> ProbeReports {
        let mut observed = ProbeReports { observations: BTreeMap::new(), absent: self.absent };
        for (name, probe) in self.running {
            match probe.stop() {
                Ok(observation) => {
                    observed.observations.insert(name, observation);
                }
                Err(reason) => {
                    observed.absent.insert(name, reason);
                }
            }
        }
        observed
    }

    fn add(&mut self, name: &'static str, started: ProbeStart) {
        match started {
            Ok(probe) => self.running.push((name, probe)),
            Err(reason) => {
                self.absent.insert(name, reason);
            }
        }
    }
}
