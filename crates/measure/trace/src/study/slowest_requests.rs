//! The slowest requests, and who stood in front of them.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::event::Device;
use crate::input::TraceInfo;
use crate::request::Io;

/// Keeps the slowest, and of late the others that completed.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowestRequests {
    /// By latency, with the device.
    slowest: Vec<(u64, Device, SlowRequest)>,
    recent: VecDeque<Io>,
}

/// A slow request, step by step.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SlowRequest {
    /// `major:minor`, or the name that the trace has for it.
    pub device: String,
    /// Who submitted it; 0 if unknown.
    pub pid: u32,
    /// The kernel's letters: operation and marks.
    pub rwbs: String,
    /// First sector.
    pub sector: u64,
    /// Its length.
    pub bytes: u64,
    /// Since the trace began.
    pub arrived_ns: u64,
    /// In each stage: queue, scheduler, device, whole.
    pub stages_ns: [Option<u64>; 4],
    /// Times that the driver gave it back.
    pub requeues: u16,
    /// Bios that joined it.
    pub merged: u32,
    /// Negative errno.
    pub error: i16,
    /// Requests that completed while it was in flight, by task, those of most time first. What is older than the last
    /// thousands is not in it.
    pub ahead: Vec<TaskAhead>,
    /// The number of requests that completed first, among those that were with the driver when it was handed over or
    /// came after.
    pub overtaken_by: u64,
}

/// What one task had in front of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TaskAhead {
    /// The task.
    pub pid: u32,
    /// Its requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

const KEPT: usize = 10;
const RECENT: usize = 1 << 13;
const TASKS: usize = 5;

impl SlowestRequests {
    /// A request that completed.
    #[inline]
    pub(super) fn add(&mut self, io: &Io) {
        if io.completed_ns.is_none() {
            return;
        }
        let [_, _, device, whole] = io.stages();
        if let Some(latency) = whole.or(device) {
            let full = self.slowest.len() >= KEPT;
            if !full || latency > self.slowest[KEPT - 1].0 {
                let slow = self.slow(io);
                let at = self.slowest.partition_point(|(other, ..)| *other >= latency);
                self.slowest.insert(at, (latency, io.device, slow));
                self.slowest.truncate(KEPT);
            }
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(*io);
    }

    fn slow(&self, io: &Io) -> SlowRequest {
        let mut by_pid: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let arrived_ns = io.arrived_ns();
        let while_in_flight =
            self.recent.iter().rev().take_while(|other| other.completed_ns.is_some_and(|at_ns| at_ns >= arrived_ns));
        let mut overtaken_by = 0;
        for other in while_in_flight.filter(|other| other.device == io.device) {
            let (requests, bytes) = by_pid.entry(other.pid).or_default();
            *requests += 1;
            *bytes += other.bytes();
            overtaken_by += u64::from(other.arrived_ns() > arrived_ns);
        }
        let mut ahead: Vec<TaskAhead> =
            by_pid.into_iter().map(|(pid, (requests, bytes))| TaskAhead { pid, requests, bytes }).collect();
        ahead.sort_by_key(|task| std::cmp::Reverse((task.bytes, task.requests)));
        ahead.truncate(TASKS);
        SlowRequest {
            device: String::new(),
            pid: io.pid,
            rwbs: crate::event::rwbs(io.op, io.marks),
            sector: io.sector,
            bytes: io.bytes(),
            arrived_ns,
            stages_ns: io.stages(),
            requeues: io.requeues,
            merged: io.merged,
            error: io.error,
            ahead,
            overtaken_by,
        }
    }

    /// `began_ns`: when the trace did.
    pub(super) fn finish(self, about: &TraceInfo, began_ns: u64) -> Vec<SlowRequest> {
        let slowest = self.slowest.into_iter();
        slowest
            .map(|(_, device, slow)| SlowRequest {
                device: about.device_name(device),
                arrived_ns: slow.arrived_ns.saturating_sub(began_ns),
                ..slow
            })
            .collect()
    }
}
