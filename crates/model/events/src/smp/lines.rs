//! What CPUs share: objects of some cache lines each, in the cache of the CPU that used them last; some are locks.

use super::topology::{DISTANCES, Topology};
use crate::slab::{Id, Slab};
use crate::time::Time;

/// What an object is, so that its transfers can be distinguished from others'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request of the block layer.
    Request,
    /// A bio.
    Bio,
    /// What a completed I/O leaves for its task: control block, ring, pages' descriptors.
    ControlBlock,
    /// A request queue with its lock.
    Queue,
    /// A CPU's structure of completions: lock and list head.
    CompletionList,
    /// What function calls on other CPUs go through.
    CallList,
    /// A CPU's run queue with its lock.
    RunQueue,
    /// A task's state, wait queue and stack.
    Task,
    /// A journal's list of what the next checkpoint has, with its lock.
    Log,
}

/// The number of kinds.
pub const KINDS: usize = 9;

impl Kind {
    /// All, with the names that observations have.
    pub const NAMED: [(Kind, &'static str); KINDS] = [
        (Kind::Request, "request"),
        (Kind::Bio, "bio"),
        (Kind::ControlBlock, "control_block"),
        (Kind::Queue, "queue"),
        (Kind::CompletionList, "completion_list"),
        (Kind::CallList, "call_list"),
        (Kind::RunQueue, "run_queue"),
        (Kind::Task, "task"),
        (Kind::Log, "log"),
    ];
}

/// Names a shared object.
pub type ObjectId = Id<Object>;

/// A shared object: its lines, and which CPU's cache has them.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    kind: Kind,
    lines: u16,
    /// Whose cache has it; None: nobody has used it yet.
    owner: Option<u16>,
    /// When the owner of a lock releases it.
    held_until: Time,
}

/// What has happened to the objects of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingCounts {
    /// How often a CPU used one.
    pub touches: u64,
    /// Lines that came from another CPU, by how far, nearest first.
    pub transfers: [u64; DISTANCES],
    /// Cycles that CPUs waited for these lines.
    pub transfer_cycles: u64,
    /// The number of times that a lock was taken.
    pub locked: u64,
    /// The number of these times at which another CPU held the lock.
    pub waited: u64,
    /// Time that CPUs spun for them.
    pub waited_ns: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Lines {
    topology: Topology,
    transfer_cycles: [u32; DISTANCES],
    objects: Slab<Object>,
    by_kind: [SharingCounts; KINDS],
}

impl Lines {
    pub(super) fn new(topology: Topology, transfer_cycles: [u32; DISTANCES]) -> Lines {
        Lines { topology, transfer_cycles, objects: Slab::new(), by_kind: [SharingCounts::default(); KINDS] }
    }

    pub(super) fn add(&mut self, kind: Kind, lines: u16) -> ObjectId {
        self.objects.put(Object { kind, lines, owner: None, held_until: 0 })
    }

    /// Brings an object into a CPU's cache: how many cycles that takes.
    #[inline]
    pub(super) fn touch(&mut self, object: ObjectId, cpu: u16) -> u32 {
        let object = &mut self.objects[object];
        let sharing = &mut self.by_kind[object.kind as usize];
        sharing.touches += 1;
        let Some(owner) = object.owner.replace(cpu) else {
            return 0;
        };
        let Some(distance) = self.topology.distance(owner, cpu) else {
            return 0;
        };
        let lines = u32::from(object.lines);
        let cycles = lines * self.transfer_cycles[distance as usize];
        sharing.transfers[distance as usize] += u64::from(lines);
        sharing.transfer_cycles += u64::from(cycles);
        cycles
    }

    /// When a CPU that asks for a lock now gets it.
    pub(super) fn wait_for(&mut self, object: ObjectId, now: Time) -> Time {
        let object = &self.objects[object];
        let sharing = &mut self.by_kind[object.kind as usize];
        sharing.locked += 1;
        if object.held_until > now {
            sharing.waited += 1;
            sharing.waited_ns += object.held_until - now;
        }
        object.held_until.max(now)
    }

    pub(super) fn hold(&mut self, object: ObjectId, until: Time) {
        self.objects[object].held_until = until;
    }

    pub(super) fn sharing(&self, kind: Kind) -> SharingCounts {
        self.by_kind[kind as usize]
    }
}

impl SharingCounts {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cost_by_how_far_away_they_were_used_last() {
        let topology = Topology { numa_nodes: 2, sockets_per_node: 1, cores_per_socket: 2, threads_per_core: 1 };
        let mut lines = Lines::new(topology, [10, 100, 200, 400]);
        let object = lines.add(Kind::Bio, 3);
        let costs: Vec<u32> = [0, 0, 1, 2, 2, 0].into_iter().map(|cpu| lines.touch(object, cpu)).collect();
        assert_eq!(costs, [0, 0, 300, 1200, 0, 1200]);
        assert_eq!(lines.sharing(Kind::Bio).transfers, [0, 3, 0, 6]);
    }

    #[test]
    fn a_lock_waits_for_its_holder() {
        let mut lines = Lines::new(Topology::flat(2), [0; 4]);
        let lock = lines.add(Kind::Queue, 1);
        assert_eq!(lines.wait_for(lock, 10), 10);
        lines.hold(lock, 30);
        assert_eq!(lines.wait_for(lock, 15), 30);
        assert_eq!(lines.sharing(Kind::Queue).waited_ns, 15);
    }
}
