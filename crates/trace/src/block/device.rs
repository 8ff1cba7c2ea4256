//! Follows the bios and requests of one device from event to event.
//!
//! The tracepoints name no request; what an event is about is found by its sectors and operation, as btt does. Where two
//! under way cover the same sectors, the older one is taken (of bios, the same task's): which of the two it was does not
//! change any count.

use std::collections::BTreeMap;

use super::event::{BlockEvent, Kind, Op};
use super::measures::{Measures, Merged};
use super::report::Conservation;
use super::timing::Timing;

#[derive(Clone, Debug)]
pub(super) struct DeviceState {
    pub(super) measures: Measures,
    conservation: Conservation,
    /// Bios that are not yet in a request, by first sector and order of arrival.
    bios: BTreeMap<Key, Bio>,
    /// Requests, by first sector and order of arrival.
    requests: BTreeMap<Key, Request>,
    arrivals: u64,
}

type Key = (u64, u64);

#[derive(Clone, Debug)]
struct Bio {
    origin: Origin,
    pid: u32,
    op: Op,
    sectors: u64,
    /// Kernels before 4.12 queue the rest of a split bio once more.
    rest_of_split: bool,
}

/// Where a bio comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) queued_at_ns: u64,
    pub(super) cpu: u32,
}

#[derive(Clone, Debug)]
struct Request {
    op: Op,
    sectors: u64,
    first_seen_ns: u64,
    /// Of the bio that it was made of, unless that was not seen.
    first: Option<Origin>,
    /// Of the bios that joined.
    joined: Vec<Origin>,
    timing: Timing,
}

impl DeviceState {
    pub(super) fn new(measures: Measures) -> DeviceState {
        DeviceState {
            measures,
            conservation: Conservation::default(),
            bios: BTreeMap::new(),
            requests: BTreeMap::new(),
            arrivals: 0,
        }
    }

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

    /// What bios and requests became; those that are known now are in flight.
    pub(super) fn conservation(&self) -> Conservation {
        Conservation {
            in_flight: (self.bios.len() + self.requests.len()) as u64,
            ..self.conservation
        }
    }

    /// Gives up what began before `began_before_ns`.
    pub(super) fn give_up(&mut self, now_ns: u64, began_before_ns: u64) {
        let before = self.bios.len() + self.requests.len();
        self.bios
            .retain(|_, bio| bio.origin.queued_at_ns >= began_before_ns);
        let measures = &mut self.measures;
        self.requests.retain(|_, request| {
            let keep = request.first_seen_ns >= began_before_ns;
            if !keep {
                measures.left(now_ns, request.timing.is_issued());
            }
            keep
        });
        let after = self.bios.len() + self.requests.len();
        self.conservation.unmatched += (before - after) as u64;
    }

    fn queue(&mut self, event: &BlockEvent) {
        let again = self.find_bio(event, |bio| bio.rest_of_split && bio.pid == event.pid);
        if let Some(bio) = again.and_then(|key| self.bios.get_mut(&key)) {
            bio.rest_of_split = false;
            return;
        }
        self.conservation.queued += 1;
        self.measures.queued(event);
        let key = self.new_key(event.sector);
        let bio = Bio {
            origin: Origin {
                queued_at_ns: event.at_ns,
                cpu: event.cpu,
            },
            pid: event.pid,
            op: event.op,
            sectors: event.sectors,
            rest_of_split: false,
        };
        self.bios.insert(key, bio);
    }

    fn split(&mut self, event: &BlockEvent, new_sector: u64) {
        let (first, last) = at_sector(event.sector);
        let found = self
            .bios
            .range_mut(first..=last)
            .map(|(_, bio)| bio)
            .find(|bio| {
                let end = event.sector.saturating_add(bio.sectors);
                bio.op == event.op && event.sector < new_sector && new_sector < end
            });
        let Some(bio) = found else {
            return self.measures.unmatched();
        };
        let rest = Bio {
            sectors: event.sector + bio.sectors - new_sector,
            rest_of_split: true,
            ..bio.clone()
        };
        bio.sectors = new_sector - event.sector;
        self.conservation.split += 1;
        let key = self.new_key(new_sector);
        self.bios.insert(key, rest);
    }

    fn get_request(&mut self, event: &BlockEvent) {
        let bio = self.take_bio(event);
        self.new_request(event, bio);
    }

