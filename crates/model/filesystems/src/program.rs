//! A thread that makes files, as its program sees it: its job, the call that it makes, and what it measures of each.

use base::rng;
use base::usage::{Sample, Usage};
use workload::measure::{Failures, Verdict};
use workload::metadata::{CREATE, Call, MetadataJob, MetadataPhase, OP_NAMES, ThreadMeasured, ThreadSpec};

use crate::filesystem::Progress;
use events::SpecError;
use events::smp::TaskNumber;
use events::spec_error::within;
use events::time::Time;

/// What is the same on every filesystem.
pub(crate) struct Program {
    pub(crate) task: TaskNumber,
    pub(crate) name: String,
    pub(crate) job: MetadataJob,
    /// The path of its directory.
    pub(crate) path: String,
    name_bytes: u32,
    seed: u64,
    pub(crate) call: Call,
    called_at: Time,
    /// What it has used since the phase began.
    pub(crate) user_ns: Time,
    pub(crate) system_ns: Time,
    measured: ThreadMeasured,
    written: bool,
}

/// How often the kernel has taken its CPU away, and how often it slept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

const ENOSPC: i32 = 28;

/// What of the phase the model has no mechanism for.
pub(crate) fn check(phase: &MetadataPhase, cpus: u16) -> Result<(), SpecError> {
    if phase.threads.is_empty() {
        return Err(SpecError::of("threads", "nothing to do: no threads"));
    }
    for (number, thread) in phase.threads.iter().enumerate() {
        let of = |key: &str| format!("threads.{number}.{key}");
        let wrong = |key: &str, what: &str| Err(SpecError::of(&of(key), what));
        if let Some(list) = &thread.cpus {
            if list.is_empty() {
                return wrong("cpus", "expected at least one CPU");
            }
            for &cpu in list {
                within(&of("cpus"), u64::from(cpu), 0, u64::from(cpus) - 1)?;
            }
        }
    }
    Ok(())
}

/// How far a phase has come whose threads these are.
pub(crate) fn progress<'a>(elapsed_ns: Time, threads: impl Iterator<Item = &'a Program> + Clone) -> Progress {
    let fractions = threads.clone().map(Program::fraction);
    Progress {
        elapsed_ns,
        files: threads.map(Program::files).sum(),
        fraction: fractions.reduce(|one, other| Some(one?.min(other?))).flatten(),
    }
}

impl Program {
    pub(crate) fn new(spec: &ThreadSpec, task: TaskNumber, now: Time) -> Result<Program, SpecError> {
        let job = MetadataJob::new(&spec.job).map_err(|what| SpecError::of("threads", what))?;
        let nothing = Sample { at: now, thread: Usage::default(), process: Usage::default() };
        Ok(Program {
            task,
            name: spec.job.name.clone(),
            job,
            path: spec.directory.clone(),
            name_bytes: spec.job.names.bytes,
            seed: spec.job.seed,
            call: Call::Done,
            called_at: now,
            user_ns: 0,
            system_ns: 0,
            measured: ThreadMeasured {
                ops: Default::default(),
                failures: Failures::new(errno_name),
                notes: Vec::new(),
                first_sample: nothing,
                last_sample: nothing,
                began_at: now,
                written_at: now,
                finished_at: now,
            },
            written: false,
        })
    }

    /// The next call. `Call::Done`: there is none.
    pub(crate) fn next_call(&mut self, began: Time, now: Time) -> Call {
        self.call = self.job.next(now - began);
        if !self.written && !self.job.is_writing() {
            self.written = true;
            self.measured.written_at = now;
        }
        self.measured.finished_at = now;
        self.call
    }

    pub(crate) fn calls_at(&mut self, at: Time) {
        self.called_at = at;
    }

    pub(crate) fn succeeded(&mut self, now: Time) {
        let op = &mut self.measured.ops[self.call.op()];
        op.latency.record(now - self.called_at);
        self.measured.failures.succeeded();
        self.job.completed(true);
    }

    /// No room is left.
    pub(crate) fn found_full(&mut self) {
        let ends_when_full = self.job.ends_when_full();
        if ends_when_full {
            self.job.full();
        }
        self.job.completed(false);
        if ends_when_full {
            return;
        }
        let op = OP_NAMES[self.call.op()];
        let failures = &mut self.measured.failures;
        if failures.failed(op, self.call.grows(), ENOSPC, &self.path, 0) == Verdict::GiveUp {
            let note = format!("gave up: {op} failed with {}", errno_name(ENOSPC));
            self.measured.notes.push(note);
            self.job.stop();
        }
    }

    pub(crate) fn stop(&mut self) {
        self.job.stop();
    }

    /// The hash of the name in its call: names that threads give are random, so their hashes are too.
    pub(crate) fn hash(&self) -> u32 {
        let number = match self.call {
            Call::Create(place) | Call::Unlink(place) => place.file,
            Call::MakeDirectory { directory } => u64::MAX - u64::from(directory),
            _ => unreachable!("the call names nothing"),
        };
        rng::stream(self.seed, number).next_u64() as u32
    }

    pub(crate) fn name_bytes(&self) -> u32 {
        self.name_bytes
    }

    pub(crate) fn files(&self) -> u64 {
        self.measured.ops[CREATE].latency.count()
    }

    pub(crate) fn fraction(&self) -> Option<f64> {
        self.job.progress()
    }

    /// Times since the phase began. `process_ns`: in user mode and in the kernel, of the whole machine.
    pub(crate) fn into_measured(self, began: Time, switches: Switches, process_ns: (Time, Time)) -> ThreadMeasured {
        let mut measured = self.measured;
        let of_process =
            |(user_ns, system_ns)| Usage { cpu_user_ns: user_ns, cpu_system_ns: system_ns, ..Usage::default() };
        measured.last_sample = Sample {
            at: measured.finished_at - began,
            thread: Usage {
                context_switches_voluntary: switches.voluntary,
                context_switches_involuntary: switches.involuntary,
                ..of_process((self.user_ns, self.system_ns))
            },
            process: of_process(process_ns),
        };
        for time in [&mut measured.began_at, &mut measured.written_at, &mut measured.finished_at] {
            *time -= began;
        }
        measured
    }
}

fn errno_name(errno: i32) -> String {
    match errno {
        ENOSPC => "ENOSPC".to_owned(),
        other => other.to_string(),
    }
}
