//! Which scheduler a machine file or a setting asks for: by name, kernel and tunables, these as the kernel has them.

mod error;
mod tunables;
mod variants;

use std::collections::BTreeMap;

use crate::scheduler::Scheduler;
use crate::scheduler::anticipatory::{self, Anticipatory};
use crate::scheduler::bfq::{self, Bfq};
use crate::scheduler::cfq::{self, Cfq};
use crate::scheduler::cfq_by_service::{self, CfqByService};
use crate::scheduler::cfq_lists::{self, CfqLists};
use crate::scheduler::cfq_round_robin::{self, CfqRoundRobin};
use crate::scheduler::cfq_slices::CfqSlices;
use crate::scheduler::deadline::{self, Deadline};
use crate::scheduler::deadline_a::{self, DeadlineA};
use crate::scheduler::deadline_timed::{self, DeadlineTimed};
use crate::scheduler::hooks::Hooks;
use crate::scheduler::kyber::{self, Kyber};
use crate::scheduler::linus::{self, Linus};
use crate::scheduler::mq_deadline::{self, MqDeadline};
use crate::scheduler::none::NoScheduler;
use crate::scheduler::noop::Noop;
use crate::{PriorityPolicy, QueueMap};
pub use error::BadScheduler;
use kernels::schedulers::{SchedulerVariant, variants};
use tunables::TunableReader;

/// A scheduler that is known to exist, with tunables that it has.
#[derive(Clone, Debug)]
pub struct SchedulerSpec {
    variant: SchedulerVariant,
    hz: u32,
    tunables: SchedulerTunables,
}

#[derive(Clone, Debug)]
enum SchedulerTunables {
    Nothing,
    Linus(linus::LinusTunables),
    DeadlineA(deadline_a::DeadlineATunables),
    Deadline(deadline::DeadlineVariant, deadline::DeadlineTunables),
    DeadlineTimed(deadline_timed::DeadlineTimedTunables),
    MqDeadline(mq_deadline::MqDeadlineTunables),
    Anticipatory(anticipatory::Version, anticipatory::AnticipatoryTunables),
    Cfq(cfq::Version, cfq::CfqTunables),
    CfqRoundRobin(cfq_round_robin::CfqRoundRobinTunables),
    CfqByService(cfq_by_service::CfqByServiceTunables),
    CfqLists(cfq_lists::Version, cfq_lists::CfqListsTunables),
    CfqSlices(cfq::CfqTunables),
    Bfq(bfq::BfqTunables),
    Kyber(kyber::KyberTunables),
}

/// A scheduler's inputs about its device and machine.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    /// The device seeks (`queue/rotational`).
    pub rotational: bool,
    /// The hardware queue that each CPU submits to.
    pub queue_map: &'a QueueMap,
    /// The largest request that the queue makes, in sectors of 512 bytes.
    pub request_sectors_max: u32,
    /// Requests of each class of the pool.
    pub pool_requests: u32,
    /// By group, the root first.
    pub group_weights: &'a [u32],
    /// The same of what becomes of their priorities.
    pub group_policies: &'a [PriorityPolicy],
}

impl SchedulerSpec {
    /// `given`: `name`, tunables under the kernel's names in the kernel's units, and perhaps a `version` if the
    /// kernel's own is not the one that is meant. `kernel`: the machine's, such as 2.6.35, 2.5.59-mm2 or 6.x; `hz`: its
    /// clock ticks a second.
    pub fn new(given: &BTreeMap<String, String>, kernel: &str, hz: u32) -> Result<SchedulerSpec, BadScheduler> {
        let variant = variants::find(given, kernel)?;
        let mut reader = TunableReader::new(variant, given);
        let tunables = tunables_of(variant, hz, &mut reader);
        reader.finish()?;
        Ok(SchedulerSpec { variant, hz, tunables })
    }

