//! A machine as its file describes it: kernel, CPUs, memory, drives, mounts. From it comes the world that phases run in.

mod build;
mod cpus;
mod drive;
mod drive_cpus;
mod driver;
mod ext_mount;
mod io_cost;
mod memory;
mod queue_keys;
#[cfg(test)]
pub(crate) mod tests;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::drive_name::DriveName;
use crate::world::{SwapArea, World};
use ::memory::swap::{SortLoad, SwapSpec};
use base::units::counted;
use block_layer::completion::CompletionSpec;
use block_layer::scheduler::spec::SchedulerSpec;
use block_layer::{Priority, PriorityPolicy, SECTOR_BYTES, Sector, ThrottleLimits};
use cpus::{CpusPlan, CpusTable};
use drive::{DrivePlan, DriveSpec};
use driver::driver_of;
use events::SpecError;
use events::spec_error::within;
use filesystems::ext::{DataMode, ExtMetadata, Mount, Variant};
use io_cost::IoCostSpec;
use kernels::Kernel;
use memory::MemorySpec;
use nfs::NfsSpec;
pub use queue_keys::QueueSpec;

/// A machine that can be built: everything in it has been checked.
#[derive(Clone, Debug)]
pub struct MachineSpec {
    kernel: Kernel,
    hz: u32,
    cpus: CpusPlan,
    memory: Option<MemorySpec>,
    drives: Vec<DrivePlan>,
    mounts: Vec<NfsSpec>,
    cgroups: Vec<CgroupSpec>,
    io_cost: Option<IoCostSpec>,
    io_priority: Priority,
    swap: Option<SwapSpec>,
}

/// A control group. Those that are not named share the root, with the weight that kernels give it: 1000.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CgroupSpec {
    /// What workloads select it by.
    pub name: String,
    /// Its share of a device against other groups, 1 to 10000.
    #[schemars(range(min = 1, max = 10_000))]
    pub weight: u32,
    /// What it may do a second on each drive; kernels from 2.6.37 on. Left out: anything.
    pub io_max: Option<IoMaxSpec>,
    /// The latency that is protected by holding back groups with a higher one, or none; 4.19 or later, with tags of blk-mq.
    #[schemars(range(min = 1000))]
    pub io_latency_ns: Option<u64>,
    /// What becomes of the priority class of its I/O before mq-deadline; kernels from 6.1 on, `promote-to-rt` from 6.5 on.
    pub io_prio_class: Option<PriorityPolicy>,
}

/// Limits of a control group's I/O, each of at least 1; left out: none.
#[derive(Clone, Copy, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoMaxSpec {
    /// Bytes read per second.
    #[schemars(range(min = 1))]
    pub read: Option<u64>,
    /// Bytes written per second.
    #[schemars(range(min = 1))]
    pub write: Option<u64>,
    /// Reads per second, as they are submitted.
    #[schemars(range(min = 1))]
    pub read_iops: Option<u64>,
    /// Writes per second.
    #[schemars(range(min = 1))]
    pub write_iops: Option<u64>,
}

