//! The counters as /proc/self/mountstats shows them (`nfs_show_stats`, `rpc_clnt_show_stats`, `xprt_rdma_print_stats`;
//! format 1.1). Lines of what the model does not have (caps, sec, events) are left out.

use std::fmt::Write;

use super::counters::OperationCounters;
use super::mount::Mount;
use super::operation::Operation;
use events::time::{MILLISECOND, SECOND, Time};

/// Where it is mounted.
#[derive(Clone, Copy, Debug)]
pub struct MountPoint<'a> {
    /// `server:/export`.
    pub device: &'a str,
    /// The directory it is mounted on.
    pub mount_point: &'a str,
}

/// NFSv3's, in the order of their numbers.
const OPERATIONS: [&str; 22] = [
    "NULL",
    "GETATTR",
    "SETATTR",
    "LOOKUP",
    "ACCESS",
    "READLINK",
    READ,
    WRITE,
    "CREATE",
    "MKDIR",
    "SYMLINK",
    "MKNOD",
    "REMOVE",
    "RMDIR",
    "RENAME",
    "LINK",
    "READDIR",
    "READDIRPLUS",
    "FSSTAT",
    "FSINFO",
    "PATHCONF",
    "COMMIT",
];
const READ: &str = "READ";
const WRITE: &str = "WRITE";

impl Mount {
    /// All counters since the mount at time 0.
    pub fn mountstats(&self, now: Time, mounted: &MountPoint) -> String {
        let mut text = String::new();
        self.write_to(&mut text, now, mounted).expect("a string takes all");
        text
    }

    fn write_to(&self, text: &mut String, now: Time, mounted: &MountPoint) -> std::fmt::Result {
        let counters = self.counters();
        let [read, write] = [Operation::Read, Operation::Write].map(|which| *counters.of(which));
        writeln!(text, "device {} mounted on {} with fstype nfs statvers=1.1", mounted.device, mounted.mount_point)?;
        writeln!(text, "\topts:\trw,vers=3,proto=rdma")?;
        writeln!(text, "\tage:\t{}", now / SECOND)?;
        // Read and written by calls, in direct I/O, by the server, and pages: all of it is direct here.
        let [in_bytes, out_bytes] = [read.data_bytes, write.data_bytes];
        writeln!(text, "\tbytes:\t0 0 {in_bytes} {out_bytes} {in_bytes} {out_bytes} 0 0 ")?;
        writeln!(text, "\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)")?;
        self.write_transport(text, now)?;
        writeln!(text, "\tper-op statistics")?;
        let none = OperationCounters::default();
        OPERATIONS.iter().try_for_each(|&name| match name {
            READ => write_operation(text, name, &read),
            WRITE => write_operation(text, name, &write),
            _ => write_operation(text, name, &none),
        })
    }

    fn write_transport(&self, text: &mut String, now: Time) -> std::fmt::Result {
        let counters = self.counters();
        let idle_s = (now - counters.last_used_at.min(now)) / SECOND;
        // Port, binds, connects, seconds of connecting; nothing is lost here, so that no transaction is unknown.
        writeln!(
            text,
            "\txprt:\trdma 0 0 1 0 {idle_s} {} {} 0 {} {} {} {} {} {} {} {} {} {} 0 0 {} 0 0 {} 0 {} {}",
            counters.sends,
            counters.replies,
            counters.in_flight_sum,
            counters.backlog_sum,
            counters.read_chunks,
            counters.write_chunks,
            counters.reply_chunks,
            counters.rdma_request_bytes,
            counters.rdma_reply_bytes,
            counters.pulled_up_bytes,
            counters.fixup_bytes,
            counters.grown_bytes,
            counters.message_chunk_calls,
            counters.regions,
            counters.empty_ring,
            counters.replies_waited_for_send,
        )
    }
}

fn write_operation(text: &mut String, name: &str, counters: &OperationCounters) -> std::fmt::Result {
    writeln!(
        text,
        "\t{name:>12}: {calls} {calls} 0 {} {} {} {} {} 0",
        counters.bytes_sent,
        counters.bytes_received,
        counters.queue_ns / MILLISECOND,
        counters.rtt_ns / MILLISECOND,
        counters.execute_ns / MILLISECOND,
        calls = counters.calls,
    )
}
