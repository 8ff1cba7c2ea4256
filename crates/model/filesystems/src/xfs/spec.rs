//! An XFS filesystem as a machine file describes it.

use serde::Deserialize;

use super::writeback::Writeback;
use events::SpecError;
use events::spec_error::within;
use events::time::Time;
pub use kernels::filesystems::Allocation;

/// The table `filesystem` of a drive with `kind = "xfs"`. Blocks are of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = events::spec_error::optional("blocks"))]
pub struct XfsSpec {
    /// Of the whole filesystem; the drive's, if a machine file has none.
    pub blocks: u64,
    /// Allocation groups (`mkfs.xfs -d agcount`).
    #[schemars(range(min = 1, max = AG_COUNT_MAX))]
    pub ag_count: u32,
    /// Size of an inode (`mkfs.xfs -i size`).
    #[serde(default = "inode_bytes")]
    #[schemars(range(min = 256, max = 2048))]
    pub inode_bytes: u32,
    /// Of the internal log (`mkfs.xfs -l size`).
    #[serde(default = "log_blocks")]
    #[schemars(range(min = 512))]
    pub log_blocks: u32,
    /// Buffers of the log (`logbufs`).
    #[serde(default = "log_buffers")]
    #[schemars(range(min = 2, max = 8))]
    pub log_buffers: u32,
    /// Of each of them (`logbsize`).
    #[serde(default = "log_buffer_bytes")]
    #[schemars(range(min = 16384, max = 262_144))]
    pub log_buffer_bytes: u32,
    /// Whether writing the log empties the drive's cache (mount options `barrier` and `nobarrier`).
    #[serde(default = "barrier")]
    pub barrier: bool,
    /// Who runs the allocator; None: as the kernel does.
    pub allocation: Option<Allocation>,
    /// What a transaction's commit adds to the log, relogging of the same buffers taken off.
    #[serde(default = "log_bytes_per_create")]
    #[schemars(range(min = 1, max = 1 << 20))]
    pub log_bytes_per_create: u32,
    /// CPU time of the parts of a call.
    pub cycles: Cycles,
    /// Kernel threads that interrupt the load.
    #[serde(default)]
    pub daemons: Daemons,
    /// How files' data are written back.
    #[serde(default)]
    pub writeback: Writeback,
    /// Allocations of one CPU that the workqueue runs at once (`max_active`), including sleeping ones.
    #[serde(default = "workers_max")]
    #[schemars(range(min = 1, max = 65_536))]
    pub workers_max: u32,
    /// A wait of every allocator call that goes through the workqueue, beyond what the CPUs' model makes it wait.
    #[serde(default)]
    #[schemars(range(max = 1_000_000_000))]
    pub call_stall_ns: Time,
}

/// CPU time of the parts of a call, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cycles {
    /// The program's own, for each file, in user mode.
    #[schemars(range(max = CYCLES_MAX))]
    pub application: u32,
    /// Entering the kernel, finding the path, reserving log space: before any lock.
    #[schemars(range(max = CYCLES_MAX))]
    pub begin: u32,
    /// With the inode header of the group locked: choosing and initialising an inode.
    #[schemars(range(max = CYCLES_MAX))]
    pub inode: u32,
    /// With it and the directory: the entry.
    #[schemars(range(max = CYCLES_MAX))]
    pub entry: u32,
    /// The same, for each data block that the directory has: its free space is looked for from the first on.
    #[schemars(range(max = CYCLES_MAX))]
    pub scan_block: u32,
    /// Into the in-memory log; ends the transaction.
    #[schemars(range(max = CYCLES_MAX))]
    pub commit: u32,
    /// Of these, with the list of the checkpoint locked.
    #[schemars(range(max = CYCLES_MAX))]
    pub commit_locked: u32,
    /// Dentry, file and leaving the kernel: after all locks.
    #[schemars(range(max = CYCLES_MAX))]
    pub end: u32,
    /// Closing a file.
    #[schemars(range(max = CYCLES_MAX))]
    pub close: u32,
    /// Unlinking a file, without commit and allocator.
    #[schemars(range(max = CYCLES_MAX))]
    pub unlink: u32,
    /// One call of the allocator, with the free-space header of the group locked.
    #[schemars(range(max = CYCLES_MAX))]
    pub allocate: u32,
    /// Of the caller and of the worker, when the allocator runs in a worker: making the work and completing it.
    #[schemars(range(max = CYCLES_MAX))]
    pub hand_over: u32,
    /// Writing 4 KiB of a checkpoint into the log's buffers, by whose commit fills it.
    #[schemars(range(max = CYCLES_MAX))]
    pub checkpoint_block: u32,
    /// Making the blocks of written data the file's, when these are on the drive (`xfs_iomap_write_unwritten`): for what lies
    /// in a row, and once more if the worker has slept for the inode's lock.
    #[serde(default)]
    #[schemars(range(max = CYCLES_MAX))]
    pub convert: u32,
    /// Putting together a checkpoint that a sync waits for, by a worker (`xlog_cil_push_work`).
    #[serde(default)]
    #[schemars(range(max = CYCLES_MAX))]
    pub force: u32,
    /// Sending its flush and its write, by a thread that goes before others (`kblockd`).
    #[serde(default)]
    #[schemars(range(max = CYCLES_MAX))]
    pub flush: u32,
}

