//! What one event does to what is in flight on its device.

use super::change::{Change, State};
use super::device_items::{Item, Items, SlotMatch, find};
use super::in_flight::{Entry, Slot};
use super::io::Io;
use super::unknown::Unknown;
use crate::event::{Device, Op, Step, TraceEvent};

/// What one event changes of the requests of its device.
pub(super) struct DeviceStep<'a, E> {
    pub(super) items: &'a mut Items,
    pub(super) issued: &'a mut u64,
    pub(super) unknown: &'a mut Unknown,
    pub(super) device: Device,
    /// Whether merges are reported at all: if so, a request is as large as its known bios.
    pub(super) merges_told: &'a mut bool,
    /// The receiver of changes.
    pub(super) each: E,
}

impl<E: FnMut(Change<'_>)> DeviceStep<'_, E> {
    pub(super) fn add(&mut self, event: &TraceEvent) -> Option<Item> {
        // Commands without data have no place; the kernel writes 0 or the largest number.
        let mut event = *event;
        if event.sectors == 0 && event.step != Step::Split {
            event.sector = 0;
        }
        let event = &event;
        match event.step {
            Step::Queue => self.queue(event),
            Step::Split => self.split(event),
            Step::GetRequest => self.get_request(event),
            Step::BackMerge | Step::FrontMerge => self.merge(event),
            Step::RequestMerge => self.request_merge(event),
            Step::Insert => self.insert(event),
            Step::Issue => self.issue(event),
            Step::Requeue => self.requeue(event),
            Step::Complete => return self.complete(event),
            Step::BioComplete => return self.bio_complete(event),
            _ => {}
        }
        None
    }

    fn queue(&mut self, event: &TraceEvent) {
        let again = find(self.items, event.sector, |bio| {
            bio.what.rest_of_split && bio.what.io.pid == event.pid && fits(bio, event) && bio.what.is_bio(event.op)
        });
        if let Some(bio) = again.slot().and_then(|slot| self.items.get_mut(slot)) {
            bio.rest_of_split = false;
            return;
        }
        let io = Io { queued_ns: Some(event.at_ns), ..self.io(event) };
        self.insert_item(event, Item::new(io, State::Bio));
        (self.each)(Change::Queued);
    }

    fn split(&mut self, event: &TraceEvent) {
        let new_sector = event.argument;
        let found = find(self.items, event.sector, |bio| {
            bio.what.is_bio(event.op) && event.sector < new_sector && (new_sector < bio.end() || bio.what.vague)
        });
        let Some((slot, bio)) = found.slot().and_then(|slot| Some((slot, self.items.get(slot)?))) else {
            return self.unmatched();
        };
        let rest_sectors = bio.end().saturating_sub(new_sector);
        let mut rest = bio.what.clone();
        rest.rest_of_split = true;
        rest.io.split = true;
        self.items.place(slot, event.sector, new_sector - event.sector);
        if let Some(first) = self.items.get_mut(slot) {
            first.io.split = true;
        }
        self.items.insert(new_sector, rest_sectors, rest);
        (self.each)(Change::Split);
    }

    fn get_request(&mut self, event: &TraceEvent) {
        let slot = self.own_bio(event).slot();
        match slot.and_then(|slot| self.items.get_mut(slot)) {
            Some(bio) => bio.state = State::Waiting,
            None => {
                let io = self.io(event);
                self.unseen(event, io);
            }
        }
    }

    fn insert(&mut self, event: &TraceEvent) {
        let slot = self.waiting(event).slot();
        if let Some(request) = slot.and_then(|slot| self.items.get_mut(slot)) {
            request.state = State::Waiting;
            if !request.doubtful {
                request.io.inserted_ns.get_or_insert(event.at_ns);
            }
            return;
        }
        let mut io = self.io(event);
        io.inserted_ns = Some(event.at_ns);
        self.unseen(event, io);
    }

    fn issue(&mut self, event: &TraceEvent) {
        let found = self.waiting(event);
        let slot = match found.slot() {
            Some(slot) => slot,
            None => {
                let io = self.io(event);
                self.unseen(event, io)
            }
        };
        self.join_covered(slot, event);
        self.items.place(slot, event.sector, u64::from(event.sectors));
        if let Some(request) = self.items.get_mut(slot) {
            *self.issued += u64::from(request.state != State::Issued);
            request.state = State::Issued;
            request.vague &= !matches!(found, SlotMatch::One(_));
            request.io.sector = event.sector;
            request.io.sectors = event.sectors;
            request.io.marks = request.io.marks.with(event.marks);
            if !request.doubtful {
                request.io.issued_ns.get_or_insert(event.at_ns);
            }
            (self.each)(Change::Issued { io: &request.io, joined: &request.joined });
        }
    }

    fn requeue(&mut self, event: &TraceEvent) {
        let found = find(self.items, event.sector, |item| item.what.has_driver(event.op) && fits(item, event));
        match found.slot().and_then(|slot| self.items.get_mut(slot)) {
            Some(request) => {
                request.state = State::Waiting;
                *self.issued = self.issued.saturating_sub(1);
                request.io.requeues = request.io.requeues.saturating_add(1);
                (self.each)(Change::Requeued);
            }
            None => self.unmatched(),
        }
    }

    fn complete(&mut self, event: &TraceEvent) -> Option<Item> {
        // One that is longer than what completed may have completed in part; then both could be meant.
        let found = find(self.items, event.sector, |item| {
            item.what.has_driver(event.op)
                && (fits(item, event) || event.sectors > 0 && item.sectors > u64::from(event.sectors))
        });
        // A flush that has nothing to write is never issued itself, nor is what fails early.
        let found =
            found.or_else(|| find(self.items, event.sector, |item| item.what.waits(event.op) && fits(item, event)));
        let slot = self.whole_of(found, event);
        let Some((slot, request)) = slot.and_then(|slot| Some((slot, self.items.get(slot)?))) else {
            // A write with FUA on a device without FUA is reported once more when the flush after it is complete.
            match (event.op, event.sectors) {
                (Op::Write, 0) => (self.each)(Change::Flushed),
                _ => self.unmatched(),
            }
            return None;
        };
        if request.sectors > u64::from(event.sectors) {
            let rest = request.sectors - u64::from(event.sectors);
            self.items.place(slot, event.sector + u64::from(event.sectors), rest);
            if let Some(request) = self.items.get_mut(slot).filter(|_| event.error != 0) {
                request.io.error = event.error;
            }
            (self.each)(Change::Part);
            return None;
        }
        let request = self.items.remove(slot)?.what;
        if request.state == State::Issued {
            *self.issued = self.issued.saturating_sub(1);
        }
        Some(finished(request, event))
    }

    /// The request that completes; if several could have completed, the one of that size.
    fn whole_of(&self, found: SlotMatch, event: &TraceEvent) -> Option<Slot> {
        let SlotMatch::Any(first) = found else {
            return found.slot();
        };
        let whole = self.items.starting_at(event.sector, |item| item.what.has_driver(event.op) && fits(item, event));
        whole.or(Some(first))
    }

    fn bio_complete(&mut self, event: &TraceEvent) -> Option<Item> {
        // A request's bios end with it, at its end and without sectors left: only others are found here.
        if event.sectors == 0 {
            return None;
        }
        let found = find(self.items, event.sector, |bio| bio.what.is_bio(event.op) && fits(bio, event));
        let bio = self.items.remove(found.slot()?)?;
        Some(finished(bio.what, event))
    }

    /// What waits with these sectors.
    fn waiting(&mut self, event: &TraceEvent) -> SlotMatch {
        let whole = find(self.items, event.sector, |item| item.what.waits(event.op) && fits(item, event));
        if self.tells_merges(event) {
            return whole;
        }
        // Something joined it, or was cut off, that was not seen.
        whole.or_else(|| {
            find(self.items, event.sector, |item| {
                item.what.waits(event.op) && (item.sectors > 0) == (event.sectors > 0)
            })
        })
    }

    /// The bio with exactly these sectors; the submitter still runs, so of several rather its own.
    pub(super) fn own_bio(&mut self, event: &TraceEvent) -> SlotMatch {
        let own = find(self.items, event.sector, |bio| {
            bio.what.is_bio(event.op) && fits(bio, event) && bio.what.io.pid == event.pid
        });
        own.or_else(|| find(self.items, event.sector, |bio| bio.what.is_bio(event.op) && fits(bio, event)))
    }

    /// Whether the kernel reports merges of such requests; no kernel reports those of discards.
    pub(super) fn tells_merges(&self, event: &TraceEvent) -> bool {
        *self.merges_told && event.op != Op::Discard
    }

    /// A request whose bio was not seen.
    fn unseen(&mut self, event: &TraceEvent, io: Io) -> Slot {
        (self.each)(Change::Unqueued);
        self.insert_item(event, Item::new(io, State::Waiting))
    }

    pub(super) fn unmatched(&mut self) {
        self.unknown.unmatched += 1;
        (self.each)(Change::Unmatched);
    }

    fn insert_item(&mut self, event: &TraceEvent, item: Item) -> Slot {
        self.items.insert(event.sector, u64::from(event.sectors), item)
    }

    fn io(&self, event: &TraceEvent) -> Io {
        Io::first_seen(self.device, event)
    }
}

fn finished(mut item: Item, event: &TraceEvent) -> Item {
    item.io.completed_ns = Some(event.at_ns);
    if event.error != 0 {
        item.io.error = event.error;
    }
    item
}

/// Whether the event, of this many sectors, may be about it.
#[inline]
pub(super) fn fits(item: &Entry<Item>, event: &TraceEvent) -> bool {
    item.sectors == u64::from(event.sectors) || item.what.vague
}
