//! Processes that sort more than memory holds: their work, and the I/O of the swap area on its drive.

use super::World;
use super::clock::Event;
use super::cpus::{Cost, Origin, RUNNERS, RunnerNumber, WorkItem};
use super::driven_component::DrivenComponent;
use super::vfs::FileExtent;
use crate::key_reader::KeyReader;
use block_layer::{Bio, Direction, Sector, TaskId};
use events::Component;
use events::smp::{Context, Rank, TaskSpec, TaskUsage};
use events::station::Violation;
use events::time::Time;
use memory::swap::{Effect, ReclaimKind, Results, SortLoad, SortProcesses, SwapSpec};

/// The processes of a phase, and where they swap.
pub(super) struct Swap {
    sorting: DrivenComponent<SortProcesses>,
    /// By the processes' own numbers.
    runners: Vec<RunnerNumber>,
    drive: usize,
    /// Where the area begins.
    begin: Sector,
    files_keep_percent: u64,
    /// Bios and pieces of work in flight.
    in_flight: u64,
}

/// Where a machine swaps, and how.
#[derive(Clone, Copy, Debug)]
pub struct SwapArea {
    /// Costs and sizes.
    pub spec: SwapSpec,
    /// Where the area begins on its drive.
    pub begin: Sector,
    /// How pages are found that can go.
    pub reclaim: ReclaimKind,
    /// Of memory, in percent, what files keep of their pages before processes swap.
    pub files_keep_percent: u64,
}

/// The bit of the tag of the swap area's bios.
pub(super) const OF_SWAP: u32 = 1 << 29;
const SECTORS_PER_SLOT: u64 = 8;

impl Swap {
    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        self.sorting.check(now)
    }

    #[cfg(test)]
    pub(super) fn hold_contract(&mut self, now: Time) -> Result<(), Violation> {
        events::component::hold_contract(&mut *self.sorting, now)
    }
}

impl World {
    /// Processes that sort, beside the jobs of the phase that was begun. `load` has been checked.
    pub fn begin_sorting(&mut self, area: &SwapArea, load: &SortLoad) {
        let now = self.clock.now();
        let sorting = SortProcesses::new(now, &area.spec, load, area.reclaim);
        let cpus = u32::from(self.cpus.count());
        let runners = (0..sorting.tasks()).map(|task| {
            self.cpus.add_runner(TaskSpec {
                rank: Rank::Normal,
                last_cpu: (task % cpus) as u16,
                allowed: None,
                sleeps_for_io: false,
            })
        });
        let runners: Vec<RunnerNumber> = runners.collect();
        self.swap = Some(Swap {
            sorting: DrivenComponent::new(sorting),
            runners,
            drive: area.spec.drive,
            begin: area.begin,
            files_keep_percent: area.files_keep_percent,
            in_flight: 0,
        });
        self.touched.extend([KeyReader::Cpus, KeyReader::Swap, KeyReader::Drive(area.spec.drive as u16)]);
        self.follow_swap(now);
    }

    /// The results of the phase's processes; what they have in flight comes to its end.
    pub fn end_sorting(&mut self) -> Results {
        let cpus = &self.cpus;
        let swap = self.swap.as_ref().expect("processes sort");
        let used = |task: TaskId| -> TaskUsage { cpus.runner_usage(swap.runners[task as usize]) };
        let results = swap.sorting.results(used);
        self.swap_mut().sorting.stop();
        if let Some(cache) = self.vfs.cache_mut() {
            cache.leave(0);
        }
        self.clock.progressed(self.clock.now());
        while self.swap_mut().in_flight > 0 {
            let (at, event) = self.next_event().expect("something is under way");
            self.handle(at, event);
        }
        results
    }

    /// What the phase's processes are called.
    pub fn sorting_names(&self) -> Vec<(TaskId, String)> {
        let runners = self.swap.iter().flat_map(|swap| &swap.runners);
        let count = runners.clone().count();
        let name = |number: usize| match number == count {
            true => "kswapd".to_owned(),
            false => format!("sort.{number}"),
        };
        (1..).zip(runners).map(|(number, runner)| (RUNNERS + runner, name(number))).collect()
    }

    /// The part that is sorted, in the current phase.
    pub fn sorted_so_far(&self) -> f64 {
        self.swap.as_ref().map_or(1.0, |swap| swap.sorting.fraction())
    }

    /// Whether processes still sort.
    pub(super) fn sorts(&self) -> bool {
        self.swap.as_ref().is_some_and(|swap| swap.sorting.is_active())
    }

    pub(super) fn stop_sorting(&mut self) {
        if let Some(swap) = &mut self.swap {
            swap.sorting.stop();
        }
    }

