//! One record: 48 bytes and its payload.

use super::action;
use crate::block::{Device, TraceLine};

/// A record as it lies in a file. Numbers are little-endian here; the kernel writes them as its processor has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Counts the records of a CPU from 1; notes are not counted and have 0.
    pub sequence: u32,
    /// Nanoseconds since the trace began.
    pub at_ns: u64,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// Length of the transfer in bytes.
    pub bytes: u32,
    /// What happened, and in which categories it falls.
    pub action: u32,
    /// The task that ran; of a completion, whichever was interrupted.
    pub pid: u32,
    /// The device that was traced.
    pub device: Device,
    /// The CPU where it happened.
    pub cpu: u32,
    /// Of completions: the low 16 bits of the errno, 0 of success.
    pub error: u16,
    /// What follows the header: a number, a name or a message, by action.
    pub payload: &'a [u8],
}

/// What a record says that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The task of that number is called so.
    Process {
        /// The task's number.
        pid: u32,
        /// Its name (`comm`).
        name: String,
    },
    /// The wall clock when the trace's clock was at the record's time.
    Began {
        /// Whole seconds since 1970.
        seconds: u32,
        /// The rest, below 1,000,000,000.
        nanoseconds: u32,
    },
}

/// Why bytes are no record. `at` counts from the start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The magic number is missing.
    #[error("byte {at}: no record of blktrace begins here")]
    NoMagic {
        /// Where a record has to begin.
        at: usize,
    },
    #[error(
        "byte {at}: a record of blktrace version {version}, and 7 is the only one that is known"
    )]
    /// The record's version is not 7.
    Version {
        /// Where the record begins.
        at: usize,
        /// The version that it states.
        version: u8,
    },
    /// The file ends before the record does.
    #[error("byte {at}: the file ends within a record")]
    Short {
        /// Where the record begins.
        at: usize,
    },
}

const MAGIC: u32 = 0x6561_7400;
const VERSION: u8 = 7;
const HEADER_BYTES: usize = 48;

impl Record<'_> {
    /// Appends it. A payload beyond 65535 bytes is cut there: records cannot have more.
    pub fn write(&self, file: &mut Vec<u8>) {
        let payload = &self.payload[..self.payload.len().min(usize::from(u16::MAX))];
        file.extend((MAGIC | u32::from(VERSION)).to_le_bytes());
        file.extend(self.sequence.to_le_bytes());
        file.extend(self.at_ns.to_le_bytes());
        file.extend(self.sector.to_le_bytes());
        for number in [self.bytes, self.action, self.pid, self.device.0, self.cpu] {
            file.extend(number.to_le_bytes());
        }
        file.extend(self.error.to_le_bytes());
        file.extend((payload.len() as u16).to_le_bytes());
        file.extend(payload);
    }

    /// The event that it is of; None of notes, and of what block traces of the model never have (split, remapped, ...).
    pub fn line(&self) -> Option<TraceLine> {
        let (op, flags) = action::direction(self.action);
        Some(TraceLine {
            at_ns: self.at_ns,
            cpu: self.cpu,
            device: self.device,
            pid: self.pid,
            sector: self.sector,
            sectors: self.bytes / 512,
            op,
            flags,
            error: self.error as i16,
            what: action::what(self.action, self.payload)?,
        })
    }

    /// What the record notes besides events; None of an event.
    pub fn note(&self) -> Option<Note> {
        match self.action {
            action::NOTE_PROCESS => {
                let name = self.payload.split(|&byte| byte == 0).next()?;
                Some(Note::Process {
                    pid: self.pid,
                    name: String::from_utf8_lossy(name).into_owned(),
                })
            }
            action::NOTE_BEGAN => Some(Note::Began {
                seconds: u32_at(self.payload, 0)?,
                nanoseconds: u32_at(self.payload, 4)?,
            }),
            _ => None,
        }
    }
}

/// The records of a file, in its order. Ends after the first that is malformed.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    /// All records of a file.
    pub fn of(file: &'a [u8]) -> Records<'a> {
        Records { file, at: 0 }
    }

    fn read(&self) -> Result<(Record<'a>, usize), Malformed> {
        let at = self.at;
        let file = &self.file[at..];
        let short = Malformed::Short { at };
        let magic = u32_at(file, 0).ok_or(short)?;
        match magic {
            magic if magic & !0xff != MAGIC => return Err(Malformed::NoMagic { at }),
            magic if magic as u8 != VERSION => {
                let version = magic as u8;
                return Err(Malformed::Version { at, version });
            }
            _ => {}
        }
        let header = file.get(..HEADER_BYTES).ok_or(short)?;
        let number = |at| u32_at(header, at).ok_or(short);
        let long = |at| Ok(u64::from(number(at)?) | u64::from(number(at + 4)?) << 32);
        let last = number(44)?;
        let length = HEADER_BYTES + (last >> 16) as usize;
        let record = Record {
            sequence: number(4)?,
            at_ns: long(8)?,
            sector: long(16)?,
            bytes: number(24)?,
            action: number(28)?,
            pid: number(32)?,
            device: Device(number(36)?),
            cpu: number(40)?,
            error: last as u16,
            payload: file.get(HEADER_BYTES..length).ok_or(short)?,
        };
        Ok((record, length))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.file.len() {
            return None;
        }
        match self.read() {
            Ok((record, length)) => {
                self.at += length;
                Some(Ok(record))
            }
            Err(malformed) => {
                self.at = self.file.len();
                Some(Err(malformed))
            }
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
