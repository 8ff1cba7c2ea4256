//! What is counted of one device.

use super::figures::DeviceFigures;
use super::group::{Group, Quantiles};
use super::seeks::Seeks;
use super::values::Values;
use crate::event::{Device, Marks, Op, Step, TraceEvent};
use crate::request::{Io, Stages};

#[derive(Clone, Debug, Default)]
pub(super) struct DeviceStudy {
    pub(super) group: Group,
    figures: DeviceFigures,
    /// Flushes that the driver was given.
    flushes_issued: u64,
    seeks: Seeks,
    /// Requests that the driver was given.
    issues: u64,
    depth_since_ns: Option<u64>,
    depth: u64,
    depth_max: u64,
    depth_ns: Vec<u64>,
    idle: Values,
    busy_ns: f64,
}

/// Deeper queues are counted together.
const DEPTHS: usize = 1025;

impl DeviceStudy {
    /// A study of one device. If there are very many devices, the histograms grow with their contents; if there are
    /// few, they are roomy from the start.
    pub(super) fn new(roomy: bool) -> DeviceStudy {
        DeviceStudy {
            group: Group::new(roomy),
            seeks: Seeks::new(roomy),
            idle: Values::new(roomy),
            ..DeviceStudy::default()
        }
    }

    /// Whether the driver was given anything: until then its requests are unknown.
    #[inline]
    pub(super) fn was_issued(&self) -> bool {
        self.issues > 0
    }

    /// An event of it.
    #[inline]
    pub(super) fn event(&mut self, event: &TraceEvent) {
        let figures = &mut self.figures;
        self.issues += u64::from(event.step == Step::Issue);
        match event.step {
            Step::BackMerge | Step::FrontMerge | Step::RequestMerge => figures.merges += 1,
            Step::Requeue => figures.requeues += 1,
            Step::Split => figures.splits += 1,
            _ => {}
        }
    }

    /// An I/O of it, in the order of arrival, or in which the driver got them.
    #[inline]
    pub(super) fn arrived(&mut self, sector: u64, sectors: u64) {
        if sectors > 0 {
            self.seeks.add(sector, sectors);
        }
    }

    /// A request of it that ended.
    #[inline]
    pub(super) fn ended(&mut self, io: &Io, stages: &Stages) {
        self.group.count_stages(io, stages);
        let figures = &mut self.figures;
        match io.kind() {
            Op::Read => {
                figures.reads += 1;
                figures.bytes_read += io.bytes();
            }
            Op::Write if io.marks.has(Marks::ZEROES) => {
                figures.zeroes += 1;
                figures.bytes_zeroed += io.bytes();
            }
            Op::Write => {
                figures.writes += 1;
                figures.bytes_written += io.bytes();
            }
            Op::Discard => {
                figures.discards += 1;
                figures.bytes_discarded += io.bytes();
            }
            _ => figures.others += 1,
        }
        match io.op {
            Op::Flush => self.flushes_issued += 1,
            _ => figures.flushes += u64::from(io.marks.has(Marks::PREFLUSH) || io.kind() == Op::Flush),
        }
        figures.fua += u64::from(io.marks.has(Marks::FUA));
        let [_, _, device, whole] = *stages;
        self.busy_ns += device.or(whole).unwrap_or(0) as f64;
    }

    /// The driver has this many requests from now on; yields since when it had how many. None: no longer known.
    #[inline]
    pub(super) fn depth(&mut self, now_ns: u64, depth: Option<u64>) -> Option<(u64, u64)> {
        if depth == Some(self.depth) && self.depth_since_ns.is_some() {
            return None;
        }
        let before = self.depth_since_ns.map(|since_ns| (since_ns, self.depth));
        if let Some((since_ns, before)) = before {
            let at = (before as usize).min(DEPTHS - 1);
            if self.depth_ns.len() <= at {
                self.depth_ns.resize(at + 1, 0);
            }
            let length_ns = now_ns.saturating_sub(since_ns);
            self.depth_ns[at] += length_ns;
            if before == 0 {
                self.idle.record(length_ns);
            }
        }
        self.depth_since_ns = depth.map(|_| now_ns);
        self.depth = depth.unwrap_or(0);
        self.depth_max = self.depth_max.max(self.depth);
        before
    }

    pub(super) fn figures(mut self, device: Device, name: Option<String>, elapsed_ns: u64) -> DeviceFigures {
        self.seeks.finish();
        let quantiles = |values: &Values| values.histogram().and_then(|it| Quantiles::of(&it));
        let known_ns: u64 = self.depth_ns.iter().sum();
        let weighted = self.depth_ns.iter().zip(0u64..).map(|(&ns, depth)| ns as f64 * depth as f64);
        // Completions alone do not show what was in flight.
        let known = (known_ns > 0 && self.issues > 0).then_some(known_ns as f64);
        // Of traces without issues: what was in flight is the sum of the times, whoever overlapped whom.
        let by_sum = (elapsed_ns > 0 && self.busy_ns > 0.0).then(|| self.busy_ns / elapsed_ns as f64);
        DeviceFigures {
            device: device.to_string(),
            name,
            requests: self.group.figures(device.to_string()),
            sequential_share: (self.seeks.count > 0).then(|| self.seeks.sequential as f64 / self.seeks.count as f64),
            seek_sectors: quantiles(&self.seeks.distance),
            sequential_runs: quantiles(&self.seeks.runs),
            depth_mean: known.map(|known| weighted.sum::<f64>() / known).or(by_sum),
            depth_max: known.map(|_| self.depth_max),
            idle_share: known.map(|known| self.depth_ns[0] as f64 / known),
            idle_ns: known.and_then(|_| quantiles(&self.idle)),
            depth_ns: known.map(|_| self.depth_ns).unwrap_or_default(),
            flushes: match self.figures.flushes {
                0 => self.flushes_issued,
                asked_for => asked_for,
            },
            ..self.figures
        }
    }
}
