//! One thread of a metadata load: makes the calls that its job names, and times each.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use base::rng;
use base::time::Time;
use workload::measure::{Failures, Verdict};
use workload::metadata::{CREATE, Call, MetadataJob, OP_NAMES, OPS, OpMeasured, ThreadMeasured, WRITE};

use super::calls;
use super::path::Path;
use crate::affinity;
use crate::clock::Clock;
use crate::error::errno_name;
use crate::progress::{Counts, PhaseState};
use crate::usage::sample;
use crate::worker::{Decision, Emit, Gate, Message};

/// Everything of a thread but its own things.
pub struct PreparedThread {
    pub index: usize,
    pub name: String,
    pub directory: String,
    /// Calls start from here; None: from the root of the filesystem.
    pub base: Option<OwnedFd>,
    pub cpus: Option<Vec<u32>>,
    pub write_bytes: usize,
    pub seed: u64,
    pub job: MetadataJob,
}

/// How often a thread shows its progress.
const TICK_EVERY_NS: Time = 5_000_000;
/// A sequence that no file's name draws from: those are numbered from 0.
const DATA_STREAM: u64 = u64::MAX;

pub fn run(prepared: PreparedThread, shared: Arc<PhaseState>, gate: &Gate, outbox: Sender<Message<ThreadMeasured>>) {
    let mut notes = Vec::new();
    if let Some(cpus) = &prepared.cpus
        && let Err(error) = affinity::pin(cpus)
    {
        notes.push(format!("pinning to CPUs {cpus:?} failed ({error}); running anywhere"));
    }
    if let Err(error) = calls::separate_open_files() {
        notes.push(format!("the threads share one table of open files ({error})"));
    }
    let index = prepared.index;
    let thread = Thread::new(prepared, Arc::clone(&shared), notes);
    outbox.emit(Message::Ready(Ok(())));
    let measured = match gate.wait() {
        Decision::Abandon => return,
        Decision::Start(origin) => {
            shared.window.enter();
            let measured = match origin.tsc() {
                Some(clock) => thread.run(clock),
                None => thread.run(origin.monotonic()),
            };
            shared.window.leave();
            measured
        }
    };
    outbox.emit(Message::Over(index, Ok(measured)));
}

struct Thread {
    index: usize,
    name: String,
    job: MetadataJob,
    path: Path,
    base: Option<OwnedFd>,
    /// What writes carry: pseudo-random, so that no device compresses it.
    data: Vec<u8>,
    open: Option<OwnedFd>,
    ops: [OpMeasured; OPS],
    failures: Failures,
    notes: Vec<String>,
    shared: Arc<PhaseState>,
}

impl Thread {
    fn new(prepared: PreparedThread, shared: Arc<PhaseState>, notes: Vec<String>) -> Thread {
        let directory = match prepared.base {
            Some(_) => "",
            None => &prepared.directory,
        };
        let mut stream = rng::stream(prepared.seed, DATA_STREAM);
        let words = prepared.write_bytes.div_ceil(8);
        Thread {
            index: prepared.index,
            name: prepared.name,
            path: Path::new(directory, prepared.job.name_bytes()),
            job: prepared.job,
            base: prepared.base,
            data: (0..words).flat_map(|_| stream.next_u64().to_ne_bytes()).collect(),
            open: None,
            ops: Default::default(),
            failures: Failures::new(errno_name),
            notes,
            shared,
        }
    }

    fn run<C: Clock>(mut self, clock: C) -> ThreadMeasured {
        let first_sample = sample(clock.now());
        let began_at = clock.now();
        let mut now = began_at;
        let mut tick_at = now;
        let mut written_at = None;
        loop {
            let call = self.job.next(now);
            if written_at.is_none() && !self.job.is_writing() {
                written_at = Some(now);
            }
            if call == Call::Done {
                break;
            }
            let base = self.prepare(call);
            let started = clock.now();
            let result = self.perform(call, base);
            now = clock.now();
            let is_full = self.job.ends_when_full() && finds_full(call, &result);
            if is_full {
                self.job.full();
            }
            self.job.completed(matches!(result, Ok(true)));
            match result {
                Ok(true) => self.succeeded(call, now - started),
                _ if is_full => {}
                Ok(false) => self.failed(call, 0),
                Err(error) => self.failed(call, error.raw_os_error().unwrap_or(libc::EIO)),
            }
            if self.shared.stop.load(Ordering::Relaxed) {
                self.job.stop();
            }
            if now >= tick_at {
                self.publish();
                tick_at = now + TICK_EVERY_NS;
            }
        }
        self.publish();
        ThreadMeasured {
            ops: self.ops,
            failures: self.failures,
            notes: self.notes,
            first_sample,
            last_sample: sample(now),
            began_at,
            written_at: written_at.unwrap_or(now),
            finished_at: now,
        }
    }

    /// What is not the call's own time: its path. Returns where the path begins.
    #[inline(always)]
    fn prepare(&mut self, call: Call) -> RawFd {
        if let Call::Create(place) | Call::FsyncAgain(place) | Call::Unlink(place) = call {
            self.path.of_file(place, &self.job);
        }
        self.base.as_ref().map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd)
    }

    #[inline(always)]
    fn perform(&mut self, call: Call, base: RawFd) -> io::Result<bool> {
        const OPEN: &str = "a job writes, syncs and closes only what it has made";
        let path = self.path.as_c_str();
        let file = || self.open.as_ref().expect(OPEN);
        match call {
            Call::Create(_) => self.open = Some(calls::create(base, path)?),
            Call::Write { bytes } => return calls::write(file(), &self.data[..bytes as usize]),
            Call::Fsync => calls::fsync(file())?,
            Call::Close => calls::close(self.open.take().expect(OPEN))?,
            Call::Unlink(_) => calls::unlink(base, path)?,
            Call::FsyncAgain(_) => calls::fsync_again(base, path)?,
            Call::SystemSync => calls::sync_system(),
            Call::MakeDirectory { directory } => calls::make_directory(base, &self.path.of_subdirectory(directory))?,
            Call::Done => {}
        }
        Ok(true)
    }

    #[inline(always)]
    fn succeeded(&mut self, call: Call, latency_ns: Time) {
        self.failures.succeeded();
        let op = &mut self.ops[call.op()];
        op.latency.record(latency_ns);
        if let Call::Write { bytes } = call {
            op.bytes += u64::from(bytes);
        }
    }

    #[cold]
    fn failed(&mut self, call: Call, errno: i32) {
        let path = match call {
            Call::MakeDirectory { directory } => self.path.of_subdirectory(directory),
            _ => self.path.as_c_str().to_owned(),
        };
        let op = OP_NAMES[call.op()];
        let verdict = self.failures.failed(op, call.grows(), errno, &path.to_string_lossy(), 0);
        if verdict == Verdict::GiveUp {
            let reason = self.failures.last().map_or("", |failure| &failure.name);
            self.notes.push(format!("thread {:?} gave up: {op} failed with {reason}", self.name));
            self.job.stop();
        }
    }

    fn publish(&self) {
        self.shared.groups[self.index].store(Counts {
            ops: self.ops[CREATE].latency.count(),
            bytes: self.ops[WRITE].bytes,
            errors: self.failures.count,
            fraction: self.job.progress(),
        });
    }
}

/// A write into the last of the space may also come back short.
fn finds_full(call: Call, result: &io::Result<bool>) -> bool {
    call.grows()
        && match result {
            Ok(whole) => !whole,
            Err(error) => matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)),
        }
}
