//! One event of a trace, whatever file it comes from.

use std::fmt;

/// What a trace reports at one moment. Which of the numbers mean something depends on the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// On the trace's own clock, in nanoseconds.
    pub at_ns: u64,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// The step's own number; see [`Step`].
    pub argument: u64,
    /// Length in the same sectors.
    pub sectors: u32,
    /// The disk; of a bio on a partition, the partition.
    pub device: Device,
    /// The step's other number; see [`Step`]. [`NO_DETAIL`]: it has none.
    pub detail: u32,
    /// The task that ran: the submitter's own until the request is formed, anybody afterwards.
    pub pid: u32,
    /// Where it happened.
    pub cpu: u16,
    /// The negative errno of a completion, 0 for success.
    pub error: i16,
    /// What happened.
    pub step: Step,
    /// What is done with the sectors.
    pub op: Op,
    /// How the submitter marked it.
    pub marks: Marks,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Step {
    /// A bio entered the block layer.
    Queue,
    /// There was no request for a bio: its task sleeps until there is one.
    Sleep,
    /// A bio became a request.
    GetRequest,
    /// A bio joined a request at its end.
    BackMerge,
    /// A bio joined a request at its beginning.
    FrontMerge,
    /// A request joined the one before it.
    RequestMerge,
    /// A request was handed to the I/O scheduler.
    Insert,
    /// A request was handed to the driver.
    Issue,
    /// The driver gave a request back untried.
    Requeue,
    /// A request, or the first sectors of one, completed.
    Complete,
    /// A bio completed.
    BioComplete,
    /// A bio was too large; the argument is the sector where its second part begins.
    Split,
    /// A bio was sent on to another device; the argument is its sector on the one before, whose number is the detail.
    Remap,
    /// A task holds back what it submits.
    Plug,
    /// It lets go; the argument is the number of requests.
    Unplug,
    /// Its timer ended that, in kernels before 2.6.39; the argument is the number of requests.
    TimerUnplug,
    /// A message of a scheduler, whose text is kept elsewhere.
    Message,
    /// The trace reports only that an I/O arrived.
    Arrival,
    /// An I/O ended; the argument is how many nanoseconds after it was handed to the driver, and the detail how many
    /// microseconds it had waited until then.
    DeviceDone,
    /// An I/O ended; the argument is how many nanoseconds after it arrived.
    WholeDone,
    /// Events are missing from here until the time in the argument; `sectors` is how many, 0: unknown.
    Lost,
    /// Another recording begins: nothing from before continues.
    Restart,
}

/// How many steps there are.
pub const STEPS: usize = Step::Restart as usize + 1;

/// What figures call the steps, in their order.
pub(crate) const STEP_NAMES: [&str; STEPS] = [
    "queue",
    "sleep",
    "get_request",
    "back_merge",
    "front_merge",
    "request_merge",
    "insert",
    "issue",
    "requeue",
    "complete",
    "bio_complete",
    "split",
    "remap",
    "plug",
    "unplug",
    "timer_unplug",
    "message",
    "arrival",
    "device_done",
    "whole_done",
    "lost",
    "restart",
];

impl Step {
    /// What figures call it.
    pub fn name(self) -> &'static str {
        STEP_NAMES[self as usize]
    }

    /// Whether it is about a bio, a request or an I/O, and not about tasks, schedulers or the trace itself.
    #[inline]
    pub fn is_of_bios(self) -> bool {
        !matches!(
            self,
            Step::Sleep | Step::Plug | Step::Unplug | Step::TimerUnplug | Step::Message | Step::Lost | Step::Restart
        )
    }
}

/// Marks of bios and requests that traces show as letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub u8);

impl Marks {
    /// S: a task waits for it.
    pub const SYNC: Marks = Marks(1);
    /// A: read-ahead.
    pub const READ_AHEAD: Marks = Marks(2);
    /// M: metadata of a filesystem.
    pub const METADATA: Marks = Marks(4);
    /// F after the operation: to be on the medium before it completes.
    pub const FUA: Marks = Marks(8);
    /// F before the operation: what the device caches goes to the medium first.
    pub const PREFLUSH: Marks = Marks(16);
    /// Z after a write: zeroes, for which no data are carried.
    pub const ZEROES: Marks = Marks(32);

    /// Whether it carries that mark.
    pub fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }

    /// With these marks too.
    pub fn with(self, more: Marks) -> Marks {
        Marks(self.0 | more.0)
    }
}

/// `major:minor`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device(pub u32);

/// The operation in the first letters of `rwbs`.
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

/// The step has no other number, or it is unknown.
pub const NO_DETAIL: u32 = u32::MAX;

impl TraceEvent {
    /// An event of that step; the rest is to be filled in.
    pub fn new(at_ns: u64, step: Step) -> TraceEvent {
        TraceEvent {
            at_ns,
            sector: 0,
            argument: 0,
            sectors: 0,
            device: Device(0),
            detail: NO_DETAIL,
            pid: 0,
            cpu: 0,
            error: 0,
            step,
            op: Op::Other,
            marks: Marks::default(),
        }
    }

