//! Follows the bios and requests of one device from event to event.

use super::event::{BlockEvent, Kind, Op};
use super::in_flight::{Entry, Slot};
use super::measures::{Measures, Merged};
use super::report::Conservation;
use super::under_way::{Bio, Origin, UnderWay};

#[derive(Clone, Debug)]
pub(super) struct DeviceState {
    pub(super) measures: Measures,
    conservation: Conservation,
    under_way: UnderWay,
}

impl DeviceState {
    pub(super) fn new(measures: Measures) -> DeviceState {
        DeviceState {
            measures,
            conservation: Conservation::default(),
            under_way: UnderWay::new(),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, event: &BlockEvent) {
        // Commands without data have no place; the kernel writes 0 or the largest number.
        let sector = if event.sectors == 0 && !matches!(event.kind, Kind::Split { .. }) {
            0
        } else {
            event.sector
        };
        let event = &BlockEvent { sector, ..*event };
        self.measures.count(event);
        match event.kind {
            Kind::Queue => self.queue(event),
            Kind::Split { new_sector } => self.split(event, new_sector),
            Kind::GetRequest => self.get_request(event),
            Kind::BackMerge => self.bio_merge(event, Merged::Back),
            Kind::FrontMerge => self.bio_merge(event, Merged::Front),
            Kind::RequestMerge => self.request_merge(event),
            Kind::Insert => self.insert(event),
            Kind::Issue => self.issue(event),
            Kind::Requeue => self.requeue(event),
            Kind::Complete => self.complete(event),
            Kind::BioComplete => self.bio_complete(event),
        }
    }

    pub(super) fn has_events(&self) -> bool {
        self.measures.has_events()
    }

    /// What bios and requests became; those that are known now are in flight.
    pub(super) fn conservation(&self) -> Conservation {
        Conservation {
            in_flight: self.under_way.len() as u64,
            ..self.conservation
        }
    }

    /// Gives up what began before `began_before_ns`.
    pub(super) fn give_up(&mut self, now_ns: u64, began_before_ns: u64) {
        let (under_way, measures) = (&mut self.under_way, &mut self.measures);
        let before = under_way.len();
        let mut keep = |began_ns: u64, issued: bool| {
            let keep = began_ns >= began_before_ns;
            if !keep {
                measures.left(now_ns, issued);
            }
            keep
        };
        under_way
            .bios
            .retain(|bio| keep(bio.origin.queued_at_ns, false));
        under_way
            .requests
            .retain(|request| keep(request.first_seen_ns, request.timing.is_issued()));
        self.conservation.unmatched += (before - under_way.len()) as u64;
    }

    fn queue(&mut self, event: &BlockEvent) {
        let is_again = |bio: &Bio| bio.rest_of_split && bio.pid == event.pid;
        let again = self.under_way.bio(event, is_again);
        if let Some(bio) = again.and_then(|slot| self.under_way.bios.get_mut(slot)) {
            bio.rest_of_split = false;
            return;
        }
        self.conservation.queued += 1;
        self.measures.queued(event);
        let bio = Bio {
            origin: Origin {
                queued_at_ns: event.at_ns,
                cpu: event.cpu,
            },
            pid: event.pid,
            op: event.op,
            rest_of_split: false,
        };
        self.under_way.bios.insert(event.sector, event.sectors, bio);
    }

    fn split(&mut self, event: &BlockEvent, new_sector: u64) {
        let bios = &mut self.under_way.bios;
        let is_split = |bio: &Entry<Bio>| {
            bio.what.op == event.op && event.sector < new_sector && new_sector < bio.end()
        };
        let slot = bios.starting_at(event.sector, is_split);
        let Some((slot, bio)) = slot.and_then(|slot| Some((slot, bios.get(slot)?))) else {
            return self.measures.unmatched();
        };
        let rest_sectors = bio.end() - new_sector;
        let rest = Bio {
            rest_of_split: true,
            ..bio.what.clone()
        };
        bios.place(slot, event.sector, new_sector - event.sector);
        bios.insert(new_sector, rest_sectors, rest);
        self.conservation.split += 1;
        self.measures.arrived(event.at_ns);
    }

    fn get_request(&mut self, event: &BlockEvent) {
        let bio = self.under_way.own_bio(event);
        if bio.and_then(|bio| self.under_way.request_of(bio)).is_none() {
            self.unseen_request(event);
        }
    }

    fn bio_merge(&mut self, event: &BlockEvent, merged: Merged) {
        let into = match merged {
            Merged::Front => self.under_way.request_after(event),
            Merged::Back | Merged::Request => self.under_way.request_before(event),
        };
        let Some(into) = into else {
            // The bio stays; when a request that covers it is issued, it will be found to be part of that.
            return self.measures.unmatched();
        };
        let bio = self.take_bio(event);
        self.conservation.merged += 1;
        match bio {
            Some(_) => self.measures.left(event.at_ns, false),
            None => self.conservation.unqueued += 1,
        }
        self.measures.merged(event, merged);
        self.grow(into, event.sectors, merged, bio.map(|bio| bio.origin));
    }

    fn request_merge(&mut self, event: &BlockEvent) {
        let own = self.under_way.whole_request(event);
        let into = self.under_way.request_before(event);
        let (Some(own), Some(into)) = (own, into.filter(|into| Some(*into) != own)) else {
            return self.measures.unmatched();
        };
        let Some(merged) = self.under_way.requests.remove(own) else {
            return;
        };
        let bios = merged.what.origins();
        self.grow(into, merged.sectors, Merged::Request, bios);
        self.conservation.merged += 1;
        self.measures.merged(event, Merged::Request);
        self.measures.left(event.at_ns, false);
    }

    /// Bios joined a request, with so many sectors.
    fn grow(
        &mut self,
        slot: Slot,
        sectors: u64,
        merged: Merged,
        bios: impl IntoIterator<Item = Origin>,
    ) {
        let requests = &mut self.under_way.requests;
        let Some(&Entry {
            start,
            sectors: before,
            ..
        }) = requests.get(slot)
        else {
            return;
        };
        let start = match merged {
            Merged::Front => start.saturating_sub(sectors),
            Merged::Back | Merged::Request => start,
        };
        requests.place(slot, start, before.saturating_add(sectors));
        if let Some(request) = requests.get_mut(slot) {
            request.joined.extend(bios);
        }
    }

    fn insert(&mut self, event: &BlockEvent) {
        let slot = self.waiting_request(event);
        if let Some(request) = self.under_way.requests.get_mut(slot) {
            request.timing.inserted(event.at_ns);
        }
    }

    fn issue(&mut self, event: &BlockEvent) {
        let slot = self.waiting_request(event);
        self.join_covered_bios(slot, event);
        let requests = &mut self.under_way.requests;
        requests.place(slot, event.sector, event.sectors);
        if let Some(request) = requests.get_mut(slot) {
            let first_try = request.timing.issued(event.at_ns);
            self.measures.issued(event, first_try, request.origins());
        }
    }

    fn requeue(&mut self, event: &BlockEvent) {
        let slot = self.under_way.issued_request(event, false);
        let request = slot.and_then(|slot| self.under_way.requests.get_mut(slot));
        let Some(request) = request else {
            return self.measures.unmatched();
        };
        request.timing.requeued(event.at_ns);
        self.measures.requeued(event);
    }

    fn complete(&mut self, event: &BlockEvent) {
        let issued = self.under_way.issued_request(event, true);
        // A flush that has nothing to write is never issued itself, nor is what fails early.
        let found = issued.or_else(|| self.under_way.whole_request(event));
        let requests = &mut self.under_way.requests;
        let Some((slot, request)) = found.and_then(|slot| Some((slot, requests.get(slot)?))) else {
            // A write with FUA, on a device without, is told as complete when its data is, and, with no sectors left, once
            // more when the flush after it is.
            return match (event.op, event.sectors) {
                (Op::Write, 0) => self.measures.flushed(),
                _ => self.measures.unmatched(),
            };
        };
        if request.sectors > event.sectors {
            let rest = request.sectors - event.sectors;
            requests.place(slot, event.sector + event.sectors, rest);
            return self.measures.completed_in_part(event);
        }
        if let Some(Entry { what, .. }) = requests.remove(slot) {
            self.conservation.completed += 1;
            self.measures
                .completed(event, what.first, what.origins(), &what.timing);
        }
    }

    fn bio_complete(&mut self, event: &BlockEvent) {
        // A request's bios end with it, at its end and without sectors left: only others are found here.
        if event.sectors == 0 {
            return;
        }
        if let Some(bio) = self.take_bio(event) {
            self.conservation.completed += 1;
            self.measures.left(event.at_ns, false);
            self.measures.bio_completed(event, bio.origin);
        }
    }

    fn waiting_request(&mut self, event: &BlockEvent) -> Slot {
        match self.under_way.waiting_request(event) {
            Some(known) => known,
            None => self.unseen_request(event),
        }
    }

    fn unseen_request(&mut self, event: &BlockEvent) -> Slot {
        self.conservation.unqueued += 1;
        self.measures.arrived(event.at_ns);
        self.under_way.unseen_request(event)
    }

    fn join_covered_bios(&mut self, slot: Slot, event: &BlockEvent) {
        let request = self.under_way.requests.get(slot);
        if request.is_none_or(|request| request.sectors >= event.sectors) {
            return;
        }
        let covered = self.under_way.covered_bios(event);
        for bio in covered {
            let Some(bio) = self.under_way.bios.remove(bio) else {
                continue;
            };
            if let Some(request) = self.under_way.requests.get_mut(slot) {
                request.joined.push(bio.what.origin);
            }
            self.conservation.merged += 1;
            self.measures.left(event.at_ns, false);
        }
    }

    fn take_bio(&mut self, event: &BlockEvent) -> Option<Bio> {
        let slot = self.under_way.own_bio(event)?;
        self.under_way.bios.remove(slot).map(|bio| bio.what)
    }
}
