//! A log of I/Os as fio writes and replays it, version 3: microseconds, file, action, offset, length.

use std::io::{self, Write};

use crate::event::{Op, Step, TraceEvent};

/// Which event an I/O's time is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// When it entered the block layer: what was asked for.
    Queued,
    /// When the driver got it: what the device saw.
    Issued,
}

/// Writes such a log.
pub struct IoLog<W> {
    out: W,
    side: Side,
    file: String,
    began_ns: Option<u64>,
}

impl<W: Write> IoLog<W> {
    /// `file`: the name of the device in the log.
    pub fn new(mut out: W, side: Side, file: &str) -> io::Result<IoLog<W>> {
        writeln!(out, "fio version 3 iolog\n0 {file} add\n0 {file} open")?;
        Ok(IoLog {
            out,
            side,
            file: file.to_owned(),
            began_ns: None,
        })
    }

    /// The next event.
    pub fn event(&mut self, event: &TraceEvent) -> io::Result<()> {
        let wanted = match self.side {
            Side::Queued => event.step == Step::Queue,
            Side::Issued => event.step == Step::Issue,
        };
        let done = matches!(event.step, Step::DeviceDone | Step::WholeDone);
        if !(wanted || done || event.step == Step::Arrival) {
            return Ok(());
        }
        let at_ns = event
            .at_ns
            .saturating_sub(if done { event.argument } else { 0 });
        let began_ns = *self.began_ns.get_or_insert(at_ns);
        let us = at_ns.saturating_sub(began_ns) / 1000;
        let (offset, length) = (
            event.sector.saturating_mul(512),
            u64::from(event.sectors) * 512,
        );
        let file = &self.file;
        match (event.op, event.sectors) {
            (Op::Read, 1..) => writeln!(self.out, "{us} {file} read {offset} {length}"),
            (Op::Write, 1..) => writeln!(self.out, "{us} {file} write {offset} {length}"),
            (Op::Discard, 1..) => writeln!(self.out, "{us} {file} trim {offset} {length}"),
            (Op::Flush, _) | (Op::Write, 0) => writeln!(self.out, "{us} {file} sync 0 0"),
            _ => Ok(()),
        }
    }

    /// The log's end.
    pub fn finish(mut self, ended_ns: u64) -> io::Result<()> {
        let us = ended_ns.saturating_sub(self.began_ns.unwrap_or(ended_ns)) / 1000;
        writeln!(self.out, "{us} {} close", self.file)?;
        self.out.flush()
    }
}
