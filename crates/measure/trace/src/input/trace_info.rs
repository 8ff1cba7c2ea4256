//! What a file states about itself, and what could not be read of it.

use std::collections::BTreeMap;

use crate::event::{Device, TraceEvent};

/// Collected while a trace is read.
#[derive(Clone, Debug, Default)]
pub struct TraceInfo {
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
    /// Events that came after later ones had been reported; they count as lost.
    pub events_late: u64,
    /// Recordings in the file after the first.
    pub restarts: u64,
    /// What the tasks are called.
    pub names: BTreeMap<u32, String>,
    /// Devices of formats that name them instead of numbering them, by the numbers that they have here.
    pub device_names: BTreeMap<u32, String>,
    /// Whether devices have numbers of the trace's own, which are no major and minor.
    pub devices_numbered: bool,
    /// Notes for the reader of the figures.
    pub notes: Vec<String>,
    latest_pid: Option<u32>,
    /// `device_names` the other way round.
    device_numbers: BTreeMap<Vec<u8>, u32>,
}

/// Why a trace can't be read; one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(pub String);

/// More tasks than any kernel has at once; the names of further ones are not kept.
const NAMES_MAX: usize = 1 << 20;
const NAME_BYTES_MAX: usize = 64;
/// Where the numbers of devices that only have names begin: far from those that a trace gives itself.
const NAMED_DEVICES: u32 = 0xf000_0000;

impl TraceInfo {
    /// The description of an input of this format.
    pub fn of(format: impl Into<String>) -> TraceInfo {
        TraceInfo { format: format.into(), ..TraceInfo::default() }
    }

    /// A task's name, as a record has it; the last one is kept.
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

    /// A number for a device that only has a name: the next free.
    pub fn device(&mut self, name: &[u8]) -> Device {
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        if let Some(&number) = self.device_numbers.get(name) {
            return Device(number);
        }
        let number = NAMED_DEVICES.wrapping_add(self.device_numbers.len() as u32);
        self.device_numbers.insert(name.to_vec(), number);
        let name = String::from_utf8_lossy(name).into_owned();
        self.device_names.insert(number, name);
        Device(number)
    }

    /// What the trace calls a device.
    pub fn device_name(&self, device: Device) -> String {
        match self.device_names.get(&device.0) {
            Some(name) => name.clone(),
            None if self.devices_numbered => device.0.to_string(),
            None => device.to_string(),
        }
    }

    /// Whether the trace itself names a device, instead of its major and minor.
    pub fn names_device(&self, device: Device) -> bool {
        self.devices_numbered || self.device_names.contains_key(&device.0)
    }

    /// How many devices have names.
    pub(crate) fn named_devices(&self) -> usize {
        self.device_names.len()
    }

    /// The number here of a device that another file of the same trace names.
    pub(crate) fn device_of(&mut self, other: &TraceInfo, device: Device) -> Device {
        match other.device_names.get(&device.0) {
            Some(name) => self.device(name.as_bytes()),
            None => device,
        }
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

    /// Takes in what another file of the same trace states.
    pub fn merge(&mut self, other: TraceInfo) {
        self.records += other.records;
        self.records_skipped += other.records_skipped;
        self.malformed += other.malformed;
        self.first_malformed = self.first_malformed.take().or(other.first_malformed);
        self.events_late += other.events_late;
        self.restarts += other.restarts;
        self.names.extend(other.names);
        self.devices_numbered |= other.devices_numbered;
        for name in other.device_names.values() {
            self.device(name.as_bytes());
        }
        for note in &other.notes {
            self.note(note);
        }
    }
}

/// When each CPU's last event was: where a loss began that is seen at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastEventTimes(Vec<u64>);

impl LastEventTimes {
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

/// The numbers of the last records: blktrace counts those of each device on each CPU by themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Vec<BTreeMap<Device, u64>>);

/// Records have numbers of 32 bits.
const NUMBERS: u64 = 1 << 32;

impl Numbers {
    /// The number of the next record; yields how many were left out before it.
    #[inline]
    pub(crate) fn missing(&mut self, device: Device, cpu: u16, number: u64) -> u64 {
        let index = usize::from(cpu);
        if self.0.len() <= index {
            self.0.resize(index + 1, BTreeMap::new());
        }
        let Some(before) = self.0[index].insert(device, number) else {
            return 0;
        };
        let missing = number.wrapping_sub(before).wrapping_sub(1) % NUMBERS;
        // A number that goes back is of another recording, or of a file out of order.
        if missing < NUMBERS / 2 { missing } else { 0 }
    }

    /// This many numbers of each device on that CPU are left out on purpose.
    pub(crate) fn skip(&mut self, cpu: u16, count: u64) {
        let of_cpu = self.0.get_mut(usize::from(cpu));
        for number in of_cpu.into_iter().flat_map(BTreeMap::values_mut) {
            *number = number.wrapping_add(count) % NUMBERS;
        }
    }

    /// How many devices there are on all CPUs, each counted on each.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(BTreeMap::len).sum()
    }

    /// Whether a record of that CPU came before.
    pub(crate) fn knows(&self, cpu: u16) -> bool {
        let of_cpu = self.0.get(usize::from(cpu));
        of_cpu.is_some_and(|numbers| !numbers.is_empty())
    }
}
