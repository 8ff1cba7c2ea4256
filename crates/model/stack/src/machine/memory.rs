//! Memory and its page cache.

use serde::Deserialize;

use super::drive::DrivePlan;
use events::SpecError;
use events::time::{SECOND, Time};
use kernels::Kernel;
use memory::cache::{CacheSpec, DIRTY_PERCENT, INTERVAL_NS, MEMORY_BYTES};

/// Everything left out is as the kernel has it.
#[derive(Clone, Copy, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemorySpec {
    /// For pages of files and of processes that sort: the machine's, less what other programs and the kernel itself have.
    #[schemars(range(min = MEMORY_BYTES.0, max = MEMORY_BYTES.1))]
    bytes: u64,
    /// Of it, what the kernel addresses directly; a 32-bit machine has up to 896 MiB.
    #[schemars(range(min = 1))]
    lowmem_bytes: Option<u64>,
    /// What there was when the limits of dirty pages were set: what keeps the data of drives has taken the rest since.
    #[schemars(range(min = MEMORY_BYTES.0, max = MEMORY_BYTES.1))]
    former_bytes: Option<u64>,
    #[schemars(range(max = DIRTY_PERCENT.1))]
    dirty_background_percent: Option<u8>,
    #[schemars(range(min = DIRTY_PERCENT.0, max = DIRTY_PERCENT.1))]
    dirty_percent: Option<u8>,
    #[schemars(range(min = INTERVAL_NS.0, max = INTERVAL_NS.1))]
    dirty_expire_ns: Option<Time>,
    #[schemars(range(min = INTERVAL_NS.0, max = INTERVAL_NS.1))]
    dirty_writeback_interval_ns: Option<Time>,
    /// Of journals in ordered mode. Given, commits write data whatever the kernel.
    #[schemars(range(min = INTERVAL_NS.0, max = INTERVAL_NS.1))]
    commit_interval_ns: Option<Time>,
}

/// `max_sectors_kb` from 4.3 on, if the device takes as much (`BLK_DEF_MAX_SECTORS`).
const REQUEST_KB: u32 = 1280;
/// How often ext3 and ext4 commit.
const COMMIT_INTERVAL_NS: Time = 5 * SECOND;

impl MemorySpec {
    pub(super) fn check(&self, kernel: &Kernel, drives: &[DrivePlan]) -> Result<(), SpecError> {
        let windows: Vec<Option<u64>> = drives.iter().map(|drive| drive.queue.read_ahead_kb).collect();
        if let Some(other) = windows.iter().position(|window| *window != windows[0]) {
            return Err(SpecError::of(
                &format!("drives.{other}.queue.read_ahead_kb"),
                "the simulated page cache reads ahead as far on every drive; give all the same",
            ));
        }
        self.cache(kernel, drives).check().map_err(|error| {
            let key = match error.key.as_str() {
                "memory_bytes" => "memory.bytes".to_owned(),
                "read_ahead_bytes" => "drives.0.queue.read_ahead_kb".to_owned(),
                "ordered_commit_interval" => "memory.commit_interval_ns".to_owned(),
                "dirty_expire" | "dirty_writeback_interval" => format!("memory.{}_ns", error.key),
                key => format!("memory.{key}"),
            };
            SpecError::of(&key, error.what)
        })
    }

    /// Pages beyond which what is dirty is written back at once.
    pub(super) fn background_pages(&self, kernel: &Kernel, drives: &[DrivePlan]) -> u64 {
        self.cache(kernel, drives).background_pages()
    }

    pub(super) fn cache(&self, kernel: &Kernel, drives: &[DrivePlan]) -> CacheSpec {
        let orders_data = drives.iter().any(DrivePlan::orders_data);
        let is_journaled = drives.iter().any(DrivePlan::is_journaled);
        let interval = self.commit_interval_ns.filter(|_| is_journaled);
        CacheSpec {
            lowmem_bytes: self.lowmem_bytes,
            former_bytes: self.former_bytes,
            read_ahead: Some(kernel.read_ahead()),
            read_ahead_bytes: drives
                .first()
                .and_then(|drive| drive.queue.read_ahead_kb)
                .map(|kb| (kb << 10).min(kernel.read_ahead_bytes_max())),
            request_bytes: kernel.reads_requests_whole().then(|| {
                let given = drives.first().and_then(|drive| drive.queue.max_sectors_kb);
                u64::from(given.unwrap_or(REQUEST_KB)) << 10
            }),
            dirty_limits: Some(kernel.dirty_limits()),
            plugs_calls: kernel.plugs_reads(),
            lately: kernel.drives_share_limits(),
            looks_often_beyond_limit: kernel.looks_often_beyond_limit(),
            writes_back_only_beyond_limit: kernel.writes_back_only_beyond_limit(),
            dirty_background_percent: self.dirty_background_percent,
            dirty_percent: self.dirty_percent,
            dirty_expire_ns: self.dirty_expire_ns,
            dirty_writeback_interval_ns: self.dirty_writeback_interval_ns,
            ordered_commit_interval_ns: interval.or(orders_data.then_some(COMMIT_INTERVAL_NS)),
            ..CacheSpec::new(kernel.cache_generation(), self.bytes)
        }
    }
}
