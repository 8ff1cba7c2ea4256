//! What a die comes to under writes that are not uniform, found by writing to a small one.

use base::permutation::Permutation;
use base::rng::{Stream, stream};

use crate::flash::arrangement::{SEED, sums};
use crate::flash::collector::Collector;
use crate::flash::rehearsal::Rehearsal;
use crate::flash::skew::{Sizing, Skew};
use crate::flash::skew_law::{Class, SkewLaw};
use crate::flash::skewed::{AgedBlock, Skewed};
use crate::flash::spec::Sizes;
use crate::flash::start::Start;

/// The order in which groups of units are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// At random, each by the part that its class has of the writes.
    Drawn,
    /// Each once in a pass, in an order that each pass draws anew. The device starts between two passes.
    Permuted,
}

/// As the law has it, and then as one die has it that is written from there on, without time. What is never written is in
/// full blocks of its own: no collector gains by them, and those that are written share the others.
pub(super) fn start(sizes: &Sizes, skew: Skew, order: Order) -> Start {
    let classes = skew.classes(sizes.units);
    let written: Vec<Class> = classes.iter().copied().filter(is_written).collect();
    let idle_units = sizes.units - written.iter().map(|class| class.units).sum::<u32>();
    let idle = idle_units.div_ceil(sizes.dies).div_ceil(sizes.block_units);
    let device = without_idle(sizes, idle);
    let small = SmallDie::new(&device, written, skew.sizes());
    let (blocks, amplification) = small.rehearse(SEED, order);
    let closed = device.main_blocks - device.free_blocks(amplification);
    let stretch = f64::from(closed) / blocks.len() as f64;
    let stretched = |number: u32| {
        let block = &blocks[(f64::from(number) / stretch) as usize];
        let mut held = block.held.iter().copied();
        let mut of_class = |class| if is_written(class) { held.next() } else { None };
        AgedBlock {
            age: block.age * stretch,
            held: classes.iter().map(|class| of_class(class).unwrap_or(0.0)).collect(),
        }
    };
    let untouched = |number: u32| {
        let (first, room) = (f64::from(number * sizes.block_units), f64::from(sizes.block_units));
        let mut end = 0.0;
        let mut of_class = |class: &Class| {
            let start = end;
            end += f64::from(class.units) / f64::from(sizes.dies);
            (end.min(first + room) - start.max(first)).max(0.0)
        };
        let held = classes.iter().map(|class| if is_written(class) { 0.0 } else { of_class(class) });
        AgedBlock { age: f64::from(2 * sizes.blocks - number), held: held.collect() }
    };
    let group = small.group;
    let skewed = Skewed::of(sizes, skew, &classes, group, SEED, |_| {
        (0..idle).map(untouched).chain((0..closed).map(stretched)).collect()
    });
    Start::Skewed(Box::new(skewed))
}

fn is_written(class: &Class) -> bool {
    class.writes > 0.0
}

/// So many blocks of each die, the first to have been closed, are never collected: a windowed collector sees fewer
/// others, or as a greedy one all of them.
fn without_idle(sizes: &Sizes, idle: u32) -> Sizes {
    let collector = match sizes.collector {
        Collector::Windowed if sizes.window_blocks <= idle => Collector::Greedy,
        collector => collector,
    };
    Sizes {
        main_blocks: sizes.main_blocks - idle,
        window_blocks: sizes.window_blocks.saturating_sub(idle).max(1),
        collector,
        ..*sizes
    }
}

/// A die with the fill and the classes of the device's, and fewer blocks.
struct SmallDie {
    sizes: Sizes,
    classes: Vec<Class>,
    /// Units that are written, and so become invalid, together: what a page of all planes gets of a write.
    group: u32,
    writes: Sizing,
}

/// Units of a small die, and its fewest blocks.
const SMALL_UNITS: u32 = 200_000;
const SMALL_BLOCKS: u32 = 128;

/// How often it is written before it is steady, from the law's state; what it moves in the last of these counts.
const SMALL_WRITES: u32 = 6;

impl SmallDie {
    fn new(device: &Sizes, classes: Vec<Class>, writes: Sizing) -> SmallDie {
        let group = writes.piece(device.program_units);
        let blocks = (SMALL_UNITS / device.block_units).clamp(SMALL_BLOCKS, device.main_blocks.max(SMALL_BLOCKS));
        let (collect_only_blocks, collect_blocks) = (2, 3);
        let kept = |blocks: u32, free: u32| f64::from(blocks - free);
        let share = kept(blocks, collect_only_blocks + 1)
            / kept(device.main_blocks, device.collect_only_blocks + 1)
            / f64::from(device.dies);
        let classes: Vec<Class> = classes
            .iter()
            .map(|class| Class { units: ((f64::from(class.units) * share) as u32 / group).max(1) * group, ..*class })
            .collect();
        let window = u64::from(device.window_blocks) * u64::from(blocks);
        SmallDie {
            sizes: Sizes {
                dies: 1,
                blocks,
                main_blocks: blocks,
                slc_pages: 0,
                handles: 1,
                moved_handles: 1,
                units: classes.iter().map(|class| class.units).sum(),
                collect_blocks,
                collect_only_blocks,
                window_blocks: (window / u64::from(device.main_blocks)).max(1) as u32,
                ..*device
            },
            classes,
            group,
            writes,
        }
    }

