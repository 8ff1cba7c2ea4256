//! What may be dirty by default, as a part of which memory, and what the memory of processes does to it.

use serde::Deserialize;

use crate::release::Kernel;

/// Limits by the first kernel that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
pub enum DirtyLimits {
    /// 30 and 60 % of memory that is not highmem (`bdf_prm`, `nr_free_buffer_pages`; inferred: as if all of it were free or
    /// cached), down to 20 %.
    #[serde(rename = "2.4")]
    Linux2_4,
    /// 10 and 40 % of all memory, scaled down by highmem to at most four times lowmem (`page_writeback_init` of 2.6.18). No more
    /// than half of what is not mapped (`get_dirty_limits`).
    #[serde(rename = "2.5")]
    Linux2_5,
    /// The same percentages of what is not highmem (2.6.20; so is that which is free or on a list of pages in use,
    /// `determine_dirtyable_memory` of 2.6.21).
    #[serde(rename = "2.6.20")]
    Linux2_6_20,
    /// 5 and 10 % of it (07db59bd6b0f, "Change default dirty-writeback limits").
    #[serde(rename = "2.6.22")]
    Linux2_6_22,
    /// The same, whatever is mapped (2.6.24).
    #[serde(rename = "2.6.24")]
    Linux2_6_24,
    /// 10 and 20 % of it (1b5e62b42b55, "writeback: double the dirty thresholds").
    #[serde(rename = "2.6.29")]
    Linux2_6_29,
    /// Pages of processes do not count (a1c3bfb2f67e); before, those on the lists of pages in use did, as long as there was swap.
    #[serde(rename = "3.14")]
    Linux3_14,
}

/// The number of pages of which the limits of dirty pages are percentages, and these percentages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentages {
    /// The number of pages.
    pub base: u64,
    /// Background writeback ends.
    pub stop: u64,
    /// It begins.
    pub background: u64,
    /// Writers wait.
    pub foreground: u64,
}

/// `get_dirty_limits` goes no lower, in percent.
const LEAST_PERCENT: u64 = 5;

impl DirtyLimits {
    /// For this number of pages of memory and of lowmem, all of it for files.
    pub fn percentages(self, total: u64, low: u64) -> Percentages {
        let (stop, background, foreground) = match self {
            DirtyLimits::Linux2_4 => (20, 30, 60),
            DirtyLimits::Linux2_5 | DirtyLimits::Linux2_6_20 => (10, 10, 40),
            DirtyLimits::Linux2_6_22 | DirtyLimits::Linux2_6_24 => (5, 5, 10),
            DirtyLimits::Linux2_6_29 | DirtyLimits::Linux3_14 => (10, 10, 20),
        };
        Percentages {
            base: match self {
                DirtyLimits::Linux2_5 => total.min(4 * low),
                _ => low,
            },
            stop,
            background,
            foreground,
        }
    }

    /// With this many pages of `total` in page tables of processes.
    pub fn beside(self, whole: Percentages, mapped: u64, total: u64) -> Percentages {
        match self {
            DirtyLimits::Linux2_4 | DirtyLimits::Linux2_6_24 | DirtyLimits::Linux2_6_29 => whole,
            // The 2.6.22 that was read compares with what may be dirty.
            DirtyLimits::Linux2_6_22 => whole.of_unmapped(mapped, whole.base),
            DirtyLimits::Linux2_5 | DirtyLimits::Linux2_6_20 => whole.of_unmapped(mapped, total),
            DirtyLimits::Linux3_14 => Percentages { base: whole.base - mapped.min(whole.base), ..whole },
        }
    }
}

impl Percentages {
    /// At most half of the percentage that is not mapped, and half of that for the background if it is no less.
    fn of_unmapped(self, mapped: u64, of: u64) -> Percentages {
        let unmapped = 100u64.saturating_sub(mapped * 100 / of.max(1));
        let foreground = self.foreground.min((unmapped / 2).max(LEAST_PERCENT));
        let background = match self.background >= foreground {
            true => foreground / 2,
            false => self.background,
        };
        Percentages { foreground, background, stop: background, ..self }
    }
}

impl Kernel {
    /// What may be dirty. Each version is the first release with the change; those of 2.6.20 and 2.6.24 are inferred.
    pub fn dirty_limits(&self) -> DirtyLimits {
        match self.version {
            [2, 4, _] => DirtyLimits::Linux2_4,
            version if version < [2, 6, 20] => DirtyLimits::Linux2_5,
            version if version < [2, 6, 22] => DirtyLimits::Linux2_6_20,
            version if version < [2, 6, 24] => DirtyLimits::Linux2_6_22,
            version if version < [2, 6, 29] => DirtyLimits::Linux2_6_24,
            version if version < [3, 14, 0] => DirtyLimits::Linux2_6_29,
            _ => DirtyLimits::Linux3_14,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel::named(name).unwrap()
    }

    /// The limits with 3000 pages, 1000 of them lowmem: background and foreground in pages.
    fn limits(of: DirtyLimits, mapped: u64) -> (u64, u64) {
        let (total, low) = (3000, 1000);
        let found = of.beside(of.percentages(total, low), mapped, total);
        let pages = |percent| found.base * percent / 100;
        (pages(found.background), pages(found.foreground))
    }

    #[test]
    fn percentages_are_of_lowmem_from_2_6_20_on_and_fall_and_rise() {
        use DirtyLimits::*;
        let all = [Linux2_4, Linux2_5, Linux2_6_20, Linux2_6_22, Linux2_6_24, Linux2_6_29, Linux3_14];
        let expected = [(300, 600), (300, 1200), (100, 400), (50, 100), (50, 100), (100, 200), (100, 200)];
        assert_eq!(all.map(|of| limits(of, 0)), expected);
    }

    #[test]
    fn what_processes_have_counts_until_2_6_23_and_again_from_3_14_on() {
        use DirtyLimits::*;
        let mapped = 600;
        // 20 % of 3000 leaves 40 % of them; of 1000 it is 60 %, which leaves 20 %.
        assert_eq!(limits(Linux2_5, mapped), (300, 1200));
        assert_eq!(limits(Linux2_5, 1500), (300, 750));
        assert_eq!(limits(Linux2_6_20, 1500), (100, 250));
        assert_eq!(limits(Linux2_6_22, mapped), (50, 100));
        assert_eq!(limits(Linux2_6_22, 900), (20, 50), "no less than 5 %");
        assert_eq!(limits(Linux2_6_24, 900), (50, 100));
        assert_eq!(limits(Linux2_6_29, 900), (100, 200));
        assert_eq!(limits(Linux3_14, 900), (10, 20));
    }

    #[test]
    fn each_kernel_has_the_dirty_limits_of_its_time() {
        use DirtyLimits::{Linux2_4, Linux2_5, Linux2_6_20, Linux2_6_22, Linux2_6_24};
        let of = |name| kernel(name).dirty_limits();
        let names = ["2.4.20", "2.5.59", "2.6.19", "2.6.21", "2.6.23", "2.6.28"];
        let expected = [Linux2_4, Linux2_5, Linux2_5, Linux2_6_20, Linux2_6_22, Linux2_6_24];
        assert_eq!(names.map(of), expected);
        use DirtyLimits::{Linux2_6_29, Linux3_14};
        let expected = [Linux2_6_29, Linux2_6_29, Linux3_14];
        assert_eq!(["2.6.29", "3.13", "3.14"].map(of), expected);
    }
}
