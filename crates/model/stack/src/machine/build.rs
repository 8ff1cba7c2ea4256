//! From a checked machine to the world.

use super::drive::DrivePlan;
use super::{CgroupSpec, MachineSpec};
use crate::world::{DriveParts, FuaRules, LoadJournal, SwapArea, World};
use block_layer::TaskPlug;
use block_layer::scheduler::spec::Surroundings;
use block_layer::{
    CostRules, HardwareRules, LatencyRules, PriorityPolicy, RequestQueue, SECTOR_BYTES, Throttle, ThrottleLimits,
    ThrottleRules,
};
use events::SpecError;
use events::time::SECOND;
use filesystems::xfs::{Platform, Xfs, XfsSpec};
use memory::cache::PageCache;
use memory::swap::SortLoad;
use nfs::DirectIo;

/// The root group's weight (`CFQ_WEIGHT_DEFAULT` doubled, as blk-cgroup gives it to the root).
const ROOT_WEIGHT: u32 = 1000;
/// What schedulers give a group if its weight is io.cost's.
const WEIGHT_DEFAULT: u32 = 100;

pub(super) fn world(machine: &MachineSpec) -> Result<World, SpecError> {
    let drives: Result<Vec<DriveParts>, SpecError> = machine
        .drives
        .iter()
        .enumerate()
        .map(|(number, drive)| parts(drive, machine).map_err(|error| error.within(&format!("drives.{number}"))))
        .collect();
    let cache = machine
        .memory
        .as_ref()
        .map(|memory| PageCache::new(&memory.cache(&machine.kernel, &machine.drives)))
        .transpose()
        .map_err(|error| error.within("memory"))?;
    let mounts: Result<Vec<DirectIo>, SpecError> =
        (0..).zip(&machine.mounts).map(|(seed, mount)| DirectIo::new(mount, seed)).collect();
    let cpus = machine.cpus.build(&machine.kernel, &machine.drives)?;
    let plug = machine.kernel.task_plug_rules().map(TaskPlug::new);
    let mut world = World::new(cpus, drives?, cache, plug)
        .with_mounts(mounts?)
        .with_sync_writes(machine.kernel.sync_writes())
        .with_file_reads(machine.kernel.file_reads());
    if machine.kernel.flushes_caches() {
        world = world.with_flushes(machine.drives.iter().map(|drive| drive.flushes));
    }
    for (number, drive) in machine.drives.iter().enumerate() {
        if machine.takes_fua(number) {
            let ext = machine.ext(number);
            let is_ext4 = ext.is_some_and(|(mount, _)| mount.variant.is_indexed);
            let has_iomap = drive.xfs.is_some() || is_ext4;
            let rules = FuaRules {
                of_device: machine.kernel.device_writes_fua(),
                of_files: has_iomap && machine.kernel.iomap_writes_fua(drive.xfs.is_some()),
            };
            world = world.with_fua(number, rules);
        }
    }
    world = world.with_tick(SECOND / u64::from(machine.kernel.hz()));
    for (number, drive) in machine.drives.iter().enumerate() {
        if let Some(rules) = throttle_rules(machine, drive) {
            world = world.with_throttle(number, Throttle::new(rules));
        }
    }
    for (number, drive) in machine.drives.iter().enumerate() {
        if let Some((mount, spec)) = machine.ext(number)
            && mount.variant.is_journaled
            && machine.kernel.flushes_caches()
        {
            let mut journal = LoadJournal::new(
                mount.blocks,
                spec.journal_blocks,
                mount.variant.barrier,
                mount.variant.fua,
                machine.kernel.ext4_converts_after_writes(),
                mount.variant.journal_priority,
            );
            if spec.fast_commit {
                journal = journal.with_fast_commits();
            }
            if machine.journals_data(number) {
                journal = journal.with_journaled_data(machine.kernel.journal_parts());
                world = world.with_journaled_data(number);
            }
            let journal = journal.with_costs(spec.allocate_ns, spec.commit_ns);
            world = world.with_load_journal(number, journal);
        }
        if drive.has_filesystem() {
            let holds = machine.kernel.fsync_holds(drive.xfs.is_some());
            world = world.with_fsync_holds(number, holds);
            if machine.kernel.writes_large_folios(drive.xfs.is_some()) {
                world = world.with_large_folios(number);
            }
            if machine.kernel.writes_ioends(drive.xfs.is_some()) {
                world = world.with_ioends(number);
            }
        }
        if let Some(xfs) = &drive.xfs {
            let mounted = mounted(machine, number, xfs).map_err(|error| error.within(&format!("drives.{number}")))?;
            world = world.with_xfs(number, mounted);
            if machine.kernel.xfs_fsync_locks_inode() {
                world = world.with_inode_locks(number);
            }
        }
    }
    machine.cpus.plan_offline(&mut world);
    Ok(world)
}

