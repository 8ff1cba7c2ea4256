//! What comes back: replies to the receive worker, Sends that are done to the send worker. A call needs both.

use super::call::Return;
use super::iommu::{Demand, User};
use super::mount::{Event, Mount};
use super::operation::Operation;
use super::task::{Stage, TaskId};
use events::time::Time;

impl Mount {
    pub(super) fn replied(&mut self, now: Time, task: TaskId) {
        if self.receive_worker.arrive(now, task) {
            let wakeup_ns = self.spec.costs.completion_wakeup_ns;
            let wakeup_ns = self.draws.receive_wakeup.around(wakeup_ns);
            self.events.put(now + wakeup_ns, Event::ReceiveWoken);
        } else {
            self.receive_next(now);
        }
    }

    pub(super) fn receive_woken(&mut self, now: Time) {
        self.receive_worker.woken();
        self.receive_next(now);
    }

    /// The reply's transaction number has led to its request (`rpcrdma_reply_handler`): the round trip is over, and the
    /// reply states how many calls the server takes.
    pub(super) fn found(&mut self, now: Time) {
        let task = self.receive_worker.current().expect("it works on one");
        self.tasks.enter(now, task, Stage::Reply);
        let state = self.tasks.of_mut(task);
        state.rtt_ns = now - state.stamped_at;
        let call = state.call;
        let mut chunk_pages = [state.placement.chunk_pages(), 0];
        self.counters.replies += 1;
        self.credits.grant(self.rules.credits);

        let mut reply_ns = self.draws.receive.around(self.spec.costs.reply_ns);
        let back = call.reply(&self.rules);
        chunk_pages[1] = back.chunk_pages();
        match back {
            Return::Inline if call.operation == Operation::Read => {
                self.counters.fixup_bytes += u64::from(call.data_bytes);
                reply_ns += self.copy_ns(call.data_bytes);
            }
            Return::Inline => (),
            Return::DataChunk { .. } => {
                self.counters.rdma_reply_bytes += u64::from(call.data_bytes);
            }
            Return::MessageChunk { .. } => {
                self.counters.rdma_reply_bytes += u64::from(call.reply_bytes());
            }
        }
        // The server has invalidated the regions; their pages are unmapped here.
        let mut demand = Demand::free(reply_ns);
        for pages in chunk_pages.into_iter().filter(|&pages| pages > 0) {
            demand.add(self.iommu.unmap(1, pages));
            self.free_regions += 1;
        }
        self.set_flush_timer(now);
        self.work(now, User::ReceiveWorker, demand);
    }

    pub(super) fn reply_handled(&mut self, now: Time) {
        let task = self.receive_worker.finish(now);
        let halves = &mut self.tasks.of_mut(task).halves;
        halves.reply_handled = true;
        if !halves.are_both() {
            self.counters.replies_waited_for_send += 1;
            self.tasks.enter(now, task, Stage::SendWait);
        }
        self.complete_if_both(now, task);
        self.receive_next(now);
    }

    pub(super) fn send_acked(&mut self, now: Time, context: u16) {
        if self.send_worker.arrive(now, context) {
            let wakeup_ns = self.spec.costs.completion_wakeup_ns;
            let wakeup_ns = self.draws.send_wakeup.around(wakeup_ns);
            self.events.put(now + wakeup_ns, Event::SendWoken);
        } else {
            self.send_next(now);
        }
    }

    pub(super) fn send_woken(&mut self, now: Time) {
        self.send_worker.woken();
        self.send_next(now);
    }

    /// Everything up to the Send that is done has been unmapped (`rpcrdma_sendctx_unmap`): its contexts are free, and
    /// so are the calls that waited for that.
    pub(super) fn send_unmapped(&mut self, now: Time) {
        let last = self.send_worker.finish(now);
        while self.ring.holds(last) {
            let context = self.ring.release_oldest();
            if let Some(since) = context.signalled_since {
                self.signalled.leave(now, since);
            }
            if let Some((task, _)) = context.mapped {
                self.tasks.of_mut(task).halves.send_unmapped = true;
                self.complete_if_both(now, task);
            }
        }
        self.transmit_next(now);
        self.send_next(now);
    }

    pub(super) fn count_reply_chunk(&mut self, back: Return, data_bytes: u32) {
        match back {
            Return::Inline => (),
            Return::DataChunk { .. } => self.counters.write_chunks += 1,
            Return::MessageChunk { .. } => self.counters.reply_chunks += 1,
        }
        self.counters.rdma_request_bytes += u64::from(data_bytes);
    }

    fn receive_next(&mut self, now: Time) {
        if self.receive_worker.start().is_some() {
            let lookup_ns = self.draws.receive.around(self.spec.costs.lookup_ns);
            self.cpu.add(super::cpu::Context::Receive, lookup_ns);
            self.events.put(now + lookup_ns, Event::Found);
        }
    }

    fn send_next(&mut self, now: Time) {
        if let Some(last) = self.send_worker.start() {
            let done_ns = self.draws.send.around(self.spec.costs.send_done_ns);
            let mut demand = Demand::free(done_ns);
            let fragments = self.ring.fragments_until(last);
            demand.add(self.iommu.unmap(fragments, 1));
            self.set_flush_timer(now);
            self.work(now, User::SendWorker, demand);
        }
    }
}
