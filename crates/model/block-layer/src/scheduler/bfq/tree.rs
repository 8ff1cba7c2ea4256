//! B-WF2Q+: entities share a resource by weight, each getting a budget at a time.
//!
//! An entity's stay runs from virtual time S, when it should begin, to F = S + budget / weight, when it should be done.
//! Among those that should have begun (S <= V), the one with the smallest F is served. V moves with the service given
//! to all, over the sum of weights. Source: `block/bfq-wf2q.c` of 5.10 and 6.1.192 (docs/model/sources/bfq.md).

use crate::scheduler::sorted_set::SortedSet;

pub(super) type EntityId = usize;

/// Virtual time: sectors over weight, with 22 bits of fraction. 64 bits last for 10^18 sectors at weight 1.
pub(super) type VirtualTime = u64;

const FRACTION_BITS: u32 = 22;

/// `bfq_delta`.
pub(super) fn delta(sectors: u64, weight: u64) -> VirtualTime {
    (sectors << FRACTION_BITS) / weight
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entity {
    pub(super) weight: u64,
    pub(super) start: VirtualTime,
    pub(super) finish: VirtualTime,
    /// In sectors: of this stay, and what of it has been had, in its turn or out of it.
    pub(super) budget: u64,
    pub(super) service: u64,
    pub(super) place: EntityState,
    /// Those of one finish are served as they came (`bfq_insert`).
    order: u64,
}

/// In which of its tree's sets it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntityState {
    /// In none, and its weight does not count (`on_st_or_in_serv`).
    Forgotten,
    /// Has nothing to do, but has had more than its share: counts until V reaches its F.
    Idle,
    /// Should have begun.
    Eligible,
    /// Should not begin yet.
    Waiting,
    /// In none, since it is in service.
    TakenOut,
}

impl Entity {
    pub(super) fn new(weight: u64) -> Entity {
        Entity { weight, start: 0, finish: 0, budget: 0, service: 0, place: EntityState::Forgotten, order: 0 }
    }

    /// `bfq_calc_finish`.
    fn finish_after(&self, sectors: u64) -> VirtualTime {
        self.start + delta(sectors, self.weight)
    }

    /// What is left of its budget.
    pub(super) fn budget_left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }

    pub(super) fn is_active(&self) -> bool {
        matches!(self.place, EntityState::Eligible | EntityState::Waiting)
    }
}

/// The entities of one class under one parent. Those that wait are kept by S, and move over to
/// those that are kept by F when V reaches them, each once a stay.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    now: VirtualTime,
    weights: u64,
    /// By finish and order.
    eligible: SortedSet<(VirtualTime, u64, EntityId)>,
    /// By start, finish and order.
    waiting: SortedSet<(VirtualTime, VirtualTime, u64, EntityId)>,
    /// By finish.
    idle: SortedSet<(VirtualTime, EntityId)>,
    inserted: u64,
}

impl Tree {
    pub(super) fn now(&self) -> VirtualTime {
        self.now
    }

    /// Of all whose weight counts (`wsum`).
    pub(super) fn weights(&self) -> u64 {
        self.weights
    }

    /// How many are active.
    pub(super) fn active(&self) -> usize {
        self.eligible.len() + self.waiting.len()
    }

    pub(super) fn has_active(&self) -> bool {
        self.active() > 0
    }

    /// The entity has something to do again (`__bfq_activate_entity`, `bfq_update_fin_time_enqueue`).
    ///
    /// Args:
    /// in_time: it was gone only to wait for what it was served before.
    /// raised: by how much its weight is, which the push forward is less by.
    pub(super) fn activate(&mut self, entities: &mut [Entity], id: EntityId, in_time: bool, raised: u64) {
        let entity = &mut entities[id];
        let shifted = in_time && self.now > entity.finish;
        let start = if shifted { entity.finish } else { self.now };
        if entity.place == EntityState::Idle {
            self.idle.remove(&(entity.finish, id));
            entity.start = start.max(entity.finish);
        } else {
            entity.start = start;
            self.weights += entity.weight;
        }
        entity.finish = entity.finish_after(entity.budget);
        if shifted && self.now > entity.finish {
            // Behind everybody else's time it would be served for as long as it was gone.
            let ahead = (self.now - entity.finish) / raised;
            entity.start += ahead;
            entity.finish += ahead;
        }
        self.insert(entity, id);
    }

