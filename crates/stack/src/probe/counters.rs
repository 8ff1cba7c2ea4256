//! The probe `counters`: cycles of all detailed CPUs, and those in which they computed nothing although they had work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::smp::{Context, Processors};
use crate::time::{SECOND, Time};

/// It has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterOptions {}

/// A phase under observation.
#[derive(Clone, Copy, Debug)]
pub struct CounterProbe {
    began: Time,
    before: Counted,
}

/// What docs/probes.md describes as the observation of `counters`.
#[derive(Clone, Debug, Serialize)]
pub struct CounterObservation {
    elapsed_ns: Time,
    events: BTreeMap<&'static str, Sum>,
    absent: BTreeMap<&'static str, &'static str>,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Sum {
    value: f64,
    counted_share: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    online_ns: u128,
    stalled_cycles: u64,
}

impl CounterProbe {
    /// At the phase's beginning.
    pub fn new<T: Copy>(now: Time, cpus: &Processors<T>) -> CounterProbe {
        CounterProbe {
            began: now,
            before: counted(cpus),
        }
    }

    pub fn finish<T: Copy>(self, now: Time, cpus: &Processors<T>) -> CounterObservation {
        let after = counted(cpus);
        let online_ns = after.online_ns - self.before.online_ns;
        let clock_hz = cpus.spec().clock_hz as f64;
        let cycles = online_ns as f64 / SECOND as f64 * clock_hz;
        let stalled = after.stalled_cycles - self.before.stalled_cycles;
        let sum = |value| Sum {
            value,
            counted_share: 1.0,
        };
        let what = "the modelled processors execute no instructions";
        CounterObservation {
            elapsed_ns: now - self.began,
            events: BTreeMap::from([
                ("cycles", sum(cycles)),
                ("stalled-cycles-backend", sum(stalled as f64)),
            ]),
            absent: ["instructions", "cache-misses", "stalled-cycles-frontend"]
                .map(|name| (name, what))
                .into(),
            notes: Vec::new(),
        }
    }
}

/// Cycles run on while a CPU is idle, as those of the processors of 2008 did: their reports' are elapsed time x CPUs x clock.
fn counted<T: Copy>(cpus: &Processors<T>) -> Counted {
    (0..cpus.cpus()).fold(Counted::default(), |sum, cpu| {
        let usage = cpus.usage(cpu);
        let online_ns = usage.total_ns() - usage.ns(Context::Offline);
        Counted {
            online_ns: sum.online_ns + u128::from(online_ns),
            stalled_cycles: sum.stalled_cycles + cpus.stalls(cpu).cycles(),
        }
    })
}
