//! The number that says what a record is of: the event in the low half, categories in the high one.

use crate::block::{Flags, Op, TraceLine, What};

pub(super) const NOTE_PROCESS: u32 = NOTE;
pub(super) const NOTE_BEGAN: u32 = NOTE | 1;
pub(super) const NOTE_MESSAGE: u32 = NOTE | 2;

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const SYNC: u32 = 1 << 19;
const QUEUE: u32 = 1 << 20;
const REQUEUE: u32 = 1 << 21;
const ISSUE: u32 = 1 << 22;
const COMPLETE: u32 = 1 << 23;
const COMMAND: u32 = 1 << 25;
const NOTE: u32 = 1 << 26;
const READ_AHEAD: u32 = 1 << 27;
const METADATA: u32 = 1 << 28;
const DISCARD: u32 = 1 << 29;

/// The payload begins with the number of a cgroup.
const OF_CGROUP: u32 = 1 << 8;
const CGROUP_BYTES: usize = 8;

const UNPLUG: u32 = 10;
const UNPLUG_BY_TIMER: u32 = 11;

pub(super) fn of(line: &TraceLine) -> u32 {
    let event = match line.what {
        What::Message(_) => return NOTE_MESSAGE,
        What::Queue => QUEUE | 1,
        // As kernels write it that tell of such merges at all, from 5.9 on.
        What::BackMerge | What::RequestMerge => QUEUE | 2,
        What::FrontMerge => QUEUE | 3,
        What::GetRequest => QUEUE | 4,
        What::Sleep => QUEUE | 5,
        What::Requeue => REQUEUE | 6,
        What::Issue => ISSUE | 7,
        What::Complete => COMPLETE | 8,
        What::Plug => QUEUE | 9,
        What::Unplug { by_timer, .. } => QUEUE | if by_timer { UNPLUG_BY_TIMER } else { UNPLUG },
        What::Insert => QUEUE | 12,
    };
    let operation = match line.op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Discard => WRITE | DISCARD,
        Op::Flush => WRITE | FLUSH,
        Op::Other => READ | COMMAND,
    };
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    event
        | operation
        | flag(line.flags.sync, SYNC)
        | flag(line.flags.read_ahead, READ_AHEAD)
        | flag(line.flags.metadata, METADATA)
}

pub(super) fn direction(action: u32) -> (Op, Flags) {
    let has = |bit: u32| action & bit != 0;
    let op = if has(COMMAND) {
        Op::Other
    } else if has(DISCARD) {
        Op::Discard
    } else if has(FLUSH) {
        Op::Flush
    } else if has(WRITE) {
        Op::Write
    } else {
        Op::Read
    };
    let flags = Flags {
        sync: has(SYNC),
        read_ahead: has(READ_AHEAD),
        metadata: has(METADATA),
    };
    (op, flags)
}

pub(super) fn what(action: u32, payload: &[u8]) -> Option<What> {
    let payload = match action & OF_CGROUP {
        0 => payload,
        _ => payload.get(CGROUP_BYTES..)?,
    };
    if action & !OF_CGROUP == NOTE_MESSAGE {
        return Some(What::Message(String::from_utf8_lossy(payload).into_owned()));
    }
    if action & NOTE != 0 {
        return None;
    }
    let event = action & 0xff;
    Some(match event {
        1 => What::Queue,
        2 => What::BackMerge,
        3 => What::FrontMerge,
        4 => What::GetRequest,
        5 => What::Sleep,
        6 => What::Requeue,
        7 => What::Issue,
        8 => What::Complete,
        9 => What::Plug,
        UNPLUG | UNPLUG_BY_TIMER => What::Unplug {
            requests: u64::from_be_bytes(payload.get(..8)?.try_into().ok()?),
            by_timer: event == UNPLUG_BY_TIMER,
        },
        12 => What::Insert,
        _ => return None,
    })
}
