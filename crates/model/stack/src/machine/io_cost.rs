//! The table `io_cost`: shares of drives by a model of what I/O costs.

use block_layer::{CostModel, CostQos};
use events::SpecError;
use events::spec_error::within;
use kernels::Kernel;
use serde::Deserialize;

/// Shares of each drive by what its I/O costs, whatever the scheduler is: `cgroups.*.weight` counts for it alone. 5.4 or later.
#[derive(Clone, Copy, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoCostSpec {
    /// What the drives can do; left out: what the kernel takes such a drive for.
    #[serde(default)]
    pub model: CostModelSpec,
    /// When they are slowed down, and how far.
    #[serde(default)]
    pub qos: CostQosSpec,
}

/// As io.cost.model takes it; what is left out is the kernel's.
#[derive(Clone, Copy, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostModelSpec {
    /// Bytes per second of sequential reads.
    #[schemars(range(min = 1))]
    pub rbps: Option<u64>,
    /// Sequential reads of 4 KiB per second.
    #[schemars(range(min = 1))]
    pub rseqiops: Option<u64>,
    /// Random reads of 4 KiB per second.
    #[schemars(range(min = 1))]
    pub rrandiops: Option<u64>,
    /// Bytes per second of sequential writes.
    #[schemars(range(min = 1))]
    pub wbps: Option<u64>,
    /// Sequential writes of 4 KiB per second.
    #[schemars(range(min = 1))]
    pub wseqiops: Option<u64>,
    /// Random writes of 4 KiB per second.
    #[schemars(range(min = 1))]
    pub wrandiops: Option<u64>,
}

/// As io.cost.qos takes it; what is left out is the kernel's.
#[derive(Clone, Copy, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostQosSpec {
    /// Percent of reads that shall take no longer than `rlat`; 0: they are not looked at.
    #[schemars(range(min = 0, max = 100))]
    pub rpct: Option<f64>,
    /// In microseconds.
    #[schemars(range(min = 0, max = 4_294_967_295u64))]
    pub rlat: Option<u64>,
    /// Percent of writes that shall take no longer than `wlat`; 0: they are not looked at.
    #[schemars(range(min = 0, max = 100))]
    pub wpct: Option<f64>,
    /// In microseconds.
    #[schemars(range(min = 0, max = 4_294_967_295u64))]
    pub wlat: Option<u64>,
    /// The lowest rate of virtual time, in percent of wall time.
    #[schemars(range(min = 1, max = 10_000))]
    pub min: Option<f64>,
    /// The highest.
    #[schemars(range(min = 1, max = 10_000))]
    pub max: Option<f64>,
}

const LATENCY_US_MAX: u64 = u32::MAX as u64;
const PPM_PER_PERCENT: f64 = 10_000.0;

impl IoCostSpec {
    pub(super) fn check(&self, kernel: &Kernel) -> Result<(), SpecError> {
        if !kernel.shares_by_cost() {
            let what = format!("{} has no io.cost; it came with 5.4", kernel.name());
            return Err(SpecError::of("io_cost", what));
        }
        let model = &self.model;
        for (key, rate) in [
            ("rbps", model.rbps),
            ("rseqiops", model.rseqiops),
            ("rrandiops", model.rrandiops),
            ("wbps", model.wbps),
            ("wseqiops", model.wseqiops),
            ("wrandiops", model.wrandiops),
        ] {
            within(&format!("io_cost.model.{key}"), rate.unwrap_or(1), 1, u64::MAX)?;
        }
        let qos = &self.qos;
        for (key, latency) in [("rlat", qos.rlat), ("wlat", qos.wlat)] {
            let latency = latency.unwrap_or(0);
            within(&format!("io_cost.qos.{key}"), latency, 0, LATENCY_US_MAX)?;
        }
        for (key, percent, least, most) in [
            ("rpct", qos.rpct, 0.0, 100.0),
            ("wpct", qos.wpct, 0.0, 100.0),
            ("min", qos.min, 1.0, 10_000.0),
            ("max", qos.max, 1.0, 10_000.0),
        ] {
            let percent = percent.unwrap_or(least);
            if !(least..=most).contains(&percent) {
                let what = format!("expected {least} to {most} (percent), found {percent}");
                return Err(SpecError::of(&format!("io_cost.qos.{key}"), what));
            }
        }
        if qos.min.unwrap_or(1.0) > qos.max.unwrap_or(10_000.0) {
            let what = "expected no more than max";
            return Err(SpecError::of("io_cost.qos.min", what));
        }
        Ok(())
    }

    pub(super) fn model(&self) -> CostModel {
        let model = &self.model;
        CostModel {
            bytes: [model.rbps, model.wbps],
            sequential: [model.rseqiops, model.wseqiops],
            random: [model.rrandiops, model.wrandiops],
        }
    }

    pub(super) fn qos(&self) -> CostQos {
        let qos = &self.qos;
        let ppm = |percent: Option<f64>| percent.map(|percent| (percent * PPM_PER_PERCENT).round() as u64);
        CostQos {
            share_ppm: [ppm(qos.rpct), ppm(qos.wpct)],
            latency_us: [qos.rlat, qos.wlat],
            vrate_ppm: [ppm(qos.min), ppm(qos.max)],
        }
    }
}
