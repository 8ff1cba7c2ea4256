//! Which bio or request an event is about.
//!
//! The tracepoints name no request; what an event is about is found by its sectors and operation, as btt does. Where two
//! under way cover the same sectors, the older one is taken (of bios, the same task's): which of the two it was does not
//! change any count. Nothing need tell that a bio became a request: the first event that treats it as one does.

use super::event::{BlockEvent, Op};
use super::in_flight::{Entry, InFlight, Slot};
use super::timing::Timing;

#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    /// Bios that are not known to be in a request.
    pub(super) bios: InFlight<Bio>,
    pub(super) requests: InFlight<Request>,
}

#[derive(Clone, Debug)]
pub(super) struct Bio {
    pub(super) origin: Origin,
    pub(super) pid: u32,
    pub(super) op: Op,
    /// Kernels before 4.12 queue the rest of a split bio once more.
    pub(super) rest_of_split: bool,
}

/// Where a bio comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) queued_at_ns: u64,
    pub(super) cpu: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    op: Op,
    pub(super) first_seen_ns: u64,
    /// Of the bio that it was made of, unless that was not seen.
    pub(super) first: Option<Origin>,
    /// Of the bios that joined.
    pub(super) joined: Vec<Origin>,
    pub(super) timing: Timing,
}

impl UnderWay {
    pub(super) fn new() -> UnderWay {
        UnderWay {
            bios: InFlight::new(),
            requests: InFlight::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bios.len() + self.requests.len()
    }

    /// A request whose bio was not seen.
    pub(super) fn unseen_request(&mut self, event: &BlockEvent) -> Slot {
        let request = Request::new(event.op, event.at_ns, None);
        self.requests.insert(event.sector, event.sectors, request)
    }

    /// What waits with these sectors; None if its beginning was not seen.
    #[inline]
    pub(super) fn waiting_request(&mut self, event: &BlockEvent) -> Option<Slot> {
        if let Some(whole) = self.whole_request(event) {
            return Some(whole);
        }
        let other_size = |request: &Entry<Request>| {
            request.what.is_waiting(event.op) && (request.sectors > 0) == (event.sectors > 0)
        };
        if let Some(request) = self.requests.starting_at(event.sector, other_size) {
            return Some(request);
        }
        // Of a bio with the first of these sectors: the others joined it unseen.
        let is_part =
            |bio: &Entry<Bio>| bio.what.op == event.op && (1..event.sectors).contains(&bio.sectors);
        let bio = self.bios.starting_at(event.sector, is_part)?;
        self.request_of(bio)
    }

    /// What waits with exactly these sectors.
    #[inline]
    pub(super) fn whole_request(&mut self, event: &BlockEvent) -> Option<Slot> {
        let whole = |request: &Entry<Request>| {
            request.what.is_waiting(event.op) && request.sectors == event.sectors
        };
        let known = self.requests.starting_at(event.sector, whole);
        known.or_else(|| self.own_bio(event).and_then(|bio| self.request_of(bio)))
    }

    /// What waits and ends where the event's sectors begin. Discards join whatever discard waits: a device may take several
    /// ranges at once.
    pub(super) fn request_before(&mut self, event: &BlockEvent) -> Option<Slot> {
        let waits =
            |request: &Entry<Request>| request.what.is_waiting(event.op) && request.sectors > 0;
        let is_bio = |bio: &Entry<Bio>| bio.what.op == event.op && bio.sectors > 0;
        if let Some(adjacent) = self.requests.ending_at(event.sector, waits) {
            return Some(adjacent);
        }
        if let Some(adjacent) = self.bios.ending_at(event.sector, is_bio) {
            return self.request_of(adjacent);
        }
        if event.op != Op::Discard {
            return None;
        }
        let elsewhere = |start: u64| start != event.sector;
        let other = |request: &Entry<Request>| waits(request) && elsewhere(request.start);
        if let Some(other) = self.requests.first(other) {
            return Some(other);
        }
        let other = |bio: &Entry<Bio>| is_bio(bio) && elsewhere(bio.start);
        let other = self.bios.first(other)?;
        self.request_of(other)
    }

    /// What waits and begins where the event's sectors end.
    pub(super) fn request_after(&mut self, event: &BlockEvent) -> Option<Slot> {
        let end = event.sector.saturating_add(event.sectors);
        let waits = |request: &Entry<Request>| request.what.is_waiting(event.op);
        if let Some(request) = self.requests.starting_at(end, waits) {
            return Some(request);
        }
        let is_bio = |bio: &Entry<Bio>| bio.what.op == event.op;
        let bio = self.bios.starting_at(end, is_bio)?;
        self.request_of(bio)
    }

    /// The request that the driver has with exactly these sectors, or, in part, with others.
    #[inline]
    pub(super) fn issued_request(&self, event: &BlockEvent, in_part: bool) -> Option<Slot> {
        let has_it = |request: &Entry<Request>| request.what.is_issued(event.op);
        let whole = |request: &Entry<Request>| request.sectors == event.sectors;
        let data = |request: &Entry<Request>| event.sectors > 0 && request.sectors > 0;
        let find = |wanted: &dyn Fn(&Entry<Request>) -> bool| {
            self.requests.starting_at(event.sector, wanted)
        };
        find(&|request| has_it(request) && whole(request))
            .or_else(|| find(&|request| in_part && has_it(request) && data(request)))
    }

    /// The bio with exactly these sectors; rather one of the task that runs.
    #[inline]
    pub(super) fn own_bio(&self, event: &BlockEvent) -> Option<Slot> {
        let own = self.bio(event, |bio| bio.pid == event.pid);
        own.or_else(|| self.bio(event, |_| true))
    }

    #[inline]
    pub(super) fn bio(&self, event: &BlockEvent, wanted: impl Fn(&Bio) -> bool) -> Option<Slot> {
        self.bios.starting_at(event.sector, |bio| {
            bio.what.op == event.op && bio.sectors == event.sectors && wanted(&bio.what)
        })
    }

    /// Bios whose merge was not seen are part of the request that is issued with their sectors.
    pub(super) fn covered_bios(&self, event: &BlockEvent) -> Vec<Slot> {
        let end = event.sector.saturating_add(event.sectors);
        self.bios.starting_in(event.sector, end, |bio| {
            bio.what.op == event.op && bio.end() <= end
        })
    }

    pub(super) fn request_of(&mut self, bio: Slot) -> Option<Slot> {
        let bio = self.bios.remove(bio)?;
        let origin = bio.what.origin;
        let request = Request::new(bio.what.op, origin.queued_at_ns, Some(origin));
        Some(self.requests.insert(bio.start, bio.sectors, request))
    }
}

impl Request {
    fn new(op: Op, first_seen_ns: u64, first: Option<Origin>) -> Request {
        Request {
            op,
            first_seen_ns,
            first,
            joined: Vec::new(),
            timing: Timing::default(),
        }
    }

    pub(super) fn origins(&self) -> impl Iterator<Item = Origin> {
        self.first.iter().chain(&self.joined).copied()
    }

    fn is_waiting(&self, op: Op) -> bool {
        self.op == op && !self.timing.is_issued()
    }

    fn is_issued(&self, op: Op) -> bool {
        self.op == op && self.timing.is_issued()
    }
}
