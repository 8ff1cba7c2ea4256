//! What a kernel lets a request queue do: sizes, merges, its pool, its plug, and what a task holds back.
//!
//! Source: docs/model/sources/plugging.md.

use base::time::{MILLISECOND, Time};

use crate::hardware_queue::{TagLimit, TagWakeRule};
use crate::release::Kernel;

/// What a kernel and a device allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// The largest request that merging may make, in sectors of 512 bytes.
    pub request_sectors_max: u32,
    /// Segments of memory that a request may have.
    pub request_segments_max: u16,
    /// Which merges are tried.
    pub merges: Merges,
    /// How requests are shared out among tasks.
    pub pool: PoolRules,
    /// Whether the pool's classes are sync and async I/O; otherwise reads and writes, as until 2.6.
    pub pool_by_sync: bool,
    /// When the queue holds requests back to let them merge.
    pub plug: PlugRules,
}

/// The `nomerges` tunable: 0, 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merges {
    /// 0: with any queued request.
    All,
    /// Only with the request that was merged into or inserted last.
    LastOnly,
    /// 2: none.
    Never,
}

/// How a kernel shares its requests out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRules {
    /// Requests of one class.
    pub requests: u32,
    /// With this many allocated, a class is congested; it stays so until fewer than `uncongested_below` are.
    pub congested_from: u32,
    /// Congestion ends with fewer allocated requests than this.
    pub uncongested_below: u32,
    /// When a task that waits for a request is woken.
    pub waking: WakeRule,
    /// Whoever has waited looks again whether another request takes its bio, before it tries to get one (`again` in
    /// `__make_request`, until 2.6.12).
    pub merges_after_waiting: bool,
    /// Of tags, what the scheduler's limits count.
    pub limit: TagLimit,
    /// The number of tags whose share the scheduler's limits are.
    pub told: u32,
}

/// How a kernel wakes tasks that found no free request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeRule {
    /// One waiter is woken when this many of its class are free, so that it can take a run of them.
    WhenFree(u32),
    /// A task that finds the class empty, or is woken, may take a number of requests within a time, beyond the class up
    /// to half as many again; one waiter is woken for each request that is freed.
    Batching {
        /// How many requests a batch has.
        requests: u32,
        /// How long a batch lasts.
        time_ns: Time,
    },
    /// Tags of blk-mq: all I/O shares them.
    Tags(TagWakeRule),
}

impl PoolRules {
    /// 128 requests, half for each direction; a waiter is woken when 32 are free.
    pub const LINUX_2_4_20: PoolRules = PoolRules {
        requests: 64,
        congested_from: 64,
        uncongested_below: 64,
        waking: WakeRule::WhenFree(32),
        merges_after_waiting: true,
        limit: TagLimit::OfWord,
        told: 0,
    };

    /// 128 for each direction; congested with fewer than 15 free until more than 17 are.
    pub const LINUX_2_5_59: PoolRules = PoolRules {
        requests: 128,
        congested_from: 128 - 14,
        uncongested_below: 128 - 17,
        waking: WakeRule::WhenFree(8),
        merges_after_waiting: true,
        limit: TagLimit::OfWord,
        told: 0,
    };

    /// `nr_requests` of blk-mq. With a scheduler that is twice the depth of a hardware queue, at most 256, for each;
    /// without, its depth.
    pub const fn tags(requests: u32, waking: TagWakeRule, limit: TagLimit) -> PoolRules {
        PoolRules {
            requests,
            // blk-mq has no congestion.
            congested_from: u32::MAX,
            uncongested_below: u32::MAX,
            waking: WakeRule::Tags(waking),
            merges_after_waiting: false,
            limit,
            told: requests,
        }
    }

    /// `nr_requests` of 2.6 (`blk_queue_congestion_threshold`).
    pub const fn with_requests(self, requests: u32) -> PoolRules {
        PoolRules {
            requests,
            congested_from: requests - requests / 8 + 1,
            uncongested_below: requests - requests / 8 - requests / 16 - 1,
            ..self
        }
    }

    /// 128 for sync and async I/O each.
    pub const LINUX_2_6_35: PoolRules = PoolRules {
        requests: 128,
        congested_from: 113,
        uncongested_below: 103,
        waking: WakeRule::Batching { requests: 32, time_ns: 20 * MILLISECOND },
        merges_after_waiting: false,
        limit: TagLimit::OfWord,
        told: 0,
    };
}

/// When a queue that was plugged by an insertion into its emptiness lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlugRules {
    /// Whether an insertion into an empty queue plugs it at all.
    pub plugs: bool,
    /// Outstanding requests that are not at the device yet.
    pub unplug_at: Option<u32>,
    /// Time after plugging at which the queue unplugs by itself; None: never.
    pub unplug_after_ns: Option<Time>,
    /// The driver leaves the request at the device in the queue, which so is not empty (`head_active` of 2.4; IDE drivers
    /// until 2.6).
    pub head_stays: bool,
}