    /// The name as in queue/scheduler.
    pub fn name(&self) -> &'static str {
        self.variant.name
    }

    /// The name of the variant that was chosen, if a scheduler has several.
    pub fn version(&self) -> &'static str {
        self.variant.version
    }

    /// Whether it runs over blk-mq: with tags and hardware queues instead of a pool and a plugged queue.
    pub fn is_multi_queue(&self) -> bool {
        self.variant.multi_queue
    }

    /// Whether requests have tags of the scheduler before they have one of the device: with every scheduler of blk-mq.
    pub fn has_own_tags(&self) -> bool {
        self.is_multi_queue() && self.name() != "none"
    }

    /// Whether it shares writeback out itself, so that the kernel does not throttle it for its queue.
    pub fn turns_wbt_off(&self) -> bool {
        self.name() == "bfq"
    }

    /// What its hooks cost; those of the single-queue block layer are in the cost of a call.
    pub fn hooks(&self) -> Hooks {
        match self.variant.name {
            "mq-deadline" => Hooks::MQ_DEADLINE,
            "bfq" => Hooks::BFQ,
            "kyber" => Hooks::KYBER,
            _ => Hooks::NONE,
        }
    }

    /// Whether it looks at the I/O priority of tasks.
    pub fn reads_priorities(&self) -> bool {
        matches!(
            self.tunables,
            SchedulerTunables::Cfq(..)
                | SchedulerTunables::CfqSlices(_)
                | SchedulerTunables::CfqLists(..)
                | SchedulerTunables::Bfq(_)
                | SchedulerTunables::MqDeadline(_)
        )
    }

    /// Whether it looks at the control groups of tasks.
    pub fn reads_groups(&self) -> bool {
        matches!(self.tunables, SchedulerTunables::Cfq(..) | SchedulerTunables::Bfq(_))
    }

    /// Whether it looks at what becomes of priorities in control groups: CFQ and BFQ take the task's own
    /// (`bfq_check_ioprio_change`).
    pub fn reads_policies(&self) -> bool {
        matches!(self.tunables, SchedulerTunables::MqDeadline(_))
    }

    /// Whether it counts in timer interrupts, or keeps requests until one of them.
    pub fn reads_hz(&self) -> bool {
        matches!(
            self.tunables,
            SchedulerTunables::Cfq(..)
                | SchedulerTunables::CfqSlices(_)
                | SchedulerTunables::CfqLists(..)
                | SchedulerTunables::CfqByService(_)
                | SchedulerTunables::Anticipatory(..)
                | SchedulerTunables::MqDeadline(_)
                | SchedulerTunables::Bfq(_)
        )
    }

    /// Requests of each class of the pool if the scheduler sets their number itself, as the first CFQs did, which
    /// shared them out. What counts as congested stays as it is.
    pub fn pool_requests(&self) -> Option<u32> {
        match self.tunables {
            SchedulerTunables::CfqRoundRobin(_) => Some(cfq_round_robin::POOL_REQUESTS),
            SchedulerTunables::CfqByService(_) => Some(cfq_by_service::POOL_REQUESTS),
            _ => None,
        }
    }

    /// A new scheduler for one queue.
    pub fn build(&self, around: &Surroundings) -> Box<dyn Scheduler> {
        match &self.tunables {
            SchedulerTunables::Nothing if self.is_multi_queue() => Box::new(NoScheduler::default()),
            SchedulerTunables::Nothing if self.version() == "2.4" => Box::new(Noop::of_2_4(around.request_sectors_max)),
            SchedulerTunables::Nothing => Box::new(Noop::default()),
            SchedulerTunables::Linus(tunables) => {
                let linus = Linus::new(*tunables, around.request_sectors_max);
                Box::new(match self.version() {
                    "2.4.21" => linus.joining_impatient(),
                    _ => linus,
                })
            }
            SchedulerTunables::DeadlineA(tunables) => Box::new(DeadlineA::new(*tunables)),
            SchedulerTunables::Deadline(variant, tunables) => Box::new(Deadline::new(*variant, *tunables)),
            SchedulerTunables::DeadlineTimed(tunables) => Box::new(DeadlineTimed::new(*tunables)),
            SchedulerTunables::MqDeadline(tunables) => {
                let scheduler = MqDeadline::new(*tunables).with_hz(self.hz).with_policies(around.group_policies);
                Box::new(match self.version() {
                    "5.14" => scheduler,
                    "6.1.105" => scheduler.without_reserve(),
                    "6.5" => scheduler.with_position(),
                    _ => scheduler.with_position().without_reserve(),
                })
            }
            SchedulerTunables::Anticipatory(version, tunables) => {
                Box::new(Anticipatory::new(*version, *tunables, self.hz))
            }
            SchedulerTunables::Cfq(version, tunables) => {
                let surroundings = cfq::Surroundings { hz: self.hz, rotational: around.rotational };
                Box::new(Cfq::new(*version, *tunables, surroundings, around.group_weights))
            }
            SchedulerTunables::CfqRoundRobin(tunables) => Box::new(CfqRoundRobin::new(*tunables, around.pool_requests)),
            SchedulerTunables::CfqByService(tunables) => {
                Box::new(CfqByService::new(*tunables, self.hz, around.pool_requests))
            }
            SchedulerTunables::CfqLists(version, tunables) => Box::new(CfqLists::new(*version, *tunables, self.hz)),
            SchedulerTunables::CfqSlices(tunables) => {
                let surroundings = cfq::Surroundings {
                    hz: self.hz,
                    // Kernels before did not ask.
                    rotational: around.rotational || self.version() == "2.6.22",
                };
                Box::new(CfqSlices::new(*tunables, surroundings))
            }
            SchedulerTunables::Bfq(tunables) => {
                let bfq = Bfq::new(*tunables, around.rotational, around.group_weights);
                let bfq = bfq.with_queue_merging(self.version() != "5.10");
                let bfq = bfq.with_limited_queues(matches!(self.version(), "5.17" | "6.2"));
                let bfq = bfq.with_root_counted(self.version() == "6.2");
                Box::new(bfq.with_hz(self.hz))
            }
            SchedulerTunables::Kyber(tunables) => {
                let kyber = Kyber::new(*tunables, around.queue_map.clone());
                Box::new(match self.version() {
                    "4.12" => kyber.by_means(),
                    _ => kyber,
                })
            }
        }
    }
}

