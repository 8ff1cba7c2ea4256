//! Which pages a sorting process touches in which order, and what it computes at each.
//!
//! The order is that of the host's sort (`engine::sorter`), which fills its memory from the front with random numbers,
//! sorts it by Hoare's partitioning around the median of three, smaller part first, and reads it through once at the end.
//! The numbers themselves are not simulated: of random ones, the median of three lies where the median of three uniform
//! draws does, and in proportion as the scan from the left comes forward the one from the right comes back.

use base::rng::Stream;

use super::pages::PAGE_BYTES;
use events::time::Time;

/// The numbers of 4 bytes in a page.
pub(super) const NUMBERS_OF_PAGE: u64 = PAGE_BYTES / 4;

/// A page that is touched next, counted from the start of the process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) page: u32,
    pub(super) write: bool,
    /// The time of computing on it until the next one.
    pub(super) cost_ns: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Sort {
    numbers: u64,
    passes_left: u32,
    /// The time of one number in one pass over it.
    number_ns: f64,
    stage: Stage,
    /// Parts that are still to be sorted, the next one last.
    parts: Vec<Part>,
    /// Numbers in their final places, over all passes.
    placed: u64,
    stream: Stream,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    begin: u64,
    end: u64,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The page that is next.
    Filling(u32),
    Partitioning(Partition),
    /// A part within a page that lies across two: the second is still to be touched.
    Crossing(u32),
    NextPart,
    Checking(u32),
}

#[derive(Clone, Copy, Debug)]
struct Partition {
    part: Part,
    /// Where the right part begins.
    middle: u64,
    /// Both scans: numbers that they are past.
    low: u64,
    high: u64,
}

impl Sort {
    /// # Panics
    /// Without numbers.
    pub(super) fn new(numbers: u64, passes: u32, number_ns: f64, stream: Stream) -> Sort {
        assert!(numbers > 0, "something to sort");
        Sort { numbers, passes_left: passes, number_ns, stage: Stage::Filling(0), parts: Vec::new(), placed: 0, stream }
    }

    pub(super) fn pages(&self) -> u32 {
        self.numbers.div_ceil(NUMBERS_OF_PAGE) as u32
    }

    pub(super) fn placed(&self) -> u64 {
        self.placed
    }

    /// The next page; None: all is sorted.
    pub(super) fn next(&mut self) -> Option<Touch> {
        loop {
            if self.passes_left == 0 {
                return None;
            }
            match self.stage {
                Stage::Filling(page) => {
                    self.stage = if page + 1 < self.pages() {
                        Stage::Filling(page + 1)
                    } else {
                        self.parts.push(Part { begin: 0, end: self.numbers });
                        Stage::NextPart
                    };
                    return Some(self.touch(page, true, NUMBERS_OF_PAGE));
                }
                Stage::NextPart => match self.parts.pop() {
                    None => self.stage = Stage::Checking(0),
                    Some(part) => return Some(self.begin(part)),
                },
                Stage::Crossing(page) => {
                    self.stage = Stage::NextPart;
                    return Some(self.touch(page, true, 0));
                }
                Stage::Partitioning(partition) => {
                    if let Some(touch) = self.go_on(partition) {
                        return Some(touch);
                    }
                }
                Stage::Checking(page) => {
                    self.stage = if page + 1 < self.pages() {
                        Stage::Checking(page + 1)
                    } else {
                        self.passes_left -= 1;
                        Stage::Filling(0)
                    };
                    return Some(self.touch(page, false, NUMBERS_OF_PAGE));
                }
            }
        }
    }

    /// A part of at most a page is sorted at once; of a larger one the middle is looked at first.
    fn begin(&mut self, part: Part) -> Touch {
        let numbers = part.end - part.begin;
        if numbers <= NUMBERS_OF_PAGE {
            self.placed += numbers;
            let (first, last) = (page_of(part.begin), page_of(part.end - 1));
            self.stage = if last > first { Stage::Crossing(last) } else { Stage::NextPart };
            return self.touch(first, true, numbers * levels(numbers));
        }
        let share = median_of_three(&mut self.stream);
        let middle = part.begin + ((share * numbers as f64) as u64).clamp(1, numbers - 1);
        self.stage = Stage::Partitioning(Partition { part, middle, low: part.begin, high: part.end });
        self.touch(page_of(part.begin + numbers / 2), true, 0)
    }

