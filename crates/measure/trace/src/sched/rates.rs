//! How often CPUs switch, over time.

use std::collections::BTreeMap;

use super::report::{Columns, Series};
use crate::intervals::{Absorb, Intervals};

#[derive(Clone, Debug)]
pub(super) struct Rates(Intervals<CpuSwitches>);

/// Switches of each CPU in an interval.
#[derive(Clone, Debug, Default)]
struct CpuSwitches(Vec<u64>);

impl Rates {
    pub(super) fn new(started_ns: u64, interval_ns: u64) -> Rates {
        Rates(Intervals::new(started_ns, interval_ns))
    }

    pub(super) fn count(&mut self, at_ns: u64, cpu: u32) {
        self.0.at(at_ns).count(cpu);
    }

    /// By CPU, and of all.
    pub(super) fn series(&self, elapsed_ns: u64) -> BTreeMap<String, Series> {
        let items = self.0.items();
        let (at_ns, width_ns) = (self.0.starts_ns(), self.0.width_ns());
        let length_s =
            at_ns.iter().map(|start_ns| elapsed_ns.saturating_sub(*start_ns).clamp(1, width_ns) as f64 / 1e9);
        let length_s: Vec<f64> = length_s.collect();
        let series = |count: &dyn Fn(&CpuSwitches) -> u64| Series {
            at_ns: at_ns.clone(),
            columns: Columns {
                context_switches_per_s: items
                    .iter()
                    .zip(&length_s)
                    .map(|(item, length_s)| count(item) as f64 / length_s)
                    .collect(),
                length_s: length_s.clone(),
            },
        };
        let cpus = items.iter().map(|item| item.0.len()).max().unwrap_or(0);
        let of_cpu = |cpu: usize| {
            let count = move |item: &CpuSwitches| item.0.get(cpu).copied().unwrap_or(0);
            (format!("cpu{cpu}"), series(&count))
        };
        let all = ("all".to_owned(), series(&|item| item.0.iter().sum()));
        (0..cpus).map(of_cpu).chain([all]).collect()
    }
}

impl CpuSwitches {
    fn count(&mut self, cpu: u32) {
        let cpu = (cpu as usize).min(CPUS_MAX - 1);
        if cpu >= self.0.len() {
            self.0.resize(cpu + 1, 0);
        }
        self.0[cpu] += 1;
    }
}

impl Absorb for CpuSwitches {
    fn absorb(&mut self, later: CpuSwitches) {
        self.0.resize(self.0.len().max(later.0.len()), 0);
        self.0.iter_mut().zip(later.0).for_each(|(ours, theirs)| *ours += theirs);
    }
}

/// Linux's largest NR_CPUS.
const CPUS_MAX: usize = 8192;
