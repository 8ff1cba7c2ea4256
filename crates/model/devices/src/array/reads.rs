//! Reads: from the cache, or fetched from the disks, or ahead of what is asked for.

use crate::array::jobs::Step;
use crate::array::layout::{Piece, Range};
use crate::array::{Array, Event};
use crate::commands_inside::CommandId;
use crate::line_cache::Presence;
use block_layer::{Direction, Sector};
use events::time::Time;

impl Array {
    pub(super) fn look_at_read(&mut self, now: Time, id: CommandId) {
        let command = self.inside.command(id);
        let lines = self.lines_of(command.start, command.end());
        let mut absent: Option<Range> = None;
        for line in lines {
            match self.lines.use_line(line) {
                Presence::Here => {}
                Presence::Coming(job) => {
                    if self.jobs.wait_for(job, id) {
                        self.inside.await_part(id);
                    }
                }
                Presence::Absent if self.is_dirty(line) => {}
                Presence::Absent => self.fetch_later(now, line, &mut absent, Some(id)),
            }
        }
        if let Some(run) = absent {
            self.fetch(now, run, Some(id));
        }
        if self.inside.awaits_nothing(id) {
            self.answer_read(now, id);
        }
        if let Some((from, to)) = self.streams.follow(command.start, command.end()) {
            self.fetch_ahead(now, from, to.min(self.layout.sectors()));
        }
    }

    fn is_dirty(&self, line: u64) -> bool {
        let (start, stripe_sectors) = (line * self.line_sectors, self.layout.stripe_sectors());
        let inside = start % stripe_sectors;
        self.dirty.holds(start / stripe_sectors, &(inside..inside + self.line_sectors))
    }

    /// Fetches what is not here of a stream's next sectors.
    fn fetch_ahead(&mut self, now: Time, from: Sector, to: Sector) {
        let mut absent: Option<Range> = None;
        for line in from / self.line_sectors..to / self.line_sectors {
            if self.lines.use_line(line) == Presence::Absent {
                self.fetch_later(now, line, &mut absent, None);
            }
        }
        if let Some(run) = absent {
            self.fetch(now, run, None);
        }
    }

    /// Adds a line to a run that is to be fetched, or fetches that and begins another.
    fn fetch_later(&mut self, now: Time, line: u64, run: &mut Option<Range>, whose: Option<CommandId>) {
        match run {
            Some(run) if run.end == line => run.end += 1,
            _ => {
                if let Some(complete) = run.replace(line..line + 1) {
                    self.fetch(now, complete, whose);
                }
            }
        }
    }

    fn fetch(&mut self, now: Time, lines: Range, whose: Option<CommandId>) {
        let (start, sectors) = (lines.start * self.line_sectors, (lines.end - lines.start) * self.line_sectors);
        let job = self.jobs.begin(Step::Fetch { lines: lines.clone() });
        if let Some(id) = whose {
            self.jobs.wait_for(job, id);
            self.inside.await_part(id);
        }
        for line in lines {
            self.lines.expect(line, job);
        }
        let mut pieces = std::mem::take(&mut self.reads);
        let back_end = &self.back_end;
        let takes_copy = |one: &Piece, copy: &Piece| back_end.reads_sooner(copy, one);
        self.layout.read(start, sectors, takes_copy, &mut pieces);
        self.send(now, Direction::Read, &pieces, job);
        pieces.clear();
        self.reads = pieces;
    }

    pub(super) fn answer_read(&mut self, now: Time, id: CommandId) {
        let sectors = u64::from(self.inside.command(id).sectors);
        let at = self.port_out.carry(now, sectors);
        self.events.put(at, Event::Complete(id));
    }

    fn lines_of(&self, start: Sector, end: Sector) -> Range {
        start / self.line_sectors..end.div_ceil(self.line_sectors)
    }
}
