//! Which functions of the kernel ran, by a timer on each CPU that is busy.

use std::os::fd::RawFd;

use serde::Serialize;
use serde_json::Value;
use trace::profile::{Profile, ProfileReport};

use super::cpus::Presence;
use super::functions::Functions;
use super::perf::{Kind, Losses, Rate, Samplers};
use super::pump::{Drain, Pump};
use super::spec::ProfileSpec;
use super::{ProbeStart, Reason, RunningProbe};
use crate::clock::monotonic_ns;

/// What docs/reference/probes.md describes as the observation of `profile`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct ProfileObservation {
    #[serde(flatten)]
    report: ProfileReport,
    notes: Vec<String>,
}

pub fn start(spec: &ProfileSpec) -> ProbeStart {
    let sampled = RunningProfile {
        profile: Profile::new(monotonic_ns(), spec.interval_ns),
        samplers: Samplers::start(Kind::CpuClock, Rate::PerSecond(spec.frequency_hz))?,
        presence: Presence::now(),
    };
    let pump = Pump::start("iolab-profile", sampled).map_err(|error| format!("can't start a thread: {error}"))?;
    Ok(Box::new(ProfileProbe { pump }))
}

struct ProfileProbe {
    pump: Pump<RunningProfile>,
}

impl RunningProbe for ProfileProbe {
    fn stop(self: Box<Self>) -> Result<Value, Reason> {
        let ended_ns = monotonic_ns();
        let sampled = self.pump.stop().ok_or("the thread that reads the samples died")?;
        let RunningProfile { mut profile, samplers, presence } = sampled;
        let (stacks, losses) = samplers.into_parts();
        let Losses { samples_lost, .. } = losses;
        profile.lost(samples_lost);
        let functions = Functions::of(stacks);
        let observation = ProfileObservation {
            report: profile.finish(ended_ns, |stack| functions.names(stack)),
            notes: [presence.notes(), losses.notes(), functions.notes()].concat(),
        };
        serde_json::to_value(observation).map_err(|error| error.to_string())
    }
}

struct RunningProfile {
    profile: Profile,
    samplers: Samplers,
    presence: Presence,
}

impl Drain for RunningProfile {
    fn descriptors(&self) -> Vec<RawFd> {
        self.samplers.descriptors()
    }

    fn drain(&mut self) {
        self.presence.look();
        let profile = &mut self.profile;
        self.samplers.drain(|sample| profile.add(sample.at_ns, sample.stack));
    }
}