/// Kernel threads that complete and start writes of log and metadata, wherever they are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Daemons {
    /// Mean rate of wake-ups, each on a CPU drawn at random.
    #[schemars(range(max = 1_000_000))]
    pub wakeups_per_s: u32,
    /// What a wake-up costs.
    #[schemars(range(max = CYCLES_MAX))]
    pub cycles: u32,
}

const CYCLES_MAX: u64 = 100_000_000;
const AG_BLOCKS_MIN: u64 = 4096;
const AG_BLOCKS_MAX: u64 = 1 << 28;
/// Groups' headers are made at once.
const AG_COUNT_MAX: u64 = 65_536;

fn inode_bytes() -> u32 {
    256
}

/// 128 MiB (an estimate: the size that the author's later tests name for machines of that kind; only checkpoints' size
/// follows from it).
fn log_blocks() -> u32 {
    32_768
}

/// (`XLOG_MAX_ICLOGS`.)
fn log_buffers() -> u32 {
    8
}

/// (`XLOG_BIG_RECORD_BSIZE`.)
fn log_buffer_bytes() -> u32 {
    32 << 10
}

fn barrier() -> bool {
    true
}

/// What a workqueue has that names no other (`WQ_DFL_ACTIVE`).
fn workers_max() -> u32 {
    256
}

/// Inode core, a chunk of 128 bytes in each of a directory block and a leaf, and their headers (an estimate).
fn log_bytes_per_create() -> u32 {
    700
}

impl XfsSpec {
    /// Refuses values outside their limits; the error names the key.
    pub fn check(&self) -> Result<(), SpecError> {
        within("ag_count", u64::from(self.ag_count), 1, AG_COUNT_MAX)?;
        let of_group = self.blocks / u64::from(self.ag_count);
        if !(AG_BLOCKS_MIN..=AG_BLOCKS_MAX).contains(&of_group) {
            let what = format!(
                "makes groups of {of_group} blocks, expected {AG_BLOCKS_MIN} to {AG_BLOCKS_MAX}: 16 MiB to 1 TiB"
            );
            return Err(SpecError::of("ag_count", what));
        }
        if ![256, 512, 1024, 2048].contains(&self.inode_bytes) {
            let what = format!("expected 256, 512, 1024 or 2048, found {}", self.inode_bytes);
            return Err(SpecError::of("inode_bytes", what));
        }
        within("log_blocks", u64::from(self.log_blocks), 512, of_group / 2)?;
        within("log_buffers", u64::from(self.log_buffers), 2, 8)?;
        let sizes = [16u32, 32, 64, 128, 256].map(|kib| kib << 10);
        if !sizes.contains(&self.log_buffer_bytes) {
            let what = format!("expected 16384, 32768, 65536, 131072 or 262144, found {}", self.log_buffer_bytes);
            return Err(SpecError::of("log_buffer_bytes", what));
        }
        within("log_bytes_per_create", u64::from(self.log_bytes_per_create), 1, 1 << 20)?;
        within("workers_max", u64::from(self.workers_max), 1, 65_536)?;
        self.writeback.check().map_err(|error| error.within("writeback"))?;
        within("call_stall_ns", self.call_stall_ns, 0, 1_000_000_000)?;
        let Cycles { commit, commit_locked, .. } = self.cycles;
        for (key, cycles) in self.cycles.named() {
            within(&format!("cycles.{key}"), u64::from(cycles), 0, CYCLES_MAX)?;
        }
        within("cycles.commit_locked", u64::from(commit_locked), 0, u64::from(commit))?;
        within("daemons.wakeups_per_s", u64::from(self.daemons.wakeups_per_s), 0, 1_000_000)?;
        within("daemons.cycles", u64::from(self.daemons.cycles), 0, CYCLES_MAX)
    }

    pub(super) fn inodes_per_block(&self) -> u32 {
        super::BLOCK_BYTES / self.inode_bytes
    }

    /// A checkpoint is written when it has this size: an eighth of the log (`XLOG_CIL_SPACE_LIMIT`).
    pub(super) fn checkpoint_bytes(&self) -> u64 {
        u64::from(self.log_blocks) * u64::from(super::BLOCK_BYTES) / 8
    }
}

impl Cycles {
    fn named(&self) -> [(&'static str, u32); 15] {
        [
            ("application", self.application),
            ("begin", self.begin),
            ("inode", self.inode),
            ("entry", self.entry),
            ("scan_block", self.scan_block),
            ("commit", self.commit),
            ("end", self.end),
            ("close", self.close),
            ("unlink", self.unlink),
            ("allocate", self.allocate),
            ("hand_over", self.hand_over),
            ("checkpoint_block", self.checkpoint_block),
            ("convert", self.convert),
            ("force", self.force),
            ("flush", self.flush),
        ]
    }
}
