//! The processors' counters of all CPUs together, from start to stop: cycles, instructions, cache misses, stalls.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use super::cpus::{self, Presence};
use super::perf::{Count, Counter, Kind, Scope};
use super::{ProbeStart, Reason, RunningProbe};

/// Opens what this machine counts; absent if that is nothing.
pub fn start() -> ProbeStart {
    let counting = RunningCounters::start(&[
        Kind::Cycles,
        Kind::Instructions,
        Kind::CacheMisses,
        Kind::StalledCyclesFrontend,
        Kind::StalledCyclesBackend,
    ]);
    match counting.absent.get(Kind::Cycles.name()) {
        Some(reason) if counting.counters.is_empty() => Err(reason.clone()),
        _ => Ok(Box::new(counting)),
    }
}

struct RunningCounters {
    started: Instant,
    presence: Presence,
    /// By perf's name of the event: one for each CPU.
    counters: BTreeMap<&'static str, Vec<Counter>>,
    absent: BTreeMap<&'static str, Reason>,
}

/// What docs/reference/probes.md describes as the observation of `counters`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct CountersObservation {
    /// From start to stop.
    elapsed_ns: u64,
    /// By perf's name of the event.
    events: BTreeMap<&'static str, Sum>,
    /// By event, why it was not counted.
    absent: BTreeMap<&'static str, Reason>,
    /// Notes for the reader, one line each.
    notes: Vec<String>,
}

/// Over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "EventSum")]
struct Sum {
    /// Scaled up if an event counted for a part of the time only, as perf(1) does: an estimate then.
    value: f64,
    /// The share of the time in which it did count: 1 unless there are more events than counters.
    counted_share: f64,
}

impl RunningCounters {
    fn start(kinds: &[Kind]) -> RunningCounters {
        let mut counting = RunningCounters {
            started: Instant::now(),
            presence: Presence::now(),
            counters: BTreeMap::new(),
            absent: BTreeMap::new(),
        };
        let online = cpus::online();
        for kind in kinds {
            let opened = online.iter().map(|cpu| Counter::open(*kind, Scope::Cpu(*cpu))).collect();
            match opened {
                Ok(counters) => {
                    counting.counters.insert(kind.name(), counters);
                }
                Err(reason) => {
                    counting.absent.insert(kind.name(), reason);
                }
            }
        }
        counting
    }
}

impl RunningProbe for RunningCounters {
    fn stop(mut self: Box<Self>) -> Result<Value, Reason> {
        let mut events = BTreeMap::new();
        for (&name, counters) in &self.counters {
            let counts: io::Result<Vec<Count>> = counters.iter().map(Counter::read).collect();
            match counts.map(|counts| sum(&counts)) {
                Ok(Some(sum)) => {
                    events.insert(name, sum);
                }
                Ok(None) => {
                    let reason = "it never had a counter: others hold them all";
                    self.absent.insert(name, reason.into());
                }
                Err(error) => {
                    self.absent.insert(name, error.to_string());
                }
            }
        }
        self.presence.look();
        let observation = CountersObservation {
            elapsed_ns: self.started.elapsed().as_nanos() as u64,
            events,
            absent: self.absent,
            notes: self.presence.notes(),
        };
        serde_json::to_value(observation).map_err(|error| error.to_string())
    }
}

/// None if a CPU counted for none of the time.
fn sum(counts: &[Count]) -> Option<Sum> {
    let scaled: Option<Vec<f64>> = counts.iter().map(scaled).collect();
    let (enabled_ns, running_ns) = counts
        .iter()
        .fold((0, 0), |(enabled, running), count| (enabled + count.enabled_ns, running + count.running_ns));
    Some(Sum { value: scaled?.iter().sum(), counted_share: running_ns as f64 / enabled_ns.max(1) as f64 })
}

fn scaled(count: &Count) -> Option<f64> {
    let factor = count.enabled_ns as f64 / count.running_ns as f64;
    (count.running_ns > 0).then_some(count.value as f64 * factor)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn count(value: u64, enabled_ns: u64, running_ns: u64) -> Count {
        Count { value, enabled_ns, running_ns }
    }

    #[test]
    fn what_counted_half_of_the_time_is_doubled() {
        let found = sum(&[count(10, 100, 100), count(10, 100, 50)]).unwrap();
        assert_eq!((found.value, found.counted_share), (30.0, 0.75));
    }

    #[test]
    fn what_never_counted_is_absent() {
        assert_eq!(sum(&[count(10, 100, 100), count(0, 100, 0)]), None);
    }

    /// The hardware's counters go the same way; most virtual machines have none.
    #[test]
    fn software_events_of_all_cpus_are_counted() {
        let counting = RunningCounters::start(&[Kind::CpuClock, Kind::ContextSwitches]);
        if let Some(reason) = counting.absent.values().next() {
            return eprintln!("SKIPPED software_events_of_all_cpus_are_counted: {reason}");
        }
        std::thread::sleep(Duration::from_millis(20));
        let found = Box::new(counting).stop().unwrap();
        let clock_ns = found["events"]["cpu-clock"]["value"].as_f64().unwrap();
        assert!(clock_ns >= 20e6, "{found}");
        assert!(found["events"]["context-switches"]["value"].as_f64().unwrap() > 0.0);
        assert!(found["elapsed_ns"].as_u64().unwrap() >= 20_000_000);
    }

    #[test]
    fn without_any_counter_the_reason_is_told() {
        match start() {
            Ok(running) => {
                let found = running.stop().unwrap();
                assert!(!found["events"].as_object().unwrap().is_empty());
            }
            Err(reason) => assert!(reason.contains("perf event cycles"), "{reason}"),
        }
    }
}