/// None: no group has a limit.
fn throttle_rules(machine: &MachineSpec, drive: &DrivePlan) -> Option<ThrottleRules> {
    if !machine.has_limits() {
        return None;
    }
    let slice_ticks = machine.kernel.throttle_slice_ticks(machine.hz, drive.rotational)?;
    let limits_of = |group: &CgroupSpec| group.io_max.unwrap_or_default().limits();
    let root = ThrottleLimits::default();
    Some(ThrottleRules {
        hz: u64::from(machine.hz),
        slice_ticks,
        groups: [root].into_iter().chain(machine.cgroups.iter().map(limits_of)).collect(),
    })
}

/// By group, the root first.
fn weights(machine: &MachineSpec) -> Vec<u32> {
    let groups = machine.cgroups.iter().map(|group| group.weight);
    [ROOT_WEIGHT].into_iter().chain(groups).collect()
}

/// By group, the root first.
fn policies(machine: &MachineSpec) -> Vec<PriorityPolicy> {
    let groups = machine.cgroups.iter();
    let given = groups.map(|group| group.io_prio_class.unwrap_or_default());
    [PriorityPolicy::NoChange].into_iter().chain(given).collect()
}

fn latency_rules(machine: &MachineSpec, drive: &DrivePlan) -> LatencyRules {
    let targets = machine.cgroups.iter().map(|group| group.io_latency_ns);
    LatencyRules {
        targets_ns: [None].into_iter().chain(targets).collect(),
        requests: drive.rules.pool.requests,
        rotational: drive.rotational,
    }
}

fn mounted(machine: &MachineSpec, drive: usize, xfs: &XfsSpec) -> Result<Xfs, SpecError> {
    let clock_hz = machine.cpus.clock_hz().expect("checked");
    let cpus = machine.cpus.topology().cpus() as u16;
    let name = &machine.drive_names()[drive];
    let below = Platform {
        cpus,
        clock_hz,
        drive: &name.name,
        device: name.device,
        flushes: machine.kernel.flushes_caches() && machine.drives[drive].flushes,
        fua: machine.takes_fua(drive),
    };
    let mounted = Xfs::new(&below, xfs, machine.kernel.xfs_allocation())?;
    Ok(mounted.with_checkpoints(machine.kernel.xfs_checkpoints()))
}

/// The area lies at the end of its drive. The error names a key of the load.
pub(super) fn swap_area(machine: &MachineSpec, load: &SortLoad) -> Result<SwapArea, SpecError> {
    let spec = machine
        .swap
        .ok_or_else(|| SpecError::of("kind", "the machine has no [swap], so there is nowhere to swap to"))?;
    load.check(&spec)?;
    Ok(SwapArea {
        spec,
        begin: machine.drives[spec.drive].sectors - spec.bytes / SECTOR_BYTES,
        reclaim: machine.kernel.reclaim(),
        files_keep_percent: machine.kernel.files_keep_percent(),
    })
}

fn parts(drive: &DrivePlan, machine: &MachineSpec) -> Result<DriveParts, SpecError> {
    let weights = weights(machine);
    let of_scheduler: Vec<u32> = match machine.io_cost {
        Some(_) => vec![WEIGHT_DEFAULT; weights.len()],
        None => weights.clone(),
    };
    let device = drive.device.build().map_err(|error| error.within("device"))?;
    let filesystem =
        drive.filesystem.map(|spec| spec.build()).transpose().map_err(|error| error.within("filesystem"))?;
    let hardware = drive.hardware.clone().unwrap_or(HardwareRules::SINGLE);
    let surroundings = Surroundings {
        rotational: drive.rotational,
        queue_map: &hardware.map,
        request_sectors_max: drive.rules.request_sectors_max,
        pool_requests: drive.rules.pool.requests,
        group_weights: &of_scheduler,
        group_policies: &policies(machine),
    };
    let mut queue = RequestQueue::new(drive.rules, drive.scheduler.build(&surroundings))
        .with_hooks(drive.hooks())
        .with_wbt(drive.wbt);
    if drive.hardware.is_some() {
        queue = queue.with_hardware(hardware);
    }
    if let Some(io_cost) = &machine.io_cost {
        queue = queue.with_cost(CostRules {
            weights,
            model: io_cost.model(),
            qos: io_cost.qos(),
            rotational: drive.rotational,
            requests: drive.rules.pool.requests,
            hz: u64::from(machine.hz),
        });
    }
    if machine.protects_latencies() {
        queue = queue.with_latencies(latency_rules(machine, drive));
    }
    let run_costs = machine.cpus.queue_run_costs();
    if run_costs.is_some() {
        queue.runs_by_thread();
    }
    Ok(DriveParts {
        run_costs,
        polling: drive.polling,
        queue,
        device,
        filesystem,
        write_bio_sectors_max: machine.kernel.write_bio_sectors_max(drive.is_journaled()),
        peek: drive.peek,
    })
}
