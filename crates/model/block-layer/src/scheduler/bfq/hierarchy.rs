//! Queues and groups as entities: a tree of trees, each level of which shares by weight.

use crate::IoClass;
use crate::scheduler::bfq::tree::{Entity, EntityId, EntityState, Tree};
use events::time::{MILLISECOND, Time};

pub(super) type GroupId = usize;

/// The idle class gets a turn when it has had none for this long.
const IDLE_CLASS_AFTER_NS: Time = 200 * MILLISECOND;
const CLASSES: [IoClass; 3] = [IoClass::RealTime, IoClass::BestEffort, IoClass::Idle];
pub(super) const ROOT: GroupId = 0;
/// `IOPRIO_BE_NR`.
const LEVELS: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct Hierarchy {
    entities: Vec<Entity>,
    nodes: Vec<Node>,
    groups: Vec<Group>,
    idle_class_served_at: Time,
}

/// What an entity stands for.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: GroupId,
    class: IoClass,
    /// The group that it is; None: a queue.
    group: Option<GroupId>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// What it is in its parent; the root is nothing.
    entity: Option<EntityId>,
    trees: [Tree; 3],
}

impl Hierarchy {
    /// The root, and a group below it for each further weight.
    pub(super) fn new(weights: &[u32]) -> Hierarchy {
        let mut hierarchy = Hierarchy {
            entities: Vec::new(),
            nodes: Vec::new(),
            groups: vec![Group::default()],
            idle_class_served_at: 0,
        };
        for &weight in weights.iter().skip(1) {
            hierarchy.add_group(u64::from(weight));
        }
        hierarchy
    }

    /// Groups up to that number; those without a weight of their own have `weight`.
    pub(super) fn ensure_group(&mut self, group: GroupId, weight: u64) {
        while self.groups.len() <= group {
            self.add_group(weight);
        }
    }

    pub(super) fn add_queue(&mut self, group: GroupId, class: IoClass, weight: u64) -> EntityId {
        self.add(weight, group, class, None)
    }

    pub(super) fn entity(&self, id: EntityId) -> &Entity {
        &self.entities[id]
    }

    pub(super) fn set_budget(&mut self, id: EntityId, sectors: u64) {
        self.entities[id].budget = sectors;
    }

    /// From now on it shares by that weight, wherever it stands.
    pub(super) fn set_weight(&mut self, id: EntityId, weight: u64) {
        let Node { parent, class, .. } = self.nodes[id];
        self.groups[parent].trees[class as usize].reweight(&mut self.entities, id, weight);
    }

    /// The budget of a queue that waits for its turn is another.
    pub(super) fn rebudget(&mut self, id: EntityId, sectors: u64) {
        self.entities[id].budget = sectors;
        let mut next = Some(id);
        while let Some(id) = next {
            let Node { parent, class, .. } = self.nodes[id];
            if self.entities[id].is_active() {
                self.groups[parent].trees[class as usize].rebudget(&mut self.entities, id);
            }
            next = self.groups[parent].entity;
            if let Some(above) = next {
                self.entities[above].budget = self.budget_of_next(parent);
            }
        }
    }

    pub(super) fn forget_service(&mut self, id: EntityId) {
        self.entities[id].service = 0;
    }

    /// The queue has something to do, with that budget (`bfq_activate_requeue_entity`). `in_time`: see `Tree::activate`.
    pub(super) fn activate(&mut self, id: EntityId, in_time: bool) {
        let mut next = Some(id);
        while let Some(id) = next {
            let Node { parent, class, .. } = self.nodes[id];
            self.groups[parent].trees[class as usize].activate(&mut self.entities, id, in_time);
            next = self.groups[parent].entity.filter(|&above| {
                let place = self.entities[above].place;
                if place == EntityState::InService {
                    return false;
                }
                self.take_budget_of_next(above, parent);
                !self.entities[above].is_active()
            });
        }
    }

    /// The queue to serve, all the way down (`bfq_get_next_queue`).
    pub(super) fn serve_next(&mut self, now: Time) -> Option<EntityId> {
        let mut group = ROOT;
        loop {
            let class = self.class_to_serve(group, now)?;
            let tree = &mut self.groups[group].trees[class as usize];
            let id = tree.serve_next(&mut self.entities)?;
            match self.nodes[id].group {
                Some(below) => group = below,
                None => return Some(id),
            }
        }
    }

    /// A queue other than the one in service was served `sectors`: it is charged when its turn comes.
    pub(super) fn injected(&mut self, id: EntityId, sectors: u64) {
        let mut next = Some(id);
        while let Some(id) = next {
            let Node { parent, class, .. } = self.nodes[id];
            match self.entities[id].place {
                EntityState::InService => self.entities[id].service += sectors,
                _ => self.entities[id].injected += sectors,
            }
            self.groups[parent].trees[class as usize].served(&mut self.entities, sectors);
            next = self.groups[parent].entity;
        }
    }

