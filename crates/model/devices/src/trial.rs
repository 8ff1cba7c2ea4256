//! Tests drive any device with this: every command completes once, and Little's law holds.

use std::collections::BTreeMap;

use crate::{Command, Device};
use base::SECTOR_BYTES;
use block_layer::{Direction, Sector};
use events::station::Station;
use events::time::{SECOND, Time};

/// What came of a list of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Until the last one completed.
    pub(crate) took: Time,
    /// Number of the command and its latency, in order of completion.
    pub(crate) completed: Vec<(u32, Time)>,
    sectors: u64,
}

impl Run {
    pub(crate) fn latencies(&self) -> impl Iterator<Item = Time> {
        self.completed.iter().map(|&(_, latency)| latency)
    }

    pub(crate) fn latency_of(&self, command: u32) -> Time {
        self.completed.iter().find(|&&(number, _)| number == command).expect("it completed").1
    }

    pub(crate) fn mean_ns(&self) -> Time {
        self.latencies().sum::<Time>() / self.completed.len() as Time
    }

    pub(crate) fn iops(&self) -> f64 {
        self.completed.len() as f64 * SECOND as f64 / self.took as f64
    }

    pub(crate) fn rate_bytes_per_s(&self) -> f64 {
        (self.sectors * SECTOR_BYTES) as f64 * SECOND as f64 / self.took as f64
    }
}

pub(crate) fn command(direction: Direction, start: Sector, sectors: u32) -> Command {
    Command { tag: 0, direction, start, sectors, force_unit_access: false, write_stream: 0 }
}

/// One stream of commands at a depth.
pub(crate) fn run(device: &mut dyn Device, commands: &[Command], depth: usize) -> Run {
    run_streams(device, &[commands], depth)
}

/// Several streams of commands, each at its own depth; numbers count through the streams in order.
pub(crate) fn run_streams(device: &mut dyn Device, streams: &[&[Command]], depth: usize) -> Run {
    run_from(device, 0, streams, depth)
}

/// The same on a device that has been used until `from`.
pub(crate) fn run_from(device: &mut dyn Device, from: Time, streams: &[&[Command]], depth: usize) -> Run {
    let count: usize = streams.iter().map(|stream| stream.len()).sum();
    let mut first_numbers = Vec::new();
    let mut stream_of = Vec::with_capacity(count);
    for (number, stream) in streams.iter().enumerate() {
        first_numbers.push(stream_of.len());
        stream_of.extend(std::iter::repeat_n(number, stream.len()));
    }
    let mut next = vec![0; streams.len()];
    let mut inside = vec![0; streams.len()];
    let mut since = BTreeMap::new();
    let mut station = Station::default();
    let (mut now, mut completed, mut ended) = (from, Vec::with_capacity(count), Vec::new());
    while completed.len() < count {
        for (number, stream) in streams.iter().enumerate() {
            while inside[number] < depth && next[number] < stream.len() && since.len() < device.queue_depth() as usize {
                let tag = (first_numbers[number] + next[number]) as u32;
                device.submit(now, Command { tag, ..stream[next[number]] });
                station.enter(now);
                since.insert(tag, now);
                next[number] += 1;
                inside[number] += 1;
            }
        }
        let at = device.next_event().expect("something is outstanding");
        assert!(at >= now, "an event at {at} before {now}");
        now = at;
        device.advance(now, &mut ended);
        for done in ended.drain(..) {
            let entered = since.remove(&done.tag).expect("completed once, and submitted before");
            station.leave(now, entered);
            completed.push((done.tag, now - entered));
            inside[stream_of[done.tag as usize]] -= 1;
        }
        if completed.len().is_multiple_of(64) {
            station.check("device", now, since.values().copied()).unwrap();
        }
    }
    station.check("device", now, std::iter::empty()).unwrap();
    device.check(now).unwrap();
    Run {
        took: now - from,
        completed,
        sectors: streams.iter().flat_map(|stream| stream.iter()).map(|command| u64::from(command.sectors)).sum(),
    }
}

/// Goes on until nothing happens any more: nothing completes twice, and what was acknowledged is on the medium.
pub(crate) fn run_until_idle(device: &mut dyn Device) -> Time {
    let (mut now, mut ended) = (0, Vec::new());
    while let Some(at) = device.next_event() {
        now = at;
        device.advance(now, &mut ended);
        assert!(ended.is_empty(), "completed though nothing was outstanding");
        device.check(now).unwrap();
    }
    assert_eq!(device.dirty_sectors(), 0, "acknowledged and never written");
    now
}

pub(crate) fn random(direction: Direction, count: usize, sectors_max: Sector) -> Vec<Command> {
    let mut stream = base::rng::stream(1, 0);
    (0..count).map(|_| command(direction, stream.below(sectors_max / 8 - 1) * 8, 8)).collect()
}

pub(crate) fn sequential(direction: Direction, first: Sector, count: usize, sectors: u32) -> Vec<Command> {
    (0..count as Sector).map(|number| command(direction, first + number * Sector::from(sectors), sectors)).collect()
}

/// Commands of all sizes and both directions, some of them one behind the other.
pub(crate) fn mixture(kinds: &[(u8, u64, u32)], sectors_max: Sector) -> Vec<Command> {
    let mut end = 0;
    kinds
        .iter()
        .map(|&(kind, start, sectors)| {
            let direction = if kind & 1 == 0 { Direction::Read } else { Direction::Write };
            let start = if kind & 2 == 0 { start } else { end } % (sectors_max - Sector::from(sectors));
            end = start + Sector::from(sectors);
            Command {
                force_unit_access: kind & 12 == 12 && direction == Direction::Write,
                write_stream: kind >> 4,
                ..command(direction, start, sectors)
            }
        })
        .collect()
}
