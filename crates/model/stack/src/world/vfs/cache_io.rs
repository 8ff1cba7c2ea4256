//! The page cache on the machine: its event, and the bios that its I/O became.

use std::collections::BTreeMap;

use super::super::clock::{Clock, Event};
use super::super::driven_component::DrivenComponent;
use super::bios_left::BiosLeft;
use super::journaled_data::Page;
use events::time::Time;
use memory::cache::{Effect, Io, PageCache};

/// The page cache, and what it has asked drives for.
///
/// Calls that may have effects are made by `World::with_cache` alone, which does these.
pub(in crate::world) struct CacheIo {
    cache: DrivenComponent<PageCache>,
    /// By the cache's tags.
    bios: BiosLeft,
    /// By drive: writes whose pages a journal has to commit first.
    behind_commit: BTreeMap<usize, Vec<Io>>,
    /// Pages that writes bring from a journal to their places.
    in_place: BTreeMap<u32, Vec<Page>>,
}

impl CacheIo {
    pub(super) fn new(cache: PageCache) -> CacheIo {
        CacheIo {
            cache: DrivenComponent::new(cache),
            bios: BiosLeft::default(),
            behind_commit: BTreeMap::new(),
            in_place: BTreeMap::new(),
        }
    }

    #[inline]
    pub(in crate::world) fn get(&self) -> &PageCache {
        &self.cache
    }

    #[inline]
    pub(in crate::world) fn get_mut(&mut self) -> &mut PageCache {
        &mut self.cache
    }

    #[inline]
    pub(in crate::world) fn event_came(&mut self, now: Time) {
        self.cache.event_came(now);
    }

    #[inline]
    pub(in crate::world) fn call_back(&mut self, now: Time, clock: &mut Clock) {
        self.cache.call_back(now, Event::Cache, clock);
    }

    #[inline]
    pub(in crate::world) fn effects(&mut self) -> Vec<Effect> {
        self.cache.effects()
    }

    #[inline]
    pub(in crate::world) fn give_back(&mut self, effects: Vec<Effect>) {
        self.cache.give_back(effects);
    }

    /// The I/O of that tag becomes bios; it has none yet.
    pub(in crate::world) fn begin_io(&mut self, tag: u32) {
        self.bios.begin(tag, 0);
    }

    /// The rest of a read, from that page on, is one of its own: its tag.
    pub(in crate::world) fn split_read(&mut self, tag: u32, page: u64) -> u32 {
        let rest = self.cache.split_read(tag, page);
        self.begin_io(rest);
        rest
    }

    /// The write waits for a commit of the drive's journal.
    pub(in crate::world) fn waits_for_commit(&mut self, drive: usize, io: Io) {
        self.behind_commit.entry(drive).or_default().push(io);
    }

    /// There was a commit.
    pub(in crate::world) fn take_behind_commit(&mut self, drive: usize) -> Vec<Io> {
        self.behind_commit.remove(&drive).unwrap_or_default()
    }

    /// The write of that tag brings the page to its place.
    pub(in crate::world) fn brings_in_place(&mut self, tag: u32, page: Page) {
        self.in_place.entry(tag).or_default().push(page);
    }

    /// The I/O is over: the pages that are in place by it.
    pub(in crate::world) fn take_in_place(&mut self, tag: u32) -> Vec<Page> {
        match self.in_place.is_empty() {
            true => Vec::new(),
            false => self.in_place.remove(&tag).unwrap_or_default(),
        }
    }

    pub(in crate::world) fn count_bio(&mut self, tag: u32) {
        self.bios.one_more(tag);
    }

    /// True: it was the last of its I/O.
    pub(in crate::world) fn bio_done(&mut self, tag: u32) -> bool {
        self.bios.one_done(tag)
    }

    /// Whether the I/O has no bio in flight; then it is over.
    pub(in crate::world) fn is_done(&mut self, tag: u32) -> bool {
        self.bios.take_if_none(tag)
    }
}
