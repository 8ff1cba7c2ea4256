//! The search for the largest queue depth that keeps a latency.
//!
//! A depth is tried for a window. It doubles as long as windows meet the target, then the gap between the largest depth
//! that did and the smallest that did not is halved until it closes. The depth so found runs one more window, the
//! measured one; where that misses the target, the next smaller depth is taken. Between two windows nothing is in
//! flight, so that no window pays for the depth of the one before.

use crate::spec::DepthSearch;
use base::time::Time;
use base::units::format_duration_ns;

/// The state of a search.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    spec: DepthSearch,
    depth_max: u32,
    /// The largest depth that met the target; 0: none yet.
    low: u32,
    /// The smallest that missed it; above `depth_max`: none yet.
    high: u32,
    depth: u32,
    stage: Stage,
    window: Window,
    windows: Vec<Window>,
    measures_anew: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A window is open.
    Trying,
    /// The last window of the depth that was found is open.
    Found,
    /// Until nothing is in flight; then a window opens at `depth`, as the last one if it is the depth that was found.
    Draining { found: bool },
    /// The depth was found and the job continues at it, or ends.
    Over,
    /// Not even one operation at a time is fast enough.
    Missed,
}

/// What one depth showed for the length of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Window {
    /// Operations in flight at once.
    pub queue_depth: u32,
    /// When the window opened.
    pub start_ns: Time,
    /// Operations that completed in it.
    pub count: u64,
    /// Those of them that were slower than the target, or failed.
    pub late: u64,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct DepthSearchResult {
    /// The latency that was looked for, in nanoseconds.
    pub target_ns: u64,
    /// The share of operations that had to have it, 0 to 1.
    pub share: f64,
    /// The largest depth that met the target; null if none does, or the job ended before it was known.
    pub queue_depth: Option<u32>,
    /// Whether even a depth of one missed the target.
    pub missed: bool,
    /// The windows that were closed, in order.
    pub windows: Vec<Window>,
}

impl Search {
    /// Begins at `start` with one operation at a time.
    pub fn new(spec: DepthSearch, start: Time, depth_max: u32) -> Search {
        Search {
            spec,
            depth_max,
            low: 0,
            high: depth_max.saturating_add(1),
            depth: 1,
            stage: Stage::Trying,
            window: Window::at(1, start),
            windows: Vec::new(),
            measures_anew: false,
        }
    }

    /// How many operations may be in flight now.
    pub fn depth(&self) -> u32 {
        match self.stage {
            Stage::Draining { .. } => 0,
            _ => self.depth,
        }
    }

    /// The job has nothing more to do.
    pub fn is_over(&self) -> bool {
        match self.stage {
            Stage::Over => !self.spec.goes_on,
            Stage::Missed => true,
            _ => false,
        }
    }

    /// True once after each time that the depth was found.
    pub fn measures_anew(&mut self) -> bool {
        std::mem::take(&mut self.measures_anew)
    }

    pub fn searched(&self) -> DepthSearchResult {
        let found = matches!(self.stage, Stage::Over);
        DepthSearchResult {
            target_ns: self.spec.target_ns,
            share: self.spec.share,
            queue_depth: found.then_some(self.depth),
            missed: self.stage == Stage::Missed,
            windows: self.windows.clone(),
        }
    }

    /// A read or write completed `latency_ns` after it was due.
    pub fn completed(&mut self, now: Time, latency_ns: u64, succeeded: bool) {
        if !matches!(self.stage, Stage::Trying | Stage::Found) {
            return;
        }
        let is_late = latency_ns > self.spec.target_ns || !succeeded;
        self.window.count += 1;
        self.window.late += u64::from(is_late);
        let is_closed = now.saturating_sub(self.window.start_ns) >= self.spec.window_ns;
        // With every operation bound to the target, the first that misses it decides.
        if is_closed || (is_late && self.spec.share >= 1.0) {
            self.close();
        }
    }

    /// Nothing is in flight any more.
    pub fn drained(&mut self, now: Time) {
        if let Stage::Draining { found } = self.stage {
            self.stage = if found { Stage::Found } else { Stage::Trying };
            self.measures_anew = found;
            self.window = Window::at(self.depth, now);
        }
    }

    fn close(&mut self) {
        self.windows.push(self.window);
        let in_time = (self.window.count - self.window.late) as f64;
        let is_met = in_time >= self.spec.share * self.window.count as f64;
        if is_met && self.stage == Stage::Found {
            self.stage = Stage::Over;
            return;
        }
        if is_met {
            self.low = self.depth;
        } else {
            self.high = self.depth;
            // What a shorter look found good is no longer.
            self.low = self.low.min(self.high - 1);
        }
        self.stage = match self.next_depth() {
            0 => Stage::Missed,
            depth => {
                self.depth = depth;
                Stage::Draining { found: self.low + 1 == self.high }
            }
        };
    }

    /// The next depth to look at, which is `low` once nothing lies between.
    fn next_depth(&self) -> u32 {
        if self.low + 1 == self.high {
            self.low
        } else if self.high > self.depth_max {
            self.low.saturating_mul(2).min(self.depth_max)
        } else {
            self.low + (self.high - self.low) / 2
        }
    }
}

