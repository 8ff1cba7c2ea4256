//! A metadata load: what one thread that makes, writes, syncs, closes and unlinks many small files does next.
//!
//! The thread first writes all its files, one after the other, and then, by its [`SyncMethod`], syncs what it wrote;
//! with `keep` it ends there, otherwise it unlinks the files in the order in which it made them. Names and directories
//! are functions of the file's number, so nothing is kept per file.

mod call;
mod measurement;
mod names;
mod phase;
mod record;
mod spec;
mod walk;

use std::collections::BTreeSet;

use base::time::Time;
pub use call::{CREATE, Call, FilePosition, OP_NAMES, OPS, WRITE};
pub use measurement::{OpMeasured, ThreadMeasured};
pub use names::NameSpec;
use names::Names;
pub use phase::{MetadataPhase, PathForm, ThreadSpec};
pub use record::{MetadataRecord, ThreadRecord, assemble};
pub use spec::{MetadataSpec, SyncMethod};
use walk::Walk;
pub use walk::{NextDirectory, WalkSpec};

/// The state of one thread: which file it is at, and in which stage.
#[derive(Clone, Debug)]
pub struct MetadataJob {
    files: u64,
    file_bytes: u64,
    write_bytes: u32,
    sync: SyncMethod,
    keep: bool,
    until_full: bool,
    names: Names,
    walk: Option<Walk>,
    stage: Stage,
    /// Files that could not be made: they are neither synced again nor unlinked.
    missing: BTreeSet<u64>,
}

/// The call that is due, with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    MakeDirectory { file: u64, directory: u32 },
    Create { file: u64 },
    Write { file: u64, left_bytes: u64 },
    Fsync { file: u64 },
    Close { file: u64 },
    SystemSync,
    FsyncAgain { synced: u64 },
    Unlink { file: u64 },
    Done,
}

impl MetadataJob {
    /// The error names the field and what it can be.
    pub fn new(spec: &MetadataSpec) -> Result<MetadataJob, String> {
        let wrong = |what: String| format!("metadata thread {:?}: {what}", spec.name);
        if spec.files == 0 {
            return Err(wrong("files = 0 leaves nothing to do".into()));
        }
        if spec.write_bytes == 0 {
            return Err(wrong("write_bytes = 0 never writes a file".into()));
        }
        let names = Names::new(&spec.names, spec.seed).map_err(wrong)?;
        let walk = spec.subdirectories.as_ref().map(Walk::new).transpose();
        let walk = walk.map_err(|what| wrong(what.into()))?;
        Ok(MetadataJob {
            files: spec.files,
            file_bytes: spec.file_bytes,
            write_bytes: spec.write_bytes,
            sync: spec.sync,
            keep: spec.keep,
            until_full: spec.until_full,
            names,
            walk,
            stage: Stage::Create { file: 0 },
            missing: BTreeSet::new(),
        })
    }

    /// The call to make now; the same one until it is `completed`.
    #[inline]
    pub fn next(&mut self, now: Time) -> Call {
        if let Stage::Create { file } = self.stage
            && let Some(walk) = &mut self.walk
            && let Some(directory) = walk.enter(file, now)
        {
            self.stage = Stage::MakeDirectory { file, directory };
        }
        match self.stage {
            Stage::MakeDirectory { directory, .. } => Call::MakeDirectory { directory },
            Stage::Create { file } => Call::Create(self.place(file)),
            Stage::Write { left_bytes, .. } => {
                Call::Write { bytes: left_bytes.min(u64::from(self.write_bytes)) as u32 }
            }
            Stage::Fsync { .. } => Call::Fsync,
            Stage::Close { .. } => Call::Close,
            Stage::SystemSync => Call::SystemSync,
            Stage::FsyncAgain { synced } => Call::FsyncAgain(self.place(self.nth_synced(synced))),
            Stage::Unlink { file } => Call::Unlink(self.place(file)),
            Stage::Done => Call::Done,
        }
    }

