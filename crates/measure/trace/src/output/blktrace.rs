//! Files of blktrace, a file for each CPU, as blkparse and btt read them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::record::Record;
use super::remark::Remark;
use super::reorder_buffer::ReorderBuffer;
use crate::event::{Device, Marks, Op, Step, TraceEvent};
use base::SECTOR_BYTES;

/// Writes such files.
#[derive(Clone, Debug)]
pub struct Blktrace<F, W> {
    /// Opens the file of a CPU.
    open: F,
    names: BTreeMap<u32, String>,
    /// From 0 on: readers take the files of a set until one is missing.
    cpus: Vec<Cpu<W>>,
    began_ns: Option<u64>,
    in_order: ReorderBuffer,
    /// The event that comes next ends an I/O.
    ends: bool,
}

#[derive(Clone, Debug)]
struct Cpu<W> {
    out: W,
    /// The number of the last record of each device.
    numbers: BTreeMap<Device, u32>,
    named: BTreeSet<u32>,
}

const QUEUE: u32 = 1 << 20;
const REQUEUE: u32 = 1 << 21;
const ISSUE: u32 = 1 << 22;
const COMPLETE: u32 = 1 << 23;
const NOTE: u32 = 1 << 26;
const PROCESS: u32 = 0;
const BEGAN: u32 = 1;
const MESSAGE: u32 = 2;
/// The kernel's limit for a name, its final NUL included.
const NAME_BYTES: usize = 16;

impl<F: FnMut(u16) -> io::Result<W>, W: Write> Blktrace<F, W> {
    /// `names`: what the tasks are called. `began_ns`: the time that the files call 0; None: that of the first event.
    pub fn new(open: F, names: BTreeMap<u32, String>, began_ns: Option<u64>) -> Blktrace<F, W> {
        Blktrace { open, names, cpus: Vec::new(), began_ns, in_order: ReorderBuffer::default(), ends: false }
    }

    /// The next event ends an I/O: a device without requests reports this by its bios alone, others by both.
    pub fn ends(&mut self) {
        self.ends = true;
    }

    /// The next event.
    pub fn event(&mut self, event: &TraceEvent) -> io::Result<()> {
        let mut in_order = std::mem::take(&mut self.in_order);
        let written = in_order.pass(event, |event| self.record(event));
        self.in_order = in_order;
        written
    }

    fn record(&mut self, event: &TraceEvent) -> io::Result<()> {
        let at_ns = self.since_began(event);
        let began_ns = event.at_ns - at_ns;
        let ends = std::mem::take(&mut self.ends);
        let cpu = self.named(event)?;
        let remark = match event.step {
            Step::Lost => {
                let count = event.sectors.max(1);
                for number in cpu.numbers.values_mut() {
                    *number = number.wrapping_add(count);
                }
                Some(Remark::Lost {
                    count: u64::from(event.sectors),
                    until_ns: match event.argument {
                        u64::MAX => u64::MAX,
                        until_ns => until_ns.saturating_sub(began_ns),
                    },
                })
            }
            Step::Restart => Some(Remark::Restart),
            _ => None,
        };
        if let Some(remark) = remark {
            return cpu.write(&Record { at_ns, ..note(event.cpu, 0, MESSAGE, remark.text().as_bytes()) });
        }
        let action = match (event.step, ends) {
            (Step::BioComplete, true) => action(Step::Complete),
            (step, _) => action(step),
        };
        let Some(action) = action else {
            return Ok(());
        };
        let number = cpu.numbers.entry(event.device).or_default();
        *number = number.wrapping_add(1);
        let sequence = *number;
        let payload = payload(event);
        let record = Record {
            sequence,
            at_ns,
            sector: event.sector,
            bytes: event.sectors.saturating_mul(SECTOR_BYTES as u32),
            action: action | category(event.op, event.marks),
            pid: event.pid,
            device: event.device,
            cpu: u32::from(event.cpu),
            error: event.error as u16,
            payload: &payload,
        };
        cpu.write(&record)
    }

    /// A scheduler's message, with its time and place.
    pub fn message(&mut self, event: &TraceEvent, text: &str) -> io::Result<()> {
        let at_ns = self.since_began(event);
        let record = Record { at_ns, device: event.device, ..note(event.cpu, event.pid, MESSAGE, text.as_bytes()) };
        self.named(event)?.write(&record)
    }