/// The unit in nanoseconds of each tunable of any scheduler that is a time, by the kernel's name (the
/// schedulers' sources: `show` and `store` of their attributes).
pub fn time_tunables_ns() -> BTreeMap<&'static str, events::time::Time> {
    let nothing = BTreeMap::new();
    let mut units_ns = BTreeMap::new();
    for variant in variants() {
        let mut reader = TunableReader::new(variant, &nothing);
        tunables_of(variant, 1000, &mut reader);
        units_ns.extend(reader.units_ns());
    }
    units_ns
}

fn tunables_of(variant: SchedulerVariant, hz: u32, reader: &mut TunableReader) -> SchedulerTunables {
    match (variant.name, variant.version) {
        ("linus", _) => SchedulerTunables::Linus(tunables::linus(reader)),
        ("deadline", "A") => SchedulerTunables::DeadlineA(tunables::deadline_a(reader)),
        ("deadline", "mm") => SchedulerTunables::DeadlineTimed(tunables::deadline_timed(reader)),
        ("deadline", "B") => SchedulerTunables::Deadline(deadline::DeadlineVariant::B, tunables::deadline(reader)),
        ("deadline", _) | ("mq-deadline", "C") => {
            SchedulerTunables::Deadline(deadline::DeadlineVariant::C, tunables::deadline(reader))
        }
        ("mq-deadline", _) => SchedulerTunables::MqDeadline(tunables::mq_deadline(reader)),
        ("anticipatory", version) => {
            let version = match version {
                "2.5.59-mm5" => anticipatory::Version::Draft,
                "first" => anticipatory::Version::First,
                "2.6.2" => anticipatory::Version::Linux2_6_2,
                "2.6.15" => anticipatory::Version::Linux2_6_15,
                "2.6.24" => anticipatory::Version::Linux2_6_24,
                _ => anticipatory::Version::Linux2_6_32,
            };
            SchedulerTunables::Anticipatory(version, tunables::anticipatory(reader, version, hz))
        }
        ("cfq", "2.6.6") => SchedulerTunables::CfqRoundRobin(tunables::cfq_round_robin(reader)),
        ("cfq", "2.6.10") => SchedulerTunables::CfqByService(tunables::cfq_by_service(reader)),
        ("cfq", "2.6.15" | "2.6.18") => {
            let version = match variant.version {
                "2.6.15" => cfq_lists::Version::Linux2_6_15,
                _ => cfq_lists::Version::Linux2_6_18,
            };
            SchedulerTunables::CfqLists(version, tunables::cfq_lists(reader, version))
        }
        ("cfq", "2.6.22" | "2.6.29") => SchedulerTunables::CfqSlices(tunables::cfq_slices(reader)),
        ("cfq", version) => {
            let version = match version {
                "2.6.35" => cfq::Version::Linux2_6_35,
                "2.6.35-group-idle-v2" => cfq::Version::GroupIdleV2,
                _ => cfq::Version::Linux2_6_37,
            };
            SchedulerTunables::Cfq(version, tunables::cfq(reader, version))
        }
        ("bfq", _) => SchedulerTunables::Bfq(tunables::bfq(reader)),
        ("kyber", _) => SchedulerTunables::Kyber(tunables::kyber(reader)),
        _ => SchedulerTunables::Nothing,
    }
}

#[cfg(test)]
mod tests;
