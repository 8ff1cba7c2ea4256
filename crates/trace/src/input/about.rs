//! What a file says of itself, and what could not be read of it.

use std::collections::BTreeMap;

use crate::event::TraceEvent;

/// Collected while a trace is read.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Which format it is, such as `blktrace 7`.
    pub format: String,
    /// Records or lines that were read.
    pub records: u64,
    /// Records of other things than block I/O.
    pub records_skipped: u64,
    /// Records that could not be understood.
    pub malformed: u64,
    /// Why the first of them could not.
    pub first_malformed: Option<String>,
    /// Events that came so late that what happened after them had been told; they count as lost.
    pub events_late: u64,
    /// Recordings in the file after the first.
    pub restarts: u64,
    /// What the tasks are called.
    pub names: BTreeMap<u32, String>,
    /// Devices of formats that name them instead of numbering them.
    pub device_names: BTreeMap<u32, String>,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    latest_pid: Option<u32>,
}

/// Why a trace can't be read; one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(pub String);

/// More tasks than any kernel has at once; the names of further ones are not kept.
const NAMES_MAX: usize = 1 << 20;
const NAME_BYTES_MAX: usize = 64;
const DEVICES_MAX: usize = 1 << 16;

impl About {
    /// Of a format.
    pub fn of(format: impl Into<String>) -> About {
        About {
            format: format.into(),
            ..About::default()
        }
    }

    /// A task's name, as a record tells it; the last one told is kept.
    #[inline]
    pub fn name(&mut self, pid: u32, name: &[u8]) {
        if self.latest_pid == Some(pid) {
            return;
        }
        self.latest_pid = Some(pid);
        if !self.names.contains_key(&pid) {
            self.rename(pid, name);
        }
    }

    /// The same of a record that is about nothing but the name.
    pub fn rename(&mut self, pid: u32, name: &[u8]) {
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        if !name.is_empty() && (self.names.len() < NAMES_MAX || self.names.contains_key(&pid)) {
            let name = String::from_utf8_lossy(name).into_owned();
            self.names.insert(pid, name);
        }
    }

    /// A number for a device that only has a name: its own digits where it is one, otherwise the next free.
    pub fn device(&mut self, name: &[u8]) -> u32 {
        let found = self
            .device_names
            .iter()
            .find(|(_, known)| known.as_bytes() == name);
        if let Some((&number, _)) = found {
            return number;
        }
        let number = self.device_names.len() as u32;
        if self.device_names.len() < DEVICES_MAX {
            let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]);
            self.device_names.insert(number, name.into_owned());
        }
        number
    }

    /// Something that is no record.
    pub fn malformed(&mut self, why: impl FnOnce() -> String) {
        self.malformed += 1;
        self.first_malformed.get_or_insert_with(why);
    }

    /// A note, once.
    pub fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// Takes in what another file of the same trace says.
    pub fn merge(&mut self, other: About) {
        self.records += other.records;
        self.records_skipped += other.records_skipped;
        self.malformed += other.malformed;
        self.first_malformed = self.first_malformed.take().or(other.first_malformed);
        self.events_late += other.events_late;
        self.restarts += other.restarts;
        self.names.extend(other.names);
        self.device_names.extend(other.device_names);
        for note in &other.notes {
            self.note(note);
        }
    }
}

/// When each CPU's last event was: where a loss began that is seen at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastSeen(Vec<u64>);

impl LastSeen {
    /// An event of a CPU; yields when the one before it was.
    #[inline]
    pub(crate) fn seen(&mut self, cpu: u16, at_ns: u64) -> Option<u64> {
        let index = usize::from(cpu);
        if self.0.len() <= index {
            self.0.resize(index + 1, u64::MAX);
        }
        let before = std::mem::replace(&mut self.0[index], at_ns);
        (before != u64::MAX).then_some(before)
    }

    /// The loss that ends with the next event of that CPU.
    pub(crate) fn loss(&self, cpu: u16, until_ns: u64, count: u64) -> TraceEvent {
        let before = self.0.get(usize::from(cpu)).copied();
        let since_ns = before.filter(|&at_ns| at_ns != u64::MAX);
        TraceEvent::lost(since_ns.unwrap_or(until_ns), until_ns, count, cpu)
    }
}