    /// The page that the scan reaches that is less far; None: they have met.
    fn go_on(&mut self, mut at: Partition) -> Option<Touch> {
        let (left, right) = (at.middle - at.part.begin, at.part.end - at.middle);
        let (low_done, high_done) = (at.low - at.part.begin, at.part.end - at.high);
        let low_is_behind = u128::from(low_done) * u128::from(right) <= u128::from(high_done) * u128::from(left);
        if at.low < at.middle && (low_is_behind || at.high == at.middle) {
            let page = page_of(at.low);
            let end = page_begin(page + 1).min(at.middle);
            let numbers = end - at.low;
            at.low = end;
            self.stage = Stage::Partitioning(at);
            return Some(self.touch(page, true, numbers));
        }
        if at.high > at.middle {
            let page = page_of(at.high - 1);
            let begin = page_begin(page).max(at.middle);
            let numbers = at.high - begin;
            at.high = begin;
            self.stage = Stage::Partitioning(at);
            return Some(self.touch(page, true, numbers));
        }
        let (left, right) = (Part { end: at.middle, ..at.part }, Part { begin: at.middle, ..at.part });
        let left_is_smaller = left.end - left.begin < right.end - right.begin;
        let (smaller, larger) = if left_is_smaller { (left, right) } else { (right, left) };
        self.parts.extend([larger, smaller]);
        self.stage = Stage::NextPart;
        None
    }

    fn touch(&self, page: u32, write: bool, numbers: u64) -> Touch {
        Touch { page, write, cost_ns: (numbers as f64 * self.number_ns) as Time }
    }
}

fn page_of(number: u64) -> u32 {
    (number / NUMBERS_OF_PAGE) as u32
}

fn page_begin(page: u32) -> u64 {
    u64::from(page) * NUMBERS_OF_PAGE
}

/// How often quicksort around the median of three looks at each of this many numbers: 12/7 ln n (Sedgewick, "The
/// analysis of quicksort programs", 1977), rounded.
fn levels(numbers: u64) -> u64 {
    (12.0 / 7.0 * libm::log(numbers as f64)).max(1.0) as u64
}

fn median_of_three(stream: &mut Stream) -> f64 {
    let mut draws = [stream.unit(), stream.unit(), stream.unit()];
    draws.sort_by(f64::total_cmp);
    draws[1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::stream;

    const PAGES: u64 = 300;

    fn touches(passes: u32) -> (Sort, Vec<Touch>) {
        let mut sort = Sort::new(PAGES * NUMBERS_OF_PAGE - 7, passes, 10.0, stream(5, 1));
        let all = std::iter::from_fn(|| sort.next()).collect();
        (sort, all)
    }

    #[test]
    fn it_fills_from_the_front_and_reads_all_in_the_end() {
        let (_, all) = touches(1);
        let pages = |part: &[Touch]| part.iter().map(|touch| touch.page).collect::<Vec<u32>>();
        let (first, last) = (&all[..PAGES as usize], &all[all.len() - PAGES as usize..]);
        assert_eq!(pages(first), (0..PAGES as u32).collect::<Vec<u32>>());
        assert_eq!(pages(last), (0..PAGES as u32).collect::<Vec<u32>>());
        assert!(first.iter().all(|touch| touch.write) && last.iter().all(|touch| !touch.write));
    }

    #[test]
    fn both_ends_come_together_in_proportion() {
        let (_, all) = touches(1);
        let scan = &all[PAGES as usize + 1..2 * PAGES as usize];
        let met = scan.windows(2).filter(|two| two[0].page < two[1].page);
        assert_eq!((scan[0].page, scan[1].page), (0, PAGES as u32 - 1));
        assert!(met.count() > 60, "both scans take turns");
        let mut seen: Vec<u32> = scan.iter().map(|touch| touch.page).collect();
        seen.sort();
        seen.dedup();
        assert!(seen.len() as u64 >= PAGES - 1, "{}", seen.len());
    }

    #[test]
    fn it_takes_n_log_n_and_places_every_number() {
        let (sort, all) = touches(2);
        let numbers = PAGES * NUMBERS_OF_PAGE - 7;
        assert_eq!(sort.placed(), 2 * numbers);
        let computed: Time = all.iter().map(|touch| touch.cost_ns).sum();
        let per_pass = 12.0 / 7.0 * (numbers as f64).ln() + 2.0;
        let expected = 2.0 * 10.0 * numbers as f64 * per_pass;
        let ratio = computed as f64 / expected;
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }
}
