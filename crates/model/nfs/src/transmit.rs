//! Sending: the write lock's holder takes call after call, puts each before the device, and posts it; the server serves.

use super::call::{Call, Placement};
use super::iommu::{Demand, User};
use super::mount::{Event, Mount};
use super::task::{Stage, TaskId};
use events::time::{SECOND, Time};

/// Memory regions that are allocated at once (`rpcrdma_mrs_create`, of a device that takes 16 segments).
const REGIONS: u64 = 16;

impl Mount {
    /// The write lock's holder continues, if there is a call, a credit and a Send context (`xprt_transmit`).
    pub(super) fn transmit_next(&mut self, now: Time) {
        if self.transmitter.next().is_none() {
            return;
        }
        if !self.credits.has_one() {
            self.counters.no_credit += 1;
            return;
        }
        if !self.ring.has_room() {
            self.counters.empty_ring += 1;
            return;
        }
        let Some(task) = self.transmitter.start() else {
            return;
        };
        self.credits.take();
        let state = self.tasks.of_mut(task);
        let slot = state.slot.expect("it was encoded");
        let call = state.call;
        let placement = call.placement(&self.rules, self.slots.send_buffer_bytes(slot));
        state.placement = placement;
        let mut demand = self.marshal(&call, placement);
        demand.free_ns += self.draws.transmit.around(self.spec.costs.transmit_ns);
        self.work(now, User::Transmitter, demand);
    }

    /// The call is stamped and posted.
    pub(super) fn transmitted(&mut self, now: Time) {
        let task = self.transmitter.current().expect("it sends one");
        self.transmitter.finish(now, task);
        self.tasks.enter(now, task, Stage::RoundTrip);
        let state = self.tasks.of_mut(task);
        state.stamped_at = now;
        let mapped = match state.placement {
            Placement::Mapped { fragments } if fragments > 0 => Some((task, fragments)),
            _ => None,
        };
        state.halves.send_unmapped = mapped.is_none();
        let there_ns = self.there_ns(task);
        self.events.put(now + there_ns, Event::AtServer(task));
        self.count_send(now);

        let context = self.ring.take(mapped);
        if self.ring.signals(now, context) {
            self.counters.signalled_sends += 1;
            self.signalled.enter(now);
            let acked_at = (now + self.spec.costs.send_ack_ns).max(self.send_acked_at);
            self.send_acked_at = acked_at;
            self.events.put(acked_at, Event::SendAcked(context));
        }
        self.transmit_next(now);
    }

    pub(super) fn at_server(&mut self, now: Time, task: TaskId) {
        self.server.arrive(now, task);
        self.serve_next(now);
    }

    pub(super) fn served(&mut self, now: Time, task: TaskId) {
        self.server.finish(now, task);
        self.serve_next(now);
        let call = self.tasks.of(task).call;
        let back_bytes = u64::from(call.reply_bytes());
        let back_ns = self.spec.server.network_ns / 2 + self.carry_ns(back_bytes);
        self.events.put(now + back_ns, Event::Replied(task));
    }

    fn serve_next(&mut self, now: Time) {
        if let Some(task) = self.server.start() {
            let service_ns = self.spec.server.service_ns;
            let service_ns = service_ns.of(self.tasks.of(task).call.operation);
            let service_ns = self.draws.server.around(service_ns);
            self.events.put(now + service_ns, Event::Served(task));
        }
    }

    /// Copies, maps or registers (`rpcrdma_marshal_req`).
    fn marshal(&mut self, call: &Call, placement: Placement) -> Demand {
        let mut demand = Demand::default();
        match placement {
            Placement::PulledUp { copied_bytes } => {
                self.counters.pulled_up_bytes += u64::from(copied_bytes);
                demand.free_ns += self.copy_ns(copied_bytes);
            }
            Placement::Mapped { fragments } => demand.add(self.iommu.map(fragments, 1)),
            Placement::DataChunk { pages } => {
                self.counters.read_chunks += 1;
                demand.add(self.register(pages));
            }
            Placement::MessageChunk { pages } => {
                self.counters.read_chunks += 1;
                self.counters.message_chunk_calls += 1;
                demand.add(self.register(pages));
            }
        }
        let back = call.reply(&self.rules);
        if back.chunk_pages() > 0 {
            self.count_reply_chunk(back, call.data_bytes);
            demand.add(self.register(back.chunk_pages()));
        }
        demand
    }

    /// `frwr_map`.
    fn register(&mut self, pages: u16) -> Demand {
        if self.free_regions == 0 {
            self.free_regions = REGIONS;
            self.counters.regions += REGIONS;
        }
        self.free_regions -= 1;
        let mut demand = self.iommu.map(1, pages);
        demand.free_ns += self.spec.costs.register_ns;
        demand
    }

    fn count_send(&mut self, now: Time) {
        let counters = &mut self.counters;
        counters.sends += 1;
        counters.in_flight_sum += counters.sends - counters.replies;
        counters.backlog_sum += self.slots.waiting() as u64;
        counters.last_used_at = now;
    }

    /// A server that reads a chunk asks for it over the network first.
    fn there_ns(&self, task: TaskId) -> Time {
        let state = self.tasks.of(task);
        let network_ns = self.spec.server.network_ns;
        let asked_ns = match state.placement.chunk_pages() {
            0 => 0,
            _ => network_ns,
        };
        network_ns / 2 + asked_ns + self.carry_ns(u64::from(state.call.body_bytes()))
    }

    fn carry_ns(&self, bytes: u64) -> Time {
        bytes * SECOND / self.spec.server.link_bytes_per_s
    }

    pub(super) fn copy_ns(&self, bytes: u32) -> Time {
        u64::from(bytes) * SECOND / self.spec.costs.copy_bytes_per_s
    }
}
