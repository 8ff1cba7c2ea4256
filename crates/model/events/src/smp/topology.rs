//! Where a CPU sits. CPUs are numbered NUMA node by NUMA node, socket by socket, core by core.

use std::ops::Range;

use serde::Deserialize;

/// How many of each there are in the next larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Parts of the machine with memory of their own: NUMA nodes.
    pub numa_nodes: u16,
    /// Sockets in a NUMA node.
    pub sockets_per_node: u16,
    /// Cores in a socket.
    pub cores_per_socket: u16,
    /// Hardware threads of a core.
    pub threads_per_core: u16,
}

/// The smallest part of the machine that has both of two different CPUs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// The same core: the other is its sibling thread.
    Core,
    /// The same socket.
    Socket,
    /// The same NUMA node.
    Node,
    /// Different NUMA nodes.
    Machine,
}

/// The number of distances.
pub const DISTANCES: usize = 4;

impl Topology {
    /// One socket with this number of cores in one NUMA node.
    pub fn flat(cpus: u16) -> Topology {
        Topology { numa_nodes: 1, sockets_per_node: 1, cores_per_socket: cpus, threads_per_core: 1 }
    }

    /// The number of CPUs: the product of all.
    pub fn cpus(&self) -> u64 {
        [self.numa_nodes, self.sockets_per_node, self.cores_per_socket, self.threads_per_core]
            .into_iter()
            .map(u64::from)
            .product()
    }

    /// The CPUs at most this far from `cpu`, itself included.
    pub fn around(&self, cpu: u16, distance: Distance) -> Range<u16> {
        let size = match distance {
            Distance::Core => self.threads_per_core,
            Distance::Socket => self.cpus_per_socket(),
            Distance::Node => self.cpus_per_node(),
            Distance::Machine => return 0..self.cpus() as u16,
        };
        let first = cpu / size * size;
        first..first + size
    }

    /// None: they are the same.
    #[inline]
    pub fn distance(&self, one: u16, other: u16) -> Option<Distance> {
        if one == other {
            return None;
        }
        let together = |size: u16| one / size == other / size;
        Some(if together(self.threads_per_core) {
            Distance::Core
        } else if together(self.cpus_per_socket()) {
            Distance::Socket
        } else if together(self.cpus_per_node()) {
            Distance::Node
        } else {
            Distance::Machine
        })
    }

    fn cpus_per_socket(&self) -> u16 {
        self.cores_per_socket * self.threads_per_core
    }

    fn cpus_per_node(&self) -> u16 {
        self.sockets_per_node * self.cpus_per_socket()
    }
}

impl Distance {
    /// All, nearest first.
    pub const ALL: [Distance; DISTANCES] = [Distance::Core, Distance::Socket, Distance::Node, Distance::Machine];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_the_smallest_part_with_both() {
        let topology = Topology { numa_nodes: 2, sockets_per_node: 2, cores_per_socket: 2, threads_per_core: 2 };
        assert_eq!(topology.cpus(), 16);
        assert_eq!(topology.distance(5, 5), None);
        assert_eq!(topology.distance(4, 5), Some(Distance::Core));
        assert_eq!(topology.distance(4, 7), Some(Distance::Socket));
        assert_eq!(topology.distance(3, 4), Some(Distance::Node));
        assert_eq!(topology.distance(7, 8), Some(Distance::Machine));
        assert_eq!(topology.around(13, Distance::Socket), 12..16);
        assert_eq!(topology.around(13, Distance::Machine), 0..16);
    }
}
