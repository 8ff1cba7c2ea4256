//! Kernels by version: what of the block layer, the page cache and the filesystems follows from it.
//!
//! Sources: the pages of docs/model/sources/README.md, which name the versions that were read. If a change lies between two of
//! them, the version given here is inferred.

use crate::world::{FileReads, SyncWrites};
use block_layer::completion::CompletionVariant;
use block_layer::plug::PlugRules;
use block_layer::pool::PoolRules;
use block_layer::scheduler::spec::{Version, mm_patch, version};
use block_layer::{Merges, TagWaking, TaskPlug};
use block_layer::{QueueRules, QueueSpread, Runs};
use events::time::MILLISECOND;
use filesystems::xfs::{Allocation, Checkpoints};
use memory::cache::{CacheVariant, DirtyLimits, FsyncHolds, Lately, ReadAhead};
use memory::swap::ReclaimKind;

/// A kernel that machines can have.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    version: Version,
    /// The number of its -mm patch.
    mm: Option<u32>,
}

impl Kernel {
    /// Such as 2.4.20, 2.5.59-mm2, 2.6.35-group-idle-v2, 6.1 or 6.x; None: that is no version of Linux.
    pub fn named(name: &str) -> Option<Kernel> {
        let version = version(name)?;
        let mm = mm_patch(name);
        (version >= [2, 4, 0]).then(|| Kernel {
            name: name.to_owned(),
            version,
            mm,
        })
    }

    /// The version as it was given.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Clock ticks a second, as most were configured on x86.
    pub fn hz(&self) -> u32 {
        match self.version {
            [2, 4, _] => 100,
            [2, ..] => 1000,
            _ => 250,
        }
    }

