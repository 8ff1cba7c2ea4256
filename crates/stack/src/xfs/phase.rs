//! A phase on a mounted filesystem, from its threads to what it yielded.

use workload::metadata::{MetadataPhase, ThreadMeasured};
use workload::rng;

use super::site::Site;
use super::switches::{Comm, SwitchesObservation, SwitchesOptions};
use super::thread::{self, Thread};
use super::{COMPONENT_DRAWS, Mounted, Timer};
use crate::SpecError;
use crate::smp::{Context, CpuSet, Rank, TaskSpec};
use crate::time::Time;

/// How far a phase has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time since the start of the phase.
    pub elapsed_ns: Time,
    /// Files created by all threads.
    pub files: u64,
    /// The furthest behind of all threads; None: no bound tells.
    pub fraction: Option<f64>,
}

/// What a phase yielded.
pub struct Results {
    /// By thread, in the order of the phase; always Some, as whoever makes the record takes them.
    pub threads: Vec<Option<ThreadMeasured>>,
    /// Used blocks in percent of all, delayed allocations included.
    pub filesystem_used_percent: f64,
    /// What the probe saw; None where it was off.
    pub switches: Option<SwitchesObservation>,
}

/// How many events between two questions whether to go on.
const EVENTS_PER_LOOK: u32 = 20_000;

impl Mounted {
    /// Makes the threads and their directories. The error names a key of the phase.
    pub fn begin(
        &mut self,
        phase: &MetadataPhase,
        switches: Option<&SwitchesOptions>,
    ) -> Result<(), SpecError> {
        thread::check(phase, self.smp.cpus())?;
        let seed = phase.threads.first().map_or(0, |thread| thread.job.seed);
        self.draws = rng::stream(seed, COMPONENT_DRAWS);
        self.began = self.now;
        self.scheduling.begin(self.now, switches);
        let cpus = self.smp.cpus();
        self.threads.clear();
        let mut placed = vec![0u32; usize::from(cpus)];
        for spec in &phase.threads {
            let directory = self.base_directory(&spec.directory);
            let allowed = spec
                .cpus
                .as_ref()
                .map(|list| CpuSet::of(cpus, list.iter().map(|&cpu| cpu as u16)));
            let last_cpu = emptiest(
                &placed,
                allowed.as_ref(),
                self.draws.below(u64::from(cpus)) as u16,
            );
            placed[usize::from(last_cpu)] += 1;
            let task = self.smp.add_task(TaskSpec {
                rank: Rank::Normal,
                last_cpu,
                allowed,
                sleeps_for_io: false,
            });
            self.scheduling.add(Comm::thread(), Site::Begins);
            self.threads
                .push(Thread::new(spec, task, directory, self.now)?);
        }
        self.active = self.threads.len();
        (0..self.active as u32).for_each(|number| self.go_on(number, None));
        if phase.threads.iter().any(|thread| thread.job.file_bytes > 0) {
            self.start_flushers();
        }
        if self.volume.spec().daemons.wakeups_per_s > 0 {
            self.events.put(self.now, Timer::Daemon);
        }
        Ok(())
    }

    /// Runs the phase to its end. `go_on` is asked now and then; false stops its threads.
    pub fn run(&mut self, mut go_on: impl FnMut(Progress) -> bool) {
        let (mut batch, mut events) = (Vec::new(), 0);
        while self.active > 0 && self.under_way > 0 {
            if !self.turn(&mut batch) {
                return;
            }
            events += 1;
            if events % EVENTS_PER_LOOK == 0 && !go_on(self.progress()) {
                self.threads.iter_mut().for_each(Thread::stop);
            }
        }
        go_on(self.progress());
    }

    /// What the phase came to.
    pub fn end(&mut self) -> Results {
        // Workers and daemons end what they do.
        let mut batch = Vec::new();
        self.drop_periodic_timers();
        while self.turn(&mut batch) {}
        self.scheduling.look(&mut self.smp);
        let process_ns = self.process_ns();
        let ended = self.now;
        let observed = self.scheduling.finish(ended);
        let began = self.began;
        let threads = std::mem::take(&mut self.threads).into_iter().map(|thread| {
            let switches = self.scheduling.switches_of(thread.task);
            Some(thread.into_measured(began, switches, process_ns))
        });
        Results {
            threads: threads.collect(),
            filesystem_used_percent: self.volume.used_share(self.files.delayed_blocks()) * 100.0,
            switches: observed,
        }
    }

    /// What comes again and again; answers on their way still come.
    fn drop_periodic_timers(&mut self) {
        let mut timers = std::mem::take(&mut self.events);
        while let Some((at, timer)) = timers.take() {
            if matches!(timer, Timer::Answered(_)) {
                self.events.put(at, timer);
            }
        }
    }

    fn progress(&self) -> Progress {
        let fractions = self.threads.iter().map(Thread::fraction);
        Progress {
            elapsed_ns: self.now - self.began,
            files: self.threads.iter().map(Thread::files).sum(),
            fraction: fractions
                .reduce(|one, other| Some(one?.min(other?)))
                .flatten(),
        }
    }

    /// In user mode and in the kernel, of all CPUs until now.
    fn process_ns(&self) -> (Time, Time) {
        let of = |context| {
            (0..self.smp.cpus())
                .map(|cpu| self.smp.usage(cpu).ns(context))
                .sum()
        };
        (of(Context::User), of(Context::System))
    }

    /// A thread's directory: there before the phase begins, at no cost.
    fn base_directory(&mut self, path: &str) -> usize {
        let key = (path.to_owned(), None);
        if let Some(&known) = self.names.get(&key) {
            return known;
        }
        let group = self.volume.turn_rotor();
        let number = self.volume.lay_out_directory(group);
        self.locks.add_directory();
        self.names.insert(key, number);
        number
    }
}

/// Where a new thread begins, as a fork looks for the idlest CPU: the first from a place on that has fewest.
fn emptiest(placed: &[u32], allowed: Option<&CpuSet>, from: u16) -> u16 {
    let count = placed.len() as u16;
    (0..count)
        .map(|step| (from + step) % count)
        .filter(|&cpu| allowed.is_none_or(|set| set.has(cpu)))
        .min_by_key(|&cpu| placed[usize::from(cpu)])
        .expect("checked: some CPU is allowed")
}
