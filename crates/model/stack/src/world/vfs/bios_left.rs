//! I/O that has become bios, and how many of them are in flight.

use std::collections::BTreeMap;

/// Bios left, by the tag of the I/O that they are of.
#[derive(Default)]
pub(super) struct BiosLeft {
    by_tag: BTreeMap<u32, u32>,
}

impl BiosLeft {
    pub(super) fn begin(&mut self, tag: u32, bios: u32) {
        self.by_tag.insert(tag, bios);
    }

    pub(super) fn one_more(&mut self, tag: u32) {
        *self.of(tag) += 1;
    }

    /// True: it was the last.
    pub(super) fn one_done(&mut self, tag: u32) -> bool {
        *self.of(tag) -= 1;
        self.take_if_none(tag)
    }

    /// Whether the I/O has none left; then it is over.
    pub(super) fn take_if_none(&mut self, tag: u32) -> bool {
        let is_over = self.by_tag.get(&tag) == Some(&0);
        if is_over {
            self.by_tag.remove(&tag);
        }
        is_over
    }

    fn of(&mut self, tag: u32) -> &mut u32 {
        self.by_tag.get_mut(&tag).expect("I/O under way")
    }
}
