//! Files of blktrace, a file for each CPU, as blkparse and btt read them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use crate::blktrace::Record;
use crate::block::{Device, Op};
use crate::event::{Marks, Step, TraceEvent};

/// Writes such files.
pub struct Blktrace<F> {
    /// Opens the file of a CPU.
    open: F,
    names: BTreeMap<u32, String>,
    cpus: BTreeMap<u16, Cpu>,
    began_ns: Option<u64>,
}

struct Cpu {
    out: Box<dyn Write + Send>,
    sequence: u32,
    named: BTreeSet<u32>,
}

const QUEUE: u32 = 1 << 20;
const REQUEUE: u32 = 1 << 21;
const ISSUE: u32 = 1 << 22;
const COMPLETE: u32 = 1 << 23;
const NOTE: u32 = 1 << 26;
const NAME_BYTES: usize = 16;

impl<F: FnMut(u16) -> io::Result<Box<dyn Write + Send>>> Blktrace<F> {
    /// `names`: what the tasks are called.
    pub fn new(open: F, names: BTreeMap<u32, String>) -> Blktrace<F> {
        Blktrace {
            open,
            names,
            cpus: BTreeMap::new(),
            began_ns: None,
        }
    }

    /// The next event.
    pub fn event(&mut self, event: &TraceEvent) -> io::Result<()> {
        let began_ns = *self.began_ns.get_or_insert(event.at_ns);
        let at_ns = event.at_ns.saturating_sub(began_ns);
        // Readers take the files of a set until one is missing.
        for cpu in 0..=event.cpu {
            if !self.cpus.contains_key(&cpu) {
                let cpu_file = self.begin(cpu)?;
                self.cpus.insert(cpu, cpu_file);
            }
        }
        let Some(cpu) = self.cpus.get_mut(&event.cpu) else {
            return Ok(());
        };
        if event.step == Step::Lost {
            cpu.sequence = cpu.sequence.wrapping_add(event.sectors.max(1));
            return Ok(());
        }
        let Some(action) = action(event.step) else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        if let Some(name) = self.names.get(&event.pid)
            && cpu.named.insert(event.pid)
        {
            let mut payload = [0; NAME_BYTES];
            let length = name.len().min(NAME_BYTES - 1);
            payload[..length].copy_from_slice(&name.as_bytes()[..length]);
            note(event.cpu, event.pid, 0, &payload).write(&mut bytes);
        }
        cpu.sequence = cpu.sequence.wrapping_add(1);
        let payload = payload(event);
        let record = Record {
            sequence: cpu.sequence,
            at_ns,
            sector: event.sector,
            bytes: event.sectors.saturating_mul(512),
            action: action | category(event.op, event.marks),
            pid: event.pid,
            device: event.device,
            cpu: u32::from(event.cpu),
            error: event.error as u16,
            payload: &payload,
        };
        record.write(&mut bytes);
        cpu.out.write_all(&bytes)
    }

    /// The files' end.
    pub fn finish(mut self) -> io::Result<()> {
        self.cpus.values_mut().try_for_each(|cpu| cpu.out.flush())
    }

    /// A file with what each begins with: the wall clock at time 0, which nobody knows any more.
    fn begin(&mut self, cpu: u16) -> io::Result<Cpu> {
        let mut out = (self.open)(cpu)?;
        let mut bytes = Vec::new();
        note(cpu, 0, 1, &[0; 8]).write(&mut bytes);
        out.write_all(&bytes)?;
        Ok(Cpu {
            out,
            sequence: 0,
            named: BTreeSet::new(),
        })
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
        Step::BackMerge | Step::RequestMerge => QUEUE | 2,
        Step::FrontMerge => QUEUE | 3,
        Step::GetRequest => QUEUE | 4,
        Step::Sleep => QUEUE | 5,
        Step::Requeue => REQUEUE | 6,
        Step::Issue => ISSUE | 7,
        Step::Complete => COMPLETE | 8,
        Step::Plug => QUEUE | 9,
        Step::Unplug => QUEUE | 10,
        Step::Insert => QUEUE | 12,
        Step::Split => QUEUE | 13,
        Step::Remap => QUEUE | 15,
        Step::BioComplete | Step::DeviceDone | Step::WholeDone | Step::Lost | Step::Restart => {
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
    let bits = [
        (Marks::PREFLUSH, 18),
        (Marks::SYNC, 19),
        (Marks::READ_AHEAD, 27),
        (Marks::METADATA, 28),
        (Marks::FUA, 31),
    ];
    bits.into_iter()
        .filter(|(mark, _)| marks.has(*mark))
        .fold(operation, |sum, (_, bit)| sum | 1 << bit)
}

fn payload(event: &TraceEvent) -> Vec<u8> {
    match event.step {
        Step::Unplug | Step::Split => event.argument.to_be_bytes().to_vec(),
        Step::Remap => {
            let mut payload = event.device.0.to_be_bytes().to_vec();
            payload.extend(event.device.0.to_be_bytes());
            payload.extend(event.argument.to_be_bytes());
            payload
        }
        _ => Vec::new(),
    }
}
