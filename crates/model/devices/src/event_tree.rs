//! Which of many parts has something to do first.

use events::time::Time;

/// The time of each part's next event, as a tree of winners: changing one costs a walk to the root.
#[derive(Clone, Debug)]
pub(super) struct EventTree {
    /// Node n has the children 2n and 2n+1; the leaves are the second half. Each holds its soonest leaf's number.
    winners: Vec<u32>,
    times: Vec<Time>,
}

const NEVER: Time = Time::MAX;

impl EventTree {
    pub(super) fn new(parts: usize) -> EventTree {
        let leaves = parts.next_power_of_two().max(2);
        let mut soonest = EventTree { winners: vec![0; leaves], times: vec![NEVER; leaves] };
        for part in 0..leaves {
            soonest.set(part, None);
        }
        soonest
    }

    pub(super) fn set(&mut self, part: usize, at: Option<Time>) {
        self.times[part] = at.unwrap_or(NEVER);
        let leaves = self.times.len();
        let mut node = (leaves + part) / 2;
        while node > 0 {
            let winner = |child: usize| {
                if child >= leaves { (child - leaves) as u32 } else { self.winners[child] }
            };
            let (left, right) = (winner(2 * node), winner(2 * node + 1));
            // The lower number at one time: so the order is a function of the input.
            self.winners[node] = if self.times[right as usize] < self.times[left as usize] { right } else { left };
            node /= 2;
        }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<(Time, usize)> {
        let part = self.winners[1] as usize;
        let at = self.times[part];
        (at != NEVER).then_some((at, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_all(
            parts in 1usize..20,
            changes in prop::collection::vec((0usize..20, prop::option::of(0u64..30)), 0..100),
        ) {
            let mut soonest = EventTree::new(parts);
            let mut times = vec![None; parts];
            for (part, at) in changes {
                let part = part % parts;
                soonest.set(part, at);
                times[part] = at;
                let least = (0..parts).filter_map(|part| Some((times[part]?, part))).min();
                prop_assert_eq!(soonest.first(), least);
            }
        }
    }
}
