//! A drive of a machine file: device, queue, scheduler, filesystem.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::drive_cpus::{AffinityKeys, DriveCpuKeys};
use super::{Kernel, Table, read};
use crate::SpecError;
use crate::allocator::{BLOCK_BYTES, FilesystemSpec, Kind};
use crate::block::pool::PoolRules;
use crate::block::{HardwareRules, Merges, QueueMap, QueueRules, SECTOR_BYTES, Sector, WbtRules};
use crate::completion::{Affinity, RequestAffinity};
use crate::device::{Device, DeviceSpec};
use crate::scheduler::hooks::Hooks;
use crate::scheduler::spec::SchedulerSpec;
use crate::smp::Topology;
use crate::spec_error::within;
use crate::time::MICROSECOND;
use crate::world::{DmaSpec, DriveCpus};
use crate::xfs::XfsSpec;

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
    /// Left out: the kernel's.
    #[schemars(with = "Option<SchedulerTable>")]
    scheduler: Option<Value>,
    /// Tunables of its queue.
    #[serde(default)]
    queue: QueueSpec,
    /// Its driver takes a request from the queue before it knows whether the device has room, as that of SCSI disks did
    /// before blk-mq (`scsi_request_fn`).
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

/// The tunables of a drive's queue, under the names of /sys/block/DEVICE/queue; those left out are the kernel's.
#[derive(Clone, Copy, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Requests of each class of the pool, 4 to 65536; with blk-mq, of each hardware queue: at most 2048 with a scheduler,
    /// and as many as the device takes without one.
    #[schemars(range(min = 4, max = NR_REQUESTS_MAX))]
    pub nr_requests: Option<u32>,
    /// Largest read-ahead window of the page cache, in KiB; the same for all drives.
    #[schemars(range(max = 1 << 20))]
    pub read_ahead_kb: Option<u64>,
    /// Largest request that merging may make, in KiB: 4 to 65536.
    #[schemars(range(min = 4, max = 65_536))]
    pub max_sectors_kb: Option<u32>,
    /// Largest number of segments of a request, 1 to 65535.
    #[schemars(range(min = 1, max = 65_535))]
    pub max_segments: Option<u16>,
    /// 0: all merges. 1: only with the request that was merged into or inserted last. 2: none.
    #[schemars(range(max = 2))]
    pub nomerges: Option<u8>,
    /// As many as the device has; only blk-mq uses more than one. Flash takes its queue depth in each, other devices in all
    /// together.
    #[schemars(range(min = 1))]
    pub hardware_queues: Option<u16>,
    /// Where requests are completed.
    #[schemars(range(max = 2))]
    pub rq_affinity: Option<u8>,
    /// What schedulers, plugging and throttling take the device for: 1 seeks cost time, 0 they do not. Left out: as it is.
    #[schemars(range(max = 1))]
    pub rotational: Option<u8>,
    /// Throttling of writeback: reads are to take no longer, in microseconds; 0: it is not throttled. Only blk-mq of 4.10
    /// on. Left out: 75000, or 2000 without seeks, and with BFQ 0.
    #[schemars(range(max = WBT_LAT_USEC_MAX))]
    pub wbt_lat_usec: Option<u64>,
    /// What fsync and throttling take the device's cache for; left out: as it is.
    pub write_cache: Option<WriteCache>,
}

/// The words of /sys/block/DEVICE/queue/write_cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
pub enum WriteCache {
    /// It acknowledges writes from a cache that forgets without power.
    #[serde(rename = "write back")]
    Back,
    /// It does not.
    #[serde(rename = "write through")]
    Through,
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
    pub(super) queue: QueueSpec,
    pub(super) rules: QueueRules,
    pub(super) hardware: Option<HardwareRules>,
    pub(super) peek: bool,
    /// What the block layer takes the device for.
    pub(super) rotational: bool,
    pub(super) wbt: Option<WbtRules>,
    /// fsync waits until the device's cache is on the medium, if the kernel does that.
    pub(super) flushes: bool,
    pub(super) cpus: DriveCpuKeys,
}

const NR_REQUESTS_MAX: u32 = 65_536;
/// `MAX_SCHED_RQ` of blk-mq.
const SCHEDULER_TAGS_MAX: u32 = 2048;
/// A minute.
const WBT_LAT_USEC_MAX: u64 = 60_000_000;

