//! A page cache as a machine file describes it, and the rules of the kernel's variant that follow.

use serde::Deserialize;

use crate::cache::PAGE_BYTES;
use crate::cache::proportions::WriteoutPeriod;
use events::SpecError;
use events::spec_error::within;
use events::time::{MILLISECOND, SECOND, Time};
pub use kernels::cache::CacheVariant;
use kernels::dirty_limits::{DirtyLimits, Percentages};
pub use kernels::read_ahead::ReadAhead;

/// Everything left out is as that kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Which kernel's cache it is.
    pub variant: CacheVariant,
    /// Memory for pages of files: the machine's, less what programs and the kernel itself have.
    pub memory_bytes: u64,
    /// The part of memory that the kernel addresses directly: up to 896 MiB on a 32-bit machine. Left out: all of it.
    pub lowmem_bytes: Option<u64>,
    /// The memory that there was when the limit of dirty pages was set, of which something has been taken since. None: as
    /// much as now.
    pub former_bytes: Option<u64>,
    /// How it reads ahead. None: as the kernel that was read for the variant.
    pub read_ahead: Option<ReadAhead>,
    /// The largest read-ahead window.
    pub read_ahead_bytes: Option<u64>,
    /// A longer read than a window is read ahead as a whole up to this: the device's largest request, from 4.10 on. None:
    /// in windows.
    pub request_bytes: Option<u64>,
    /// What may be dirty. None: as the kernel that was read for the variant.
    pub dirty_limits: Option<DirtyLimits>,
    /// What a read call that is longer than a window reads ahead is held back until it waits or ends: 2.6.39 to 3.2.5.
    #[serde(default)]
    pub plugs_calls: bool,
    /// Drives have limits of their own, by what each has written lately. None: all have one limit together.
    pub lately: Option<WriteoutPeriod>,
    /// While the limit is exceeded, a CPU looks once per 8 pages (`dirty_exceeded`).
    pub looks_often_beyond_limit: bool,
    /// A throttled writer writes back only while its drive has more than its limit waiting to be written: in 2.6.31.
    #[serde(default)]
    pub writes_back_only_beyond_limit: bool,
    /// Writeback begins with more of the memory dirty than this.
    pub dirty_background_percent: Option<u8>,
    /// Writers are made to wait with more than this.
    pub dirty_percent: Option<u8>,
    /// Age at which dirty pages are written back (`dirty_expire_centisecs`), in nanoseconds.
    #[serde(rename = "dirty_expire")]
    pub dirty_expire_ns: Option<Time>,
    /// Time between two looks for old dirty pages (`dirty_writeback_centisecs`), in nanoseconds.
    #[serde(rename = "dirty_writeback_interval")]
    pub dirty_writeback_interval_ns: Option<Time>,
    /// A journal in ordered mode writes data before it commits, this long after a transaction began: 5 s in ext3. None: no
    /// such journal.
    #[serde(rename = "ordered_commit_interval")]
    pub ordered_commit_interval_ns: Option<Time>,
}

/// A specification resolved. Counts in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) variant: CacheVariant,
    /// The memory of files and of the processes that have a part of it.
    pub(super) memory: u64,
    pub(super) dirty_limits: DirtyLimits,
    pub(super) percentages: Percentages,
    pub(super) windows: ReadAhead,
    pub(super) read_ahead: u64,
    /// 0: calls are read in windows, however long they are.
    pub(super) request_pages: u64,
    pub(super) plugs_calls: bool,
    pub(super) lately: Option<WriteoutPeriod>,
    pub(super) background: u64,
    /// Background writeback continues until fewer are dirty.
    pub(super) background_stop: u64,
    pub(super) foreground: u64,
    /// What it was when it was set.
    pub(super) foreground_when_set: Option<u64>,
    /// Between two looks at how much is dirty; the second while the limit is exceeded.
    pub(super) ratelimit: u64,
    pub(super) ratelimit_exceeded: u64,
    pub(super) writes_back_only_beyond_limit: bool,
    /// What a writer that is made to wait writes back itself.
    pub(super) throttled_writes: u64,
    /// What an inode may write before the next has its turn.
    pub(super) turn: u64,
    /// The longest piece that is submitted, and how much between two looks at the queue.
    pub(super) io_pages_max: u64,
    pub(super) step: u64,
    pub(super) expire: Time,
    pub(super) interval: Time,
    pub(super) commit_interval: Option<Time>,
}

