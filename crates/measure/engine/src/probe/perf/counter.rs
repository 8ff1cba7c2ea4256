//! Counting without sampling.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use super::event::{Kind, Scope, open_counter};
use crate::probe::Reason;

/// Counts from its opening on.
#[derive(Debug)]
pub struct Counter {
    file: std::fs::File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub value: u64,
    /// How long the event was wanted, and how long it did count: the two differ if the hardware has fewer counters than
    /// there are events. Scaling by their ratio is an estimate.
    pub enabled_ns: u64,
    pub running_ns: u64,
}

impl Counter {
    pub fn open(kind: Kind, scope: Scope) -> Result<Counter, Reason> {
        open_counter(kind, scope).map(Counter::of)
    }

    pub fn read(&self) -> io::Result<Count> {
        let mut bytes = [0; 24];
        (&self.file).read_exact(&mut bytes)?;
        let word = |at: usize| {
            let word = bytes[at..at + 8].try_into();
            word.map_or(0, u64::from_ne_bytes)
        };
        Ok(Count { value: word(0), enabled_ns: word(8), running_ns: word(16) })
    }

    fn of(event: OwnedFd) -> Counter {
        Counter { file: event.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_context_switches_are_counted() {
        let counter = match Counter::open(Kind::ContextSwitches, Scope::OwnProcess) {
            Ok(counter) => counter,
            Err(reason) => return eprintln!("SKIPPED own_context_switches_are_counted: {reason}"),
        };
        let before = counter.read().unwrap();
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let after = counter.read().unwrap();
        assert!(after.value >= before.value + 5, "{before:?} {after:?}");
        assert!(after.running_ns > 0);
    }
}
