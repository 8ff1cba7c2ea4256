//! From the buffers of a tracing instance to events in the order of time.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};

use base::units::counted;
use trace::format::FormatError;
use trace::page::{LostEvents, PageFormat, RawEvent};
use trace::recording::{Item, Recording as Pages};

use super::Reason;
use super::cpus::Presence;
use super::instance::Instance;
use super::pump::{Drain, Pump};
use crate::clock::monotonic_ns;

/// What makes sense of the events.
pub trait Interpret: Send + 'static {
    /// A record of a CPU; those of all CPUs come in the order of time.
    fn add(&mut self, cpu: u32, raw: &RawEvent<'_>) -> Result<(), FormatError>;

    /// Events of one CPU are missing before this time.
    fn lost(&mut self, at_ns: u64, lost: LostEvents);

    /// Streams of events beside the trace's own.
    fn side_streams(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Takes all that they hold, before it gets records up to a moment ago.
    fn read_side_streams(&mut self) {}
}

/// Records until it is stopped.
pub struct Recording<I: Interpret> {
    /// Goes first: an instance can't be removed while its files are open.
    pump: Pump<Reader<I>>,
    instance: Instance,
}

/// What was recorded.
pub struct RecordingResult<I> {
    pub interpret: I,
    pub ended_ns: u64,
    /// As the kernel counts them: events that found no room, on all CPUs.
    pub events_lost: u64,
    /// What the figures do not cover.
    pub notes: Vec<String>,
}

impl<I: Interpret> Recording<I> {
    /// Starts a recording of an instance whose events have been switched on.
    pub fn start(name: &str, instance: Instance, interpret: I) -> Result<Recording<I>, Reason> {
        let reader = Reader::open(&instance, interpret)?;
        let pump = Pump::start(name, reader).map_err(|error| format!("can't start a thread: {error}"))?;
        instance.start()?;
        Ok(Recording { pump, instance })
    }

    pub fn stop(self) -> Result<RecordingResult<I>, Reason> {
        self.instance.end();
        let ended_ns = monotonic_ns();
        let reader = self.pump.stop().ok_or("the thread that reads the trace died")?;
        reader.finish(&self.instance, ended_ns)
    }
}

struct Reader<I> {
    pipes: Vec<Pipe>,
    pages: Pages,
    interpret: I,
    presence: Presence,
    /// What could not be understood: how many sub-buffers or records, and why the first.
    garbled: Option<(u64, String)>,
}

struct Pipe {
    cpu: u32,
    file: File,
}

/// An event has its time a moment before it can be read.
const IN_FLIGHT_NS: u64 = 1_000_000;

impl<I: Interpret> Drain for Reader<I> {
    fn descriptors(&self) -> Vec<RawFd> {
        let pipes = self.pipes.iter().map(|pipe| pipe.file.as_raw_fd());
        pipes.chain(self.interpret.side_streams()).collect()
    }

    fn drain(&mut self) {
        self.presence.look();
        let until_ns = monotonic_ns().saturating_sub(IN_FLIGHT_NS);
        self.hand_over(until_ns);
    }
}

impl<I: Interpret> Reader<I> {
    fn open(instance: &Instance, interpret: I) -> Result<Reader<I>, Reason> {
        let page_format = PageFormat::parse(&instance.header_page()?).map_err(|error| error.to_string())?;
        let pipes = instance.cpus()?.into_iter().map(|cpu| {
            let file = instance.raw_pipe(cpu)?;
            Ok(Pipe { cpu, file })
        });
        let pipes: Vec<Pipe> = pipes.collect::<Result<_, Reason>>()?;
        Ok(Reader {
            pages: Pages::new(page_format, pipes.len()),
            pipes,
            interpret,
            presence: Presence::now(),
            garbled: None,
        })
    }

    /// All that happened before `until_ns`.
    fn hand_over(&mut self, until_ns: u64) {
        self.interpret.read_side_streams();
        let (pipes, interpret, garbled) = (&self.pipes, &mut self.interpret, &mut self.garbled);
        // An error is either that there is nothing, or that the CPU has no buffer because it has never been online.
        let read = |stream: usize, page: &mut [u8]| (&pipes[stream].file).read(page).unwrap_or(0);
        self.pages.drain(until_ns, read, |stream, item| match item {
            Item::Record(raw) => {
                if let Err(error) = interpret.add(pipes[stream].cpu, &raw) {
                    garble(garbled, &error);
                }
            }
            Item::Lost(at_ns, lost) => interpret.lost(at_ns, lost),
            Item::Garbled(error) => garble(garbled, &error),
        });
    }

    fn finish(mut self, instance: &Instance, ended_ns: u64) -> Result<RecordingResult<I>, Reason> {
        self.hand_over(u64::MAX);
        let mut notes = self.presence.notes();
        if let Some((times, first)) = self.garbled {
            notes.push(format!("{} of the trace could not be read; the first: {first}", counted(times, "record")));
        }
        Ok(RecordingResult { interpret: self.interpret, ended_ns, events_lost: instance.events_lost()?, notes })
    }
}

fn garble(garbled: &mut Option<(u64, String)>, error: &dyn std::error::Error) {
    garbled.get_or_insert_with(|| (0, error.to_string())).0 += 1;
}
