//! Which kernels had which scheduler, in which variant.

use std::collections::BTreeMap;

use crate::scheduler::spec::error::BadScheduler;

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
    kernels: (Kernel, Kernel),
    /// Only with a patch.
    is_patch: bool,
}

impl SchedulerVariant {
    fn fits(&self, kernel: Version) -> bool {
        let (from, to) = self.kernels;
        from <= kernel && kernel < to
    }

    /// In words, the kernels that had it.
    fn kernels_in_words(&self) -> String {
        let words = |[major, minor, patch]: Kernel| format!("{major}.{minor}.{patch}");
        let (from, to) = self.kernels;
        let patched = if self.is_patch { "patched " } else { "" };
        match to {
            EVER => format!("{patched}{} or later", words(from)),
            _ => format!("{patched}{} or later, before {}", words(from), words(to)),
        }
    }
}

/// A kernel's version; a part that is left out is 0, and x is the last there is.
pub type Version = [u32; 3];
type Kernel = Version;

const EVER: Kernel = [u32::MAX; 3];
/// blk-mq became the only block layer.
const ONLY_MQ: Kernel = [5, 0, 0];

const fn single(
    name: &'static str,
    version: &'static str,
    from: Kernel,
    to: Kernel,
) -> SchedulerVariant {
    SchedulerVariant {
        name,
        version,
        multi_queue: false,
        kernels: (from, to),
        is_patch: false,
    }
}

const fn patch(
    name: &'static str,
    version: &'static str,
    from: Kernel,
    to: Kernel,
) -> SchedulerVariant {
    SchedulerVariant {
        is_patch: true,
        ..single(name, version, from, to)
    }
}

const fn multi(
    name: &'static str,
    version: &'static str,
    from: Kernel,
    to: Kernel,
) -> SchedulerVariant {
    SchedulerVariant {
        name,
        version,
        multi_queue: true,
        kernels: (from, to),
        is_patch: false,
    }
}

/// DeadlineVariant C of deadline was read in 2.6.35 and B in 2.6.24; where between them it changed is inferred. So is which of
/// 2.4 had the later linus elevator. The anticipatory scheduler changed in 2.6.2-rc1 and in 2.6.15-rc1 (their announcements
/// and 2.6.14-mm2's), then between 2.6.20 and 2.6.24, and between 2.6.27 and 2.6.32.
const VARIANTS: [SchedulerVariant; 30] = [
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
    multi("mq-deadline", "5.14", [5, 14, 0], [6, 5, 0]),
    multi("mq-deadline", "6.5", [6, 5, 0], [6, 10, 0]),
    multi("mq-deadline", "6.10", [6, 10, 0], EVER),
    multi("kyber", "4.12", [4, 12, 0], [4, 20, 0]),
    multi("kyber", "5.10", [4, 20, 0], EVER),
];
/// BFQ without and with merging of queues that come soon after one another, and counting the root's group among groups.
const BFQ: [SchedulerVariant; 3] = [
    multi("bfq", "5.10", [4, 12, 0], [5, 13, 0]),
    multi("bfq", "5.13", [5, 13, 0], [6, 2, 0]),
    multi("bfq", "6.2", [6, 2, 0], EVER),
];

/// Every scheduler as some kernels had it.
pub(super) fn variants() -> impl Iterator<Item = SchedulerVariant> {
    VARIANTS.into_iter().chain(BFQ)
}

pub(super) fn find(
    given: &BTreeMap<String, String>,
    kernel: &str,
) -> Result<SchedulerVariant, BadScheduler> {
    let number = version(kernel).ok_or_else(|| BadScheduler::Kernel {
        kernel: kernel.to_owned(),
    })?;
    let is_there = |variant: &SchedulerVariant| !variant.is_patch && variant.fits(number);
    let known = || {
        variants()
            .filter(is_there)
            .map(|variant| variant.name)
            .collect()
    };
    let name = given
        .get("name")
        .ok_or_else(|| BadScheduler::Nameless { known: known() })?;
    let patched = of_patch(name, number, kernel);
    if let Some(version) = given.get("version") {
        let variant = of_version(name, version)?;
        if variant.fits(number) || patched == Some(variant.version) {
            return Ok(variant);
        }
        return Err(BadScheduler::NotThen {
            name: name.clone(),
            version: version.clone(),
            kernel: kernel.to_owned(),
            kernels: variant.kernels_in_words(),
        });
    }
    if let Some(version) = patched {
        return of_version(name, version);
    }
    variants()
        .find(|variant| variant.name == name && is_there(variant))
        .ok_or_else(|| BadScheduler::Unknown {
            name: name.clone(),
            kernel: kernel.to_owned(),
            known: known(),
        })
}

/// What a kernel had by a patch. The -mm kernels had deadline's trees in 2.5.51; with timed batches from 2.5.59 on, until the
/// anticipatory scheduler, its draft until then, became a file of its own in 2.5.62-mm2; and CFQ from 2.5.61 on (their
/// announcements). That the draft stands for all until 2.5.74 is inferred.
fn of_patch(name: &str, number: Version, kernel: &str) -> Option<&'static str> {
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

/// The number of a kernel's -mm patch.
pub fn mm_patch(kernel: &str) -> Option<u32> {
    kernel.split_once("-mm")?.1.parse().ok()
}

fn of_version(name: &str, version: &str) -> Result<SchedulerVariant, BadScheduler> {
    let of_name = || variants().filter(|variant| variant.name == name);
    of_name()
        .find(|variant| variant.version == version)
        .ok_or_else(|| BadScheduler::Version {
            name: name.to_owned(),
            version: version.to_owned(),
            known: of_name().map(|variant| variant.version).collect(),
        })
}

/// "2.6.35", "2.5.59-mm2", "6.1", "6.x" (any of them: the last).
pub fn version(kernel: &str) -> Option<Version> {
    let numbers = kernel.split('-').next()?;
    let mut parsed = [0; 3];
    let parts: Vec<&str> = numbers.split('.').collect();
    if parts.len() < 2 {
        return None;
    }
    for (slot, part) in parsed.iter_mut().zip(parts) {
        *slot = if part == "x" {
            u32::MAX - 1
        } else {
            // Old release candidates: 2.4.20pre10, 2.4.20aa1.
            let digits = part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len());
            part[..digits].parse().ok()?
        };
    }
    Some(parsed)
}