impl IoMaxSpec {
    fn by_name(self) -> [(&'static str, Option<u64>); 4] {
        [("read", self.read), ("write", self.write), ("read_iops", self.read_iops), ("write_iops", self.write_iops)]
    }

    fn limits(self) -> ThrottleLimits {
        ThrottleLimits { bytes: [self.read, self.write], bios: [self.read_iops, self.write_iops] }
    }
}

/// The file's keys, as they are written. Tables whose reading depends on the kernel state their contents to the schema.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MachineFile")]
pub struct File {
    /// For people.
    #[serde(default)]
    #[expect(dead_code, reason = "a key that files have")]
    title: String,
    /// A version of Linux from 2.4 on.
    kernel: String,
    /// Timer interrupts per second, 10 to 10000; left out: the kernel's.
    #[schemars(range(min = 10, max = 10_000))]
    hz: Option<u32>,
    /// Simple, or detailed if there is a `topology`.
    #[schemars(with = "CpusTable")]
    cpus: Table,
    /// What completing costs; of detailed CPUs only.
    #[schemars(with = "Option<CompletionSpec>")]
    completion: Option<Table>,
    /// Memory and page cache; left out: loads use direct I/O only.
    memory: Option<MemorySpec>,
    /// May be none if there are mounts.
    #[serde(default)]
    drives: Vec<DriveSpec>,
    /// NFS mounts.
    #[serde(default)]
    #[schemars(with = "Vec<NfsSpec>")]
    mounts: Vec<Value>,
    /// Control groups other than the root.
    #[serde(default)]
    cgroups: Vec<CgroupSpec>,
    /// What groups share drives by, if not by a scheduler.
    io_cost: Option<IoCostSpec>,
    /// Of all tasks: `rt/0` to `rt/7`, `be/0` to `be/7`, or `idle`.
    io_priority: Option<String>,
    /// Where what memory does not hold goes to.
    #[schemars(with = "Option<SwapSpec>")]
    swap: Option<Value>,
}

const DRIVES_MAX: usize = 1024;
const MOUNTS_MAX: usize = 64;
const CGROUPS_MAX: usize = 1024;

impl MachineSpec {
    /// From a machine file's tables, as JSON.
    pub fn from_json(file: Value) -> Result<MachineSpec, SpecError> {
        let file: File = read("", file)?;
        let kernel = Kernel::named(&file.kernel).ok_or_else(|| {
            let what = format!(
                "expected a version of Linux from 2.4 on, such as 2.4.20, 2.5.59-mm2 or 6.1, found {:?}",
                file.kernel
            );
            SpecError::of("kernel", what)
        })?;
        let hz = file.hz.unwrap_or(kernel.hz());
        within("hz", u64::from(hz), 10, 10_000)?;
        let mut cpus = CpusPlan::read(file.cpus)?;
        within("mounts", file.mounts.len() as u64, 0, MOUNTS_MAX as u64)?;
        let drives_min = u64::from(file.mounts.is_empty());
        let drives = file.drives.len() as u64;
        within("drives", drives, drives_min, DRIVES_MAX as u64)?;
        within("cgroups", file.cgroups.len() as u64, 0, CGROUPS_MAX as u64)?;
        for (number, cgroup) in file.cgroups.iter().enumerate() {
            let key = format!("cgroups.{number}.weight");
            within(&key, u64::from(cgroup.weight), 1, 10_000)?;
            if let Some(target_ns) = cgroup.io_latency_ns {
                let key = format!("cgroups.{number}.io_latency_ns");
                within(&key, target_ns, 1000, u64::MAX >> 4)?;
                if !kernel.protects_latencies() {
                    let what = format!("{} protects no latencies; that came with 4.19", kernel.name());
                    return Err(SpecError::of(&key, what));
                }
            }
            if let Some(policy) = cgroup.io_prio_class
                && !kernel.changes_priorities(policy == PriorityPolicy::PromoteToRt)
            {
                let what =
                    format!("{} has none such here: expected 6.1 or later, for promote-to-rt 6.5", kernel.name());
                return Err(SpecError::of(&format!("cgroups.{number}.io_prio_class"), what));
            }
            let Some(limits) = cgroup.io_max else {
                continue;
            };
            let key = format!("cgroups.{number}.io_max");
            if kernel.throttle_slice_ticks(hz, true).is_none() {
                let what = format!("{} has no limits of groups; they came with 2.6.37", kernel.name());
                return Err(SpecError::of(&key, what));
            }
            for (name, limit) in limits.by_name() {
                within(&format!("{key}.{name}"), limit.unwrap_or(1), 1, u64::MAX)?;
            }
        }
        if let Some(io_cost) = &file.io_cost {
            io_cost.check(&kernel)?;
        }
        let drives: Result<Vec<DrivePlan>, SpecError> = file
            .drives
            .into_iter()
            .enumerate()
            .map(|(number, drive)| {
                drive.plan(&kernel, hz, &cpus.topology()).map_err(|error| error.within(&format!("drives.{number}")))
            })
            .collect();
        let drives = drives?;
        if drives.iter().any(|drive| drive.xfs.is_some()) && cpus.clock_hz().is_none() {
            let what = "XFS counts in cycles: give simple CPUs clock_hz";
            return Err(SpecError::of("cpus.clock_hz", what));
        }
        cpus.complete(file.completion, &kernel, &drives)?;
        let mounts: Result<Vec<NfsSpec>, SpecError> = (0..).zip(file.mounts).map(mount_of).collect();
        let io_priority = match file.io_priority.as_deref() {
            None => Priority::default(),
            Some(words) => Priority::named(words).ok_or_else(|| {
                let what = format!("expected rt/0 to rt/7, be/0 to be/7 or idle, found {words:?}");
                SpecError::of("io_priority", what)
            })?,
        };
        if let Some(memory) = &file.memory {
            memory.check(&kernel, &drives)?;
        }
        let swap = file.swap.map(|table| swap_of(table, &drives)).transpose()?;
        Ok(MachineSpec {
            kernel,
            hz,
            cpus,
            memory: file.memory,
            drives,
            mounts: mounts?,
            cgroups: file.cgroups,
            io_cost: file.io_cost,
            io_priority,
            swap,
        })
    }

