//! Whether a job's rate is steady, as fio's `steadystate` defines it (steadystate.c of fio 3.41).
//!
//! The rate of each interval goes into a window of the last ones. Once the window is full, each interval's end looks at
//! all of it: the rate is steady if no value lies further from their mean than a limit, or if the line through them by
//! least squares rises or falls by less than a limit from one interval to the next.

use std::collections::VecDeque;

use crate::spec::{RateKind, SteadyCriterion, SteadyState};
use base::time::{SECOND, Time};
use base::units::format_duration_ns;

/// The state of the search for a steady rate.
#[derive(Clone, Debug)]
pub(crate) struct UntilSteady {
    spec: SteadyState,
    /// Start of the interval that is open.
    opened: Time,
    /// What completed in it: operations, or their bytes.
    amount: u64,
    /// Rates per second of the last intervals, oldest first; as many as the window holds, at most.
    window: VecDeque<f64>,
    criterion: Option<f64>,
    reached: Option<Time>,
}

/// What the search for a steady rate came to.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Steadiness {
    /// What had to be steady.
    pub wanted: SteadyState,
    /// When it was, since the start of the phase; null if it was not before the job ended.
    pub reached_ns: Option<Time>,
    /// What the last full window showed, in the limit's unit; null if no window was full, or nothing completed in it.
    pub criterion: Option<f64>,
    /// Mean rate per second of the last full window; null if none was full.
    pub mean_per_s: Option<f64>,
}

impl UntilSteady {
    /// Begins at `start`, when the job does.
    pub fn new(spec: SteadyState, start: Time) -> UntilSteady {
        UntilSteady {
            spec,
            opened: start.saturating_add(spec.ramp_ns),
            amount: 0,
            window: VecDeque::with_capacity(spec.intervals()),
            criterion: None,
            reached: None,
        }
    }

    pub fn is_reached(&self) -> bool {
        self.reached.is_some()
    }

    /// A read or write of `bytes` succeeded.
    pub fn completed(&mut self, now: Time, bytes: u32) {
        while self.reached.is_none() && now >= self.opened.saturating_add(self.spec.interval_ns) {
            self.close();
        }
        if now >= self.opened {
            self.amount += match self.spec.of {
                RateKind::Operations => 1,
                RateKind::Bytes => u64::from(bytes),
            };
        }
    }

    pub fn steadiness(&self) -> Steadiness {
        Steadiness {
            wanted: self.spec,
            reached_ns: self.reached,
            criterion: self.criterion,
            mean_per_s: self.is_full().then(|| self.mean()),
        }
    }

    fn close(&mut self) {
        let seconds = self.spec.interval_ns as f64 / SECOND as f64;
        if self.is_full() {
            self.window.pop_front();
        }
        self.window.push_back(self.amount as f64 / seconds);
        self.amount = 0;
        self.opened += self.spec.interval_ns;
        if self.is_full() {
            self.criterion = self.judge();
            if self.criterion.is_some_and(|found| found < self.spec.limit) {
                self.reached = Some(self.opened);
            }
        }
    }

    fn judge(&self) -> Option<f64> {
        let mean = self.mean();
        let found = match self.spec.by {
            SteadyCriterion::Deviation => self
                .window
                .iter()
                .map(|rate| (rate - mean).abs())
                .fold(0.0, f64::max),
            SteadyCriterion::Slope => self.slope(mean).abs(),
        };
        match self.spec.in_percent {
            true if mean == 0.0 => None,
            true => Some(100.0 * found / mean),
            false => Some(found),
        }
    }

    /// Of the line through the window by least squares, per interval.
    fn slope(&self, mean: f64) -> f64 {
        let middle = (self.window.len() - 1) as f64 / 2.0;
        let (along, squares) =
            self.window
                .iter()
                .enumerate()
                .fold((0.0, 0.0), |(along, squares), (place, rate)| {
                    let from_middle = place as f64 - middle;
                    (
                        along + from_middle * (rate - mean),
                        squares + from_middle * from_middle,
                    )
                });
        along / squares
    }

    fn mean(&self) -> f64 {
        self.window.iter().sum::<f64>() / self.window.len() as f64
    }

    fn is_full(&self) -> bool {
        self.window.len() == self.spec.intervals()
    }
}

