//! Which blocks of a filesystem are free: a bitmap per group of 32768 blocks, made when the group is first touched.

/// Blocks of a group: what a bitmap of one 4 KiB block covers.
pub const GROUP_BLOCKS: u64 = 32768;
const WORDS: usize = (GROUP_BLOCKS / 64) as usize;

/// The free blocks of one filesystem.
#[derive(Clone, Debug)]
pub struct Space {
    blocks: u64,
    free: u64,
    metadata_blocks: u64,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    free: u32,
    /// A bit is set for a block in use. None: nothing but metadata is in use yet.
    words: Option<Box<[u64; WORDS]>>,
}

impl Space {
    /// The blocks of bitmaps, inodes and copies of the superblock at the start of each group, which are never
    /// allocated.
    pub fn new(blocks: u64, metadata_blocks: u64) -> Space {
        let groups: Vec<Group> = (0..blocks.div_ceil(GROUP_BLOCKS))
            .map(|group| {
                let here = GROUP_BLOCKS.min(blocks - group * GROUP_BLOCKS);
                Group { free: here.saturating_sub(metadata_blocks) as u32, words: None }
            })
            .collect();
        Space { blocks, free: groups.iter().map(|group| u64::from(group.free)).sum(), metadata_blocks, groups }
    }

    /// Size of the filesystem in blocks, metadata included.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Free blocks of all groups.
    pub fn free_blocks(&self) -> u64 {
        self.free
    }

    /// Number of groups; the last one may be shorter.
    pub fn groups(&self) -> u64 {
        self.groups.len() as u64
    }

    /// Free blocks of the group.
    pub fn free_in_group(&self, group: u64) -> u64 {
        u64::from(self.groups[group as usize].free)
    }

    /// The end of the group that holds the block.
    pub fn group_end(&self, block: u64) -> u64 {
        ((block / GROUP_BLOCKS + 1) * GROUP_BLOCKS).min(self.blocks)
    }

    /// Whether the block can be taken; a block beyond the end cannot.
    pub fn is_free(&self, block: u64) -> bool {
        block < self.blocks && self.word(block) >> (block % 64) & 1 == 0
    }

    /// Marks a block as used. Panics if it is not free.
    pub fn take(&mut self, block: u64) {
        assert!(self.is_free(block), "block {block} is given once");
        let word = self.word_mut(block);
        *word |= 1 << (block % 64);
        self.groups[(block / GROUP_BLOCKS) as usize].free -= 1;
        self.free -= 1;
    }

    /// Marks a block as free. Panics if it is free already.
    pub fn give_back(&mut self, block: u64) {
        assert!(!self.is_free(block), "block {block} is given back once");
        let word = self.word_mut(block);
        *word &= !(1 << (block % 64));
        self.groups[(block / GROUP_BLOCKS) as usize].free += 1;
        self.free += 1;
    }

    /// Marks consecutive blocks as used. Panics if one of them is not free.
    pub fn take_run(&mut self, start: u64, blocks: u64) {
        (start..start + blocks).for_each(|block| self.take(block));
    }

    /// Marks consecutive blocks as free. Panics if one of them is free already.
    pub fn give_back_run(&mut self, start: u64, blocks: u64) {
        (start..start + blocks).for_each(|block| self.give_back(block));
    }

    /// The first free block of `from..end`.
    pub fn next_free(&self, from: u64, end: u64) -> Option<u64> {
        self.first(from, end, |used| !used)
    }

    /// The first block in use of `from..end`, or `end`.
    pub fn next_used(&self, from: u64, end: u64) -> u64 {
        self.first(from, end, |used| used).unwrap_or(end)
    }

    /// The first block, a multiple of 8, from which 8 blocks are free; from the byte that holds `from` on.
    pub fn next_free_byte(&self, from: u64, end: u64) -> Option<u64> {
        const LOW: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let mut at = from & !7;
        while at < end {
            // Bytes before `at` count as in use. The lowest byte that this marks is truly zero; higher ones may not be.
            let used = self.word(at) | !(u64::MAX << (at % 64));
            let zero = used.wrapping_sub(LOW) & !used & HIGH;
            if zero != 0 {
                let found = (at & !63) + u64::from(zero.trailing_zeros() & !7);
                return (found < end).then_some(found);
            }
            at = (at & !63) + 64;
        }
        None
    }

    fn first(&self, from: u64, end: u64, wanted: impl Fn(u64) -> u64) -> Option<u64> {
        let end = end.min(self.blocks);
        let mut at = from;
        while at < end {
            let bits = wanted(self.word(at)) & (u64::MAX << (at % 64));
            if bits != 0 {
                let found = (at & !63) + u64::from(bits.trailing_zeros());
                return (found < end).then_some(found);
            }
            at = (at & !63) + 64;
        }
        None
    }

    fn word(&self, block: u64) -> u64 {
        let group = block / GROUP_BLOCKS;
        let number = (block % GROUP_BLOCKS / 64) as usize;
        match &self.groups[group as usize].words {
            Some(words) => words[number],
            None => self.untouched(group, number as u64),
        }
    }

    fn word_mut(&mut self, block: u64) -> &mut u64 {
        let group = block / GROUP_BLOCKS;
        if self.groups[group as usize].words.is_none() {
            let mut words = Box::new([0; WORDS]);
            for (number, word) in (0..).zip(words.iter_mut()) {
                *word = self.untouched(group, number);
            }
            self.groups[group as usize].words = Some(words);
        }
        let words = self.groups[group as usize].words.as_mut();
        &mut words.expect("just made")[(block % GROUP_BLOCKS / 64) as usize]
    }

    /// Metadata, and what lies beyond the end of the filesystem, is in use.
    fn untouched(&self, group: u64, number: u64) -> u64 {
        let size = GROUP_BLOCKS.min(self.blocks - group * GROUP_BLOCKS);
        below(self.metadata_blocks, number) | !below(size, number)
    }
}

/// Word `number` of a bitmap whose first `bits` bits are set.
fn below(bits: u64, number: u64) -> u64 {
    match bits.saturating_sub(number * 64) {
        here @ 0..64 => (1 << here) - 1,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn metadata_and_what_lies_beyond_the_end_is_never_free() {
        let space = Space::new(GROUP_BLOCKS + 100, 70);
        assert_eq!(space.free_blocks(), GROUP_BLOCKS - 70 + 30);
        assert_eq!(space.next_free(0, space.blocks()), Some(70));
        assert_eq!(space.next_free(GROUP_BLOCKS, space.blocks()), Some(GROUP_BLOCKS + 70));
        assert!(!space.is_free(GROUP_BLOCKS + 100));
    }

    proptest! {
        #[test]
        fn searches_find_what_looking_at_each_block_finds(
            taken in proptest::collection::btree_set(0u64..700, 0..500), from in 0u64..700, metadata in 0u64..20,
        ) {
            let mut space = Space::new(700, metadata);
            for &block in taken.iter().filter(|&&block| block >= metadata) {
                space.take(block);
            }
            let free = |block: u64| block >= metadata && block < 700 && !taken.contains(&block);
            prop_assert_eq!(space.next_free(from, 700), (from..700).find(|&block| free(block)));
            prop_assert_eq!(space.next_used(from, 700), (from..700).find(|&block| !free(block)).unwrap_or(700));
            let byte = (from / 8..700 / 8).map(|byte| byte * 8).find(|&at| (at..at + 8).all(free));
            prop_assert_eq!(space.next_free_byte(from, 700), byte);
            prop_assert_eq!(space.free_blocks(), (0..700).filter(|&block| free(block)).count() as u64);
        }
    }
}