    /// When the I/O that it reports began; before the event's own time if the line reports an end.
    #[inline]
    pub fn began_ns(&self) -> u64 {
        match self.step {
            Step::DeviceDone | Step::WholeDone => self.at_ns.saturating_sub(self.argument),
            _ => self.at_ns,
        }
    }

    /// How many microseconds the I/O had waited when the driver got it, if the line reports that.
    #[inline]
    pub fn waited_us(&self) -> Option<u32> {
        let known = self.step == Step::DeviceDone && self.detail != NO_DETAIL;
        known.then_some(self.detail)
    }

    /// The device that the bio was sent on from, if the trace reports it.
    #[inline]
    pub fn sent_from(&self) -> Option<Device> {
        let known = self.step == Step::Remap && self.detail != NO_DETAIL;
        known.then_some(Device(self.detail))
    }

    /// Events of a CPU are missing after `since_ns` and before `until_ns`.
    pub fn lost(since_ns: u64, until_ns: u64, count: u64, cpu: u16) -> TraceEvent {
        TraceEvent {
            argument: until_ns,
            sectors: u32::try_from(count).unwrap_or(u32::MAX),
            cpu,
            ..TraceEvent::new(since_ns.min(until_ns), Step::Lost)
        }
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
    /// `rwbs`, ended by a NUL, as `blk_fill_rwbs` fills it (`kernel/trace/blktrace.c` of 6.1): an F first for a flush
    /// before the data, then the operation, then letters that qualify it (FUA, read-ahead, synchronous, metadata).
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

/// Reads the kernel's letters: a flush before the data, the operation, FUA, and letters that qualify it.
#[inline]
pub fn op_and_marks(rwbs: &[u8]) -> (Op, Marks) {
    let op = Op::of_rwbs(rwbs);
    // Of the driver's own flush, FF, the second is the operation.
    let first_flushes = rwbs.first() == Some(&b'F') && (op != Op::Flush || rwbs.get(1) == Some(&b'F'));
    let (rest, mut marks) = match first_flushes {
        true if op == Op::Flush => (rwbs.get(2..), Marks::default()),
        true => (rwbs.get(2..), Marks::PREFLUSH),
        false => (rwbs.get(1..), Marks::default()),
    };
    for letter in rest.unwrap_or_default() {
        marks = marks.with(match letter {
            b'F' => Marks::FUA,
            b'A' => Marks::READ_AHEAD,
            b'S' => Marks::SYNC,
            b'M' => Marks::METADATA,
            b'Z' if op == Op::Write => Marks::ZEROES,
            0 => break,
            _ => Marks::default(),
        });
    }
    (op, marks)
}

/// The letters of an operation and its marks, as the kernel writes them.
pub fn rwbs(op: Op, marks: Marks) -> String {
    let mut text = String::new();
    if marks.has(Marks::PREFLUSH) {
        text.push('F');
    }
    text.push(match op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Discard => 'D',
        Op::Flush => 'F',
        Op::Other => 'N',
    });
    let letters =
        [(Marks::ZEROES, 'Z'), (Marks::FUA, 'F'), (Marks::READ_AHEAD, 'A'), (Marks::SYNC, 'S'), (Marks::METADATA, 'M')];
    text.extend(letters.into_iter().filter(|(mark, _)| marks.has(*mark)).map(|(_, letter)| letter));
    text
}

const MINOR_BITS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_the_kernel_writes_them() {
        let (op, marks) = op_and_marks(b"FWFSM\0\0");
        assert_eq!(op, Op::Write);
        let set = [Marks::PREFLUSH, Marks::FUA, Marks::SYNC, Marks::METADATA];
        assert!(set.iter().all(|&mark| marks.has(mark)) && !marks.has(Marks::READ_AHEAD));
        assert_eq!(rwbs(op, marks), "FWFSM");
        assert_eq!(op_and_marks(b"FF\0"), (Op::Flush, Marks::default()));
        assert_eq!(op_and_marks(b"RA"), (Op::Read, Marks::READ_AHEAD));
        assert_eq!(op_and_marks(b"DS"), (Op::Discard, Marks::SYNC));
        let zeroes = Marks::ZEROES.with(Marks::SYNC);
        assert_eq!(op_and_marks(b"WZS"), (Op::Write, zeroes));
        assert_eq!(rwbs(Op::Write, zeroes), "WZS");
        // The end of an append to a zone.
        assert_eq!(op_and_marks(b"ZA"), (Op::Other, Marks::READ_AHEAD));
    }

    #[test]
    fn an_event_is_no_larger_than_a_record_of_blktrace() {
        assert_eq!(size_of::<TraceEvent>(), 48);
    }
}
