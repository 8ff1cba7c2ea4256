//! The tunables of a drive's queue in a machine's file.

use kernels::queue::{Merges, QueueRules};
use serde::Deserialize;

use crate::world::{PollDelay, PollRules};
use block_layer::scheduler::spec::SchedulerSpec;
use block_layer::{HardwareRules, QueueMap, WbtRules};
use devices::Identity;
use events::SpecError;
use events::spec_error::within;
use events::time::{MICROSECOND, SECOND};
use kernels::Kernel;

/// The tunables of a drive's queue, under the names of /sys/block/DEVICE/queue; those left out are the kernel's.
#[derive(Clone, Copy, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Requests of each class of the pool, 4 to 65536; with blk-mq, of each hardware queue: at most 2048 with a scheduler,
    /// and as many as the device takes without one.
    #[schemars(range(min = 4, max = NR_REQUESTS_MAX))]
    pub nr_requests: Option<u32>,
    /// Largest read-ahead window of the page cache, in KiB; the same for all drives.
    #[schemars(range(max = 1 << 20))]
    pub read_ahead_kb: Option<u64>,
    /// Largest request that merging may make, in KiB: 4 to 65536.
    #[schemars(range(min = 4, max = 65_536))]
    pub max_sectors_kb: Option<u32>,
    /// Largest number of segments of a request, 1 to 65535.
    #[schemars(range(min = 1, max = 65_535))]
    pub max_segments: Option<u16>,
    /// 0: all merges. 1: only with the request that was merged into or inserted last. 2: none.
    #[schemars(range(max = 2))]
    pub nomerges: Option<u8>,
    /// As many as the device has; only blk-mq uses more than one. Flash takes its queue depth in each, other devices in all
    /// together.
    #[schemars(range(min = 1))]
    pub hardware_queues: Option<u16>,
    /// Where requests are completed.
    #[schemars(range(max = 2))]
    pub rq_affinity: Option<u8>,
    /// What schedulers, plugging and throttling take the device for: 1 seeks cost time, 0 they do not. Left out: as it is.
    #[schemars(range(max = 1))]
    pub rotational: Option<u8>,
    /// Throttling of writeback: reads are to take no longer, in microseconds; 0: it is not throttled. Only blk-mq of 4.10
    /// on. Left out: 75000, or 2000 without seeks, and with BFQ 0.
    #[schemars(range(max = WBT_LAT_USEC_MAX))]
    pub wbt_lat_usec: Option<u64>,
    /// 1: tasks can poll for completions: the device has queues that do not interrupt, as many as others. Only flash and null
    /// devices under blk-mq of 4.4 on. Left out: 0.
    #[schemars(range(max = 1))]
    pub io_poll: Option<u8>,
    /// How long who polls sleeps first, in microseconds: -1 not at all, 0 half the mean time of such requests of late. Kernels
    /// from 4.10 to 6.3. Left out: -1.
    #[schemars(range(min = -1, max = POLL_DELAY_USEC_MAX))]
    pub io_poll_delay: Option<i64>,
    /// What fsync and throttling take the device's cache for; left out: as it is.
    pub write_cache: Option<WriteCache>,
    /// 1: the device takes writes that are on the medium when they complete (force unit access), else the kernel flushes its
    /// cache behind them. Left out: 0.
    #[schemars(range(max = 1))]
    pub fua: Option<u8>,
}

/// The words of /sys/block/DEVICE/queue/write_cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
pub enum WriteCache {
    /// It acknowledges writes from a cache that forgets without power.
    #[serde(rename = "write back")]
    Back,
    /// It does not.
    #[serde(rename = "write through")]
    Through,
}

const NR_REQUESTS_MAX: u32 = 65_536;
/// `MAX_SCHED_RQ` of blk-mq.
const SCHEDULER_TAGS_MAX: u32 = 2048;
/// A minute.
const WBT_LAT_USEC_MAX: u64 = 60_000_000;
/// A second.
const POLL_DELAY_USEC_MAX: i64 = 1_000_000;

/// Tags of a scheduler that was not told how many (`blk_mq_init_sched`).
pub(super) fn default_tags(hardware: &HardwareRules) -> u32 {
    2 * hardware.depth.min(128)
}

impl QueueSpec {
    pub(super) fn check(&self, kernel: &Kernel, cpus: u16) -> Result<(), SpecError> {
        if self.nr_requests.is_some() && !kernel.has_nr_requests() {
            let what = format!("kernel {} has no such tunable", kernel.name());
            return Err(SpecError::of("nr_requests", what));
        }
        let given = [
            ("nr_requests", self.nr_requests.map(u64::from), 4, u64::from(NR_REQUESTS_MAX)),
            ("max_sectors_kb", self.max_sectors_kb.map(u64::from), 4, 65_536),
            ("max_segments", self.max_segments.map(u64::from), 1, 65_535),
            ("nomerges", self.nomerges.map(u64::from), 0, 2),
            ("rq_affinity", self.rq_affinity.map(u64::from), 0, 2),
            ("read_ahead_kb", self.read_ahead_kb, 0, 1 << 20),
            ("rotational", self.rotational.map(u64::from), 0, 1),
            ("fua", self.fua.map(u64::from), 0, 1),
            ("io_poll", self.io_poll.map(u64::from), 0, 1),
            ("wbt_lat_usec", self.wbt_lat_usec, 0, WBT_LAT_USEC_MAX),
            ("hardware_queues", self.hardware_queues.map(u64::from), 1, u64::from(cpus)),
        ];
        for (key, value, least, most) in given {
            if let Some(value) = value {
                within(key, value, least, most)?;
            }
        }
        Ok(())
    }

