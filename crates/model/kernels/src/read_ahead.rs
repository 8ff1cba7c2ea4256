//! Read-ahead by kernels.
//!
//! Source: docs/model/sources/page-cache.md.

use serde::Deserialize;

use crate::release::Kernel;

/// Read-ahead by the kernel that was read, in the order of their versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, schemars::JsonSchema)]
pub enum ReadAhead {
    /// Windows that double (2.4.20).
    #[serde(rename = "2.4")]
    Linux2_4,
    /// A window and one ahead, which grow with hits (2.5.59).
    #[serde(rename = "2.5")]
    Linux2_5,
    /// The same, if misses shorten the next window until there is none (2.6.0).
    #[serde(rename = "2.6.0")]
    Linux2_6_0,
    /// With a window ahead as soon as the last page is read (2.6.1).
    #[serde(rename = "2.6.1")]
    Linux2_6_1,
    /// As soon as a second is again (2.6.2).
    #[serde(rename = "2.6.2")]
    Linux2_6_2,
    /// With the second page if runs of pages are long (2.6.5).
    #[serde(rename = "2.6.5")]
    Linux2_6_5,
    /// Windows as long as the reader's usual runs (2.6.7).
    #[serde(rename = "2.6.7")]
    Linux2_6_7,
    /// The same, with the run that has not ended among them (2.6.8).
    #[serde(rename = "2.6.8")]
    Linux2_6_8,
    /// With all pages of the window among a run (2.6.9).
    #[serde(rename = "2.6.9")]
    Linux2_6_9,
    /// By the length of calls (2.6.11).
    #[serde(rename = "2.6.11")]
    Linux2_6_11,
    /// Calls that continue within a page count as sequential (2.6.12).
    #[serde(rename = "2.6.12")]
    Linux2_6_12,
    /// With smaller first windows (2.6.17).
    #[serde(rename = "2.6.17")]
    Linux2_6_17,
    /// On demand (2.6.24).
    #[serde(rename = "2.6.23")]
    Linux2_6_23,
    /// With a look at what is cached before a miss (2.6.31).
    #[serde(rename = "2.6.31")]
    Linux2_6_31,
    /// With a queue that is unplugged for a window whose reader does not wait (2.6.35).
    #[serde(rename = "2.6.34")]
    Linux2_6_34,
    /// Without that: nothing is plugged (3.0).
    #[serde(rename = "2.6.39")]
    Linux2_6_39,
    /// With a closer look (3.12).
    #[serde(rename = "3.12")]
    Linux3_12,
    /// With a window and the one that comes with it within the largest (4.18).
    #[serde(rename = "4.18")]
    Linux4_18,
    /// With none that comes with it (6.18).
    #[serde(rename = "6.11")]
    Linux6_11,
}

impl ReadAhead {
    /// From the first to the last.
    pub const ALL: [ReadAhead; 19] = [
        ReadAhead::Linux2_4,
        ReadAhead::Linux2_5,
        ReadAhead::Linux2_6_0,
        ReadAhead::Linux2_6_1,
        ReadAhead::Linux2_6_2,
        ReadAhead::Linux2_6_5,
        ReadAhead::Linux2_6_7,
        ReadAhead::Linux2_6_8,
        ReadAhead::Linux2_6_9,
        ReadAhead::Linux2_6_11,
        ReadAhead::Linux2_6_12,
        ReadAhead::Linux2_6_17,
        ReadAhead::Linux2_6_23,
        ReadAhead::Linux2_6_31,
        ReadAhead::Linux2_6_34,
        ReadAhead::Linux2_6_39,
        ReadAhead::Linux3_12,
        ReadAhead::Linux4_18,
        ReadAhead::Linux6_11,
    ];
}

impl Kernel {
    /// Whether a buffered read that is longer than the read-ahead window is read in one go, up to the largest request
    /// (`bdi->io_pages`, 4.10).
    pub fn reads_requests_whole(&self) -> bool {
        self.version >= [4, 10, 0]
    }

    /// Whether a task plugs for a whole buffered read: from 2.6.39 on ("fs: make generic file read/write functions plug") until
    /// 3deaa719 of 3.3, which is in 3.0.21 too, and in 3.2.6 of the same day (inferred).
    pub fn plugs_reads(&self) -> bool {
        match self.version {
            [3, 0, patch] => patch < 21,
            version => ([2, 6, 39]..[3, 2, 6]).contains(&version),
        }
    }

