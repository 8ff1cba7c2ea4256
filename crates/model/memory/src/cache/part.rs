//! The part of memory that processes leave to the page cache: what it keeps, and what may be dirty then.

use crate::cache::PAGE_BYTES;
use crate::cache::page_cache::PageCache;
use crate::cache::spec::Rules;
use kernels::dirty_limits::Percentages;

/// What is being read must be in memory until it is used: so much is for files whatever processes have.
const LEAST_BYTES: u64 = 1 << 20;

impl PageCache {
    /// What files and processes share, in pages.
    pub fn memory_pages(&self) -> u64 {
        self.rules.memory
    }

    /// Pages that processes cannot have now: dirty ones, those in flight, and this percentage of the memory as far as
    /// they hold data.
    pub fn kept_pages(&self, percent: u64) -> u64 {
        let kept = self.rules.memory * percent / 100;
        let in_memory = self.pages.in_memory();
        let least = kept.max(self.least_pages()).min(in_memory);
        self.pages.not_clean().max(least)
    }

    /// Processes have this many pages: the rest is for files. Pages that were not used for longest are forgotten at
    /// once.
    pub fn leave(&mut self, pages_of_processes: u64) {
        let most = self.rules.memory - self.least_pages();
        let taken = pages_of_processes.min(most);
        if self.pages.set_memory(self.rules.memory - taken) {
            self.rules.set_dirty_limits(self.rules.beside(taken));
        }
    }

    fn least_pages(&self) -> u64 {
        let windows = 4 * self.rules.read_ahead.max(self.rules.request_pages);
        windows.max(LEAST_BYTES / PAGE_BYTES).min(self.rules.memory)
    }
}

impl Rules {
    pub(super) fn set_dirty_limits(&mut self, percentages: Percentages) {
        let of = |percent: u64| percentages.base * percent / 100;
        self.background = of(percentages.background);
        self.background_stop = of(percentages.stop);
        self.foreground = of(percentages.foreground).max(1);
    }

    fn beside(&self, mapped: u64) -> Percentages {
        self.dirty_limits.beside(self.percentages, mapped, self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{CacheSpec, CacheVariant, DirtyLimits};

    fn cache(limits: DirtyLimits) -> PageCache {
        let spec = CacheSpec {
            dirty_limits: Some(limits),
            ..CacheSpec::new(CacheVariant::Linux2_6_18, 1000 * PAGE_BYTES + (1 << 20))
        };
        PageCache::new(&spec).unwrap()
    }

    #[test]
    fn what_may_be_dirty_falls_with_what_processes_have() {
        for (of, alone, beside) in [
            (DirtyLimits::Linux2_4, [376, 753], [376, 753]),
            (DirtyLimits::Linux2_5, [125, 502], [125, 326]),
            (DirtyLimits::Linux2_6_29, [125, 251], [125, 251]),
            (DirtyLimits::Linux3_14, [125, 251], [65, 131]),
        ] {
            let mut cache = cache(of);
            let limits = |cache: &PageCache| [cache.rules.background, cache.rules.foreground];
            assert_eq!(limits(&cache), alone, "{of:?}");
            cache.leave(600);
            assert_eq!(limits(&cache), beside, "{of:?}");
            cache.leave(0);
            assert_eq!(limits(&cache), alone, "{of:?}");
        }
    }

    #[test]
    fn processes_leave_what_windows_of_reading_need() {
        let mut cache = cache(DirtyLimits::Linux2_5);
        cache.leave(u64::MAX);
        assert_eq!(cache.rules.memory - cache.least_pages(), 1000);
        assert_eq!(cache.kept_pages(100), 0, "nothing is in memory");
    }
}
