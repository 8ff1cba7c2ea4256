//! Which request a bio joins, and which two requests become one.

use super::RequestQueue;
use crate::scheduler::OwnMerge;
use crate::{Bio, EventKind, RequestId, Side};
use events::time::Time;
use kernels::queue::Merges;

impl RequestQueue {
    /// The request that the bio can join, and at which end (`elv_merge`).
    pub(super) fn find_merge(&mut self, bio: &Bio) -> Option<(RequestId, Side)> {
        let never = self.rules.merges == Merges::Never || bio.behind_flush || bio.force_unit_access;
        if never || self.scheduler.queued() == 0 {
            return None;
        }
        match self.scheduler.own_merge(&self.requests, bio) {
            OwnMerge::AskTheQueue => {}
            OwnMerge::Into(id, side) => return self.may_merge(id, bio).then_some((id, side)),
            OwnMerge::Nothing => return None,
        }
        if let Some(last) = self.last_merge {
            let request = &self.requests[last];
            let side = if request.end() == bio.start {
                Some(Side::Back)
            } else if bio.end() == request.start {
                Some(Side::Front)
            } else {
                None
            };
            if let Some(side) = side
                && self.may_merge(last, bio)
            {
                return Some((last, side));
            }
        }
        if self.rules.merges == Merges::LastOnly {
            return None;
        }
        let first = (bio.start, RequestId::FIRST);
        let ending_there = self.ends.range(first..).next().copied();
        if let Some((end, id)) = ending_there
            && end == bio.start
            && self.may_merge(id, bio)
        {
            return Some((id, Side::Back));
        }
        let id = self.scheduler.front_merge(&self.requests, bio)?;
        self.may_merge(id, bio).then_some((id, Side::Front))
    }

    /// Whether the bio may join the request (`elv_rq_merge_ok`, `blk_rq_merge_ok`, `ll_back_merge_fn`, `ll_front_merge_fn`); one that has
    /// become too large is not asked again.
    fn may_merge(&mut self, id: RequestId, bio: &Bio) -> bool {
        let request = &self.requests[id];
        if request.direction != bio.direction
            || request.write_stream != bio.write_stream
            || request.no_merge
            || !self.scheduler.may_merge(&self.requests, id, bio)
        {
            return false;
        }
        let fits = request.sectors + bio.sectors <= self.rules.request_sectors_max
            && request.segments + bio.segments <= self.rules.request_segments_max;
        if !fits {
            self.no_more_merges(id);
            self.requests[id].no_merge = true;
        }
        fits
    }

    pub(super) fn merge(&mut self, now: Time, id: RequestId, side: Side, bio: Bio) {
        let kind = match side {
            Side::Back => EventKind::BackMerge,
            Side::Front => EventKind::FrontMerge,
        };
        if self.tap.is_on() {
            self.tap.bio(now, kind, &bio);
        }
        let was = self.requests[id].start;
        self.ends.remove(&(self.requests[id].end(), id));
        let (start, sectors, segments) = (bio.start, bio.sectors, bio.segments);
        let read_ahead = bio.read_ahead;
        let bio = self.bios.put(bio);
        let request = &mut self.requests[id];
        request.sectors += sectors;
        request.read_ahead &= read_ahead;
        request.segments += segments;
        let (first, last) = request.bios.expect("a queue's requests have bios");
        match side {
            Side::Back => {
                request.bios = Some((first, bio));
                self.bios[last].next = Some(bio);
                self.counts.merges_back += 1;
            }
            Side::Front => {
                request.start = start;
                request.bios = Some((bio, last));
                self.bios[bio].next = Some(first);
                self.counts.merges_front += 1;
            }
        }
        self.ends.insert((self.requests[id].end(), id));
        self.last_merge = Some(id);
        if side == Side::Front {
            self.scheduler.front_merged(now, &self.requests, id, was);
        }
        self.fuse(now, id, side);
    }

    /// After a request has enlarged it may touch its neighbour (`attempt_merge`): then the two become one.
    fn fuse(&mut self, now: Time, enlarged: RequestId, side: Side) {
        let Some(neighbour) = self.scheduler.neighbour(&self.requests, enlarged, side) else {
            return;
        };
        let (survivor, merged) = match side {
            Side::Back => (enlarged, neighbour),
            Side::Front => (neighbour, enlarged),
        };
        if !self.may_fuse(survivor, merged) {
            return;
        }
        self.emit_request(now, EventKind::RequestMerge, merged);
        self.no_more_merges(merged);
        self.scheduler.merged_requests(now, &self.requests, survivor, merged);
        self.ends.remove(&(self.requests[survivor].end(), survivor));
        let gone = self.requests.take(merged);
        let request = &mut self.requests[survivor];
        request.sectors += gone.sectors;
        request.segments += gone.segments;
        request.queued_at = request.queued_at.min(gone.queued_at);
        let (first, last) = request.bios.expect("a queue's requests have bios");
        let (next, end) = gone.bios.expect("a queue's requests have bios");
        request.bios = Some((first, end));
        self.bios[last].next = Some(next);
        self.ends.insert((self.requests[survivor].end(), survivor));
        self.last_merge = Some(survivor);
        self.counts.merges_of_requests += 1;
        if let Some(wbt) = self.wbt.as_mut().filter(|_| gone.writeback) {
            wbt.merged();
        }
        let class = self.class_of(gone.direction, gone.sync, gone.cpu);
        // Who waits is woken by the next completion.
        self.pools[class].give_back(gone.pool_tag);
    }

    /// `ll_merge_requests_fn`.
    fn may_fuse(&self, survivor: RequestId, merged: RequestId) -> bool {
        let (front, back) = (&self.requests[survivor], &self.requests[merged]);
        front.end() == back.start
            && front.direction == back.direction
            && front.sync == back.sync
            && front.write_stream == back.write_stream
            && !front.no_merge
            && !back.no_merge
            && front.sectors + back.sectors <= self.rules.request_sectors_max
            && front.segments + back.segments <= self.rules.request_segments_max
    }

    /// `elv_rqhash_del`.
    pub(super) fn no_more_merges(&mut self, id: RequestId) {
        self.ends.remove(&(self.requests[id].end(), id));
        if self.last_merge == Some(id) {
            self.last_merge = None;
        }
    }
}
