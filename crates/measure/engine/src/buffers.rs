//! The buffers of a group: page-aligned, one per slot and direction, mapped once.

use std::io;
use std::ptr::NonNull;

const PAGE: usize = 4096;
/// The kernel refuses to register a longer piece.
const REGISTERED_MAX: usize = 1 << 30;
/// As many pieces as every kernel registers (io_uring/rsrc.c: `UIO_MAXIOV` before 5.13, 16,384 since).
const PIECES_MAX: usize = 1024;

/// Slot `i` reads into and writes from the `i`-th buffer; a group that does both has two per slot, so that
/// what was read never becomes what is written.
#[derive(Debug)]
pub struct Buffers {
    base: NonNull<u8>,
    mapped_bytes: usize,
    stride: usize,
    writes_at: usize,
    /// Slots of one registered piece.
    slots_per_piece: usize,
    slots: usize,
}

impl Buffers {
    /// `bytes` is the largest operation.
    pub fn new(slots: usize, bytes: usize, reads: bool, writes: bool) -> io::Result<Buffers> {
        let stride = bytes.max(1).next_multiple_of(PAGE);
        let directions = usize::from(reads && writes) + 1;
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let one_direction = stride.checked_mul(slots.max(1)).ok_or_else(too_large)?;
        let mapped_bytes = one_direction.checked_mul(directions).ok_or_else(too_large)?;
        // SAFETY: a new private mapping; no existing memory is touched.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut buffers = Buffers {
            base: NonNull::new(base.cast()).ok_or_else(too_large)?,
            mapped_bytes,
            stride,
            writes_at: if directions == 2 { one_direction } else { 0 },
            slots_per_piece: slots_per_piece(slots.max(1), directions, stride),
            slots: slots.max(1),
        };
        // SAFETY: the range is the mapping just made; the advice does not change its contents.
        unsafe { libc::madvise(base, mapped_bytes, libc::MADV_HUGEPAGE) };
        buffers.fill_with_noise();
        Ok(buffers)
    }

    #[inline(always)]
    pub fn read(&self, slot: u32) -> *mut u8 {
        // SAFETY: slots are below `self.slots`, so the buffer lies inside the mapping.
        unsafe { self.base.as_ptr().add(slot as usize * self.stride) }
    }

    #[inline(always)]
    pub fn write(&self, slot: u32) -> *mut u8 {
        // SAFETY: as for `read`; the writes' half starts at `writes_at`.
        unsafe { self.base.as_ptr().add(self.writes_at + slot as usize * self.stride) }
    }

    /// The registered piece that holds a slot's buffer.
    #[inline(always)]
    pub fn piece(&self, slot: u32, is_write: bool) -> u16 {
        let piece = slot as usize / self.slots_per_piece;
        let first = if is_write && self.writes_at > 0 { self.pieces_per_direction() } else { 0 };
        (first + piece) as u16
    }

    /// What to register with a ring, in the order that `piece` counts.
    pub fn pieces(&self) -> Vec<libc::iovec> {
        let directions = if self.writes_at > 0 { 2 } else { 1 };
        let starts = (0..directions).flat_map(|d| (0..self.pieces_per_direction()).map(move |piece| (d, piece)));
        starts
            .map(|(direction, piece)| {
                let first = piece * self.slots_per_piece;
                let slots = self.slots_per_piece.min(self.slots - first);
                libc::iovec {
                    // SAFETY: inside the mapping, as `first` is below `self.slots`.
                    iov_base: unsafe { self.base.as_ptr().add(direction * self.writes_at + first * self.stride) }
                        .cast(),
                    iov_len: slots * self.stride,
                }
            })
            .collect()
    }

    fn pieces_per_direction(&self) -> usize {
        self.slots.div_ceil(self.slots_per_piece)
    }

    /// Data that no device can compress, and every page resident before the first operation.
    fn fill_with_noise(&mut self) {
        // SAFETY: the mapping is exclusively ours, page-aligned and a multiple of eight bytes long.
        let words = unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().cast::<u64>(), self.mapped_bytes / 8) };
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ (self.base.as_ptr() as u64);
        for word in words {
            *word = next_noise(&mut state);
        }
    }
}

