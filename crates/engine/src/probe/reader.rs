//! From the buffers of a tracing instance to events in the order of time.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};

use trace::format::FormatError;
use trace::merge::Merge;
use trace::page::{Lost, Page, PageFormat, RawEvent};

use super::Reason;
use super::cpus::Presence;
use super::instance::Instance;
use super::pump::{Drain, Pump};
use crate::clock::monotonic_ns;

/// What makes sense of the events.
pub trait Interpret: Send + 'static {
    type Event: Send;

    /// None of a record that is not meant.
    fn decode(&self, cpu: u32, raw: &RawEvent<'_>) -> Result<Option<Self::Event>, FormatError>;

    /// Events of all CPUs, in the order of time.
    fn add(&mut self, event: Self::Event);

    /// Events of one CPU are missing before this time.
    fn lost(&mut self, at_ns: u64, lost: Lost);

    /// Streams of events beside the trace's own, each in the order of time.
    fn side_streams(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Hands over all that they hold: which stream, when, and what.
    fn read_side_streams(&mut self, _each: &mut dyn FnMut(usize, u64, Self::Event)) {}
}

/// Records until it is stopped.
pub struct Recording<I: Interpret> {
    /// Goes first: an instance can't be removed while its files are open.
    pump: Pump<Reader<I>>,
    instance: Instance,
}

/// What was recorded.
pub struct Recorded<I> {
    pub interpret: I,
    pub ended_ns: u64,
    /// As the kernel counts them: events that found no room, on all CPUs.
    pub events_lost: u64,
    /// What the figures do not cover.
    pub notes: Vec<String>,
}

impl<I: Interpret> Recording<I> {
    /// Of an instance whose events have been switched on.
    pub fn start(name: &str, instance: Instance, interpret: I) -> Result<Recording<I>, Reason> {
        let reader = Reader::open(&instance, interpret)?;
        let pump =
            Pump::start(name, reader).map_err(|error| format!("can't start a thread: {error}"))?;
        instance.start()?;
        Ok(Recording { pump, instance })
    }

    pub fn stop(self) -> Result<Recorded<I>, Reason> {
        self.instance.end();
        let ended_ns = monotonic_ns();
        let reader = self
            .pump
            .stop()
            .ok_or("the thread that reads the trace died")?;
        reader.finish(&self.instance, ended_ns)
    }
}

struct Reader<I: Interpret> {
    pipes: Vec<Pipe>,
    /// The pipes, then those beside the trace.
    streams: usize,
    page_format: PageFormat,
    page: Vec<u8>,
    merge: Merge<I::Event>,
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
        let began_ns = monotonic_ns();
        for pipe in 0..self.pipes.len() {
            self.empty(pipe, began_ns);
        }
        let (pipes, merge) = (self.pipes.len(), &mut self.merge);
        self.interpret
            .read_side_streams(&mut |stream, at_ns, event| {
                merge.push(pipes + stream, at_ns, event)
            });
        for stream in 0..self.streams {
            self.merge
                .advance(stream, began_ns.saturating_sub(IN_FLIGHT_NS));
        }
        self.hand_over();
    }
}

impl<I: Interpret> Reader<I> {
    fn open(instance: &Instance, interpret: I) -> Result<Reader<I>, Reason> {
        let page_format =
            PageFormat::parse(&instance.header_page()?).map_err(|error| error.to_string())?;
        let pipes = instance.cpus()?.into_iter().map(|cpu| {
            let file = instance.raw_pipe(cpu)?;
            Ok(Pipe { cpu, file })
        });
        let pipes: Vec<Pipe> = pipes.collect::<Result<_, Reason>>()?;
        let streams = pipes.len() + interpret.side_streams().len();
        Ok(Reader {
            page: vec![0; page_format.subbuffer_bytes()],
            merge: Merge::new(streams),
            pipes,
            streams,
            page_format,
            interpret,
            presence: Presence::now(),
            garbled: None,
        })
    }

    /// Reads a CPU's buffer up to what was written when the reading began: a writer that is faster must not keep us.
    fn empty(&mut self, stream: usize, began_ns: u64) {
        // An error is either that there is nothing, or that the CPU has no buffer because it has never been online.
        while let Ok(bytes @ 1..) = self.pipes[stream].file.read(&mut self.page) {
            let reached_ns = self.page(stream, bytes);
            if reached_ns.is_none_or(|reached_ns| reached_ns >= began_ns) {
                return;
            }
        }
    }

    /// The time of the sub-buffer's last event; None when it could not be understood.
    fn page(&mut self, stream: usize, bytes: usize) -> Option<u64> {
        let cpu = self.pipes[stream].cpu;
        let mut reached_ns = None;
        let understood = Page::decode(&self.page[..bytes], &self.page_format).and_then(|page| {
            if let Some(lost) = page.lost {
                self.interpret.lost(page.started_ns, lost);
            }
            reached_ns = Some(page.started_ns);
            for raw in page.events() {
                let raw = raw?;
                reached_ns = Some(raw.at_ns);
                match self.interpret.decode(cpu, &raw) {
                    Ok(Some(event)) => self.merge.push(stream, raw.at_ns, event),
                    Ok(None) => {}
                    Err(error) => garble(&mut self.garbled, &error),
                }
            }
            Ok(())
        });
        if let Err(error) = understood {
            garble(&mut self.garbled, &error);
        }
        reached_ns
    }

    fn hand_over(&mut self) {
        while let Some((_, _, event)) = self.merge.pop() {
            self.interpret.add(event);
        }
    }

    fn finish(mut self, instance: &Instance, ended_ns: u64) -> Result<Recorded<I>, Reason> {
        for stream in 0..self.streams {
            self.merge.end(stream);
        }
        self.hand_over();
        let mut notes = self.presence.notes();
        if let Some((times, first)) = self.garbled {
            notes.push(format!(
                "{times} records of the trace could not be read; the first: {first}"
            ));
        }
        Ok(Recorded {
            interpret: self.interpret,
            ended_ns,
            events_lost: instance.events_lost()?,
            notes,
        })
    }
}

fn garble(garbled: &mut Option<(u64, String)>, error: &dyn std::error::Error) {
    garbled.get_or_insert_with(|| (0, error.to_string())).0 += 1;
}
