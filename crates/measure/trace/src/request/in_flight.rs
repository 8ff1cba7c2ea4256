//! What is in flight, found by the sectors at which it begins or ends.
//!
//! Chained hash tables over slots that are used again: a step costs a few nanoseconds however many are in flight; an
//! ordered map took a third of all the time of the analysis. What is found does not depend on where it lies in the
//! tables.

/// Something on its way that covers sectors, and when it came.
#[derive(Clone, Debug)]
pub(super) struct Entry<T> {
    pub(super) start: u64,
    pub(super) sectors: u64,
    /// Older ones have lower numbers.
    pub(super) arrival: u64,
    pub(super) what: T,
}

/// Names an entry until it is removed.
pub(super) type Slot = u32;

#[derive(Clone, Debug)]
pub(super) struct InFlight<T> {
    slots: Vec<Option<Entry<T>>>,
    free: Vec<Slot>,
    by_start: Chains,
    by_end: Chains,
    arrivals: u64,
}

impl<T> Entry<T> {
    /// The sector after the last.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.sectors)
    }
}

impl<T> InFlight<T> {
    pub(super) fn new() -> InFlight<T> {
        InFlight { slots: Vec::new(), free: Vec::new(), by_start: Chains::new(), by_end: Chains::new(), arrivals: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    #[inline]
    pub(super) fn insert(&mut self, start: u64, sectors: u64, what: T) -> Slot {
        self.arrivals += 1;
        let entry = Entry { start, sectors, arrival: self.arrivals, what };
        let end = entry.end();
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(entry);
                slot
            }
            None => {
                self.slots.push(Some(entry));
                (self.slots.len() - 1) as Slot
            }
        };
        self.by_start.insert(start, slot);
        self.by_end.insert(end, slot);
        slot
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: Slot) -> Option<Entry<T>> {
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        self.by_start.remove(entry.start, slot);
        self.by_end.remove(entry.end(), slot);
        self.free.push(slot);
        Some(entry)
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Option<&Entry<T>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        let entry = self.slots.get_mut(slot as usize)?.as_mut()?;
        Some(&mut entry.what)
    }

    /// It covers other sectors now.
    pub(super) fn place(&mut self, slot: Slot, start: u64, sectors: u64) {
        let Some(entry) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if (entry.start, entry.sectors) == (start, sectors) {
            return;
        }
        let before = (entry.start, entry.end());
        (entry.start, entry.sectors) = (start, sectors);
        let after = (entry.start, entry.end());
        self.by_start.remove(before.0, slot);
        self.by_start.insert(after.0, slot);
        self.by_end.remove(before.1, slot);
        self.by_end.insert(after.1, slot);
    }

    /// The oldest of those that begin here and are wanted.
    #[inline]
    pub(super) fn starting_at(&self, start: u64, wanted: impl Fn(&Entry<T>) -> bool) -> Option<Slot> {
        let found = self.by_start.slots(start).filter_map(|slot| {
            let entry = self.get(slot)?;
            (entry.start == start && wanted(entry)).then_some((entry.arrival, slot))
        });
        found.min().map(|(_, slot)| slot)
    }

    /// All that begin from `start` on and before `end` and are wanted.
    pub(super) fn starting_in(&self, start: u64, end: u64, wanted: impl Fn(&Entry<T>) -> bool) -> Vec<Slot> {
        let slots: Vec<Slot> = if end.saturating_sub(start) < self.slots.len() as u64 {
            let starts = start..end;
            starts.flat_map(|start| self.by_start.slots(start)).collect()
        } else {
            (0..self.slots.len() as Slot).collect()
        };
        let mut found: Vec<Slot> = slots
            .into_iter()
            .filter(|&slot| self.get(slot).is_some_and(|entry| (start..end).contains(&entry.start) && wanted(entry)))
            .collect();
        // Two sectors may share a chain.
        found.sort_unstable();
        found.dedup();
        found
    }

    /// All that are wanted. Looks at everything.
    pub(super) fn all(&self, wanted: impl Fn(&Entry<T>) -> bool) -> Vec<Slot> {
        let slots = 0..self.slots.len() as Slot;
        slots.filter(|&slot| self.get(slot).is_some_and(&wanted)).collect()
    }

    /// How many begin here and are wanted, and the oldest of them.
    #[inline]
    pub(super) fn count_starting_at(&self, start: u64, wanted: impl Fn(&Entry<T>) -> bool) -> (usize, Option<Slot>) {
        let (mut count, mut oldest) = (0, None);
        for slot in self.by_start.slots(start) {
            if let Some(entry) = self.get(slot)
                && entry.start == start
                && wanted(entry)
            {
                count += 1;
                oldest = oldest.min(Some((entry.arrival, slot))).or(Some((entry.arrival, slot)));
            }
        }
        (count, oldest.map(|(_, slot)| slot))
    }

    /// All that begin here and are wanted.
    pub(super) fn all_starting_at(&self, start: u64, wanted: impl Fn(&Entry<T>) -> bool) -> Vec<Slot> {
        let is = |slot: &Slot| {
            let entry = self.get(*slot);
            entry.is_some_and(|entry| entry.start == start && wanted(entry))
        };
        self.by_start.slots(start).filter(is).collect()
    }

    /// All that end here and are wanted.
    pub(super) fn all_ending_at(&self, end: u64, wanted: impl Fn(&Entry<T>) -> bool) -> Vec<Slot> {
        let is = |slot: &Slot| {
            let entry = self.get(*slot);
            entry.is_some_and(|entry| entry.end() == end && wanted(entry))
        };
        self.by_end.slots(end).filter(is).collect()
    }

