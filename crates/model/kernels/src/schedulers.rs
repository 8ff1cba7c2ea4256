//! Which kernels had which scheduler, in which variant, and which by default.

use crate::release::Kernel;
use crate::version::{Version, mm_patch};

/// A scheduler as some kernels had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerVariant {
    /// The name in `queue/scheduler`.
    pub name: &'static str,
    /// What distinguishes it from other variants of the same name.
    pub version: &'static str,
    /// A scheduler of blk-mq; else of the single-queue block layer.
    pub multi_queue: bool,
    /// The first kernel that had it and the first that had it no more.
    kernels: (Version, Version),
    /// Only with a patch.
    pub is_patch: bool,
}

impl SchedulerVariant {
    /// Whether the kernel had it.
    pub fn fits(&self, kernel: Version) -> bool {
        let (from, to) = self.kernels;
        from <= kernel && kernel < to
    }

    /// In words, the kernels that had it.
    pub fn kernels_in_words(&self) -> String {
        let words = |[major, minor, patch]: Version| format!("{major}.{minor}.{patch}");
        let (from, to) = self.kernels;
        let patched = if self.is_patch { "patched " } else { "" };
        match to {
            EVER => format!("{patched}{} or later", words(from)),
            _ => format!("{patched}{} or later, before {}", words(from), words(to)),
        }
    }
}

const EVER: Version = [u32::MAX; 3];

/// blk-mq became the only block layer.
const ONLY_MQ: Version = [5, 0, 0];

const fn single(name: &'static str, version: &'static str, from: Version, to: Version) -> SchedulerVariant {
    SchedulerVariant { name, version, multi_queue: false, kernels: (from, to), is_patch: false }
}

const fn patch(name: &'static str, version: &'static str, from: Version, to: Version) -> SchedulerVariant {
    SchedulerVariant { is_patch: true, ..single(name, version, from, to) }
}

const fn multi(name: &'static str, version: &'static str, from: Version, to: Version) -> SchedulerVariant {
    SchedulerVariant { name, version, multi_queue: true, kernels: (from, to), is_patch: false }
}

/// DeadlineVariant C of deadline was read in 2.6.35 and B in 2.6.24; where between them it changed is inferred. So is which of
/// 2.4 had the later linus elevator. The anticipatory scheduler changed in 2.6.2-rc1 and in 2.6.15-rc1 (their announcements
/// and 2.6.14-mm2's), then between 2.6.20 and 2.6.24, and between 2.6.27 and 2.6.32.
const VARIANTS: [SchedulerVariant; 32] = [
    single("linus", "2.4.21", [2, 4, 21], [2, 5, 0]),
    single("linus", "2.4", [2, 4, 0], [2, 5, 39]),
    single("noop", "2.4", [2, 4, 0], [2, 5, 39]),
    single("noop", "2.6", [2, 5, 39], ONLY_MQ),
    single("deadline", "A", [2, 5, 39], [2, 5, 58]),
    single("deadline", "B", [2, 5, 58], [2, 6, 25]),
    single("deadline", "C", [2, 6, 25], ONLY_MQ),
    patch("deadline", "mm", [2, 5, 59], [2, 5, 63]),
    patch("anticipatory", "2.5.59-mm5", [2, 5, 59], [2, 5, 75]),
    single("anticipatory", "first", [2, 5, 75], [2, 6, 2]),
    single("anticipatory", "2.6.2", [2, 6, 2], [2, 6, 15]),
    single("anticipatory", "2.6.15", [2, 6, 15], [2, 6, 24]),
    single("anticipatory", "2.6.24", [2, 6, 24], [2, 6, 30]),
    single("anticipatory", "2.6.32", [2, 6, 30], [2, 6, 33]),
    single("cfq", "2.6.6", [2, 6, 6], [2, 6, 10]),
    single("cfq", "2.6.10", [2, 6, 10], [2, 6, 13]),
    single("cfq", "2.6.15", [2, 6, 13], [2, 6, 18]),
    single("cfq", "2.6.18", [2, 6, 18], [2, 6, 22]),
    single("cfq", "2.6.22", [2, 6, 22], [2, 6, 29]),
    single("cfq", "2.6.29", [2, 6, 29], [2, 6, 33]),
    single("cfq", "2.6.35", [2, 6, 33], [2, 6, 37]),
    patch("cfq", "2.6.35-group-idle-v2", [2, 6, 35], [2, 6, 36]),
    single("cfq", "2.6.37", [2, 6, 37], ONLY_MQ),
    multi("none", "blk-mq", [3, 13, 0], EVER),
    multi("mq-deadline", "C", [4, 11, 0], [5, 14, 0]),
    multi("mq-deadline", "5.14", [5, 14, 0], [6, 1, 105]),
    // The patch of 6.10 in the stable releases of 6.1: 6.1.105's announcement lists it.
    multi("mq-deadline", "6.1.105", [6, 1, 105], [6, 2, 0]),
    multi("mq-deadline", "5.14", [6, 2, 0], [6, 5, 0]),
    multi("mq-deadline", "6.5", [6, 5, 0], [6, 10, 0]),
    multi("mq-deadline", "6.10", [6, 10, 0], EVER),
    multi("kyber", "4.12", [4, 12, 0], [4, 20, 0]),
    multi("kyber", "5.10", [4, 20, 0], EVER),
];
/// BFQ without and with merging of queues that come soon after one another, with a share of the requests for each queue and
/// group, and counting the root's group among groups.
const BFQ: [SchedulerVariant; 4] = [
    multi("bfq", "5.10", [4, 12, 0], [5, 13, 0]),
    multi("bfq", "5.13", [5, 13, 0], [5, 17, 0]),
    multi("bfq", "5.17", [5, 17, 0], [6, 2, 0]),
    multi("bfq", "6.2", [6, 2, 0], EVER),
];

