//! A trace in another form, written while it is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::OwnedFd;

use trace::event::Device;
use trace::event::TraceEvent;
use trace::input::ReadError;
use trace::output::{Blktrace, IoLog, Perfetto, Side};

use super::source::reader;
use super::spec::{Batch, TraceSpec};
use crate::beneath;

type CpuFile = BufWriter<File>;
type OpenCpu = Box<dyn FnMut(u16) -> io::Result<CpuFile>>;

/// An unfinished file of another form.
pub(super) enum Writer {
    Perfetto(Perfetto<BufWriter<File>>),
    IoLog(IoLog<BufWriter<File>>),
    Blktrace(Blktrace<OpenCpu, CpuFile>),
}

pub(super) fn writer(spec: &TraceSpec) -> Result<Option<Writer>, ReadError> {
    let Some(output) = &spec.output else {
        return Ok(None);
    };
    let wrong = |error: io::Error| ReadError(format!("can't write: {error}"));
    let given = beneath::shared(output.descriptor).map_err(wrong)?;
    let file = |given: OwnedFd| BufWriter::new(File::from(given));
    Ok(Some(match output.form.as_str() {
        "perfetto" => Writer::Perfetto(Perfetto::new(file(given))),
        "iolog" => {
            let side = if output.queued { Side::Queued } else { Side::Issued };
            Writer::IoLog(IoLog::new(file(given), side, &output.device).map_err(wrong)?)
        }
        "blktrace" => {
            let open: OpenCpu = Box::new(move |cpu| {
                let made = beneath::new_file(&given, &cpu.to_string())?;
                Ok(BufWriter::new(File::from(made)))
            });
            Writer::Blktrace(Blktrace::new(open, names(spec)?, None))
        }
        form => return Err(ReadError(format!("{form}: no form of a trace"))),
    }))
}

/// The tasks' names: files of blktrace have a name before the first event of its task, so it has to be known by then.
fn names(spec: &TraceSpec) -> Result<BTreeMap<u32, String>, ReadError> {
    let mut reader = reader(&spec.paths, spec.table.as_ref(), spec.gaps())?;
    let mut batch = Batch::new();
    while reader.read(&mut batch)? {
        batch.clear();
    }
    Ok(std::mem::take(&mut reader.about().names))
}

impl Writer {
    pub(super) fn event(&mut self, event: &TraceEvent) -> io::Result<()> {
        match self {
            Writer::Perfetto(_) => Ok(()),
            Writer::IoLog(log) => log.event(event),
            Writer::Blktrace(files) => files.event(event),
        }
    }

    pub(super) fn io(&mut self, io: &trace::request::Io) -> io::Result<()> {
        match self {
            Writer::Perfetto(perfetto) => perfetto.io(io),
            Writer::IoLog(_) => Ok(()),
            Writer::Blktrace(files) => {
                files.ends();
                Ok(())
            }
        }
    }

    pub(super) fn depth(&mut self, device: Device, at_ns: u64, depth: u64) -> io::Result<()> {
        match self {
            Writer::Perfetto(perfetto) => perfetto.depth(device, at_ns, depth),
            Writer::IoLog(_) | Writer::Blktrace(_) => Ok(()),
        }
    }

    pub(super) fn finish(self, ended_ns: u64) -> io::Result<()> {
        match self {
            Writer::Perfetto(perfetto) => perfetto.finish(),
            Writer::IoLog(log) => log.finish(ended_ns),
            Writer::Blktrace(files) => files.finish().map(|_| ()),
        }
    }
}
