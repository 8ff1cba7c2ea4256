//! What completes when, if that is known in advance.

use std::collections::VecDeque;

use crate::Completion;
use events::time::Time;

/// Tags in order of time; those of one time in the order in which they were put in.
#[derive(Clone, Debug, Default)]
pub(super) struct CompletionTimes {
    tags: VecDeque<(Time, u32)>,
}

impl CompletionTimes {
    #[inline]
    pub(super) fn put(&mut self, at: Time, tag: u32) {
        if self.tags.back().is_none_or(|&(last, _)| last <= at) {
            self.tags.push_back((at, tag));
        } else {
            let place = self.tags.partition_point(|&(other, _)| other <= at);
            self.tags.insert(place, (at, tag));
        }
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<Time> {
        self.tags.front().map(|&(at, _)| at)
    }

    #[inline]
    pub(super) fn take_due(&mut self, now: Time, completed: &mut Vec<Completion>) {
        while let Some(&(_, tag)) = self.tags.front().filter(|&&(at, _)| at <= now) {
            self.tags.pop_front();
            completed.push(Completion { tag, failed: false });
        }
    }
}
