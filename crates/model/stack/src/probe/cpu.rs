//! The probe `cpu`: where the detailed CPUs' time goes, as a kernel counts it that looks at every tick what runs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use trace::sample::Times;
use trace::sample::cpu::{self, CpuObservation, CpuReading, Stat, Ticks};
use trace::sample::series::{Level, Series};

use events::SpecError;
use events::smp::{Context, Processors, Usage};
use events::spec_error::within;
use events::time::{SECOND, Time};

/// The options of the probe `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuOptions {
    /// Between two points of the series.
    pub interval_ns: u64,
}

/// A phase under observation.
#[derive(Debug)]
pub struct CpuProbe {
    began: Time,
    series: Series<CpuReading>,
    due: Time,
    readings: u64,
}

impl CpuOptions {
    /// The interval lies between 1 us and 1000 s. The error names the key.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        within("interval_ns", self.interval_ns, 1_000, 1_000 * SECOND)
    }
}

impl CpuProbe {
    /// At the phase's beginning.
    pub fn new<T: Copy>(options: &CpuOptions, now: Time, cpus: &Processors<T>) -> CpuProbe {
        let interval = Duration::from_nanos(options.interval_ns);
        let most = cpu::intervals_max(usize::from(cpus.cpus()));
        CpuProbe {
            began: now,
            due: now + options.interval_ns,
            series: Series::new(0, reading(cpus), interval, most),
            readings: 1,
        }
    }

    /// To be called once in an interval; more calls do nothing.
    pub fn look<T: Copy>(&mut self, now: Time, cpus: &Processors<T>) {
        if now >= self.due {
            self.read(now, cpus);
            self.due = now + self.series.interval().as_nanos() as Time;
        }
    }

    fn read<T: Copy>(&mut self, now: Time, cpus: &Processors<T>) {
        self.series.add(now - self.began, reading(cpus));
        self.readings += 1;
    }

    /// What docs/reference/probes.md describes as the observation of `cpu`. `started_unix_ns`: when the phase was run.
    pub fn finish<T: Copy>(
        mut self,
        now: Time,
        started_unix_ns: u64,
        cpus: &Processors<T>,
    ) -> CpuObservation {
        self.read(now, cpus);
        CpuObservation {
            times: Times {
                started_unix_ns,
                elapsed_ns: now - self.began,
                interval_ns: self.series.interval().as_nanos() as u64,
                readings: self.readings,
                readings_failed: 0,
                cost_cpu_ns: None,
            },
            cpus_online: (0..cpus.cpus()).filter(|&cpu| cpus.is_online(cpu)).count(),
            ticks_per_s: SECOND,
            frequency: cpu::frequency("the machine's file", &self.series),
            means: cpu::means(&self.series),
            series: cpu::series(&self.series),
        }
    }
}

/// Without the CPUs that are offline.
fn reading<T: Copy>(cpus: &Processors<T>) -> CpuReading {
    let online = (0..cpus.cpus()).filter(|&cpu| cpus.is_online(cpu));
    let mut stat = Stat {
        cpus: online
            .map(|cpu| (u32::from(cpu), ns_by_state(&cpus.usage(cpu))))
            .collect::<BTreeMap<u32, Ticks>>(),
        ..Stat::default()
    };
    for cpu in 0..cpus.cpus() {
        let events = cpus.events(cpu);
        stat.interrupts += events.interrupts;
        stat.context_switches += events.switches;
    }
    CpuReading {
        stat,
        frequency_hz: Some(Level::of(cpus.spec().clock_hz as f64)),
    }
}

/// In the order of `trace::sample::cpu::STATES`: nothing runs at low priority or belongs to a guest here.
fn ns_by_state(usage: &Usage) -> Ticks {
    let ns = |context| usage.sampled_ns(context);
    [
        ns(Context::User),
        0,
        ns(Context::System) + ns(Context::KernelThread),
        ns(Context::Idle),
        ns(Context::IoWait),
        ns(Context::HardInterrupt),
        ns(Context::SoftInterrupt),
        0,
        0,
        0,
    ]
}