    /// A queue that is not in service has no more requests: all that were left have been injected.
    pub(super) fn withdraw(&mut self, id: EntityId) {
        let mut next = Some(id);
        while let Some(id) = next {
            let Node {
                parent,
                class,
                group,
            } = self.nodes[id];
            if !self.entities[id].is_active() {
                return;
            }
            if let Some(group) = group
                && self.groups[group].trees.iter().any(Tree::has_active)
            {
                return self.take_budget_of_next(id, group);
            }
            self.groups[parent].trees[class as usize].withdraw(&mut self.entities, id);
            next = self.groups[parent].entity;
        }
    }

    /// Whether another than the queue in service, or than its group, is next at the root (`next_queue_may_preempt`).
    pub(super) fn another_is_next(&self) -> bool {
        self.groups[ROOT].trees.iter().any(Tree::has_active)
    }

    /// The weight by which two queues compare (`bfq_bfqq_higher_class_or_weight`): their own within a group, else those of
    /// their groups.
    pub(super) fn weights_against(&self, one: EntityId, other: EntityId) -> [u64; 2] {
        let parents = [one, other].map(|id| self.nodes[id].parent);
        if parents[0] == parents[1] {
            return [one, other].map(|id| self.entities[id].weight);
        }
        [one, other].map(|id| {
            let group = self.groups[self.nodes[id].parent].entity;
            self.entities[group.unwrap_or(id)].weight
        })
    }

    /// Whether the queue, or a group that it lies in, has its share of so many requests already; not if one of them is
    /// neither waiting nor served, so that it can begin (`bfqq_request_over_limit`).
    ///
    /// Args:
    /// `allocated`: the requests of a queue.
    pub(super) fn has_its_share(
        &self,
        id: EntityId,
        requests: u64,
        allocated: impl Fn(EntityId) -> u64,
    ) -> bool {
        let above = |&id: &EntityId| self.groups[self.nodes[id].parent].entity;
        let mut path: Vec<EntityId> = std::iter::successors(Some(id), above).collect();
        let is_forgotten = |id: &EntityId| self.entities[*id].place == EntityState::Forgotten;
        if path.iter().any(is_forgotten) {
            return false;
        }
        path.reverse();
        let mut limit = requests;
        path.into_iter().any(|id| {
            let weights = self.weights_beside(id);
            if weights == 0 {
                return false;
            }
            limit = (limit * self.entities[id].weight + weights / 2) / weights;
            self.allocated_in(id, &allocated) >= limit
        })
    }

    /// Of a group: the weights in its tree. Of a queue: with those of higher classes, each as much more.
    fn weights_beside(&self, id: EntityId) -> u64 {
        let Node {
            parent,
            class,
            group,
        } = self.nodes[id];
        let trees = &self.groups[parent].trees;
        match group {
            Some(_) => trees[class as usize].weights(),
            None => trees[..=class as usize]
                .iter()
                .fold(0, |sum, tree| sum * LEVELS + tree.weights()),
        }
    }

    fn allocated_in(&self, id: EntityId, allocated: &impl Fn(EntityId) -> u64) -> u64 {
        let Some(group) = self.nodes[id].group else {
            return allocated(id);
        };
        let inside = (0..self.nodes.len()).filter(|&id| self.nodes[id].parent == group);
        inside.map(|id| self.allocated_in(id, allocated)).sum()
    }

    /// The queue in service and its groups were served this much (`bfq_bfqq_served`).
    pub(super) fn served(&mut self, id: EntityId, sectors: u64) {
        let mut next = Some(id);
        while let Some(id) = next {
            let Node { parent, class, .. } = self.nodes[id];
            self.entities[id].service += sectors;
            self.groups[parent].trees[class as usize].served(&mut self.entities, sectors);
            next = self.groups[parent].entity;
        }
    }

    /// The queue is no longer in service. `has_more`: it continues later, with the budget that has been set.
    pub(super) fn expire(&mut self, id: EntityId, has_more: bool) {
        let (mut next, mut has_more) = (Some(id), has_more);
        while let Some(id) = next {
            let Node {
                parent,
                class,
                group,
            } = self.nodes[id];
            if let Some(group) = group {
                has_more = self.groups[group].trees.iter().any(Tree::has_active);
                self.entities[id].budget = self.budget_of_next(group);
            }
            let tree = &mut self.groups[parent].trees[class as usize];
            if has_more {
                tree.requeue(&mut self.entities, id);
            } else {
                tree.deactivate(&mut self.entities, id);
            }
            next = self.groups[parent].entity;
        }
    }

