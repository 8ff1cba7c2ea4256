//! The probe `cpu`: where the detailed CPUs' time goes, as a kernel counts it that looks at every tick what runs.

use std::collections::BTreeMap;

use trace::sample::cpu::{self, CpuObservation, CpuReading, Stat, Ticks};
use trace::sample::series::Level;

use super::sampled::{SampleOptions, Sampled};
use events::smp::{Context, Processors, Usage};
use events::time::{SECOND, Time};

/// A phase under observation.
#[derive(Debug)]
pub struct CpuProbe(Sampled<CpuReading>);

impl CpuProbe {
    /// At the phase's beginning.
    pub fn new<T: Copy>(options: &SampleOptions, now: Time, cpus: &Processors<T>) -> CpuProbe {
        let most = cpu::intervals_max(usize::from(cpus.cpus()));
        CpuProbe(Sampled::new(options, now, reading(cpus), most))
    }

    /// To be called once in an interval; more calls do nothing.
    pub fn look<T: Copy>(&mut self, now: Time, cpus: &Processors<T>) {
        self.0.look(now, || reading(cpus));
    }

    /// What docs/reference/probes.md describes as the observation of `cpu`. `started_unix_ns`: when the phase was run.
    pub fn finish<T: Copy>(mut self, now: Time, started_unix_ns: u64, cpus: &Processors<T>) -> CpuObservation {
        let times = self.0.finish(now, started_unix_ns, reading(cpus));
        let series = &self.0.series;
        CpuObservation {
            times,
            cpus_online: (0..cpus.cpus()).filter(|&cpu| cpus.is_online(cpu)).count(),
            ticks_per_s: SECOND,
            frequency: cpu::frequency("the machine's file", series),
            means: cpu::means(series),
            series: cpu::series(series),
        }
    }
}

/// Without the CPUs that are offline.
fn reading<T: Copy>(cpus: &Processors<T>) -> CpuReading {
    let online = (0..cpus.cpus()).filter(|&cpu| cpus.is_online(cpu));
    let mut stat = Stat {
        cpus: online.map(|cpu| (u32::from(cpu), ns_by_state(&cpus.usage(cpu)))).collect::<BTreeMap<u32, Ticks>>(),
        ..Stat::default()
    };
    for cpu in 0..cpus.cpus() {
        let events = cpus.events(cpu);
        stat.interrupts += events.interrupts;
        stat.context_switches += events.switches;
    }
    CpuReading { stat, frequency_hz: Some(Level::of(cpus.spec().clock_hz as f64)) }
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
