//! A modelled machine as whoever runs trials sees it: phases in, records out, files by their names.

mod kinds;
#[cfg(test)]
mod mount_tests;
mod observed;
mod phase;
mod sort;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use trace::extents::{Bounds, Examined};
use workload::assemble::{Circumstances, assemble};
use workload::metadata::{self, MetadataPhase};
use workload::phase::Phase;
use workload::record::{ClockKind, Snapshot};

use crate::Impossible;
use crate::block::{SECTOR_BYTES, Sector};
use crate::cache::FileId;
use crate::machine::MachineSpec;
use crate::probe::extents::{FileExtents, examined};
use crate::station::Broken;
use crate::world::{FileSpec, Place, World};
use crate::xfs::{Mounted, Progress, Results};
pub use kinds::{AnyPhase, AnyRecord};
use observed::Watch;
pub use observed::{Observations, ObservedPhase, Probes, Record};
use sort::SortUnderWay;
pub use sort::{SortPhase, SortRecord};

pub struct Model {
    machine: MachineSpec,
    world: World,
    /// None until a metadata phase needs it.
    mounted: Option<Mounted>,
    /// By path and base.
    files: BTreeMap<(String, u64), FileId>,
    directories: BTreeMap<String, u32>,
    /// By drive without a filesystem: where the next file begins.
    next_sector: Vec<Sector>,
    /// The phase under way, and who watches it.
    phase: Option<Phase>,
    /// Or this, when it is one that makes files.
    metadata: Option<MetadataPhase>,
    /// Or this, when it is one that sorts.
    sort: Option<SortUnderWay>,
    /// What was found of the laws that the last of them was to keep.
    sort_laws: Result<(), Broken>,
    watch: Watch,
    /// The last phase was, before its end.
    stopped: bool,
    traces: BTreeMap<String, Vec<u8>>,
}

/// Files on a drive without a filesystem begin at multiples of this.
const REGION_ALIGN_SECTORS: Sector = 2048;

impl Model {
    pub fn new(machine: &MachineSpec) -> Result<Model, Impossible> {
        Ok(Model {
            machine: machine.clone(),
            world: machine.build()?,
            mounted: None,
            files: BTreeMap::new(),
            directories: BTreeMap::new(),
            next_sector: vec![0; machine.drive_count()],
            phase: None,
            metadata: None,
            sort: None,
            sort_laws: Ok(()),
            watch: Watch::default(),
            stopped: false,
            traces: BTreeMap::new(),
        })
    }

    /// Puts the phase's jobs in their places; `run` runs them. The error names a key of the phase.
    pub fn begin(&mut self, observed: ObservedPhase) -> Result<(), Impossible> {
        match observed.phase {
            AnyPhase::Load(phase) => self.begin_load(phase, &observed.probes),
            AnyPhase::Metadata(phase) => self.begin_metadata(phase, &observed.probes),
            AnyPhase::Sort(phase) => self.begin_sort(phase, &observed.probes),
        }
    }

    /// On the machine as it was switched on: what phases before it left behind has no memory then.
    fn begin_sort(&mut self, phase: SortPhase, probes: &Probes) -> Result<(), Impossible> {
        if !probes.is_empty() {
            let what = "the model's probes see nothing of sorting; leave them out";
            return Err(Impossible::of("probes", what));
        }
        self.sort = Some(SortUnderWay::new(phase, &self.machine)?);
        Ok(())
    }

    /// The filesystem is mounted by the first such phase.
    fn begin_metadata(&mut self, phase: MetadataPhase, probes: &Probes) -> Result<(), Impossible> {
        probes.check_of_metadata()?;
        let mounted = match &mut self.mounted {
            Some(mounted) => mounted,
            none => none.insert(self.machine.mount_xfs()?),
        };
        mounted.begin(&phase, probes.switches.as_ref())?;
        self.metadata = Some(phase);
        Ok(())
    }

    fn begin_load(&mut self, phase: Phase, probes: &Probes) -> Result<(), Impossible> {
        probes.check(self.machine.has_detailed_cpus())?;
        let mut spec = phase::translate(&phase, &self.machine)?;
        let files: Result<Vec<FileId>, Impossible> = phase
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
            .map_err(|error| Impossible::of("groups", error.to_string()))?;
        self.watch = Watch::new(probes, &phase, &mut self.world);
        self.phase = Some(phase);
        Ok(())
    }

