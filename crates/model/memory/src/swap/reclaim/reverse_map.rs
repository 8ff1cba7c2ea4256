//! Reclaim by page with a reverse map, as 2.5 has it.
//!
//! Source: `mm/vmscan.c` of 2.5 after reclaim by zones (read: `shrink_list`, `shrink_cache`, `refill_inactive_zone`,
//! `shrink_zone`, `try_to_free_pages`), for one zone and less the caches of file names. That new pages begin on the
//! active list, and that written ones go to the old end of the inactive list when they are done, is how 2.5.59 is
//! remembered, not read: inferred.

use super::{BATCH, Effort, Reclaim, ReclaimStep, Round};
use crate::swap::PageNumber;
use crate::swap::pages::{List, Memory, PageState};

const PRIORITY: u32 = 12;

pub(in crate::swap) struct ReverseMap {
    /// What the free pages are to come to.
    free_high: u64,
    /// Pages of the active list that are due to be looked at.
    refill_due: u64,
}

impl ReverseMap {
    pub(in crate::swap) fn new(free_high: u64) -> ReverseMap {
        ReverseMap { free_high, refill_due: 0 }
    }

    /// `shrink_caches` up to the look at pages. None: enough are free.
    fn begin_round(&mut self, memory: &mut Memory, effort: &mut Effort) -> Option<Round> {
        let missing = self.free_high.checked_sub(memory.free())?;
        let to_free = missing.min(BATCH).max(effort.left);
        let (active, inactive) = (memory.on(List::Active), memory.on(List::Inactive));
        self.refill_due += to_free * active / ((inactive | 1) * 2) + 1;
        while self.refill_due > BATCH {
            self.refill_due -= BATCH;
            effort.scanned += refill_inactive(memory);
        }
        Some(Round { scan_left: (inactive >> effort.priority).max(to_free * 2), limit: to_free })
    }
}

impl Reclaim for ReverseMap {
    fn begin(&self) -> Effort {
        Effort::new(PRIORITY)
    }

    fn step(&mut self, memory: &mut Memory, effort: &mut Effort) -> ReclaimStep {
        if effort.priority == 0 {
            return ReclaimStep::Failed;
        }
        let mut round = match effort.round {
            Some(round) => round,
            None => match self.begin_round(memory, effort) {
                Some(round) => round,
                None => return ReclaimStep::Freed,
            },
        };
        while round.scan_left > 0 && round.limit > 0 {
            let Some(page) = memory.oldest(List::Inactive) else {
                break;
            };
            round.scan_left -= 1;
            effort.scanned += 1;
            match look_at(memory, page) {
                ReclaimOutcome::Kept => {}
                ReclaimOutcome::Freed => {
                    round.limit -= 1;
                    effort.left = effort.left.saturating_sub(1);
                }
                ReclaimOutcome::Outside(step) => {
                    effort.round = Some(round);
                    return step;
                }
            }
        }
        effort.round = None;
        if effort.left == 0 {
            return ReclaimStep::Freed;
        }
        effort.priority -= 1;
        ReclaimStep::Nap
    }

    fn mapped_first(&mut self, memory: &mut Memory, page: PageNumber) {
        memory.put_newest(page, List::Active);
        memory.mark_accessed(page);
    }

    fn written(&mut self, memory: &mut Memory, page: PageNumber) {
        if memory.is_freeable(page) && !memory.is_active(page) {
            memory.put_oldest(page, List::Inactive);
        }
    }

    fn locks_written_pages(&self) -> bool {
        false
    }

    fn exited(&mut self, _process: usize) {}
}

enum ReclaimOutcome {
    Kept,
    Freed,
    Outside(ReclaimStep),
}

/// `shrink_list`, one page.
fn look_at(memory: &mut Memory, number: PageNumber) -> ReclaimOutcome {
    memory.put_newest(number, List::Inactive);
    let page = *memory.page(number);
    if page.place == PageState::Reading {
        return ReclaimOutcome::Kept;
    }
    let is_mapped = page.place == PageState::Mapped;
    if page.writing {
        return if is_mapped { ReclaimOutcome::Outside(ReclaimStep::Wait(number)) } else { ReclaimOutcome::Kept };
    }
    let is_used = was_referenced(memory, number);
    if is_mapped && (is_used || !memory.unmap(number)) {
        memory.put_newest(number, List::Active);
        return ReclaimOutcome::Kept;
    }
    if memory.page(number).dirty {
        memory.begin_write(number);
        return ReclaimOutcome::Outside(ReclaimStep::Write(number));
    }
    memory.release(number);
    ReclaimOutcome::Freed
}

/// `refill_inactive_zone`. Returns how many pages it has looked at.
fn refill_inactive(memory: &mut Memory) -> u64 {
    let pages = BATCH.min(memory.on(List::Active));
    for _ in 0..pages {
        let Some(number) = memory.oldest(List::Active) else {
            break;
        };
        let is_used = memory.page(number).place == PageState::Mapped && was_referenced(memory, number);
        let list = if is_used { List::Active } else { List::Inactive };
        memory.put_newest(number, list);
    }
    pages
}

/// `page_referenced`: by the page table or by the kernel, since the last time.
fn was_referenced(memory: &mut Memory, number: PageNumber) -> bool {
    let page = memory.page_mut(number);
    let was = page.young || page.referenced;
    (page.young, page.referenced) = (false, false);
    was
}
