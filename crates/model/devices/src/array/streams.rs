//! Sequential streams as a controller sees them: commands that begin where others ended.

use crate::array::spec::ArrayCache;
use block_layer::Sector;

#[derive(Clone, Debug)]
pub(super) struct Streams {
    streams_max: usize,
    after_commands: u32,
    prefetch_sectors: u64,
    /// Where each stream's next command begins, apart from the rest: every read looks through all of them.
    nexts: Vec<Sector>,
    streams: Vec<Stream>,
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    commands: u32,
    fetched_to: Sector,
    used: u64,
}

/// A command belongs to a stream if it begins no further from the stream's end than this many times its own length:
/// the host's scheduler and queue may have changed the order (inferred).
const DISORDER_COMMANDS: u64 = 2;

impl Streams {
    pub(super) fn new(spec: &ArrayCache) -> Streams {
        Streams {
            streams_max: if spec.read_bytes == 0 { 0 } else { spec.streams as usize },
            after_commands: spec.stream_after_commands,
            prefetch_sectors: spec.prefetch_bytes / block_layer::SECTOR_BYTES,
            nexts: Vec::new(),
            streams: Vec::new(),
            clock: 0,
        }
    }

    /// A read: what to fetch ahead of it. That is done in halves of the distance, so that the disks get large pieces.
    pub(super) fn follow(&mut self, start: Sector, end: Sector) -> Option<(Sector, Sector)> {
        if self.streams_max == 0 {
            return None;
        }
        self.clock += 1;
        let near = (end - start) * DISORDER_COMMANDS;
        let Some(found) = self.nexts.iter().position(|next| next.abs_diff(start) <= near) else {
            self.begin(end);
            return None;
        };
        let next = self.nexts[found].max(end);
        self.nexts[found] = next;
        let stream = &mut self.streams[found];
        stream.used = self.clock;
        stream.commands = stream.commands.saturating_add(1);
        let from = stream.fetched_to.max(next);
        let far_enough = from - next > self.prefetch_sectors / 2;
        if stream.commands < self.after_commands || far_enough || self.prefetch_sectors == 0 {
            return None;
        }
        stream.fetched_to = next + self.prefetch_sectors;
        Some((from, stream.fetched_to))
    }

    /// Forgets the stream that was followed longest ago.
    fn begin(&mut self, end: Sector) {
        let stream = Stream { commands: 1, fetched_to: 0, used: self.clock };
        if self.streams.len() < self.streams_max {
            self.nexts.push(end);
            self.streams.push(stream);
            return;
        }
        let oldest = (0..self.streams.len()).min_by_key(|&number| self.streams[number].used).expect("there is one");
        self.nexts[oldest] = end;
        self.streams[oldest] = stream;
    }
}
