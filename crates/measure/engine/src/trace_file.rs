//! Files of traces: one thread reads and decodes, another studies or writes, and the caller looks, stops and waits.

mod rows;
mod source;
mod spec;
mod writer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trace::event::Step;
use trace::input::{ReadError, Reader, TraceInfo};
use trace::study::TraceFigures;

pub use rows::TraceRows;
pub(crate) use source::reader;
use spec::{Batch, prepared};
pub use spec::{OutputSpec, TraceSpec};
use writer::writer;

/// A trace that is being read.
pub struct TraceJob {
    shared: Arc<RecordingState>,
    thread: Mutex<Option<JoinHandle<Result<TraceFigures, ReadError>>>>,
}

#[derive(Default)]
struct RecordingState {
    stop: AtomicBool,
    events: AtomicU64,
    done: AtomicBool,
}

const BATCHES: usize = 8;
const TICK: Duration = Duration::from_millis(5);

impl TraceJob {
    /// Opens the files and begins; an error names what can't be read.
    pub fn start(spec: TraceSpec) -> Result<TraceJob, ReadError> {
        let reader = reader(&spec.paths, spec.table.as_ref(), spec.gaps())?;
        let shared = Arc::new(RecordingState::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("iolab-trace".into());
        let spawned = thread.spawn(move || {
            let figures = study(&spec, reader, &of_thread);
            of_thread.done.store(true, Ordering::Release);
            figures
        });
        let thread = spawned.map_err(|error| ReadError(format!("can't start a thread: {error}")))?;
        Ok(TraceJob { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Events until now.
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
        Some(joined.unwrap_or_else(|_| Err(ReadError("the thread that read the trace died".into()))))
    }
}

impl Drop for TraceJob {
    fn drop(&mut self) {
        self.stop();
    }
}

fn study(spec: &TraceSpec, reader: Box<dyn Reader>, shared: &Arc<RecordingState>) -> Result<TraceFigures, ReadError> {
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
                let depth =
                    study.depth().filter(|_| matches!(event.step, Step::Issue | Step::Complete | Step::Requeue));
                if let (Some((device, depth)), Ok(())) = (depth, &written) {
                    written = writer.depth(device, event.at_ns, depth);
                }
            }
        }
        shared.events.fetch_add(batch.len() as u64, Ordering::Relaxed);
        batch.clear();
        // Nobody waits for it if the reading is over.
        let _ = give_back.try_send(batch);
        if written.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
    }
    let read = decoding.join().map_err(|_| ReadError("the thread that read the trace died".into()))?;
    let about = match (written, read) {
        (Err(error), _) => return Err(ReadError(format!("can't write: {error}"))),
        (_, read) => read?,
    };
    let figures = study.finish(&about);
    if let Some(writer) = writer {
        let ended_ns = figures.began_ns.saturating_add(figures.elapsed_ns);
        writer.finish(ended_ns).map_err(|error| ReadError(format!("can't write: {error}")))?;
    }
    Ok(figures)
}

/// Reads until the end, or until it is stopped.
fn decode(
    mut reader: Box<dyn Reader>,
    shared: &RecordingState,
    send: &SyncSender<Batch>,
    empties: &Receiver<Batch>,
) -> Result<TraceInfo, ReadError> {
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
