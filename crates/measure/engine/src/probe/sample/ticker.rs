//! A thread that reads at an interval until it is stopped, and counts what the reading costs.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trace::sample::Times;

use super::series::{Reading, Series};
use crate::usage::thread_clock_ns;

/// Something in the system that can be read again and again.
pub trait Source: Send + 'static {
    type Reading: Reading + Send + 'static;

    fn read(&mut self) -> io::Result<Self::Reading>;

    /// Most intervals to be kept.
    fn intervals_max(&self) -> usize;
}

/// A source that is being read.
pub struct Ticker<S: Source> {
    stop: Sender<()>,
    thread: JoinHandle<SampledSource<S>>,
}

/// Everything that was read of a source.
pub struct SampledSource<S: Source> {
    pub source: S,
    pub series: Series<S::Reading>,
    pub times: Times,
}

impl<S: Source> Ticker<S> {
    /// Reads once before it returns; that reading's error is this call's.
    pub fn start(name: &str, mut source: S, interval: Duration) -> io::Result<Ticker<S>> {
        let started = Instant::now();
        let started_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let first = source.read()?;
        let series = Series::new(0, first, interval, source.intervals_max());
        let (stop, stopped) = channel();
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(move || watch(source, series, &stopped, started, started_unix_ns))?;
        Ok(Ticker { stop, thread })
    }

    /// Reads a last time. None if the thread broke down.
    pub fn stop(self) -> Option<SampledSource<S>> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

fn watch<S: Source>(
    mut source: S,
    mut series: Series<S::Reading>,
    stopped: &Receiver<()>,
    started: Instant,
    started_unix_ns: u64,
) -> SampledSource<S> {
    let (mut readings, mut readings_failed) = (1, 0);
    let mut due = series.interval();
    let mut running = true;
    while running {
        let wait = due.saturating_sub(started.elapsed());
        running = stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
        let reading = source.read();
        readings += 1;
        match reading {
            Ok(reading) => series.add(nanoseconds(started.elapsed()), reading),
            Err(_) => readings_failed += 1,
        }
        // Late readings are not made up for: what matters is how far apart they are.
        due = due.max(started.elapsed().saturating_sub(series.interval())) + series.interval();
    }
    let times = Times {
        started_unix_ns,
        elapsed_ns: nanoseconds(started.elapsed()),
        interval_ns: nanoseconds(series.interval()),
        readings,
        readings_failed,
        cost_cpu_ns: Some(thread_clock_ns()),
    };
    SampledSource { source, series, times }
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// How often it was read.
    #[derive(Clone, Default)]
    struct Count(Arc<AtomicU64>);

    struct Last(u64);

    impl Reading for Last {
        fn absorb(&mut self, later: Last) {
            *self = later;
        }
    }

    impl Source for Count {
        type Reading = Last;

        fn read(&mut self) -> io::Result<Last> {
            match self.0.fetch_add(1, Ordering::Relaxed) + 1 {
                3 => Err(io::Error::other("once")),
                readings => Ok(Last(readings)),
            }
        }

        fn intervals_max(&self) -> usize {
            8
        }
    }

    #[test]
    fn reads_from_start_to_stop_and_survives_a_failed_reading() {
        let count = Count::default();
        let ticker = Ticker::start("count", count.clone(), Duration::from_millis(1)).unwrap();
        let started = Instant::now();
        while count.0.load(Ordering::Relaxed) < 5 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let asked_ns = nanoseconds(started.elapsed());
        let observed = ticker.stop().unwrap();
        let intervals: Vec<_> = observed.series.intervals().collect();
        assert_eq!(intervals[0].before.0, 1);
        let readings = count.0.load(Ordering::Relaxed);
        assert_eq!(intervals.last().unwrap().after.0, readings);
        assert_eq!(observed.times.readings, readings);
        assert_eq!(observed.times.readings_failed, 1);
        assert!(observed.times.elapsed_ns >= asked_ns);
        assert!(observed.times.cost_cpu_ns > Some(0));
    }

    #[test]
    fn stops_without_waiting_for_the_interval() {
        let started = Instant::now();
        let ticker = Ticker::start("count", Count::default(), Duration::from_secs(3600)).unwrap();
        assert_eq!(ticker.stop().unwrap().times.readings, 2);
        assert!(started.elapsed() < Duration::from_secs(600));
    }

    #[test]
    fn the_first_error_is_that_of_the_start() {
        let count = Count(Arc::new(AtomicU64::new(2)));
        assert!(Ticker::start("count", count, Duration::from_millis(1)).is_err());
    }
}
