//! The tags of blk-mq as bits in words: which request has which, and which of them those may have that are limited.
//!
//! Source: `lib/sbitmap.c` of 6.x (`sbitmap_init_node`, `__sbitmap_get_shallow`, `update_alloc_hint_after_get`,
//! `sbq_calc_wake_batch`) and of 6.12.117 (`__map_depth_with_shallow`). Who is limited looks at so many bits of each word
//! and sleeps if others have these, however many are free beyond them. *Simplified*: all CPUs have one hint, which begins at 0.

use kernels::hardware_queue::TagLimit;

/// `SBQ_WAIT_QUEUES`.
pub(crate) const WAIT_QUEUES: u32 = 8;
/// `SBQ_WAKE_BATCH`.
const WAKE_BATCH_MAX: u32 = 8;
const WORD_SHIFT_MAX: u32 = 6;
const FEW: u32 = 4;

/// How many tags there are, and how they lie in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagCounts {
    /// All.
    pub all: u32,
    /// Bits of a word, of which the last may have fewer.
    pub word: u32,
    /// What a limit of them counts.
    pub limit: TagLimit,
    /// The number of tags whose share a limit is: the former one, in kernels that tell it before they set a new one.
    pub told: u32,
}

impl TagCounts {
    /// Spread over at least four words, if there are as many (`sbitmap_init_node`).
    pub fn of(all: u32, limit: TagLimit) -> TagCounts {
        let mut shift = WORD_SHIFT_MAX;
        while all >= FEW && FEW << shift > all {
            shift -= 1;
        }
        TagCounts { all, word: 1 << shift, limit, told: all }
    }

    /// What limits are shares of: a word's tags, or the number that was told.
    pub fn shared(self) -> u32 {
        match self.limit {
            TagLimit::OfWord => self.word,
            TagLimit::OfAll => self.told,
        }
    }

    /// The limit of those who may have all.
    pub fn most(self) -> u32 {
        match self.limit {
            TagLimit::OfWord => self.word,
            TagLimit::OfAll => self.all,
        }
    }

    /// How many bits of that word the limit allows. Of all tags: its share, rounded up in the first words
    /// (`__map_depth_with_shallow`).
    fn allowed_in(self, word: u32, limit: u32) -> u32 {
        let bits = self.word.min(self.all - word * self.word);
        match self.limit {
            TagLimit::OfWord => limit.min(bits),
            TagLimit::OfAll if limit >= self.all => bits,
            TagLimit::OfAll => {
                let shared = bits * limit;
                shared / self.all + u32::from(shared % self.all >= (word + 1) * bits)
            }
        }
    }

