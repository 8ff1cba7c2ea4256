//! Queues and groups as entities: a tree of trees, each level of which shares by weight.
//!
//! Source: `block/bfq-wf2q.c` of 6.1.192. Which entity of a group is next is known before its turn begins
//! (`next_in_service`), and looked up again when the one in service begins, when that one goes, or when one comes.

use crate::IoClass;
use crate::scheduler::bfq::tree::{Entity, EntityId, EntityState, Tree};
use events::time::{MILLISECOND, Time};

pub(super) type GroupId = usize;

/// The idle class gets a turn when it has had none for this long.
const IDLE_CLASS_AFTER_NS: Time = 200 * MILLISECOND;
pub(super) const ROOT: GroupId = 0;
/// `IOPRIO_BE_NR`.
const LEVELS: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct Hierarchy {
    entities: Vec<Entity>,
    nodes: Vec<Node>,
    groups: Vec<Group>,
    now: Time,
}

/// What an entity stands for.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: GroupId,
    class: IoClass,
    /// The group that it is; None: a queue.
    group: Option<GroupId>,
}

/// `struct bfq_sched_data`.
#[derive(Clone, Debug, Default)]
struct Group {
    /// What it is in its parent; the root is nothing.
    entity: Option<EntityId>,
    /// By class.
    trees: [Tree; 3],
    in_service: Option<EntityId>,
    next: Option<EntityId>,
    idle_class_served_at: Time,
}

impl Hierarchy {
    /// The root, and a group below it for each further weight.
    pub(super) fn new(weights: &[u32]) -> Hierarchy {
        let mut hierarchy =
            Hierarchy { entities: Vec::new(), nodes: Vec::new(), groups: vec![Group::default()], now: 0 };
        for &weight in weights.iter().skip(1) {
            hierarchy.add_group(u64::from(weight));
        }
        hierarchy
    }

    /// Whatever follows happens at that time.
    pub(super) fn at(&mut self, now: Time) {
        self.now = now;
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
        let (tree, entities) = self.tree_of(id);
        tree.reweight(entities, id, weight);
    }

    /// The budget of a queue that waits for its turn is another (`bfq_requeue_bfqq`).
    pub(super) fn rebudget(&mut self, id: EntityId, sectors: u64) {
        self.entities[id].budget = sectors;
        self.begin_stays(id, None, false);
    }

    pub(super) fn forget_service(&mut self, id: EntityId) {
        self.entities[id].service = 0;
    }

    /// The queue has something to do, with that budget (`bfq_activate_bfqq`). `in_time`, `raised`: see `Tree::activate`.
    pub(super) fn activate(&mut self, id: EntityId, in_time: bool, raised: u64) {
        self.begin_stays(id, Some((in_time, raised)), false);
    }

    /// The queue to serve, all the way down (`bfq_get_next_queue`).
    pub(super) fn serve_next(&mut self) -> Option<EntityId> {
        let mut group = ROOT;
        let queue = loop {
            let id = self.groups[group].next?;
            self.groups[group].in_service = Some(id);
            let below = self.nodes[id].group;
            // A group of which others have something to do is a candidate for the next turn, too.
            if below.is_none_or(|below| self.groups[below].active() == 1) {
                let (tree, entities) = self.tree_of(id);
                tree.take_out(entities, id);
            }
            match below {
                Some(below) => group = below,
                None => break id,
            }
        };
        let mut next = Some(queue);
        while let Some(id) = next {
            let group = self.nodes[id].parent;
            if !self.choose_next(group, None, false) {
                break;
            }
            next = self.groups[group].entity;
        }
        Some(queue)
    }

    /// The queue and its groups were served this much, in its turn or out of it (`bfq_bfqq_served`).
    pub(super) fn served(&mut self, id: EntityId, sectors: u64) {
        let mut next = Some(id);
        while let Some(id) = next {
            self.entities[id].service += sectors;
            let (tree, entities) = self.tree_of(id);
            tree.served(entities, sectors);
            next = self.above(id);
        }
    }

    /// A queue that is not in service has no more requests: all that were left have been injected.
    pub(super) fn withdraw(&mut self, id: EntityId) {
        self.deactivate(id, false);
    }

    /// The queue is no longer in service. `has_more`: it continues later, with the budget that has been set.
    pub(super) fn expire(&mut self, id: EntityId, has_more: bool) {
        if has_more {
            self.begin_stays(id, None, true);
            self.entities[id].service = 0;
        } else {
            self.deactivate(id, true);
        }
        let mut next = Some(id);
        while let Some(one) = next {
            self.groups[self.nodes[one].parent].in_service = None;
            next = self.above(one);
            if let Some(above) = next {
                self.entities[above].service = 0;
            }
        }
    }

