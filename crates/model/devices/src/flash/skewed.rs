//! Where the host's units are after a long run of writes that are not uniform: nothing of it costs memory by the unit.

use base::permutation::Permutation;
use base::rng::{Stream, stream};

use crate::flash::arrangement::{shuffle, sums};
use crate::flash::skew::Skew;
use crate::flash::skew_law::Class;
use crate::flash::spec::Sizes;

/// Units in blocks, each of which has a number of valid ones of each class.
#[derive(Clone, Debug)]
pub(super) struct Skewed {
    skew: Skew,
    /// By class, the ranks before it; and all at the end.
    ranks: Vec<u32>,
    /// By class, the order in which its groups lie in the blocks.
    orders: Vec<Permutation>,
    /// Units that are written together lie together.
    group: u32,
    key: u64,
    /// By block of the device and class: valid units of the class in blocks before it; a row of all at the end.
    before: Vec<u32>,
    /// By die, blocks in the order in which they were closed, with their ages in closed blocks.
    closed: Vec<Vec<(u32, u32)>>,
}

/// A block before the start.
#[derive(Clone)]
pub(super) struct AgedBlock {
    /// Blocks that the die has closed since it closed this one.
    pub(super) age: f64,
    /// Of each class, in proportion.
    pub(super) held: Vec<f64>,
}

impl Skewed {
    /// `aged` draws the closed blocks of a die, the oldest first.
    pub(super) fn of(
        sizes: &Sizes,
        skew: Skew,
        classes: &[Class],
        group: u32,
        seed: u64,
        aged: impl Fn(&mut Stream) -> Vec<AgedBlock>,
    ) -> Skewed {
        let mut draws = stream(seed, 0);
        let mut blocks: Vec<Option<Vec<f64>>> = Vec::new();
        let mut closing = Vec::new();
        for die in 0..sizes.dies {
            let aged = aged(&mut draws);
            let mut numbers: Vec<u32> = (0..aged.len() as u32).collect();
            shuffle(&mut draws, &mut numbers);
            blocks.resize((die * sizes.blocks + sizes.blocks) as usize, None);
            let ages = aged.iter().map(|block| block.age as u32);
            closing.push(numbers.iter().copied().zip(ages).collect());
            for (&number, block) in numbers.iter().zip(aged) {
                blocks[(die * sizes.blocks + number) as usize] = Some(block.held);
            }
        }
        let orders = classes.iter().map(|class| u64::from((class.units / group).max(1)));
        Skewed {
            ranks: sums(classes.iter().map(|class| class.units)),
            orders: orders.map(Permutation::new).collect(),
            key: draws.next_u64(),
            before: rounded(classes, &blocks, sizes.block_units, group),
            group,
            closed: closing,
            skew,
        }
    }

    fn classes(&self) -> usize {
        self.orders.len()
    }

    /// What the blocks before that one hold of each class.
    fn row(&self, block: u32) -> &[u32] {
        &self.before[block as usize * self.classes()..][..self.classes()]
    }

    /// How many valid units of each class the block has.
    fn held(&self, block: u32) -> impl Iterator<Item = u32> {
        let pairs = self.row(block).iter().zip(self.row(block + 1));
        pairs.map(|(before, after)| after - before)
    }

    pub(super) fn valid(&self, block: u32) -> u32 {
        self.held(block).sum()
    }

    pub(super) fn closed(&self, die: u32) -> &[(u32, u32)] {
        &self.closed[die as usize]
    }

    /// The place of a unit.
    pub(super) fn place(&self, sizes: &Sizes, unit: u32) -> u32 {
        let rank = self.skew.rank(sizes.units, unit);
        let class = self.ranks.partition_point(|&first| first <= rank) - 1;
        let order = &self.orders[class];
        let units = self.ranks[class + 1] - self.ranks[class];
        let of_class = self.by_group(order, rank - self.ranks[class], units, |group| order.at(self.key, group));
        let block = self.block_with(class, of_class);
        let before: u32 = self.held(block).take(class).sum();
        let of_block = before + of_class - self.row(block)[class];
        let valid = self.valid(block);
        // Classes lie mixed in their block.
        let order = Permutation::new(u64::from((valid / self.group).max(1)));
        let at = self.by_group(&order, of_block, valid, |group| order.at(self.key, group));
        block * sizes.block_units + offset(sizes, at, valid)
    }