    fn bio_merge(&mut self, event: &BlockEvent, merged: Merged) {
        let end = event.sector.saturating_add(event.sectors);
        let key = match merged {
            Merged::Front => self.find_request(end, |request| request.is_waiting(event.op)),
            Merged::Back | Merged::Request => self.find_request_before(event),
        };
        let Some(key) = key else {
            // The bio stays; when a request that covers it is issued, it will be found to be part of that.
            return self.measures.unmatched();
        };
        let bio = self.take_bio(event);
        self.conservation.merged += 1;
        self.conservation.unqueued += u64::from(bio.is_none());
        self.measures.merged(event, merged);
        let Some(mut request) = self.requests.remove(&key) else {
            return;
        };
        request.sectors = request.sectors.saturating_add(event.sectors);
        request.joined.extend(bio.map(|bio| bio.origin));
        let start = if merged == Merged::Front {
            event.sector
        } else {
            key.0
        };
        self.requests.insert((start, key.1), request);
    }

    fn request_merge(&mut self, event: &BlockEvent) {
        let own = self.find_request(event.sector, |request| {
            request.is_waiting(event.op) && request.sectors == event.sectors
        });
        let into = self
            .find_request_before(event)
            .filter(|into| Some(*into) != own);
        let (Some(own), Some(into)) = (own, into) else {
            return self.measures.unmatched();
        };
        let (Some(absorbed), Some(request)) =
            (self.requests.remove(&own), self.requests.get_mut(&into))
        else {
            return;
        };
        request.sectors = request.sectors.saturating_add(absorbed.sectors);
        request.joined.extend(absorbed.first);
        request.joined.extend(absorbed.joined);
        self.conservation.merged += 1;
        self.measures.merged(event, Merged::Request);
        self.measures.left(event.at_ns, false);
    }

    fn insert(&mut self, event: &BlockEvent) {
        let key = self.waiting_request(event);
        if let Some(request) = self.requests.get_mut(&key) {
            request.timing.inserted(event.at_ns);
        }
    }

    fn issue(&mut self, event: &BlockEvent) {
        let key = self.waiting_request(event);
        self.join_covered_bios(key, event);
        let Some(request) = self.requests.get_mut(&key) else {
            return;
        };
        request.sectors = event.sectors;
        let origins = request.first.iter().chain(&request.joined).copied();
        let first_try = request.timing.issued(event.at_ns);
        self.measures.issued(event, first_try, origins);
    }

    fn requeue(&mut self, event: &BlockEvent) {
        let key = self.find_request(event.sector, |request| {
            request.is_issued(event.op) && request.sectors == event.sectors
        });
        let Some(request) = key.and_then(|key| self.requests.get_mut(&key)) else {
            return self.measures.unmatched();
        };
        request.timing.requeued(event.at_ns);
        self.measures.requeued(event);
    }

    fn complete(&mut self, event: &BlockEvent) {
        let has_data = event.sectors > 0;
        let whole = |request: &Request| request.sectors == event.sectors;
        let found = self
            .find_request(event.sector, |request| {
                request.is_issued(event.op) && whole(request)
            })
            .or_else(|| {
                self.find_request(event.sector, |request| {
                    request.is_issued(event.op) && has_data && request.sectors > 0
                })
            })
            // A flush that has nothing to write is never issued itself, nor is what fails early.
            .or_else(|| {
                self.find_request(event.sector, |request| {
                    request.is_waiting(event.op) && whole(request)
                })
            });
        let Some((key, mut request)) = found.and_then(|key| self.requests.remove_entry(&key))
        else {
            // A write with FUA, on a device without, is told as complete when its data is, and, with no sectors left, once
            // more when the flush after it is.
            return match (event.op, event.sectors) {
                (Op::Write, 0) => self.measures.flushed(),
                _ => self.measures.unmatched(),
            };
        };
        if request.sectors > event.sectors {
            request.sectors -= event.sectors;
            self.requests
                .insert((key.0 + event.sectors, key.1), request);
            return self.measures.completed_in_part(event);
        }
        self.conservation.completed += 1;
        let origins = request.first.iter().chain(&request.joined).copied();
        self.measures
            .completed(event, request.first, origins, &request.timing);
    }

    fn bio_complete(&mut self, event: &BlockEvent) {
        // A request's bios end with it, at its end and without sectors left: only others are found here.
        if event.sectors == 0 {
            return;
        }
        if let Some(bio) = self.take_bio(event) {
            self.conservation.completed += 1;
            self.measures.bio_completed(event, bio.origin);
        }
    }

    /// The request that waits with these sectors; made now if its beginning was not seen.
    fn waiting_request(&mut self, event: &BlockEvent) -> Key {
        let waits = |request: &Request| request.is_waiting(event.op);
        let whole = |request: &Request| waits(request) && request.sectors == event.sectors;
        let other_size =
            |request: &Request| waits(request) && (request.sectors > 0) == (event.sectors > 0);
        self.find_request(event.sector, whole)
            .or_else(|| self.find_request(event.sector, other_size))
            .unwrap_or_else(|| {
                let bio = self.take_bio(event).or_else(|| self.take_first_bio(event));
                self.new_request(event, bio)
            })
    }

