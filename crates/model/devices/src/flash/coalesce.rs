//! Completions that the device keeps until there are several, or for a while, before it interrupts the host.
//!
//! Source: Interrupt Coalescing (feature 08h) of the NVM Express base specification 1.4, 5.21.1.8.

use serde::Deserialize;

use events::SpecError;
use events::spec_error::within;
use events::time::Time;

/// The feature as the host has set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coalesce {
    /// Completions that bring an interrupt at once (`THR`, counted from 1).
    #[schemars(range(min = 1, max = COMPLETIONS_MAX))]
    pub completions: u32,
    /// After so long it comes with fewer (`TIME`, which counts in 100 us).
    #[schemars(range(max = TIME_NS_MAX))]
    pub time_ns: u64,
}

/// Fields of eight bits each.
const COMPLETIONS_MAX: u64 = 256;
const TIME_NS_MAX: u64 = 255 * 100_000;

impl Coalesce {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let completions = u64::from(self.completions);
        within("completions", completions, 1, COMPLETIONS_MAX)?;
        within("time_ns", self.time_ns, 0, TIME_NS_MAX)
    }
}

/// What waits for an interrupt.
#[derive(Clone, Debug)]
pub(super) struct HeldCompletions<T> {
    rules: Option<Coalesce>,
    waiting: Vec<T>,
    /// The number of the interrupt that these wait for.
    number: u32,
}

/// What follows from a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Now.
    Now,
    /// At that time, unless one has come before: by its number.
    At(Time, u32),
    /// As is planned.
    Planned,
}

impl<T> HeldCompletions<T> {
    /// Without rules, each completion brings its interrupt.
    pub(super) fn new(rules: Option<Coalesce>) -> HeldCompletions<T> {
        HeldCompletions { rules, waiting: Vec::new(), number: 0 }
    }

    /// Whether a completion may have to wait.
    pub(super) fn holds(&self) -> bool {
        self.rules.is_some()
    }

    pub(super) fn completed(&mut self, now: Time, what: T) -> Interrupt {
        self.waiting.push(what);
        match self.rules {
            Some(rules) if self.waiting.len() < rules.completions as usize => {
                if rules.time_ns == 0 {
                    Interrupt::Now
                } else if self.waiting.len() == 1 {
                    Interrupt::At(now + rules.time_ns, self.number)
                } else {
                    Interrupt::Planned
                }
            }
            _ => Interrupt::Now,
        }
    }

    /// Whether the interrupt of that number has not come yet.
    pub(super) fn awaits(&self, number: u32) -> bool {
        self.number == number && !self.waiting.is_empty()
    }

    /// The host is interrupted: all that has completed, in that order.
    pub(super) fn interrupt(&mut self) -> Vec<T> {
        self.number = self.number.wrapping_add(1);
        std::mem::take(&mut self.waiting)
    }
}
