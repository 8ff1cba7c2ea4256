//! Which hardware queue each CPU submits to.
//!
//! Sources: `block/blk-mq-cpumap.c` of 3.15, 4.5 and 6.2; `block/blk-mq-pci.c` and `kernel/irq/affinity.c` of 4.10 and 5.x
//! (`irq_create_affinity_masks`), `lib/group_cpus.c` of 6.6, which does the same. The versions in which one followed the
//! other (4.0, 4.10) are inferred.

use events::smp::{Distance, Topology};
use kernels::hardware_queue::QueueSpread;

/// By CPU, its hardware queue; each queue has at least one CPU if there are no more queues than CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueMap {
    by_cpu: Vec<u16>,
    queues: u16,
}

impl QueueMap {
    /// The map of a kernel for this number of queues.
    pub fn new(spread: QueueSpread, topology: &Topology, queues: u16) -> QueueMap {
        let cpus = topology.cpus() as u16;
        let queues = queues.max(1);
        let by_cpu = match spread {
            QueueSpread::ByNode => by_node(topology, queues),
            QueueSpread::InTurn => in_turn(topology, queues),
            QueueSpread::EqualRuns | QueueSpread::Proportional => {
                // Threads count one by one only if there are queues enough.
                let shares = match queues >= cpus {
                    true => 1,
                    false => topology.threads_per_core,
                };
                let parts = u32::from(cpus / shares);
                let queue_of = |part: u32| match spread {
                    QueueSpread::EqualRuns => part / parts.div_ceil(u32::from(queues)),
                    _ => part * u32::from(queues) / parts,
                };
                let of_cpu = |cpu| queue_of(u32::from(cpu / shares)) as u16;
                (0..cpus).map(of_cpu).collect()
            }
        };
        QueueMap { by_cpu, queues }
    }

    /// One queue for all.
    pub const SINGLE: QueueMap = QueueMap { by_cpu: Vec::new(), queues: 1 };

    /// CPU n submits to queue n modulo `queues`: of tests and of machines whose CPUs have no places.
    pub fn modulo(cpus: u16, queues: u16) -> QueueMap {
        QueueMap::new(QueueSpread::InTurn, &Topology::flat(cpus), queues)
    }

    /// The number of queues, those without a CPU included.
    #[inline]
    pub fn queues(&self) -> u16 {
        self.queues
    }

    /// The queue of a CPU.
    #[inline]
    pub fn queue_of(&self, cpu: u16) -> usize {
        self.by_cpu.get(usize::from(cpu)).copied().unwrap_or(0).into()
    }

    /// The CPU that the queue of this CPU interrupts: the first of those that submit to it.
    pub fn interrupts(&self, cpu: u16) -> u16 {
        let queue = self.queue_of(cpu);
        let first = self.by_cpu.iter().position(|&other| usize::from(other) == queue);
        first.map_or(cpu, |first| first as u16)
    }
}

/// With no more queues than nodes, nodes share them in turn; else each node has as large a part of what is left as of the
/// CPUs that are left, and within it the first queues have one CPU more where they do not divide evenly.
fn by_node(topology: &Topology, queues: u16) -> Vec<u16> {
    let (nodes, cpus) = (topology.numa_nodes, topology.cpus() as u16);
    let of_node = cpus / nodes;
    if queues <= nodes {
        return (0..cpus).map(|cpu| cpu / of_node % queues).collect();
    }
    let mut by_cpu = Vec::with_capacity(usize::from(cpus));
    let mut first = 0;
    for node in 0..nodes {
        let (queues_left, nodes_left) = (queues - first, nodes - node);
        let share = (queues_left / nodes_left).clamp(1, of_node);
        let (run, longer) = (of_node / share, of_node % share);
        for queue in 0..share {
            let length = run + u16::from(queue < longer);
            by_cpu.extend((0..length).map(|_| first + queue));
        }
        first += share;
    }
    by_cpu
}

fn in_turn(topology: &Topology, queues: u16) -> Vec<u16> {
    let mut by_cpu: Vec<u16> = Vec::new();
    let mut next = 0;
    for cpu in 0..topology.cpus() as u16 {
        let first = topology.around(cpu, Distance::Core).start;
        if next < queues || first == cpu {
            by_cpu.push(next % queues);
            next += 1;
        } else {
            by_cpu.push(by_cpu[usize::from(first)]);
        }
    }
    by_cpu
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn topology(nodes: u16, cores: u16, threads: u16) -> Topology {
        Topology { numa_nodes: nodes, sockets_per_node: 1, cores_per_socket: cores, threads_per_core: threads }
    }

    #[test]
    fn cpus_of_a_node_share_its_queues_in_runs() {
        let map = |nodes, cores, queues| QueueMap::new(QueueSpread::ByNode, &topology(nodes, cores, 1), queues).by_cpu;
        assert_eq!(map(1, 8, 4), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(map(1, 8, 3), [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(map(2, 4, 3), [0, 0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(map(4, 2, 2), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(map(2, 2, 8), [0, 1, 2, 3]);
    }

    #[test]
    fn older_kernels_spread_cpus_in_their_own_ways() {
        let map = |spread, queues| QueueMap::new(spread, &topology(1, 8, 1), queues).by_cpu;
        assert_eq!(map(QueueSpread::EqualRuns, 3), [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(map(QueueSpread::EqualRuns, 5), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(map(QueueSpread::Proportional, 5), [0, 0, 1, 1, 2, 3, 3, 4]);
        assert_eq!(map(QueueSpread::InTurn, 3), [0, 1, 2, 0, 1, 2, 0, 1]);
        let threads = topology(1, 4, 2);
        let of_threads = |spread, queues| QueueMap::new(spread, &threads, queues).by_cpu;
        assert_eq!(of_threads(QueueSpread::Proportional, 4), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(of_threads(QueueSpread::Proportional, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(of_threads(QueueSpread::InTurn, 2), [0, 1, 0, 0, 1, 1, 0, 0]);
    }

    #[test]
    fn a_queue_interrupts_the_first_cpu_that_submits_to_it() {
        let map = QueueMap::new(QueueSpread::ByNode, &topology(1, 8, 1), 2);
        let interrupted = (0..8).map(|cpu| map.interrupts(cpu)).collect::<Vec<_>>();
        assert_eq!(interrupted, [0, 0, 0, 0, 4, 4, 4, 4]);
    }

    proptest! {
        #[test]
        fn every_cpu_has_a_queue(
            nodes in 1u16..5,
            cores in 1u16..9,
            threads in 1u16..3,
            queues in 1u16..80,
            which in 0usize..4,
        ) {
            let spread = [
                QueueSpread::EqualRuns,
                QueueSpread::Proportional,
                QueueSpread::ByNode,
                QueueSpread::InTurn,
            ][which];
            let topology = topology(nodes, cores, threads);
            let map = QueueMap::new(spread, &topology, queues);
            prop_assert_eq!(map.by_cpu.len() as u64, topology.cpus());
            prop_assert!(map.by_cpu.iter().all(|&queue| queue < queues));
            if spread == QueueSpread::ByNode && queues <= nodes * cores * threads && queues > nodes {
                for queue in 0..queues {
                    prop_assert!(map.by_cpu.contains(&queue), "queue {} of {}", queue, queues);
                }
            }
        }
    }
}
