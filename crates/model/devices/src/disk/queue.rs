//! Commands that wait for the mechanism.

use std::collections::VecDeque;

use crate::Command;
use crate::disk::choice::{Aging, Choice};
use crate::disk::mechanics::{Arm, Mechanics, PhysicalSector};
use crate::disk::read_cache::ReadAheadPosition;
use crate::disk::spec::Order;
use crate::disk::turnaround::Turnaround;
use block_layer::Direction;
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct CommandQueue {
    order: Order,
    /// In order of arrival.
    waiting: VecDeque<QueuedCommand>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedCommand {
    pub(super) command: Command,
    pub(super) place: PhysicalSector,
    pub(super) arrived_at: Time,
    /// When the command has been taken apart: while others are served, that costs no time.
    pub(super) ready_at: Time,
}

impl CommandQueue {
    pub(super) fn new(order: Order, depth: u32) -> CommandQueue {
        CommandQueue { order, waiting: VecDeque::with_capacity(depth as usize) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn put(&mut self, waiting: QueuedCommand) {
        self.waiting.push_back(waiting);
    }

    /// Takes out the command that `next` has named.
    pub(super) fn take(&mut self, at: usize) -> QueuedCommand {
        self.waiting.remove(at).expect("it waits here")
    }

    /// Which command is next, and at what cost: the oldest, or the one that the arm and the platter reach first, less
    /// what it has waited. What is being read ahead comes by itself.
    pub(super) fn next(
        &self,
        mechanics: &Mechanics,
        now: Time,
        arm: Arm,
        aging: Aging,
        turnaround: Turnaround,
        ahead: Option<ReadAheadPosition>,
    ) -> Option<(usize, i64)> {
        if self.order == Order::FirstCome {
            let oldest = self.waiting.front()?;
            return Some((0, oldest.arrived_at as i64));
        }
        let mut choice = Choice::new(mechanics, now, arm, aging);
        for (at, waiting) in self.waiting.iter().enumerate() {
            let Command { direction, start, .. } = waiting.command;
            let since = waiting.arrived_at;
            if !choice.is_open_to(since) {
                // The rest came later still.
                break;
            }
            match &ahead {
                Some(ahead) if direction == Direction::Read && ahead.leads_to(start) => {
                    choice.offer_way(at, since, ahead.ns_to(start));
                }
                _ => {
                    let write = direction == Direction::Write;
                    let ready_at = turnaround.ready_at(start, waiting.ready_at);
                    choice.offer(at, since, ready_at, &waiting.place, write);
                }
            }
        }
        choice.made()
    }
}
