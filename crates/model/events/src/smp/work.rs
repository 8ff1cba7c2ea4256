//! A piece of work for a CPU.

use super::lines::ObjectId;
use crate::slab::Id;
use crate::time::Time;

/// What a CPU's time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Tasks in user mode.
    User,
    /// Tasks in the kernel.
    System,
    /// Hard interrupts.
    HardInterrupt,
    /// Softirqs.
    SoftInterrupt,
    /// Kernel threads.
    KernelThread,
    /// Nothing to do.
    Idle,
    /// Idle, while a task that ran here last sleeps for an I/O.
    IoWait,
    /// The CPU is offline.
    Offline,
}

pub const CONTEXTS: usize = 8;

/// Takes its cycles, its objects' way into the cache of the CPU, and its lock's becoming free; then its tag comes back.
#[derive(Clone, Copy, Debug)]
pub struct Work<T> {
    pub(super) context: Context,
    pub(super) cycles: u32,
    pub(super) stalled_cycles: u32,
    pub(super) touches: [ObjectId; TOUCHES_MAX],
    pub(super) touched: u8,
    pub(super) lock: Option<(ObjectId, u32)>,
    pub(super) tag: Option<T>,
}

const TOUCHES_MAX: usize = 6;

/// A piece of work that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done<T> {
    /// When it was done.
    pub at: Time,
    /// The CPU that did it.
    pub cpu: u16,
    /// The tag from its `Work`.
    pub tag: T,
}

impl<T> Work<T> {
    /// A task's work: in the kernel, for it. An interrupt's work is in its context by itself.
    #[inline]
    pub fn of(cycles: u32) -> Work<T> {
        Work {
            context: Context::System,
            cycles,
            stalled_cycles: 0,
            touches: [Id::FIRST; TOUCHES_MAX],
            touched: 0,
            lock: None,
            tag: None,
        }
    }

    /// A work without a tag ends silently.
    #[inline]
    pub fn tagged(self, tag: T) -> Work<T> {
        Work { tag: Some(tag), ..self }
    }

    /// The same in user mode.
    #[inline]
    pub fn in_user_mode(self) -> Work<T> {
        Work { context: Context::User, ..self }
    }

    /// The same on account of a kernel thread.
    #[inline]
    pub fn of_kernel_thread(self) -> Work<T> {
        Work { context: Context::KernelThread, ..self }
    }

    /// The cycles in which it waits, for instance for a device's register, beyond the waits of computing.
    #[inline]
    pub fn stalled_for(self, cycles: u32) -> Work<T> {
        Work { stalled_cycles: cycles, ..self }
    }

    /// Panics beyond six: more belong together in one object of more lines.
    #[inline]
    pub fn touching(mut self, object: ObjectId) -> Work<T> {
        self.touches[usize::from(self.touched)] = object;
        self.touched += 1;
        self
    }

    /// Begins by taking a lock, with interrupts off, for this part of its cycles.
    #[inline]
    pub fn holding(self, lock: ObjectId, cycles: u32) -> Work<T> {
        Work { lock: Some((lock, cycles)), ..self }
    }

    /// Without those of its objects and its lock.
    pub fn cycles(&self) -> u32 {
        self.cycles
    }

    #[inline]
    pub(super) fn touches(&self) -> &[ObjectId] {
        &self.touches[..usize::from(self.touched)]
    }
}

impl Context {
    /// All, in the order of their numbers.
    pub const ALL: [Context; CONTEXTS] = [
        Context::User,
        Context::System,
        Context::HardInterrupt,
        Context::SoftInterrupt,
        Context::KernelThread,
        Context::Idle,
        Context::IoWait,
        Context::Offline,
    ];
}