    /// What its closed blocks hold, the oldest first, and its write amplification.
    fn rehearse(&self, seed: u64, order: Order) -> (Vec<AgedBlock>, f64) {
        let sizes = &self.sizes;
        let by_law = |draws: &mut Stream| self.by_law(draws);
        let start = Skewed::of(sizes, Skew::Ranks { block_units: self.group }, &self.classes, self.group, seed, by_law);
        let mut die = Rehearsal::new(*sizes, Start::Skewed(Box::new(start)));
        let mut draws = stream(seed, 1);
        let groups = Permutation::new(u64::from(sizes.units / self.group));
        for pass in 0..SMALL_WRITES {
            if pass + 1 == SMALL_WRITES {
                die.amplification();
            }
            let key = draws.next_u64();
            match order {
                Order::Drawn => {
                    let mut runs = Runs::new(&self.writes, self.sizes.program_units);
                    let mut written = 0;
                    // Of a zone of some units not even a page might be filled.
                    while written < self.sizes.units.max(self.sizes.block_units) {
                        let (run, align) = runs.next(&mut draws);
                        let (first, run) = draw(&self.classes, run, align, &mut draws);
                        (first..first + run).for_each(|unit| die.write(unit));
                        written += run;
                    }
                }
                Order::Permuted => (0..groups.len())
                    .map(|number| groups.at(key, number) as u32 * self.group)
                    .flat_map(|first| first..first + self.group)
                    .for_each(|unit| die.write(unit)),
            }
        }
        let ranks = sums(self.classes.iter().map(|class| class.units));
        let blocks = die.mapping.closed_units(0).map(|(age, units)| {
            let mut held = vec![0.0; self.classes.len()];
            for unit in units {
                held[ranks.partition_point(|&first| first <= unit) - 1] += 1.0;
            }
            let age = f64::from(age);
            AgedBlock { age, held }
        });
        (blocks.collect(), die.amplification())
    }

    /// Strata, not single draws, as in a die that is written uniformly.
    fn by_law(&self, draws: &mut Stream) -> Vec<AgedBlock> {
        let sizes = &self.sizes;
        let closed = sizes.main_blocks - sizes.collect_only_blocks - 1;
        let classes: Vec<(f64, f64)> =
            self.classes.iter().map(|class| (f64::from(class.units), class.writes)).collect();
        let units = sizes.collected_units();
        let law = SkewLaw::new(sizes.collector, f64::from(closed), units, &classes);
        let host = (f64::from(closed) * law.host_share()).round() as u32;
        let mut blocks = Vec::new();
        for (is_moved, count) in [(false, host), (true, closed - host)] {
            let shift = draws.unit();
            for number in 0..count {
                let age = law.age(is_moved, (f64::from(number) + shift) / f64::from(count));
                let held = law.held(is_moved, age).collect();
                let age = age * law.amplification() / units;
                blocks.push(AgedBlock { age, held });
            }
        }
        blocks.sort_by(|one, other| other.age.total_cmp(&one.age));
        blocks
    }
}

/// What a die gets of writes: the device fills pages of all planes with them one after the other, and the pages of a write
/// go to several dies.
pub(super) struct Runs<'a> {
    writes: &'a Sizing,
    page: u32,
    /// Of the page that is being filled, and of the write that fills it.
    filled: u32,
    left: u32,
}

impl<'a> Runs<'a> {
    pub(super) fn new(writes: &'a Sizing, page: u32) -> Runs<'a> {
        Runs { writes, page, filled: 0, left: 0 }
    }

    /// The next one's units, and of how many their first is a multiple.
    pub(super) fn next(&mut self, draws: &mut Stream) -> (u32, u32) {
        if let [(size, _)] = self.writes.sizes[..]
            && size == self.writes.align
        {
            let run = size.min(self.page);
            return (run, run);
        }
        if self.left == 0 {
            let mut drawn = draws.unit();
            let sizes = self.writes.sizes.iter();
            let found = sizes.clone().find(|(_, part)| {
                drawn -= part;
                drawn < 0.0
            });
            self.left = found.or(self.writes.sizes.last()).map_or(1, |&(size, _)| size);
        }
        let run = self.left.min(self.page - self.filled);
        self.left -= run;
        self.filled = (self.filled + run) % self.page;
        let is_aligned = self.page.is_multiple_of(self.writes.align);
        (run, if is_aligned { self.writes.align } else { 1 })
    }
}

/// The first unit of a run in a class, by the class's part of the writes, and how much of the run the class holds; ranks
/// are units.
pub(super) fn draw(classes: &[Class], run: u32, align: u32, draws: &mut Stream) -> (u32, u32) {
    let (mut left, mut first) = (draws.unit(), 0);
    let mut last = 1;
    for class in classes {
        last = class.units;
        if left < class.writes {
            break;
        }
        left -= class.writes;
        first += class.units;
    }
    // Rounding may have left something behind the last class.
    let all: u32 = classes.iter().map(|class| class.units).sum();
    let run = run.min(last);
    let place = draws.below(u64::from((last - run) / align + 1)) as u32;
    (first.min(all - last) + place * align, run)
}
