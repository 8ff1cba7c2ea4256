//! Writeback throttling: what is written back gets few requests at a time, so that reads do not wait behind it.
//!
//! Source: `block/blk-wbt.c` and `block/blk-rq-qos.c` of 6.x (from 4.10 on, with the block layer's hardware queues). A window
//! of 100 ms is looked at when it ends: where the fastest read of it took longer than the target, half as many requests are
//! allowed from then on and windows get shorter; where reads are fast, twice as many. Left out: discards, and what swapping
//! writes. Simpler than the kernel's: a bio that waits for a tag as well is counted when it has both.

use std::collections::VecDeque;

use crate::block::{Direction, Request, RequestId, TaskId};
use crate::time::{MILLISECOND, SECOND, Time};

/// What a queue's throttling goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WbtRules {
    /// `wbt_lat_usec`: reads are to take no longer.
    pub target_ns: Time,
    /// Commands that the device takes at once (`blk_queue_depth`).
    pub queue_depth: u32,
    /// The device acknowledges writes from a volatile cache.
    pub write_cache: bool,
}

impl WbtRules {
    /// The target where nothing is said (`wbt_default_latency_nsec`): 75 ms with seeks, 2 ms without.
    pub fn default_target_ns(rotational: bool) -> Time {
        match rotational {
            true => 75 * MILLISECOND,
            false => 2 * MILLISECOND,
        }
    }
}

/// Requests of writeback at the centre of the scale (`RWB_DEF_DEPTH`).
const DEPTH: u32 = 16;
/// From one look to the next (`RWB_WINDOW_NSEC`).
const WINDOW_NS: Time = 100 * MILLISECOND;
/// With fewer writes in a window it says nothing of reads beside writes (`RWB_MIN_WRITE_SAMPLES`).
const WRITES_MIN: u32 = 3;
/// After so many windows that say nothing, one step back to the centre (`RWB_UNKNOWN_BUMP`).
const UNKNOWN_MAX: u32 = 5;
/// A writer that was held this recently makes writeback have all of its depth (`wb_recent_wait`).
const HELD_NS: Time = SECOND;

/// The state of one queue's throttling.
#[derive(Clone, Debug)]
pub(super) struct Wbt {
    rules: WbtRules,
    /// Of the scale: each above 0 halves the depth, each below doubles it.
    step: i32,
    is_at_most: bool,
    depth: u32,
    normal: u32,
    background: u32,
    /// Requests of writeback, queued or at the device.
    in_use: u32,
    waiting: VecDeque<TaskId>,
    window_ns: Time,
    window_ends: Option<Time>,
    unknown: u32,
    /// Of the window: the fastest read, and how many writes there were.
    fastest_read_ns: Option<Time>,
    writes: u32,
    /// A read at the device, and since when.
    waited_read: Option<(RequestId, Time)>,
    last_held: Option<Time>,
}

/// What a window says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    Fast,
    Slow,
    WritesOnly,
    Nothing,
}

impl Wbt {
    pub(super) fn new(rules: WbtRules) -> Wbt {
        let mut wbt = Wbt {
            rules,
            step: 0,
            is_at_most: false,
            depth: DEPTH,
            normal: 0,
            background: 0,
            in_use: 0,
            waiting: VecDeque::new(),
            window_ns: WINDOW_NS,
            window_ends: None,
            unknown: 0,
            fastest_read_ns: None,
            writes: 0,
            waited_read: None,
            last_held: None,
        };
        wbt.rescale();
        wbt
    }

    /// Whether writeback may have another request now. False: the task waits until `completed` or `look` names it.
    /// `sync`: somebody waits for what is written (fsync).
    pub(super) fn allows(&mut self, now: Time, task: TaskId, sync: bool) -> bool {
        let may = self.waiting.is_empty() && self.in_use < self.limit(now, sync);
        if !may && !self.waiting.contains(&task) {
            self.waiting.push_back(task);
        }
        may
    }

    /// Writeback has got a request.
    pub(super) fn took(&mut self, now: Time) {
        self.in_use += 1;
        if self.window_ends.is_none() {
            self.begin_window(now);
        }
    }

    /// The request has gone to the device.
    pub(super) fn issued(&mut self, now: Time, id: RequestId, request: &Request) {
        if request.direction == Direction::Read && self.waited_read.is_none() {
            self.waited_read = Some((id, now));
        }
    }

