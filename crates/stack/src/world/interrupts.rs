//! Detailed CPUs at work for the world: tasks that run, bios that enter queues, requests that are completed.

use workload::rng::stream;

use super::cpus::{Cpus, Finished};
use super::{GroupSpec, PhaseSpec, World};
use events::smp::CpuSet;
use events::time::Time;

impl World {
    pub(super) fn run_cpus(&mut self, now: Time) {
        let Cpus::Detailed(cpus) = &mut self.cpus else {
            return;
        };
        let mut all_done = cpus.advance(now);
        for done in all_done.drain(..) {
            let Cpus::Detailed(cpus) = &mut self.cpus else {
                unreachable!("they stay what they are");
            };
            match cpus.follow(done) {
                Some(Finished::Runs { task, cpu }) => self.run_task(now, cpu, task),
                Some(Finished::Called { task, cpu }) => self.call_done(now, cpu, task),
                Some(Finished::Looked { task }) => self.looked(now, task),
                Some(Finished::Piece { origin, cpu }) => self.piece_done(now, cpu, origin),
                Some(Finished::Entered { drive, mut bio }) => {
                    bio.submitted_at = now;
                    self.enter(now, drive, bio);
                    self.drives[drive].unplug();
                    self.run_drive(now, drive);
                }
                Some(Finished::Completed { drive, tag, cpu }) => {
                    self.run_drive_after(now, drive, Some((tag, cpu)));
                }
                None => {}
            }
        }
        if let Cpus::Detailed(cpus) = &mut self.cpus {
            cpus.followed(all_done);
        }
    }

    /// The drive's adapter has moved a request's data, and interrupts.
    pub(super) fn moved(&mut self, now: Time, drive: usize) {
        if let Cpus::Detailed(cpus) = &mut self.cpus {
            cpus.moved(now, drive);
        }
    }

    pub(super) fn set_online(&mut self, now: Time, cpu: u16, is: bool) {
        if let Cpus::Detailed(cpus) = &mut self.cpus {
            cpus.set_online(now, cpu, is);
        }
    }

    /// Where the phase's tasks may run, and where each begins: drawn from the phase's seed among the CPUs that it may use.
    pub(super) fn place_tasks(&mut self, phase: &PhaseSpec) {
        let Cpus::Detailed(cpus) = &self.cpus else {
            return;
        };
        let count = cpus.processors().cpus();
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
        self.cpus.begin_phase(placed.into_iter());
    }

    /// None: any.
    fn allowed(&self, group: &GroupSpec, phase: &PhaseSpec) -> Option<Vec<u16>> {
        let Cpus::Detailed(cpus) = &self.cpus else {
            return None;
        };
        group.cpus.clone().or_else(|| {
            let first = *group.jobs.first()?.files.first()?;
            let file = phase.files[first as usize];
            match self.mount_of(file) {
                None => cpus
                    .application(self.files[file as usize].drive)
                    .map(|cpu| vec![cpu]),
                Some(_) => None,
            }
        })
    }
}

/// Streams for places, apart from those of the tasks' costs.
const PLACES: u64 = 1 << 32;
