//! The probe `counters`: cycles of all detailed CPUs, and those in which they computed nothing although they had work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use events::smp::{Context, KINDS, Kind, Processors, SharingCounts};
use events::time::{SECOND, Time};

/// It has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CounterOptions {}

/// A phase under observation.
#[derive(Clone, Copy, Debug)]
pub struct CounterProbe {
    began: Time,
    before: CpuCounts,
}

/// What docs/reference/probes.md describes as the observation of `counters`.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct CounterObservation {
    elapsed_ns: Time,
    events: BTreeMap<&'static str, Sum>,
    absent: BTreeMap<&'static str, &'static str>,
    /// By kind of object.
    sharing: BTreeMap<&'static str, SharingFigures>,
    notes: Vec<String>,
}

/// Over all CPUs.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ModelEventSum")]
struct Sum {
    value: f64,
    counted_share: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuCounts {
    online_ns: u128,
    stalled_cycles: u64,
    sharing: [SharingFigures; KINDS],
}

/// What CPUs took from one another of the objects of a kind, and of their locks.
#[derive(Clone, Copy, Debug, Default, Serialize, schemars::JsonSchema)]
struct SharingFigures {
    transfers: u64,
    transfer_cycles: u64,
    locked: u64,
    waited: u64,
    waited_ns: Time,
}

impl CounterProbe {
    /// At the phase's beginning.
    pub fn new<T: Copy>(now: Time, cpus: &Processors<T>) -> CounterProbe {
        CounterProbe { began: now, before: counted(cpus) }
    }

    /// What has been counted from the phase's beginning to `now`.
    pub fn finish<T: Copy>(self, now: Time, cpus: &Processors<T>) -> CounterObservation {
        let after = counted(cpus);
        let online_ns = after.online_ns - self.before.online_ns;
        let clock_hz = cpus.spec().clock_hz as f64;
        let cycles = online_ns as f64 / SECOND as f64 * clock_hz;
        let stalled = after.stalled_cycles - self.before.stalled_cycles;
        let sum = |value| Sum { value, counted_share: 1.0 };
        let what = "the simulated processors execute no instructions";
        CounterObservation {
            elapsed_ns: now - self.began,
            events: BTreeMap::from([("cycles", sum(cycles)), ("stalled-cycles-backend", sum(stalled as f64))]),
            absent: ["instructions", "cache-misses", "stalled-cycles-frontend"].map(|name| (name, what)).into(),
            sharing: Kind::NAMED
                .iter()
                .enumerate()
                .map(|(number, &(_, name))| (name, after.sharing[number].since(&self.before.sharing[number])))
                .collect(),
            notes: Vec::new(),
        }
    }
}

impl SharingFigures {
    fn since(&self, before: &SharingFigures) -> SharingFigures {
        SharingFigures {
            transfers: self.transfers - before.transfers,
            transfer_cycles: self.transfer_cycles - before.transfer_cycles,
            locked: self.locked - before.locked,
            waited: self.waited - before.waited,
            waited_ns: self.waited_ns - before.waited_ns,
        }
    }
}

impl From<SharingCounts> for SharingFigures {
    fn from(sharing: SharingCounts) -> SharingFigures {
        SharingFigures {
            transfers: sharing.transfers.iter().sum(),
            transfer_cycles: sharing.transfer_cycles,
            locked: sharing.locked,
            waited: sharing.waited,
            waited_ns: sharing.waited_ns,
        }
    }
}

/// Cycles run on while a CPU is idle, as those of the processors of 2008 did: their reports' are elapsed time x CPUs x clock.
fn counted<T: Copy>(cpus: &Processors<T>) -> CpuCounts {
    let begin = CpuCounts { sharing: Kind::NAMED.map(|(kind, _)| cpus.sharing(kind).into()), ..CpuCounts::default() };
    (0..cpus.cpus()).fold(begin, |sum, cpu| {
        let usage = cpus.usage(cpu);
        let online_ns = usage.total_ns() - usage.ns(Context::Offline);
        CpuCounts {
            online_ns: sum.online_ns + u128::from(online_ns),
            stalled_cycles: sum.stalled_cycles + cpus.stalls(cpu).cycles(),
            ..sum
        }
    })
}
