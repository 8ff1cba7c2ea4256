//! When and at what cost files' data are written back, as a machine file describes it.

use serde::Deserialize;

use events::SpecError;
use events::spec_error::within;
use events::time::{SECOND, Time};

/// The table `filesystem.writeback`. The times and thresholds are the kernel's defaults (`dirty_writeback_centisecs`,
/// `dirty_expire_centisecs`, `dirty_background_ratio`); cycles are estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Writeback {
    /// Tasks that write back at once: the drive's own, and as many more as others would be that do so too.
    #[schemars(range(min = 1, max = 1024))]
    pub flushers: u32,
    /// Between two looks for pages that have expired.
    #[schemars(range(min = 1_000_000, max = 3600 * SECOND))]
    pub period_ns: Time,
    /// A page is written back when it has been dirty for this long.
    #[schemars(range(max = 3600 * SECOND))]
    pub expire_ns: Time,
    /// Or when more pages than these are dirty: 10 % of 8 GiB (an estimate).
    pub background_blocks: u32,
    /// CPU time of writing and of writing back.
    pub cycles: WritebackCycles,
}

/// CPU time of buffered writes and of writeback, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WritebackCycles {
    /// A call of write(2), without its pages.
    #[schemars(range(max = CYCLES_MAX))]
    pub write: u32,
    /// A page of it: finding one, copying into it, reserving its block.
    #[schemars(range(max = CYCLES_MAX))]
    pub copy_page: u32,
    /// Of a transaction that finds blocks, without the allocator and the commit.
    #[schemars(range(max = CYCLES_MAX))]
    pub map: u32,
    /// Giving up a page to the drive.
    #[schemars(range(max = CYCLES_MAX))]
    pub write_back_page: u32,
}

impl Default for Writeback {
    fn default() -> Self {
        Writeback {
            flushers: 1,
            period_ns: 5 * SECOND,
            expire_ns: 30 * SECOND,
            background_blocks: 209_715,
            cycles: WritebackCycles::default(),
        }
    }
}

impl Default for WritebackCycles {
    fn default() -> Self {
        WritebackCycles { write: 1500, copy_page: 3000, map: 15_000, write_back_page: 2000 }
    }
}

impl Writeback {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        within("flushers", u64::from(self.flushers), 1, 1024)?;
        within("period_ns", self.period_ns, 1_000_000, 3600 * SECOND)?;
        within("expire_ns", self.expire_ns, 0, 3600 * SECOND)?;
        let WritebackCycles { write, copy_page, map, write_back_page } = self.cycles;
        for (key, cycles) in
            [("write", write), ("copy_page", copy_page), ("map", map), ("write_back_page", write_back_page)]
        {
            within(&format!("cycles.{key}"), u64::from(cycles), 0, CYCLES_MAX)?;
        }
        Ok(())
    }
}

impl WritebackCycles {
    /// A call of write(2) that touches `pages` pages.
    pub(super) fn of_write(&self, pages: u32) -> u32 {
        self.write.saturating_add(of_pages(self.copy_page, pages))
    }

    pub(super) fn of_write_back(&self, pages: u32) -> u32 {
        of_pages(self.write_back_page, pages)
    }
}

/// The cycles of all pages of one call, up to a limit.
fn of_pages(cycles: u32, pages: u32) -> u32 {
    cycles.saturating_mul(pages).min(PAGES_CYCLES_MAX)
}

const CYCLES_MAX: u64 = 100_000_000;
const PAGES_CYCLES_MAX: u32 = 2_000_000_000;
