//! The part of memory that processes leave to the page cache: what it keeps, and what may be dirty then.

use crate::cache::PAGE_BYTES;
use crate::cache::page_cache::PageCache;
use crate::cache::spec::{CacheVariant, Percentages, Rules};

/// What is being read must be in memory until it is used: so much is for files whatever processes have.
const LEAST_BYTES: u64 = 1 << 20;
/// `balance_dirty_pages` goes no lower (`get_dirty_limits` of 2.6.0), in percent.
const DIRTY_PERCENT_LEAST: u64 = 5;

impl PageCache {
    /// What files and processes share, in pages.
    pub fn memory_pages(&self) -> u64 {
        self.rules.memory
    }

    /// Pages that processes cannot have now: dirty ones, those under way, and so many percent of the memory as far as they
    /// hold data.
    pub fn kept_pages(&self, percent: u64) -> u64 {
        let kept = self.rules.memory * percent / 100;
        let in_memory = self.pages.in_memory();
        let least = kept.max(self.least_pages()).min(in_memory);
        self.pages.not_clean().max(least)
    }

    /// Processes have so many pages: the rest is for files. Pages that were not used for longest are forgotten at once.
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

    /// With so many pages in page tables of processes. 2.4 counts all memory (`balance_dirty_state`). 2.5 and 2.6 take at
    /// most half of the percentage that is not mapped, and half of that for the background where it is no less
    /// (`get_dirty_limits`, as 2.6.0 has it; inferred for 2.5). From 2.6.35 on percentages are of what is free or of files
    /// (`determine_dirtyable_memory`).
    fn beside(&self, mapped: u64) -> Percentages {
        let whole = self.percentages;
        match self.variant {
            CacheVariant::Linux2_4 => whole,
            CacheVariant::Linux2_5 | CacheVariant::Linux2_6_18 => {
                let unmapped = 100 - mapped * 100 / self.memory;
                let foreground = whole
                    .foreground
                    .min((unmapped / 2).max(DIRTY_PERCENT_LEAST));
                let background = match whole.background >= foreground {
                    true => foreground / 2,
                    false => whole.background,
                };
                Percentages {
                    foreground,
                    background,
                    stop: background,
                    ..whole
                }
            }
            CacheVariant::Linux2_6_35 | CacheVariant::Linux3_2 => Percentages {
                base: whole.base - mapped.min(whole.base),
                ..whole
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CacheSpec;

    fn cache(variant: CacheVariant) -> PageCache {
        PageCache::new(&CacheSpec::new(variant, 1000 * PAGE_BYTES + (1 << 20))).unwrap()
    }

    #[test]
    fn what_may_be_dirty_falls_with_what_processes_have() {
        for (variant, alone, beside) in [
            (CacheVariant::Linux2_4, [376, 753], [376, 753]),
            (CacheVariant::Linux2_5, [125, 502], [125, 326]),
            (CacheVariant::Linux2_6_35, [125, 251], [65, 131]),
            (CacheVariant::Linux3_2, [125, 251], [65, 131]),
        ] {
            let mut cache = cache(variant);
            let limits = |cache: &PageCache| [cache.rules.background, cache.rules.foreground];
            assert_eq!(limits(&cache), alone, "{variant:?}");
            cache.leave(600);
            assert_eq!(limits(&cache), beside, "{variant:?}");
            cache.leave(0);
            assert_eq!(limits(&cache), alone, "{variant:?}");
        }
    }

    #[test]
    fn processes_leave_what_windows_of_reading_need() {
        let mut cache = cache(CacheVariant::Linux2_5);
        cache.leave(u64::MAX);
        assert_eq!(cache.rules.memory - cache.least_pages(), 1000);
        assert_eq!(cache.kept_pages(100), 0, "nothing is in memory");
    }
}
