//! The probe `switches`: who leaves a CPU, where, and for how long, by the analysis that the host's has.

use trace::event::Device;
use trace::sched::{Analysis, Comm as Name, SchedEvent, SchedKind, State};

use super::site::Site;
use crate::program::Switches;
use crate::switches::{SwitchesObservation, SwitchesOptions};
use events::smp::{SchedulerEvent, SchedulerEventKind, TaskNumber};
use events::time::Time;

/// A task's name.
#[derive(Clone, Debug)]
pub(super) struct Comm(Name);

impl Comm {
    pub(super) fn thread() -> Comm {
        Comm(Name::new(b"fs_mark"))
    }

    /// The drive's, of 3.3 to 3.9.
    pub(super) fn flusher(device: Device) -> Comm {
        Comm(Name::new(flusher_name(device).as_bytes()))
    }

    /// Who writes in place what the log has.
    pub(super) fn pusher(drive: &str) -> Comm {
        Comm(Name::new(pusher_name(drive).as_bytes()))
    }

    /// A worker of a CPU, by its number.
    pub(super) fn kworker(cpu: u16, number: u32) -> Comm {
        Comm(Name::new(format!("kworker/{cpu}:{number}").as_bytes()))
    }

    /// A worker of no CPU.
    pub(super) fn unbound_kworker() -> Comm {
        Comm(Name::new(b"kworker/u:0"))
    }
}

/// `bdi_forker_thread`.
pub(super) fn flusher_name(device: Device) -> String {
    format!("flush-{device}")
}

/// `xfs_trans_ail_init`.
pub(super) fn pusher_name(drive: &str) -> String {
    format!("xfsaild/{drive}")
}

/// Every task's name, where it sleeps, and how often it left its CPU.
#[derive(Debug, Default)]
pub(super) struct Scheduling {
    /// By the filesystem's number.
    tasks: Vec<SiteSwitches>,
    analysis: Option<Analysis>,
    began: Time,
}

#[derive(Debug)]
struct SiteSwitches {
    comm: Name,
    site: Site,
    switches: Switches,
}

impl Scheduling {
    /// A task that was just made: its number, which is the next.
    pub(super) fn add(&mut self, comm: Comm, site: Site) -> TaskNumber {
        self.tasks.push(SiteSwitches { comm: comm.0, site, switches: Switches::default() });
        self.tasks.len() as TaskNumber - 1
    }

    pub(super) fn begin(&mut self, now: Time, options: Option<&SwitchesOptions>) {
        self.began = now;
        self.analysis = options.map(|options| Analysis::new(0, options.interval_ns.max(1)));
    }

    /// If it sleeps from now on, it does so there.
    pub(super) fn sleeps_in(&mut self, task: TaskNumber, site: Site) {
        self.tasks[task as usize].site = site;
    }

    pub(super) fn set_switches(&mut self, task: TaskNumber, voluntary: u64, involuntary: u64) {
        self.tasks[task as usize].switches = Switches { voluntary, involuntary };
    }

    pub(super) fn switches_of(&self, task: TaskNumber) -> Switches {
        self.tasks[task as usize].switches
    }

    pub(super) fn look(&mut self, event: &SchedulerEvent) {
        self.count(event);
        self.show(event);
    }

    pub(super) fn finish(&mut self, now: Time) -> Option<SwitchesObservation> {
        let frames = |stack: u32| {
            let frames = Site::ALL[stack as usize].frames();
            frames.map(str::to_owned).collect()
        };
        let report = self.analysis.take()?.finish(now - self.began, frames);
        Some(SwitchesObservation { report, trace_events_lost: 0, stack_samples_lost: 0, notes: Vec::new() })
    }

    fn count(&mut self, event: &SchedulerEvent) {
        if let SchedulerEventKind::Switch { previous: Some(task), preempted, .. } = event.what
            && let Some(seen) = self.tasks.get_mut(task as usize)
        {
            let switches = &mut seen.switches;
            if preempted {
                switches.involuntary += 1;
            } else {
                switches.voluntary += 1;
            }
        }
    }

    fn show(&mut self, event: &SchedulerEvent) {
        let Some(analysis) = &mut self.analysis else {
            return;
        };
        // Task 0 is idle.
        let pid = |task: TaskNumber| task + 1;
        let (at_ns, cpu) = (event.at.saturating_sub(self.began), u32::from(event.cpu));
        let mut add = |kind| analysis.add(&SchedEvent { at_ns, cpu, kind });
        match event.what {
            SchedulerEventKind::Woken(task) => {
                add(SchedKind::Waking { pid: pid(task) });
                add(SchedKind::Wakeup { pid: pid(task) });
            }
            SchedulerEventKind::Switch { previous, preempted, next } => {
                // A task that is none of the filesystem's has no stack here.
                let seen = previous.and_then(|task| self.tasks.get(task as usize));
                let site = seen.map(|seen| if preempted { seen.site.preempted() } else { seen.site });
                add(SchedKind::Switch {
                    previous: previous.map_or(0, pid),
                    previous_comm: match (seen, previous) {
                        (Some(seen), _) => seen.comm,
                        (None, Some(_)) => Name::new(b"load"),
                        (None, None) => Name::new(b"swapper"),
                    },
                    state: match (site, previous) {
                        (Some(site), _) => site.state(),
                        (None, Some(_)) if !preempted => State::DiskSleep,
                        (None, _) => State::Preempted,
                    },
                    next: next.map_or(0, pid),
                });
                if let Some((task, site)) = previous.zip(site) {
                    analysis.add_stack(at_ns, cpu, pid(task), 1, site as u32);
                }
            }
        }
    }
}
