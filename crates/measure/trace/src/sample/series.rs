//! Readings over time in bounded memory: neighbours are pooled and the interval doubles when there would be too many.

use std::time::Duration;

/// What is read at a point in time: counters since boot, and levels.
pub trait Reading {
    /// Takes in the reading that follows: counters become the later ones, levels are pooled.
    fn absorb(&mut self, later: Self);
}

/// A level over the readings that were pooled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    sum: f64,
    /// The highest of the readings.
    pub max: f64,
    readings: u32,
}

impl Level {
    /// The level of a single reading.
    pub fn of(value: f64) -> Level {
        Level { sum: value, max: value, readings: 1 }
    }

    /// The mean of the readings.
    pub fn mean(&self) -> f64 {
        self.sum / f64::from(self.readings)
    }

    /// Pools it with readings that follow.
    pub fn absorb(&mut self, later: Level) {
        self.sum += later.sum;
        self.max = self.max.max(later.max);
        self.readings += later.readings;
    }
}

/// What was read first, and then the reading at the end of each interval.
#[derive(Debug)]
pub struct Series<R> {
    first: TimedReading<R>,
    ends: Vec<TimedReading<R>>,
    intervals_max: usize,
    interval: Duration,
}

#[derive(Debug)]
struct TimedReading<R> {
    at_ns: u64,
    reading: R,
}

/// From one reading to the next.
pub struct Interval<'a, R> {
    /// Time of the earlier reading.
    pub start_ns: u64,
    /// Time of the later one.
    pub end_ns: u64,
    /// What was read at the start.
    pub before: &'a R,
    /// What was read at the end.
    pub after: &'a R,
}

impl<R> Interval<'_, R> {
    /// The interval's length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / 1e9
    }
}

impl<R: Reading> Series<R> {
    /// Keeps at most `intervals_max` intervals, an even number; the first are `interval` long.
    pub fn new(at_ns: u64, reading: R, interval: Duration, intervals_max: usize) -> Series<R> {
        Series {
            first: TimedReading { at_ns, reading },
            ends: Vec::new(),
            intervals_max: (intervals_max & !1).max(2),
            interval,
        }
    }

    /// How long after a reading the next is due.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Intervals have a length: a reading that is no later than the last is pooled with it.
    pub fn add(&mut self, at_ns: u64, reading: R) {
        let last = self.ends.last_mut();
        if at_ns <= last.as_ref().map_or(self.first.at_ns, |last| last.at_ns) {
            last.unwrap_or(&mut self.first).reading.absorb(reading);
            return;
        }
        if self.ends.len() == self.intervals_max {
            self.double();
        }
        self.ends.push(TimedReading { at_ns, reading });
    }

    /// The intervals in order of time, one per reading after the first.
    pub fn intervals(&self) -> impl Iterator<Item = Interval<'_, R>> {
        let starts = std::iter::once(&self.first).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| Interval {
            start_ns: start.at_ns,
            end_ns: end.at_ns,
            before: &start.reading,
            after: &end.reading,
        })
    }

    /// All that are kept, the first included.
    pub fn readings(&self) -> impl Iterator<Item = &R> {
        let timed = std::iter::once(&self.first).chain(&self.ends);
        timed.map(|timed| &timed.reading)
    }

    fn double(&mut self) {
        let mut pairs = std::mem::take(&mut self.ends).into_iter();
        while let Some(mut first) = pairs.next() {
            if let Some(second) = pairs.next() {
                first.at_ns = second.at_ns;
                first.reading.absorb(second.reading);
            }
            self.ends.push(first);
        }
        self.interval *= 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug)]
    struct Both {
        counter: u64,
        level: Level,
    }

    impl Reading for Both {
        fn absorb(&mut self, later: Both) {
            self.counter = later.counter;
            self.level.absorb(later.level);
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_many_readings(steps in prop::collection::vec((1u64..1000, 0u64..50), 1..200)) {
            let both = |value: u64| Both { counter: value, level: Level::of(value as f64) };
            let (mut now, mut counter) = (5, 0);
            let mut series = Series::new(now, both(0), Duration::from_millis(1), 16);
            for &(wait, more) in &steps {
                now += wait;
                counter += more;
                series.add(now, both(counter));
            }
            let intervals: Vec<_> = series.intervals().collect();
            prop_assert!(intervals.len() <= 16);
            prop_assert_eq!((intervals[0].start_ns, intervals.last().unwrap().end_ns), (5, now));
            for pair in intervals.windows(2) {
                prop_assert_eq!(pair[0].end_ns, pair[1].start_ns);
            }
            let counted: u64 = intervals.iter().map(|one| one.after.counter - one.before.counter).sum();
            prop_assert_eq!(counted, counter);
            let readings: u32 = intervals.iter().map(|one| one.after.level.readings).sum();
            prop_assert_eq!(readings as usize, steps.len());
            let highest = intervals.iter().map(|one| one.after.level.max).fold(0.0, f64::max);
            prop_assert_eq!(highest, counter as f64);
        }
    }

    #[test]
    fn the_interval_doubles_with_what_it_holds() {
        let level = |value: f64| Both { counter: 0, level: Level::of(value) };
        let mut series = Series::new(0, level(0.0), Duration::from_millis(10), 4);
        for step in 1..=5 {
            series.add(step * 10, level(step as f64));
        }
        assert_eq!(series.interval(), Duration::from_millis(20));
        let means: Vec<f64> = series.intervals().map(|one| one.after.level.mean()).collect();
        assert_eq!(means, [1.5, 3.5, 5.0]);
    }
}