    /// Of so many units, groups change their places, and units do not in their group; what is no whole group stays behind
    /// the others.
    fn by_group(&self, order: &Permutation, unit: u32, units: u32, change: impl Fn(u64) -> u64) -> u32 {
        match u64::from(unit / self.group) {
            group if group < order.len() && units >= self.group => {
                change(group) as u32 * self.group + unit % self.group
            }
            _ => unit,
        }
    }

    fn block_with(&self, class: usize, of_class: u32) -> u32 {
        let (mut low, mut high) = (0, (self.before.len() / self.classes()) as u32);
        while high - low > 1 {
            let middle = low.midpoint(high);
            match self.row(middle)[class] <= of_class {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    /// The first valid unit of a block of the device from `from` on, and its offset.
    pub(super) fn unit_from(&self, sizes: &Sizes, block: u32, from: u32) -> Option<(u32, u32)> {
        let valid = self.valid(block);
        let at = (u64::from(from) * u64::from(valid)).div_ceil(u64::from(sizes.block_units)) as u32;
        if at >= valid {
            return None;
        }
        let order = Permutation::new(u64::from((valid / self.group).max(1)));
        let mut of_block = self.by_group(&order, at, valid, |group| order.index_at(self.key, group));
        for (class, held) in self.held(block).enumerate() {
            if of_block < held {
                let of_class = self.row(block)[class] + of_block;
                let order = &self.orders[class];
                let units = self.ranks[class + 1] - self.ranks[class];
                let of_rank = self.by_group(order, of_class, units, |group| order.index_at(self.key, group));
                let unit = self.skew.unit(sizes.units, self.ranks[class] + of_rank);
                return Some((offset(sizes, at, valid), unit));
            }
            of_block -= held;
        }
        unreachable!("a block holds its valid units")
    }
}

/// Valid units are spread evenly over the block.
fn offset(sizes: &Sizes, at: u32, valid: u32) -> u32 {
    (u64::from(at) * u64::from(sizes.block_units) / u64::from(valid)) as u32
}

/// Sums of whole units, by block and class: each class is in the blocks as often as it has units, no block holds more than
/// it can, and what a block does not get of a class for that, the next one does.
fn rounded(classes: &[Class], blocks: &[Option<Vec<f64>>], block_units: u32, group: u32) -> Vec<u32> {
    let mut all = vec![0.0; classes.len()];
    for held in blocks.iter().flatten() {
        for (sum, part) in all.iter_mut().zip(held) {
            *sum += part;
        }
    }
    let scale: Vec<f64> = classes.iter().zip(&all).map(|(class, sum)| f64::from(class.units) / sum).collect();
    let mut last = blocks.iter().rposition(Option::is_some).unwrap_or_default();
    let mut given: Vec<u32> = vec![0; classes.len()];
    let mut due = vec![0.0; classes.len()];
    let mut before = Vec::with_capacity((blocks.len() + 1) * classes.len());
    for (number, held) in blocks.iter().enumerate() {
        before.extend_from_slice(&given);
        let Some(held) = held else {
            continue;
        };
        for ((due, part), scale) in due.iter_mut().zip(held).zip(&scale) {
            *due += part * scale;
        }
        let mut room = block_units;
        for ((given, due), class) in given.iter_mut().zip(&due).zip(classes) {
            let groups = (due / f64::from(group)).round() as u32 * group;
            let wanted = match number == last {
                true => class.units - *given,
                false => groups.min(class.units).saturating_sub(*given),
            };
            let units = wanted.min(room);
            *given += units;
            room -= units;
        }
    }
    // What found no room goes wherever there is some.
    let count = classes.len();
    before.extend_from_slice(&given);
    for class in 0..count {
        while given[class] < classes[class].units {
            let row = |block: usize| -> u32 {
                let held = (0..count).map(|of| before[(block + 1) * count + of] - before[block * count + of]);
                held.sum()
            };
            while blocks[last].is_none() || row(last) >= block_units {
                last -= 1;
            }
            for later in last + 1..=blocks.len() {
                before[later * count + class] += 1;
            }
            given[class] += 1;
        }
    }
    before
}
