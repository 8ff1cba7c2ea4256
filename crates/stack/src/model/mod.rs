//! A simulated machine as whoever runs trials sees it: phases in, records out, files by their names.

#[cfg(test)]
mod flush_tests;
mod kinds;
#[cfg(test)]
mod mixed_tests;
#[cfg(test)]
mod mount_tests;
mod observed;
mod phase;
mod reading;
#[cfg(test)]
mod ring_tests;
mod sort;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writeback_tests;

use std::collections::BTreeMap;

use trace::extents::{Bounds, Examined};
use workload::assemble::{Circumstances, assemble};
use workload::metadata::{self, MetadataPhase};
use workload::phase::Phase;
use workload::record::{ClockKind, Snapshot};

use crate::machine::MachineSpec;
use crate::probe::extents::{FileExtents, examined};
use crate::world::{FileLayout, FileSpec, PhaseSpec, World};
use block_layer::{SECTOR_BYTES, Sector, TaskId};
use events::SpecError;
use events::station::Violation;
use filesystems::xfs::{Progress, Results};
pub use kinds::{AnyPhase, AnyRecord};
use memory::cache::FileId;
use observed::Watch;
pub use observed::{Observations, ObservedPhase, Probes, Record};
pub use reading::{Unread, unread};
pub use sort::{SortPhase, SortRecord};

/// A simulated machine that runs phases: caches, files and devices keep their state from one to the next.
pub struct Model {
    machine: MachineSpec,
    world: World,
    /// By path and base.
    files: BTreeMap<(String, u64), FileId>,
    directories: BTreeMap<String, u32>,
    /// By drive without a filesystem: where the next file begins.
    next_sector: Vec<Sector>,
    under_way: Option<UnderWay>,
    /// The last phase was, before its end.
    stopped: bool,
    traces: BTreeMap<String, Vec<u8>>,
}

/// The phase that was begun.
enum UnderWay {
    Load(Box<(Phase, Watch)>),
    Metadata(Box<(MetadataPhase, Watch)>),
    Sort(Box<(SortPhase, Watch)>),
}

/// Where metadata phases make their files.
const METADATA_DRIVE: usize = 0;
/// Files on a drive without a filesystem begin at multiples of this.
const REGION_ALIGN_SECTORS: Sector = 2048;

impl Model {
    /// The machine switched on, with no files yet. The error names a key of the machine file.
    pub fn new(machine: &MachineSpec) -> Result<Model, SpecError> {
        Ok(Model {
            machine: machine.clone(),
            world: machine.build()?,
            files: BTreeMap::new(),
            directories: BTreeMap::new(),
            next_sector: vec![0; machine.drive_count()],
            under_way: None,
            stopped: false,
            traces: BTreeMap::new(),
        })
    }

    /// Puts the phase's jobs in their places; `run` runs them. The error names a key of the phase.
    pub fn begin(&mut self, observed: ObservedPhase) -> Result<(), SpecError> {
        let ObservedPhase { phase, probes } = observed;
        self.under_way = Some(match phase {
            AnyPhase::Load(phase) => self.begin_load(phase, &probes)?,
            AnyPhase::Metadata(phase) => self.begin_metadata(phase, &probes)?,
            AnyPhase::Sort(phase) => self.begin_sort(phase, &probes)?,
        });
        Ok(())
    }

    fn begin_sort(&mut self, phase: SortPhase, probes: &Probes) -> Result<UnderWay, SpecError> {
        probes.check(self.machine.has_detailed_cpus())?;
        let load = phase.load();
        let area = self.machine.swap_area(&load)?;
        self.world
            .begin_phase(&PhaseSpec::without_loads(phase.seed))
            .expect("no job of it can be wrong");
        self.world.begin_sorting(&area, &load);
        let names = self.world.sorting_names();
        let watch = Watch::new(probes, &names, &mut self.world);
        Ok(UnderWay::Sort(Box::new((phase, watch))))
    }

    fn begin_metadata(
        &mut self,
        phase: MetadataPhase,
        probes: &Probes,
    ) -> Result<UnderWay, SpecError> {
        probes.check_of_metadata(self.machine.has_detailed_cpus())?;
        if !self.machine.has_xfs(METADATA_DRIVE) {
            let what = "files are made in a filesystem of kind xfs on drive 0";
            return Err(SpecError::of("kind", what));
        }
        let seed = phase.threads.first().map_or(0, |thread| thread.job.seed);
        self.world
            .begin_phase(&PhaseSpec::without_loads(seed))
            .expect("no job of it can be wrong");
        let switches = probes.switches.as_ref();
        self.world
            .begin_metadata(METADATA_DRIVE, &phase, switches)?;
        let names = self.world.task_names(METADATA_DRIVE);
        let watch = Watch::new(probes, &names, &mut self.world);
        Ok(UnderWay::Metadata(Box::new((phase, watch))))
    }