    /// The device has completed the request: who may try again is appended.
    pub(super) fn completed(
        &mut self,
        now: Time,
        id: RequestId,
        request: &Request,
        may_retry: &mut Vec<TaskId>,
    ) {
        let took = now - request.issued_at.unwrap_or(now);
        match request.direction {
            Direction::Read => {
                self.fastest_read_ns = Some(self.fastest_read_ns.unwrap_or(took).min(took));
                self.waited_read.take_if(|(read, _)| *read == id);
            }
            Direction::Write => self.writes += 1,
        }
        if request.writeback {
            self.gave_back(now, may_retry);
        }
    }

    /// Two requests have become one; who waits is woken later.
    pub(super) fn merged(&mut self) {
        self.in_use -= 1;
    }

    fn gave_back(&mut self, now: Time, may_retry: &mut Vec<TaskId>) {
        self.in_use -= 1;
        // A volatile cache takes a few writes at once and then is slow: it gets time to write.
        let limit = match self.rules.write_cache && !self.was_held(now) {
            true => 0,
            false => self.normal,
        };
        let wakes =
            self.in_use == 0 || self.in_use < limit && limit - self.in_use >= self.background / 2;
        if wakes {
            may_retry.extend(self.waiting.drain(..));
        }
    }

    /// A writer sleeps because too much is dirty.
    pub(super) fn held_a_writer(&mut self, now: Time) {
        self.last_held = Some(now);
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.window_ends
    }

