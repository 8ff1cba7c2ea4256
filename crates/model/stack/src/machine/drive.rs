//! A drive of a machine file: device, queue, scheduler, filesystem.

use std::collections::BTreeMap;

use kernels::queue::{Merges, PoolRules, QueueRules};
use serde::Deserialize;
use serde_json::Value;

use super::drive_cpus::{AffinityKeys, DriveCpuKeys};
use super::ext_mount;
use super::queue_keys::{QueueSpec, default_tags};
use super::{Table, read};
use crate::world::{DmaSpec, DriveCpus, PollRules};
use block_layer::completion::{Affinity, RequestAffinity};
use block_layer::scheduler::hooks::Hooks;
use block_layer::scheduler::spec::SchedulerSpec;
use block_layer::{HardwareRules, QueueMap, SECTOR_BYTES, Sector, WbtRules};
use devices::{DeviceSpec, Identity};
use events::SpecError;
use events::smp::Topology;
use events::spec_error::within;
use filesystems::allocator::{BLOCK_BYTES, FilesystemSpec, Kind};
use filesystems::ext::ExtMetadata;
use filesystems::xfs::XfsSpec;
use kernels::Kernel;

/// The file's keys.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DriveSpec {
    /// What takes the requests.
    #[schemars(with = "DeviceSpec")]
    device: Value,
    /// Left out: loads lie on the bare drive.
    #[schemars(with = "Option<FilesystemTable>")]
    filesystem: Option<Table>,
    /// What making files costs on ext2, ext3 and ext4.
    metadata: Option<ExtMetadata>,
    /// Left out: the kernel's.
    #[schemars(with = "Option<SchedulerTable>")]
    scheduler: Option<Value>,
    /// Tunables of its queue.
    #[serde(default)]
    queue: QueueSpec,
    /// Its driver takes a request from the queue before it checks whether the device has room, as that of SCSI disks
    /// did before blk-mq (`scsi_request_fn`).
    #[serde(default)]
    peek: bool,
    /// Left out: drives interrupt CPU 0, 1, 2, ... in turn, and hardware queues the CPUs that submit to them.
    interrupt_cpu: Option<u16>,
    /// On which CPUs its application, its queueing and its completion are; of detailed CPUs only.
    affinity: Option<AffinityKeys>,
    /// Its adapter's transfers; left out: they take no time of their own.
    dma: Option<DmaSpec>,
}

/// What a drive's table `filesystem` holds, for the schema. `blocks` may be left out: the drive's.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never made: it says what the table holds")]
enum FilesystemTable {
    Allocator(FilesystemSpec),
    Xfs(XfsTable),
}

/// XFS, which takes metadata loads.
#[derive(schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "never made: it says what the table holds")]
enum XfsTable {
    Xfs(XfsSpec),
}

/// What a drive's key `scheduler` holds, for the schema: its name, or a table of `name` and tunables by the kernel's
/// names.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never made: it says what the key holds")]
enum SchedulerTable {
    Name(String),
    Tunables(BTreeMap<String, TunableValue>),
}

/// A tunable's value, in the kernel's unit.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never made: it says what the key holds")]
enum TunableValue {
    Number(u64),
    Flag(bool),
    Text(String),
}

/// A drive that can be built.
#[derive(Clone, Debug)]
pub(super) struct DrivePlan {
    pub(super) device: DeviceSpec,
    pub(super) sectors: Sector,
    pub(super) scheduler: SchedulerSpec,
    pub(super) filesystem: Option<FilesystemSpec>,
    /// Instead of that: files are made there, and no load lies on it.
    pub(super) xfs: Option<XfsSpec>,
    /// What making files costs there, if that is not XFS.
    pub(super) metadata: ExtMetadata,
    pub(super) queue: QueueSpec,
    pub(super) rules: QueueRules,
    pub(super) hardware: Option<HardwareRules>,
    pub(super) peek: bool,
    /// What the block layer takes the device for.
    pub(super) rotational: bool,
    pub(super) wbt: Option<WbtRules>,
    pub(super) polling: Option<PollRules>,
    /// fsync waits until the device's cache is on the medium, if the kernel does that.
    pub(super) flushes: bool,
    /// It takes writes that are on the medium when they complete.
    pub(super) fua: bool,
    pub(super) cpus: DriveCpuKeys,
}

