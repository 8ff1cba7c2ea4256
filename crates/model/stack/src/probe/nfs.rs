//! The probe `nfs`: what the NFS clients counted during a phase, and their counters before and after it as text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use events::time::{MILLISECOND, Time};
use nfs::{DirectIo, MountPoint, OperationCounters};

/// It has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NfsOptions {}

/// A phase under observation.
#[derive(Clone, Debug)]
pub struct NfsProbe {
    began: Time,
    before: Vec<Snapshot>,
}

/// What docs/reference/probes.md describes as the observation of `nfs`.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct NfsObservation {
    elapsed_ns: Time,
    /// By mount point.
    mounts: BTreeMap<String, MountObserved>,
}

/// What one mount counted.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
struct MountObserved {
    source: String,
    /// Those that were called, by their names in small letters.
    operations: BTreeMap<&'static str, OperationObserved>,
    /// Data that were copied behind their head to be sent, which only RDMA counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pulled_up_bytes: Option<u64>,
}

/// Times in whole milliseconds, as the kernel reports them.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
struct OperationObserved {
    ops: u64,
    transmissions: u64,
    timeouts: u64,
    bytes_sent: u64,
    bytes_received: u64,
    queue_ms: u64,
    rtt_ms: u64,
    execute_ms: u64,
}

#[derive(Clone, Debug)]
struct Snapshot {
    read: OperationCounters,
    write: OperationCounters,
    pulled_up_bytes: u64,
    text: String,
}

/// The name of the file with both snapshots of each mount, one mount after the other.
const TRACE: &str = "mountstats";

impl NfsProbe {
    /// At the phase's beginning, with the machine's mounts in their order.
    pub fn new<'a>(began: Time, mounts: impl Iterator<Item = &'a DirectIo>) -> NfsProbe {
        let before = snapshots(began, mounts);
        NfsProbe { began, before }
    }

    /// The observation, and by its name the text of /proc/self/mountstats before and after.
    pub fn finish<'a>(
        self,
        ended: Time,
        mounts: impl Iterator<Item = &'a DirectIo>,
    ) -> (NfsObservation, BTreeMap<String, Vec<u8>>) {
        let mut text = String::new();
        let mut observed = BTreeMap::new();
        let after = snapshots(ended, mounts);
        for (number, (before, after)) in self.before.iter().zip(&after).enumerate() {
            text += &before.text;
            text += &after.text;
            let (source, mount_point) = named(number);
            let operations = [("read", before.read, after.read), ("write", before.write, after.write)]
                .into_iter()
                .filter(|(_, before, after)| after.calls > before.calls)
                .map(|(name, before, after)| (name, OperationObserved::between(&before, &after)))
                .collect();
            let mount = MountObserved {
                source,
                operations,
                pulled_up_bytes: Some(after.pulled_up_bytes - before.pulled_up_bytes),
            };
            observed.insert(mount_point, mount);
        }
        let observation = NfsObservation { elapsed_ns: ended - self.began, mounts: observed };
        (observation, BTreeMap::from([(TRACE.to_owned(), text.into_bytes())]))
    }
}

impl OperationObserved {
    fn between(before: &OperationCounters, after: &OperationCounters) -> OperationObserved {
        let ms = |of: fn(&OperationCounters) -> Time| of(after) / MILLISECOND - of(before) / MILLISECOND;
        let ops = after.calls - before.calls;
        OperationObserved {
            ops,
            transmissions: ops,
            timeouts: 0,
            bytes_sent: after.bytes_sent - before.bytes_sent,
            bytes_received: after.bytes_received - before.bytes_received,
            queue_ms: ms(|counters| counters.queue_ns),
            rtt_ms: ms(|counters| counters.rtt_ns),
            execute_ms: ms(|counters| counters.execute_ns),
        }
    }
}

fn snapshots<'a>(now: Time, mounts: impl Iterator<Item = &'a DirectIo>) -> Vec<Snapshot> {
    let one = |(number, io): (usize, &DirectIo)| {
        let (device, mount_point) = named(number);
        let mounted = MountPoint { device: &device, mount_point: &mount_point };
        let counters = io.mount().counters();
        Snapshot {
            read: counters.operations.read,
            write: counters.operations.write,
            pulled_up_bytes: counters.pulled_up_bytes,
            text: io.mount().mountstats(now, &mounted),
        }
    };
    mounts.enumerate().map(one).collect()
}

/// Source and mount point of a machine's mount by its number.
fn named(number: usize) -> (String, String) {
    (format!("server:/export/{number}"), format!("/mnt/{number}"))
}
