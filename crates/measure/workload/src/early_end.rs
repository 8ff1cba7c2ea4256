//! How a job continues when its measured part has ended before it.

use std::collections::VecDeque;

use crate::op::{Op, OpKind};
use base::time::Time;

/// First the syncs that belong to an end, then the rest.
#[derive(Clone, Debug)]
pub(crate) struct EarlyEnd {
    syncs: VecDeque<Op>,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Syncing,
    Rest,
}

impl EarlyEnd {
    /// With all operations of the rest long past when the next is offered, no pause is due between them.
    pub const COMPLETED_AT: Time = 0;
    /// When what belongs to the rest is asked for.
    pub const OFFERED_AT: Time = Time::MAX - 1;

    pub fn new(written: Vec<u32>, now: Time) -> EarlyEnd {
        let sync = |file| Op { kind: OpKind::Fsync, file, offset: 0, bytes: 0, due: now };
        EarlyEnd { syncs: written.into_iter().map(sync).collect(), part: Part::Syncing }
    }

    /// What was given out last, or comes next, is one of the syncs.
    pub fn is_syncing(&self) -> bool {
        self.part == Part::Syncing
    }

    /// The next sync; None: the rest follows.
    pub fn next(&mut self) -> Option<Op> {
        self.syncs.pop_front()
    }

    /// True once.
    pub fn begins_rest(&mut self) -> bool {
        std::mem::replace(&mut self.part, Part::Rest) == Part::Syncing
    }
}