    fn begin_load(&mut self, phase: Phase, probes: &Probes) -> Result<UnderWay, SpecError> {
        probes.check(self.machine.has_detailed_cpus())?;
        let mut spec = phase::translate(&phase, &self.machine)?;
        let files: Result<Vec<FileId>, SpecError> = phase
            .files
            .iter()
            .enumerate()
            .map(|(number, file)| self.file(number, file))
            .collect();
        spec.files = files?;
        if phase.drop_caches {
            self.world.drop_caches();
        }
        self.world
            .begin_phase(&spec)
            .map_err(|error| SpecError::of("groups", error.to_string()))?;
        let names: Vec<(TaskId, String)> = (0..)
            .zip(phase.groups.iter().map(|group| group.name.clone()))
            .collect();
        let watch = Watch::new(probes, &names, &mut self.world);
        Ok(UnderWay::Load(Box::new((phase, watch))))
    }

    /// Runs the phase to its end. `go_on` is asked now and then; false stops its jobs.
    ///
    /// # Panics
    /// Where no phase was begun.
    pub fn run(&mut self, mut go_on: impl FnMut(Snapshot) -> bool) {
        let mut stopped = false;
        let mut goes_on = |snapshot| {
            stopped |= !go_on(snapshot);
            !stopped
        };
        match self.under_way.as_mut().expect("a phase that was begun") {
            UnderWay::Load(load) => {
                let (phase, watch) = load.as_mut();
                self.world.run(|world| {
                    watch.look(world);
                    goes_on(snapshot(world, phase.warm_up_ns))
                });
            }
            UnderWay::Metadata(metadata) => {
                let (_, watch) = metadata.as_mut();
                self.world.run(|world| {
                    watch.look(world);
                    let progress = world.metadata_progress(METADATA_DRIVE);
                    goes_on(metadata_snapshot(&progress))
                });
            }
            UnderWay::Sort(sort) => {
                let (_, watch) = sort.as_mut();
                self.world.run(|world| {
                    watch.look(world);
                    goes_on(sort::snapshot(world))
                });
            }
        }
        self.stopped = stopped;
    }

    /// What the phase came to. `started_unix_ns` is when it was run, in the time of whoever ran it.
    ///
    /// # Panics
    /// Where no phase was begun.
    pub fn end(&mut self, started_unix_ns: u64, build_profile: &'static str) -> Record {
        let circumstances = Circumstances {
            started_unix_ns,
            wall_clock_shift_ns: 0,
            clock: ClockKind::Model,
            stopped: self.stopped,
            build_profile,
        };
        match self.under_way.take().expect("a phase that was begun") {
            UnderWay::Load(load) => {
                let (phase, watch) = *load;
                self.end_load(&phase, watch, circumstances)
            }
            UnderWay::Metadata(metadata) => {
                let (phase, watch) = *metadata;
                let (probes, traces) = watch.end(&mut self.world, started_unix_ns);
                self.traces = traces;
                let results = self.world.end_metadata(METADATA_DRIVE);
                self.world.end_phase();
                metadata_record(&phase, circumstances, results, probes)
            }
            UnderWay::Sort(sort) => {
                let (phase, watch) = *sort;
                let (probes, traces) = watch.end(&mut self.world, started_unix_ns);
                self.traces = traces;
                let results = self.world.end_sorting();
                self.world.end_phase();
                Record {
                    phase: AnyRecord::Sort(sort::record(&phase, circumstances, &results)),
                    probes,
                }
            }
        }
    }

    fn end_load(&mut self, phase: &Phase, watch: Watch, circumstances: Circumstances) -> Record {
        let (probes, traces) = watch.end(&mut self.world, circumstances.started_unix_ns);
        self.traces = traces;
        let results = self.world.end_phase();
        let groups = results.groups.into_iter().map(Some).collect();
        Record {
            phase: AnyRecord::Load(assemble(phase, circumstances, groups)),
            probes,
        }
    }

    /// The trace files of the last phase by their names, where its probes were asked for some.
    pub fn take_traces(&mut self) -> BTreeMap<String, Vec<u8>> {
        std::mem::take(&mut self.traces)
    }

