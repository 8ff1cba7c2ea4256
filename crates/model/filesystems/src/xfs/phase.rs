//! A phase on a mounted filesystem, from its threads to what it yielded.

use std::ops::Deref;

use base::rng;
use workload::metadata::MetadataPhase;

use super::machine::{Timer, unbound};
use super::site::Site;
use super::switches::Comm;
use super::thread::Thread;
use super::{COMPONENT_DRAWS, Progress, Results, Xfs};
use crate::program;
use crate::switches::SwitchesOptions;
use events::SpecError;
use events::smp::{CpuSet, TaskSpec};
use events::time::Time;

impl Xfs {
    /// Makes the threads and their directories. The error names a key of the phase.
    pub fn begin(
        &mut self,
        now: Time,
        phase: &MetadataPhase,
        switches: Option<&SwitchesOptions>,
    ) -> Result<(), SpecError> {
        program::check(phase, self.machine.cpus())?;
        self.machine.set_now(now);
        let seed = phase.threads.first().map_or(0, |thread| thread.job.seed);
        self.draws = rng::stream(seed, COMPONENT_DRAWS);
        self.threads.begin(now);
        self.machine.scheduling().begin(now, switches);
        let cpus = self.machine.cpus();
        let mut placed = vec![0u32; usize::from(cpus)];
        for spec in &phase.threads {
            let directory = self.base_directory(&spec.directory);
            let allowed = spec.cpus.as_ref().map(|list| CpuSet::of(cpus, list.iter().map(|&cpu| cpu as u16)));
            let last_cpu = emptiest(&placed, allowed.as_ref(), self.draws.below(u64::from(cpus)) as u16);
            placed[usize::from(last_cpu)] += 1;
            let task = TaskSpec { last_cpu, allowed, ..unbound() };
            let task = self.machine.add_task(task, Comm::thread(), Site::Begins);
            self.threads.add(Thread::new(spec, task, directory, now)?);
        }
        (0..self.threads.activate()).for_each(|number| self.go_on(number, None));
        if phase.threads.iter().any(|thread| thread.job.file_bytes > 0) {
            self.start_flushers();
        }
        if self.volume.spec().daemons.wakeups_per_s > 0 {
            self.machine.arm(0, Timer::Daemon);
        }
        Ok(())
    }

    /// Threads begin nothing more.
    pub fn stop(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.stop());
    }

    /// The results of the phase. `process_ns`: in user mode and in the kernel, of all CPUs until now. Writeback of
    /// dirty pages continues.
    pub fn end(&mut self, now: Time, process_ns: (Time, Time)) -> Results {
        let observed = self.machine.scheduling().finish(now);
        let began = self.threads.began();
        let threads = self.threads.take().into_iter().map(|thread| {
            let switches = self.machine.scheduling().switches_of(thread.task);
            Some(thread.into_measured(began, switches, process_ns))
        });
        Results {
            threads: threads.collect(),
            filesystem_used_percent: self.volume.used_share(self.reserved_blocks()) * 100.0,
            switches: observed,
        }
    }

    /// How far the load has come.
    pub fn progress(&self) -> Progress {
        let threads = self.threads.iter().map(Deref::deref);
        program::progress(self.machine.now() - self.threads.began(), threads)
    }

    /// A thread's directory: there before the phase begins, at no cost.
    pub(super) fn base_directory(&mut self, path: &str) -> usize {
        if let Some(known) = self.volume.directory_at(path, None) {
            return known;
        }
        self.locks.add_directory();
        self.volume.lay_out_directory(path)
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
