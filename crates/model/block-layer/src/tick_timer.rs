//! Timers of the kernel that come with its clock ticks.

use events::time::Time;

/// When a timer that is set now for that long comes: with a tick after its own, far ones with every eighth tick, or every
/// 64th (`msecs_to_jiffies`, `calc_index` of kernel/time/timer.c, 6.1).
pub(super) fn expiry(now: Time, after_ns: Time, tick_ns: Time) -> Time {
    let ticks = after_ns.div_ceil(tick_ns);
    let mut shift = 0;
    while ticks >= 63 << shift {
        shift += 3;
    }
    ((((now / tick_ns + ticks) >> shift) + 1) << shift) * tick_ns
}
