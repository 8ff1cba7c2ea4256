//! The disks of an array, each with its queue.

use std::collections::VecDeque;

use crate::array::layout::Piece;
use crate::disk::Disk;
use crate::event_tree::EventTree;
use crate::{Command, Completion, Device};
use block_layer::{Direction, Sector};
use events::slab::{Id, Slab};
use events::station::{Station, Violation};
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct BackEnd {
    disks: Vec<Disk>,
    /// What each disk has no room for.
    waiting: Vec<VecDeque<Command>>,
    inside: Vec<u32>,
    /// By disk: where what was sent to it last ends.
    sent_to: Vec<Sector>,
    soonest: EventTree,
    accesses: Slab<Access>,
    /// The access behind each number that a disk gets as a tag.
    tags: Vec<Id<Access>>,
    station: Station,
    ended: Vec<Completion>,
}

#[derive(Clone, Copy, Debug)]
struct Access {
    job: u32,
    since: Time,
}

impl BackEnd {
    pub(super) fn new(disk: &Disk, count: u32) -> BackEnd {
        let count = count as usize;
        BackEnd {
            disks: vec![disk.clone(); count],
            waiting: vec![VecDeque::new(); count],
            inside: vec![0; count],
            sent_to: vec![0; count],
            soonest: EventTree::new(count),
            accesses: Slab::new(),
            tags: Vec::new(),
            station: Station::default(),
            ended: Vec::new(),
        }
    }

    /// On behalf of a job, which `advance` names when it is done.
    pub(super) fn send(&mut self, now: Time, direction: Direction, piece: &Piece, job: u32) {
        let id = self.accesses.put(Access { job, since: now });
        let tag = id.number();
        if self.tags.len() <= tag as usize {
            self.tags.resize(tag as usize + 1, id);
        }
        self.tags[tag as usize] = id;
        self.station.enter(now);
        let command = Command {
            tag,
            direction,
            start: piece.start,
            sectors: piece.sectors,
            force_unit_access: false,
            write_stream: 0,
        };
        let number = piece.disk as usize;
        self.sent_to[number] = piece.start + Sector::from(piece.sectors);
        if self.inside[number] == self.disks[number].queue_depth() {
            self.waiting[number].push_back(command);
            return;
        }
        self.inside[number] += 1;
        self.disks[number].submit(now, command);
        self.soonest.set(number, self.disks[number].next_event());
    }

    /// Which of two copies of the same sectors is read: of the disk on which that continues what was sent last, else of one
    /// that has nothing to do, else of the one whose last access ends nearest (`read_balance` in `drivers/md/raid1.c` of
    /// 6.1; that controllers do the same is inferred).
    pub(super) fn reads_sooner(&self, one: &Piece, other: &Piece) -> bool {
        let rank = |piece: &Piece| {
            let way = self.sent_to[piece.disk as usize].abs_diff(piece.start);
            (way > 0, self.load(piece.disk) > 0, way)
        };
        rank(one) < rank(other)
    }

    /// Commands that a disk has or that wait for it.
    fn load(&self, disk: u32) -> usize {
        self.inside[disk as usize] as usize + self.waiting[disk as usize].len()
    }

    #[inline]
    pub(super) fn next_event(&self) -> Option<Time> {
        self.soonest.first().map(|(at, _)| at)
    }

    /// Lets the disk continue whose turn it is, and appends the jobs of which an access is done.
    pub(super) fn advance(&mut self, jobs: &mut Vec<u32>) {
        let Some((now, number)) = self.soonest.first() else {
            return;
        };
        self.disks[number].advance(now, &mut self.ended);
        for done in self.ended.drain(..) {
            let access = self.accesses.take(self.tags[done.tag as usize]);
            self.station.leave(now, access.since);
            jobs.push(access.job);
            match self.waiting[number].pop_front() {
                Some(command) => self.disks[number].submit(now, command),
                None => self.inside[number] -= 1,
            }
        }
        self.soonest.set(number, self.disks[number].next_event());
    }

    pub(super) fn accesses_entered(&self) -> u64 {
        self.station.entered()
    }

    pub(super) fn dirty_sectors(&self) -> u64 {
        self.disks.iter().map(Disk::dirty_sectors).sum()
    }

    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        let since = self.accesses.iter().map(|(_, access)| access.since);
        self.station.check("array's disks", now, since)
    }
}
