//! One block event.

use std::fmt;

use crate::decode::{Layouts, Wanted};
use crate::format::{EventFormat, Field, FormatError, Number};
use crate::page::RawEvent;

/// What happened to a bio or a request, and which sectors it covered then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// On the recording's clock, in nanoseconds.
    pub at_ns: u64,
    /// Where it happened.
    pub cpu: u32,
    /// What happened.
    pub kind: Kind,
    /// The disk; of a bio on a partition, the partition.
    pub device: Device,
    /// In sectors of 512 bytes, whatever the device's.
    pub sector: u64,
    /// Length in the same sectors.
    pub sectors: u64,
    /// What is done with the sectors.
    pub op: Op,
    /// The task that ran on the CPU: the submitter's own until the request is formed, anybody afterwards.
    pub pid: u32,
    /// Of completions: negative errno, or the sum of such; 0 of success.
    pub error: i64,
}

/// The steps of bios and requests, as the block layer's trace events name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A bio entered the block layer.
    Queue,
    /// A bio was too large: `new_sector` is where its second part begins.
    Split {
        /// In sectors of 512 bytes.
        new_sector: u64,
    },
    /// A bio joined a request at its end.
    BackMerge,
    /// A bio joined a request at its beginning.
    FrontMerge,
    /// A bio became a request.
    GetRequest,
    /// A request joined the one before it; the sectors are those of the one that joined.
    RequestMerge,
    /// A request was handed to the I/O scheduler, or to the software queue where there is none.
    Insert,
    /// A request was handed to the driver.
    Issue,
    /// The driver gave a request back untried.
    Requeue,
    /// A request, or the first sectors of one, completed.
    Complete,
    /// A bio completed. All there is of devices without requests (zram, device mapper).
    BioComplete,
}

/// `major:minor`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device(pub u32);

/// Which operation, as the first letters of `rwbs` tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// R: a read.
    Read,
    /// W: a write.
    Write,
    /// D: discard or secure erase.
    Discard,
    /// F: a flush without data.
    Flush,
    /// Commands of the driver, zone management.
    Other,
}

/// What to record. With only those that are required, merges and the time in the scheduler are not seen.
pub const EVENTS: &[Wanted] = &[
    wanted("block_bio_queue", true),
    wanted("block_split", false),
    wanted("block_bio_backmerge", false),
    wanted("block_bio_frontmerge", false),
    wanted("block_rq_merge", false),
    wanted("block_rq_insert", false),
    wanted("block_rq_issue", true),
    wanted("block_rq_requeue", false),
    wanted("block_rq_complete", true),
];

/// That a bio became a request. It can be decoded, but need not be recorded: what comes after it tells as much.
pub const GET_REQUEST: Wanted = wanted("block_getrq", false);

/// To record in addition of devices without requests. Of others it only repeats what is known, at the cost of an event.
pub const BIO_COMPLETE: Wanted = wanted("block_bio_complete", false);

/// Records as block events.
#[derive(Clone, Debug)]
pub struct BlockDecoder {
    layouts: Layouts<Layout>,
}

impl BlockDecoder {
    /// `formats`: of the recorded events; others may be among them.
    pub fn new(formats: &[EventFormat]) -> Result<BlockDecoder, FormatError> {
        Ok(BlockDecoder {
            layouts: Layouts::new(EVENTS, formats, Layout::new)?,
        })
    }

    /// None of a record of another event.
    #[inline]
    pub fn decode(&self, cpu: u32, raw: &RawEvent<'_>) -> Result<Option<BlockEvent>, FormatError> {
        self.layouts
            .read(raw, |layout, record| layout.read(cpu, raw.at_ns, record))
    }
}

impl Device {
    /// From the numbers of stat(2) or `/sys/block/NAME/dev`. The kernel's own dev_t has 12 and 20 bits.
    pub fn new(major: u32, minor: u32) -> Device {
        Device(major << MINOR_BITS | minor & ((1 << MINOR_BITS) - 1))
    }