/// One if that makes not too many pieces. A buffer inside a longer piece costs the kernel 168 instructions more for each
/// I/O: its offset in a huge page makes `bio_may_exceed_limits` true, so that `bio_split_rw_at` walks the bio
/// (block/blk.h, block/blk-merge.c of 6.12), and `io_import_fixed` looks for its place.
fn slots_per_piece(slots: usize, directions: usize, stride: usize) -> usize {
    if slots * directions <= PIECES_MAX { 1 } else { (REGISTERED_MAX / stride).clamp(1, slots) }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped; nobody else holds it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// Makes each 512-byte sector of a write unlike any written before, for the price of one store a sector, so that a
/// device which removes duplicates has nothing to remove.
#[derive(Debug)]
pub struct Freshener {
    state: u64,
}

impl Freshener {
    pub fn new(seed: u64) -> Freshener {
        Freshener { state: seed | 1 }
    }

    /// # Safety
    /// `data` must be valid for writes of `bytes` and aligned to eight bytes.
    #[inline(never)]
    pub unsafe fn freshen(&mut self, data: *mut u8, bytes: u32) {
        for at in (0..bytes as usize & !7).step_by(512) {
            // SAFETY: `at + 8 <= bytes`, as `at` is a multiple of eight below `bytes` rounded down to eight.
            unsafe { data.add(at).cast::<u64>().write(next_noise(&mut self.state)) };
        }
    }
}

/// splitmix64 (Steele, Lea and Flood, 2014).
#[inline(always)]
fn next_noise(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_page_aligned_and_apart() {
        let buffers = Buffers::new(4, 5000, true, true).unwrap();
        let mut starts: Vec<usize> =
            (0..4).flat_map(|s| [buffers.read(s) as usize, buffers.write(s) as usize]).collect();
        starts.sort_unstable();
        assert!(starts.iter().all(|start| start % PAGE == 0));
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 5000));
    }

    #[test]
    fn each_buffer_lies_in_the_piece_it_names() {
        for (slots, bytes) in [(3, 4096), (2, 700 << 20), (600, 4096), (5000, 400 << 10)] {
            let stride = usize::next_multiple_of(bytes, PAGE);
            let per_piece = slots_per_piece(slots, 2, stride);
            assert_eq!(per_piece == 1, slots * 2 <= PIECES_MAX);
            let buffers = std::mem::ManuallyDrop::new(Buffers {
                base: NonNull::new(0x10_0000_0000 as *mut u8).unwrap(),
                mapped_bytes: 2 * stride * slots,
                stride,
                writes_at: stride * slots,
                slots_per_piece: per_piece,
                slots,
            });
            let pieces = buffers.pieces();
            for slot in 0..slots as u32 {
                for (start, is_write) in [(buffers.read(slot), false), (buffers.write(slot), true)] {
                    let piece = &pieces[buffers.piece(slot, is_write) as usize];
                    let offset = start as usize - piece.iov_base as usize;
                    assert!(offset + bytes <= piece.iov_len, "slot {slot} of {slots} x {bytes}");
                    assert!(piece.iov_len <= REGISTERED_MAX);
                }
            }
        }
    }

    #[test]
    fn noise_does_not_repeat_between_sectors_or_writes() {
        let buffers = Buffers::new(1, 4096, false, true).unwrap();
        let mut freshener = Freshener::new(7);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            // SAFETY: the buffer is 4096 bytes long and page-aligned.
            unsafe { freshener.freshen(buffers.write(0), 4096) };
            for sector in 0..8 {
                // SAFETY: reads inside the same buffer.
                assert!(seen.insert(unsafe { buffers.write(0).add(sector * 512).cast::<u64>().read() }));
            }
        }
    }
}