impl PlugRules {
    /// With a driver that leaves the request at the device in the queue, or one that does not.
    pub fn with_head(self, stays: bool) -> PlugRules {
        PlugRules { head_stays: stays, ..self }
    }

    /// 2.4 and 2.5.59: only who waits, runs out of requests, or kicks writeback unplugs.
    pub const EXPLICIT: PlugRules =
        PlugRules { plugs: true, unplug_at: None, unplug_after_ns: None, head_stays: false };

    /// -mm of 2.5.5x and 2.5.60 to 2.6.38: at 4 requests or after 3 ms as well.
    pub const SELF: PlugRules =
        PlugRules { plugs: true, unplug_at: Some(4), unplug_after_ns: Some(3 * MILLISECOND), head_stays: false };

    /// Non-rotational devices with tags, and 2.6.39 on: the queue is never plugged (tasks plug for themselves).
    pub const NONE: PlugRules = PlugRules { plugs: false, unplug_at: None, unplug_after_ns: None, head_stays: false };
}

/// When what a task holds back goes to its queues although the task submits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPlugRules {
    /// Before a request beyond this many (`BLK_MAX_REQUEST_COUNT`).
    pub requests: usize,
    /// Before a request that follows one of this size (`BLK_PLUG_FLUSH_SIZE`).
    pub last_sectors: u32,
    /// A call that submits more operations than this holds all of them back until its end (`AIO_PLUG_THRESHOLD`,
    /// `IO_PLUG_THRESHOLD`).
    pub submissions_above: usize,
    /// What it holds of a queue without a scheduler goes out from the last request to the first at the call's end
    /// (`blk_mq_plug_issue_direct` of 6.1.192, with a list that new requests are put before, since 5.16; 6.12.117 has them
    /// in their order. That no version between has is inferred).
    pub newest_first: bool,
}

impl Kernel {
    /// Over how many ticks limits of control groups are kept (`throtl_slice`): a tenth of a second; without seeks a fiftieth from
    /// 6.10 on, where the configuration option that it needed is gone, until 6.18 (both ends inferred from the dates of the
    /// patches). None: there are no limits, before 2.6.37.
    pub fn throttle_slice_ticks(&self, hz: u32, rotational: bool) -> Option<u64> {
        let short = (self.version >= [6, 10, 0] && self.version < [6, 19, 0]) && !rotational;
        let slices_per_s = if short { 50 } else { 10 };
        (self.version >= [2, 6, 37]).then(|| u64::from(hz / slices_per_s).max(1))
    }

    /// Whether groups can have latencies that are protected (io.latency, 4.19).
    pub fn protects_latencies(&self) -> bool {
        self.version >= [4, 19, 0]
    }

    /// Whether groups can share by a model of what I/O costs (io.cost, 5.4).
    pub fn shares_by_cost(&self) -> bool {
        self.version >= [5, 4, 0]
    }

    /// Whether groups can have that `io.prio.class`: from 5.14 on, and `promote-to-rt` from 6.5 on. 6.0 and
    /// before are left out: they took tasks that nobody gave a priority for others.
    pub fn changes_priorities(&self, promotes: bool) -> bool {
        self.version >= if promotes { [6, 5, 0] } else { [6, 1, 0] }
    }

    /// What its request queues allow by default: sizes, merges, pool and plug (docs/model/sources/plugging.md).
    pub fn queue_rules(&self, rotational: bool, queue_depth: u32) -> QueueRules {
        let self_unplugs = self.version >= [2, 5, 60] || self.mm.is_some() && self.version >= [2, 5, 51];
        // A device of one command is taken for an IDE disk, others for SCSI, whose driver takes requests out.
        let leaves_head = self.version < [2, 6, 0] && queue_depth == 1;
        QueueRules {
            request_sectors_max: if self.version < [2, 6, 8] { 255 } else { 1024 },
            request_segments_max: 128,
            merges: Merges::All,
            pool: match self.version {
                [2, 4, _] => PoolRules::LINUX_2_4_20,
                version if version < [2, 6, 0] => PoolRules::LINUX_2_5_59,
                version => PoolRules { merges_after_waiting: version < [2, 6, 13], ..PoolRules::LINUX_2_6_35 },
            },
            pool_by_sync: self.version >= [2, 6, 30],
            plug: if self.tasks_plug() || self.leaves_unplugged(rotational, queue_depth) {
                PlugRules::NONE
            } else if self_unplugs {
                PlugRules::SELF.with_head(leaves_head)
            } else {
                PlugRules::EXPLICIT.with_head(leaves_head)
            },
        }
    }