    /// The machine, switched on.
    pub fn build(&self) -> Result<World, SpecError> {
        build::world(self)
    }

    /// Where processes swap that sort on the machine. The error names a key of the load.
    pub fn swap_area(&self, load: &SortLoad) -> Result<SwapArea, SpecError> {
        build::swap_area(self, load)
    }

    /// Whether a drive's filesystem is XFS, in which files can be made.
    pub fn has_xfs(&self, drive: usize) -> bool {
        self.drives.get(drive).is_some_and(|drive| drive.xfs.is_some())
    }

    /// What files are made in on a drive with ext2, ext3 or ext4; None: its filesystem is another, or there is none.
    pub(crate) fn ext(&self, drive: usize) -> Option<(Mount, ExtMetadata)> {
        let plan = self.drives.get(drive)?;
        let filesystem = plan.filesystem?;
        let (submit_ns, page_copy_ns) = self.cpus.call_costs_ns();
        let pages = self.memory.map(|memory| memory.background_pages(&self.kernel, &self.drives));
        let variant = ext_mount::variant(filesystem.kind, &plan.metadata, &self.kernel)?;
        let mount = Mount {
            variant: Variant { fua: self.takes_fua(drive), ..variant },
            cpus: self.cpus.topology().cpus() as u16,
            blocks: filesystem.blocks,
            group_metadata_blocks: filesystem.group_metadata_blocks,
            group_inodes: filesystem.group_inodes,
            submit_ns,
            page_copy_ns,
            background_pages: pages.unwrap_or(BACKGROUND_PAGES),
        };
        Some((mount, plan.metadata))
    }

    /// Whether data on the drive go to the journal of ext3 or ext4 (`data=journal`).
    pub(crate) fn journals_data(&self, drive: usize) -> bool {
        let plan = self.drives.get(drive);
        plan.is_some_and(|plan| plan.metadata.data == Some(DataMode::Journal))
    }

    /// Whether the drive takes writes with force unit access, which kernels have that flush caches.
    pub(crate) fn takes_fua(&self, drive: usize) -> bool {
        self.kernel.flushes_caches() && self.drives[drive].fua
    }

    /// Whether the drive's queue throttles writeback; panics if there is no such drive.
    pub(crate) fn throttles_writeback(&self, drive: usize) -> bool {
        self.drives[drive].wbt.is_some()
    }

    /// Whether a control group has limits.
    pub(crate) fn has_limits(&self) -> bool {
        self.cgroups.iter().any(|group| group.io_max.is_some())
    }

    /// Whether the latency of a control group is protected.
    pub(crate) fn protects_latencies(&self) -> bool {
        let mut groups = self.cgroups.iter();
        groups.any(|group| group.io_latency_ns.is_some())
    }

