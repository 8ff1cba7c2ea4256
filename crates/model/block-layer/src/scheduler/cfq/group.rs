//! Groups: queues that share a weight. The one that has had least of its share is served next.

use crate::IoClass;
use crate::scheduler::cfq::queue::{GroupId, QueueId, TreePlace, WORKLOADS, Workload};
use crate::scheduler::sorted_set::SortedSet;

/// A group's queues of one class and kind, in the order of their keys.
type Tree = SortedSet<(i64, u64, QueueId)>;

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) weight: u64,
    /// Service received over weight.
    pub(super) served: u64,
    pub(super) is_waiting: bool,
    /// Queues that have something to do.
    pub(super) queues: u32,
    /// By class, real-time and best-effort, and by workload.
    trees: [[Tree; 3]; 2],
    idle_tree: Tree,
    /// Moving averages of busy queues, best-effort and real-time.
    pub(super) busy_mean: [u64; 2],
    /// What was left of the turn of one kind of workload when the group was last served.
    pub(super) saved: Option<SavedWorkload>,
    /// Requests at the device.
    pub(super) dispatched: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SavedWorkload {
    pub(super) ticks: u64,
    pub(super) workload: Workload,
    pub(super) class: IoClass,
}

impl Group {
    pub(super) fn new(weight: u64) -> Group {
        Group {
            weight,
            served: 0,
            is_waiting: false,
            queues: 0,
            trees: Default::default(),
            idle_tree: Tree::default(),
            busy_mean: [0; 2],
            saved: None,
            dispatched: 0,
        }
    }

    pub(super) fn tree(&self, class: IoClass, workload: Workload) -> &Tree {
        match class {
            IoClass::RealTime => &self.trees[0][workload as usize],
            IoClass::BestEffort => &self.trees[1][workload as usize],
            IoClass::Idle => &self.idle_tree,
        }
    }

    pub(super) fn stand(&mut self, queue: QueueId, at: TreePlace) {
        self.tree_mut(at).insert((at.key, at.sequence, queue));
    }

    pub(super) fn leave(&mut self, queue: QueueId, at: TreePlace) {
        self.tree_mut(at).remove(&(at.key, at.sequence, queue));
    }

    /// Queues with something to do of that class (`cfq_group_busy_queues_wl`).
    pub(super) fn busy(&self, class: IoClass) -> u64 {
        if class == IoClass::Idle {
            return self.idle_tree.len() as u64;
        }
        WORKLOADS.iter().map(|&workload| self.tree(class, workload).len() as u64).sum()
    }

    /// Queues that a task waits for, those of the idle class aside (`nr_sync` of `cfq_group_served`).
    pub(super) fn busy_sync(&self) -> u64 {
        u64::from(self.queues).saturating_sub(self.busy_async()).saturating_sub(self.idle_tree.len() as u64)
    }

    /// `cfqg_busy_async_queues`.
    pub(super) fn busy_async(&self) -> u64 {
        let of = |class| self.tree(class, Workload::Async).len() as u64;
        of(IoClass::RealTime) + of(IoClass::BestEffort)
    }

    /// The class that comes first among those that have something to do (`choose_service_tree`).
    pub(super) fn class_to_serve(&self) -> IoClass {
        [IoClass::RealTime, IoClass::BestEffort]
            .into_iter()
            .find(|&class| self.busy(class) > 0)
            .unwrap_or(IoClass::Idle)
    }

    /// The workload whose first queue has waited longest (`cfq_choose_wl`).
    pub(super) fn workload_to_serve(&self, class: IoClass) -> Workload {
        WORKLOADS
            .into_iter()
            .filter_map(|workload| {
                let (key, ..) = self.tree(class, workload).first()?;
                Some((key, workload))
            })
            .min_by_key(|&(key, _)| key)
            .map_or(Workload::SyncNoIdle, |(_, workload)| workload)
    }

    /// A slowly falling count of busy queues (`cfq_group_get_avg_queues`): (3 max + min + 2) / 4 of what it was and is.
    pub(super) fn update_busy_mean(&mut self, class: IoClass) -> u64 {
        let busy = self.busy(class);
        let mean = &mut self.busy_mean[usize::from(class == IoClass::RealTime)];
        *mean = (3 * (*mean).max(busy) + (*mean).min(busy) + 2) / 4;
        *mean
    }

    fn tree_mut(&mut self, at: TreePlace) -> &mut Tree {
        match at.class {
            IoClass::RealTime => &mut self.trees[0][at.workload as usize],
            IoClass::BestEffort => &mut self.trees[1][at.workload as usize],
            IoClass::Idle => &mut self.idle_tree,
        }
    }
}

/// All groups, and those that wait, by service over weight.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    groups: Vec<Group>,
    waiting: SortedSet<(u64, u64, GroupId)>,
    /// By group: its second key, the order of joining.
    sequences: Vec<u64>,
    next_sequence: u64,
    pub(super) total_weight: u64,
    served_min: u64,
}

/// Service is counted in 4096ths of a tick at the default weight.
const SERVICE_SHIFT: u32 = 12;
const DEFAULT_WEIGHT: u64 = 500;
const ROOT_WEIGHT: u64 = 1000;

impl Groups {
    /// Group 0 is the root; of those that are not named, the weight is the default.
    pub(super) fn new(weights: &[u32]) -> Groups {
        let mut groups: Vec<Group> = weights.iter().map(|&weight| Group::new(u64::from(weight))).collect();
        if groups.is_empty() {
            groups.push(Group::new(ROOT_WEIGHT));
        }
        Groups {
            sequences: vec![0; groups.len()],
            groups,
            waiting: SortedSet::default(),
            next_sequence: 0,
            total_weight: 0,
            served_min: 0,
        }
    }

