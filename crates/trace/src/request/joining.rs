//! How bios and requests become one: merges that were seen, and those that only the size of a request shows.

use super::turn::{Turn, fits};
use super::under_way::{Found, Item, State, find};
use crate::block::in_flight::{Entry, Slot};
use crate::event::{Step, TraceEvent};

impl Turn<'_> {
    /// A bio joins a request at its end or at its beginning.
    pub(super) fn merge(&mut self, event: &TraceEvent) {
        *self.merges_told = true;
        let back = event.step == Step::BackMerge;
        let bio = self.own_bio(event).slot();
        let taken = bio.and_then(|slot| self.items.remove(slot));
        let end = event.sector.saturating_add(u64::from(event.sectors));
        let into = match back {
            true => self.ending_at(event),
            false => find(self.items, end, |item| item.what.waits(event.op)),
        };
        if let (Found::Any(_), false) = (into, back) {
            // Any of them may begin there now. They stay where they are, and what comes of that beginning is unseen.
            return self.vague(end, event);
        }
        let Some(into) = into.slot() else {
            self.unknown.unmatched += 1;
            // It stays a bio: when a request that covers it is issued, it will be found to be part of that.
            if let Some(bio) = taken {
                self.items.insert(bio.start, bio.sectors, bio.what);
            }
            return;
        };
        let queued = taken.map(|bio| bio.what);
        let start = self.items.get(into).map_or(0, |entry| entry.start);
        let sectors = self.items.get(into).map_or(0, |entry| entry.sectors);
        let start = if back {
            start
        } else {
            start.saturating_sub(u64::from(event.sectors))
        };
        self.items.place(
            into,
            start,
            sectors.saturating_add(u64::from(event.sectors)),
        );
        if let Some(request) = self.items.get_mut(into) {
            request.state = State::Waiting;
            request.io.merged += 1;
            request.joined.push(queued.and_then(|bio| bio.io.queued_ns));
        }
    }

    /// A request joins the one before it.
    pub(super) fn request_merge(&mut self, event: &TraceEvent) {
        let own = find(self.items, event.sector, |item| {
            item.what.waits(event.op) && fits(item, event)
        });
        let taken = own.slot().and_then(|slot| self.items.remove(slot));
        let into = self.ending_at(event).slot();
        let (Some(taken), Some(into)) = (taken, into) else {
            self.unknown.unmatched += 1;
            return;
        };
        let sectors = self.items.get(into).map_or(0, |entry| entry.sectors);
        let start = self.items.get(into).map_or(0, |entry| entry.start);
        self.items
            .place(into, start, sectors.saturating_add(taken.sectors));
        if let Some(request) = self.items.get_mut(into) {
            request.state = State::Waiting;
            request.io.merged += 1 + taken.what.io.merged;
            request.joined.push(taken.what.io.queued_ns);
            request.joined.extend(taken.what.joined);
        }
    }

    /// What waits from `start` on may have any length.
    fn vague(&mut self, start: u64, event: &TraceEvent) {
        let waits = |item: &Entry<Item>| item.what.waits(event.op);
        for alike in self.items.all_starting_at(start, waits) {
            if let Some(item) = self.items.get_mut(alike) {
                item.vague = true;
            }
        }
    }

    /// What waits and ends where the event begins, or may end there.
    fn ending_at(&mut self, event: &TraceEvent) -> Found {
        let waits = |item: &Entry<Item>| item.what.waits(event.op) && item.sectors > 0;
        let (count, slot) = self.items.count_ending_at(event.sector, waits);
        match slot {
            None => Found::None,
            Some(slot) if count == 1 => Found::One(slot),
            Some(slot) => {
                for alike in self.items.all_ending_at(event.sector, waits) {
                    if let Some(item) = self.items.get_mut(alike) {
                        item.doubt();
                        item.vague = true;
                    }
                }
                Found::Any(slot)
            }
        }
    }

    /// Bios whose merge was not seen are part of the request that is issued with their sectors; of more than it grew by,
    /// nobody knows which.
    pub(super) fn join_covered(&mut self, slot: Slot, event: &TraceEvent) {
        if self.tells_merges(event) {
            return;
        }
        let Some(request) = self.items.get(slot) else {
            return;
        };
        let mut missing = u64::from(event.sectors).saturating_sub(request.sectors);
        if missing == 0 {
            return;
        }
        let doubtful = request.what.doubtful;
        let end = event.sector.saturating_add(u64::from(event.sectors));
        let covered = self.items.starting_in(event.sector, end, |bio| {
            bio.what.is_bio(event.op) && bio.end() <= end
        });
        let entries = covered.into_iter().filter(|&bio| bio != slot);
        let mut bios: Vec<(u64, u64, Slot)> = entries
            .filter_map(|bio| self.items.get(bio).map(|it| (it.arrival, it.sectors, bio)))
            .collect();
        bios.sort_unstable();
        if doubtful || bios.iter().map(|(_, sectors, _)| sectors).sum::<u64>() > missing {
            for (.., bio) in &bios {
                if let Some(bio) = self.items.get_mut(*bio) {
                    bio.doubt();
                }
            }
        }
        if doubtful {
            return;
        }
        for (_, sectors, bio) in bios {
            if sectors > missing {
                continue;
            }
            missing -= sectors;
            let bio = self.items.remove(bio);
            if let (Some(bio), Some(request)) = (bio, self.items.get_mut(slot)) {
                request.io.merged += 1;
                request.joined.push(bio.what.io.queued_ns);
            }
        }
    }
}
