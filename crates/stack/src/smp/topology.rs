//! Where a CPU sits. CPUs are numbered cell by cell, socket by socket, core by core.

use std::ops::Range;

use serde::Deserialize;

/// How many of each there are in the next larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Parts of the machine with memory of their own: NUMA nodes.
    pub cells: u16,
    pub sockets_per_cell: u16,
    pub cores_per_socket: u16,
    pub threads_per_core: u16,
}

/// The smallest part of the machine that has both of two different CPUs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    Core,
    Socket,
    Cell,
    Machine,
}

pub const DISTANCES: usize = 4;

impl Topology {
    /// One socket of so many cores in one cell.
    pub fn flat(cpus: u16) -> Topology {
        Topology {
            cells: 1,
            sockets_per_cell: 1,
            cores_per_socket: cpus,
            threads_per_core: 1,
        }
    }

    pub fn cpus(&self) -> u64 {
        [
            self.cells,
            self.sockets_per_cell,
            self.cores_per_socket,
            self.threads_per_core,
        ]
        .into_iter()
        .map(u64::from)
        .product()
    }

    /// The CPUs that are at most so far from this one, itself included.
    pub fn around(&self, cpu: u16, distance: Distance) -> Range<u16> {
        let size = match distance {
            Distance::Core => self.threads_per_core,
            Distance::Socket => self.cpus_per_socket(),
            Distance::Cell => self.cpus_per_cell(),
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
        } else if together(self.cpus_per_cell()) {
            Distance::Cell
        } else {
            Distance::Machine
        })
    }

    fn cpus_per_socket(&self) -> u16 {
        self.cores_per_socket * self.threads_per_core
    }

    fn cpus_per_cell(&self) -> u16 {
        self.sockets_per_cell * self.cpus_per_socket()
    }
}

impl Distance {
    pub const ALL: [Distance; DISTANCES] = [
        Distance::Core,
        Distance::Socket,
        Distance::Cell,
        Distance::Machine,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_the_smallest_part_with_both() {
        let topology = Topology {
            cells: 2,
            sockets_per_cell: 2,
            cores_per_socket: 2,
            threads_per_core: 2,
        };
        assert_eq!(topology.cpus(), 16);
        assert_eq!(topology.distance(5, 5), None);
        assert_eq!(topology.distance(4, 5), Some(Distance::Core));
        assert_eq!(topology.distance(4, 7), Some(Distance::Socket));
        assert_eq!(topology.distance(3, 4), Some(Distance::Cell));
        assert_eq!(topology.distance(7, 8), Some(Distance::Machine));
        assert_eq!(topology.around(13, Distance::Socket), 12..16);
        assert_eq!(topology.around(13, Distance::Machine), 0..16);
    }
}
