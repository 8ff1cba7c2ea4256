//! What mapping for the device costs, and who has to wait for whom: the IOMMU's lock is one for all.

use super::fifo::Fifo;
use super::spec::{IommuMode, IommuSpec};
use events::station::Violation;
use events::time::{MILLISECOND, Time};

#[derive(Clone, Debug)]
pub(super) struct Iommu {
    spec: IommuSpec,
    /// Addresses left in the magazine.
    magazine: u32,
    /// Unmapped addresses that the hardware may still translate.
    flush_queue: u32,
    timer_runs: bool,
    lock: Fifo<(User, Time)>,
}

/// Who works with it. Each does one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Transmitter,
    ReceiveWorker,
    SendWorker,
    FlushTimer,
}

/// What a piece of work takes: under the lock, and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) locked_ns: Time,
    pub(super) free_ns: Time,
}

/// `IOVA_MAG_SIZE`.
const MAGAZINE: u32 = 128;
/// `IOVA_FQ_SIZE` and `IOVA_FQ_TIMEOUT`.
const FLUSH_QUEUE_MAX: u32 = 256;
pub(super) const FLUSH_TIMEOUT_NS: Time = 10 * MILLISECOND;

impl Iommu {
    pub(super) fn new(spec: &IommuSpec) -> Iommu {
        Iommu { spec: *spec, magazine: 0, flush_queue: 0, timer_runs: false, lock: Fifo::new(1) }
    }

    #[cfg(test)]
    pub(super) fn holders(&self) -> usize {
        self.lock.served()
    }

    /// The demand of mappings of `pages` pages each.
    pub(super) fn map(&mut self, mappings: u16, pages: u16) -> Demand {
        let mut demand = Demand::default();
        for _ in 0..mappings {
            if self.spec.mode == IommuMode::None {
                demand.free_ns += self.spec.direct_ns;
                continue;
            }
            if self.magazine == 0 {
                self.magazine = MAGAZINE;
                demand.locked_ns += self.spec.refill_ns;
            }
            self.magazine -= 1;
            demand.free_ns += self.spec.map_ns + self.further_pages_ns(pages);
            if self.spec.caching {
                demand.locked_ns += self.spec.invalidate_ns;
            }
        }
        demand
    }

    pub(super) fn unmap(&mut self, mappings: u16, pages: u16) -> Demand {
        let mut demand = Demand::default();
        for _ in 0..mappings {
            demand.free_ns += match self.spec.mode {
                IommuMode::None => self.spec.direct_ns,
                IommuMode::Lazy | IommuMode::Strict => self.spec.unmap_ns + self.further_pages_ns(pages),
            };
            match self.spec.mode {
                IommuMode::None => (),
                IommuMode::Strict => demand.locked_ns += self.spec.invalidate_ns,
                IommuMode::Lazy => {
                    self.flush_queue += 1;
                    if self.flush_queue == FLUSH_QUEUE_MAX {
                        demand.add(self.flush());
                    }
                }
            }
        }
        demand
    }

    /// Whether a timer has to be set for what is in the flush queue.
    pub(super) fn wants_timer(&mut self) -> bool {
        let wants = self.flush_queue > 0 && !self.timer_runs;
        self.timer_runs |= wants;
        wants
    }

    /// The timer has fired.
    pub(super) fn flush_in_time(&mut self) -> Demand {
        self.timer_runs = false;
        self.flush()
    }

    /// When the lock's holder is done, if the user got it at once.
    pub(super) fn lock(&mut self, now: Time, user: User, held_ns: Time) -> Option<Time> {
        self.lock.arrive(now, (user, held_ns));
        self.lock.start().map(|(_, held_ns)| now + held_ns)
    }

    /// Who is done with the lock, and when the next holder is.
    pub(super) fn unlock(&mut self, now: Time) -> (User, Option<Time>) {
        let holder = self.lock.current().expect("somebody holds it");
        self.lock.finish(now, holder);
        let next = self.lock.start().map(|(_, held_ns)| now + held_ns);
        (holder.0, next)
    }

    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        self.lock.check("IOMMU lock", now)
    }

    /// One invalidation for all that was unmapped; then the addresses can be used again.
    fn flush(&mut self) -> Demand {
        let flushed = std::mem::take(&mut self.flush_queue);
        if flushed == 0 {
            return Demand::default();
        }
        Demand { locked_ns: self.spec.invalidate_ns, free_ns: Time::from(flushed) * self.spec.free_ns }
    }

    fn further_pages_ns(&self, pages: u16) -> Time {
        Time::from(pages.saturating_sub(1)) * self.spec.page_ns
    }
}

impl Demand {
    pub(super) fn free(ns: Time) -> Demand {
        Demand { locked_ns: 0, free_ns: ns }
    }

    pub(super) fn add(&mut self, other: Demand) {
        self.locked_ns += other.locked_ns;
        self.free_ns += other.free_ns;
    }
}
