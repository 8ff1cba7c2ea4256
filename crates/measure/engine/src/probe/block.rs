//! Block events of the target's devices, filtered in the kernel.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use trace::block::{Analysis, BlockReport};
use trace::event::Device;
use trace::format::FormatError;
use trace::page::{LostEvents, RawEvent};
use trace::tracepoints::{BIO_COMPLETE, BlockDecoder, EVENTS};

use super::instance::Instance;
use super::reader::{Interpret, Recording};
use super::spec::BlockSpec;
use super::tracefs::TracefsPaths;
use super::{ProbeStart, Reason, RunningProbe};
use crate::clock::monotonic_ns;

/// What docs/reference/probes.md describes as the observation of `block`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct BlockObservation {
    #[serde(flatten)]
    report: BlockReport,
    /// As the kernel counts them, at the end: also those that no sub-buffer could report.
    trace_events_lost: u64,
    notes: Vec<String>,
}

pub fn start(spec: &BlockSpec, instance: &str, places: &TracefsPaths) -> ProbeStart {
    let tracefs = places.find()?;
    let mut analysis = Analysis::new(monotonic_ns(), spec.interval_ns);
    let mut devices = spec.device_numbers().map_err(|error| error.to_string())?;
    for &device in &devices.clone() {
        if let Some(disk) = disk_of(device) {
            analysis.partition(device, disk);
            devices.push(disk);
        }
    }
    let instance = Instance::make(&tracefs, instance, spec.buffer_bytes)?;
    let mut events = EVENTS.to_vec();
    if !devices.iter().all(|&device| has_requests(device)) {
        events.push(BIO_COMPLETE);
    }
    let (formats, missing) = instance.enable_all(&events, &filter(&devices))?;
    let interpret =
        Block { decoder: BlockDecoder::new(EVENTS, &formats).map_err(|error| error.to_string())?, analysis };
    let recording = Recording::start("iolab-block", instance, interpret)?;
    Ok(Box::new(BlockProbe { recording, missing }))
}

struct BlockProbe {
    recording: Recording<Block>,
    missing: Vec<String>,
}

impl RunningProbe for BlockProbe {
    fn stop(self: Box<Self>) -> Result<Value, Reason> {
        let recorded = self.recording.stop()?;
        let observation = BlockObservation {
            report: recorded.interpret.analysis.finish(recorded.ended_ns),
            trace_events_lost: recorded.events_lost,
            notes: [self.missing, recorded.notes].concat(),
        };
        serde_json::to_value(observation).map_err(|error| error.to_string())
    }
}

struct Block {
    decoder: BlockDecoder,
    analysis: Analysis,
}

impl Interpret for Block {
    #[inline]
    fn add(&mut self, cpu: u32, raw: &RawEvent<'_>) -> Result<(), FormatError> {
        if let Some(event) = self.decoder.decode(cpu as u16, raw)? {
            self.analysis.add(&event);
        }
        Ok(())
    }

    fn lost(&mut self, at_ns: u64, lost: LostEvents) {
        self.analysis.lost(at_ns, lost);
    }
}

/// Other disks cost nothing: the kernel gives the room for their events back at once.
fn filter(devices: &[Device]) -> String {
    let terms: Vec<String> = devices.iter().map(|device| format!("dev == {}", device.0)).collect();
    terms.join(" || ")
}

/// Whether the disk's driver takes requests; mapped devices and zram complete bios as they come.
fn has_requests(device: Device) -> bool {
    let disk = disk_of(device).unwrap_or(device);
    Path::new("/sys/dev/block").join(disk.to_string()).join("mq").exists()
}

/// The whole disk of a partition: bios carry the partition's number, requests the disk's.
fn disk_of(device: Device) -> Option<Device> {
    let directory = Path::new("/sys/dev/block").join(device.to_string()).canonicalize().ok()?;
    if !directory.join("partition").exists() {
        return None;
    }
    let disk = std::fs::read_to_string(directory.parent()?.join("dev")).ok()?;
    super::spec::parse_device(disk.trim())
}
