//! Files of traces: one thread reads and decodes, another studies or writes, and the caller looks, stops and waits.

mod writer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Deserialize;
use trace::block::Device;
use trace::event::{Step, TraceEvent};
use trace::input::{About, Column, Layout, ReadAt, ReadError, Reader, Source, open};
use trace::output::Rows;
use trace::study::{Study, TraceFigures};

use writer::writer;

/// Which files are one trace, and what to do with it.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The files; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// How the columns of a table are to be read, if it is none that is known.
    #[serde(default)]
    pub table: Option<TableSpec>,
    /// Partitions whose bios belong to a disk: `major:minor` of both.
    #[serde(default)]
    pub partitions: Vec<(String, String)>,
    /// Where to write it in another form.
    #[serde(default)]
    pub output: Option<OutputSpec>,
}

/// The columns of a table.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Between the columns.
    pub separator: char,
    /// What each holds, and how many nanoseconds or bytes one of it is.
    pub columns: Vec<(String, u64)>,
    /// Times are of completions.
    #[serde(default)]
    pub ended: bool,
    /// 1 is a read and 0 a write.
    #[serde(default)]
    pub one_reads: bool,
}

/// Another form of the trace.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// `perfetto`, `blktrace` or `iolog`.
    pub form: String,
    /// The file; of blktrace, without `.blktrace.CPU`.
    pub path: PathBuf,
    /// Of a log: times of queueing instead of issue.
    #[serde(default)]
    pub queued: bool,
    /// Of a log: how the device is called in it.
    #[serde(default)]
    pub device: String,
}

/// A trace that is being read.
pub struct TraceJob {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<Result<TraceFigures, ReadError>>>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    events: AtomicU64,
    done: AtomicBool,
}

type Batch = Vec<TraceEvent>;
const BATCHES: usize = 8;
const TICK: Duration = Duration::from_millis(5);

