//! An order of small numbers, from which any can be taken out.

/// Newest at one end, oldest at the other. The numbers are dense: they name places in a vector.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    links: Vec<Links>,
    newest: u32,
    oldest: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    newer: u32,
    older: u32,
}

const NONE: u32 = u32::MAX;

impl Chain {
    pub(super) fn new() -> Chain {
        Chain { links: Vec::new(), newest: NONE, oldest: NONE, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn newest(&self) -> Option<u32> {
        (self.newest != NONE).then_some(self.newest)
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// From the oldest on.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(self.oldest(), |&number| {
            let newer = self.links[number as usize].newer;
            (newer != NONE).then_some(newer)
        })
    }

    /// A number that is not in it becomes its newest.
    pub(super) fn put(&mut self, number: u32) {
        let links = Links { newer: NONE, older: self.newest };
        match self.links.get_mut(number as usize) {
            Some(place) => *place = links,
            None => {
                self.links.resize(number as usize + 1, links);
            }
        }
        match self.newest {
            NONE => self.oldest = number,
            second => self.links[second as usize].newer = number,
        }
        self.newest = number;
        self.len += 1;
    }

    /// Takes a number out that is in it.
    pub(super) fn remove(&mut self, number: u32) {
        let Links { newer, older } = self.links[number as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.links[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.links[older as usize].newer = newer,
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_keeps_the_order_of_a_list(numbers in prop::collection::vec(0u32..30, 0..200)) {
            let (mut chain, mut list) = (Chain::new(), Vec::new());
            for number in numbers {
                match list.iter().position(|&other| other == number) {
                    Some(at) => {
                        list.remove(at);
                        chain.remove(number);
                    }
                    None => {
                        list.push(number);
                        chain.put(number);
                    }
                }
                prop_assert_eq!(chain.iter().collect::<Vec<_>>(), list.clone());
                prop_assert_eq!((chain.len(), chain.newest()), (list.len(), list.last().copied()));
            }
        }
    }
}