    /// The files' end; the files.
    pub fn finish(mut self) -> io::Result<Vec<W>> {
        let mut in_order = std::mem::take(&mut self.in_order);
        in_order.finish(|event| self.record(event))?;
        self.cpus.iter_mut().try_for_each(|cpu| cpu.out.flush())?;
        Ok(self.cpus.into_iter().map(|cpu| cpu.out).collect())
    }

    fn since_began(&mut self, event: &TraceEvent) -> u64 {
        let began_ns = *self.began_ns.get_or_insert(event.at_ns);
        event.at_ns.saturating_sub(began_ns)
    }

    /// The file of the event's CPU, in which its task is named: in each file, so that a reader knows the name before
    /// the event, whichever file it reads first.
    fn named(&mut self, event: &TraceEvent) -> io::Result<&mut Cpu<W>> {
        let number = usize::from(event.cpu);
        while self.cpus.len() <= number {
            let cpu = self.begin(self.cpus.len() as u16)?;
            self.cpus.push(cpu);
        }
        let cpu = &mut self.cpus[number];
        if !matches!(event.step, Step::Lost | Step::Restart)
            && let Some(name) = self.names.get(&event.pid)
            && cpu.named.insert(event.pid)
        {
            let mut payload = [0; NAME_BYTES];
            let length = name.len().min(NAME_BYTES - 1);
            payload[..length].copy_from_slice(&name.as_bytes()[..length]);
            cpu.write(&note(event.cpu, event.pid, PROCESS, &payload))?;
        }
        Ok(cpu)
    }

    /// A file with what each begins with: the wall clock at time 0, which is unknown.
    fn begin(&mut self, cpu: u16) -> io::Result<Cpu<W>> {
        let mut begun = Cpu { out: (self.open)(cpu)?, numbers: BTreeMap::new(), named: BTreeSet::new() };
        begun.write(&note(cpu, 0, BEGAN, &[0; 8]))?;
        Ok(begun)
    }
}

impl<W: Write> Cpu<W> {
    fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        self.out.write_all(&bytes)
    }
}

fn note(cpu: u16, pid: u32, what: u32, payload: &[u8]) -> Record<'_> {
    Record {
        sequence: 0,
        at_ns: 0,
        sector: 0,
        bytes: 0,
        action: NOTE | what,
        pid,
        device: Device(0),
        cpu: u32::from(cpu),
        error: 0,
        payload,
    }
}

fn action(step: Step) -> Option<u32> {
    Some(match step {
        Step::Queue | Step::Arrival => QUEUE | 1,
        // As kernels from 5.9 on write it; earlier ones do not report such merges.
        Step::BackMerge | Step::RequestMerge => QUEUE | 2,
        Step::FrontMerge => QUEUE | 3,
        Step::GetRequest => QUEUE | 4,
        Step::Sleep => QUEUE | 5,
        Step::Requeue => REQUEUE | 6,
        Step::Issue => ISSUE | 7,
        Step::Complete => COMPLETE | 8,
        Step::Plug => QUEUE | 9,
        Step::Unplug => QUEUE | 10,
        Step::TimerUnplug => QUEUE | 11,
        Step::Insert => QUEUE | 12,
        Step::Split => QUEUE | 13,
        Step::Remap => QUEUE | 15,
        Step::BioComplete | Step::Message | Step::DeviceDone | Step::WholeDone | Step::Lost | Step::Restart => {
            return None;
        }
    })
}

fn category(op: Op, marks: Marks) -> u32 {
    let operation = match op {
        Op::Read => 1 << 16,
        Op::Write => 1 << 17,
        Op::Discard => 1 << 17 | 1 << 29,
        Op::Flush => 1 << 18,
        Op::Other => 1 << 25,
    };
    let bits =
        [(Marks::PREFLUSH, 18), (Marks::SYNC, 19), (Marks::READ_AHEAD, 27), (Marks::METADATA, 28), (Marks::FUA, 31)];
    bits.into_iter().filter(|(mark, _)| marks.has(*mark)).fold(operation, |sum, (_, bit)| sum | 1 << bit)
}

fn payload(event: &TraceEvent) -> Vec<u8> {
    match event.step {
        Step::Unplug | Step::TimerUnplug | Step::Split => event.argument.to_be_bytes().to_vec(),
        Step::Remap => {
            let from = event.sent_from().unwrap_or(event.device);
            let mut payload = from.0.to_be_bytes().to_vec();
            payload.extend(event.device.0.to_be_bytes());
            payload.extend(event.argument.to_be_bytes());
            payload
        }
        _ => Vec::new(),
    }
}
