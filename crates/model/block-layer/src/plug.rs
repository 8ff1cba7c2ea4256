//! Plugging: holding requests back for a moment so that more of them merge and sort.
//!
//! Source: docs/model/sources/plugging.md#plugging.

use events::time::Time;
use kernels::queue::PlugRules;

/// The plug of one queue.
#[derive(Clone, Debug)]
pub(super) struct Plug {
    rules: PlugRules,
    plugged: bool,
    unplug_at: Option<Time>,
}

impl Plug {
    /// An unplugged queue's.
    pub(super) fn new(rules: PlugRules) -> Plug {
        Plug { rules, plugged: false, unplug_at: None }
    }

    /// Whether the queue holds its requests back from the device.
    #[inline]
    pub(super) fn is_plugged(&self) -> bool {
        self.plugged
    }

    /// A request comes into the queue (`blk_plug_device`, and `unplug_thresh` in `elv_insert`); `was_empty`: nothing waited
    /// in it; `waiting`: with this one, those not at the device.
    pub(super) fn inserted(&mut self, now: Time, was_empty: bool, waiting: u32) {
        if was_empty && self.rules.plugs && !self.plugged {
            self.plugged = true;
            self.unplug_at = self.rules.unplug_after_ns.map(|after| now + after);
        }
        if self.rules.unplug_at.is_some_and(|at| waiting >= at) {
            self.unplug();
        }
    }

    /// A task waits, or has no request left to fill (`generic_unplug_device`).
    pub(super) fn unplug(&mut self) {
        self.plugged = false;
        self.unplug_at = None;
    }

    /// When the plug's timer expires; None: it is not set.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.unplug_at
    }

    /// Unplugs if the timer has expired (`blk_unplug_timeout`).
    pub(super) fn wake(&mut self, now: Time) {
        if self.unplug_at.is_some_and(|at| at <= now) {
            self.unplug();
        }
    }
}
