//! The write buffer: units that were acknowledged and are not programmed yet.

use std::collections::VecDeque;

use crate::commands_inside::CommandId;
use crate::flash::placement::Handle;
use crate::watermarks::fits;

#[derive(Clone, Debug)]
pub(super) struct Buffer {
    units_max: u64,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots that no die has been given, in order, by handle.
    waiting: Vec<VecDeque<u32>>,
    /// The handle that is looked at first for a page.
    next: Handle,
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
    pub(super) fn new(units_max: u64, handles: u32) -> Buffer {
        Buffer {
            units_max,
            slots: Vec::new(),
            free: Vec::new(),
            waiting: vec![VecDeque::new(); handles as usize],
            next: 0,
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
        self.waiting.iter().any(|slots| !slots.is_empty())
    }

    /// Whether the slot can still be written anew.
    pub(super) fn waits(&self, slot: u32) -> bool {
        !self.slots[slot as usize].programming
    }

    pub(super) fn put(&mut self, unit: u32, handle: Handle) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let held = &mut self.slots[slot as usize];
        held.unit = unit;
        held.programming = false;
        self.waiting[usize::from(handle)].push_back(slot);
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
        self.flushing || self.waiting.iter().any(|slots| slots.len() >= units)
    }

    /// Whose it is, and its slots. Handles with a whole page take turns; if none has one, those with a part do.
    pub(super) fn take_page(&mut self, units: usize) -> (Handle, Vec<u32>) {
        let handle = self.next_with(units).or_else(|| self.next_with(1));
        let handle = handle.expect("the buffer has a page");
        self.next = (handle + 1) % self.waiting.len() as Handle;
        let waiting = &mut self.waiting[usize::from(handle)];
        let mut slots = self.spare.pop().unwrap_or_default();
        slots.extend(waiting.drain(..units.min(waiting.len())));
        for &slot in &slots {
            self.slots[slot as usize].programming = true;
        }
        self.flushing &= self.is_waiting();
        (handle, slots)
    }

    fn next_with(&self, units: usize) -> Option<Handle> {
        let handles = self.waiting.len() as Handle;
        (self.next..handles).chain(0..self.next).find(|&handle| self.waiting[usize::from(handle)].len() >= units)
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