    /// The window has ended: who may try again is appended.
    pub(super) fn look(&mut self, now: Time, may_retry: &mut Vec<TaskId>) {
        let before = self.step;
        match self.finding(now) {
            Finding::Slow => self.scale_down(true),
            Finding::Fast | Finding::WritesOnly => self.scale_up(),
            Finding::Nothing => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_MAX && self.step > 0 {
                    self.scale_up();
                } else if self.unknown >= UNKNOWN_MAX && self.step < 0 {
                    self.scale_down(false);
                }
            }
        }
        if self.step < before || self.in_use == 0 {
            may_retry.extend(self.waiting.drain(..));
        }
        self.window_ends = None;
        if self.step != 0 || self.in_use > 0 {
            self.begin_window(now);
        }
    }

    fn finding(&self, now: Time) -> Finding {
        let waits_ns = self.waited_read.map_or(0, |(_, since)| now - since);
        let target_ns = self.rules.target_ns;
        let no_reads = self.fastest_read_ns.is_none();
        if waits_ns > self.window_ns || waits_ns > target_ns && no_reads {
            return Finding::Slow;
        }
        match self.fastest_read_ns {
            Some(fastest_ns) if self.writes >= WRITES_MIN => match fastest_ns > target_ns {
                true => Finding::Slow,
                false => Finding::Fast,
            },
            _ if self.writes > 0 || self.was_held(now) || self.in_use > 0 => Finding::WritesOnly,
            _ => Finding::Nothing,
        }
    }

    fn scale_up(&mut self) {
        if self.is_at_most {
            return;
        }
        self.step -= 1;
        self.rescale();
        self.unknown = 0;
    }

    /// `hard`: from what only writes were allowed, at once to the centre.
    fn scale_down(&mut self, hard: bool) {
        if self.depth == 1 {
            return;
        }
        self.step = match self.step < 0 && hard {
            true => 0,
            false => self.step + 1,
        };
        self.rescale();
        self.unknown = 0;
    }

    /// `rq_depth_calc_max_depth`, `calc_wb_limits`.
    fn rescale(&mut self) {
        let queue_depth = self.rules.queue_depth;
        self.is_at_most = false;
        if queue_depth == 1 {
            self.depth = if self.step > 0 { 1 } else { 2 };
            self.is_at_most = self.step <= 0;
        } else {
            let centre = DEPTH.min(queue_depth) - 1;
            let most = 3 * queue_depth / 4;
            let shift = self.step.unsigned_abs().min(16);
            self.depth = match self.step > 0 {
                true => 1 + (centre >> shift),
                false => 1 + (centre << shift),
            };
            if self.step < 0 && self.depth > most {
                self.depth = most.max(1);
                self.is_at_most = true;
            }
        }
        (self.normal, self.background) = match self.depth {
            ..=2 => (self.depth, 1),
            depth => (depth.div_ceil(2), (depth + 3) / 4),
        };
    }

    fn limit(&self, now: Time, sync: bool) -> u32 {
        match sync || self.was_held(now) {
            true => self.depth,
            // All that is not for fsync is in the background, from 3.2 on: writers do not write back themselves.
            false => self.background,
        }
    }

    fn was_held(&self, now: Time) -> bool {
        self.last_held.is_some_and(|since| now < since + HELD_NS)
    }

    fn begin_window(&mut self, now: Time) {
        // 16.16 to the root of 256 times the steps: 1 / sqrt(step + 1).
        self.window_ns = match u64::try_from(self.step) {
            Ok(step) if step > 0 => (WINDOW_NS << 4) / ((step + 1) << 8).isqrt(),
            _ => WINDOW_NS,
        };
        self.window_ends = Some(now + self.window_ns);
        self.fastest_read_ns = None;
        self.writes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::invariants::bench::bio;
    use crate::slab::Slab;

    const TARGET_NS: Time = 2 * MILLISECOND;

    fn wbt(write_cache: bool) -> Wbt {
        Wbt::new(WbtRules {
            target_ns: TARGET_NS,
            queue_depth: 64,
            write_cache,
        })
    }

    fn request(direction: Direction, issued_at: Time) -> (RequestId, Request) {
        let mut requests = Slab::new();
        let request = Request {
            issued_at: Some(issued_at),
            writeback: direction == Direction::Write,
            ..Request::like(&bio(issued_at, direction, 0))
        };
        (requests.put(request.clone()), request)
    }

    /// A window with some writes, and reads that take so long.
    fn window(wbt: &mut Wbt, now: &mut Time, read_ns: Option<Time>) {
        for _ in 0..WRITES_MIN {
            wbt.took(*now);
            let (id, write) = request(Direction::Write, *now);
            wbt.completed(*now, id, &write, &mut Vec::new());
        }
        if let Some(took) = read_ns {
            let (id, read) = request(Direction::Read, *now);
            wbt.completed(*now + took, id, &read, &mut Vec::new());
        }
        *now = wbt.next_wakeup().expect("a window is open");
        wbt.look(*now, &mut Vec::new());
    }

    #[test]
    fn slow_reads_halve_the_requests_of_writeback_and_fast_ones_double_them() {
        let (mut wbt, mut now) = (wbt(false), 0);
        let mut depths = vec![(wbt.depth, wbt.background)];
        for _ in 0..4 {
            window(&mut wbt, &mut now, Some(TARGET_NS + 1));
            depths.push((wbt.depth, wbt.background));
        }
        assert_eq!(depths, [(16, 4), (8, 2), (4, 1), (2, 1), (1, 1)]);
        window(&mut wbt, &mut now, Some(TARGET_NS));
        assert_eq!(wbt.depth, 2);
    }

    #[test]
    fn windows_get_shorter_while_reads_are_slow() {
        let (mut wbt, mut now) = (wbt(false), 0);
        for _ in 0..3 {
            window(&mut wbt, &mut now, Some(TARGET_NS + 1));
        }
        assert_eq!(wbt.window_ns, WINDOW_NS / 2, "1 / sqrt(3 + 1)");
    }

    #[test]
    fn writes_alone_get_up_to_three_quarters_of_the_device_and_lose_them_to_one_slow_read() {
        let (mut wbt, mut now) = (wbt(false), 0);
        for _ in 0..5 {
            window(&mut wbt, &mut now, None);
        }
        assert_eq!(wbt.depth, 48);
        window(&mut wbt, &mut now, Some(TARGET_NS + 1));
        assert_eq!((wbt.depth, wbt.step), (16, 0));
    }

    #[test]
    fn a_read_that_does_not_come_back_counts_as_slow() {
        let mut wbt = wbt(false);
        wbt.took(0);
        let (id, read) = request(Direction::Read, 0);
        wbt.issued(0, id, &read);
        wbt.look(WINDOW_NS, &mut Vec::new());
        assert_eq!(wbt.depth, 8);
    }

    #[test]
    fn background_writeback_has_a_quarter_and_all_of_it_once_a_writer_is_held() {
        let mut wbt = wbt(false);
        let take = |wbt: &mut Wbt, sync| {
            (0..99)
                .take_while(|_| wbt.allows(0, 1, sync).then(|| wbt.took(0)).is_some())
                .count()
        };
        assert_eq!(take(&mut wbt, false), 4);
        wbt.waiting.clear();
        assert_eq!(take(&mut wbt, true), 12, "of fsync: up to 16");
        wbt.waiting.clear();
        wbt.in_use = 4;
        wbt.held_a_writer(0);
        assert_eq!(take(&mut wbt, false), 12);
    }

    #[test]
    fn behind_a_volatile_cache_writeback_waits_until_all_of_it_is_written() {
        for (write_cache, woken_with) in [(false, 6), (true, 0)] {
            let mut wbt = wbt(write_cache);
            (0..16).for_each(|_| wbt.took(0));
            assert!(!wbt.allows(0, 7, false));
            let mut woken = Vec::new();
            while woken.is_empty() {
                let (id, write) = request(Direction::Write, 0);
                wbt.completed(1, id, &write, &mut woken);
            }
            assert_eq!((woken, wbt.in_use), (vec![7], woken_with));
        }
    }
}
