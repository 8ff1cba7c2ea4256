//! What is in flight on one device, and which of it an event is about.

use super::change::{JoinedBio, State};
use super::in_flight::{Entry, InFlight, Slot};
use super::io::Io;
use crate::event::Op;

/// A bio that is not known to be in a request, or a request.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) io: Io,
    pub(super) state: State,
    /// Kernels before 4.12 queue the rest of a split bio once more.
    pub(super) rest_of_split: bool,
    /// The bios that joined it.
    pub(super) joined: Vec<JoinedBio>,
    /// Its times are no longer determined: another's events may have been taken for its own.
    pub(super) doubtful: bool,
    /// Neither is its length: it, or another that looked alike, grew or was issued.
    pub(super) vague: bool,
}

/// Which item an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotMatch {
    None,
    /// This one and no other.
    One(Slot),
    /// The oldest of several that look alike; none of their times can be determined.
    Any(Slot),
}

pub(super) type Items = InFlight<Item>;

impl Item {
    pub(super) fn new(io: Io, state: State) -> Item {
        Item { io, state, rest_of_split: false, joined: Vec::new(), doubtful: false, vague: false }
    }

    /// As part of the request that it joins.
    pub(super) fn joining(&self) -> JoinedBio {
        JoinedBio { queued_ns: self.io.queued_ns, cpu: self.io.cpu }
    }

    /// Its times up to here can't be trusted.
    pub(super) fn doubt(&mut self) {
        self.doubtful = true;
        self.io.queued_ns = None;
        self.io.inserted_ns = None;
        self.io.issued_ns = None;
        self.joined.iter_mut().for_each(|bio| bio.queued_ns = None);
    }

    pub(super) fn waits(&self, op: Op) -> bool {
        self.io.op == op && self.state != State::Issued
    }

    pub(super) fn is_bio(&self, op: Op) -> bool {
        self.io.op == op && self.state == State::Bio
    }

    pub(super) fn has_driver(&self, op: Op) -> bool {
        self.io.op == op && self.state == State::Issued
    }
}

/// The oldest that begins there and is wanted; all that are lose their times if there are several.
#[inline]
pub(super) fn find(items: &mut Items, start: u64, wanted: impl Fn(&Entry<Item>) -> bool) -> SlotMatch {
    let (count, oldest) = items.count_starting_at(start, &wanted);
    match (count, oldest) {
        (1, Some(slot)) => SlotMatch::One(slot),
        (0, _) | (_, None) => SlotMatch::None,
        (_, Some(slot)) => {
            let alike = items.all_starting_at(start, &wanted);
            let is_vague = |&slot: &Slot| items.get(slot).is_some_and(|item| item.what.vague);
            // Of several lengths, it is unknown which an event of one length leaves.
            let vague = alike.iter().any(is_vague);
            for slot in alike {
                if let Some(item) = items.get_mut(slot) {
                    item.doubt();
                    item.vague = vague;
                }
            }
            SlotMatch::Any(slot)
        }
    }
}

impl SlotMatch {
    pub(super) fn slot(self) -> Option<Slot> {
        match self {
            SlotMatch::None => None,
            SlotMatch::One(slot) | SlotMatch::Any(slot) => Some(slot),
        }
    }

    /// This, or what else is found.
    #[inline]
    pub(super) fn or_else(self, other: impl FnOnce() -> SlotMatch) -> SlotMatch {
        match self {
            SlotMatch::None => other(),
            found => found,
        }
    }
}