    /// It begins a new stay of its budget (`__bfq_requeue_entity`): one in service where the service that it had ends,
    /// another where its stay began.
    pub(super) fn requeue(&mut self, entities: &mut [Entity], id: EntityId, is_in_service: bool) {
        if entities[id].is_active() {
            self.take_out(entities, id);
        }
        let entity = &mut entities[id];
        if is_in_service {
            entity.start = entity.finish_after(entity.service);
        }
        entity.finish = entity.finish_after(entity.budget);
        self.insert(entity, id);
    }

    /// The weight of an entity has changed (`__bfq_entity_update_weight_prio`).
    pub(super) fn reweight(&mut self, entities: &mut [Entity], id: EntityId, weight: u64) {
        let is_active = entities[id].is_active();
        if is_active {
            self.take_out(entities, id);
        }
        let entity = &mut entities[id];
        if entity.place != EntityState::Forgotten {
            self.weights = self.weights + weight - entity.weight;
        }
        entity.weight = weight;
        if is_active {
            entity.finish = entity.finish_after(entity.budget);
            self.insert(entity, id);
        }
    }

    /// It has nothing more to do (`__bfq_deactivate_entity`). What it has had is kept in mind while it is ahead of the
    /// others.
    pub(super) fn deactivate(&mut self, entities: &mut [Entity], id: EntityId) {
        if entities[id].is_active() {
            self.take_out(entities, id);
        }
        let entity = &mut entities[id];
        entity.finish = entity.finish_after(entity.service);
        if entity.finish > self.now {
            entity.place = EntityState::Idle;
            self.idle.insert((entity.finish, id));
        } else {
            entity.place = EntityState::Forgotten;
            self.weights -= entity.weight;
        }
    }

    /// The one to be served next (`__bfq_lookup_next_entity`, `bfq_first_active_entity`). If nobody should have begun, V
    /// jumps to the first (`bfq_calc_vtime_jump`), unless another is in service.
    pub(super) fn look_up(&mut self, entities: &mut [Entity], another_is_in_service: bool) -> Option<EntityId> {
        if let Some((.., id)) = self.eligible.first() {
            return Some(id);
        }
        let (start, .., id) = self.waiting.first()?;
        if !another_is_in_service {
            self.advance_to(entities, start);
            self.forget_idle(entities);
        }
        Some(id)
    }

    /// So much service was given to one of its entities.
    pub(super) fn served(&mut self, entities: &mut [Entity], sectors: u64) {
        self.advance_to(entities, self.now + delta(sectors, self.weights));
        self.forget_idle(entities);
    }

    /// One that has been idle until V reached its F, at a time. If nobody waits but such, V goes back to the last of them
    /// (`bfq_forget_idle`).
    fn forget_idle(&mut self, entities: &mut [Entity]) {
        if !self.has_active()
            && let Some((finish, _)) = self.idle.last()
        {
            self.now = self.now.min(finish);
        }
        if let Some((finish, id)) = self.idle.first()
            && finish <= self.now
        {
            self.idle.pop_first();
            entities[id].place = EntityState::Forgotten;
            self.weights -= entities[id].weight;
        }
    }

    /// `bfq_update_vtime`.
    fn advance_to(&mut self, entities: &mut [Entity], now: VirtualTime) {
        self.now = now;
        while let Some((start, finish, order, id)) = self.waiting.first()
            && start <= now
        {
            self.waiting.pop_first();
            self.eligible.insert((finish, order, id));
            entities[id].place = EntityState::Eligible;
        }
    }

    /// `bfq_active_insert`.
    fn insert(&mut self, entity: &mut Entity, id: EntityId) {
        entity.order = self.inserted;
        self.inserted += 1;
        if entity.start <= self.now {
            entity.place = EntityState::Eligible;
            self.eligible.insert((entity.finish, entity.order, id));
        } else {
            entity.place = EntityState::Waiting;
            self.waiting.insert((entity.start, entity.finish, entity.order, id));
        }
    }

