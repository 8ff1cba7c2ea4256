//! Whether arrivals come evenly: how their number varies from window to window, for windows of several lengths.

use serde::Serialize;

/// Arrivals counted in windows of each length.
#[derive(Clone, Debug)]
pub(super) struct Bursts {
    /// When the first arrived.
    first_ns: Option<u64>,
    of_lengths: Vec<Windows>,
}

#[derive(Clone, Debug, Default)]
struct Windows {
    length_ns: u64,
    /// When the present one began.
    began_ns: u64,
    current: u64,
    in_current: u64,
    windows: u64,
    sum: f64,
    squares: f64,
    most: u64,
    empty: u64,
}

/// Arrivals in windows of one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BurstFigures {
    /// The length of a window.
    pub window_ns: u64,
    /// Whole windows from the first arrival to the last.
    pub windows: u64,
    /// Arrivals in one, on average.
    pub mean: f64,
    /// Variance over mean: 1 for independent arrivals, 0 for those of a clock, more for bursts.
    pub dispersion: Option<f64>,
    /// The most arrivals in one.
    pub most: u64,
    /// Share of windows without any.
    pub empty_share: f64,
}

const LENGTHS_NS: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

impl Bursts {
    pub(super) fn new() -> Bursts {
        let of = |length_ns| Windows { length_ns, ..Windows::default() };
        Bursts { first_ns: None, of_lengths: LENGTHS_NS.into_iter().map(of).collect() }
    }

    /// The next arrival.
    #[inline]
    pub(super) fn add(&mut self, at_ns: u64) {
        let since_ns = at_ns.saturating_sub(*self.first_ns.get_or_insert(at_ns));
        for windows in &mut self.of_lengths {
            // Before it, too: the difference wraps.
            if since_ns.wrapping_sub(windows.began_ns) >= windows.length_ns {
                windows.next(since_ns / windows.length_ns);
            }
            windows.in_current += 1;
        }
    }

    /// The last window is no whole one.
    pub(super) fn figures(self) -> Vec<BurstFigures> {
        let figures = self.of_lengths.iter().map(Windows::figures);
        figures.filter(|figures| figures.windows > 1).collect()
    }
}

impl Windows {
    fn next(&mut self, current: u64) {
        let count = self.in_current as f64;
        self.sum += count;
        self.squares += count * count;
        self.most = self.most.max(self.in_current);
        // An arrival that is reported late belongs to a window that is over.
        let passed = current.saturating_sub(self.current);
        self.windows += passed;
        self.empty += passed.saturating_sub(1) + u64::from(passed > 0 && self.in_current == 0);
        (self.current, self.in_current) = (self.current.max(current), 0);
        self.began_ns = self.current.saturating_mul(self.length_ns);
    }

    fn figures(&self) -> BurstFigures {
        let windows = self.windows as f64;
        let mean = self.sum / windows.max(1.0);
        let variance = self.squares / windows.max(1.0) - mean * mean;
        BurstFigures {
            window_ns: self.length_ns,
            windows: self.windows,
            mean,
            dispersion: (mean > 0.0).then(|| variance.max(0.0) / mean),
            most: self.most,
            empty_share: self.empty as f64 / windows.max(1.0),
        }
    }
}
