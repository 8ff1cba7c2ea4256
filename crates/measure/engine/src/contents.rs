//! What writes carry and reads are held against.

use std::sync::Arc;

use workload::job::{Op, OpKind};
use workload::phase::{Phase, VerifyPattern};
use workload::record::MismatchRecord;
use workload::verify;

use crate::buffers::{Buffers, Freshener};
use crate::error::StartError;
use crate::files::{OpenFile, writes};
use crate::memory::{Generations, Memory, STAMP_BYTES};

pub enum Contents {
    /// What the buffers hold, again and again.
    Same,
    /// Pseudo-random and never the same twice.
    Noise(Freshener),
    Stamps(Box<Stamps>),
}

pub struct Stamps {
    files: Vec<Option<StampedFile>>,
    filling: Filling,
}

/// What a block holds besides its stamp.
enum Filling {
    Noise,
    /// A block's bytes, behind the stamp.
    Pattern(Vec<u8>),
    /// A block's bytes, and no stamp.
    PatternAlone(Vec<u8>),
}

struct StampedFile {
    path: String,
    base: u64,
    generations: Arc<Generations>,
}

impl Contents {
    pub fn noise(seed: u64) -> Contents {
        Contents::Noise(Freshener::new(seed))
    }

    pub fn stamps(files: &[Option<OpenFile>], memory: &Memory, pattern: Option<&VerifyPattern>) -> Contents {
        let filling = pattern.map_or(Filling::Noise, |pattern| {
            let block = verify::repeated(&pattern.bytes, STAMP_BYTES as usize);
            if pattern.alone { Filling::PatternAlone(block) } else { Filling::Pattern(block) }
        });
        let stamped = |file: &OpenFile| StampedFile {
            path: file.path.clone(),
            base: file.base,
            generations: memory.file(&file.path, file.base + file.size),
        };
        Contents::Stamps(Box::new(Stamps {
            files: files.iter().map(|file| file.as_ref().map(stamped)).collect(),
            filling,
        }))
    }

    /// Before an operation starts, which may be a write from the slot's buffer.
    #[inline(always)]
    pub fn prepare(&mut self, op: &Op, buffers: &Buffers, slot: u32) {
        match self {
            Contents::Noise(freshener) if op.kind.is_write() => {
                // SAFETY: the slot's buffer is page-aligned, holds the largest operation and is idle until the write starts.
                unsafe { freshener.freshen(buffers.write(slot), op.bytes) }
            }
            Contents::Stamps(stamps) if op.kind.is_write() => {
                stamps.stamp(&{ *op }, buffers, slot);
            }
            Contents::Same | Contents::Noise(_) | Contents::Stamps(_) => {}
        }
    }
}

impl Stamps {
    #[inline(never)]
    fn stamp(&self, op: &Op, buffers: &Buffers, slot: u32) {
        let file = self.file(op);
        // SAFETY: as in `prepare`; nothing else refers to the buffer while it is stamped.
        let data = unsafe { std::slice::from_raw_parts_mut(buffers.write(slot), op.bytes as usize) };
        for (block, offset) in data.chunks_exact_mut(STAMP_BYTES as usize).zip(file.offsets(op)) {
            let payload = match &self.filling {
                Filling::Noise => None,
                Filling::Pattern(payload) => Some(payload.as_slice()),
                Filling::PatternAlone(whole) => {
                    block.copy_from_slice(whole);
                    continue;
                }
            };
            verify::stamp(block, file.generations.id, offset, file.generations.next(offset), payload);
        }
    }

    /// After an operation ended, as `completed` in full or not; hands each wrong block to `report`.
    #[inline(never)]
    pub fn finish(
        &self,
        op: &Op,
        completed: bool,
        buffers: &Buffers,
        slot: u32,
        mut report: impl FnMut(MismatchRecord),
    ) {
        match op.kind {
            OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => {
                let file = self.file(op);
                let finish = if completed { Generations::written } else { Generations::uncertain };
                file.offsets(op)
                    .take(op.bytes as usize / STAMP_BYTES as usize)
                    .for_each(|at| finish(&file.generations, at));
            }
            OpKind::Read if completed => {
                let file = self.file(op);
                // SAFETY: the read is over, and the slot isn't reused before this returns.
                let data = unsafe { std::slice::from_raw_parts(buffers.read(slot), op.bytes as usize) };
                for (block, offset) in data.chunks_exact(STAMP_BYTES as usize).zip(file.offsets(op)) {
                    if let Some(generation) = file.generations.expected(offset)
                        && let Err((expected, found)) = self.check(block, file.generations.id, offset, generation)
                    {
                        report(MismatchRecord { path: file.path.clone(), offset, expected, found });
                    }
                }
            }
            OpKind::Read
            | OpKind::Fsync
            | OpKind::Fdatasync
            | OpKind::SyncFileRange
            | OpKind::Discard
            | OpKind::WriteZeroes => {}
        }
    }

    /// What was expected and what was found, if they differ.
    fn check(&self, block: &[u8], file_id: u64, offset: u64, generation: u32) -> Result<(), (String, String)> {
        if let Filling::PatternAlone(whole) = &self.filling {
            return verify::check_pattern(block, whole);
        }
        verify::check(block, file_id, offset, Some(generation))
            .map_err(|wrong| (wrong.expected(), format!("{}: {}", wrong.fault, wrong.found())))
    }

    fn file(&self, op: &Op) -> &StampedFile {
        self.files[op.file as usize].as_ref().expect("jobs name only files that their group opened")
    }
}

impl StampedFile {
    fn offsets(&self, op: &Op) -> impl Iterator<Item = u64> {
        (self.base + op.offset..).step_by(STAMP_BYTES as usize)
    }
}

/// What verification can't do: parts of stamped blocks, and blocks that two jobs change behind one another's back.
pub fn check_verifiable(phase: &Phase) -> Result<(), StartError> {
    let jobs: Vec<_> = phase.groups.iter().flat_map(|group| &group.jobs).collect();
    for job in &jobs {
        let bases = job.files.iter().filter_map(|&index| phase.files.get(index as usize)).map(|file| file.base_bytes);
        if verify::block_bytes(job).is_none() || bases.clone().any(|base| base % STAMP_BYTES != 0) {
            return Err(StartError::spec(format!(
                "job {:?}: verify needs sizes and offsets that are multiples of {STAMP_BYTES} bytes",
                job.name
            )));
        }
    }
    let ranges = |index: usize| {
        let job = jobs[index];
        job.files.iter().filter_map(|&file| phase.files.get(file as usize)).map(move |file| {
            let start = file.base_bytes + job.offset_bytes;
            (file.path.as_str(), start, start + job.length_bytes)
        })
    };
    for (a, b) in (0..jobs.len()).flat_map(|b| (0..b).map(move |a| (a, b))) {
        if !writes(jobs[a]) && !writes(jobs[b]) {
            continue;
        }
        let meets = |x: (&str, u64, u64), y: (&str, u64, u64)| x.0 == y.0 && x.1 < y.2 && y.1 < x.2;
        if let Some((path, ..)) = ranges(a).find(|&x| ranges(b).any(|y| meets(x, y))) {
            return Err(StartError::spec(format!(
                "{path}: verify can't follow jobs {:?} and {:?} in one range when one of them writes; \
                 give each job its own files or range",
                jobs[a].name, jobs[b].name
            )));
        }
    }
    Ok(())
}
