//! What there is to swap, and to sort.

use serde::Deserialize;

use super::pages::PAGE_BYTES;
use super::quicksort::NUMBERS_OF_PAGE;
use events::SpecError;
use events::spec_error::within;
use events::time::Time;

/// `[swap]` of a machine file.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwapSpec {
    /// Whose drive the area lies on, at its end.
    pub drive: usize,
    /// The size of the area, its header included.
    #[schemars(range(min = 2 * PAGE_BYTES, max = BYTES_MAX))]
    pub bytes: u64,
    /// Slots that are read together, as a power of two: /proc/sys/vm/page-cluster.
    #[serde(default = "page_cluster")]
    #[schemars(range(max = 10))]
    pub page_cluster: u32,
    /// The unmapped pages after which the walk through page tables continues in the next process, in kernels without a
    /// reverse map. Left out, as the kernel does: not before it has come to the end of the process's memory.
    #[schemars(range(min = 1))]
    pub walk_pages: Option<u64>,
    /// CPU time of a sorting process for one number in one pass over it.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub number_ns: f64,
    /// CPU time of a page fault.
    #[schemars(range(max = COST_NS_MAX))]
    pub fault_ns: Time,
    /// CPU time of a page that reclaim looks at.
    #[schemars(range(max = COST_NS_MAX))]
    pub scan_ns: Time,
}

/// Processes that sort at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortLoad {
    /// How many.
    pub processes: u32,
    /// What each of them sorts.
    pub process_bytes: u64,
    /// How often each fills and sorts it.
    pub passes: u32,
    /// What all have together.
    pub memory_bytes: u64,
    /// The size of the area; None: all of it.
    pub swap_bytes: Option<u64>,
    /// Seeds the sorts, a stream for each process.
    pub seed: u64,
}

/// The value for machines with more than 16 MB (`swap_setup`).
fn page_cluster() -> u32 {
    3
}

const PROCESSES_MAX: u64 = 256;
const PASSES_MAX: u64 = 1 << 20;
/// 64 GiB: what is simulated of a page stays in the host's memory.
const BYTES_MAX: u64 = 64 << 30;
const MEMORY_MIN_BYTES: u64 = 1 << 20;
/// A second: sums of costs do not overflow.
const COST_NS_MAX: u64 = 1_000_000_000;

impl SwapSpec {
    /// Whether a drive of this many bytes can have such an area. The error names a key.
    pub fn check(&self, drive_bytes: u64) -> Result<(), SpecError> {
        let most = drive_bytes.min(BYTES_MAX);
        within("bytes", self.bytes, 2 * PAGE_BYTES, most)?;
        within("page_cluster", u64::from(self.page_cluster), 0, 10)?;
        within("walk_pages", self.walk_pages.unwrap_or(1), 1, u64::MAX)?;
        within("fault_ns", self.fault_ns, 0, COST_NS_MAX)?;
        within("scan_ns", self.scan_ns, 0, COST_NS_MAX)?;
        if (0.0..=1e6).contains(&self.number_ns) {
            return Ok(());
        }
        let what = format!("expected 0 to 1000000, found {}", self.number_ns);
        Err(SpecError::of("number_ns", what))
    }
}

impl SortLoad {
    /// Whether it can be run with such an area. The error names a key of the phase.
    pub fn check(&self, swap: &SwapSpec) -> Result<(), SpecError> {
        within("processes", self.processes.into(), 1, PROCESSES_MAX)?;
        within("process_bytes", self.process_bytes, 4, BYTES_MAX)?;
        within("passes", self.passes.into(), 1, PASSES_MAX)?;
        let limit = "memory_limit_bytes";
        within(limit, self.memory_bytes, MEMORY_MIN_BYTES, BYTES_MAX)?;
        let pages = u64::from(self.processes) * self.pages_of_one();
        within("process_bytes", pages * PAGE_BYTES, 1, BYTES_MAX)?;
        let area_bytes = self.swap_bytes.unwrap_or(swap.bytes);
        within("swap_bytes", area_bytes, 2 * PAGE_BYTES, swap.bytes)?;
        let room =
            self.memory_bytes / PAGE_BYTES - Watermarks::of(self.frames()).high + u64::from(self.slots(swap) - 1);
        if pages <= room {
            return Ok(());
        }
        let (wanted, has) = (pages * PAGE_BYTES, room * PAGE_BYTES);
        let who = match self.processes {
            1 => "1 process needs".to_string(),
            several => format!("{several} processes need"),
        };
        let what = format!(
            "{who} {wanted} bytes, memory and swap have {has} together; raise [swap] bytes, or lower processes or share"
        );
        Err(SpecError::of("process_bytes", what))
    }

    /// The slots of the area, its header included.
    pub(super) fn slots(&self, swap: &SwapSpec) -> u32 {
        (self.swap_bytes.unwrap_or(swap.bytes) / PAGE_BYTES) as u32
    }

    /// With the reserve of free frames that reclaim keeps.
    pub(super) fn frames_needed(&self, swap: &SwapSpec) -> u64 {
        let pages = u64::from(self.processes) * self.pages_of_one();
        pages.saturating_sub(u64::from(self.slots(swap) - 1)) + Watermarks::of(self.frames()).high
    }

    pub(super) fn frames(&self) -> u64 {
        self.memory_bytes / PAGE_BYTES
    }

    pub(super) fn numbers_of_one(&self) -> u64 {
        self.process_bytes / 4
    }

    pub(super) fn pages_of_one(&self) -> u64 {
        self.numbers_of_one().div_ceil(NUMBERS_OF_PAGE)
    }
}

/// Free pages at which kernels act: below `low` the daemon is woken and frees until `high`; at `min` a task that needs
/// a page frees some himself. As 2.4 and 2.5 set them for a zone (`free_area_init_core`): a 128th of the pages, from 20
/// to 255, and twice and three times as many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watermarks {
    pub(super) min: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Watermarks {
    pub(super) fn of(frames: u64) -> Watermarks {
        let min = (frames / 128).clamp(20, 255);
        Watermarks { min, low: 2 * min, high: 3 * min }
    }
}
