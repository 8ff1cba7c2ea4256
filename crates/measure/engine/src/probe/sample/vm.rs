//! What /proc/meminfo and /proc/vmstat call what the memory probe's columns show.

use std::collections::BTreeMap;

use super::pairs::pairs;
use super::series::Level;

/// Adds the levels that the text of /proc/meminfo has, in bytes.
pub fn levels(meminfo: &str, into: &mut BTreeMap<&'static str, Level>) {
    let kib: BTreeMap<&str, u64> = pairs(meminfo).collect();
    let bytes = |name: &str| kib.get(name).map(|kib| *kib as f64 * 1024.0);
    for (column, name) in LEVELS {
        if let Some(bytes) = bytes(name) {
            into.insert(column, Level::of(bytes));
        }
    }
    if let (Some(total), Some(free)) = (bytes("SwapTotal"), bytes("SwapFree")) {
        into.insert(SWAP_USED, Level::of(total - free));
    }
}

/// Adds the counters that the text of /proc/vmstat has, since boot, in the column's unit less the `per_s`.
pub fn counters(vmstat: &str, into: &mut BTreeMap<&'static str, f64>) {
    let found: BTreeMap<&str, u64> = pairs(vmstat).collect();
    for (column, names, worth) in COUNTERS {
        let counts: Vec<u64> = names.iter().filter_map(|name| found.get(name).copied()).collect();
        if !counts.is_empty() {
            let sum = counts.iter().fold(0, |sum: u64, &count| sum.saturating_add(count));
            into.insert(column, sum as f64 * worth.bytes());
        }
    }
}

impl CounterUnit {
    pub(super) fn bytes(self) -> f64 {
        match self {
            CounterUnit::One => 1.0,
            CounterUnit::Kibibyte => 1024.0,
            // SAFETY: sysconf has no preconditions.
            CounterUnit::Page => unsafe { libc::sysconf(libc::_SC_PAGESIZE) as f64 },
        }
    }
}

/// Levels: the column, and what /proc/meminfo calls it.
const LEVELS: [(&str, &str); 5] = [
    ("dirty_bytes", "Dirty"),
    ("writeback_bytes", "Writeback"),
    ("cached_bytes", "Cached"),
    ("available_bytes", "MemAvailable"),
    ("free_bytes", "MemFree"),
];

/// Swap that is in use: the difference of two levels.
const SWAP_USED: &str = "swap_used_bytes";

/// Counters: the column, what /proc/vmstat calls them (those of one column are added up), and what one count is worth.
const COUNTERS: [(&str, &[&str], CounterUnit); 10] = [
    ("swap_in_bytes_per_s", &["pswpin"], CounterUnit::Page),
    ("swap_out_bytes_per_s", &["pswpout"], CounterUnit::Page),
    ("page_in_bytes_per_s", &["pgpgin"], CounterUnit::Kibibyte),
    ("page_out_bytes_per_s", &["pgpgout"], CounterUnit::Kibibyte),
    ("faults_per_s", &["pgfault"], CounterUnit::One),
    ("faults_major_per_s", &["pgmajfault"], CounterUnit::One),
    (
        "pages_scanned_per_s",
        &["pgscan_kswapd", "pgscan_direct", "pgscan_khugepaged", "pgscan_proactive"],
        CounterUnit::One,
    ),
    (
        "pages_reclaimed_per_s",
        &["pgsteal_kswapd", "pgsteal_direct", "pgsteal_khugepaged", "pgsteal_proactive"],
        CounterUnit::One,
    ),
    (
        "refaults_per_s",
        // Before 5.9 one counter had both.
        &["workingset_refault", "workingset_refault_file", "workingset_refault_anon"],
        CounterUnit::One,
    ),
    ("pages_written_back_per_s", &["nr_written"], CounterUnit::One),
];

#[derive(Clone, Copy)]
pub(super) enum CounterUnit {
    One,
    Page,
    Kibibyte,
}
