//! The write buffer: units that were acknowledged and are not programmed yet.

use std::collections::VecDeque;

use crate::commands_inside::CommandId;
use crate::watermarks::fits;

#[derive(Clone, Debug)]
pub(super) struct Buffer {
    units_max: u64,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots that no die has been given, in order.
    waiting: VecDeque<u32>,
    /// Parts of pages go out too, until nothing waits.
    flushing: bool,
    /// Lists of slots that were used, to be used again.
    spare: Vec<Vec<u32>>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    unit: u32,
    programming: bool,
    /// Writes that are complete when it is programmed.
    commands: Vec<CommandId>,
}

impl Buffer {
    pub(super) fn new(units_max: u64) -> Buffer {
        Buffer {
            units_max,
            slots: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            flushing: false,
            spare: Vec::new(),
        }
    }

    /// Units in it, those that are being programmed included.
    pub(super) fn held(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    pub(super) fn has_room(&self, units: u32) -> bool {
        fits(self.units_max, u64::from(self.held()), u64::from(units))
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the slot can still be written anew.
    pub(super) fn waits(&self, slot: u32) -> bool {
        !self.slots[slot as usize].programming
    }

    pub(super) fn put(&mut self, unit: u32) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let held = &mut self.slots[slot as usize];
        held.unit = unit;
        held.programming = false;
        self.waiting.push_back(slot);
        slot
    }

    pub(super) fn name_waiting(&mut self, slot: u32, command: CommandId) {
        self.slots[slot as usize].commands.push(command);
    }

    pub(super) fn flush(&mut self) {
        self.flushing = self.is_waiting();
    }

    pub(super) fn is_flushing(&self) -> bool {
        self.flushing
    }

    /// Whether there is a page to program, or a part of one that must go.
    pub(super) fn has_page(&self, units: usize) -> bool {
        self.waiting.len() >= units || self.flushing
    }

    pub(super) fn take_page(&mut self, units: usize) -> Vec<u32> {
        let mut slots = self.spare.pop().unwrap_or_default();
        slots.extend(self.waiting.drain(..units.min(self.waiting.len())));
        for &slot in &slots {
            self.slots[slot as usize].programming = true;
        }
        self.flushing &= !self.waiting.is_empty();
        slots
    }

    pub(super) fn unit(&self, slot: u32) -> u32 {
        self.slots[slot as usize].unit
    }

    /// The slot's unit is on the flash; who waited for that goes to `commands`.
    pub(super) fn programmed(&mut self, slot: u32, commands: &mut Vec<CommandId>) {
        commands.append(&mut self.slots[slot as usize].commands);
        self.free.push(slot);
    }

    pub(super) fn keep_list(&mut self, mut slots: Vec<u32>) {
        slots.clear();
        self.spare.push(slots);
    }
}
