//! In which order tasks that want a CPU get one.
//!
//! Source: `kernel/sched_fair.c` of 2.6.23, the first release with CFS, and `kernel/sched/fair.c` of 6.1 and 6.12.

use crate::release::Kernel;

/// The order of tasks of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOrder {
    /// Who came first: a simplification of the schedulers before 2.6.23. And of EEVDF, from 6.6 on: a task that wakes is
    /// placed at the mean of all (`place_entity`), and the earliest deadline is next, a slice later for each. What a task
    /// is in debt when it falls asleep is forgotten before it wakes, for one that sleeps often (`DELAY_DEQUEUE`, from 6.12
    /// on).
    InLine,
    /// Who has had the least CPU time of late: CFS, from 2.6.23 to 6.5.
    ByTimeHad,
}

impl Kernel {
    /// In which order tasks get simple CPUs.
    pub fn task_order(&self) -> TaskOrder {
        match self.version {
            version if version >= [2, 6, 23] && version < [6, 6, 0] => TaskOrder::ByTimeHad,
            _ => TaskOrder::InLine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cfs_came_with_2_6_23_and_ended_with_6_5() {
        let order = |name| Kernel::named(name).unwrap().task_order();
        assert_eq!(order("2.6.22"), TaskOrder::InLine);
        assert_eq!(order("2.6.23"), TaskOrder::ByTimeHad);
        assert_eq!(order("6.5"), TaskOrder::ByTimeHad);
        assert_eq!(order("6.12.117"), TaskOrder::InLine);
    }
}
