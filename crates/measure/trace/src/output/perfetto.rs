//! Perfetto's own format: a slice per request, in lanes so that no two on one lane overlap, with its stages inside, and
//! counters of the queue's depth.
//!
//! Source: protos/perfetto/trace (TracePacket, TrackDescriptor, TrackEvent); field numbers below.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::event::Device;
use crate::event::rwbs;
use crate::request::Io;

/// Writes such a trace.
pub struct Perfetto<W> {
    out: W,
    devices: BTreeMap<Device, Lanes>,
    tracks: u64,
    /// Ends of slices come out in the order of completion; nothing needs to be sorted for the reader.
    packet: Vec<u8>,
}

struct Lanes {
    root: u64,
    depth: u64,
    in_flight: u64,
    /// Each lane's track, and when its last slice ended.
    lanes: Vec<(u64, u64)>,
}

const SEQUENCE: u64 = 1;
const BEGIN: u64 = 1;
const END: u64 = 2;
const COUNTER: u64 = 4;

impl<W: Write> Perfetto<W> {
    /// An empty trace.
    pub fn new(out: W) -> Perfetto<W> {
        Perfetto { out, devices: BTreeMap::new(), tracks: 0, packet: Vec::new() }
    }

    /// A request that ended; those without a beginning or an end are left out. `name`: its task's.
    pub fn io(&mut self, io: &Io) -> io::Result<()> {
        let Some(ended_ns) = io.completed_ns else {
            return Ok(());
        };
        if io.queued_ns.or(io.inserted_ns).or(io.issued_ns).is_none() {
            return Ok(());
        }
        let began_ns = io.arrived_ns();
        let lane = self.lane(io.device, began_ns, ended_ns)?;
        let name = format!("{} {} KiB", rwbs(io.op, io.marks), io.bytes().div_ceil(1024));
        let details = [
            ("sector", io.sector),
            ("bytes", io.bytes()),
            ("pid", u64::from(io.pid)),
            ("merged", u64::from(io.merged)),
            ("requeues", u64::from(io.requeues)),
            ("error", u64::from(io.error.unsigned_abs())),
        ];
        self.slice(lane, began_ns, ended_ns, &name, &details)?;
        let left_queue = io.inserted_ns.or(io.issued_ns);
        let stages = [
            ("queue", io.queued_ns, left_queue),
            ("scheduler", io.inserted_ns, io.issued_ns),
            ("device", io.issued_ns, io.completed_ns),
        ];
        for (stage, from, to) in stages {
            if let (Some(from), Some(to)) = (from, to)
                && to > from
            {
                self.slice(lane, from, to, stage, &[])?;
            }
        }
        Ok(())
    }

    /// The driver of a device has this many requests.
    pub fn depth(&mut self, device: Device, at_ns: u64, depth: u64) -> io::Result<()> {
        let track = self.device(device)?;
        let mut event = Vec::new();
        number(&mut event, 9, COUNTER);
        number(&mut event, 11, track.0);
        number(&mut event, 30, depth);
        self.track_event(at_ns, &event)
    }

    /// The trace's end.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn slice(
        &mut self,
        track: u64,
        began_ns: u64,
        ended_ns: u64,
        name: &str,
        details: &[(&str, u64)],
    ) -> io::Result<()> {
        let mut event = Vec::new();
        number(&mut event, 9, BEGIN);
        number(&mut event, 11, track);
        bytes(&mut event, 23, name.as_bytes());
        for (name, value) in details {
            let mut annotation = Vec::new();
            number(&mut annotation, 3, *value);
            bytes(&mut annotation, 10, name.as_bytes());
            bytes(&mut event, 4, &annotation);
        }
        self.track_event(began_ns, &event)?;
        let mut end = Vec::new();
        number(&mut end, 9, END);
        number(&mut end, 11, track);
        self.track_event(ended_ns, &end)
    }

    fn track_event(&mut self, at_ns: u64, event: &[u8]) -> io::Result<()> {
        let mut packet = std::mem::take(&mut self.packet);
        packet.clear();
        number(&mut packet, 8, at_ns);
        number(&mut packet, 10, SEQUENCE);
        bytes(&mut packet, 11, event);
        let written = self.write(&packet);
        self.packet = packet;
        written
    }

    /// A lane that is free from then on, of those the one that was taken last.
    fn lane(&mut self, device: Device, began_ns: u64, ended_ns: u64) -> io::Result<u64> {
        self.device(device)?;
        let Some(lanes) = self.devices.get_mut(&device) else {
            return Ok(0);
        };
        let free = lanes.lanes.iter_mut().filter(|(_, until_ns)| *until_ns <= began_ns);
        if let Some((track, until_ns)) = free.max_by_key(|(_, until_ns)| *until_ns) {
            *until_ns = ended_ns;
            return Ok(*track);
        }
        self.tracks += 1;
        let track = self.tracks;
        lanes.lanes.push((track, ended_ns));
        let (name, parent) = (format!("lane {}", lanes.lanes.len()), lanes.in_flight);
        self.describe(track, &name, Some(parent), false)?;
        Ok(track)
    }

    /// The tracks of a device: its depth, and the parent of its lanes.
    fn device(&mut self, device: Device) -> io::Result<(u64, u64)> {
        if let Some(lanes) = self.devices.get(&device) {
            return Ok((lanes.depth, lanes.root));
        }
        let (root, depth, in_flight) = (self.tracks + 1, self.tracks + 2, self.tracks + 3);
        self.tracks += 3;
        self.describe(root, &format!("device {device}"), None, false)?;
        self.describe(depth, "requests with the driver", Some(root), true)?;
        self.describe(in_flight, "requests", Some(root), false)?;
        let lanes = Lanes { root, depth, in_flight, lanes: Vec::new() };
        self.devices.insert(device, lanes);
        Ok((depth, root))
    }

    fn describe(&mut self, track: u64, name: &str, parent: Option<u64>, counts: bool) -> io::Result<()> {
        let mut descriptor = Vec::new();
        number(&mut descriptor, 1, track);
        bytes(&mut descriptor, 2, name.as_bytes());
        if let Some(parent) = parent {
            number(&mut descriptor, 5, parent);
        }
        if counts {
            bytes(&mut descriptor, 8, &[]);
        }
        let mut packet = Vec::new();
        number(&mut packet, 10, SEQUENCE);
        bytes(&mut packet, 60, &descriptor);
        self.write(&packet)
    }

    fn write(&mut self, packet: &[u8]) -> io::Result<()> {
        let mut header = Vec::with_capacity(8);
        varint(&mut header, 1 << 3 | 2);
        varint(&mut header, packet.len() as u64);
        self.out.write_all(&header)?;
        self.out.write_all(packet)
    }
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