impl DepthSearchResult {
    /// The outcome in a line, for the notes of the job's group.
    pub fn note(&self, job: &str) -> String {
        let tried: Vec<String> = self.windows.iter().map(|window| window.queue_depth.to_string()).collect();
        let tried = tried.join(", ");
        let target = format_duration_ns(self.target_ns);
        let wanted = format!("{} % of the I/Os within {target}", self.share * 100.0);
        let in_time = self.windows.last().map_or(0.0, Window::percent_in_time);
        match self.queue_depth {
            Some(depth) => {
                format!("job {job:?}: queue depth {depth} keeps {wanted}: {in_time:.2} % were (tried: {tried})")
            }
            None if self.missed => {
                format!("job {job:?}: no queue depth keeps {wanted}: at depth 1, {in_time:.2} % were (tried: {tried})")
            }
            None => format!(
                "job {job:?}: it ended before the queue depth that keeps {wanted} was known (tried: {})",
                if tried.is_empty() { "none for a whole window" } else { &tried }
            ),
        }
    }
}

impl Window {
    /// The share of operations in time, 0 to 100. A window is closed by a completion, so it has some.
    fn percent_in_time(&self) -> f64 {
        (self.count - self.late) as f64 / self.count.max(1) as f64 * 100.0
    }

    fn at(queue_depth: u32, start_ns: Time) -> Window {
        Window { queue_depth, start_ns, count: 0, late: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET_NS: u64 = 100;
    const WINDOW_NS: u64 = 1_000;

    fn search(share: f64, depth_max: u32) -> Search {
        let spec = DepthSearch { target_ns: TARGET_NS, window_ns: WINDOW_NS, share, goes_on: false };
        Search::new(spec, 0, depth_max)
    }

    /// Each depth's operations have the latency of `latency_ns`; one in ten is of the depth's own.
    fn run(search: &mut Search, latency_ns: impl Fn(u32, u64) -> u64) -> DepthSearchResult {
        let mut now = 0;
        for number in 0..1_000_000 {
            if search.is_over() {
                break;
            }
            let depth = search.depth();
            if depth == 0 {
                search.drained(now);
                continue;
            }
            now += 10;
            search.completed(now, latency_ns(depth, number), true);
        }
        search.searched()
    }

    #[test]
    fn the_largest_depth_that_keeps_the_target_is_found_whatever_it_is() {
        for depth_max in 1..=40 {
            for good in 1..=depth_max {
                let searched =
                    run(&mut search(0.9, depth_max), |depth, _| if depth <= good { TARGET_NS } else { TARGET_NS + 1 });
                assert_eq!(searched.queue_depth, Some(good), "of {depth_max}");
                let last = searched.windows.last().unwrap();
                assert_eq!((last.queue_depth, last.late), (good, 0));
                // Doubling, halving, and the measured window.
                assert!(searched.windows.len() as u32 <= 2 * depth_max.ilog2() + 4);
            }
        }
    }

    #[test]
    fn a_share_of_late_operations_is_borne_and_no_more() {
        let every_tenth = |_: u32, number: u64| if number.is_multiple_of(10) { 500 } else { 50 };
        let borne = run(&mut search(0.8, 16), every_tenth);
        assert_eq!(borne.queue_depth, Some(16));
        let strict = run(&mut search(0.95, 16), every_tenth);
        assert!(strict.missed && strict.queue_depth.is_none());
        assert_eq!(strict.windows.len(), 1);
    }

    #[test]
    fn the_first_late_operation_decides_where_none_may_be_late() {
        let searched = run(&mut search(1.0, 8), |depth, _| if depth > 4 { 500 } else { 50 });
        assert_eq!(searched.queue_depth, Some(4));
        let missed: Vec<_> = searched.windows.iter().filter(|window| window.late > 0).collect();
        assert!(missed.iter().all(|window| window.count == 1), "{missed:?}");
    }

    #[test]
    fn a_depth_that_fails_in_its_measured_window_gives_way_to_the_next_smaller() {
        let mut search = search(0.9, 4);
        // 1, 2 and 4 are met; the measured window at 4 is not, nor is that at 3.
        let mut windows_at = [0; 5];
        let mut now = 0;
        let mut anew = 0;
        while !search.is_over() {
            if search.depth() == 0 {
                search.drained(now);
                anew += u32::from(search.measures_anew());
                windows_at[search.depth() as usize] += 1;
                continue;
            }
            let depth = search.depth();
            let is_bad = depth == 3 || (depth == 4 && windows_at[4] > 1);
            now += WINDOW_NS;
            search.completed(now, if is_bad { 500 } else { 50 }, true);
        }
        assert_eq!(search.searched().queue_depth, Some(2));
        assert_eq!(anew, 3, "each time the measured part begins anew");
    }

    #[test]
    fn the_note_says_what_was_tried_and_what_came_of_it() {
        let found = run(&mut search(0.9, 8), |depth, _| if depth > 2 { 500 } else { 50 });
        assert_eq!(
            found.note("a"),
            "job \"a\": queue depth 2 keeps 90 % of the I/Os within 100ns: 100.00 % were (tried: 1, 2, 4, 3, 2)"
        );
        let missed = run(&mut search(0.9, 8), |_, _| 500).note("a");
        assert!(missed.contains("no queue depth keeps") && missed.contains("0.00 % were"), "{missed}");
        let early = search(0.9, 8).searched().note("a");
        assert!(early.contains("ended before") && early.contains("none for a whole"), "{early}");
    }

    #[test]
    fn failed_operations_are_late_and_a_job_that_ends_early_has_found_nothing() {
        let mut search = search(1.0, 4);
        search.completed(10, 1, true);
        assert_eq!(search.searched().queue_depth, None);
        assert!(!search.searched().missed);
        search.completed(20, 1, false);
        assert!(search.searched().missed && search.is_over());
    }
}
