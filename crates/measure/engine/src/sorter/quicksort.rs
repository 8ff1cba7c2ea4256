//! Quicksort (Hoare, "Quicksort", 1962) that reports how far it is and stops when asked.
//!
//! Not the standard library's sort: that one is adaptive, and the order in which pages are touched is the load here.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Numbers between two looks at the stop flag: 16 pages, each of which may have to come from the disk.
pub const WATCHED_EVERY: usize = 1 << 14;
const INSERTION_MAX: usize = 16;

#[derive(Debug)]
pub struct Stopped;

/// Where progress goes, and where a stop comes from.
pub struct Watch<'a> {
    pub stop: &'a AtomicBool,
    /// Numbers in their final place.
    pub placed: &'a AtomicU64,
}

impl Watch<'_> {
    pub fn look(&self) -> Result<(), Stopped> {
        if self.stop.load(Relaxed) { Err(Stopped) } else { Ok(()) }
    }

    fn place(&self, numbers: usize) {
        // One thread writes; a read-modify-write would cost more than the sort of a few numbers.
        let placed = self.placed.load(Relaxed) + numbers as u64;
        self.placed.store(placed, Relaxed);
    }
}

/// Recurses into the smaller part, so that the depth stays below the logarithm of the length.
pub fn quicksort(mut numbers: &mut [u32], watch: &Watch) -> Result<(), Stopped> {
    while numbers.len() > INSERTION_MAX {
        let middle = partition(numbers, watch)?;
        let (left, right) = numbers.split_at_mut(middle);
        let (smaller, larger) = if left.len() < right.len() { (left, right) } else { (right, left) };
        quicksort(smaller, watch)?;
        numbers = larger;
    }
    insertion_sort(numbers);
    watch.place(numbers.len());
    Ok(())
}

/// Everything before the returned place is at most, everything from it on at least the pivot; neither part is empty.
fn partition(numbers: &mut [u32], watch: &Watch) -> Result<usize, Stopped> {
    let pivot = median_of_three(numbers);
    let (mut low, mut high) = (0, numbers.len() - 1);
    let mut swaps_left = 0usize;
    loop {
        if swaps_left == 0 {
            watch.look()?;
            swaps_left = WATCHED_EVERY / 4;
        }
        swaps_left -= 1;
        while numbers[low] < pivot {
            low += 1;
        }
        while numbers[high] > pivot {
            high -= 1;
        }
        if low >= high {
            return Ok(high + 1);
        }
        numbers.swap(low, high);
        low += 1;
        high -= 1;
    }
}

/// Puts the three in order, so that the first and the last one stop the scans and no part is empty.
fn median_of_three(numbers: &mut [u32]) -> u32 {
    let (middle, last) = (numbers.len() / 2, numbers.len() - 1);
    if numbers[middle] < numbers[0] {
        numbers.swap(middle, 0);
    }
    if numbers[last] < numbers[0] {
        numbers.swap(last, 0);
    }
    if numbers[last] < numbers[middle] {
        numbers.swap(last, middle);
    }
    numbers[middle]
}

fn insertion_sort(numbers: &mut [u32]) {
    for sorted in 1..numbers.len() {
        let number = numbers[sorted];
        let mut hole = sorted;
        while hole > 0 && numbers[hole - 1] > number {
            numbers[hole] = numbers[hole - 1];
            hole -= 1;
        }
        numbers[hole] = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(mut numbers: Vec<u32>) -> (Vec<u32>, u64) {
        let (stop, placed) = (AtomicBool::new(false), AtomicU64::new(0));
        let watch = Watch { stop: &stop, placed: &placed };
        quicksort(&mut numbers, &watch).unwrap();
        (numbers, placed.into_inner())
    }

    proptest! {
        #[test]
        fn sorts_whatever_it_is_given(
            numbers in prop_oneof![
                prop::collection::vec(any::<u32>(), 0..2000),
                prop::collection::vec(0u32..5, 0..2000),
            ]
        ) {
            let mut expected = numbers.clone();
            expected.sort_unstable();
            let count = numbers.len() as u64;
            prop_assert_eq!(sorted(numbers), (expected, count));
        }
    }

    #[test]
    fn ordered_and_equal_inputs_stay_fast() {
        let many = 1 << 18;
        for numbers in [(0..many).collect::<Vec<u32>>(), (0..many).rev().collect(), vec![7; many as usize]] {
            let mut expected = numbers.clone();
            expected.sort_unstable();
            assert_eq!(sorted(numbers).0, expected);
        }
    }

    #[test]
    fn a_stop_is_heeded() {
        let (stop, placed) = (AtomicBool::new(true), AtomicU64::new(0));
        let watch = Watch { stop: &stop, placed: &placed };
        assert!(quicksort(&mut [3; 100], &watch).is_err());
    }
}
