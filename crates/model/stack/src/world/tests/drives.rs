//! Buffered writers on two drives: who writes back where.

use super::*;
use block_layer::{EventKind, KERNEL_TASKS};
use cache::CacheVariant;

/// Two disks, each with a file; a writer on each, and who had something written on which.
fn writers_back(variant: CacheVariant) -> [BTreeSet<TaskId>; 2] {
    let disk = || DriveParts {
        polling: None,
        run_costs: None,
        queue: RequestQueue::new(rules(), Box::new(Noop::default())),
        device: Box::new(Disk::new(&test_disk()).unwrap()),
        filesystem: None,
        write_bio_sectors_max: 2048,
        peek: false,
    };
    let cache = PageCache::new(&CacheSpec::new(variant, 16 << 20)).unwrap();
    let mut world = World::new(CPUS, vec![disk(), disk()], Some(cache), None);
    for drive in 0..2 {
        world.add_file(FileSpec {
            name: format!("disk.{drive}"),
            drive,
            size_bytes: 20 << 20,
            place: FileLayout::Contiguous(0),
        });
    }
    world.tap();
    let groups: Vec<GroupSpec> = (0..2)
        .map(|file| {
            let writer = JobSpec { sync_at_end: false, ..sequential(file, 12 << 20, 0.0) };
            group(Path::Buffered, vec![writer])
        })
        .collect();
    let phase = PhaseSpec { files: vec![0, 1], ..phase(&groups, 1) };
    run_phase(&mut world, &phase);
    let mut events = Vec::new();
    world.take_events(&mut events);
    let mut tasks = [BTreeSet::new(), BTreeSet::new()];
    for event in events {
        if event.kind == EventKind::Queue
            && let Some(task) = event.task.filter(|&task| task >= KERNEL_TASKS)
        {
            tasks[usize::from(event.drive)].insert(task);
        }
    }
    tasks
}

#[test]
fn each_drive_is_written_by_its_own_flusher_from_2_6_32_on_and_by_any_pdflush_before() {
    let pdflush: BTreeSet<TaskId> = (0..8).map(|number| KERNEL_TASKS + 4 * number).collect();
    for variant in [CacheVariant::Linux2_5, CacheVariant::Linux2_6_18] {
        for found in writers_back(variant) {
            let is_pdflush = found.is_subset(&pdflush);
            assert!(!found.is_empty() && is_pdflush, "{variant:?} {found:?}");
        }
    }
    for variant in [CacheVariant::Linux2_6_35, CacheVariant::Linux3_2] {
        let expected = [0, 4].map(|number| BTreeSet::from([KERNEL_TASKS + number]));
        assert_eq!(writers_back(variant), expected, "{variant:?}");
    }
}