/// A commit hands its buffers over this many at a time (`fs/jbd/commit.c` of 2.5.59, as generally known: inferred).
pub(super) const COMMIT_BATCH: u64 = 64;
/// How long who finds nothing to write waits, unless the queue's congestion ends before.
pub(super) const CONGESTION_WAIT: Time = 100 * MILLISECOND;

/// 1 MiB to 64 TiB.
pub const MEMORY_BYTES: (u64, u64) = (1 << 20, 64 << 40);
/// The percentage of memory that may be dirty before writers wait.
pub const DIRTY_PERCENT: (u8, u8) = (1, 90);
/// Between two rounds of writeback: 1 ms to a day.
pub const INTERVAL_NS: (Time, Time) = (MILLISECOND, 86_400 * SECOND);

impl CacheSpec {
    /// That kernel's defaults with this much memory.
    pub fn new(variant: CacheVariant, memory_bytes: u64) -> CacheSpec {
        CacheSpec {
            variant,
            memory_bytes,
            lowmem_bytes: None,
            former_bytes: None,
            read_ahead: None,
            read_ahead_bytes: None,
            request_bytes: None,
            dirty_limits: None,
            plugs_calls: false,
            lately: match variant {
                CacheVariant::Linux2_4 | CacheVariant::Linux2_5 | CacheVariant::Linux2_6_18 => None,
                CacheVariant::Linux2_6_35 | CacheVariant::Linux3_2 => Some(WriteoutPeriod::Pages),
            },
            looks_often_beyond_limit: variant.writes_in_file_order(),
            writes_back_only_beyond_limit: false,
            dirty_background_percent: None,
            dirty_percent: None,
            dirty_expire_ns: None,
            dirty_writeback_interval_ns: None,
            ordered_commit_interval_ns: None,
        }
    }

    /// Checks that every value lies in its range. The error names the first key whose value does not.
    pub fn check(&self) -> Result<(), SpecError> {
        let wrong = |key, what: &str| Err(SpecError::of(key, what));
        let bytes = self.memory_bytes;
        within("memory_bytes", bytes, MEMORY_BYTES.0, MEMORY_BYTES.1)?;
        within("lowmem_bytes", self.lowmem_bytes.unwrap_or(bytes), 1, bytes)?;
        let former = self.former_bytes.unwrap_or(bytes);
        within("former_bytes", former, MEMORY_BYTES.0, MEMORY_BYTES.1)?;
        if self.former_bytes.is_some() && self.variant != CacheVariant::Linux3_2 {
            return wrong(
                "former_bytes",
                "this kernel's limit changes at once; leave it out: it falls slowly from 3.2 on",
            );
        }
        if self.read_ahead_bytes.is_some_and(|most| most > self.memory_bytes / 4) {
            return wrong("read_ahead_bytes", "expected at most a quarter of the memory");
        }
        let Percentages { background, foreground, .. } = self.percentages();
        let (least, most) = DIRTY_PERCENT;
        within("dirty_percent", foreground, least.into(), most.into())?;
        within("dirty_background_percent", background, 0, foreground)?;
        for (key, value) in [
            ("dirty_expire", self.dirty_expire_ns),
            ("dirty_writeback_interval", self.dirty_writeback_interval_ns),
            ("ordered_commit_interval", self.ordered_commit_interval_ns),
        ] {
            if let Some(time) = value {
                within(key, time, INTERVAL_NS.0, INTERVAL_NS.1)?;
            }
        }
        Ok(())
    }

    fn dirty_limits(&self) -> DirtyLimits {
        self.dirty_limits.unwrap_or(self.variant.dirty_limits())
    }

    /// The base of the percentages in pages, where background writeback stops, begins, and where writers wait.
    fn percentages(&self) -> Percentages {
        let total = self.memory_bytes / PAGE_BYTES;
        let low = self.lowmem_bytes.unwrap_or(self.memory_bytes) / PAGE_BYTES;
        let default = self.dirty_limits().percentages(total, low);
        let background = self.dirty_background_percent.map_or(default.background, u64::from);
        Percentages {
            background,
            foreground: self.dirty_percent.map_or(default.foreground, u64::from),
            stop: match default.stop == default.background {
                true => background,
                false => default.stop.min(background),
            },
            ..default
        }
    }

