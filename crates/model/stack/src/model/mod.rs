//! A simulated machine as the runner of trials sees it: phases in, records out, files by their names.

#[cfg(test)]
mod ext_tests;
#[cfg(test)]
mod flush_tests;
#[cfg(test)]
mod group_control_tests;
#[cfg(test)]
mod inode_tests;
mod kinds;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod mixed_tests;
#[cfg(test)]
mod mount_tests;
mod observation;
mod phase;
#[cfg(test)]
mod poll_tests;
#[cfg(test)]
mod read_tests;
mod readers;
#[cfg(test)]
mod ring_tests;
mod sort;
#[cfg(test)]
mod tests;
mod together;
#[cfg(test)]
mod together_tests;
#[cfg(test)]
mod writeback_tests;

use std::collections::BTreeMap;

use trace::extents::{Bounds, Examinations};
use workload::assemble::{Circumstances, assemble};
use workload::metadata::{self, MetadataPhase};
#[cfg(test)]
use workload::phase::Phase;
use workload::record::{ClockKind, Snapshot};

use crate::machine::MachineSpec;
use crate::probe::extents::{FileExtents, examined};
use crate::world::{FileLayout, FileSpec, PhaseSpec, World};
use base::units::counted;
use block_layer::{SECTOR_BYTES, Sector};
use devices::flash::ProgrammedUnits;
use events::SpecError;
use events::station::Violation;
use filesystems::switches::SwitchesOptions;
pub use kinds::{AnyPhase, AnyRecord, LoadRecord};
use memory::cache::FileId;
use observation::Watch;
pub use observation::{Observations, ObservedPhase, Probes, Record};
pub use readers::{UnreadKey, unread};
pub use sort::{SortPhase, SortRecord};

/// Whether the machine has a mechanism for all that a load asks. The error names a key of the load.
pub fn check_load(machine: &MachineSpec, load: serde_json::Value) -> Result<(), SpecError> {
    match ObservedPhase::from_json(load)?.phase {
        AnyPhase::Load(load) => phase::translate(&load, machine).map(drop),
        AnyPhase::Metadata(_) | AnyPhase::Sort(_) | AnyPhase::Together { .. } => Ok(()),
    }
}

/// A simulated machine that runs phases: caches, files and devices keep their state from one to the next.
pub struct Model {
    machine: MachineSpec,
    world: World,
    /// By path and base.
    files: BTreeMap<(String, u64), FileId>,
    directories: BTreeMap<String, u32>,
    /// By drive without a filesystem: where the next file begins.
    next_sector: Vec<Sector>,
    in_flight: Option<RunningPhases>,
    /// The last phase was, before its end.
    stopped: bool,
    traces: BTreeMap<String, Vec<u8>>,
}

