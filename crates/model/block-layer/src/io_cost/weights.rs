//! The shares of groups: what they are entitled to, and what they use of it, lent to others where they do not.
//!
//! One level of groups below the root, so that a hierarchical weight is a group's part of a sum.

/// A whole share (`WEIGHT_ONE`).
pub(super) const ONE: u64 = 1 << 16;

/// Sums over the root's children; `generation` changes when what was calculated from them holds no more.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) active: u64,
    pub(super) in_use: u64,
    generation: u64,
    is_changed: bool,
}

/// Of one group.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    /// As it was given, in parts of `ONE`.
    pub(super) given: u64,
    /// While the group is active, what it was given; else 0.
    pub(super) active: u64,
    /// What is left of it when the group lends the rest.
    pub(super) in_use: u64,
    pub(super) last_in_use: u64,
    share_active: u64,
    share_in_use: u64,
    generation: Option<u64>,
}

/// A group's parts of `ONE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) active: u64,
    pub(super) in_use: u64,
}

impl Weight {
    pub(super) fn new(weight: u32) -> Weight {
        Weight {
            given: u64::from(weight) * ONE,
            active: 0,
            in_use: 0,
            last_in_use: 0,
            share_active: ONE,
            share_in_use: ONE,
            generation: None,
        }
    }

    /// `__propagate_weights`: visible to all when the sums are committed.
    pub(super) fn set(&mut self, active: u64, in_use: u64, sums: &mut Sums) {
        let in_use = in_use.min(active).max(1);
        self.last_in_use = self.in_use;
        if active == self.active && in_use == self.in_use {
            return;
        }
        sums.active = sums.active + active - self.active;
        sums.in_use = sums.in_use + in_use - self.in_use;
        (self.active, self.in_use) = (active, in_use);
        sums.is_changed = true;
    }

    /// What is remembered of the share holds no more: the group has become active.
    pub(super) fn forget(&mut self) {
        self.generation = None;
    }

    /// `current_hweight`.
    pub(super) fn share(&mut self, sums: &Sums) -> Share {
        if self.generation != Some(sums.generation) {
            self.generation = Some(sums.generation);
            let has_sums = sums.active > 0 && sums.in_use > 0;
            let part = |own: u64, sum: u64| match has_sums {
                true => (ONE * own / own.max(sum)).max(1),
                false => ONE,
            };
            self.share_active = part(self.active, sums.active);
            self.share_in_use = part(self.in_use, sums.in_use);
        }
        Share { active: self.share_active, in_use: self.share_in_use }
    }

    /// The share that it would have with all of its weight in use (`current_hweight_max`).
    pub(super) fn share_max(&self, sums: &Sums) -> u64 {
        (ONE * self.active / (sums.in_use + self.active - self.in_use)).max(1)
    }
}

impl Sums {
    /// `commit_weights`.
    pub(super) fn commit(&mut self) {
        self.generation += u64::from(std::mem::take(&mut self.is_changed));
    }
}

/// A group that lends: what it is entitled to, and the share that it keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lender {
    pub(super) group: usize,
    pub(super) entitled: u64,
    pub(super) keeps: u64,
}

/// `transfer_surpluses`: what of each lender's weight is in use so that all others keep their proportions.
pub(super) fn lent(lenders: &mut [Lender], sums: &Sums) -> Vec<(usize, u64)> {
    let kept: u64 = lenders.iter().map(|one| one.keeps).sum();
    let is_over = |one: &Lender| one.keeps > one.entitled;
    let over: u64 = lenders.iter().filter(|one| is_over(one)).map(|one| one.keeps).sum();
    if kept >= ONE {
        let target = over.saturating_sub(kept - (ONE - 1));
        for one in lenders.iter_mut().filter(|one| is_over(one)) {
            if target > 0 {
                one.keeps = one.keeps * target / over;
            }
        }
    }
    let entitled: u64 = lenders.iter().map(|one| one.entitled).sum();
    let kept: u64 = lenders.iter().map(|one| one.keeps).sum();
    let entitled = entitled.min(ONE);
    let kept = kept.min(entitled - 1);
    let sum = (sums.active * (ONE - entitled)).div_ceil(ONE - kept);
    let of = |one: &Lender| (one.group, (sum * one.keeps).div_ceil(ONE));
    lenders.iter().map(of).collect()
}
