//! One event of a trace, whatever file it comes from.

use crate::block::{Device, Op};

/// What a trace tells at one moment. Which of the numbers mean something depends on the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// On the trace's own clock, in nanoseconds.
    pub at_ns: u64,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// What the step says of itself; see [`Step`].
    pub argument: u64,
    /// Length in the same sectors.
    pub sectors: u32,
    /// The disk; of a bio on a partition, the partition.
    pub device: Device,
    /// The task that ran: the submitter's own until the request is formed, anybody afterwards.
    pub pid: u32,
    /// Where it happened.
    pub cpu: u16,
    /// Of completions: negative errno, 0 of success.
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
    /// A bio was sent on to another device; the argument is its sector on the one before.
    Remap,
    /// A task holds back what it submits.
    Plug,
    /// It lets go; the argument is the number of requests.
    Unplug,
    /// All that the trace tells of an I/O is that it arrived.
    Arrival,
    /// An I/O ended; the argument is how many nanoseconds after it was handed to the driver.
    DeviceDone,
    /// An I/O ended; the argument is how many nanoseconds after it arrived.
    WholeDone,
    /// Events are missing from here until the time in the argument; `sectors` says how many, 0: nobody knows.
    Lost,
    /// Another recording begins: nothing from before goes on.
    Restart,
}

/// How many steps there are.
pub const STEPS: usize = Step::Restart as usize + 1;

/// Marks of bios and requests that traces show as letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub u8);

impl Marks {
    /// S: somebody waits for it.
    pub const SYNC: Marks = Marks(1);
    /// A: read-ahead.
    pub const READ_AHEAD: Marks = Marks(2);
    /// M: metadata of a filesystem.
    pub const METADATA: Marks = Marks(4);
    /// F after the operation: to be on the medium before it completes.
    pub const FUA: Marks = Marks(8);
    /// F before the operation: what the device caches goes to the medium first.
    pub const PREFLUSH: Marks = Marks(16);

    /// Whether it carries that mark.
    pub fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }

    /// With these marks too.
    pub fn with(self, more: Marks) -> Marks {
        Marks(self.0 | more.0)
    }
}

impl TraceEvent {
    /// An event of that step; the rest is to be filled in.
    pub fn new(at_ns: u64, step: Step) -> TraceEvent {
        TraceEvent {
            at_ns,
            sector: 0,
            argument: 0,
            sectors: 0,
            device: Device(0),
            pid: 0,
            cpu: 0,
            error: 0,
            step,
            op: Op::Other,
            marks: Marks::default(),
        }
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

/// Reads the kernel's letters: a flush before the data, the operation, FUA, and letters that qualify it.
#[inline]
pub fn op_and_marks(rwbs: &[u8]) -> (Op, Marks) {
    let op = Op::of_rwbs(rwbs);
    let first_flushes = rwbs.first() == Some(&b'F') && op != Op::Flush;
    let (rest, mut marks) = match first_flushes {
        true => (rwbs.get(2..), Marks::PREFLUSH),
        false => (rwbs.get(1..), Marks::default()),
    };
    for letter in rest.unwrap_or_default() {
        marks = marks.with(match letter {
            b'F' => Marks::FUA,
            b'A' => Marks::READ_AHEAD,
            b'S' => Marks::SYNC,
            b'M' => Marks::METADATA,
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
    let letters = [
        (Marks::FUA, 'F'),
        (Marks::READ_AHEAD, 'A'),
        (Marks::SYNC, 'S'),
        (Marks::METADATA, 'M'),
    ];
    text.extend(
        letters
            .into_iter()
            .filter(|(mark, _)| marks.has(*mark))
            .map(|(_, letter)| letter),
    );
    text
}

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
        assert_eq!(op_and_marks(b"FF").0, Op::Flush);
        assert_eq!(op_and_marks(b"RA"), (Op::Read, Marks::READ_AHEAD));
        assert_eq!(op_and_marks(b"DS"), (Op::Discard, Marks::SYNC));
    }

    #[test]
    fn an_event_is_no_larger_than_a_record_of_blktrace() {
        assert_eq!(size_of::<TraceEvent>(), 48);
    }
}
