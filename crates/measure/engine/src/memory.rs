//! What verification remembers: the generation last written to each block, by file path, between phases of one trial.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Blocks are stamped in the smallest unit that any operation can have, so that phases with different block sizes check
/// one another's data.
pub const STAMP_BYTES: u64 = 512;

/// The generations of all files that were written with verification; empty at the start of a trial.
#[derive(Debug, Default)]
pub struct Memory {
    files: Mutex<BTreeMap<String, Arc<Generations>>>,
}

impl Memory {
    /// A memory of nothing written.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// The generations of a file whose last byte in use is before `end_bytes`.
    pub(crate) fn file(&self, path: &str, end_bytes: u64) -> Arc<Generations> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let id = files.len() as u64;
        let known = files.get(path);
        if let Some(known) = known.filter(|known| known.reaches(end_bytes)) {
            return Arc::clone(known);
        }
        let extended = Arc::new(Generations::extended(known.map(Arc::as_ref), id, end_bytes));
        files.insert(path.to_owned(), Arc::clone(&extended));
        extended
    }
}

/// Kept in chunks that exist once something in them was written: a large device costs little until it is used.
#[derive(Debug)]
pub(crate) struct Generations {
    /// Part of each stamp: names the file.
    pub id: u64,
    chunks: Vec<OnceLock<Arc<Chunk>>>,
}

type Chunk = [AtomicU32; CHUNK_BLOCKS];
const CHUNK_BLOCKS: usize = 2048;
const CHUNK_BYTES: u64 = CHUNK_BLOCKS as u64 * STAMP_BYTES;

/// Not written in this trial, so nothing is known of the contents.
const NEVER: u32 = 0;
/// A write of this generation failed: the block may hold its old or its new data, or parts of both.
const UNCERTAIN: u32 = 1 << 31;

impl Generations {
    fn extended(old: Option<&Generations>, id: u64, end_bytes: u64) -> Generations {
        let mut chunks = old.map_or_else(Vec::new, |old| old.chunks.clone());
        chunks.resize_with(end_bytes.div_ceil(CHUNK_BYTES) as usize, OnceLock::new);
        Generations { id: old.map_or(id, |old| old.id), chunks }
    }

    fn reaches(&self, end_bytes: u64) -> bool {
        self.chunks.len() as u64 * CHUNK_BYTES >= end_bytes
    }

    /// The generation that the block at `offset` must carry; None when any contents are right.
    pub fn expected(&self, offset: u64) -> Option<u32> {
        let chunk = self.chunks[(offset / CHUNK_BYTES) as usize].get()?;
        let generation = chunk[block_in_chunk(offset)].load(Ordering::Relaxed);
        (generation != NEVER && generation & UNCERTAIN == 0).then_some(generation)
    }

    /// The generation for a write that is about to start at `offset`.
    pub fn next(&self, offset: u64) -> u32 {
        following(self.block(offset).load(Ordering::Relaxed))
    }

    pub fn written(&self, offset: u64) {
        let block = self.block(offset);
        block.store(following(block.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    pub fn uncertain(&self, offset: u64) {
        let block = self.block(offset);
        block.store(following(block.load(Ordering::Relaxed)) | UNCERTAIN, Ordering::Relaxed);
    }

    fn block(&self, offset: u64) -> &AtomicU32 {
        let chunk = self.chunks[(offset / CHUNK_BYTES) as usize]
            .get_or_init(|| Arc::new(std::array::from_fn(|_| AtomicU32::new(NEVER))));
        &chunk[block_in_chunk(offset)]
    }
}

fn block_in_chunk(offset: u64) -> usize {
    (offset % CHUNK_BYTES / STAMP_BYTES) as usize
}

fn following(generation: u32) -> u32 {
    ((generation & !UNCERTAIN) + 1) & !UNCERTAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_outlive_a_phase_and_survive_growth() {
        let memory = Memory::new();
        let first = memory.file("/a", 4096);
        memory.file("/b", 4096);
        assert_eq!(first.expected(512), None);
        first.written(512);
        first.written(512);
        first.uncertain(1024);
        let later = memory.file("/a", 8 << 20);
        assert_eq!((later.id, later.expected(512), later.expected(1024)), (first.id, Some(2), None));
        assert_eq!(later.expected((8 << 20) - 1), None);
    }

    #[test]
    fn a_write_after_a_failed_one_is_certain_again_and_of_its_own_generation() {
        let generations = Memory::new().file("/a", 512);
        generations.written(0);
        generations.uncertain(0);
        assert_eq!((generations.expected(0), generations.next(0)), (None, 3));
        generations.written(0);
        assert_eq!(generations.expected(0), Some(3));
    }
}