    /// `bfq_active_extract`.
    pub(super) fn take_out(&mut self, entities: &mut [Entity], id: EntityId) {
        let entity = &mut entities[id];
        let was_there = match entity.place {
            EntityState::Eligible => self.eligible.remove(&(entity.finish, entity.order, id)),
            EntityState::Waiting => {
                let key = (entity.start, entity.finish, entity.order, id);
                self.waiting.remove(&key)
            }
            EntityState::Forgotten | EntityState::Idle | EntityState::TakenOut => false,
        };
        debug_assert!(was_there, "entity {id} at {:?}", entity.place);
        entity.place = EntityState::TakenOut;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree_of(weights: &[u64], budget: u64) -> (Tree, Vec<Entity>) {
        let mut tree = Tree::default();
        let mut entities: Vec<Entity> = weights.iter().map(|&weight| Entity::new(weight)).collect();
        for id in 0..weights.len() {
            entities[id].budget = budget;
            tree.activate(&mut entities, id, false, 1);
        }
        (tree, entities)
    }

    fn serve(tree: &mut Tree, entities: &mut [Entity], sectors: u64) -> EntityId {
        let id = tree.look_up(entities, false).expect("something is active");
        tree.take_out(entities, id);
        entities[id].service = sectors;
        tree.served(entities, sectors);
        id
    }

    #[test]
    fn the_smallest_finish_of_those_that_should_have_begun_is_served() {
        let (mut tree, mut entities) = tree_of(&[1, 3, 2], 60);
        let order: Vec<EntityId> = (0..6)
            .map(|_| {
                let id = serve(&mut tree, &mut entities, 60);
                tree.requeue(&mut entities, id, true);
                id
            })
            .collect();
        assert_eq!(order, [1, 2, 1, 0, 2, 1], "3 : 2 : 1; of the three that end together, who came first");
    }

    #[test]
    fn an_entity_is_charged_what_it_was_served_not_its_budget() {
        let (mut tree, mut entities) = tree_of(&[1, 1], 1000);
        let id = serve(&mut tree, &mut entities, 10);
        tree.requeue(&mut entities, id, true);
        assert_eq!(entities[id].start, delta(10, 1));
        assert_eq!(entities[id].finish, delta(1010, 1));
    }

    #[test]
    fn the_weight_of_one_that_idles_counts_until_the_others_have_caught_up() {
        let (mut tree, mut entities) = tree_of(&[1, 1], 100);
        let gone = serve(&mut tree, &mut entities, 100);
        tree.deactivate(&mut entities, gone);
        assert_eq!((entities[gone].place, tree.weights), (EntityState::Idle, 2));
        let other = serve(&mut tree, &mut entities, 100);
        tree.requeue(&mut entities, other, true);
        assert_eq!((entities[gone].place, tree.weights), (EntityState::Forgotten, 1));
    }

    #[test]
    fn one_that_comes_back_while_it_is_ahead_begins_where_it_ended() {
        let (mut tree, mut entities) = tree_of(&[1, 1], 100);
        let gone = serve(&mut tree, &mut entities, 100);
        tree.deactivate(&mut entities, gone);
        tree.activate(&mut entities, gone, false, 1);
        assert_eq!(entities[gone].start, delta(100, 1));
    }

    #[test]
    fn one_that_comes_back_in_time_begins_where_it_ended_but_does_not_finish_in_the_past() {
        for (in_time, expected) in [(false, 500), (true, 400)] {
            let (mut tree, mut entities) = tree_of(&[1], 100);
            let gone = serve(&mut tree, &mut entities, 100);
            tree.deactivate(&mut entities, gone);
            assert_eq!(entities[gone].place, EntityState::Forgotten);
            tree.now = delta(500, 1);
            tree.activate(&mut entities, gone, in_time, 1);
            assert_eq!(entities[gone].start, delta(expected, 1), "{in_time}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Whatever the budgets, and however little of them is used.
        #[test]
        fn service_follows_weights(
            weights in prop::collection::vec(1u64..1000, 2..12),
            budgets in prop::collection::vec(1u64..2000, 50),
        ) {
            let (mut tree, mut entities) = tree_of(&weights, 1000);
            let mut served = vec![0u64; weights.len()];
            let total: u64 = weights.iter().sum();
            let mut given = 0;
            for (round, &budget) in budgets.iter().cycle().take(3_000).enumerate() {
                let sectors = budget.min(1 + round as u64 % 1500);
                let id = serve(&mut tree, &mut entities, sectors);
                served[id] += sectors;
                given += sectors;
                entities[id].budget = budget;
                tree.requeue(&mut entities, id, true);
            }
            for (served, weight) in served.iter().zip(&weights) {
                let due = given as f64 * *weight as f64 / total as f64;
                // Worst-case fair: never off by more than a few budgets.
                prop_assert!((*served as f64 - due).abs() <= 3.0 * 2000.0, "{served} of {due}");
            }
        }
    }
}