    /// The scheduler of a device for which none is chosen.
    pub fn default_scheduler(&self, hardware_queues: u16) -> &'static str {
        match self.version {
            version if version < [2, 5, 39] => "linus",
            // From 2.5.59-mm7 to 2.5.60 it was among the experiments that were left out.
            [2, 5, 59] if matches!(self.mm, Some(5 | 6)) => "anticipatory",
            version if version >= [2, 5, 61] && self.mm.is_some() && version < [2, 6, 18] => {
                "anticipatory"
            }
            version if version < [2, 5, 75] => "deadline",
            version if version < [2, 6, 18] => "anticipatory",
            version if version < [5, 0, 0] => "cfq",
            _ if hardware_queues == 1 => "mq-deadline",
            _ => "none",
        }
    }

    /// What its request queues allow by default: sizes, merges, pool and plug (docs/model/sources/plugging.md).
    pub(super) fn queue_rules(&self, rotational: bool, queue_depth: u32) -> QueueRules {
        let self_unplugs =
            self.version >= [2, 5, 60] || self.mm.is_some() && self.version >= [2, 5, 51];
        // A device of one command is taken for an IDE disk, others for SCSI, whose driver takes requests out.
        let leaves_head = self.version < [2, 6, 0] && queue_depth == 1;
        QueueRules {
            request_sectors_max: if self.version < [2, 6, 8] { 255 } else { 1024 },
            request_segments_max: 128,
            merges: Merges::All,
            pool: match self.version {
                [2, 4, _] => PoolRules::LINUX_2_4_20,
                version if version < [2, 6, 0] => PoolRules::LINUX_2_5_59,
                version => PoolRules {
                    merges_after_waiting: version < [2, 6, 13],
                    ..PoolRules::LINUX_2_6_35
                },
            },
            pool_by_sync: self.version >= [2, 6, 30],
            plug: if self.tasks_plug() || self.leaves_unplugged(rotational, queue_depth) {
                PlugRules::NONE
            } else if self_unplugs {
                PlugRules::SELF.with_head(leaves_head)
            } else {
                PlugRules::EXPLICIT.with_head(leaves_head)
            },
        }
    }

    /// Which tasks that wait for a tag of blk-mq are woken.
    pub(super) fn tag_waking(&self) -> TagWaking {
        match self.version {
            version if version < [3, 16, 0] => TagWaking::All,
            version if version < [4, 18, 0] => TagWaking::AllOfOne,
            version if version < [6, 2, 0] => TagWaking::BatchOfOne,
            _ => TagWaking::Batch,
        }
    }

    /// Of which writes schedulers see that somebody waits for them. `PF_SYNCWRITE` says so of a task, in fsync until 2.6.17 and
    /// in `__blockdev_direct_IO` from 2.6.11 (December 2004) on; then direct I/O says it by the bio itself (`WRITE_SYNC`).
    /// fsync does so again from 2.6.30 on (`WB_SYNC_ALL` in `__block_write_full_page`), and so do commits.
    pub fn sync_writes(&self) -> SyncWrites {
        SyncWrites {
            direct: self.version >= [2, 6, 11],
            of_fsync: self.version < [2, 6, 18] || self.version >= [2, 6, 30],
            of_journal: self.version >= [2, 6, 30],
        }
    }

    /// Whether a queue in front of such a device is never plugged: without seeks from 2.6.28 on, and from 2.6.30 on only if it
    /// takes several commands (`queue_should_plug`; where it was added is inferred). Depth stands for `blk_queue_tagged`.
    fn leaves_unplugged(&self, rotational: bool, queue_depth: u32) -> bool {
        let is_known = self.version >= [2, 6, 28];
        is_known && !rotational && (queue_depth > 1 || self.version < [2, 6, 30])
    }

    /// Disks of parallel ATA are the IDE driver's, until libata has them (2.6.19).
    pub(super) fn has_parallel_ata_by_ide(&self) -> bool {
        self.version < [2, 6, 19]
    }

    /// Whether the number of requests is a tunable.
    pub fn has_nr_requests(&self) -> bool {
        self.version >= [2, 6, 0]
    }

    /// Whether queues of blk-mq throttle writeback (`CONFIG_BLK_WBT_MQ`, on by default from 4.10 on). BFQ turns it off for
    /// its queue, unless somebody asks for it (`wbt_disable_default`).
    pub fn throttles_writeback(&self) -> bool {
        self.version >= [4, 10, 0]
    }

    /// Whether a buffered read that is longer than the read-ahead window is read in one go, up to the largest request
    /// (`bdi->io_pages`, 4.10).
    pub fn reads_requests_whole(&self) -> bool {
        self.version >= [4, 10, 0]
    }

    /// Whether a task plugs for a whole buffered read: from 2.6.39 on ("fs: make generic file read/write functions plug") until
    /// 3deaa719 of 3.3, which is in 3.0.21 too, and in 3.2.6 of the same day (inferred).
    pub(super) fn plugs_reads(&self) -> bool {
        match self.version {
            [3, 0, patch] => patch < 21,
            version => ([2, 6, 39]..[3, 2, 6]).contains(&version),
        }
    }

    /// No window is larger (`MAX_READAHEAD` in `max_sane_readahead`, 3.15 to 4.3).
    pub fn read_ahead_bytes_max(&self) -> u64 {
        match self.version {
            version if ([3, 15, 0]..[4, 4, 0]).contains(&version) => 2 << 20,
            _ => u64::MAX,
        }
    }

    /// Whether fsync ends with a flush of the drive's cache, whatever the filesystem (`REQ_FLUSH`, 2.6.37). Before, barriers
    /// did that where they were on, which ext3 left off; here never.
    pub fn flushes_caches(&self) -> bool {
        self.version >= [2, 6, 37]
    }

    /// For how long an fsync keeps others from writing to its file. In 2.4 and 2.5 `sys_fsync` takes `i_sem` before it writes the
    /// data, from 2.6.10 on (the first that was read; inferred) around `f_op->fsync` only. From 3.1 on that takes `i_mutex`
    /// itself (02c24a82187d): XFS does not, ext4 does until 3.10 (92e6222dfb85; ext3 is taken as the same).
    pub fn fsync_holds(&self, is_xfs: bool) -> FsyncHolds {
        match self.version {
            version if version < [2, 6, 10] => FsyncHolds::All,
            version if version < [3, 1, 0] => FsyncHolds::Commit,
            version if version < [3, 11, 0] && !is_xfs => FsyncHolds::Commit,
            _ => FsyncHolds::Nothing,
        }
    }

    /// Whether tasks can poll for completions (`blk_poll`, 4.4).
    pub fn polls(&self) -> bool {
        self.version >= [4, 4, 0]
    }

    /// Whether they can sleep first: hybrid polling came with 4.10 and left with 6.4.
    pub fn polls_with_delay(&self) -> bool {
        self.version >= [4, 10, 0] && self.version < [6, 4, 0]
    }

    /// Whether it has io_uring.
    pub fn has_rings(&self) -> bool {
        self.version >= [5, 1, 0]
    }

    /// Whether tasks plug for themselves, instead of the queue.
    fn tasks_plug(&self) -> bool {
        self.version >= [2, 6, 39]
    }

    /// When its hardware queues are run. SCSI's driver stopped running them after each completion in 5.10; those that keep
    /// what they have are asked again after 3 ms from 5.8 on (`BLK_MQ_BUDGET_DELAY`; both are patches of 2020, the releases
    /// inferred).
    pub(super) fn queue_runs(&self, is_scsi: bool) -> Runs {
        Runs {
            after_completions: is_scsi && self.version < [5, 10, 0],
            again_after_ns: (self.version >= [5, 8, 0]).then_some(3 * MILLISECOND),
        }
    }

    /// How it spreads CPUs over hardware queues.
    pub(super) fn queue_spread(&self, manages_interrupts: bool) -> QueueSpread {
        match self.version {
            version if version < [4, 0, 0] => QueueSpread::EqualRuns,
            version if version < [4, 10, 0] => QueueSpread::Proportional,
            version if version < [6, 3, 0] && !manages_interrupts => QueueSpread::InTurn,
            _ => QueueSpread::ByNode,
        }
    }

    /// How requests are completed; the two variants of February 2008 are patches of 2.6.24.
    pub fn completion_form(&self, is_multi_queue: bool) -> CompletionVariant {
        match self.version {
            // "complete request softirq if single hw queue", 4.20.
            version if is_multi_queue && version < [4, 20, 0] => {
                CompletionVariant::MultiQueueDirect
            }
            _ if is_multi_queue => CompletionVariant::MultiQueue,
            [2, 6, 24] if self.name.ends_with("-remote-softirq") => {
                CompletionVariant::RemoteSoftirq
            }
            [2, 6, 24] if self.name.ends_with("-kthread") => CompletionVariant::Thread,
            version if version < [2, 6, 28] => CompletionVariant::Softirq,
            version if version < [3, 1, 0] => CompletionVariant::Grouped,
            _ => CompletionVariant::CacheAware,
        }
    }

    /// `rq_affinity` where nothing is said: on by default from 2.6.32 on (`QUEUE_FLAG_DEFAULT`).
    pub fn rq_affinity(&self) -> u8 {
        u8::from(self.version >= [2, 6, 32])
    }

    /// What a task of this kernel holds back: `BLK_MAX_REQUEST_COUNT`, 16 until it became 32 in 5.16.
    pub fn task_plug(&self) -> Option<TaskPlug> {
        let most = if self.version < [5, 16, 0] { 16 } else { 32 };
        self.tasks_plug().then(|| TaskPlug::new(most))
    }

    /// Which of the simulated page caches it has.
    pub(super) fn cache_generation(&self) -> CacheVariant {
        match self.version {
            [2, 4, _] => CacheVariant::Linux2_4,
            version if version < [2, 6, 6] => CacheVariant::Linux2_5,
            version if version < [2, 6, 32] => CacheVariant::Linux2_6_18,
            version if version < [3, 2, 0] => CacheVariant::Linux2_6_35,
            _ => CacheVariant::Linux3_2,
        }
    }

    /// How it reads ahead: with a change in nearly every release of 2004, anew from 2.6.11 on, and on demand from 2.6.23 on
    /// (122a21d11cbf).
    pub(super) fn read_ahead(&self) -> ReadAhead {
        match self.version {
            [2, 4, _] => ReadAhead::Linux2_4,
            version if version < [2, 6, 0] => ReadAhead::Linux2_5,
            [2, 6, 0] => ReadAhead::Linux2_6_0,
            [2, 6, 1] => ReadAhead::Linux2_6_1,
            version if version < [2, 6, 5] => ReadAhead::Linux2_6_2,
            version if version < [2, 6, 7] => ReadAhead::Linux2_6_5,
            [2, 6, 7] => ReadAhead::Linux2_6_7,
            [2, 6, 8] => ReadAhead::Linux2_6_8,
            version if version < [2, 6, 11] => ReadAhead::Linux2_6_9,
            [2, 6, 11] => ReadAhead::Linux2_6_11,
            version if version < [2, 6, 17] => ReadAhead::Linux2_6_12,
            version if version < [2, 6, 23] => ReadAhead::Linux2_6_17,
            version if version < [2, 6, 31] => ReadAhead::Linux2_6_23,
            version if version < [2, 6, 34] => ReadAhead::Linux2_6_31,
            version if version < [2, 6, 39] => ReadAhead::Linux2_6_34,
            version if version < [3, 12, 0] => ReadAhead::Linux2_6_39,
            version if version < [4, 18, 0] => ReadAhead::Linux3_12,
            version if version < [6, 11, 0] => ReadAhead::Linux4_18,
            _ => ReadAhead::Linux6_11,
        }
    }

    /// What may be dirty. Each version is the first release with the change; those of 2.6.20 and 2.6.24 are inferred.
    pub(super) fn dirty_limits(&self) -> DirtyLimits {
        match self.version {
            [2, 4, _] => DirtyLimits::Linux2_4,
            version if version < [2, 6, 20] => DirtyLimits::Linux2_5,
            version if version < [2, 6, 22] => DirtyLimits::Linux2_6_20,
            version if version < [2, 6, 24] => DirtyLimits::Linux2_6_22,
            version if version < [2, 6, 29] => DirtyLimits::Linux2_6_24,
            version if version < [3, 14, 0] => DirtyLimits::Linux2_6_29,
            _ => DirtyLimits::Linux3_14,
        }
    }

    /// How drives share the limit of dirty pages, if they do: from 2.6.24 on (`bdi_writeout_fraction`).
    pub(super) fn drives_share_limits(&self) -> Option<Lately> {
        match self.version {
            version if version < [2, 6, 24] => None,
            version if version < [3, 6, 0] => Some(Lately::Pages),
            _ => Some(Lately::Time),
        }
    }

    /// Whether a CPU looks at what is dirty once per 8 pages while there is too much (`dirty_exceeded`). 2.5.73 does; 2.5.59 is
    /// not known to.
    pub(super) fn looks_often_beyond_limit(&self) -> bool {
        self.version >= [2, 5, 73]
    }

    /// Whether a throttled writer writes back only while its drive has more than its limit waiting (2.6.31, d7831a0bdf06, which
    /// slowed writers down: <https://lore.kernel.org/all/20090929001504.GA18192@localhost/T/>). Later kernels kept that, with
    /// other waits; it is not simulated of them.
    pub(super) fn writes_back_only_beyond_limit(&self) -> bool {
        self.version == [2, 6, 31]
    }

    /// How files are read through the page cache: buffer by buffer in 2.4 (`block_read_full_page`), later in bios that end
    /// each by itself (`mpage_end_io`). From 4.3 on, what is too large for a request is cut from one bio, which ends as a
    /// whole (`blk_queue_split`).
    pub(super) fn file_reads(&self) -> FileReads {
        const PAGE: u32 = 8;
        match self.version {
            [2, 4, _] => FileReads {
                bio_sectors_max: PAGE,
                bios_end_alone: true,
            },
            version if version < [4, 3, 0] => FileReads {
                bios_end_alone: true,
                ..FileReads::LATEST
            },
            _ => FileReads::LATEST,
        }
    }

    /// The largest bio in which files are written back. Buffer by buffer in 2.4; in 2.5 ext3 in ordered mode page by page,
    /// and what has no journal 16 pages at once (docs/model/sources/page-cache.md#writeback). What follows is as general
    /// knowledge has it: ext4, from 2.6.19 on, submits what it has.
    pub fn write_bio_sectors_max(&self, journaled: bool) -> u32 {
        const PAGE: u32 = 8;
        match self.version {
            [2, 4, _] => PAGE,
            version if journaled && version < [2, 6, 19] => PAGE,
            version if version < [2, 6, 19] => 16 * PAGE,
            _ => 256 * PAGE,
        }
    }

    /// How it finds pages to swap out. The reverse map came with 2.5.27; what later kernels made of it (lists by kind of
    /// page, a swap token) is not simulated.
    pub fn reclaim(&self) -> ReclaimKind {
        if self.version < [2, 5, 27] {
            ReclaimKind::VirtualScan
        } else {
            ReclaimKind::ReverseMap
        }
    }

    /// Of memory, what files keep of their pages before processes swap: from 2.6.0 on reclaim leaves mapped pages alone as
    /// long as half their percentage and `swappiness` (60) are less than 100 together (`refill_inactive_zone`). Before, and
    /// of later kernels with lists by kind of page, inferred.
    pub fn files_keep_percent(&self) -> u64 {
        match self.version < [2, 6, 0] {
            true => 0,
            false => 20,
        }
    }

    /// Whether ext2 and ext3 begin a task's files at one of 16 places.
    pub fn start_colours(&self) -> bool {
        self.version >= [2, 5, 53]
    }

    /// Whether ext3 reserves windows.
    pub fn reserves_windows(&self) -> bool {
        self.version >= [2, 6, 10]
    }

    /// Where XFS runs its allocator: since c999a223 (3.4) in a workqueue, since 3.6 only for data, since 1f3c785c (taken as
    /// 3.7) all of a mapping's calls in one worker, since cf11da9c (3.16) only a split in the tree of a file's extents, which
    /// is left out.
    pub fn xfs_allocation(&self) -> Allocation {
        match self.version {
            version if version < [3, 4, 0] => Allocation::Direct,
            version if version < [3, 6, 0] => Allocation::Workqueue,
            version if version < [3, 7, 0] => Allocation::DataOnly,
            version if version < [3, 16, 0] => Allocation::Mapping,
            _ => Allocation::Direct,
        }
    }

    /// Who writes XFS' checkpoints: since 4c2d542f (taken as 3.5) a worker of the CPU of whoever committed last, since 5.14 one
    /// of no CPU.
    pub fn xfs_checkpoints(&self) -> Checkpoints {
        match self.version {
            version if version < [3, 5, 0] => Checkpoints::ByCommitter,
            version if version < [5, 14, 0] => Checkpoints::ByBoundWorker,
            _ => Checkpoints::ByWorker,
        }
    }

    /// ext3 mounts with barriers by default: from 3.1 on (00eacd66).
    pub fn ext3_has_barriers(&self) -> bool {
        self.version >= [3, 1, 0]
    }

    /// Whether XFS commits into memory and writes checkpoints without being asked (`delaylog`): the default from 2.6.39 on.
    pub fn xfs_delays_log(&self) -> bool {
        self.version >= [2, 6, 39]
    }

    /// Whether ext4 exists.
    pub fn has_ext4(&self) -> bool {
        self.version >= [2, 6, 19]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block_layer::scheduler::invariants::bench::bio;
    use block_layer::{Bio, Direction};

    fn kernel(name: &str) -> Kernel {
        Kernel::named(name).unwrap()
    }

    #[test]
    fn what_is_no_version_of_linux_is_not_one() {
        for name in ["", "linux", "2", "2.2.26", "-mm1"] {
            assert!(Kernel::named(name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_switch_of_xfs_to_a_worker_moves_from_release_to_release() {
        let variant = |name| kernel(name).xfs_allocation();
        use Allocation::{DataOnly, Direct, Mapping, Workqueue};
        let variants = ["3.3", "3.4", "3.5.7", "3.6", "3.6.11"].map(variant);
        assert_eq!(variants, [Direct, Workqueue, Workqueue, DataOnly, DataOnly]);
        let variants = ["3.7", "3.8", "3.15", "3.16", "6.1"].map(variant);
        assert_eq!(variants, [Mapping, Mapping, Mapping, Direct, Direct]);
    }

    #[test]
    fn a_worker_writes_the_checkpoints_of_xfs_from_3_5_on() {
        let form = |name| kernel(name).xfs_checkpoints();
        use Checkpoints::{ByBoundWorker, ByCommitter, ByWorker};
        let forms = ["3.4", "3.5", "5.13", "5.14"].map(form);
        assert_eq!(forms, [ByCommitter, ByBoundWorker, ByBoundWorker, ByWorker]);
    }

    #[test]
    fn mm_kernels_unplug_themselves_before_the_mainline_does() {
        let plug = |name| kernel(name).queue_rules(true, 32).plug;
        assert_eq!(plug("2.5.59"), PlugRules::EXPLICIT);
        assert_eq!(plug("2.5.51-mm1"), PlugRules::SELF);
        assert_eq!(plug("2.5.60"), PlugRules::SELF);
        assert!(kernel("2.6.38").task_plug().is_none());
        assert!(kernel("2.6.39").task_plug().is_some());
    }

    #[test]
    fn devices_without_seeks_that_take_several_commands_are_not_plugged() {
        let plug = |name, depth| kernel(name).queue_rules(false, depth).plug;
        assert_eq!(plug("2.6.27", 32), PlugRules::SELF);
        assert_eq!(plug("2.6.28", 1), PlugRules::NONE);
        assert_eq!(plug("2.6.35", 1), PlugRules::SELF);
        assert_eq!(plug("2.6.35", 32), PlugRules::NONE);
        assert_eq!(kernel("2.6.35").queue_rules(true, 32).plug, PlugRules::SELF);
    }

    #[test]
    fn a_task_holds_back_more_from_5_16_on() {
        let full_at = |name| {
            let mut plug = kernel(name).task_plug().unwrap();
            let bio = |n: u64| Bio {
                start: n * 100,
                ..bio(0, Direction::Read, 0)
            };
            (1..).find(|&n| plug.hold(0, bio(n))).unwrap()
        };
        assert_eq!(
            (full_at("3.4"), full_at("5.15"), full_at("5.16")),
            (16, 16, 32)
        );
    }

    #[test]
    fn each_kernel_has_the_scheduler_of_its_time() {
        let default = |name| kernel(name).default_scheduler(1);
        assert_eq!(default("2.4.20-pre10"), "linus");
        assert_eq!(default("2.5.53-mm1"), "deadline");
        assert_eq!(default("2.5.59-mm5"), "anticipatory");
        assert_eq!(default("2.5.59-mm7"), "deadline");
        assert_eq!(default("2.5.61"), "deadline");
        assert_eq!(default("2.5.61-mm1"), "anticipatory");
        assert_eq!(default("2.6.17"), "anticipatory");
        assert_eq!(default("2.6.18"), "cfq");
        assert_eq!(default("2.6.35-group-idle-v2"), "cfq");
        assert_eq!(default("6.1"), "mq-deadline");
        assert_eq!(kernel("6.1").default_scheduler(8), "none");
    }

    #[test]
    fn each_kernel_completes_requests_in_its_way() {
        let variant = |name| kernel(name).completion_form(false);
        assert_eq!(variant("2.6.24"), CompletionVariant::Softirq);
        assert_eq!(
            variant("2.6.24-remote-softirq"),
            CompletionVariant::RemoteSoftirq
        );
        assert_eq!(variant("2.6.24-kthread"), CompletionVariant::Thread);
        assert_eq!(variant("2.6.28"), CompletionVariant::Grouped);
        assert_eq!(variant("3.0"), CompletionVariant::Grouped);
        assert_eq!(variant("3.1"), CompletionVariant::CacheAware);
        assert_eq!(
            kernel("4.19").completion_form(true),
            CompletionVariant::MultiQueueDirect
        );
        assert_eq!(
            kernel("6.1").completion_form(true),
            CompletionVariant::MultiQueue
        );
    }

    #[test]
    fn ext3_of_2_5_is_written_page_by_page() {
        assert_eq!(kernel("2.5.59").write_bio_sectors_max(true), 8);
        assert_eq!(kernel("2.5.59").write_bio_sectors_max(false), 128);
        assert_eq!(kernel("2.4.20").write_bio_sectors_max(false), 8);
    }

    #[test]
    fn each_kernel_has_the_dirty_limits_of_its_time() {
        use DirtyLimits::{Linux2_4, Linux2_5, Linux2_6_20, Linux2_6_22, Linux2_6_24};
        let of = |name| kernel(name).dirty_limits();
        let names = ["2.4.20", "2.5.59", "2.6.19", "2.6.21", "2.6.23", "2.6.28"];
        let expected = [
            Linux2_4,
            Linux2_5,
            Linux2_5,
            Linux2_6_20,
            Linux2_6_22,
            Linux2_6_24,
        ];
        assert_eq!(names.map(of), expected);
        use DirtyLimits::{Linux2_6_29, Linux3_14};
        let expected = [Linux2_6_29, Linux2_6_29, Linux3_14];
        assert_eq!(["2.6.29", "3.13", "3.14"].map(of), expected);
    }

    #[test]
    fn an_fsync_holds_off_writers_for_as_long_as_each_kernel_has_it() {
        use FsyncHolds::{All, Commit, Nothing};
        let holds = |name| kernel(name).fsync_holds(false);
        let found = ["2.4.20", "2.6.9", "2.6.11", "3.10", "3.11"].map(holds);
        assert_eq!(found, [All, All, Commit, Commit, Nothing]);
        let holds = |name| kernel(name).fsync_holds(true);
        assert_eq!(["3.0", "3.1"].map(holds), [Commit, Nothing]);
    }

    #[test]
    fn drives_share_the_limit_of_dirty_pages_from_2_6_24_on() {
        let lately = |name| kernel(name).drives_share_limits();
        let found = ["2.6.23", "2.6.24", "3.5", "3.6", "6.1"].map(lately);
        let [pages, time] = [Some(Lately::Pages), Some(Lately::Time)];
        assert_eq!(found, [None, pages, pages, time, time]);
    }

    #[test]
    fn read_ahead_changes_from_release_to_release_until_it_is_on_demand_from_2_6_23_on() {
        use ReadAhead::*;
        let of = |name| kernel(name).read_ahead();
        let names = [
            "2.4.20", "2.5.75", "2.6.0", "2.6.1", "2.6.4", "2.6.6", "2.6.7",
        ];
        let early = [
            Linux2_4, Linux2_5, Linux2_6_0, Linux2_6_1, Linux2_6_2, Linux2_6_5, Linux2_6_7,
        ];
        assert_eq!(names.map(of), early);
        let names = [
            "2.6.8", "2.6.10", "2.6.11", "2.6.12", "2.6.16", "2.6.18", "2.6.22",
        ];
        let by_call = [
            Linux2_6_8,
            Linux2_6_9,
            Linux2_6_11,
            Linux2_6_12,
            Linux2_6_12,
            Linux2_6_17,
            Linux2_6_17,
        ];
        assert_eq!(names.map(of), by_call);
        let names = ["2.6.23", "2.6.32", "2.6.35", "3.0", "3.12", "4.18", "6.12"];
        let on_demand = [
            Linux2_6_23,
            Linux2_6_31,
            Linux2_6_34,
            Linux2_6_39,
            Linux3_12,
            Linux4_18,
            Linux6_11,
        ];
        assert_eq!(names.map(of), on_demand);
    }

    #[test]
    fn reads_are_plugged_as_a_whole_from_2_6_39_to_3_2_5_and_until_3_0_20() {
        let plugs = |name| kernel(name).plugs_reads();
        assert_eq!(["2.6.39.4", "3.0", "3.1.10", "3.2.5"].map(plugs), [true; 4]);
        assert_eq!(["2.6.38", "3.0.21", "3.2.6", "3.3"].map(plugs), [false; 4]);
    }

    #[test]
    fn no_window_is_larger_than_2_mib_from_3_15_to_4_3() {
        let most = |name| kernel(name).read_ahead_bytes_max();
        assert_eq!(["3.15", "4.3"].map(most), [2 << 20; 2]);
        assert_eq!(["3.14", "4.4"].map(most), [u64::MAX; 2]);
    }

    #[test]
    fn schedulers_see_who_waits_for_a_write_as_each_kernel_tells_them() {
        let seen = |name| {
            let SyncWrites {
                direct,
                of_fsync,
                of_journal,
            } = kernel(name).sync_writes();
            (direct, of_fsync, of_journal)
        };
        assert_eq!(seen("2.6.10"), (false, true, false));
        assert_eq!(seen("2.6.17"), (true, true, false));
        assert_eq!(seen("2.6.29"), (true, false, false));
        assert_eq!(seen("2.6.30"), (true, true, true));
    }

    #[test]
    fn pdflush_writes_in_file_order_from_2_6_6_on_and_writers_are_held_to_a_rate_from_3_2_on() {
        let cache = |name| kernel(name).cache_generation();
        assert_eq!(cache("2.6.5"), CacheVariant::Linux2_5);
        assert_eq!(cache("2.6.6"), CacheVariant::Linux2_6_18);
        assert_eq!(cache("2.6.31"), CacheVariant::Linux2_6_18);
        assert_eq!(cache("3.1"), CacheVariant::Linux2_6_35);
        assert_eq!(cache("3.2"), CacheVariant::Linux3_2);
    }

    #[test]
    fn colours_begin_with_2_5_53() {
        assert!(!kernel("2.5.51-mm1").start_colours());
        assert!(kernel("2.5.53-mm1").start_colours());
    }
}
