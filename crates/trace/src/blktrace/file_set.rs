//! What blktrace leaves of one device: a file for each CPU, `NAME.blktrace.CPU`.

use std::collections::{BTreeMap, BTreeSet};

use super::action;
use super::record::Record;
use crate::block::{Device, TraceLine, What};

/// Wall-clock time, since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallTime {
    /// Whole seconds.
    pub seconds: u32,
    /// The rest, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// Files under way. What is added must be of one device and in the order of time.
#[derive(Clone, Debug)]
pub struct FileSet {
    device: Device,
    began: WallTime,
    /// By pid, what the tasks are called.
    names: BTreeMap<u32, String>,
    cpus: Vec<File>,
}

#[derive(Clone, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    sequence: u32,
    /// Tasks whose names are in this file.
    named: BTreeSet<u32>,
}

/// The kernel's limit for a name, its final NUL included.
const NAME_BYTES: usize = 16;

impl FileSet {
    /// `began`: the wall clock when the events' clock was at 0.
    pub fn new(device: Device, began: WallTime, names: BTreeMap<u32, String>) -> FileSet {
        FileSet {
            device,
            began,
            names,
            cpus: Vec::new(),
        }
    }

    /// Appends an event to its CPU's file.
    pub fn add(&mut self, line: &TraceLine) {
        let cpu = line.cpu as usize;
        while self.cpus.len() <= cpu {
            let began = self.note_of_beginning();
            self.cpus.push(began);
        }
        let file = &mut self.cpus[cpu];
        if let Some(name) = self.names.get(&line.pid)
            && file.named.insert(line.pid)
        {
            // In each file, so that a reader knows the name before the event, whichever file it reads first.
            let note = Record {
                action: action::NOTE_PROCESS,
                pid: line.pid,
                payload: &padded(name),
                ..note(self.device, line.at_ns, line.cpu)
            };
            note.write(&mut file.bytes);
        }
        if let What::Message(text) = &line.what {
            let note = Record {
                action: action::NOTE_MESSAGE,
                pid: line.pid,
                payload: text.as_bytes(),
                ..note(self.device, line.at_ns, line.cpu)
            };
            return note.write(&mut file.bytes);
        }
        file.sequence += 1;
        let count = match line.what {
            What::Unplug { requests, .. } => requests.to_be_bytes().to_vec(),
            _ => Vec::new(),
        };
        let record = Record {
            sequence: file.sequence,
            at_ns: line.at_ns,
            sector: line.sector,
            bytes: line.sectors.saturating_mul(512),
            action: action::of(line),
            pid: line.pid,
            device: self.device,
            cpu: line.cpu,
            error: line.error as u16,
            payload: &count,
        };
        record.write(&mut file.bytes);
    }

    /// The files, by CPU from 0 on: readers take those of a set until one is missing.
    pub fn finish(self) -> Vec<Vec<u8>> {
        self.cpus.into_iter().map(|file| file.bytes).collect()
    }

    /// What each file begins with.
    fn note_of_beginning(&self) -> File {
        let mut payload = self.began.seconds.to_le_bytes().to_vec();
        payload.extend(self.began.nanoseconds.to_le_bytes());
        let note = Record {
            action: action::NOTE_BEGAN,
            payload: &payload,
            ..note(self.device, 0, self.cpus.len() as u32)
        };
        let mut file = File::default();
        note.write(&mut file.bytes);
        file
    }
}

fn note(device: Device, at_ns: u64, cpu: u32) -> Record<'static> {
    Record {
        sequence: 0,
        at_ns,
        sector: 0,
        bytes: 0,
        action: 0,
        pid: 0,
        device,
        cpu,
        error: 0,
        payload: &[],
    }
}

fn padded(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    for (to, from) in bytes[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    bytes
}