impl TraceJob {
    /// Opens the files and begins; an error says what of them can't be read.
    pub fn start(spec: TraceSpec) -> Result<TraceJob, ReadError> {
        let reader = reader(&spec)?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("iolab-trace".into());
        let spawned = thread.spawn(move || {
            let figures = study(&spec, reader, &of_thread);
            of_thread.done.store(true, Ordering::Release);
            figures
        });
        let thread =
            spawned.map_err(|error| ReadError(format!("can't start a thread: {error}")))?;
        Ok(TraceJob {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.shared.events.load(Ordering::Relaxed)
    }

    /// It ends soon, with an error.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// The figures; None while it is being read.
    pub fn wait(&self, timeout: Duration) -> Option<Result<TraceFigures, ReadError>> {
        let until = Instant::now() + timeout;
        while !self.shared.done.load(Ordering::Acquire) {
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(TICK);
        }
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let joined = thread.take()?.join();
        Some(
            joined.unwrap_or_else(|_| Err(ReadError("the thread that read the trace died".into()))),
        )
    }
}

impl Drop for TraceJob {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Requests of a trace, some at a time, as columns.
pub struct TraceRows {
    reader: Box<dyn Reader>,
    study: Study,
    batch: Batch,
    rows: Rows,
    ended: bool,
}

impl TraceRows {
    /// Opens the files.
    pub fn open(spec: &TraceSpec) -> Result<TraceRows, ReadError> {
        Ok(TraceRows {
            reader: reader(spec)?,
            study: prepared(spec)?,
            batch: Batch::new(),
            rows: Rows::default(),
            ended: false,
        })
    }

    /// About so many rows; None at the end.
    pub fn next(&mut self, count: usize) -> Result<Option<Vec<Vec<u8>>>, ReadError> {
        while !self.ended && self.rows.len() < count {
            self.batch.clear();
            self.ended = !self.reader.read(&mut self.batch)?;
            for event in &self.batch {
                self.study.add(event, |io| self.rows.add(io));
            }
        }
        Ok((!self.rows.is_empty()).then(|| self.rows.take()))
    }

    /// What the tasks are called; complete at the end.
    pub fn names(&mut self) -> BTreeMap<u32, String> {
        self.reader.about().names.clone()
    }
}

fn study(
    spec: &TraceSpec,
    reader: Box<dyn Reader>,
    shared: &Arc<Shared>,
) -> Result<TraceFigures, ReadError> {
    let mut study = prepared(spec)?;
    let mut writer = writer(spec)?;
    let (send, receive) = sync_channel::<Batch>(BATCHES);
    let (give_back, empties) = sync_channel::<Batch>(BATCHES + 2);
    let of_thread = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("iolab-decode".into());
    let decoding = thread.spawn(move || decode(reader, &of_thread, &send, &empties));
    let decoding = decoding.map_err(|error| ReadError(format!("can't start a thread: {error}")))?;
    let mut written = Ok(());
    for mut batch in &receive {
        for event in &batch {
            study.add(event, |io| {
                if let (Some(writer), true) = (&mut writer, written.is_ok()) {
                    written = writer.io(io);
                }
            });
            if let (Some(writer), true) = (&mut writer, written.is_ok()) {
                written = writer.event(event);
                let depth = study
                    .depth()
                    .filter(|_| matches!(event.step, Step::Issue | Step::Complete | Step::Requeue));
                if let (Some((device, depth)), Ok(())) = (depth, &written) {
                    written = writer.depth(device, event.at_ns, depth);
                }
            }
        }
        shared
            .events
            .fetch_add(batch.len() as u64, Ordering::Relaxed);
        batch.clear();
        // Nobody waits for it if the reading is over.
        let _ = give_back.try_send(batch);
        if written.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
    }
    let read = decoding
        .join()
        .map_err(|_| ReadError("the thread that read the trace died".into()))?;
    let about = match (written, read) {
        (Err(error), _) => return Err(ReadError(format!("can't write: {error}"))),
        (_, read) => read?,
    };
    let figures = study.finish(&about);
    if let Some(writer) = writer {
        let ended_ns = figures.began_ns.saturating_add(figures.elapsed_ns);
        writer
            .finish(ended_ns)
            .map_err(|error| ReadError(format!("can't write: {error}")))?;
    }
    Ok(figures)
}

/// Reads until the end, or until told to stop.
fn decode(
    mut reader: Box<dyn Reader>,
    shared: &Shared,
    send: &SyncSender<Batch>,
    empties: &Receiver<Batch>,
) -> Result<About, ReadError> {
    let mut batch = Batch::new();
    loop {
        let more = reader.read(&mut batch)?;
        if !batch.is_empty() {
            let full = std::mem::replace(&mut batch, empties.try_recv().unwrap_or_default());
            if send.send(full).is_err() {
                break;
            }
        }
        if shared.stop.load(Ordering::Relaxed) {
            return Err(ReadError("stopped".into()));
        }
        if !more {
            break;
        }
    }
    Ok(std::mem::take(reader.about()))
}

fn prepared(spec: &TraceSpec) -> Result<Study, ReadError> {
    let mut study = Study::default();
    for (partition, disk) in &spec.partitions {
        study.partition(device(partition)?, device(disk)?);
    }
    Ok(study)
}

fn device(text: &str) -> Result<Device, ReadError> {
    crate::probe::spec::parse_device(text)
        .ok_or_else(|| ReadError(format!("{text}: not a device's major:minor")))
}

fn reader(spec: &TraceSpec) -> Result<Box<dyn Reader>, ReadError> {
    let sources = spec.paths.iter().map(|path| {
        source(path).map_err(|error| ReadError(format!("{}: {error}", path.display())))
    });
    let layout = spec.table.as_ref().map(layout).transpose()?;
    open(sources.collect::<Result<_, _>>()?, layout.as_ref())
}

fn source(path: &Path) -> io::Result<Source> {
    if path == Path::new("-") {
        return Ok(Source::Pipe(Box::new(io::stdin())));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(match metadata.is_file() {
        true => Source::File(Arc::new(Whole {
            length: metadata.len(),
            file,
        })),
        false => Source::Pipe(Box::new(file)),
    })
}

struct Whole {
    file: File,
    length: u64,
}

impl ReadAt for Whole {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn length(&self) -> u64 {
        self.length
    }
}

fn layout(table: &TableSpec) -> Result<Layout, ReadError> {
    let columns = table.columns.iter().map(|(name, unit)| {
        Ok(match name.as_str() {
            "time" => Column::Time { unit_ns: *unit },
            "latency" => Column::Latency { unit_ns: *unit },
            "offset" => Column::Offset { unit_bytes: *unit },
            "size" => Column::Size { unit_bytes: *unit },
            "operation" => Column::Operation,
            "device" => Column::Device,
            "pid" => Column::Pid,
            "process" => Column::Process,
            "-" => Column::Ignored,
            _ => return Err(ReadError(format!("{name}: no column of a trace"))),
        })
    });
    Ok(Layout {
        separator: u8::try_from(table.separator).map_err(|error| ReadError(error.to_string()))?,
        columns: columns.collect::<Result<_, _>>()?,
        ended: table.ended,
        one_reads: table.one_reads,
    })
}