    pub(super) fn ensure(&mut self, id: GroupId) {
        while self.groups.len() <= id {
            self.groups.push(Group::new(DEFAULT_WEIGHT));
            self.sequences.push(0);
        }
    }

    pub(super) fn get(&self, id: GroupId) -> &Group {
        &self.groups[id]
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.groups[id]
    }

    /// One more queue of the group has something to do (`cfq_group_service_tree_add`). A group that joins does so a little
    /// behind the last one, as if it had slept through the turns it missed.
    pub(super) fn queue_joins(&mut self, id: GroupId, join_delay: u64) {
        let last = self.waiting.last().map(|(served, ..)| served);
        let served_min = self.served_min;
        let group = &mut self.groups[id];
        group.queues += 1;
        if group.is_waiting {
            return;
        }
        group.served = last.map_or(served_min, |last| last + join_delay);
        group.is_waiting = true;
        self.total_weight += group.weight;
        self.enter(id);
    }

    /// `cfq_group_service_tree_del`.
    pub(super) fn queue_leaves(&mut self, id: GroupId) {
        let group = &mut self.groups[id];
        group.queues -= 1;
        if group.queues > 0 {
            return;
        }
        group.is_waiting = false;
        group.saved = None;
        self.total_weight -= group.weight;
        self.waiting.remove(&(group.served, self.sequences[id], id));
    }

    /// `cfq_scale_slice`, as `cfq_group_served` uses it.
    pub(super) fn charge(&mut self, id: GroupId, ticks: u64) {
        let group = &mut self.groups[id];
        let was_there = self.waiting.remove(&(group.served, self.sequences[id], id));
        group.served += ((ticks << SERVICE_SHIFT) * DEFAULT_WEIGHT) / group.weight;
        if was_there {
            self.enter(id);
        }
    }

    /// The group that has had least (`cfq_get_next_cfqg`).
    pub(super) fn next(&mut self) -> Option<GroupId> {
        let (served, _, id) = self.waiting.first()?;
        self.served_min = self.served_min.max(served);
        Some(id)
    }

    /// `__cfq_group_service_tree_add`.
    fn enter(&mut self, id: GroupId) {
        self.sequences[id] = self.next_sequence;
        self.next_sequence += 1;
        self.waiting.insert((self.groups[id].served, self.sequences[id], id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A fifth of a second of ticks, which is added to service in 4096ths of a tick.
    const DELAY: u64 = 200;
    const TICK: u64 = 1 << SERVICE_SHIFT;

    #[test]
    fn a_group_joins_a_twentieth_of_a_tick_behind_the_last_and_not_200_ms() {
        let mut groups = Groups::new(&[1000, 500, 500, 500]);
        groups.queue_joins(1, DELAY);
        groups.charge(1, 3);
        groups.queue_joins(2, DELAY);
        assert_eq!(groups.get(2).served, 3 * TICK + 200);
        assert!(groups.get(2).served < 4 * TICK, "a tick of service puts it ahead again");
        assert_eq!(groups.next(), Some(1));
        groups.charge(1, 1);
        assert_eq!(groups.next(), Some(2));
    }

    #[test]
    fn a_group_that_joins_alone_has_missed_nothing() {
        let mut groups = Groups::new(&[1000, 500, 500]);
        groups.queue_joins(1, DELAY);
        groups.charge(1, 50);
        assert_eq!(groups.next(), Some(1));
        groups.queue_leaves(1);
        groups.queue_joins(2, DELAY);
        assert_eq!(groups.get(2).served, 50 * TICK, "where the last one to be served stood");
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Join(GroupId),
        Leave(GroupId),
        Serve(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (1..5usize).prop_map(Step::Join),
            (1..5usize).prop_map(Step::Leave),
            (1..100u64).prop_map(Step::Serve),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        /// Whoever comes and goes: a group joins behind all that wait, the served one has had least, weights add up.
        #[test]
        fn groups_join_behind_the_last(steps in steps()) {
            let weights = [1000u32, 100, 300, 500, 900];
            let mut groups = Groups::new(&weights);
            for step in steps {
                let waiting: Vec<GroupId> = (1..5).filter(|&id| groups.get(id).is_waiting).collect();
                let last = waiting.iter().map(|&id| groups.get(id).served).max();
                match step {
                    Step::Join(id) => {
                        let was = groups.get(id).is_waiting;
                        groups.queue_joins(id, DELAY);
                        if !was {
                            let due = last.map_or(groups.served_min, |last| last + DELAY);
                            prop_assert_eq!(groups.get(id).served, due);
                        }
                    }
                    Step::Leave(id) if groups.get(id).queues > 0 => groups.queue_leaves(id),
                    Step::Leave(_) => {}
                    Step::Serve(ticks) => {
                        let next = groups.next();
                        prop_assert_eq!(next.is_some(), !waiting.is_empty());
                        if let Some(id) = next {
                            let least = waiting.iter().map(|&id| groups.get(id).served).min();
                            prop_assert_eq!(Some(groups.get(id).served), least);
                            groups.charge(id, ticks);
                        }
                    }
                }
                let total: u64 = (1..5).filter(|&id| groups.get(id).is_waiting).map(|id| u64::from(weights[id])).sum();
                prop_assert_eq!(groups.total_weight, total);
            }
        }
    }
}