    /// After how many free tags a task is woken, if the lowest limit is that (`sbq_calc_wake_batch`).
    pub(crate) fn wake_batch(self, fewest: u32) -> u32 {
        let fewest = fewest.clamp(1, self.most());
        let usable = match self.limit {
            TagLimit::OfWord => self.all / self.word * fewest + (self.all % self.word).min(fewest),
            TagLimit::OfAll => fewest,
        };
        (usable / WAIT_QUEUES).clamp(1, WAKE_BATCH_MAX)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct TagBits {
    counts: TagCounts,
    taken: Vec<u64>,
    /// Those of the taken bits that have been given back since their word was looked through in vain; from 5.0 on
    /// (`sbitmap_deferred_clear`). So the bits of a word go out in turn.
    cleared: Vec<u64>,
    defers: bool,
    hint: u32,
}

impl TagBits {
    /// `defers`: bits that are given back count as taken until their word is exhausted.
    pub(crate) fn new(counts: TagCounts, defers: bool) -> TagBits {
        let words = counts.all.div_ceil(counts.word) as usize;
        TagBits { counts, taken: vec![0; words], cleared: vec![0; words], defers, hint: 0 }
    }

    pub(crate) fn counts(&self) -> TagCounts {
        self.counts
    }

    /// A free one among those that the limit allows (`sbitmap_get_shallow`).
    pub(crate) fn take(&mut self, limit: u32) -> Option<u32> {
        let words = self.taken.len() as u32;
        let first = self.hint / self.counts.word;
        let found = (0..words).find_map(|after| {
            let word = (first + after) % words;
            let from = match after {
                0 if limit < self.counts.most() => self.hint % self.counts.word,
                _ => 0,
            };
            let depth = self.counts.allowed_in(word, limit);
            if depth == 0 {
                return None;
            }
            self.free_in(word, from, depth).or_else(|| {
                let cleared = std::mem::take(&mut self.cleared[word as usize]);
                self.taken[word as usize] &= !cleared;
                self.free_in(word, from, depth).filter(|_| cleared != 0)
            })
        });
        match found {
            None => self.hint = 0,
            Some(tag) => {
                self.taken[(tag / self.counts.word) as usize] |= 1 << (tag % self.counts.word);
                if tag == self.hint {
                    let next = tag + 1;
                    self.hint = if next + 1 < self.counts.all { next } else { 0 };
                }
            }
        }
        found
    }

    /// The next is looked for from here on (`sbitmap_update_cpu_hint`).
    pub(crate) fn give_back(&mut self, tag: u32) {
        self.hint = tag;
        let word = (tag / self.counts.word) as usize;
        let bit = 1 << (tag % self.counts.word);
        debug_assert!(self.in_use(word) & bit != 0, "tag {tag} was free");
        match self.defers {
            true => self.cleared[word] |= bit,
            false => self.taken[word] &= !bit,
        }
    }

    fn in_use(&self, word: usize) -> u64 {
        self.taken[word] & !self.cleared[word]
    }

    /// Some tag that is in use; 0 if none is.
    #[cfg(test)]
    pub(crate) fn any_taken(&self) -> u32 {
        let in_use = |tag: &u32| self.in_use((tag / self.counts.word) as usize) & (1 << (tag % self.counts.word)) != 0;
        (0..self.counts.all).find(in_use).unwrap_or(0)
    }

    /// From that bit on, then from the first.
    fn free_in(&self, word: u32, from: u32, depth: u32) -> Option<u32> {
        let is_free = |bit: &u32| self.taken[word as usize] & (1 << bit) == 0;
        let from = if from < depth { from } else { 0 };
        let bit = (from..depth).chain(0..from).find(is_free)?;
        Some(word * self.counts.word + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_word(all: u32) -> TagCounts {
        TagCounts::of(all, TagLimit::OfWord)
    }

    #[test]
    fn tags_lie_in_four_words_or_more_but_a_few_in_one() {
        let word = |all| of_word(all).word;
        assert_eq!([2, 4, 8, 16, 64, 256].map(word), [64, 1, 2, 4, 16, 64]);
        assert_eq!([3, 2048].map(word), [64, 64]);
    }

    #[test]
    fn who_is_limited_gets_the_first_bits_of_each_word() {
        let mut bits = TagBits::new(of_word(8), false);
        let limited: Vec<u32> = std::iter::from_fn(|| bits.take(1)).collect();
        assert_eq!(limited.len(), 4);
        assert!(limited.iter().all(|tag| tag % 2 == 0));
        assert_eq!(std::iter::from_fn(|| bits.take(2)).count(), 4, "the rest");
        bits.give_back(3);
        assert_eq!(bits.take(1), None, "3 is free, but not for who is limited");
        bits.give_back(4);
        assert_eq!(bits.take(1), Some(4));
    }

    #[test]
    fn bits_of_a_word_go_out_in_turn_from_5_0_on() {
        let taken = |defers| {
            let mut bits = TagBits::new(of_word(16), defers);
            let mut one = || {
                let tag = bits.take(u32::MAX).expect("it is free");
                bits.give_back(tag);
                tag
            };
            (0..6).map(|_| one()).collect::<Vec<u32>>()
        };
        assert_eq!(taken(false), [0; 6]);
        assert_eq!(taken(true), [0, 1, 2, 3, 0, 1]);
        let mut bits = TagBits::new(of_word(8), true);
        let limited: Vec<u32> = std::iter::from_fn(|| bits.take(1)).collect();
        bits.give_back(limited[1]);
        assert_eq!(bits.take(1), Some(limited[1]), "it is free for who is limited");
    }

    #[test]
    fn of_two_tags_a_share_of_the_word_limits_nobody() {
        let counts = of_word(2);
        let mut bits = TagBits::new(counts, false);
        assert_eq!(std::iter::from_fn(|| bits.take(counts.word / 2)).count(), 2);
    }

    #[test]
    fn a_batch_is_an_eighth_of_what_the_most_limited_may_have() {
        let batch = |all, fewest| of_word(all).wake_batch(fewest);
        assert_eq!([1, 8, 16, 32, 64, 1024].map(|all| batch(all, 64)), [1, 1, 2, 4, 8, 8]);
        assert_eq!((batch(256, 1), batch(2048, 1)), (1, 4));
        let of_all = |fewest| TagCounts::of(256, TagLimit::OfAll).wake_batch(fewest);
        assert_eq!([1, 32, 192, 256].map(of_all), [1, 4, 8, 8]);
    }

    #[test]
    fn a_limit_of_all_tags_is_shared_out_over_their_words() {
        let allowed = |all, limit| {
            let counts = TagCounts::of(all, TagLimit::OfAll);
            let mut bits = TagBits::new(counts, false);
            std::iter::from_fn(|| bits.take(limit)).collect::<Vec<u32>>()
        };
        assert_eq!(allowed(4, 1), [0], "of four words of one bit");
        assert_eq!(allowed(4, 3), [0, 1, 2]);
        assert_eq!(allowed(8, 2), [0, 2]);
        assert_eq!(allowed(2, 1), [0], "of one word");
        assert_eq!(allowed(256, 192).len(), 192);
        assert_eq!(allowed(256, 256).len(), 256);
    }

    proptest! {
        #[test]
        fn a_limit_of_all_tags_allows_some_and_no_more(all in 1_u32..3000, limit in 1_u32..4000) {
            let counts = TagCounts::of(all, TagLimit::OfAll);
            let allowed: u32 = (0..all.div_ceil(counts.word)).map(|word| counts.allowed_in(word, limit)).sum();
            prop_assert!((1..=limit.min(all)).contains(&allowed));
        }

        #[test]
        fn no_tag_is_given_out_twice(defers: bool, of_all: bool, all in 1_u32..300, calls in prop::collection::vec((any::<bool>(), 1_u32..70), 1..200)) {
            let counts = TagCounts::of(all, if of_all { TagLimit::OfAll } else { TagLimit::OfWord });
            let mut bits = TagBits::new(counts, defers);
            let mut taken: Vec<u32> = Vec::new();
            for (takes, limit) in calls {
                if takes {
                    if let Some(tag) = bits.take(limit) {
                        let (word, bit) = (tag / counts.word, tag % counts.word);
                        prop_assert!(tag < all && bit < counts.allowed_in(word, limit));
                        prop_assert!(!taken.contains(&tag));
                        taken.push(tag);
                    }
                } else if let Some(tag) = taken.pop() {
                    bits.give_back(tag);
                }
            }
            while let Some(tag) = bits.take(u32::MAX) {
                taken.push(tag);
            }
            prop_assert_eq!(taken.len() as u32, all);
        }
    }
}
