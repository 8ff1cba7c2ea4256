//! A log of I/Os as fio writes and replays it, version 3: microseconds, file, action, offset, length.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::reorder_buffer::ReorderBuffer;
use crate::event::{Device, NO_DETAIL, Op, Step, TraceEvent};
use base::SECTOR_BYTES;

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
    in_order: ReorderBuffer,
    /// The first device, and those that the log has named.
    first: Option<Device>,
    others: BTreeSet<Device>,
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
            in_order: ReorderBuffer::default(),
            first: None,
            others: BTreeSet::new(),
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
        let mut event = *event;
        // Of a line of an I/O, one time is its beginning.
        if done {
            let waited_us = match self.side {
                Side::Issued => 0,
                Side::Queued => event.waited_us().unwrap_or(0),
            };
            event.argument = event.argument.saturating_add(u64::from(waited_us).saturating_mul(1000));
            (event.step, event.detail) = (Step::WholeDone, NO_DETAIL);
        }
        let mut in_order = std::mem::take(&mut self.in_order);
        let written = in_order.pass(&event, |event| self.line(event));
        self.in_order = in_order;
        written
    }

    fn line(&mut self, event: &TraceEvent) -> io::Result<()> {
        if event.step == Step::Complete {
            return Ok(());
        }
        let began_ns = *self.began_ns.get_or_insert(event.at_ns);
        let us = event.at_ns.saturating_sub(began_ns) / 1000;
        let (offset, length) = (event.sector.saturating_mul(SECTOR_BYTES), u64::from(event.sectors) * SECTOR_BYTES);
        let file = self.file_of(event.device, us)?;
        match (event.op, event.sectors) {
            (Op::Read, 1..) => writeln!(self.out, "{us} {file} read {offset} {length}"),
            (Op::Write, 1..) => writeln!(self.out, "{us} {file} write {offset} {length}"),
            (Op::Discard, 1..) => writeln!(self.out, "{us} {file} trim {offset} {length}"),
            (Op::Flush, _) | (Op::Write, 0) => writeln!(self.out, "{us} {file} sync 0 0"),
            _ => Ok(()),
        }
    }

    /// The device's name in the log: the first has the caller's name, others one that udev makes.
    fn file_of(&mut self, device: Device, us: u64) -> io::Result<String> {
        if *self.first.get_or_insert(device) == device {
            return Ok(self.file.clone());
        }
        let file = format!("/dev/block/{device}");
        if self.others.insert(device) {
            writeln!(self.out, "{us} {file} add\n{us} {file} open")?;
        }
        Ok(file)
    }

    /// The log's end.
    pub fn finish(mut self, ended_ns: u64) -> io::Result<()> {
        let mut in_order = std::mem::take(&mut self.in_order);
        in_order.finish(|event| self.line(event))?;
        let us = ended_ns.saturating_sub(self.began_ns.unwrap_or(ended_ns)) / 1000;
        for device in &self.others {
            writeln!(self.out, "{us} /dev/block/{device} close")?;
        }
        writeln!(self.out, "{us} {} close", self.file)?;
        self.out.flush()
    }
}
