//! The host's commands inside a device.

use crate::{Command, Completion};
use events::slab::{Id, Slab};
use events::station::{Station, Violation};
use events::time::Time;

/// Each from its arrival to its completion, with how much it still waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandsInside {
    commands: Slab<WaitingCommand>,
    station: Station,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingCommand {
    command: Command,
    since: Time,
    parts: u32,
}

pub(super) type CommandId = Id<WaitingCommand>;

impl CommandsInside {
    #[inline]
    pub(super) fn enter(&mut self, now: Time, command: Command) -> CommandId {
        self.station.enter(now);
        self.commands.put(WaitingCommand { command, since: now, parts: 0 })
    }

    #[inline]
    pub(super) fn command(&self, id: CommandId) -> Command {
        self.commands[id].command
    }

    /// The command waits for one thing more.
    #[inline]
    pub(super) fn await_part(&mut self, id: CommandId) {
        self.commands[id].parts += 1;
    }

    pub(super) fn awaits_nothing(&self, id: CommandId) -> bool {
        self.commands[id].parts == 0
    }

    /// One of the things that it waits for is done; true if that was the last.
    #[inline]
    pub(super) fn part_done(&mut self, id: CommandId) -> bool {
        let waiting = &mut self.commands[id];
        waiting.parts -= 1;
        waiting.parts == 0
    }

    #[inline]
    pub(super) fn leave(&mut self, now: Time, id: CommandId) -> Completion {
        let WaitingCommand { command, since, .. } = self.commands.take(id);
        self.station.leave(now, since);
        Completion { tag: command.tag, failed: false }
    }

    /// Conservation and Little's law.
    pub(super) fn check(&self, device: &str, now: Time) -> Result<(), Violation> {
        let since = self.commands.iter().map(|(_, waiting)| waiting.since);
        self.station.check(device, now, since)
    }
}