    /// No window is larger (`MAX_READAHEAD` in `max_sane_readahead`, 3.15 to 4.3).
    pub fn read_ahead_bytes_max(&self) -> u64 {
        match self.version {
            version if ([3, 15, 0]..[4, 4, 0]).contains(&version) => 2 << 20,
            _ => u64::MAX,
        }
    }

    /// How it reads ahead: with a change in nearly every release of 2004, anew from 2.6.11 on, and on demand from 2.6.23 on
    /// (122a21d11cbf).
    pub fn read_ahead(&self) -> ReadAhead {
        match self.version {
            [2, 4, _] => ReadAhead::Linux2_4,
            version if version < [2, 6, 0] => ReadAhead::Linux2_5,
            [2, 6, 0] => ReadAhead::Linux2_6_0,
            [2, 6, 1] => ReadAhead::Linux2_6_1,
            version if version < [2, 6, 5] => ReadAhead::Linux2_6_2,
            version if version < [2, 6, 7] => ReadAhead::Linux2_6_5,
            [2, 6, 7] => ReadAhead::Linux2_6_7,
            [2, 6, 8] => ReadAhead::Linux2_6_8,
            version if version < [2, 6, 11] => ReadAhead::Linux2_6_9,
            [2, 6, 11] => ReadAhead::Linux2_6_11,
            version if version < [2, 6, 17] => ReadAhead::Linux2_6_12,
            version if version < [2, 6, 23] => ReadAhead::Linux2_6_17,
            version if version < [2, 6, 31] => ReadAhead::Linux2_6_23,
            version if version < [2, 6, 34] => ReadAhead::Linux2_6_31,
            version if version < [2, 6, 39] => ReadAhead::Linux2_6_34,
            version if version < [3, 12, 0] => ReadAhead::Linux2_6_39,
            version if version < [4, 18, 0] => ReadAhead::Linux3_12,
            version if version < [6, 11, 0] => ReadAhead::Linux4_18,
            _ => ReadAhead::Linux6_11,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel::named(name).unwrap()
    }

    #[test]
    fn read_ahead_changes_from_release_to_release_until_it_is_on_demand_from_2_6_23_on() {
        use ReadAhead::*;
        let of = |name| kernel(name).read_ahead();
        let names = ["2.4.20", "2.5.75", "2.6.0", "2.6.1", "2.6.4", "2.6.6", "2.6.7"];
        let early = [Linux2_4, Linux2_5, Linux2_6_0, Linux2_6_1, Linux2_6_2, Linux2_6_5, Linux2_6_7];
        assert_eq!(names.map(of), early);
        let names = ["2.6.8", "2.6.10", "2.6.11", "2.6.12", "2.6.16", "2.6.18", "2.6.22"];
        let by_call = [Linux2_6_8, Linux2_6_9, Linux2_6_11, Linux2_6_12, Linux2_6_12, Linux2_6_17, Linux2_6_17];
        assert_eq!(names.map(of), by_call);
        let names = ["2.6.23", "2.6.32", "2.6.35", "3.0", "3.12", "4.18", "6.12"];
        let on_demand = [Linux2_6_23, Linux2_6_31, Linux2_6_34, Linux2_6_39, Linux3_12, Linux4_18, Linux6_11];
        assert_eq!(names.map(of), on_demand);
    }

    #[test]
    fn reads_are_plugged_as_a_whole_from_2_6_39_to_3_2_5_and_until_3_0_20() {
        let plugs = |name| kernel(name).plugs_reads();
        assert_eq!(["2.6.39.4", "3.0", "3.1.10", "3.2.5"].map(plugs), [true; 4]);
        assert_eq!(["2.6.38", "3.0.21", "3.2.6", "3.3"].map(plugs), [false; 4]);
    }

    #[test]
    fn no_window_is_larger_than_2_mib_from_3_15_to_4_3() {
        let most = |name| kernel(name).read_ahead_bytes_max();
        assert_eq!(["3.15", "4.3"].map(most), [2 << 20; 2]);
        assert_eq!(["3.14", "4.4"].map(most), [u64::MAX; 2]);
    }
}
