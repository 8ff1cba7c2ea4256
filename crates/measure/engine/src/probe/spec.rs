//! Which probes are wanted, as Python hands it in. There are no defaults here: they live with the options' help.

use std::time::Duration;

use serde::Deserialize;
use trace::event::Device;

use crate::error::StartError;

/// The probes of one phase; null if a probe is off.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProbesSpec")]
pub struct Spec {
    /// The tracing instance that is ours while the probes run: made at start, removed at stop. `block` uses one of this
    /// name, `switches` one with `-switches` appended, so that a flood of the one kind never overwrites the other.
    pub trace_instance: String,
    /// Block events of devices, through a tracing instance.
    pub block: Option<BlockSpec>,
    /// Context switches, through a tracing instance.
    pub switches: Option<SwitchesSpec>,
    /// Samples of kernel stacks.
    pub profile: Option<ProfileSpec>,
    /// Hardware counters.
    pub counters: Option<CountersSpec>,
    /// Shares of the CPUs' time, from /proc/stat.
    pub cpu: Option<SampleSpec>,
    /// Memory's levels and rates, from /proc/meminfo and /proc/vmstat.
    pub memory: Option<SampleSpec>,
    /// The rate of io.cost, from the root's io.stat.
    pub io_cost: Option<IoCostSpec>,
}

/// What the probe `block` records.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// `major:minor` of each device; only their events are recorded.
    pub devices: Vec<String>,
    /// The size of each CPU's ring buffer.
    #[schemars(range(min = 1))]
    pub buffer_bytes: u64,
    /// Wanted width of an interval of the time series, in nanoseconds.
    #[schemars(range(min = 1))]
    pub interval_ns: u64,
}

/// What the probe `switches` records.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchesSpec {
    /// Wanted width of an interval of the time series, in nanoseconds.
    #[schemars(range(min = 1))]
    pub interval_ns: u64,
    /// Switches per kernel stack that is taken; null adapts to the rate.
    #[schemars(range(min = 1))]
    pub stack_every: Option<u64>,
    /// Only switches from and to threads of these processes and of those they start; null is all.
    pub pids: Option<Vec<u32>>,
}

/// What the probe `profile` records.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileSpec {
    /// Wanted width of an interval of the time series, in nanoseconds.
    #[schemars(range(min = 1))]
    pub interval_ns: u64,
    /// Samples per second and CPU.
    #[schemars(range(min = 1, max = FREQUENCY_HZ_MAX))]
    pub frequency_hz: u64,
}

/// Hardware counters, read once at start and once at stop.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountersSpec {}

/// What is read from files at intervals.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    /// First distance of two readings, in nanoseconds; it doubles when there would be too many.
    #[schemars(range(min = 1))]
    pub interval_ns: u64,
}

impl SampleSpec {
    /// The same as a `Duration`.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns)
    }
}

/// What the probe `io_cost` reads.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoCostSpec {
    /// First distance of two readings, in nanoseconds; it doubles when there would be too many.
    #[schemars(range(min = 1))]
    pub interval_ns: u64,
    /// `major:minor` of each device.
    pub devices: Vec<String>,
    /// The file `io.stat` of the root of control groups version 2.
    pub io_stat: String,
}

impl IoCostSpec {
    /// The interval as a `Duration`.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns)
    }
}

/// The highest sampling frequency that is accepted, in Hz per CPU.
pub const FREQUENCY_HZ_MAX: u64 = 10_000;

