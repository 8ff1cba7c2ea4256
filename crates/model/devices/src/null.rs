//! A device that does nothing, after a fixed time.

use serde::Deserialize;

use crate::completion_times::CompletionTimes;
use crate::limits::{CAPACITY_BYTES_MAX, QUEUE_DEPTH_MAX, WORK_NS_MAX, capacity, queue_depth};
use crate::{Command, Completion, Device};
use block_layer::{SECTOR_BYTES, Sector};
use events::SpecError;
use events::spec_error::within;
use events::time::Time;

/// Everything about a device without mechanics; a machine file's device of kind `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NullSpec {
    /// Size of the device; whole sectors.
    #[schemars(range(min = SECTOR_BYTES, max = CAPACITY_BYTES_MAX))]
    pub capacity_bytes: u64,
    /// From submission to completion.
    #[schemars(range(max = WORK_NS_MAX))]
    pub latency_ns: u64,
    /// Commands that it takes at once.
    #[schemars(range(min = 1, max = QUEUE_DEPTH_MAX))]
    pub queue_depth: u32,
    /// Whether it has a cache that a flush, a command as any other, puts on the medium (null_blk's `cache_size`).
    #[serde(default)]
    pub volatile_cache: bool,
}

/// Completes each command `latency_ns` after it came, however many there are. It may come later than now.
#[derive(Clone, Debug)]
pub struct Null {
    spec: NullSpec,
    completing: CompletionTimes,
}

impl NullSpec {
    /// Checks that every value lies in its range. The error names the first key whose value does not.
    pub fn check(&self) -> Result<(), SpecError> {
        capacity("capacity_bytes", self.capacity_bytes)?;
        within("latency_ns", self.latency_ns, 0, WORK_NS_MAX)?;
        queue_depth("queue_depth", self.queue_depth)
    }
}

impl Null {
    /// An idle device. The error names the key that is wrong.
    pub fn new(spec: &NullSpec) -> Result<Null, SpecError> {
        spec.check()?;
        Ok(Null { spec: *spec, completing: CompletionTimes::default() })
    }
}

impl Device for Null {
    fn sectors(&self) -> Sector {
        self.spec.capacity_bytes / SECTOR_BYTES
    }

    fn queue_depth(&self) -> u32 {
        self.spec.queue_depth
    }

    fn submit(&mut self, now: Time, command: Command) {
        self.completing.put(now + self.spec.latency_ns, command.tag);
    }

    fn flush(&mut self, now: Time, tag: u32) -> bool {
        if self.spec.volatile_cache {
            self.completing.put(now + self.spec.latency_ns, tag);
        }
        self.spec.volatile_cache
    }

    fn next_event(&self) -> Option<Time> {
        self.completing.next_at()
    }

    fn advance(&mut self, now: Time, completed: &mut Vec<Completion>) {
        self.completing.take_due(now, completed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{self, command};
    use block_layer::Direction;

    #[test]
    fn it_takes_as_long_at_any_depth() {
        let spec = NullSpec { capacity_bytes: 1 << 30, latency_ns: 1000, queue_depth: 1024, volatile_cache: false };
        let commands = vec![command(Direction::Read, 0, 8); 1024];
        for depth in [1, 1024] {
            let run = trial::run(&mut Null::new(&spec).unwrap(), &commands, depth);
            assert!(run.latencies().all(|latency| latency == 1000));
            assert_eq!(run.took, 1000 * 1024 / depth as u64);
        }
    }

    #[test]
    fn a_flush_is_a_command_where_there_is_a_cache() {
        for volatile_cache in [false, true] {
            let spec = NullSpec { capacity_bytes: 1 << 30, latency_ns: 1000, queue_depth: 4, volatile_cache };
            let mut null = Null::new(&spec).unwrap();
            assert_eq!(null.flush(50, 4), volatile_cache);
            assert_eq!(null.next_event(), volatile_cache.then_some(1050));
        }
    }

    #[test]
    fn a_device_of_no_size_is_impossible() {
        let spec = NullSpec { capacity_bytes: 0, latency_ns: 0, queue_depth: 1, volatile_cache: false };
        assert_eq!(Null::new(&spec).unwrap_err().key, "capacity_bytes");
    }
}