    /// This many dirty pages start writeback.
    pub fn background_pages(&self) -> u64 {
        let Percentages { base, background, .. } = self.percentages();
        base * background / 100
    }

    pub(super) fn rules(&self) -> Rules {
        let percentages = self.percentages();
        let memory = self.memory_bytes / PAGE_BYTES;
        let newer = self.variant != CacheVariant::Linux2_4;
        // A thirty-second of the memory per CPU, at most 4 MiB (2.5.59); the number of CPUs is taken as 1.
        let ratelimit = if newer { (memory / 32).clamp(16, 1024) } else { 1 };
        // 2.4 has a maximum of 31 pages.
        let read_ahead_bytes = if newer { 128 << 10 } else { 31 * PAGE_BYTES };
        let io_pages_max = match self.variant {
            CacheVariant::Linux2_4 => 32,
            CacheVariant::Linux2_5 | CacheVariant::Linux2_6_18 => 16,
            CacheVariant::Linux2_6_35 | CacheVariant::Linux3_2 => 256,
        };
        let mut rules = Rules {
            variant: self.variant,
            memory,
            dirty_limits: self.dirty_limits(),
            percentages,
            windows: self.read_ahead.unwrap_or(self.variant.read_ahead()),
            read_ahead: self.read_ahead_bytes.unwrap_or(read_ahead_bytes) / PAGE_BYTES,
            request_pages: self.request_bytes.unwrap_or(0) / PAGE_BYTES,
            plugs_calls: self.plugs_calls,
            lately: self.lately,
            background: 0,
            background_stop: 0,
            foreground: 0,
            foreground_when_set: self.former_bytes.map(|bytes| bytes / PAGE_BYTES * percentages.foreground / 100),
            ratelimit,
            ratelimit_exceeded: match self.looks_often_beyond_limit {
                true => 8,
                false => ratelimit,
            },
            writes_back_only_beyond_limit: self.writes_back_only_beyond_limit,
            throttled_writes: if newer { ratelimit + ratelimit / 2 } else { 32 },
            turn: if newer { 1024 } else { 512 },
            io_pages_max,
            step: io_pages_max,
            expire: self.dirty_expire_ns.unwrap_or(30 * SECOND),
            interval: self.dirty_writeback_interval_ns.unwrap_or(5 * SECOND),
            commit_interval: self.ordered_commit_interval_ns,
        };
        rules.set_dirty_limits(percentages);
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highmem_scales_2_5s_thresholds_to_9_and_37_percent_with_3_75_gb() {
        let mut spec = CacheSpec::new(CacheVariant::Linux2_5, 3840 << 20);
        spec.lowmem_bytes = Some(896 << 20);
        let (rules, pages) = (spec.rules(), (3840 << 20) / PAGE_BYTES);
        assert_eq!((rules.background * 1000 / pages, rules.foreground * 1000 / pages), (93, 373));
        assert_eq!(rules.throttled_writes, 1536);
    }

    #[test]
    fn what_is_impossible_is_said_with_its_key() {
        let good = CacheSpec::new(CacheVariant::Linux2_4, 1 << 30);
        assert_eq!(good.check(), Ok(()));
        let key = |spec: CacheSpec| spec.check().unwrap_err().key;
        assert_eq!(key(CacheSpec { memory_bytes: 0, ..good }), "memory_bytes");
        assert_eq!(key(CacheSpec { lowmem_bytes: Some(2 << 30), ..good }), "lowmem_bytes");
        assert_eq!(key(CacheSpec { former_bytes: Some(0), ..good }), "former_bytes");
        let falls_slowly = CacheSpec { former_bytes: Some(2 << 30), ..CacheSpec::new(CacheVariant::Linux3_2, 1 << 30) };
        assert_eq!(falls_slowly.check(), Ok(()));
        assert_eq!(key(CacheSpec { variant: CacheVariant::Linux2_4, ..falls_slowly }), "former_bytes");
        assert_eq!(key(CacheSpec { dirty_percent: Some(0), ..good }), "dirty_percent");
        assert_eq!(key(CacheSpec { dirty_percent: Some(20), ..good }), "dirty_background_percent");
        assert_eq!(key(CacheSpec { dirty_expire_ns: Some(0), ..good }), "dirty_expire");
    }
}
