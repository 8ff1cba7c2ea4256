//! The state of a die.

use std::collections::VecDeque;

use crate::commands_inside::CommandId;
use crate::flash::placement::Handle;
use events::time::Time;

#[derive(Clone, Debug, Default)]
pub(super) struct Die {
    pub(super) reads: VecDeque<Read>,
    /// What to program next.
    pub(super) program: Option<Page>,
    pub(super) work: Option<Work>,
    pub(super) ends_at: Time,
    /// The second register, if there is one, is free from then on for a page that was read.
    pub(super) register_free_at: Time,
    /// When the page to program is in the second register.
    pub(super) loaded_at: Time,
    /// Counts pieces of work, so that the end of one that was interrupted is known for what it is.
    pub(super) number: u32,
    /// Interrupted by a read, with the time that is left of it.
    pub(super) suspended: Option<(Work, Time)>,
    /// The block that is being emptied, and how far that has come.
    pub(super) victim: Option<(u32, u32)>,
    /// Slots of the buffer that are being programmed.
    pub(super) programming: Vec<u32>,
    /// Of a move: units, and where they were.
    pub(super) moving: Vec<(u32, u32)>,
    /// Collecting and programming take turns.
    pub(super) collected_last: bool,
}

/// A page of all planes, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) since: Time,
    pub(super) handle: Handle,
    /// Of the buffer.
    pub(super) slots: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) command: CommandId,
    pub(super) units: u32,
    pub(super) since: Time,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Sense(Read),
    /// Its data cross the channel; the page's register is in use until then.
    Transfer(Read),
    /// Where the slots that are programmed go.
    Program {
        at: u32,
    },
    /// Where the units that are moved are programmed.
    Move {
        at: u32,
    },
    Erase {
        block: u32,
    },
    /// What was read stays in the first register until the second is free.
    Hold,
    /// Leaving off what it did, for a read.
    Suspend,
}

impl Work {
    /// Its end completes nothing for the host.
    pub(super) fn is_inner(&self) -> bool {
        matches!(self, Work::Move { .. } | Work::Erase { .. })
    }
}
