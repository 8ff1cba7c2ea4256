//! What the RPC layer and the transport count.

use super::call::Call;
use super::operation::Operation;
use super::spec::PerOperation;
use events::time::Time;

/// Everything since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sums by operation.
    pub operations: PerOperation<OperationCounters>,
    /// Calls that were posted.
    pub sends: u64,
    /// Replies that found their call.
    pub replies: u64,
    /// Summed over the Sends: calls in flight, and tasks in the backlog.
    pub in_flight_sum: u64,
    /// Summed over the Sends: tasks in the backlog.
    pub backlog_sum: u64,
    /// When the transport was last used.
    pub last_used_at: Time,
    /// Read chunks: memory that the server reads (Sends of data or whole messages).
    pub read_chunks: u64,
    /// Write chunks: memory that the server writes data to.
    pub write_chunks: u64,
    /// Reply chunks: memory that the server writes whole replies to.
    pub reply_chunks: u64,
    /// Bytes that the server was allowed to write, and those that it wrote.
    pub rdma_request_bytes: u64,
    /// Bytes that the server wrote to it.
    pub rdma_reply_bytes: u64,
    /// Bytes of data that were copied behind their head to be sent.
    pub pulled_up_bytes: u64,
    /// Copied from replies to where they belong.
    pub fixup_bytes: u64,
    /// The bytes of send buffers that were allocated anew because a call's head was too large.
    pub grown_bytes: u64,
    /// Calls whose whole message went as a chunk (`RDMA_NOMSG`).
    pub message_chunk_calls: u64,
    /// Memory regions, allocated when none was free.
    pub regions: u64,
    /// How often a sender found no Send context.
    pub empty_ring: u64,
    /// Calls whose reply waited for their Send.
    pub replies_waited_for_send: u64,
    /// Not in mountstats: Sends whose completion was reported, and how often a sender found no credit.
    pub signalled_sends: u64,
    /// How often a sender found no credit.
    pub no_credit: u64,
}

/// Sums over an operation's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounters {
    /// Calls that are done.
    pub calls: u64,
    /// Bytes of their RPC messages.
    pub bytes_sent: u64,
    /// Bytes of the replies' RPC messages.
    pub bytes_received: u64,
    /// Bytes of file data that they read or wrote.
    pub data_bytes: u64,
    /// From the start of the task until just before posting.
    pub queue_ns: Time,
    /// From there until the request was found for the reply.
    pub rtt_ns: Time,
    /// From the start of the task to its release.
    pub execute_ns: Time,
}

impl Counters {
    /// The sums of one operation.
    pub fn of(&self, operation: Operation) -> &OperationCounters {
        match operation {
            Operation::Read => &self.operations.read,
            Operation::Write => &self.operations.write,
        }
    }

    #[inline]
    pub(super) fn completed(&mut self, call: &Call, queue_ns: Time, rtt_ns: Time, execute_ns: Time) {
        let counters = match call.operation {
            Operation::Read => &mut self.operations.read,
            Operation::Write => &mut self.operations.write,
        };
        counters.calls += 1;
        counters.bytes_sent += u64::from(call.body_bytes());
        counters.bytes_received += u64::from(call.reply_bytes());
        counters.data_bytes += u64::from(call.data_bytes);
        counters.queue_ns += queue_ns;
        counters.rtt_ns += rtt_ns;
        counters.execute_ns += execute_ns;
    }
}

impl OperationCounters {}
