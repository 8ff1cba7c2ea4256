//! In which order tasks that want a CPU get one.
//!
//! Source: `kernel/sched_fair.c` of 2.6.23, the first release with CFS; `kernel/sched/fair.c` of 6.1, 6.6 and 6.12.

use crate::release::Kernel;

/// The order of tasks of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOrder {
    /// Who came first: a simplification of the schedulers before 2.6.23.
    InLine,
    /// Who has had the least CPU time of late: CFS, from 2.6.23 on.
    ByTimeHad,
    /// Whose virtual deadline is the first, of those that have had no more than the mean: EEVDF, from 6.6 on.
    ByDeadline {
        /// Who sleeps and has had more than the mean counts on until it has not: from 6.12 on (`DELAY_DEQUEUE`).
        delays: bool,
    },
}

impl Kernel {
    /// In which order tasks get simple CPUs.
    pub fn task_order(&self) -> TaskOrder {
        match self.version {
            version if version < [2, 6, 23] => TaskOrder::InLine,
            version if version < [6, 6, 0] => TaskOrder::ByTimeHad,
            version => TaskOrder::ByDeadline { delays: version >= [6, 12, 0] },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cfs_came_with_2_6_23_and_eevdf_with_6_6() {
        let order = |name| Kernel::named(name).unwrap().task_order();
        assert_eq!(order("2.6.22"), TaskOrder::InLine);
        assert_eq!(order("2.6.23"), TaskOrder::ByTimeHad);
        assert_eq!(order("6.5"), TaskOrder::ByTimeHad);
        let by_deadline = |delays| TaskOrder::ByDeadline { delays };
        assert_eq!(order("6.6"), by_deadline(false));
        assert_eq!(order("6.12.117"), by_deadline(true));
    }
}