impl DriveSpec {
    pub(super) fn plan(self, kernel: &Kernel, hz: u32, topology: &Topology) -> Result<DrivePlan, SpecError> {
        let device_spec = device_of(self.device)?;
        let device = device_spec.identity().map_err(|error| error.within("device"))?;
        self.queue.check(kernel, topology.cpus() as u16).map_err(|error| error.within("queue"))?;
        let queues = self.queue.hardware_queues.unwrap_or(1);
        let scheduler = scheduler_of(self.scheduler, kernel, hz, queues)?;
        let (xfs, table) = match self.filesystem {
            Some(table) if table.get("kind").and_then(Value::as_str) == Some("xfs") => {
                (Some(xfs_of(table, kernel, &device)?), None)
            }
            other => (None, other),
        };
        let filesystem = table.map(|table| filesystem_of(table, kernel, &device)).transpose()?;
        let is_ext = filesystem.is_some_and(|spec| spec.kind != Kind::Contiguous);
        if self.metadata.is_some() && !is_ext {
            let what = "only drives with filesystem ext2, ext3, ext3_windows or ext4 have it";
            return Err(SpecError::of("metadata", what));
        }
        let metadata = self.metadata.unwrap_or_default();
        metadata
            .check()
            .and_then(|()| match filesystem {
                Some(spec) => ext_mount::check(spec.kind, &metadata, kernel),
                None => Ok(()),
            })
            .map_err(|error| error.within("metadata"))?;
        let rotational = match self.queue.rotational {
            None => device.rotational,
            Some(seeks) => seeks == 1,
        };
        let mut of_device = kernel.queue_rules(rotational, device.queue_depth);
        if let Some(requests) = scheduler.pool_requests() {
            of_device.pool.requests = requests;
        }
        let mut rules = self.queue.rules(of_device);
        let hardware = match scheduler.is_multi_queue() {
            true => {
                let map = QueueMap::new(kernel.queue_spread(device.manages_interrupts), topology, queues);
                let hardware =
                    self.queue.hardware(map, &device, &scheduler, kernel, hz).map_err(|error| error.within("queue"))?;
                let tags = self.queue.tags(&hardware, &scheduler);
                rules.pool = PoolRules::tags(tags, kernel.tag_waking(), kernel.tag_limit());
                if self.queue.nr_requests.is_some() && kernel.limits_by_former_requests() {
                    rules.pool.told = default_tags(&hardware);
                }
                Some(hardware)
            }
            false => None,
        };
        let wbt = self.queue.wbt(kernel, &scheduler, &device, rotational).map_err(|error| error.within("queue"))?;
        let polling = self.queue.polling(kernel, &scheduler, &device).map_err(|error| error.within("queue"))?;
        Ok(DrivePlan {
            device: device_spec,
            sectors: device.sectors,
            scheduler,
            filesystem,
            xfs,
            metadata,
            queue: self.queue,
            rules,
            hardware,
            peek: self.peek,
            rotational,
            wbt,
            polling,
            flushes: self.queue.has_write_cache(&device),
            fua: self.queue.takes_fua(&device),
            cpus: DriveCpuKeys { interrupt_cpu: self.interrupt_cpu, affinity: self.affinity, dma: self.dma },
        })
    }
}

impl DrivePlan {
    /// The key that only detailed CPUs have, if one is given.
    pub(super) fn needs_detailed_cpus(&self) -> Option<&'static str> {
        let affinity = self.queue.rq_affinity.map(|_| "queue.rq_affinity");
        self.cpus.given().or(affinity)
    }

    /// With what is given, or else the kernel's.
    pub(super) fn with_rq_affinity(&self, cpus: DriveCpus, kernels: u8) -> DriveCpus {
        let value = self.queue.rq_affinity.unwrap_or(kernels);
        let requests = RequestAffinity::of(value).expect("0 to 2");
        DriveCpus { affinity: Affinity { requests, ..cpus.affinity }, ..cpus }
    }

    /// Whether a driver gives each of its requests a timer (null_blk's `irqmode` 2).
    pub(super) fn completes_by_timer(&self) -> bool {
        matches!(self.device, DeviceSpec::Null(_)) && self.hardware.is_some() && self.polling.is_none()
    }

    /// What its scheduler costs; without merges nothing is looked for.
    pub(super) fn hooks(&self) -> Hooks {
        let mut hooks = self.scheduler.hooks();
        if self.rules.merges == Merges::Never {
            hooks.merge_cycles = 0;
        }
        hooks
    }

    pub(super) fn has_filesystem(&self) -> bool {
        let is_allocated = |spec: FilesystemSpec| spec.kind != Kind::Contiguous;
        self.xfs.is_some() || self.filesystem.is_some_and(is_allocated)
    }

    pub(super) fn is_journaled(&self) -> bool {
        self.filesystem.is_some_and(|spec| matches!(spec.kind, Kind::Ext3 | Kind::Ext3Windows | Kind::Ext4))
    }
    /// Its journal writes the data of all changed files before a commit: that of ext4 knows only files that have got blocks
    /// since, and their data are in flight by then (`ext4_map_blocks`, `ext4_da_write_end` of 6.1).
    pub(super) fn orders_data(&self) -> bool {
        let is_ext3 = |spec: FilesystemSpec| matches!(spec.kind, Kind::Ext3 | Kind::Ext3Windows);
        self.filesystem.is_some_and(is_ext3) && ext_mount::orders_data(&self.metadata)
    }
}