impl Spec {
    /// Refuses intervals and sizes of 0, instances and devices that are badly named.
    pub fn check(&self) -> Result<(), StartError> {
        check_instance(&self.trace_instance)?;
        if let Some(block) = &self.block {
            positive("block.interval_ns", block.interval_ns)?;
            positive("block.buffer_bytes", block.buffer_bytes)?;
            block.device_numbers()?;
        }
        if let Some(switches) = &self.switches {
            positive("switches.interval_ns", switches.interval_ns)?;
            if let Some(every) = switches.stack_every {
                positive("switches.stack_every", every)?;
            }
            if switches.pids.as_ref().is_some_and(Vec::is_empty) {
                return Err(wrong("switches.pids is empty; null observes all tasks"));
            }
        }
        if let Some(profile) = &self.profile {
            positive("profile.interval_ns", profile.interval_ns)?;
            if !(1..=FREQUENCY_HZ_MAX).contains(&profile.frequency_hz) {
                return Err(wrong(&format!(
                    "profile.frequency_hz is {}, expected 1 to {FREQUENCY_HZ_MAX}",
                    profile.frequency_hz
                )));
            }
        }
        let interval_ns = |sampled: &SampleSpec| sampled.interval_ns;
        for (key, sampled_ns) in [
            ("cpu.interval_ns", self.cpu.as_ref().map(interval_ns)),
            ("memory.interval_ns", self.memory.as_ref().map(interval_ns)),
            ("io_cost.interval_ns", self.io_cost.as_ref().map(|spec| spec.interval_ns)),
        ] {
            sampled_ns.map_or(Ok(()), |interval_ns| positive(key, interval_ns))?;
        }
        Ok(())
    }
}

impl BlockSpec {
    /// The devices as numbers; an error names the one that is not `major:minor`.
    pub fn device_numbers(&self) -> Result<Vec<Device>, StartError> {
        if self.devices.is_empty() {
            return Err(wrong("block.devices is empty, expected \"major:minor\""));
        }
        self.devices
            .iter()
            .map(|text| {
                parse_device(text).ok_or_else(|| wrong(&format!("block.devices: {text:?}, expected \"major:minor\"")))
            })
            .collect()
    }
}

/// `major:minor`, in the range of the kernel's device numbers.
pub fn parse_device(text: &str) -> Option<Device> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then(|| Device::new(major, minor))
}

/// A directory of this name is made and removed: it must be a plain name.
fn check_instance(name: &str) -> Result<(), StartError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(wrong(&format!("trace_instance is {name:?}, expected up to 64 letters, digits, - and _")));
    }
    Ok(())
}

fn positive(key: &str, value: u64) -> Result<(), StartError> {
    if value == 0 {
        return Err(wrong(&format!("{key} is 0, expected more")));
    }
    Ok(())
}

fn wrong(what: &str) -> StartError {
    StartError::spec(format!("probes: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(json: &str) -> Result<Spec, String> {
        let spec: Spec = serde_json::from_str(json).map_err(|error| error.to_string())?;
        spec.check().map_err(|error| error.to_string())?;
        Ok(spec)
    }

    #[test]
    fn what_is_not_asked_for_may_be_left_out() {
        let spec = spec(r#"{"trace_instance": "iolab-1", "cpu": {"interval_ns": 5}}"#).unwrap();
        assert!(spec.block.is_none() && spec.cpu.is_some());
    }

    #[test]
    fn a_mistake_is_named() {
        for (json, named) in [
            (r#"{"trace_instance": "../evil"}"#, "../evil"),
            (r#"{"trace_instance": ""}"#, "trace_instance"),
            (r#"{"trace_instance": "a", "blok": {}}"#, "blok"),
            (r#"{"trace_instance": "a", "cpu": {"interval_ns": 0}}"#, "cpu.interval_ns"),
            (r#"{"trace_instance": "a", "block": {"devices": ["7"], "buffer_bytes": 1, "interval_ns": 1}}"#, "\"7\""),
            (
                r#"{"trace_instance": "a", "block": {"devices": [], "buffer_bytes": 1, "interval_ns": 1}}"#,
                "block.devices",
            ),
            (r#"{"trace_instance": "a", "profile": {"frequency_hz": 0, "interval_ns": 1}}"#, "profile.frequency_hz"),
            (
                r#"{"trace_instance": "a", "switches": {"interval_ns": 1, "stack_every": 0, "pids": null}}"#,
                "switches.stack_every",
            ),
        ] {
            let error = spec(json).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn device_numbers_are_the_kernels() {
        assert_eq!(parse_device("7:0"), Some(Device(7 << 20)));
        assert_eq!(parse_device("253:17"), Some(Device(253 << 20 | 17)));
        for wrong in ["", "7", "7:", ":0", "7:0:1", "4096:0", "7:1048576", "-1:0"] {
            assert_eq!(parse_device(wrong), None, "{wrong}");
        }
    }
}
