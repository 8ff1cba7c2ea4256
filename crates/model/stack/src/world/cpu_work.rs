//! CPUs at work for the world: tasks that run, bios that enter queues, requests that are completed.

use base::rng::stream;

use super::cpus::Continuation;
use super::{GroupSpec, PhaseSpec, World};
use events::smp::CpuSet;
use events::time::Time;

impl World {
    /// What the CPUs are done with has its consequences.
    pub(super) fn follow_cpus(&mut self, now: Time) {
        while let Some(finished) = self.cpus.follow(now) {
            match finished {
                Continuation::Next { cpu, turn } => self.has_cpu(now, cpu, turn),
                Continuation::Called { task, cpu } => self.call_done(now, cpu, task),
                Continuation::Looked { task } => self.looked(now, task),
                Continuation::WorkItem { origin, cpu } => self.item_done(now, cpu, origin),
                Continuation::Entered { drive, mut bio } => {
                    bio.submitted_at = now;
                    self.enter(now, drive, bio);
                    self.io[drive].unplug(now);
                    self.run_drive(now, drive);
                }
                Continuation::Interrupted => {
                    for drive in self.io.drive_numbers() {
                        self.io[drive].hold_thread(now);
                    }
                }
                Continuation::Resumed => self.resume_threads(now),
                Continuation::Later(at, reminder) => self.plan_reminder(Some((at, reminder))),
                Continuation::Completed { drive, tag, cpu } => {
                    self.run_drive_after(now, drive, Some((tag, cpu)));
                }
            }
        }
    }

    /// Threads that completions of the interrupt have called run their queues before all tasks.
    fn resume_threads(&mut self, now: Time) {
        let thread_ns = self.cpus.timer_interrupts().map_or(0, |spec| spec.thread_ns);
        for drive in self.io.drive_numbers() {
            if let Some(at) = self.io[drive].release_thread(now, thread_ns) {
                self.cpus.occupy(now, at);
                self.call_drive(now, drive);
            }
        }
    }

    /// Where the phase's tasks may run, and where each begins: drawn from the phase's seed among the CPUs that it may use.
    pub(super) fn place_tasks(&mut self, phase: &PhaseSpec) {
        let count = self.cpus.count();
        let placed: Vec<(Option<CpuSet>, u16)> = (0..)
            .zip(&phase.groups)
            .map(|(number, group)| {
                let allowed = self.allowed(group, phase);
                let mut places = stream(phase.seed, PLACES | number);
                match allowed {
                    Some(cpus) => {
                        let first = cpus[places.below(cpus.len() as u64) as usize];
                        (Some(CpuSet::of(count, cpus)), first)
                    }
                    None => (None, places.below(u64::from(count)) as u16),
                }
            })
            .collect();
        let depth = |group: &GroupSpec| group.jobs.iter().map(|job| job.queue_depth).sum();
        let depths: Vec<u32> = phase.groups.iter().map(depth).collect();
        self.cpus.begin_phase(placed.into_iter(), &depths);
    }

    /// None: any.
    fn allowed(&self, group: &GroupSpec, phase: &PhaseSpec) -> Option<Vec<u16>> {
        group.cpus.clone().or_else(|| {
            let first = *group.jobs.first()?.files.first()?;
            let file = phase.files[first as usize];
            match self.vfs.mount_of(file) {
                None => self.cpus.application(self.vfs.file(file).drive).map(|cpu| vec![cpu]),
                Some(_) => None,
            }
        })
    }
}

/// Streams for places, apart from those of the tasks' costs.
const PLACES: u64 = 1 << 32;
