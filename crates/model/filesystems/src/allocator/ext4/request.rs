//! How much ext4 allocates for what is asked (`fs/ext4/mballoc.c` of 5.4.291; docs/model/sources/allocators.md#ext4).

use crate::allocator::BLOCK_BYTES;

const MIB: u64 = 1 << 20;

/// Files that end within this many blocks share a locality group.
pub(super) const SMALL_FILE_BLOCKS: u64 = 16;
pub(super) const LOCALITY_GROUP_BLOCKS: u64 = 512;

/// Blocks of a file to allocate: of the request and round it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AllocationRequest {
    pub(super) start: u64,
    pub(super) blocks: u64,
}

/// By the size that the file is expected to have, which is where the request or the file ends
/// (`ext4_mb_normalize_request`): up to 1 MiB the next power of two from 16 KiB on, from the file's start; below 4 MiB
/// chunks of 2 MiB; below 8 MiB of 4; then of 8, aligned in the file; a longer request is as it is.
pub(super) fn normalize(block: u64, blocks: u64, file_end: u64) -> AllocationRequest {
    let end = file_end.max(block + blocks);
    let bytes = end * BLOCK_BYTES;
    let chunk = |size: u64| {
        let size = size / BLOCK_BYTES;
        AllocationRequest { start: block - block % size, blocks: size }
    };
    if bytes <= MIB {
        AllocationRequest { start: 0, blocks: end.next_power_of_two().max(16 / 4) }
    } else if bytes < 4 * MIB {
        chunk(2 * MIB)
    } else if bytes < 8 * MIB {
        chunk(4 * MIB)
    } else if blocks * BLOCK_BYTES <= 8 * MIB {
        chunk(8 * MIB)
    } else {
        AllocationRequest { start: block, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn wanted(start: u64, blocks: u64) -> AllocationRequest {
        AllocationRequest { start, blocks }
    }

    #[test]
    fn up_to_1_mib_the_next_power_of_two_from_16_kib_on() {
        assert_eq!(normalize(0, 1, 1), wanted(0, 4));
        assert_eq!(normalize(4, 1, 5), wanted(0, 8));
        assert_eq!(normalize(100, 10, 110), wanted(0, 128));
        assert_eq!(normalize(0, 256, 256), wanted(0, 256));
    }

    #[test]
    fn then_aligned_chunks_of_2_4_and_8_mib() {
        assert_eq!(normalize(600, 1, 601), wanted(512, 512));
        assert_eq!(normalize(1500, 1, 1501), wanted(1024, 1024));
        assert_eq!(normalize(5000, 100, 5100), wanted(4096, 2048));
    }

    #[test]
    fn a_request_longer_than_8_mib_is_as_it_is() {
        assert_eq!(normalize(5000, 4096, 9096), wanted(5000, 4096));
    }

    #[test]
    fn the_files_size_counts_not_only_the_request() {
        assert_eq!(normalize(0, 1, 10_000), wanted(0, 2048));
    }
}
