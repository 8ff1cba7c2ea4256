//! The virtual scan of 2.4.
//!
//! Source: `mm/vmscan.c` as of 2.4.17 to 2.4.20 (read: `shrink_cache`, `refill_inactive`, `swap_out`, `swap_out_mm`,
//! `try_to_swap_out`), less the caches of file names, and with no other processes than those that sort. Pages without a
//! reverse map can only be unmapped by walking page tables. The walk stays in one process until it has come to the end
//! of its memory, 32 unmapped pages a call.

use std::ops::Range;

use super::{BATCH, Effort, Reclaim, ReclaimStep, Round};
use crate::swap::PageNumber;
use crate::swap::pages::{List, Memory, PageState};

const PRIORITY: u32 = 6;

pub(in crate::swap) struct VirtualScan {
    /// Page tables of the processes; those that have ended are empty.
    tables: Vec<Range<PageNumber>>,
    /// By process: where the walk continues; None: it has come to the end.
    hands: Vec<Option<PageNumber>>,
    /// Whose page table is walked.
    turn: usize,
    /// After how many unmapped pages the walk continues in the next process; None: not before the end of its memory.
    walk_pages: Option<u64>,
    walked: u64,
}

impl VirtualScan {
    pub(in crate::swap) fn new(tables: Vec<Range<PageNumber>>, walk_pages: Option<u64>) -> VirtualScan {
        VirtualScan {
            hands: tables.iter().map(|table| Some(table.start)).collect(),
            tables,
            turn: 0,
            walk_pages,
            walked: 0,
        }
    }

    /// `shrink_cache`, one page. None: continue.
    fn look_at(&mut self, memory: &mut Memory, effort: &mut Effort, page: PageNumber) -> Option<ReclaimStep> {
        memory.put_newest(page, List::Inactive);
        let found = *memory.page(page);
        match found.place {
            PageState::Mapped => {
                let round = effort.round.as_mut()?;
                if round.limit == 0 {
                    effort.scanned += self.swap_out(memory);
                    self.next_round(effort);
                } else {
                    round.limit -= 1;
                }
                None
            }
            PageState::Cached if found.writing => Some(ReclaimStep::Wait(page)),
            PageState::Cached if found.dirty => {
                memory.begin_write(page);
                Some(ReclaimStep::Write(page))
            }
            PageState::Cached => {
                memory.release(page);
                effort.left -= 1;
                (effort.left == 0).then_some(ReclaimStep::Freed)
            }
            PageState::Reading | PageState::Swapped | PageState::Nowhere => None,
        }
    }

    fn next_round(&self, effort: &mut Effort) {
        effort.priority -= 1;
        effort.round = None;
    }

    fn begin_round(&self, memory: &mut Memory, effort: &mut Effort) -> Round {
        let (active, inactive) = (memory.on(List::Active), memory.on(List::Inactive));
        refill_inactive(memory, effort.left * active / ((inactive + 1) * 2));
        let scan_left = memory.on(List::Inactive) / u64::from(effort.priority);
        Round { scan_left, limit: (effort.left << (10 - effort.priority)).min(scan_left / 10) }
    }

    /// Unmaps up to 32 pages. Returns how many page table entries it has looked at.
    fn swap_out(&mut self, memory: &mut Memory) -> u64 {
        let mut left = BATCH;
        let mut scanned = 0;
        for _ in 0..=self.living() {
            let Some(process) = self.whose_turn() else {
                break;
            };
            scanned += self.walk(memory, process, &mut left);
            if left == 0 {
                self.walked += BATCH;
                break;
            }
        }
        if self.walk_pages.is_some_and(|pages| self.walked >= pages) {
            self.next_process();
        }
        scanned
    }

    fn next_process(&mut self) {
        self.walked = 0;
        self.turn = (self.turn + 1) % self.tables.len();
    }

    /// Walks on in the page table of the process (`swap_out_mm`). Returns how many entries it has looked at.
    fn walk(&mut self, memory: &mut Memory, process: usize, left: &mut u64) -> u64 {
        let table = self.tables[process].clone();
        let begin = self.hands[process].unwrap_or(table.end);
        for page in begin..table.end {
            *left -= u64::from(try_to_swap_out(memory, page));
            if *left == 0 {
                self.hands[process] = Some(page + 1);
                return u64::from(page + 1 - begin);
            }
        }
        self.hands[process] = None;
        u64::from(table.end - begin)
    }

    /// The process whose page table is walked, the next one when the walk has come to the end of the last.
    fn whose_turn(&mut self) -> Option<usize> {
        for _ in 0..=self.tables.len() {
            let table = &self.tables[self.turn];
            if self.hands[self.turn].is_some() && !table.is_empty() {
                return Some(self.turn);
            }
            self.hands[self.turn] = Some(table.start);
            self.next_process();
        }
        None
    }

    fn living(&self) -> usize {
        self.tables.iter().filter(|table| !table.is_empty()).count()
    }
}

impl Reclaim for VirtualScan {
    fn begin(&self) -> Effort {
        Effort::new(PRIORITY)
    }

    fn step(&mut self, memory: &mut Memory, effort: &mut Effort) -> ReclaimStep {
        while effort.priority > 0 {
            let round = match effort.round {
                Some(round) => round,
                None => self.begin_round(memory, effort),
            };
            let Some(page) = memory.oldest(List::Inactive).filter(|_| round.scan_left > 0) else {
                self.next_round(effort);
                continue;
            };
            effort.round = Some(Round { scan_left: round.scan_left - 1, ..round });
            effort.scanned += 1;
            if let Some(step) = self.look_at(memory, effort, page) {
                return step;
            }
        }
        ReclaimStep::Failed
    }

    /// Inactive, and once seen in use: the next time makes it active.
    fn mapped_first(&mut self, memory: &mut Memory, page: PageNumber) {
        memory.put_newest(page, List::Inactive);
        memory.mark_accessed(page);
    }

    fn locks_written_pages(&self) -> bool {
        true
    }

    fn exited(&mut self, process: usize) {
        self.tables[process].end = self.tables[process].start;
        self.hands[process] = None;
    }
}

/// Whether the page could be freed now: unmapped.
fn try_to_swap_out(memory: &mut Memory, number: PageNumber) -> bool {
    let page = *memory.page(number);
    if page.place != PageState::Mapped {
        return false;
    }
    if page.young {
        memory.page_mut(number).young = false;
        memory.mark_accessed(number);
        return false;
    }
    !memory.is_active(number) && !page.writing && memory.unmap(number)
}

fn refill_inactive(memory: &mut Memory, mut pages: u64) {
    let mut looks_left = memory.on(List::Active);
    while pages > 0 && looks_left > 0 {
        let Some(page) = memory.oldest(List::Active) else {
            return;
        };
        looks_left -= 1;
        let was_referenced = std::mem::replace(&mut memory.page_mut(page).referenced, false);
        if was_referenced {
            memory.put_newest(page, List::Active);
            continue;
        }
        pages -= 1;
        memory.put_newest(page, List::Inactive);
        memory.page_mut(page).referenced = true;
    }
}
