//! Whether a job's rate is steady, as fio's `steadystate` defines it (steadystate.c of fio 3.41), or SNIA's Solid State
//! Storage Performance Test Specification (version 2.0.2, 2020).
//!
//! The rate of each interval goes into a window of the last ones. Once the window is full, each interval's end looks at
//! all of it: the rate is steady if no value lies further from their mean than a limit, or if the line through them by
//! least squares rises or falls by less than a limit, from one interval to the next (fio) or over the window (SNIA, which
//! limits the distance between the highest and the lowest value besides).

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
    spread: Option<f64>,
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
    /// Its highest less its lowest rate, in the limit's unit; absent if there is no limit of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
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
            spread: None,
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
            spread: self.spread,
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
            let mean = self.mean();
            self.criterion = self.in_unit(self.judge(mean), mean);
            self.spread = self.spec.spread_limit.and_then(|_| self.in_unit(self.highest_less_lowest(), mean));
            let is_within = |found: Option<f64>, limit| found.is_some_and(|found| found < limit);
            let spread_is_within = self.spec.spread_limit.is_none_or(|limit| is_within(self.spread, limit));
            if is_within(self.criterion, self.spec.limit) && spread_is_within {
                self.reached = Some(self.opened);
            }
        }
    }

    fn judge(&self, mean: f64) -> f64 {
        match self.spec.by {
            SteadyCriterion::Deviation => self.window.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max),
            SteadyCriterion::Slope => self.slope(mean).abs(),
            SteadyCriterion::Excursion => self.slope(mean).abs() * (self.window.len() - 1) as f64,
        }
    }

    fn highest_less_lowest(&self) -> f64 {
        let highest = self.window.iter().copied().fold(f64::MIN, f64::max);
        let lowest = self.window.iter().copied().fold(f64::MAX, f64::min);
        highest - lowest
    }

    /// In the limits' unit; None: in percent of nothing.
    fn in_unit(&self, rate: f64, mean: f64) -> Option<f64> {
        match self.spec.in_percent {
            true if mean == 0.0 => None,
            true => Some(100.0 * rate / mean),
            false => Some(rate),
        }
    }

    /// Of the line through the window by least squares, per interval.
    fn slope(&self, mean: f64) -> f64 {
        let middle = (self.window.len() - 1) as f64 / 2.0;
        let (along, squares) = self.window.iter().enumerate().fold((0.0, 0.0), |(along, squares), (place, rate)| {
            let from_middle = place as f64 - middle;
            (along + from_middle * (rate - mean), squares + from_middle * from_middle)
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
            return format!("job {job:?}: steady state not reached: it ended before a window of {window} was full");
        };
        let (rate, unit) = match wanted.of {
            RateKind::Operations => ("IOPS", "IOPS"),
            RateKind::Bytes => ("rate", "bytes/s"),
        };
        let what = match wanted.by {
            SteadyCriterion::Deviation => format!("largest distance of the {rate} from the mean"),
            SteadyCriterion::Slope => format!("slope of the {rate} per interval"),
            SteadyCriterion::Excursion => format!("slope of the {rate}"),
        };
        let unit = if wanted.in_percent { "%" } else { unit };
        let spread = self.spread.map_or(String::new(), |spread| format!(" and spread {spread:.3} {unit}"));
        let figures = format!("{what} {found:.3} {unit}{spread} over {window}");
        let limit = match wanted.spread_limit {
            None => format!("{} {unit}", wanted.limit),
            Some(spread) => format!("{} and {spread} {unit}", wanted.limit),
        };
        match self.reached_ns {
            Some(at) => {
                format!("job {job:?}: steady state reached after {}: {figures}, below {limit}", format_duration_ns(at))
            }
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
            spread_limit: None,
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
        assert_eq!((found.criterion, found.mean_per_s), (Some(4.0), Some(100.0)));
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
            assert!(found.note("a").contains("not reached: slope of the IOPS per interval 10.000 IOPS"));
            let found = after(spec(SteadyCriterion::Slope, 10.1, false), &rates);
            assert_eq!(found.reached_ns, Some(4 * INTERVAL));
        }
    }

    #[test]
    fn by_snia_the_line_and_the_values_stay_within_shares_of_the_mean() {
        let snia = SteadyState { spread_limit: Some(20.0), ..spec(SteadyCriterion::Excursion, 10.0, true) };
        // The line rises by 1.8 an interval.
        let found = after(snia, &[50, 100, 91, 109, 100]);
        assert_eq!(found.reached_ns, Some(5 * INTERVAL));
        let close = |found: Option<f64>, to: f64| (found.unwrap() - to).abs() < 1e-9;
        assert!(close(found.criterion, 5.4) && close(found.spread, 18.0), "{found:?}");
        assert!(
            found.note("a").contains("slope of the IOPS 5.400 % and spread 18.000 % over 4s, below 10 and 20 %"),
            "{}",
            found.note("a")
        );
        let too_steep = after(snia, &[94, 98, 102, 106]);
        assert!(close(too_steep.criterion, 12.0) && close(too_steep.spread, 12.0));
        let too_wide = after(snia, &[100, 89, 111, 100]);
        assert!(too_wide.criterion.unwrap() < 10.0 && close(too_wide.spread, 22.0));
        assert_eq!((too_steep.reached_ns, too_wide.reached_ns), (None, None));
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
        let of_bytes =
            SteadyState { of: RateKind::Bytes, ramp_ns: INTERVAL, ..spec(SteadyCriterion::Deviation, 1.0, true) };
        let found = after(of_bytes, &[7, 100, 100, 100, 100]);
        assert_eq!(found.reached_ns, Some(5 * INTERVAL));
        assert_eq!(found.mean_per_s, Some(409_600.0));
    }
}