impl DriveSpec {
    pub(super) fn plan(
        self,
        kernel: &Kernel,
        hz: u32,
        topology: &Topology,
    ) -> Result<DrivePlan, SpecError> {
        let device_spec = device_of(self.device)?;
        let device = device_spec
            .build()
            .map_err(|error| error.within("device"))?;
        self.queue
            .check(kernel, topology.cpus() as u16)
            .map_err(|error| error.within("queue"))?;
        let queues = self.queue.hardware_queues.unwrap_or(1);
        let scheduler = scheduler_of(self.scheduler, kernel, hz, queues)?;
        let (xfs, table) = match self.filesystem {
            Some(table) if table.get("kind").and_then(Value::as_str) == Some("xfs") => {
                (Some(xfs_of(table, kernel, device.as_ref())?), None)
            }
            other => (None, other),
        };
        let filesystem = table
            .map(|table| filesystem_of(table, kernel, device.as_ref()))
            .transpose()?;
        let rotational = match self.queue.rotational {
            None => device.rotational(),
            Some(seeks) => seeks == 1,
        };
        let of_device = kernel.queue_rules(rotational, device.queue_depth());
        let mut rules = self.queue.rules(of_device);
        let hardware = match scheduler.is_multi_queue() {
            true => {
                let map = QueueMap::new(
                    kernel.queue_spread(device.manages_interrupts()),
                    topology,
                    queues,
                );
                let hardware = self
                    .queue
                    .hardware(map, device.as_ref(), &scheduler)
                    .map_err(|error| error.within("queue"))?;
                rules.pool = PoolRules::tags(self.queue.tags(&hardware, &scheduler));
                Some(hardware)
            }
            false => None,
        };
        let wbt = self
            .queue
            .wbt(kernel, &scheduler, device.as_ref(), rotational)
            .map_err(|error| error.within("queue"))?;
        Ok(DrivePlan {
            device: device_spec,
            sectors: device.sectors(),
            scheduler,
            filesystem,
            xfs,
            queue: self.queue,
            rules,
            hardware,
            peek: self.peek,
            rotational,
            wbt,
            flushes: self.queue.has_write_cache(device.as_ref()),
            cpus: DriveCpuKeys {
                interrupt_cpu: self.interrupt_cpu,
                affinity: self.affinity,
                dma: self.dma,
            },
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
        DriveCpus {
            affinity: Affinity {
                requests,
                ..cpus.affinity
            },
            ..cpus
        }
    }

    /// What its scheduler costs; without merges nothing is looked for.
    pub(super) fn hooks(&self) -> Hooks {
        let mut hooks = self.scheduler.hooks();
        if self.rules.merges == Merges::Never {
            hooks.merge_cycles = 0;
        }
        hooks
    }

    pub(super) fn is_journaled(&self) -> bool {
        self.filesystem
            .is_some_and(|spec| matches!(spec.kind, Kind::Ext3 | Kind::Ext3Windows | Kind::Ext4))
    }
}

fn device_of(device: Value) -> Result<DeviceSpec, SpecError> {
    let Value::Object(mut table) = device else {
        return Err(SpecError::of(
            "device",
            format!("expected a table or the name of a device file, found {device}"),
        ));
    };
    let kind = match table.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(other) => {
            return Err(SpecError::of(
                "device.kind",
                format!("expected a text, found {other}"),
            ));
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
fn scheduler_of(
    given: Option<Value>,
    kernel: &Kernel,
    hz: u32,
    queues: u16,
) -> Result<SchedulerSpec, SpecError> {
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
    let name = tunables
        .entry("name".to_owned())
        .or_insert_with(|| kernel.default_scheduler(queues).to_owned())
        .clone();
    if let Some(version) = kernel.patched(&name) {
        tunables
            .entry("version".to_owned())
            .or_insert_with(|| version.to_owned());
    }
    SchedulerSpec::new(&tunables, kernel.name(), hz).map_err(|error| {
        let key = match error.tunable() {
            Some(tunable) => format!("scheduler.{tunable}"),
            None => "scheduler".to_owned(),
        };
        SpecError::of(&key, error.to_string())
    })
}

/// `blocks` and what follows from the kernel are filled in.
fn filesystem_of(
    mut table: Table,
    kernel: &Kernel,
    device: &dyn Device,
) -> Result<FilesystemSpec, SpecError> {
    let kind = table.get("kind").and_then(Value::as_str).unwrap_or("");
    if kind == "ext4" && !kernel.has_ext4() {
        let what = format!("kernel {} has no ext4", kernel.name());
        return Err(SpecError::of("filesystem.kind", what));
    }
    if matches!(kind, "ext2" | "ext3") {
        let windows = kind == "ext3" && kernel.reserves_windows();
        table
            .entry("start_colours")
            .or_insert(kernel.start_colours().into());
        if windows {
            table.insert("kind".to_owned(), "ext3_windows".into());
        }
    }
    let blocks = device.sectors() * SECTOR_BYTES / BLOCK_BYTES;
    table.entry("blocks").or_insert(blocks.into());
    let spec: FilesystemSpec = read("filesystem", Value::Object(table))?;
    spec.check().map_err(|error| error.within("filesystem"))?;
    within("filesystem.blocks", spec.blocks, 1, blocks)?;
    Ok(spec)
}

/// `blocks` are filled in.
fn xfs_of(mut table: Table, kernel: &Kernel, device: &dyn Device) -> Result<XfsSpec, SpecError> {
    if !kernel.xfs_delays_log() {
        let what = format!(
            "kernel {} has no delayed log, which the model's XFS has",
            kernel.name()
        );
        return Err(SpecError::of("filesystem.kind", what));
    }
    table.remove("kind");
    let blocks = device.sectors() * SECTOR_BYTES / BLOCK_BYTES;
    table.entry("blocks").or_insert(blocks.into());
    let spec: XfsSpec = read("filesystem", Value::Object(table))?;
    spec.check().map_err(|error| error.within("filesystem"))?;
    within("filesystem.blocks", spec.blocks, 1, blocks)?;
    Ok(spec)
}

impl QueueSpec {
    fn check(&self, kernel: &Kernel, cpus: u16) -> Result<(), SpecError> {
        if self.nr_requests.is_some() && !kernel.has_nr_requests() {
            let what = format!("kernel {} has no such tunable", kernel.name());
            return Err(SpecError::of("nr_requests", what));
        }
        let given = [
            (
                "nr_requests",
                self.nr_requests.map(u64::from),
                4,
                u64::from(NR_REQUESTS_MAX),
            ),
            (
                "max_sectors_kb",
                self.max_sectors_kb.map(u64::from),
                4,
                65_536,
            ),
            ("max_segments", self.max_segments.map(u64::from), 1, 65_535),
            ("nomerges", self.nomerges.map(u64::from), 0, 2),
            ("rq_affinity", self.rq_affinity.map(u64::from), 0, 2),
            ("read_ahead_kb", self.read_ahead_kb, 0, 1 << 20),
            ("rotational", self.rotational.map(u64::from), 0, 1),
            ("wbt_lat_usec", self.wbt_lat_usec, 0, WBT_LAT_USEC_MAX),
            (
                "hardware_queues",
                self.hardware_queues.map(u64::from),
                1,
                u64::from(cpus),
            ),
        ];
        for (key, value, least, most) in given {
            if let Some(value) = value {
                within(key, value, least, most)?;
            }
        }
        Ok(())
    }

    /// Those of kernel and device, with what is given.
    fn rules(&self, mut rules: QueueRules) -> QueueRules {
        if let Some(kb) = self.max_sectors_kb {
            rules.request_sectors_max = kb * 2;
        }
        if let Some(segments) = self.max_segments {
            rules.request_segments_max = segments;
        }
        rules.merges = match self.nomerges {
            None | Some(0) => Merges::All,
            Some(1) => Merges::LastOnly,
            Some(_) => Merges::Never,
        };
        if let Some(requests) = self.nr_requests {
            rules.pool = rules.pool.with_requests(requests);
        }
        rules
    }

    /// Whether it takes the device's cache for one that forgets without power.
    fn has_write_cache(&self, device: &dyn Device) -> bool {
        match self.write_cache {
            None => device.has_volatile_cache(),
            Some(words) => words == WriteCache::Back,
        }
    }

    /// How it throttles writeback; None: not at all.
    fn wbt(
        &self,
        kernel: &Kernel,
        scheduler: &SchedulerSpec,
        device: &dyn Device,
        rotational: bool,
    ) -> Result<Option<WbtRules>, SpecError> {
        let has = scheduler.is_multi_queue() && kernel.throttles_writeback();
        if !has && self.wbt_lat_usec.is_some() {
            let what = "only queues of blk-mq of kernels from 4.10 on have it";
            return Err(SpecError::of("wbt_lat_usec", what));
        }
        let target_ns = match self.wbt_lat_usec {
            Some(usec) => usec * MICROSECOND,
            None if has && !scheduler.turns_wbt_off() => WbtRules::default_target_ns(rotational),
            None => 0,
        };
        let write_cache = self.has_write_cache(device);
        Ok((target_ns > 0).then(|| WbtRules {
            target_ns,
            queue_depth: device.queue_depth(),
            write_cache,
        }))
    }

    /// Of a queue of blk-mq: its hardware queues, whose tags `nr_requests` makes fewer where no scheduler is between, and
    /// never more (`blk_mq_tag_update_depth` of 4.11 to 6.1).
    fn hardware(
        &self,
        map: QueueMap,
        device: &dyn Device,
        scheduler: &SchedulerSpec,
    ) -> Result<HardwareRules, SpecError> {
        let mut depth = device.queue_depth();
        if let Some(requests) = self.nr_requests {
            let most = match scheduler.has_own_tags() {
                true => SCHEDULER_TAGS_MAX,
                false => depth,
            };
            within("nr_requests", u64::from(requests), 1, u64::from(most))?;
            if !scheduler.has_own_tags() {
                depth = requests;
            }
        }
        Ok(HardwareRules {
            shared_tags: map.queues() == 1 || !device.has_depth_by_queue(),
            map,
            depth,
        })
    }

    /// Requests that a set of tags has: with a scheduler `nr_requests`, without one the device's (`blk_mq_init_sched` of
    /// 4.11 to 6.1).
    fn tags(&self, hardware: &HardwareRules, scheduler: &SchedulerSpec) -> u32 {
        match scheduler.has_own_tags() {
            true => self
                .nr_requests
                .unwrap_or((2 * hardware.depth.min(128)).max(4)),
            false => hardware.depth,
        }
    }
}