    /// The call that `next` named is over. A directory that was there already counts as made. After a failure the
    /// file's remaining calls are skipped, except that an open file is closed.
    #[inline]
    pub fn completed(&mut self, succeeded: bool) {
        self.stage = match self.stage {
            Stage::MakeDirectory { file, directory } if succeeded => {
                if let Some(walk) = &mut self.walk {
                    walk.made(directory);
                }
                Stage::Create { file }
            }
            Stage::MakeDirectory { file, .. } | Stage::Create { file } if !succeeded => {
                self.missing.insert(file);
                self.after_file(file)
            }
            Stage::Create { file } => self.after_write(file, self.file_bytes),
            Stage::Write { file, .. } | Stage::Fsync { file } if !succeeded => Stage::Close { file },
            Stage::Write { file, left_bytes } => {
                self.after_write(file, left_bytes.saturating_sub(u64::from(self.write_bytes)))
            }
            Stage::Fsync { file } => Stage::Close { file },
            Stage::Close { file } => self.after_file(file),
            Stage::SystemSync => self.again_from(0),
            Stage::FsyncAgain { synced } => self.again_from(synced + 1),
            Stage::Unlink { file } => self.unlink_from(file + 1),
            Stage::MakeDirectory { .. } | Stage::Done => self.stage,
        };
    }

    /// Whether a full filesystem ends the load without counting as a failure.
    pub fn ends_when_full(&self) -> bool {
        self.until_full
    }

    /// The current call finds the filesystem full; reported before its `completed`: no further file is begun.
    pub fn full(&mut self) {
        match self.stage {
            Stage::MakeDirectory { file, .. }
            | Stage::Create { file }
            | Stage::Write { file, .. }
            | Stage::Fsync { file } => self.files = file + 1,
            _ => {}
        }
    }

    /// Nothing more is done, nothing is cleaned up.
    pub fn stop(&mut self) {
        self.stage = Stage::Done;
    }

    /// Not yet unlinking: what counts in the tool's rate of files.
    pub fn is_writing(&self) -> bool {
        !matches!(self.stage, Stage::Unlink { .. } | Stage::Done)
    }

    /// 0 to 1, by files: each counts once for being written, for being synced again and for being unlinked. None where
    /// a full filesystem is the end.
    pub fn progress(&self) -> Option<f64> {
        if self.until_full && self.stage != Stage::Done {
            return None;
        }
        let again = self.sync.again_count(self.files);
        let all = self.files + again + if self.keep { 0 } else { self.files };
        let done = match self.stage {
            Stage::MakeDirectory { file, .. }
            | Stage::Create { file }
            | Stage::Write { file, .. }
            | Stage::Fsync { file }
            | Stage::Close { file } => file,
            Stage::SystemSync => self.files,
            Stage::FsyncAgain { synced } => self.files + synced,
            Stage::Unlink { file } => self.files + again + file,
            Stage::Done => all,
        };
        Some(done as f64 / all as f64)
    }

    /// The length of every file name, in bytes.
    pub fn name_bytes(&self) -> usize {
        self.names.bytes()
    }

    /// Fills `name`, `name_bytes()` long, with the file's name.
    pub fn write_name(&self, file: u64, name: &mut [u8]) {
        self.names.write(file, name);
    }

    fn after_write(&self, file: u64, left_bytes: u64) -> Stage {
        if left_bytes > 0 {
            Stage::Write { file, left_bytes }
        } else if self.sync == SyncMethod::BeforeClose {
            Stage::Fsync { file }
        } else {
            Stage::Close { file }
        }
    }

    fn after_file(&self, file: u64) -> Stage {
        if file + 1 < self.files {
            Stage::Create { file: file + 1 }
        } else if self.sync.syncs_system() {
            Stage::SystemSync
        } else {
            self.again_from(0)
        }
    }

    fn again_from(&self, first: u64) -> Stage {
        (first..self.sync.again_count(self.files))
            .find(|&nth| !self.missing.contains(&self.nth_synced(nth)))
            .map_or_else(|| self.unlink_from(0), |synced| Stage::FsyncAgain { synced })
    }

    fn unlink_from(&self, first: u64) -> Stage {
        if self.keep {
            return Stage::Done;
        }
        (first..self.files).find(|file| !self.missing.contains(file)).map_or(Stage::Done, |file| Stage::Unlink { file })
    }

    fn nth_synced(&self, nth: u64) -> u64 {
        match self.sync {
            SyncMethod::Reverse | SyncMethod::SystemThenReverse => self.files - 1 - nth,
            _ => nth,
        }
    }

    fn place(&self, file: u64) -> FilePosition {
        FilePosition { file, subdirectory: self.walk.as_ref().map(|walk| walk.of(file)) }
    }
}