    /// Runs the phase to its end. `go_on` is asked now and then; false stops its jobs.
    pub fn run(&mut self, mut go_on: impl FnMut(Snapshot) -> bool) {
        self.stopped = false;
        if let Some(sort) = &mut self.sort {
            let stopped = &mut self.stopped;
            return sort.run(|snapshot| {
                *stopped = !go_on(snapshot);
                !*stopped
            });
        }
        if let (Some(_), Some(mounted)) = (&self.metadata, &mut self.mounted) {
            let stopped = &mut self.stopped;
            return mounted.run(|progress| {
                *stopped |= !go_on(metadata_snapshot(&progress));
                !*stopped
            });
        }
        let warm_up_ns = self.phase.as_ref().map_or(0, |phase| phase.warm_up_ns);
        let mut stopped = false;
        self.world.run(|world| {
            self.watch.look(world);
            let goes_on = go_on(snapshot(world, warm_up_ns));
            stopped |= !goes_on;
            goes_on
        });
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
        if let Some(sort) = self.sort.take() {
            let (record, laws) = sort.end(circumstances);
            self.sort_laws = laws;
            return Record {
                phase: AnyRecord::Sort(record),
                probes: Observations::default(),
            };
        }
        if let (Some(phase), Some(mounted)) = (self.metadata.take(), &mut self.mounted) {
            return metadata_record(&phase, circumstances, mounted.end());
        }
        let phase = self.phase.take().expect("a phase that was begun");
        let (probes, traces) =
            std::mem::take(&mut self.watch).end(&mut self.world, started_unix_ns);
        self.traces = traces;
        let results = self.world.end_phase();
        let groups = results.groups.into_iter().map(Some).collect();
        Record {
            phase: AnyRecord::Load(assemble(&phase, circumstances, groups)),
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
                (!matches!(spec.place, Place::Mounted)).then(|| FileExtents {
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
    pub fn check(&self) -> Result<(), Broken> {
        self.sort_laws.clone()?;
        self.world.check()?;
        self.mounted.as_ref().map_or(Ok(()), Mounted::check)
    }

    fn file(
        &mut self,
        number: usize,
        spec: &workload::phase::FileSpec,
    ) -> Result<FileId, Impossible> {
        let key = (spec.path.clone(), spec.base_bytes);
        if let Some(&known) = self.files.get(&key) {
            self.world.grow_file(known, spec.size_bytes);
            return Ok(known);
        }
        let wrong =
            |key: &str, what: String| Err(Impossible::of(&format!("files.{number}.{key}"), what));
        let drive = spec.place.unwrap_or(0) as usize;
        if self.machine.has_xfs(drive) {
            let what = "the model's XFS takes metadata phases only: no file of a load lies there";
            return wrong("place", what.to_owned());
        }
        let Some(capacity) = self.machine.drive_sectors(drive) else {
            return self.mounted_file(number, spec);
        };
        let sectors = spec.size_bytes.div_ceil(SECTOR_BYTES);
        let place = if self.machine.has_filesystem(drive) {
            let (directory, _) = spec.path.rsplit_once('/').unwrap_or(("", ""));
            let next = self.directories.len() as u32;
            let directory = *self.directories.entry(directory.to_owned()).or_insert(next);
            Place::Allocated { directory }
        } else if spec.path.is_empty() {
            Place::Contiguous(spec.base_bytes / SECTOR_BYTES)
        } else {
            Place::Contiguous(self.next_sector[drive])
        };
        let begin = match place {
            Place::Contiguous(begin) => begin,
            Place::Allocated { .. } | Place::Mounted => 0,
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
    ) -> Result<FileId, Impossible> {
        let (drives, mounts) = (self.machine.drive_count(), self.machine.mount_count());
        let place = spec.place.unwrap_or(0) as usize;
        if place >= drives + mounts {
            let key = format!("files.{number}.place");
            let what = format!("the machine has {drives} drives and {mounts} mounts");
            return Err(Impossible::of(&key, what));
        }
        let file = self.world.add_file(FileSpec {
            name: spec.path.clone(),
            drive: place - drives,
            size_bytes: spec.size_bytes,
            place: Place::Mounted,
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
) -> Record {
    let used_percent = Some(results.filesystem_used_percent);
    let record = metadata::assemble(phase, circumstances, results.threads, used_percent);
    Record {
        phase: AnyRecord::Metadata(record),
        probes: Observations {
            switches: results.switches,
            ..Observations::default()
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