    fn new_request(&mut self, event: &BlockEvent, bio: Option<Bio>) -> Key {
        self.conservation.unqueued += u64::from(bio.is_none());
        let sectors = bio.as_ref().map_or(event.sectors, |bio| bio.sectors);
        let first = bio.map(|bio| bio.origin);
        let request = Request {
            op: event.op,
            sectors,
            first_seen_ns: first.map_or(event.at_ns, |origin| origin.queued_at_ns),
            first,
            joined: Vec::new(),
            timing: Timing::default(),
        };
        let key = self.new_key(event.sector);
        self.requests.insert(key, request);
        self.measures.arrived(event.at_ns);
        key
    }

    /// Bios whose merge was not seen are part of the request that is issued with their sectors.
    fn join_covered_bios(&mut self, key: Key, event: &BlockEvent) {
        let end = event.sector.saturating_add(event.sectors);
        let Some(request) = self
            .requests
            .get_mut(&key)
            .filter(|request| request.sectors < event.sectors)
        else {
            return;
        };
        let covered = self.bios.range((event.sector, 0)..(end, 0));
        let covered: Vec<Key> = covered
            .filter(|(at, bio)| bio.op == event.op && at.0.saturating_add(bio.sectors) <= end)
            .map(|(&at, _)| at)
            .collect();
        for bio in covered.iter().filter_map(|at| self.bios.remove(at)) {
            request.joined.push(bio.origin);
            self.conservation.merged += 1;
        }
    }

    fn find_request(&self, start: u64, wanted: impl Fn(&Request) -> bool) -> Option<Key> {
        let (first, last) = at_sector(start);
        let mut found = self.requests.range(first..=last);
        found
            .find(|(_, request)| wanted(request))
            .map(|(&key, _)| key)
    }

    /// The request that waits and ends where the event's sectors begin. Discards join whatever discard waits: a device
    /// may take several ranges at once.
    fn find_request_before(&self, event: &BlockEvent) -> Option<Key> {
        let waiting =
            |(_, request): &(&Key, &Request)| request.is_waiting(event.op) && request.sectors > 0;
        let earlier = self.requests.range(..=at_sector(event.sector).1).rev();
        let adjacent = earlier
            .filter(waiting)
            .take(LOOKED_AT_MOST)
            .find(|(key, request)| key.0.saturating_add(request.sectors) == event.sector)
            .map(|(&key, _)| key);
        let other = || {
            let mut requests = self.requests.iter().filter(waiting);
            let other = |key: &Key| key.0 != event.sector;
            requests.find_map(|(key, _)| other(key).then_some(*key))
        };
        adjacent.or_else(|| (event.op == Op::Discard).then(other).flatten())
    }

    fn find_bio(&self, event: &BlockEvent, wanted: impl Fn(&Bio) -> bool) -> Option<Key> {
        let (first, last) = at_sector(event.sector);
        let mut found = self.bios.range(first..=last);
        found
            .find(|(_, bio)| bio.op == event.op && bio.sectors == event.sectors && wanted(bio))
            .map(|(&key, _)| key)
    }

    /// The bio with exactly these sectors; rather one of the task that runs.
    fn take_bio(&mut self, event: &BlockEvent) -> Option<Bio> {
        let own = self.find_bio(event, |bio| bio.pid == event.pid);
        let key = own.or_else(|| self.find_bio(event, |_| true))?;
        self.bios.remove(&key)
    }

    /// The bio with the first of these sectors: the others joined it unseen.
    fn take_first_bio(&mut self, event: &BlockEvent) -> Option<Bio> {
        let (first, last) = at_sector(event.sector);
        let mut found = self.bios.range(first..=last);
        let is_part = |bio: &Bio| bio.op == event.op && (1..event.sectors).contains(&bio.sectors);
        let key = *found.find(|(_, bio)| is_part(bio))?.0;
        self.bios.remove(&key)
    }

    fn new_key(&mut self, sector: u64) -> Key {
        self.arrivals += 1;
        (sector, self.arrivals)
    }
}

impl Request {
    fn is_waiting(&self, op: Op) -> bool {
        self.op == op && !self.timing.is_issued()
    }

    fn is_issued(&self, op: Op) -> bool {
        self.op == op && self.timing.is_issued()
    }
}

fn at_sector(sector: u64) -> (Key, Key) {
    ((sector, 0), (sector, u64::MAX))
}

/// Requests that overlap are rare: the one that ends at a sector is among the first that begin before it.
const LOOKED_AT_MOST: usize = 64;