    /// The number of the driver.
    pub fn major(self) -> u32 {
        self.0 >> MINOR_BITS
    }

    /// The number among the driver's devices.
    pub fn minor(self) -> u32 {
        self.0 & ((1 << MINOR_BITS) - 1)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major(), self.minor())
    }
}

impl Op {
    /// `rwbs`, ended by a NUL, as kernel/trace/blktrace.c fills it: an F first for a flush before the data, then the operation, then
    /// letters that qualify it (FUA, read-ahead, synchronous, metadata).
    #[inline]
    pub fn of_rwbs(rwbs: &[u8]) -> Op {
        let (first, second) = (rwbs.first(), rwbs.get(1));
        let letter = match (first, second) {
            (Some(b'F'), Some(b'W' | b'R' | b'D' | b'N' | b'Z')) => second,
            _ => first,
        };
        match letter {
            Some(b'R') => Op::Read,
            Some(b'W') => Op::Write,
            Some(b'D') => Op::Discard,
            Some(b'F') => Op::Flush,
            _ => Op::Other,
        }
    }
}

/// Where the fields of one kind of event lie.
#[derive(Clone, Debug)]
struct Layout {
    kind: Kind,
    device: Number,
    sector: Number,
    sectors: Option<Number>,
    new_sector: Option<Number>,
    rwbs: Field,
    pid: Number,
    error: Option<Number>,
}

impl Layout {
    fn new(format: &EventFormat) -> Result<Option<Layout>, FormatError> {
        let kind = match format.name.as_str() {
            "block_bio_queue" => Kind::Queue,
            "block_split" => Kind::Split { new_sector: 0 },
            "block_bio_backmerge" => Kind::BackMerge,
            "block_bio_frontmerge" => Kind::FrontMerge,
            "block_getrq" => Kind::GetRequest,
            "block_rq_merge" => Kind::RequestMerge,
            "block_rq_insert" => Kind::Insert,
            "block_rq_issue" => Kind::Issue,
            "block_rq_requeue" => Kind::Requeue,
            "block_rq_complete" => Kind::Complete,
            "block_bio_complete" => Kind::BioComplete,
            _ => return Ok(None),
        };
        let splits = matches!(kind, Kind::Split { .. });
        let completes = matches!(kind, Kind::Complete | Kind::BioComplete);
        let number =
            |wanted: bool, names: &[&str]| wanted.then(|| Number::of(format, names)).transpose();
        Ok(Some(Layout {
            kind,
            device: Number::of(format, &["dev"])?,
            sector: Number::of(format, &["sector"])?,
            sectors: number(!splits, &["nr_sector"])?,
            new_sector: number(splits, &["new_sector"])?,
            rwbs: format.field("rwbs")?,
            pid: Number::of(format, &["common_pid"])?,
            // `errors` of requests until 4.14.
            error: number(completes, &["error", "errors"])?,
        }))
    }

    #[inline]
    fn read(&self, cpu: u32, at_ns: u64, record: &[u8]) -> Option<BlockEvent> {
        let number = |field: Option<Number>| field.map_or(Some(0), |field| field.read(record));
        let kind = match self.new_sector {
            Some(new_sector) => Kind::Split {
                new_sector: new_sector.read(record)?,
            },
            None => self.kind,
        };
        Some(BlockEvent {
            at_ns,
            cpu,
            kind,
            device: Device(self.device.read(record)? as u32),
            sector: self.sector.read(record)?,
            sectors: number(self.sectors)?,
            op: Op::of_rwbs(self.rwbs.bytes(record)?),
            pid: self.pid.read(record)? as u32,
            error: number(self.error)? as i64,
        })
    }
}

const fn wanted(name: &'static str, required: bool) -> Wanted {
    Wanted {
        system: "block",
        name,
        required,
    }
}

const MINOR_BITS: u32 = 20;