    /// Whether a queue in front of such a device is never plugged: without seeks from 2.6.28 on, and from 2.6.30 on only if it
    /// takes several commands (`queue_should_plug`; where it was added is inferred). Depth stands for `blk_queue_tagged`.
    fn leaves_unplugged(&self, rotational: bool, queue_depth: u32) -> bool {
        let is_known = self.version >= [2, 6, 28];
        is_known && !rotational && (queue_depth > 1 || self.version < [2, 6, 30])
    }

    /// Whether the number of requests is a tunable.
    pub fn has_nr_requests(&self) -> bool {
        self.version >= [2, 6, 0]
    }

    /// Whether tasks plug for themselves, instead of the queue.
    fn tasks_plug(&self) -> bool {
        self.version >= [2, 6, 39]
    }

    /// What a task holds back; None: nothing. The borders 4.10, 5.0 and 5.16 are inferred.
    pub fn task_plug_rules(&self) -> Option<TaskPlugRules> {
        let since = |version| self.version >= version;
        self.tasks_plug().then(|| TaskPlugRules {
            requests: if since([5, 16, 0]) { 32 } else { 16 },
            last_sectors: if since([4, 10, 0]) { 256 } else { u32::MAX },
            submissions_above: if since([5, 0, 0]) { 2 } else { 0 },
            newest_first: since([5, 16, 0]) && !since([6, 12, 0]),
        })
    }

    /// Whether a scheduler takes its limits of tags from the former `nr_requests` when it is told a new one
    /// (`blk_mq_update_nr_requests` of 6.1 and 6.12.117): until "blk-mq: fix elevator depth_updated method", which the
    /// announcement of 6.17.3 lists.
    pub fn limits_by_former_requests(&self) -> bool {
        self.version < [6, 17, 3]
    }

    /// Whether queues of blk-mq throttle writeback (`CONFIG_BLK_WBT_MQ`, on by default from 4.10 on). BFQ turns it off for
    /// its queue, unless somebody asks for it (`wbt_disable_default`).
    pub fn throttles_writeback(&self) -> bool {
        self.version >= [4, 10, 0]
    }

    /// Whether a writer that is woken has its place (`rq_qos_wait`; 5.0 is inferred).
    pub fn hands_over_places(&self) -> bool {
        self.version >= [5, 0, 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel::named(name).unwrap()
    }

    #[test]
    fn mm_kernels_unplug_themselves_before_the_mainline_does() {
        let plug = |name| kernel(name).queue_rules(true, 32).plug;
        assert_eq!(plug("2.5.59"), PlugRules::EXPLICIT);
        assert_eq!(plug("2.5.51-mm1"), PlugRules::SELF);
        assert_eq!(plug("2.5.60"), PlugRules::SELF);
        assert!(kernel("2.6.38").task_plug_rules().is_none());
        assert!(kernel("2.6.39").task_plug_rules().is_some());
    }

    #[test]
    fn devices_without_seeks_that_take_several_commands_are_not_plugged() {
        let plug = |name, depth| kernel(name).queue_rules(false, depth).plug;
        assert_eq!(plug("2.6.27", 32), PlugRules::SELF);
        assert_eq!(plug("2.6.28", 1), PlugRules::NONE);
        assert_eq!(plug("2.6.35", 1), PlugRules::SELF);
        assert_eq!(plug("2.6.35", 32), PlugRules::NONE);
        assert_eq!(kernel("2.6.35").queue_rules(true, 32).plug, PlugRules::SELF);
    }

    #[test]
    fn a_task_holds_back_more_from_5_16_on_and_whole_calls_if_they_are_long() {
        let rules = |name| kernel(name).task_plug_rules().unwrap();
        let full_at = ["3.4", "5.15", "5.16"].map(|name| rules(name).requests);
        assert_eq!(full_at, [16, 16, 32]);
        let above = ["3.4", "4.20", "5.0"].map(|name| rules(name).submissions_above);
        assert_eq!(above, [0, 0, 2]);
        assert_eq!(["5.15", "6.1", "6.12.117"].map(|name| rules(name).newest_first), [false, true, false]);
    }

    #[test]
    fn mq_deadline_limits_by_the_former_number_until_6_17() {
        assert!(kernel("6.1.192").limits_by_former_requests());
        assert!(!kernel("6.18").limits_by_former_requests());
    }

    #[test]
    fn limits_of_groups_are_kept_over_a_tenth_of_a_second_or_a_fiftieth() {
        let ticks = |name: &str, hz, rotational| {
            let kernel = Kernel::named(name).unwrap();
            kernel.throttle_slice_ticks(hz, rotational)
        };
        assert_eq!(ticks("2.6.36", 250, true), None);
        assert_eq!(ticks("6.1", 250, false), Some(25));
        assert_eq!(ticks("6.12", 250, false), Some(5));
        assert_eq!(ticks("6.12", 250, true), Some(25));
        assert_eq!(ticks("6.19", 1000, false), Some(100));
    }
}