    /// Whether another than the queue in service, or than its group, is next at the root (`next_queue_may_preempt`).
    pub(super) fn another_is_next(&self) -> bool {
        self.groups[ROOT].next != self.groups[ROOT].in_service
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
    pub(super) fn has_its_share(&self, id: EntityId, requests: u64, allocated: impl Fn(EntityId) -> u64) -> bool {
        let above = |&id: &EntityId| self.above(id);
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
        let Node { parent, class, group } = self.nodes[id];
        let trees = &self.groups[parent].trees;
        match group {
            Some(_) => trees[class as usize].weights(),
            None => trees[..=class as usize].iter().fold(0, |sum, tree| sum * LEVELS + tree.weights()),
        }
    }

    fn allocated_in(&self, id: EntityId, allocated: &impl Fn(EntityId) -> u64) -> u64 {
        let Some(group) = self.nodes[id].group else {
            return allocated(id);
        };
        let inside = (0..self.nodes.len()).filter(|&id| self.nodes[id].parent == group);
        inside.map(|id| self.allocated_in(id, allocated)).sum()
    }

    /// The entity, and those above it that this changes, begin new stays (`bfq_activate_requeue_entity`).
    ///
    /// Args:
    /// comes: it has had nothing to do; None: it goes on.
    /// expires: the turn of it and all above it is over.
    fn begin_stays(&mut self, id: EntityId, comes: Option<(bool, u64)>, expires: bool) {
        let (in_time, raised) = comes.unwrap_or((false, 1));
        let mut next = Some(id);
        while let Some(id) = next {
            let group = self.nodes[id].parent;
            let is_in_service = self.groups[group].in_service == Some(id);
            let is_active = self.entities[id].is_active();
            let is_group = self.nodes[id].group.is_some();
            let (tree, entities) = self.tree_of(id);
            if is_in_service || is_active {
                tree.requeue(entities, id, is_in_service);
            } else {
                tree.activate(entities, id, in_time, if is_group { 1 } else { raised });
            }
            if !self.choose_next(group, Some(id), expires) && !expires {
                return;
            }
            next = self.groups[group].entity;
        }
    }

    /// The entity has nothing more to do, nor has any group that has nobody else (`bfq_deactivate_entity`).
    fn deactivate(&mut self, id: EntityId, expires: bool) {
        let mut next = Some(id);
        while let Some(id) = next {
            if self.entities[id].place == EntityState::Forgotten {
                return;
            }
            let group = self.nodes[id].parent;
            let (tree, entities) = self.tree_of(id);
            tree.deactivate(entities, id);
            if self.groups[group].in_service == Some(id) {
                self.groups[group].in_service = None;
            } else {
                self.entities[id].service = 0;
            }
            if self.groups[group].next == Some(id) {
                self.choose_next(group, None, expires);
            }
            next = self.groups[group].entity;
            if self.groups[group].next.is_some() || self.groups[group].in_service.is_some() {
                break;
            }
        }
        while let Some(id) = next {
            let group = self.nodes[id].parent;
            let is_in_service = self.groups[group].in_service == Some(id);
            let (tree, entities) = self.tree_of(id);
            tree.requeue(entities, id, is_in_service);
            if !self.choose_next(group, Some(id), expires) && !expires {
                return;
            }
            next = self.groups[group].entity;
        }
    }

    /// `bfq_update_next_in_service`: whether that changes anything above, whose budget is that of the next
    /// (`bfq_update_parent_budget`).
    ///
    /// Args:
    /// came: the one that begins a stay.
    /// expires: the one in service counts no longer.
    fn choose_next(&mut self, group: GroupId, came: Option<EntityId>, expires: bool) -> bool {
        let before = self.groups[group].next;
        let first = came.filter(|&came| Some(came) != before);
        let is_ahead = |came: &EntityId| {
            before.is_none_or(|next| {
                let [came, next] = [*came, next].map(|id| (&self.entities[id], &self.nodes[id]));
                let tree = &self.groups[group].trees[came.1.class as usize];
                came.1.class == next.1.class && came.0.start <= tree.now() && came.0.finish < next.0.finish
            })
        };
        let next = match first.filter(is_ahead) {
            Some(came) => Some(came),
            None => self.look_up(group, expires),
        };
        self.groups[group].next = next;
        let Some(next) = next else {
            return false;
        };
        let budget = self.entities[next].budget;
        let mut is_less = false;
        if let Some(above) = self.groups[group].entity {
            is_less = budget < self.entities[above].budget;
            self.entities[above].budget = budget;
        }
        before.is_none() || is_less
    }

    /// `bfq_lookup_next_entity`.
    fn look_up(&mut self, group: GroupId, expires: bool) -> Option<EntityId> {
        let Hierarchy { entities, groups, .. } = self;
        let group = &mut groups[group];
        let mut first = IoClass::RealTime;
        if self.now > group.idle_class_served_at + IDLE_CLASS_AFTER_NS {
            group.idle_class_served_at = self.now;
            if group.trees[IoClass::Idle as usize].has_active() {
                first = IoClass::Idle;
            }
        }
        let another_is_in_service = group.in_service.is_some() && !expires;
        let mut trees = group.trees[first as usize..].iter_mut();
        trees.find_map(|tree| tree.look_up(entities, another_is_in_service))
    }

    fn tree_of(&mut self, id: EntityId) -> (&mut Tree, &mut [Entity]) {
        let Node { parent, class, .. } = self.nodes[id];
        let tree = &mut self.groups[parent].trees[class as usize];
        (tree, &mut self.entities)
    }

    fn above(&self, id: EntityId) -> Option<EntityId> {
        self.groups[self.nodes[id].parent].entity
    }

    fn add_group(&mut self, weight: u64) {
        let group = self.groups.len();
        self.groups.push(Group::default());
        let entity = self.add(weight, ROOT, IoClass::BestEffort, Some(group));
        self.groups[group].entity = Some(entity);
    }

    fn add(&mut self, weight: u64, parent: GroupId, class: IoClass, group: Option<GroupId>) -> EntityId {
        self.entities.push(Entity::new(weight));
        self.nodes.push(Node { parent, class, group });
        self.entities.len() - 1
    }
}

impl Group {
    fn active(&self) -> usize {
        self.trees.iter().map(Tree::active).sum()
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
            hierarchy.activate(queue, false, 1);
        }
        let first = hierarchy.serve_next().expect("all are active");
        hierarchy.served(first, served);
        hierarchy.expire(first, false);
        let group = hierarchy.groups[hierarchy.nodes[first].parent].entity.unwrap();
        let went_at = hierarchy.entities[group].finish;
        let other = hierarchy.serve_next().expect("others are active");
        hierarchy.served(other, meanwhile);
        hierarchy.expire(other, true);
        let now = hierarchy.groups[ROOT].trees[IoClass::BestEffort as usize].now();
        hierarchy.set_budget(first, 1024);
        hierarchy.activate(first, in_time, 1);
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

