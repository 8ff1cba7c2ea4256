//! How bios and requests become one: merges that were seen, and those that only the size of a request shows.

use super::change::{Change, State};
use super::device_items::{Item, SlotMatch, find};
use super::device_step::{DeviceStep, fits};
use super::in_flight::{Entry, Slot};
use crate::event::{Op, Step, TraceEvent};

impl<E: FnMut(Change<'_>)> DeviceStep<'_, E> {
    /// A bio joins a request at its end or at its beginning.
    pub(super) fn merge(&mut self, event: &TraceEvent) {
        *self.merges_told = true;
        let back = event.step == Step::BackMerge;
        // Kernels from 5.9 on report a request that joins another like a bio that does.
        let bio = match back {
            true => self.joining_back(event).slot(),
            false => self.own_bio(event).slot(),
        };
        let taken = bio.and_then(|slot| self.items.remove(slot));
        let end = event.sector.saturating_add(u64::from(event.sectors));
        let into = match back {
            true => self.request_before(event),
            false => find(self.items, end, |item| item.what.waits(event.op)),
        };
        if into == SlotMatch::None {
            // It stays a bio: when a request that covers it is issued, it will be found to be part of that.
            return self.put_back(taken);
        }
        (self.each)(Change::Merged { seen: taken.is_some() });
        let Some(into) = into.slot() else {
            return;
        };
        if !back {
            self.lengths_unknown(end, event);
        }
        let start = self.items.get(into).map_or(0, |entry| entry.start);
        let sectors = self.items.get(into).map_or(0, |entry| entry.sectors);
        let start = if back { start } else { start.saturating_sub(u64::from(event.sectors)) };
        self.items.place(into, start, sectors.saturating_add(u64::from(event.sectors)));
        if let Some(request) = self.items.get_mut(into) {
            request.state = State::Waiting;
            request.io.merged += 1;
            if let Some(taken) = taken {
                request.io.merged += taken.what.io.merged;
                request.joined.push(taken.what.joining());
                request.joined.extend(taken.what.joined);
            }
        }
    }

    /// What joins the request before it: the submitter's own bio, or a bio or a request that waits there.
    fn joining_back(&mut self, event: &TraceEvent) -> SlotMatch {
        let own = find(self.items, event.sector, |bio| {
            bio.what.is_bio(event.op) && fits(bio, event) && bio.what.io.pid == event.pid
        });
        own.or_else(|| find(self.items, event.sector, |item| item.what.waits(event.op) && fits(item, event)))
    }

    /// A request joins the one before it.
    pub(super) fn request_merge(&mut self, event: &TraceEvent) {
        let own = find(self.items, event.sector, |item| item.what.waits(event.op) && fits(item, event));
        let taken = own.slot().and_then(|slot| self.items.remove(slot));
        let into = self.request_before(event).slot();
        let (Some(taken), Some(into)) = (&taken, into) else {
            return self.put_back(taken);
        };
        let sectors = self.items.get(into).map_or(0, |entry| entry.sectors);
        let start = self.items.get(into).map_or(0, |entry| entry.start);
        self.items.place(into, start, sectors.saturating_add(taken.sectors));
        if let Some(request) = self.items.get_mut(into) {
            request.state = State::Waiting;
            request.io.merged += 1 + taken.what.io.merged;
            request.joined.push(taken.what.joining());
            request.joined.extend(&taken.what.joined);
        }
        (self.each)(Change::Merged { seen: true });
    }

    fn put_back(&mut self, taken: Option<Entry<Item>>) {
        self.unmatched();
        if let Some(item) = taken {
            self.items.insert(item.start, item.sectors, item.what);
        }
    }

    /// If several wait from `start` on that are not equally long, it is unknown which of them a bio joined.
    fn lengths_unknown(&mut self, start: u64, event: &TraceEvent) {
        let waits = |item: &Entry<Item>| item.what.waits(event.op);
        let alike = self.items.all_starting_at(start, waits);
        let lengths: Vec<u64> =
            alike.iter().filter_map(|&slot| self.items.get(slot).map(|item| item.sectors)).collect();
        if lengths.windows(2).all(|pair| pair[0] == pair[1]) {
            return;
        }
        for slot in alike {
            if let Some(item) = self.items.get_mut(slot) {
                item.vague = true;
            }
        }
    }

    /// What waits and ends where the event begins, or may end there. Discards join whatever discard waits: a device may
    /// take several ranges at once.
    fn request_before(&mut self, event: &TraceEvent) -> SlotMatch {
        let waits = |item: &Entry<Item>| item.what.waits(event.op) && item.sectors > 0;
        let mut candidates = self.items.all_ending_at(event.sector, waits);
        if candidates.is_empty() && event.op == Op::Discard {
            candidates = self.items.all(waits);
        }
        match candidates[..] {
            [] => SlotMatch::None,
            [slot] => SlotMatch::One(slot),
            _ => {
                let key = |slot: &Slot| self.items.get(*slot).map(|it| (it.start, it.arrival));
                let latest = candidates.iter().copied().max_by_key(key);
                for &alike in &candidates {
                    if let Some(item) = self.items.get_mut(alike) {
                        item.doubt();
                        item.vague = true;
                    }
                }
                latest.map_or(SlotMatch::None, SlotMatch::Any)
            }
        }
    }

    /// Bios whose merge was not seen are part of the request that is issued with their sectors; of more than it grew
    /// by, nobody knows which.
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
        let covered = self.items.starting_in(event.sector, end, |bio| bio.what.is_bio(event.op) && bio.end() <= end);
        let entries = covered.into_iter().filter(|&bio| bio != slot);
        let mut bios: Vec<(u64, u64, Slot)> =
            entries.filter_map(|bio| self.items.get(bio).map(|it| (it.arrival, it.sectors, bio))).collect();
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
                request.joined.push(bio.what.joining());
                (self.each)(Change::Merged { seen: true });
            }
        }
    }
}