    /// Where files lie, as the probe `extents` tells it: after a sync, so that all that is written has a place.
    pub fn examine(&mut self, paths: Vec<String>, bounds: Bounds) -> Examined {
        self.world.sync();
        let files = paths.into_iter().map(|path| {
            let file = self.files.get(&(path.clone(), 0)).and_then(|&file| {
                let spec = self.world.file(file);
                (!matches!(spec.place, FileLayout::Mounted)).then(|| FileExtents {
                    drive: spec.drive as u16,
                    size_bytes: spec.size_bytes,
                    extents: self.world.extents(file),
                })
            });
            (path, file)
        });
        examined(files.collect(), bounds)
    }

    /// Conservation and Little's law, of all so far.
    pub fn check(&self) -> Result<(), Violation> {
        self.world.check()
    }

    fn file(
        &mut self,
        number: usize,
        spec: &workload::phase::FileSpec,
    ) -> Result<FileId, SpecError> {
        let key = (spec.path.clone(), spec.base_bytes);
        if let Some(&known) = self.files.get(&key) {
            self.world.grow_file(known, spec.size_bytes);
            return Ok(known);
        }
        let wrong =
            |key: &str, what: String| Err(SpecError::of(&format!("files.{number}.{key}"), what));
        let drive = spec.place.unwrap_or(0) as usize;
        let Some(capacity) = self.machine.drive_sectors(drive) else {
            return self.mounted_file(number, spec);
        };
        let sectors = spec.size_bytes.div_ceil(SECTOR_BYTES);
        let place = if self.machine.has_filesystem(drive) {
            let (directory, _) = spec.path.rsplit_once('/').unwrap_or(("", ""));
            let next = self.directories.len() as u32;
            let directory = *self.directories.entry(directory.to_owned()).or_insert(next);
            FileLayout::Allocated { directory }
        } else if spec.path.is_empty() {
            FileLayout::Contiguous(spec.base_bytes / SECTOR_BYTES)
        } else {
            FileLayout::Contiguous(self.next_sector[drive])
        };
        let begin = match place {
            FileLayout::Contiguous(begin) => begin,
            FileLayout::Allocated { .. } | FileLayout::Mounted => 0,
        };
        if begin.saturating_add(sectors) > capacity {
            let bytes = capacity * SECTOR_BYTES;
            return wrong(
                "size_bytes",
                format!("with the files before it more than drive {drive} has, {bytes} bytes"),
            );
        }
        if !spec.path.is_empty() {
            self.next_sector[drive] = (begin + sectors).next_multiple_of(REGION_ALIGN_SECTORS);
        }
        let file = self.world.add_file(FileSpec {
            name: spec.path.clone(),
            drive,
            size_bytes: spec.size_bytes,
            place,
        });
        self.files.insert(key, file);
        Ok(file)
    }

    /// Places count drives first.
    fn mounted_file(
        &mut self,
        number: usize,
        spec: &workload::phase::FileSpec,
    ) -> Result<FileId, SpecError> {
        let (drives, mounts) = (self.machine.drive_count(), self.machine.mount_count());
        let place = spec.place.unwrap_or(0) as usize;
        if place >= drives + mounts {
            let key = format!("files.{number}.place");
            let what = format!("the machine has {drives} drives and {mounts} mounts");
            return Err(SpecError::of(&key, what));
        }
        let file = self.world.add_file(FileSpec {
            name: spec.path.clone(),
            drive: place - drives,
            size_bytes: spec.size_bytes,
            place: FileLayout::Mounted,
        });
        let key = (spec.path.clone(), spec.base_bytes);
        self.files.insert(key, file);
        Ok(file)
    }
}

fn metadata_record(
    phase: &MetadataPhase,
    circumstances: Circumstances,
    results: Results,
    probes: Observations,
) -> Record {
    let used_percent = Some(results.filesystem_used_percent);
    let record = metadata::assemble(phase, circumstances, results.threads, used_percent);
    Record {
        phase: AnyRecord::Metadata(record),
        probes: Observations {
            switches: results.switches,
            ..probes
        },
    }
}

fn metadata_snapshot(progress: &Progress) -> Snapshot {
    Snapshot {
        elapsed_ns: progress.elapsed_ns,
        ops: progress.files,
        bytes: 0,
        errors: 0,
        fraction: progress.fraction,
        warming_up: false,
        done: false,
    }
}

fn snapshot(world: &World, warm_up_ns: u64) -> Snapshot {
    let progress = world.progress();
    let elapsed_ns = world.elapsed_ns();
    Snapshot {
        elapsed_ns,
        ops: progress.ops,
        bytes: progress.bytes,
        errors: progress.errors,
        fraction: progress.fraction,
        warming_up: elapsed_ns < warm_up_ns,
        done: false,
    }
}
