//! Reclaim: how a kernel finds pages to take away when frames run out.
//!
//! A mechanism without I/O of its own: [`Reclaim::step`] continues until something has to happen outside, a page
//! written or waited for, and is called again afterwards.

mod reverse_map;
mod virtual_scan;

use super::PageNumber;
use super::pages::Memory;
pub use kernels::swap::ReclaimKind;
pub(super) use reverse_map::ReverseMap;
pub(super) use virtual_scan::VirtualScan;

/// What the one who reclaims does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReclaimStep {
    /// Writes the page, which is marked as being written.
    Write(PageNumber),
    /// Waits until the page is written.
    Wait(PageNumber),
    /// Waits until any page is written, for a while at most.
    Nap,
    /// Is done: enough pages have become free.
    Freed,
    /// Gives up for now.
    Failed,
}

/// `SWAP_CLUSTER_MAX`: pages that one call is to free.
pub(super) const BATCH: u64 = 32;

/// One call that frees pages, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Falls from round to round, while the rounds look at more.
    priority: u32,
    /// Pages that are still to become free.
    left: u64,
    /// The current round; None: it has not begun.
    round: Option<Round>,
    /// Pages looked at since `take_scanned`.
    scanned: u64,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    scan_left: u64,
    /// Pages that the round is to free, or that it may find mapped: each mechanism's own limit.
    limit: u64,
}

impl Effort {
    /// Pages looked at since the last time: they cost CPU time.
    pub(super) fn take_scanned(&mut self) -> u64 {
        std::mem::take(&mut self.scanned)
    }

    fn new(priority: u32) -> Effort {
        Effort { priority, left: BATCH, round: None, scanned: 0 }
    }
}

pub(super) trait Reclaim: Send {
    fn begin(&self) -> Effort;

    fn step(&mut self, memory: &mut Memory, effort: &mut Effort) -> ReclaimStep;

    /// The page is in its process's page table for the first time.
    fn mapped_first(&mut self, memory: &mut Memory, page: PageNumber);

    /// The page has been written and still belongs to a process.
    fn written(&mut self, _memory: &mut Memory, _page: PageNumber) {}

    /// Whether a page that is being written can't be used until it is.
    fn locks_written_pages(&self) -> bool;

    fn exited(&mut self, process: usize);
}