    fn add_group(&mut self, weight: u64) {
        let group = self.groups.len();
        self.groups.push(Group::default());
        let entity = self.add(weight, ROOT, IoClass::BestEffort, Some(group));
        self.groups[group].entity = Some(entity);
    }

    fn add(
        &mut self,
        weight: u64,
        parent: GroupId,
        class: IoClass,
        group: Option<GroupId>,
    ) -> EntityId {
        self.entities.push(Entity::new(weight));
        self.nodes.push(Node {
            parent,
            class,
            group,
        });
        self.entities.len() - 1
    }

    /// A group's budget is that of the queue in it that is next (`bfq_update_parent_budget`).
    fn take_budget_of_next(&mut self, id: EntityId, group: GroupId) {
        let budget = self.budget_of_next(group);
        if self.entities[id].budget == budget {
            return;
        }
        self.entities[id].budget = budget;
        if self.entities[id].is_active() {
            let Node { parent, class, .. } = self.nodes[id];
            self.groups[parent].trees[class as usize].rebudget(&mut self.entities, id);
        }
    }

    fn budget_of_next(&self, group: GroupId) -> u64 {
        let next = self.groups[group].trees.iter().find_map(Tree::peek);
        next.map_or(0, |id| self.entities[id].budget)
    }

    /// `bfq_lookup_next_entity`.
    fn class_to_serve(&mut self, group: GroupId, now: Time) -> Option<IoClass> {
        let has = |class: &IoClass| self.groups[group].trees[*class as usize].has_active();
        if now >= self.idle_class_served_at + IDLE_CLASS_AFTER_NS {
            self.idle_class_served_at = now;
            if has(&IoClass::Idle) {
                return Some(IoClass::Idle);
            }
        }
        CLASSES.into_iter().find(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::bfq::tree::delta;
    use proptest::prelude::*;

    const WEIGHT: u64 = 100;

    /// A queue in each of three groups; the first is served and goes, then another for `meanwhile` sectors. Where the
    /// first queue's group was when it went, when it begins again, and V at the root then.
    fn gone_and_back(served: u64, meanwhile: u64, in_time: bool) -> [u64; 3] {
        let mut hierarchy = Hierarchy::new(&[1000, 100, 100, 100]);
        let queues = [1, 2, 3].map(|group| hierarchy.add_queue(group, IoClass::BestEffort, 40));
        for queue in queues {
            hierarchy.set_budget(queue, 1024);
            hierarchy.activate(queue, false);
        }
        let first = hierarchy.serve_next(0).expect("all are active");
        hierarchy.served(first, served);
        hierarchy.expire(first, false);
        let group = hierarchy.groups[hierarchy.nodes[first].parent]
            .entity
            .unwrap();
        let went_at = hierarchy.entities[group].finish;
        let other = hierarchy.serve_next(0).expect("others are active");
        hierarchy.served(other, meanwhile);
        hierarchy.expire(other, true);
        let now = hierarchy.groups[ROOT].trees[IoClass::BestEffort as usize].now();
        hierarchy.set_budget(first, 1024);
        hierarchy.activate(first, in_time);
        [went_at, hierarchy.entities[group].start, now]
    }

    proptest! {
        /// A queue that is back in time takes its group along to where the group's service ended: at most as far as its
        /// stay is not over before the group begins. One that is late begins now, and a group ahead of V where it was.
        #[test]
        fn a_queue_that_is_back_in_time_shifts_its_group_back(
            served in 1u64..1024, meanwhile in 1u64..8192, in_time: bool,
        ) {
            let [went_at, start, now] = gone_and_back(served, meanwhile, in_time);
            let expected = if went_at >= now {
                went_at
            } else if in_time {
                went_at.max(now.saturating_sub(delta(1024, WEIGHT)))
            } else {
                now
            };
            prop_assert_eq!(start, expected);
        }
    }

    #[test]
    fn the_cases_of_the_property_all_occur() {
        let ahead = gone_and_back(1000, 1, true);
        assert!(ahead[0] > ahead[2]);
        let behind = gone_and_back(100, 2000, true);
        assert!(
            behind[0] < behind[2] && behind[1] == behind[0],
            "{behind:?}"
        );
        let far_behind = gone_and_back(100, 8000, true);
        assert!(
            far_behind[0] < far_behind[1] && far_behind[1] < far_behind[2],
            "{far_behind:?}"
        );
        let late = gone_and_back(100, 2000, false);
        assert!(late[0] < late[1] && late[1] == late[2], "{late:?}");
    }
}