    /// All of them, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        self.slots.iter().flatten()
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for slot in 0..self.slots.len() {
            let unwanted = self.slots[slot].as_ref().is_some_and(|entry| !keep(&entry.what));
            if unwanted {
                self.remove(slot as Slot);
            }
        }
    }
}

/// Slots by sector; a chain may hold those of several sectors.
#[derive(Clone, Debug)]
struct Chains {
    heads: Vec<Slot>,
    /// By slot: its sector, and the slot after it in its chain.
    links: Vec<(u64, Slot)>,
    count: usize,
}

impl Chains {
    fn new() -> Chains {
        Chains { heads: vec![NONE; HEADS_MIN], links: Vec::new(), count: 0 }
    }

    #[inline]
    fn insert(&mut self, sector: u64, slot: Slot) {
        if self.count == self.heads.len() {
            self.grow();
        }
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, (0, NONE));
        }
        self.count += 1;
        let head = head_of(sector, self.heads.len());
        self.links[slot as usize] = (sector, self.heads[head]);
        self.heads[head] = slot;
    }

    #[inline]
    fn remove(&mut self, sector: u64, slot: Slot) {
        let head = head_of(sector, self.heads.len());
        let next = self.links[slot as usize].1;
        self.count -= 1;
        if self.heads[head] == slot {
            self.heads[head] = next;
            return;
        }
        let mut before = self.heads[head];
        while self.links[before as usize].1 != slot {
            before = self.links[before as usize].1;
        }
        self.links[before as usize].1 = next;
    }

    /// Those of this sector, and perhaps others.
    #[inline]
    fn slots(&self, sector: u64) -> impl Iterator<Item = Slot> {
        let first = self.heads[head_of(sector, self.heads.len())];
        std::iter::successors(named(first), |&slot| named(self.links[slot as usize].1))
    }

    fn grow(&mut self) {
        let longer = vec![NONE; self.heads.len() * 2];
        let heads = std::mem::replace(&mut self.heads, longer);
        for mut slot in heads {
            while slot != NONE {
                let (sector, next) = self.links[slot as usize];
                let head = head_of(sector, self.heads.len());
                self.links[slot as usize].1 = self.heads[head];
                self.heads[head] = slot;
                slot = next;
            }
        }
    }
}

#[inline]
fn named(slot: Slot) -> Option<Slot> {
    (slot != NONE).then_some(slot)
}

/// The head of a sector's list. The number of heads is a power of two: the upper bits of the product with 2^64 over the
/// golden ratio (Knuth, volume 3, 6.4), because sectors differ in all but the lowest bits.
#[inline]
fn head_of(sector: u64, heads: usize) -> usize {
    let mixed = sector.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - heads.trailing_zeros())) as usize
}

const NONE: Slot = Slot::MAX;
/// A power of two, at least 2.
const HEADS_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Insert(u64, u64),
        Remove(prop::sample::Index),
        Slot(prop::sample::Index, u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let (start, sectors) = (0..40u64, 0..9u64);
        let index = any::<prop::sample::Index>;
        prop_oneof![
            3 => (start.clone(), sectors.clone()).prop_map(|(start, sectors)| Step::Insert(start, sectors)),
            1 => index().prop_map(Step::Remove),
            1 => (index(), start, sectors).prop_map(|(index, start, sectors)| Step::Slot(index, start, sectors)),
        ]
    }

    proptest! {
        #[test]
        fn everything_is_found_where_it_lies(steps in prop::collection::vec(step(), 0..400)) {
            let mut table = InFlight::new();
            // Start, sectors, slot, in the order of arrival.
            let mut known: Vec<(u64, u64, Slot)> = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(start, sectors) => known.push((start, sectors, table.insert(start, sectors, ()))),
                    Step::Remove(_) | Step::Slot(..) if known.is_empty() => {}
                    Step::Remove(index) => {
                        let (start, sectors, slot) = known.remove(index.index(known.len()));
                        let entry = table.remove(slot).expect("an entry that is known");
                        prop_assert_eq!((entry.start, entry.sectors), (start, sectors));
                    }
                    Step::Slot(index, start, sectors) => {
                        let index = index.index(known.len());
                        table.place(known[index].2, start, sectors);
                        known[index] = (start, sectors, known[index].2);
                    }
                }
                prop_assert_eq!(table.len(), known.len());
            }
            for sector in 0..60 {
                let first = known.iter().find(|one| one.0 == sector).map(|one| one.2);
                prop_assert_eq!(table.starting_at(sector, |_| true), first);
                let ending = known.iter().filter(|one| one.0 + one.1 == sector).map(|one| one.2);
                let mut found = table.all_ending_at(sector, |_| true);
                found.sort_unstable();
                let mut ending: Vec<Slot> = ending.collect();
                ending.sort_unstable();
                prop_assert_eq!(found, ending);
                for end in [sector, sector + 3, sector + 1000] {
                    let within = known.iter().filter(|one| (sector..end).contains(&one.0));
                    let mut within: Vec<Slot> = within.map(|one| one.2).collect();
                    within.sort_unstable();
                    prop_assert_eq!(table.starting_in(sector, end, |_| true), within);
                }
            }
            table.retain(|()| false);
            prop_assert_eq!(table.len(), 0);
        }
    }
}
