//! In which order tasks that want a CPU get one.
//!
//! Source: `kernel/sched_fair.c` of 2.6.23, the first release with CFS, and `kernel/sched/fair.c` of 6.1.

use crate::release::Kernel;

/// The order of tasks of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOrder {
    /// Who came first: a simplification of the schedulers before 2.6.23.
    InLine,
    /// Who has had the least CPU time of late: CFS, from 2.6.23 on.
    ByTimeHad,
}

impl Kernel {
    /// In which order tasks get simple CPUs.
    pub fn task_order(&self) -> TaskOrder {
        match self.version {
            version if version < [2, 6, 23] => TaskOrder::InLine,
            _ => TaskOrder::ByTimeHad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cfs_came_with_2_6_23() {
        let order = |name| Kernel::named(name).unwrap().task_order();
        assert_eq!(order("2.6.22"), TaskOrder::InLine);
        assert_eq!(order("2.6.23"), TaskOrder::ByTimeHad);
    }
}