    fn best_effort(hierarchy: &mut Hierarchy, group: GroupId, budget: u64) -> EntityId {
        let id = hierarchy.add_queue(group, IoClass::BestEffort, 40);
        hierarchy.set_budget(id, budget);
        hierarchy.activate(id, false, 1);
        id
    }

    /// The first of three has been served ahead of its time, which comes while the last is served.
    #[test]
    fn who_is_next_is_known_before_unless_the_one_in_service_goes_on() {
        for goes_on in [false, true] {
            let mut hierarchy = Hierarchy::new(&[1000]);
            let [ahead, large, small] = [100, 1000, 60].map(|budget| best_effort(&mut hierarchy, ROOT, budget));
            assert_eq!(hierarchy.serve_next(), Some(small));
            hierarchy.served(small, 1);
            hierarchy.expire(small, false);
            assert_eq!(hierarchy.serve_next(), Some(ahead));
            hierarchy.served(ahead, 100);
            hierarchy.set_budget(ahead, 10);
            hierarchy.expire(ahead, true);
            hierarchy.activate(small, false, 1);
            assert_eq!(hierarchy.serve_next(), Some(small), "the smallest finish");
            hierarchy.served(small, 300);
            assert_eq!(hierarchy.entity(ahead).place, EntityState::Eligible);
            hierarchy.expire(small, goes_on);
            let next = if goes_on { ahead } else { large };
            assert_eq!(hierarchy.serve_next(), Some(next));
        }
    }

    /// `__bfq_requeue_entity` of a group in service leaves its service as it is, so that it is charged again at the end.
    #[test]
    fn a_group_in_service_is_charged_twice_for_what_it_had_when_another_of_its_queues_comes() {
        let start_after = |comes_late: bool| {
            let mut hierarchy = Hierarchy::new(&[1000, 100]);
            let first = best_effort(&mut hierarchy, 1, 200);
            if !comes_late {
                best_effort(&mut hierarchy, 1, 300);
            }
            assert_eq!(hierarchy.serve_next(), Some(first));
            hierarchy.served(first, 100);
            if comes_late {
                best_effort(&mut hierarchy, 1, 300);
            }
            hierarchy.expire(first, true);
            hierarchy.entities[hierarchy.above(first).unwrap()].start
        };
        assert_eq!(start_after(false), delta(100, 100));
        assert_eq!(start_after(true), delta(200, 100));
    }

    #[test]
    fn the_cases_of_the_property_all_occur() {
        let ahead = gone_and_back(1000, 1, true);
        assert!(ahead[0] > ahead[2]);
        let behind = gone_and_back(100, 2000, true);
        assert!(behind[0] < behind[2] && behind[1] == behind[0], "{behind:?}");
        let far_behind = gone_and_back(100, 8000, true);
        assert!(far_behind[0] < far_behind[1] && far_behind[1] < far_behind[2], "{far_behind:?}");
        let late = gone_and_back(100, 2000, false);
        assert!(late[0] < late[1] && late[1] == late[2], "{late:?}");
    }
}
