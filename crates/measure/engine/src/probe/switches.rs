//! Context switches: every one of them by trace events, and a sample of them with the kernel stack at which the task
//! left.
//!
//! Stacks come from perf's counter of context switches, not from its sched_switch tracepoint: that one prepares a
//! record at every switch, sampled or not, which took a third of the rate away from two tasks that only wake each
//! other; the counter at one sample in a hundred took nothing that could be measured (Linux 6.18).

use std::collections::VecDeque;
use std::os::fd::RawFd;

use serde::Serialize;
use serde_json::Value;
use trace::decode::WantedEvent;
use trace::format::FormatError;
use trace::page::{LostEvents, RawEvent};
use trace::sched::{Analysis, EVENTS, SchedDecoder, SwitchReport};

use super::functions::Functions;
use super::instance::Instance;
use super::perf::{Kind, Rate, Samplers, StackSample};
use super::reader::{Interpret, Recording};
use super::spec::SwitchesSpec;
use super::tracefs::TracefsPaths;
use super::{ProbeStart, Reason, RunningProbe};
use crate::clock::monotonic_ns;

/// What docs/reference/probes.md describes as the observation of `switches`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct SwitchesObservation {
    #[serde(flatten)]
    report: SwitchReport,
    /// As the kernel counts them, at the end: also those that no sub-buffer could report.
    trace_events_lost: u64,
    stack_samples_lost: u64,
    notes: Vec<String>,
}

/// The buffer of each CPU: a quarter second of the switches of a CPU that does nothing else.
const BUFFER_BYTES: u64 = 16 << 20;

/// A stack takes 1 to 2 us: at this rate a CPU spends a fifth of a percent on them, however often it switches.
const STACKS_PER_SECOND: u64 = 1000;

pub fn start(spec: &SwitchesSpec, instance: &str, places: &TracefsPaths) -> ProbeStart {
    let tracefs = places.find()?;
    let instance = Instance::make(&tracefs, instance, BUFFER_BYTES)?;
    if let Some(pids) = &spec.pids {
        instance.restrict_to(pids)?;
    }
    let (formats, mut notes) = instance.enable_all(&recorded(), "")?;
    let decoder = SchedDecoder::new(&formats).map_err(|error| error.to_string())?;
    let rate = spec.stack_every.map_or(Rate::PerSecond(STACKS_PER_SECOND), Rate::Every);
    let samplers =
        Samplers::start(Kind::ContextSwitches, rate).inspect_err(|reason| notes.push(format!("no stacks: {reason}")));
    let interpret = Switches {
        decoder,
        analysis: Analysis::new(monotonic_ns(), spec.interval_ns),
        samplers: samplers.ok(),
        stacks: VecDeque::new(),
    };
    let recording = Recording::start("iolab-switches", instance, interpret)?;
    Ok(Box::new(SwitchesProbe { recording, notes }))
}

const IDLE_TASK: u32 = 0;

/// `sched_wakeup` costs a busy waker more than the others together, and its time is a moment after `sched_waking`.
fn recorded() -> Vec<WantedEvent> {
    let cheap = |event: &&WantedEvent| event.name != "sched_wakeup";
    EVENTS.iter().filter(cheap).copied().collect()
}

struct SwitchesProbe {
    recording: Recording<Switches>,
    notes: Vec<String>,
}

impl RunningProbe for SwitchesProbe {
    fn stop(self: Box<Self>) -> Result<Value, Reason> {
        let recorded = self.recording.stop()?;
        let mut interpret = recorded.interpret;
        interpret.add_stacks(u64::MAX);
        let Switches { analysis, samplers, .. } = interpret;
        let (stacks, losses) = samplers.map(Samplers::into_parts).unwrap_or_default();
        let functions = Functions::of(stacks);
        let report = analysis.finish(recorded.ended_ns, |stack| functions.names(stack));
        let observation = SwitchesObservation {
            report,
            trace_events_lost: recorded.events_lost,
            stack_samples_lost: losses.samples_lost,
            notes: [self.notes, recorded.notes, losses.notes(), functions.notes()].concat(),
        };
        serde_json::to_value(observation).map_err(|error| error.to_string())
    }
}

struct Switches {
    decoder: SchedDecoder,
    analysis: Analysis,
    samplers: Option<Samplers>,
    /// In the order of time; of switches that have not come yet.
    stacks: VecDeque<StackSample>,
}

impl Switches {
    /// Hands over the stacks of the time before this.
    #[inline]
    fn add_stacks(&mut self, until_ns: u64) {
        while let Some(&StackSample { at_ns, cpu, tid, weight, stack, .. }) = self.stacks.front()
            && at_ns < until_ns
        {
            self.stacks.pop_front();
            self.analysis.add_stack(at_ns, cpu, tid, weight, stack);
        }
    }
}

impl Interpret for Switches {
    #[inline]
    fn add(&mut self, cpu: u32, raw: &RawEvent<'_>) -> Result<(), FormatError> {
        self.add_stacks(raw.at_ns);
        if let Some(event) = self.decoder.decode(cpu, raw)? {
            self.analysis.add(&event);
        }
        Ok(())
    }

    fn lost(&mut self, _at_ns: u64, lost: LostEvents) {
        self.analysis.lost(lost);
    }

    fn side_streams(&self) -> Vec<RawFd> {
        self.samplers.iter().flat_map(Samplers::descriptors).collect()
    }

    fn read_side_streams(&mut self) {
        let Some(samplers) = &mut self.samplers else {
            return;
        };
        let stacks = &mut self.stacks;
        samplers.drain(|sample| {
            // The place where an idle task waits is of no interest.
            if sample.tid != IDLE_TASK {
                stacks.push_back(sample);
            }
        });
        stacks.make_contiguous().sort_by_key(|sample| sample.at_ns);
    }
}