    pub(super) fn sorting_worked(&mut self, now: Time, task: TaskId) {
        let swap = self.swap_mut();
        swap.in_flight -= 1;
        swap.sorting.worked(now, task);
        self.follow_swap(now);
    }

    /// The time has come for which the processes, or those of an earlier phase, have asked.
    pub(super) fn run_swap(&mut self, now: Time) {
        let swap = self.swap_mut();
        swap.sorting.event_came(now);
        swap.sorting.advance(now);
        self.follow_swap(now);
    }

    pub(super) fn swap_bio_done(&mut self, now: Time, bio: &Bio) {
        let swap = self.swap_mut();
        swap.in_flight -= 1;
        let first = bio.tag & !OF_SWAP;
        let slots = bio.sectors / SECTORS_PER_SLOT as u32;
        swap.sorting.moved(now, bio.direction, first, slots);
        self.follow_swap(now);
    }

    /// A runner that waited for requests has them all.
    pub(super) fn sorting_granted(&mut self, now: Time, task: TaskId) {
        let Some(swap) = &mut self.swap else {
            return;
        };
        let runner = task.checked_sub(RUNNERS);
        let own = runner.and_then(|runner| swap.runners.iter().position(|&one| one == runner));
        if let Some(own) = own {
            swap.sorting.granted(now, own as TaskId);
            self.follow_swap(now);
        }
    }

    /// Files and processes share the memory: clean pages of files go first, but for what the kernel has files keep.
    pub(super) fn share_memory(&mut self, now: Time) {
        let Some(swap) = self.swap.as_mut().filter(|one| one.sorting.is_active()) else {
            return;
        };
        let Some(cache) = self.vfs.cache_mut() else {
            return;
        };
        cache.leave(swap.sorting.resident_pages());
        let pages = cache.memory_pages() - cache.kept_pages(swap.files_keep_percent);
        swap.sorting.give_pages(now, pages);
        if swap.sorting.has_effects() {
            self.follow_swap(now);
        }
    }

    fn swap_mut(&mut self) -> &mut Swap {
        self.swap.as_mut().expect("processes sort")
    }

    fn follow_swap(&mut self, now: Time) {
        let swap = self.swap.as_mut().expect("processes sort");
        let drive = swap.drive;
        let sorting = &mut swap.sorting;
        sorting.call_back(now, Event::Swap, &mut self.clock);
        let mut effects = sorting.effects();
        let mut goes_to_drive = false;
        let mut submitted: Vec<TaskId> = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Work { task, ns } => {
                    let swap = self.swap_mut();
                    swap.in_flight += 1;
                    let runner = swap.runners[task as usize];
                    let item = WorkItem {
                        cost: Cost::Ns(ns),
                        context: Context::User,
                        lock: None,
                        of: Some(Origin::Sorting(task)),
                    };
                    self.give(now, runner, None, item);
                }
                Effect::Io { task, direction, first, slots } => {
                    goes_to_drive = true;
                    submitted.push(task);
                    self.start_swap_io(now, task, direction, first, slots);
                }
                Effect::Unplug => {
                    goes_to_drive = true;
                    self.io[drive].unplug(now);
                }
                Effect::Exit(task) => {
                    let task = RUNNERS + self.swap_mut().runners[task as usize];
                    self.io[drive].exited(now, task);
                    self.call_drive(now, drive);
                }
            }
        }
        self.swap_mut().sorting.give_back(effects);
        if goes_to_drive {
            self.flush_task_plug(now);
            self.call_drive(now, drive);
        }
        submitted.dedup();
        for task in submitted {
            let runner = RUNNERS + self.swap_mut().runners[task as usize];
            if !self.io.waits(runner) {
                self.swap_mut().sorting.granted(now, task);
                self.follow_swap(now);
            }
        }
        self.share_memory(now);
    }

    fn start_swap_io(&mut self, now: Time, task: TaskId, direction: Direction, mut first: u32, mut slots: u32) {
        let swap = self.swap_mut();
        let (drive, begin) = (swap.drive, swap.begin);
        let task = RUNNERS + swap.runners[task as usize];
        let most = self.io[drive].bio_sectors_max() / SECTORS_PER_SLOT as u32;
        while slots > 0 {
            let here = slots.min(most);
            let place = FileExtent {
                start: begin + u64::from(first) * SECTORS_PER_SLOT,
                sectors: here * SECTORS_PER_SLOT as u32,
                at: 0,
            };
            let sync = direction == Direction::Read;
            let bio = self.bio(now, task, direction, sync, place, first | OF_SWAP);
            self.swap_mut().in_flight += 1;
            self.submit(now, drive, bio);
            first += here;
            slots -= here;
        }
    }
}