    /// Those of kernel and device, with what is given.
    pub(super) fn rules(&self, mut rules: QueueRules) -> QueueRules {
        if let Some(kb) = self.max_sectors_kb {
            rules.request_sectors_max = kb * 2;
        }
        if let Some(segments) = self.max_segments {
            rules.request_segments_max = segments;
        }
        rules.merges = match self.nomerges {
            None | Some(0) => Merges::All,
            Some(1) => Merges::LastOnly,
            Some(_) => Merges::Never,
        };
        if let Some(requests) = self.nr_requests {
            rules.pool = rules.pool.with_requests(requests);
        }
        rules
    }

    /// Whether it takes the device's cache for one that forgets without power.
    pub(super) fn has_write_cache(&self, device: &Identity) -> bool {
        match self.write_cache {
            None => device.volatile_cache,
            Some(words) => words == WriteCache::Back,
        }
    }

    /// Whether writes are durable by themselves; a cache that keeps its data needs none such.
    pub(super) fn takes_fua(&self, device: &Identity) -> bool {
        self.has_write_cache(device) && self.fua == Some(1)
    }

    /// How it throttles writeback; None: not at all.
    pub(super) fn wbt(
        &self,
        kernel: &Kernel,
        scheduler: &SchedulerSpec,
        device: &Identity,
        rotational: bool,
    ) -> Result<Option<WbtRules>, SpecError> {
        let has = scheduler.is_multi_queue() && kernel.throttles_writeback();
        if !has && self.wbt_lat_usec.is_some() {
            let what = "only queues of blk-mq of kernels from 4.10 on have it";
            return Err(SpecError::of("wbt_lat_usec", what));
        }
        let target_ns = match self.wbt_lat_usec {
            Some(usec) => usec * MICROSECOND,
            None if has && !scheduler.turns_wbt_off() => WbtRules::default_target_ns(rotational),
            None => 0,
        };
        let write_cache = self.has_write_cache(device);
        Ok((target_ns > 0).then_some(WbtRules {
            target_ns,
            queue_depth: device.queue_depth,
            write_cache,
            hands_over: kernel.hands_over_places(),
        }))
    }

    /// How tasks poll for its completions; None: they can't.
    pub(super) fn polling(
        &self,
        kernel: &Kernel,
        scheduler: &SchedulerSpec,
        device: &Identity,
    ) -> Result<Option<PollRules>, SpecError> {
        let delay = self.io_poll_delay.unwrap_or(-1);
        if !(-1..=POLL_DELAY_USEC_MAX).contains(&delay) {
            let what = format!("expected -1 to {POLL_DELAY_USEC_MAX}, found {delay}");
            return Err(SpecError::of("io_poll_delay", what));
        }
        if self.io_poll_delay.is_some() && !kernel.polls_with_delay() {
            let what = "only kernels from 4.10 to 6.3 have it";
            return Err(SpecError::of("io_poll_delay", what));
        }
        if self.io_poll.unwrap_or(0) == 0 {
            return Ok(None);
        }
        if !kernel.polls() || !scheduler.is_multi_queue() || !device.depth_by_queue {
            let what = "only flash and null devices under blk-mq of kernels from 4.4 on have it";
            return Err(SpecError::of("io_poll", what));
        }
        let delay = PollDelay::of(delay).expect("checked");
        Ok(Some(PollRules { delay }))
    }

    /// Of a queue of blk-mq: its hardware queues, whose tags `nr_requests` makes fewer if no scheduler is between, and
    /// never more (`blk_mq_tag_update_depth` of 4.11 to 6.1).
    pub(super) fn hardware(
        &self,
        map: QueueMap,
        device: &Identity,
        scheduler: &SchedulerSpec,
        kernel: &Kernel,
        hz: u32,
    ) -> Result<HardwareRules, SpecError> {
        let mut depth = device.queue_depth;
        if let Some(requests) = self.nr_requests {
            let most = match scheduler.has_own_tags() {
                true => SCHEDULER_TAGS_MAX,
                false => depth,
            };
            within("nr_requests", u64::from(requests), 1, u64::from(most))?;
            if !scheduler.has_own_tags() {
                depth = requests;
            }
        }
        Ok(HardwareRules {
            shared_tags: map.queues() == 1 || !device.depth_by_queue,
            map,
            depth,
            runs: kernel.queue_runs(!device.depth_by_queue),
            tick_ns: SECOND / u64::from(hz),
        })
    }

    /// Requests that a set of tags has: with a scheduler `nr_requests`, without one the device's (`blk_mq_init_sched` of
    /// 4.11 to 6.1).
    pub(super) fn tags(&self, hardware: &HardwareRules, scheduler: &SchedulerSpec) -> u32 {
        match scheduler.has_own_tags() {
            true => self.nr_requests.unwrap_or(default_tags(hardware)),
            false => hardware.depth,
        }
    }
}