impl SteadyState {
    /// Intervals in a window.
    pub(crate) fn intervals(&self) -> usize {
        usize::try_from(self.window_ns / self.interval_ns.max(1)).unwrap_or(usize::MAX)
    }
}

impl Steadiness {
    /// The outcome in a line, for the notes of the job's group.
    pub fn note(&self, job: &str) -> String {
        let wanted = &self.wanted;
        let window = format_duration_ns(wanted.window_ns);
        let Some(found) = self.criterion else {
            return format!(
                "job {job:?}: steady state not reached: it ended before a window of {window} was full"
            );
        };
        let (rate, unit) = match wanted.of {
            RateKind::Operations => ("IOPS", "IOPS"),
            RateKind::Bytes => ("rate", "bytes/s"),
        };
        let what = match wanted.by {
            SteadyCriterion::Deviation => format!("largest distance of the {rate} from the mean"),
            SteadyCriterion::Slope => format!("slope of the {rate} per interval"),
        };
        let unit = if wanted.in_percent { "%" } else { unit };
        let figures = format!("{what} {found:.3} {unit} over {window}");
        let limit = format!("{} {unit}", wanted.limit);
        match self.reached_ns {
            Some(at) => format!(
                "job {job:?}: steady state reached after {}: {figures}, below {limit}",
                format_duration_ns(at)
            ),
            None => {
                format!("job {job:?}: steady state not reached: {figures}, not below {limit}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Time = SECOND;

    fn spec(by: SteadyCriterion, limit: f64, in_percent: bool) -> SteadyState {
        SteadyState {
            of: RateKind::Operations,
            by,
            limit,
            in_percent,
            window_ns: 4 * INTERVAL,
            interval_ns: INTERVAL,
            ramp_ns: 0,
        }
    }

    /// This many operations in each interval, and one more after them, which closes the last.
    fn after(spec: SteadyState, rates: &[u64]) -> Steadiness {
        let mut search = UntilSteady::new(spec, 0);
        for (second, &rate) in (0..).zip(rates) {
            for number in 0..rate {
                search.completed(second * INTERVAL + number, 4096);
            }
        }
        search.completed(rates.len() as Time * INTERVAL, 4096);
        search.steadiness()
    }

    #[test]
    fn a_window_without_outliers_is_steady() {
        let spec = spec(SteadyCriterion::Deviation, 10.0, true);
        let found = after(spec, &[10, 100, 100, 104, 96]);
        assert_eq!(found.reached_ns, Some(5 * INTERVAL));
        assert_eq!(
            (found.criterion, found.mean_per_s),
            (Some(4.0), Some(100.0))
        );
        assert_eq!(
            found.note("a"),
            "job \"a\": steady state reached after 5s: largest distance of the IOPS from the mean 4.000 % over 4s, below 10 %"
        );
    }

    #[test]
    fn a_slope_is_the_change_per_interval_whichever_its_sign() {
        for rates in [[100, 110, 120, 130], [130, 120, 110, 100]] {
            let found = after(spec(SteadyCriterion::Slope, 10.0, false), &rates);
            assert_eq!((found.criterion, found.reached_ns), (Some(10.0), None));
            assert!(
                found
                    .note("a")
                    .contains("not reached: slope of the IOPS per interval 10.000 IOPS")
            );
            let found = after(spec(SteadyCriterion::Slope, 10.1, false), &rates);
            assert_eq!(found.reached_ns, Some(4 * INTERVAL));
        }
    }

    #[test]
    fn less_than_a_window_and_a_window_of_nothing_show_nothing() {
        let percent = spec(SteadyCriterion::Deviation, 1.0, true);
        for rates in [&[100, 100, 100][..], &[0, 0, 0, 0]] {
            let found = after(percent, rates);
            assert_eq!((found.criterion, found.reached_ns), (None, None));
        }
    }

    #[test]
    fn the_ramp_is_left_out_and_bytes_are_counted_as_bytes() {
        let of_bytes = SteadyState {
            of: RateKind::Bytes,
            ramp_ns: INTERVAL,
            ..spec(SteadyCriterion::Deviation, 1.0, true)
        };
        let found = after(of_bytes, &[7, 100, 100, 100, 100]);
        assert_eq!(found.reached_ns, Some(5 * INTERVAL));
        assert_eq!(found.mean_per_s, Some(409_600.0));
    }
}