fn device_of(device: Value) -> Result<DeviceSpec, SpecError> {
    let Value::Object(mut table) = device else {
        return Err(SpecError::of("device", format!("expected a table or the name of a device file, found {device}")));
    };
    let kind = match table.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(other) => {
            return Err(SpecError::of("device.kind", format!("expected a text, found {other}")));
        }
        None => String::new(),
    };
    let table = Value::Object(table);
    Ok(match kind.as_str() {
        "null" => DeviceSpec::Null(read("device", table)?),
        "disk" => DeviceSpec::Disk(read("device", table)?),
        "lun" => DeviceSpec::Lun(read("device", table)?),
        "array" => DeviceSpec::Array(read("device", table)?),
        "flash" => DeviceSpec::Flash(read("device", table)?),
        _ => {
            let what = format!("expected disk, array, lun, flash or null, found {kind:?}");
            return Err(SpecError::of("device.kind", what));
        }
    })
}

/// `scheduler = "NAME"` or a table of name and tunables.
fn scheduler_of(given: Option<Value>, kernel: &Kernel, hz: u32, queues: u16) -> Result<SchedulerSpec, SpecError> {
    let mut tunables: BTreeMap<String, String> = match given {
        None => BTreeMap::new(),
        Some(Value::String(name)) => BTreeMap::from([("name".to_owned(), name)]),
        Some(Value::Object(table)) => table
            .into_iter()
            .map(|(key, value)| {
                let text = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(is) => u8::from(is).to_string(),
                    other => {
                        let key = format!("scheduler.{key}");
                        let what = format!("expected a number or a text, found {other}");
                        return Err(SpecError::of(&key, what));
                    }
                };
                Ok((key, text))
            })
            .collect::<Result<_, _>>()?,
        Some(other) => {
            let what = format!("expected a name or a table, found {other}");
            return Err(SpecError::of("scheduler", what));
        }
    };
    tunables.entry("name".to_owned()).or_insert_with(|| kernel.default_scheduler(queues).to_owned());
    SchedulerSpec::new(&tunables, kernel.name(), hz).map_err(|error| {
        let key = match error.tunable() {
            Some(tunable) => format!("scheduler.{tunable}"),
            None => "scheduler".to_owned(),
        };
        SpecError::of(&key, error.to_string())
    })
}

/// `blocks` and what follows from the kernel are filled in.
fn filesystem_of(mut table: Table, kernel: &Kernel, device: &Identity) -> Result<FilesystemSpec, SpecError> {
    let kind = table.get("kind").and_then(Value::as_str).unwrap_or("");
    if kind == "ext4" && !kernel.has_ext4() {
        let what = format!("kernel {} has no ext4", kernel.name());
        return Err(SpecError::of("filesystem.kind", what));
    }
    if matches!(kind, "ext2" | "ext3") {
        let windows = kind == "ext3" && kernel.reserves_windows();
        table.entry("start_colours").or_insert(kernel.start_colours().into());
        if windows {
            table.insert("kind".to_owned(), "ext3_windows".into());
        }
    }
    let blocks = device.sectors * SECTOR_BYTES / BLOCK_BYTES;
    table.entry("blocks").or_insert(blocks.into());
    let spec: FilesystemSpec = read("filesystem", Value::Object(table))?;
    spec.check().map_err(|error| error.within("filesystem"))?;
    within("filesystem.blocks", spec.blocks, 1, blocks)?;
    Ok(spec)
}

/// `blocks` are filled in.
fn xfs_of(mut table: Table, kernel: &Kernel, device: &Identity) -> Result<XfsSpec, SpecError> {
    if !kernel.xfs_delays_log() {
        let what = format!("kernel {} has no delayed log, which the model's XFS has", kernel.name());
        return Err(SpecError::of("filesystem.kind", what));
    }
    table.remove("kind");
    let blocks = device.sectors * SECTOR_BYTES / BLOCK_BYTES;
    table.entry("blocks").or_insert(blocks.into());
    let spec: XfsSpec = read("filesystem", Value::Object(table))?;
    spec.check().map_err(|error| error.within("filesystem"))?;
    within("filesystem.blocks", spec.blocks, 1, blocks)?;
    Ok(spec)
}