    /// Whether the priority class of a control group's I/O is changed.
    pub(crate) fn changes_priorities(&self) -> bool {
        let mut groups = self.cgroups.iter();
        groups.any(|group| group.io_prio_class.is_some())
    }

    /// Whether control groups share drives by what I/O costs.
    pub(crate) fn shares_by_cost(&self) -> bool {
        self.io_cost.is_some()
    }

    /// Its kernel.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// How many drives there are, numbered from 0.
    pub fn drive_count(&self) -> usize {
        self.drives.len()
    }

    /// How many NFS mounts there are, numbered from 0.
    pub(crate) fn mount_count(&self) -> usize {
        self.mounts.len()
    }

    /// What its kernel calls the drives.
    pub fn drive_names(&self) -> Vec<DriveName> {
        let drivers = self.drives.iter();
        DriveName::of(drivers.map(|drive| driver_of(&drive.device, &self.kernel)))
    }

    /// The size of a drive; None: there is no such.
    pub fn drive_sectors(&self, drive: usize) -> Option<Sector> {
        self.drives.get(drive).map(|drive| drive.sectors)
    }

    /// Whether files on the drive get their blocks from an allocator; panics if there is no such drive.
    pub(crate) fn has_filesystem(&self, drive: usize) -> bool {
        self.drives[drive].filesystem.is_some() || self.has_xfs(drive)
    }

    /// Whether the CPUs are detailed: the table `cpus` has a `topology` (docs/model/processors.md).
    pub(crate) fn has_detailed_cpus(&self) -> bool {
        self.cpus.are_detailed()
    }

    /// Whose drive the swap area lies on; None: there is no area.
    pub(crate) fn swap_drive(&self) -> Option<usize> {
        self.swap.map(|swap| swap.drive)
    }

    /// Whether a drive's filesystem has a journal that orders data.
    pub(crate) fn is_journaled(&self) -> bool {
        self.drives.iter().any(DrivePlan::is_journaled)
    }

    /// The drive's scheduler; panics if there is no such drive.
    pub(crate) fn scheduler(&self, drive: usize) -> &SchedulerSpec {
        &self.drives[drive].scheduler
    }

    /// The CPUs that a phase's group names.
    pub(crate) fn allowed_cpus(&self, cpus: &[u32]) -> Result<Vec<u16>, SpecError> {
        self.cpus.allowed(cpus)
    }

    /// Of tasks that have no place of their own.
    pub fn io_priority(&self) -> Priority {
        self.io_priority
    }

    /// The number of a control group; the root is 0.
    pub fn cgroup(&self, name: &str) -> Option<u16> {
        let number = self.cgroups.iter().position(|group| group.name == name)?;
        Some(number as u16 + 1)
    }
}

/// Of a machine without [memory]: 10 % of 8 GiB.
const BACKGROUND_PAGES: u64 = 209_715;

fn mount_of((number, mount): (usize, Value)) -> Result<NfsSpec, SpecError> {
    let key = format!("mounts.{number}");
    let spec: NfsSpec = read(&key, mount)?;
    spec.check().map_err(|error| error.within(&key))?;
    Ok(spec)
}

fn swap_of(table: Value, drives: &[DrivePlan]) -> Result<SwapSpec, SpecError> {
    let swap: SwapSpec = read("swap", table)?;
    let Some(drive) = drives.get(swap.drive) else {
        let what = format!("the machine has {}, from 0", counted(drives.len(), "drive"));
        return Err(SpecError::of("swap.drive", what));
    };
    swap.check(drive.sectors * SECTOR_BYTES).map_err(|error| error.within("swap"))?;
    Ok(swap)
}

/// A table of the file, with the key in the error.
fn read<T: for<'de> Deserialize<'de>>(part: &str, value: Value) -> Result<T, SpecError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string().replace(['[', ']'], ".");
        let path = path.replace("..", ".");
        let keys: Vec<&str> =
            [part, path.trim_matches('.')].into_iter().filter(|key| !key.is_empty() && *key != ".").collect();
        SpecError::of(&keys.join("."), error.into_inner().to_string())
    })
}

type Table = Map<String, Value>;
