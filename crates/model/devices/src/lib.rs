#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! Devices: what takes commands and completes them.

pub mod array;
mod chain;
mod commands_inside;
mod completion_times;
pub mod disk;
mod event_tree;
pub mod flash;
mod index;
mod limits;
mod line_cache;
pub mod lun;
pub mod null;
mod server;
mod spec;
#[cfg(test)]
mod trial;
mod watermarks;

use block_layer::{Direction, Sector};
use events::station::Violation;
use events::time::Time;
use flash::{FlashSpace, ProgrammedUnits};
pub use spec::{DeviceSpec, Identity};

/// What is sent to a device. `tag` comes back with the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The sender's number for it.
    pub tag: u32,
    /// Read or write.
    pub direction: Direction,
    /// First sector on the device.
    pub start: Sector,
    /// Length in sectors of 512 bytes.
    pub sectors: u32,
    /// A write that is on the medium, not in a volatile cache, when it completes.
    pub force_unit_access: bool,
    /// The stream of a write: data of one are expected to live alike. 0: none.
    pub write_stream: u8,
}

/// A command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// That of the command.
    pub tag: u32,
    /// It ended with an I/O error; no simulated device fails one.
    pub failed: bool,
}

/// What takes commands in simulated time. The owner calls `advance` no later than at `next_event`.
pub trait Device: Send {
    /// Size of the device, in sectors of 512 bytes.
    fn sectors(&self) -> Sector;

    /// Commands that it takes at once, or each of its queues does.
    fn queue_depth(&self) -> u32;

    /// Takes a command. The caller keeps within `queue_depth` and `sectors`.
    fn submit(&mut self, now: Time, command: Command);

    /// Completes as that tag when all that has been acknowledged is on the medium (FLUSH CACHE, SYNCHRONIZE CACHE,
    /// NVMe's Flush). The caller has one in flight at a time, with a tag that no command has. False: there is no cache
    /// that forgets, and nothing to wait for.
    fn flush(&mut self, _now: Time, _tag: u32) -> bool {
        false
    }

    /// Completes as that tag when those sectors are no longer wanted (DATA SET MANAGEMENT with TRIM, NVMe's
    /// deallocation). The caller has one in flight at a time, with a tag that no command has. False: it takes no such
    /// command.
    fn discard(&mut self, _now: Time, _tag: u32, _start: Sector, _sectors: Sector) -> bool {
        false
    }

    /// When `advance` has something to do.
    fn next_event(&self) -> Option<Time>;

    /// Does what is due up to `now`, and appends what has completed, in order of completion.
    fn advance(&mut self, now: Time, completed: &mut Vec<Completion>);

    /// Acknowledged data that are not on the medium yet.
    fn dirty_sectors(&self) -> u64 {
        0
    }

    /// What its flash has programmed and erased before `now`; nothing without any.
    fn programmed(&mut self, _now: Time) -> ProgrammedUnits {
        ProgrammedUnits::default()
    }

    /// How much of its flash is free now; nothing without any.
    fn flash_space(&mut self, _now: Time) -> FlashSpace {
        FlashSpace::default()
    }

    /// Conservation and Little's law at the stations inside, at the end of a run.
    fn check(&self, _now: Time) -> Result<(), Violation> {
        Ok(())
    }
}

impl Command {
    #[inline]
    fn end(&self) -> Sector {
        self.start + Sector::from(self.sectors)
    }
}
