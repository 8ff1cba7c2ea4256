//! How a kernel finds pages to take away.

use crate::release::Kernel;

/// Which mechanism a kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimKind {
    /// Until 2.5.26: page tables are walked, one process after the other.
    VirtualScan,
    /// From 2.5.27 on: each page refers to its page tables, and the lists of all pages are enough.
    ReverseMap,
}

impl Kernel {
    /// How it finds pages to swap out. The reverse map came with 2.5.27; what later kernels made of it (lists by kind of
    /// page, a swap token) is not simulated.
    pub fn reclaim(&self) -> ReclaimKind {
        if self.version < [2, 5, 27] { ReclaimKind::VirtualScan } else { ReclaimKind::ReverseMap }
    }

    /// The percentage of memory that files keep for their pages before processes swap. From 2.6.0 on, reclaim leaves
    /// mapped pages alone as long as half their percentage and `swappiness` (60) are less than 100 together
    /// (`refill_inactive_zone`). The value is inferred for earlier kernels, and for later ones with lists by kind of page.
    pub fn files_keep_percent(&self) -> u64 {
        match self.version < [2, 6, 0] {
            true => 0,
            false => 20,
        }
    }
}
