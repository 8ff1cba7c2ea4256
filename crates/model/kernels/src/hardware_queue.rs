//! blk-mq by kernels: whose turn it is when tags are freed, which CPU submits where, when queues are run.
//!
//! Source: docs/model/sources/blk-mq.md.

use base::time::{MILLISECOND, Time};

use crate::release::Kernel;

/// Which tasks a kernel wakes when tags are freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagWakeRule {
    /// 3.13 to 3.15: all, for each tag; who came last first.
    All,
    /// 3.16 to 4.17: all of one wait queue for each batch of tags; who came last first.
    AllOfOne,
    /// 4.18 to 6.1: of one wait queue as many as the batch has tags.
    BatchOfOne,
    /// From 6.2 on: as many as the batch has tags, of as many wait queues as it takes.
    Batch,
}

/// What a limit of the tags that a bio may have counts (`shallow_depth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagLimit {
    /// Tags of each word.
    OfWord,
    /// All tags: from 6.12.43 and from 6.16.2 on ("lib/sbitmap: convert shallow_depth from one word to the whole sbitmap",
    /// in the announcement of 6.12.43-rc1; that of 6.16.2 is inferred from the date of its tree).
    OfAll,
}

/// How a kernel spreads CPUs over hardware queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSpread {
    /// 3.13 to 3.19: runs of CPUs, each as long as the longest has to be, so that the last queues may have none; threads
    /// of a core share one.
    EqualRuns,
    /// 4.0 to 4.9: over all queues in proportion; threads of a core share one.
    Proportional,
    /// From 4.10 on for devices with interrupts that the kernel manages (PCI): each NUMA node has its part of the queues,
    /// and each queue a run of the node's CPUs.
    ByNode,
    /// 4.10 to 6.2 for devices without such interrupts (`null_blk`): in turn; further threads of a core that has one join it.
    InTurn,
}

/// When queues ask their scheduler for requests, apart from new requests, its timers, and tags that were waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// After each completion: drivers of queues before blk-mq, and SCSI's until 5.9 (`scsi_run_queue_async`).
    pub after_completions: bool,
    /// So long after the scheduler had requests and gave none; None: not for that.
    pub again_after_ns: Option<Time>,
    /// A kernel thread runs them for a bio of a task without a plug, and at no other time that was set before
    /// (`blk_mq_submit_bio`); else the task does.
    pub by_thread: bool,
    /// They take one more request from their scheduler than the device takes commands, and hold it back until there is
    /// a tag (`__blk_mq_do_dispatch_sched`). SCSI's driver has a budget, without which nothing is asked for
    /// (`scsi_mq_get_budget`).
    pub pulls_ahead: bool,
}

impl Kernel {
    /// Which tasks that wait for a tag of blk-mq are woken.
    pub fn tag_waking(&self) -> TagWakeRule {
        match self.version {
            version if version < [3, 16, 0] => TagWakeRule::All,
            version if version < [4, 18, 0] => TagWakeRule::AllOfOne,
            version if version < [6, 2, 0] => TagWakeRule::BatchOfOne,
            _ => TagWakeRule::Batch,
        }
    }

    /// What its limits of tags count.
    pub fn tag_limit(&self) -> TagLimit {
        match self.version {
            [6, 12, patch] if patch >= 43 => TagLimit::OfAll,
            version if version >= [6, 16, 2] => TagLimit::OfAll,
            _ => TagLimit::OfWord,
        }
    }

    /// When its hardware queues are run. SCSI's driver stopped running them after each completion in 5.10; those that keep
    /// what they have are asked again after 3 ms from 5.8 on (`BLK_MQ_BUDGET_DELAY`; both are patches of 2020, the releases
    /// inferred). `__submit_bio` of 6.12 has a plug for each bio, that of 6.1 none: from 6.10 on is inferred.
    pub fn queue_runs(&self, is_scsi: bool) -> Runs {
        Runs {
            after_completions: is_scsi && self.version < [5, 10, 0],
            again_after_ns: (self.version >= [5, 8, 0]).then_some(3 * MILLISECOND),
            by_thread: self.version < [6, 10, 0],
            pulls_ahead: !is_scsi,
        }
    }

    /// How it spreads CPUs over hardware queues.
    pub fn queue_spread(&self, manages_interrupts: bool) -> QueueSpread {
        match self.version {
            version if version < [4, 0, 0] => QueueSpread::EqualRuns,
            version if version < [4, 10, 0] => QueueSpread::Proportional,
            version if version < [6, 3, 0] && !manages_interrupts => QueueSpread::InTurn,
            _ => QueueSpread::ByNode,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_tags_count_all_of_them_from_6_12_43_and_6_16_2_on() {
        let limit = |release| Kernel::named(release).unwrap().tag_limit();
        for of_word in ["5.10.1", "6.1.192", "6.12", "6.12.42", "6.13.1", "6.16.1"] {
            assert_eq!(limit(of_word), TagLimit::OfWord, "{of_word}");
        }
        for of_all in ["6.12.43", "6.12.117", "6.16.2", "6.17"] {
            assert_eq!(limit(of_all), TagLimit::OfAll, "{of_all}");
        }
    }
}
