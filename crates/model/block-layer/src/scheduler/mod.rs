//! I/O schedulers: which request goes to the device next.
//!
//! Each is a state machine: `add` gives it a request, `dispatch` takes one out, `completed` informs it that the device
//! is done with one, `next_wakeup` returns when it wants `wake` called although nothing else happens (a timer). The
//! request queue (`crate`) finds back merges by itself and asks the scheduler for the rest.

pub(crate) mod anticipatory;
mod backward_seeks;
pub(crate) mod bfq;
pub mod cfq;
pub(crate) mod cfq_by_service;
pub(crate) mod cfq_lists;
pub(crate) mod cfq_round_robin;
pub(crate) mod cfq_slices;
pub mod deadline;
pub(crate) mod deadline_a;
pub(crate) mod deadline_timed;
mod dispatch_list;
pub mod hooks;
pub(crate) mod kyber;
pub(crate) mod linus;
mod mean;
pub(crate) mod mq_deadline;
pub(crate) mod none;
pub mod noop;
mod read_preference;
mod request_fifo;
mod sorted_set;
pub mod spec;
mod task_map;
mod task_queues;

use crate::{Bio, RequestId, Requests, Sector, Side, TagCounts, TaskId};
pub use cfq::message::SchedulerMessage;
use events::time::Time;
use request_fifo::{FifoId, RequestFifos};

/// The order of a queue's requests.
pub trait Scheduler: Send {
    /// Schedulers with their own rules for merging return here what the bio is to join, if anything; the queue
    /// then looks no further.
    fn own_merge(&mut self, _requests: &Requests, _bio: &Bio) -> OwnMerge {
        OwnMerge::AskTheQueue
    }

    /// Where it keeps its requests, if they are sorted by sector: what the queue asks of their order is answered there.
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        None
    }

    /// The FIFO with the requests that the bio may be merged in front of, if there is one.
    fn fifo_before(&self, _bio: &Bio) -> Option<FifoId> {
        None
    }

    /// A queued request that begins where the bio ends.
    fn front_merge(&mut self, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        let fifo = self.fifo_before(bio)?;
        self.fifos()?.front_merge(requests, fifo, bio)
    }

    /// Whether its rules let the bio join the request.
    fn may_merge(&self, _requests: &Requests, _request: RequestId, _bio: &Bio) -> bool {
        true
    }

    /// The queued request before or after this one in sector order, which merging may have made contiguous with it.
    fn neighbour(&mut self, requests: &Requests, id: RequestId, side: Side) -> Option<RequestId> {
        self.fifos()?.neighbour(requests, id, side)
    }

    /// A bio was merged in front of the queued request, which started at `was` before: it has another place in sector
    /// order (`deadline_merged_request`, `as_merged_request`, `dd_request_merged`).
    fn front_merged(&mut self, _now: Time, requests: &Requests, id: RequestId, was: Sector) {
        if let Some(fifos) = self.fifos() {
            fifos.front_merged(requests, id, was);
        }
    }

    /// `merged` has become part of `survivor` and is about to be freed. The survivor takes the earlier place by
    /// arrival.
    fn merged_requests(&mut self, _now: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        let fifos = self.fifos();
        let fifos = fifos.expect("one that is not sorted by sector has its own rules for merging");
        fifos.merged_requests(requests, survivor, merged);
    }

    /// The limit of the tags that such a bio may have (`shallow_depth`).
    fn tags_allowed(&self, _bio: &Bio, tags: TagCounts) -> u32 {
        tags.most()
    }

    /// Whether `tags_allowed` may be another for the same bio later.
    fn limits_vary(&self) -> bool {
        false
    }

    /// The lowest limit that any request has: waiters are woken in batches that fit into it
    /// (`sbitmap_queue_min_shallow_depth`).
    fn fewest_tags(&self, tags: TagCounts) -> u32 {
        tags.most()
    }

    /// Whether the bio's task may have another request, however many are free.
    fn lets_queue(&self, _bio: &Bio) -> bool {
        true
    }

    /// Whether the bio's task gets a request although there is none left: it is the one that is waited for.
    fn may_exceed_pool(&mut self, _bio: &Bio) -> bool {
        false
    }

    /// Takes a new request, or one that the device gave back.
    fn add(&mut self, now: Time, requests: &Requests, request: RequestId);

    /// The next request for the device; None: nothing is queued, or what is queued has to wait.
    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId>;

    /// The device has completed a request that `dispatch` gave out.
    fn completed(&mut self, _now: Time, _requests: &Requests, _request: RequestId) {}

    /// When `wake` is to be called, if nothing changes before.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// A time that `next_wakeup` returned has come; `dispatch` is asked afterwards.
    fn wake(&mut self, _now: Time, _requests: &Requests) {}

    /// Whether it has the queue run by a wake-up when it gives requests again, and a completion alone does not. Others
    /// keep nothing while the device has tags, or run the queue as what they waited for comes back
    /// (`kyber_domain_wake`).
    fn runs_queue(&self) -> bool {
        false
    }

    /// The task is gone and will not submit any more.
    fn exited(&mut self, _now: Time, _task: TaskId) {}

    /// Requests that it holds.
    fn queued(&self) -> usize;

    /// Whether from now on it keeps what it does for `take_messages`, which then has to be called now and then. Only
    /// CFQ does.
    fn keep_messages(&mut self, _keep: bool) {}

    /// Appends what it has done since the last call, in order of time.
    fn take_messages(&mut self, _into: &mut Vec<SchedulerMessage>) {}
}

/// The decision about a bio of a scheduler with its own rules for merging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnMerge {
    /// No rules of its own: the queue looks for a request to join.
    AskTheQueue,
    /// The request to join, and at which of its sides.
    Into(RequestId, Side),
    /// The bio joins none.
    Nothing,
}