/// Phases that were begun together, and what watches them.
struct RunningPhases {
    phases: Vec<AnyPhase>,
    /// They were asked for as one of their own, not beside others.
    alone: bool,
    /// The one whose end stops the others.
    stops: Option<usize>,
    watch: Watch,
    /// By all drives, before the phases began.
    programmed: ProgrammedUnits,
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
            in_flight: None,
            stopped: false,
            traces: BTreeMap::new(),
        })
    }

    /// Puts the jobs of all phases in their places; `run` runs them. The error names a key of the phase.
    pub fn begin(&mut self, observed: ObservedPhase) -> Result<(), SpecError> {
        let ObservedPhase { phase, probes } = observed;
        let (phases, alone, stops) = match phase {
            AnyPhase::Together { phases, stops_with } => (phases, false, stops_with),
            phase => (vec![phase], true, None),
        };
        together::check(&phases, stops)?;
        together::check_probes(&probes, &phases, self.machine.has_detailed_cpus())?;
        self.begin_loads(&phases)?;
        let mut names = together::names_of_loads(&phases);
        names.extend(self.world.cache_task_names());
        for phase in &phases {
            match phase {
                AnyPhase::Metadata(phase) => {
                    let switches = probes.switches.as_ref();
                    self.begin_metadata(phase, switches)?;
                    names.extend(self.world.task_names(METADATA_DRIVE));
                }
                AnyPhase::Sort(phase) => {
                    let load = phase.load();
                    let area = self.machine.swap_area(&load)?;
                    self.world.begin_sorting(&area, &load);
                    names.extend(self.world.sorting_names());
                }
                AnyPhase::Load(_) | AnyPhase::Together { .. } => {}
            }
        }
        let drives = self.machine.drive_names();
        let watch = Watch::new(&probes, &names, drives, &mut self.world);
        self.in_flight = Some(RunningPhases { phases, alone, stops, watch, programmed: self.world.programmed() });
        Ok(())
    }

    fn begin_loads(&mut self, phases: &[AnyPhase]) -> Result<(), SpecError> {
        let load = phases.iter().find_map(|phase| match phase {
            AnyPhase::Load(load) => Some(load),
            _ => None,
        });
        let Some(load) = load else {
            let seed = phases.first().map_or(0, together::seed_of);
            return self
                .world
                .begin_phase(&PhaseSpec::without_loads(seed))
                .map_err(|error| SpecError::of("groups", error.to_string()));
        };
        let mut spec = phase::translate(load, &self.machine)?;
        let files: Result<Vec<FileId>, SpecError> =
            load.files.iter().enumerate().map(|(number, file)| self.file(number, file)).collect();
        spec.files = files?;
        if load.drop_caches {
            self.world.drop_caches();
        }
        self.world.begin_phase(&spec).map_err(|error| SpecError::of("groups", error.to_string()))
    }

    fn begin_metadata(&mut self, phase: &MetadataPhase, switches: Option<&SwitchesOptions>) -> Result<(), SpecError> {
        if !self.machine.has_xfs(METADATA_DRIVE) {
            let Some((mount, spec)) = self.machine.ext(METADATA_DRIVE) else {
                let what = "files are made in a filesystem of kind xfs, ext2, ext3, ext3_windows or ext4 on drive 0";
                return Err(SpecError::of("kind", what));
            };
            if self.machine.journals_data(METADATA_DRIVE) {
                let what = "files are made with data = ordered or writeback; leave data = \"journal\" to loads";
                let key = format!("drives.{METADATA_DRIVE}.metadata.data");
                return Err(SpecError::of(&key, what));
            }
            self.world
                .mount_ext(METADATA_DRIVE, &mount, spec)
                .map_err(|error| error.within(&format!("drives.{METADATA_DRIVE}")))?;
        }
        self.world.begin_metadata(METADATA_DRIVE, phase, switches)
    }

    /// Runs the phases to their ends. `go_on` is asked now and then; false stops their jobs.
    ///
    /// # Panics
    /// Where no phase was begun.
    pub fn run(&mut self, mut go_on: impl FnMut(Snapshot) -> bool) {
        let mut stopped = false;
        let in_flight = self.in_flight.as_mut().expect("a phase that was begun");
        let RunningPhases { phases, stops, watch, .. } = in_flight;
        let stopper = stops.map(|number| together::part_of(&phases[number]));
        self.world.stop_others_with(stopper);
        self.world.run(|world| {
            watch.look(world);
            stopped |= !go_on(together::snapshot(world, phases, *stops));
            !stopped
        });
        self.stopped = stopped;
    }

    /// The results of the phases. `started_unix_ns` is when they were run, by the caller's clock.
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
        let in_flight = self.in_flight.take().expect("a phase that was begun");
        let (mut probes, traces) = in_flight.watch.end(&mut self.world, started_unix_ns);
        self.traces = traces;
        // What is still in flight when the measured time is over comes to its end after the others have been looked at.
        let mut records: Vec<Option<AnyRecord>> = Vec::new();
        for phase in &in_flight.phases {
            records.push(match phase {
                AnyPhase::Metadata(phase) => {
                    let results = self.world.end_metadata(METADATA_DRIVE);
                    probes.switches = results.switches;
                    let used_percent = Some(results.filesystem_used_percent);
                    let record = metadata::assemble(phase, circumstances, results.threads, used_percent);
                    Some(AnyRecord::Metadata(record))
                }
                AnyPhase::Sort(phase) => {
                    let results = self.world.end_sorting();
                    Some(AnyRecord::Sort(sort::record(phase, circumstances, &results)))
                }
                AnyPhase::Load(_) | AnyPhase::Together { .. } => None,
            });
        }
        let mut groups = Some(self.world.end_phase().groups);
        let programmed = self.world.programmed() - in_flight.programmed;
        let space = self.world.flash_space();
        let records = in_flight.phases.iter().zip(records).map(|(phase, record)| match (phase, record) {
            (AnyPhase::Load(load), _) => {
                let groups = groups.take().expect("one load runs at a time");
                let groups = groups.into_iter().map(Some).collect();
                let record = assemble(load, circumstances, groups);
                AnyRecord::Load(LoadRecord::new(record, programmed, space))
            }
            (_, Some(record)) => record,
            (_, None) => unreachable!("phases that run together are of other kinds"),
        });
        let mut phases: Vec<AnyRecord> = records.collect();
        let phase = match in_flight.alone {
            true => phases.pop().expect("one that was begun"),
            false => AnyRecord::Together { phases },
        };
        Record { phase, probes }
    }

    /// The trace files of the last phase by their names, if its probes were asked for some.
    pub fn take_traces(&mut self) -> BTreeMap<String, Vec<u8>> {
        std::mem::take(&mut self.traces)
    }

    /// The places of files, as the probe `extents` reports them: after a sync, so that all that is written has a place.
    pub fn examine(&mut self, paths: Vec<String>, bounds: Bounds) -> Examinations {
        self.world.sync();
        let drives = self.machine.drive_names();
        let files = paths.into_iter().map(|path| {
            let file = self.files.get(&(path.clone(), 0)).and_then(|&file| {
                let spec = self.world.file(file);
                (!matches!(spec.place, FileLayout::Mounted)).then(|| FileExtents {
                    device: drives[spec.drive].device,
                    size_bytes: spec.size_bytes,
                    extents: self.world.extents(file),
                })
            });
            (path, file)
        });
        examined(files.collect(), bounds)
    }

    /// Conservation and Little's law, of all until now.
    pub fn check(&self) -> Result<(), Violation> {
        self.world.check()
    }

    fn file(&mut self, number: usize, spec: &workload::phase::FileSpec) -> Result<FileId, SpecError> {
        let stream = spec.write_hint.map_or(0, |hint| hint as u8);
        let key = (spec.path.clone(), spec.base_bytes);
        if let Some(&known) = self.files.get(&key) {
            self.world.grow_file(known, spec.size_bytes);
            self.world.set_write_stream(known, stream);
            return Ok(known);
        }
        let wrong = |key: &str, what: String| Err(SpecError::of(&format!("files.{number}.{key}"), what));
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
            return wrong("size_bytes", format!("with the files before it more than drive {drive} has, {bytes} bytes"));
        }
        if !spec.path.is_empty() {
            self.next_sector[drive] = (begin + sectors).next_multiple_of(REGION_ALIGN_SECTORS);
        }
        let file = self.world.add_file(FileSpec { name: spec.path.clone(), drive, size_bytes: spec.size_bytes, place });
        self.world.set_write_stream(file, stream);
        if matches!(place, FileLayout::Contiguous(_)) {
            self.world.join_device(file);
        }
        self.files.insert(key, file);
        Ok(file)
    }

    /// Places count drives first.
    fn mounted_file(&mut self, number: usize, spec: &workload::phase::FileSpec) -> Result<FileId, SpecError> {
        let (drives, mounts) = (self.machine.drive_count(), self.machine.mount_count());
        let place = spec.place.unwrap_or(0) as usize;
        if place >= drives + mounts {
            let key = format!("files.{number}.place");
            let what = format!("the machine has {} and {}", counted(drives, "drive"), counted(mounts, "mount"));
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