/// Every scheduler as some kernels had it.
pub fn variants() -> impl Iterator<Item = SchedulerVariant> {
    VARIANTS.into_iter().chain(BFQ)
}

/// What a kernel had by a patch. The -mm kernels had deadline's trees in 2.5.51; with timed batches from 2.5.59 on, until the
/// anticipatory scheduler, its draft until then, became a file of its own in 2.5.62-mm2; and CFQ from 2.5.61 on (their
/// announcements). That the draft stands for all until 2.5.74 is inferred.
pub fn of_patch(name: &str, number: Version, kernel: &str) -> Option<&'static str> {
    if name == "cfq" && kernel == "2.6.35-group-idle-v2" {
        return Some("2.6.35-group-idle-v2");
    }
    let patch = mm_patch(kernel)?;
    let is_from = |least: Version, patch_least: u32| (number, patch) >= (least, patch_least);
    match name {
        "deadline" if is_from([2, 5, 62], 2) => None,
        "deadline" if is_from([2, 5, 59], 0) => Some("mm"),
        "deadline" if is_from([2, 5, 51], 0) => Some("B"),
        "anticipatory" if is_from([2, 5, 75], 0) => None,
        "anticipatory" if is_from([2, 5, 59], 5) => Some("2.5.59-mm5"),
        "cfq" if is_from([2, 6, 6], 0) => None,
        "cfq" if is_from([2, 5, 61], 0) => Some("2.6.6"),
        _ => None,
    }
}

impl Kernel {
    /// The scheduler of a device for which none is chosen.
    pub fn default_scheduler(&self, hardware_queues: u16) -> &'static str {
        match self.version {
            version if version < [2, 5, 39] => "linus",
            // From 2.5.59-mm7 to 2.5.60 it was among the experiments that were left out.
            [2, 5, 59] if matches!(self.mm, Some(5 | 6)) => "anticipatory",
            version if version >= [2, 5, 61] && self.mm.is_some() && version < [2, 6, 18] => "anticipatory",
            version if version < [2, 5, 75] => "deadline",
            version if version < [2, 6, 18] => "anticipatory",
            // blk-mq had no scheduler before 4.11, and has none for several queues since.
            version if version >= [3, 13, 0] && hardware_queues > 1 => "none",
            version if version < [5, 0, 0] => "cfq",
            _ if hardware_queues == 1 => "mq-deadline",
            _ => "none",
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
    fn each_kernel_has_the_scheduler_of_its_time() {
        let default = |name| kernel(name).default_scheduler(1);
        assert_eq!(default("2.4.20-pre10"), "linus");
        assert_eq!(default("2.5.53-mm1"), "deadline");
        assert_eq!(default("2.5.59-mm5"), "anticipatory");
        assert_eq!(default("2.5.59-mm7"), "deadline");
        assert_eq!(default("2.5.61"), "deadline");
        assert_eq!(default("2.5.61-mm1"), "anticipatory");
        assert_eq!(default("2.6.17"), "anticipatory");
        assert_eq!(default("2.6.18"), "cfq");
        assert_eq!(default("2.6.35-group-idle-v2"), "cfq");
        assert_eq!(default("3.19"), "cfq");
        assert_eq!(kernel("3.19").default_scheduler(31), "none");
        assert_eq!(default("6.1"), "mq-deadline");
        assert_eq!(kernel("6.1").default_scheduler(8), "none");
    }
}
