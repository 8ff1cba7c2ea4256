//! Plugging: holding requests back for a moment so that more of them merge and sort.
//!
//! Source: docs/model/sources/plugging.md#plugging.

use events::time::{MILLISECOND, Time};

/// When a queue that was plugged by an insertion into its emptiness lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlugRules {
    /// Whether an insertion into an empty queue plugs it at all.
    pub plugs: bool,
    /// Outstanding requests that are not at the device yet.
    pub unplug_at: Option<u32>,
    /// Time after plugging at which the queue unplugs by itself; None: never.
    pub unplug_after_ns: Option<Time>,
    /// The driver leaves the request at the device in the queue, which so is not empty (`head_active` of 2.4; IDE drivers
    /// until 2.6).
    pub head_stays: bool,
}

impl PlugRules {
    /// With a driver that leaves the request at the device in the queue, or one that does not.
    pub fn with_head(self, stays: bool) -> PlugRules {
        PlugRules {
            head_stays: stays,
            ..self
        }
    }

    /// 2.4 and 2.5.59: only who waits, runs out of requests, or kicks writeback unplugs.
    pub const EXPLICIT: PlugRules = PlugRules {
        plugs: true,
        unplug_at: None,
        unplug_after_ns: None,
        head_stays: false,
    };

    /// -mm of 2.5.5x and 2.5.60 to 2.6.38: at 4 requests or after 3 ms as well.
    pub const SELF: PlugRules = PlugRules {
        plugs: true,
        unplug_at: Some(4),
        unplug_after_ns: Some(3 * MILLISECOND),
        head_stays: false,
    };

    /// Non-rotational devices with tags, and 2.6.39 on: the queue is never plugged (tasks plug for themselves).
    pub const NONE: PlugRules = PlugRules {
        plugs: false,
        unplug_at: None,
        unplug_after_ns: None,
        head_stays: false,
    };
}

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
        Plug {
            rules,
            plugged: false,
            unplug_at: None,
        }
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

    /// Somebody waits, or has no request left to fill (`generic_unplug_device`).
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
