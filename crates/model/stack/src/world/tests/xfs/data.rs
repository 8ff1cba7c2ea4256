//! Files with data: written into the cache, written back by flushers.

use super::*;

const ALL: [Allocation; 4] = [Allocation::Direct, Allocation::Workqueue, Allocation::DataOnly, Allocation::Mapping];

/// Pages are due at once.
fn eager(ag_count: u32) -> XfsSpec {
    let mut spec = filesystem(ag_count);
    spec.writeback.background_blocks = 0;
    spec
}

fn of_bytes(bytes: u64, write: u32) -> serde_json::Value {
    json!({ "/job/file_bytes": bytes, "/job/write_bytes": write })
}

fn sites(results: &Results) -> impl Fn(&str) -> u64 {
    let sites = &results.switches.as_ref().unwrap().report.sites;
    let found: std::collections::BTreeMap<String, u64> =
        sites.iter().map(|site| (site.site.clone(), site.switches)).collect();
    move |name| found.get(name).copied().unwrap_or(0)
}

#[test]
fn each_form_switches_where_its_kernel_does() {
    let found = ALL.map(|form| {
        let mut machine = Machine::new(processors(4, true), &eager(8), form);
        let results = run(&mut machine, &phase(1, 1_000, of_bytes(10_000, 4096)));
        assert_eq!(files(&results), 1_000);
        assert_eq!(machine.delayed_blocks(), 0);
        let site = sites(&results);
        (site("xfs_alloc_vextent"), site("xfs_bmapi_allocate"))
    });
    let [direct, workqueue, data_only, mapping] = found;
    assert_eq!(direct, (0, 0));
    // A thousand files' data at least; for metadata some 50 more.
    assert!(data_only.0 >= 1_000 && data_only.1 == 0, "{data_only:?}");
    assert!(workqueue.0 > data_only.0 + 20 && workqueue.1 == 0, "{workqueue:?}");
    assert!(mapping.1 >= 1_000 && mapping.0 == 0, "{mapping:?}");
}

#[test]
fn a_mapping_makes_several_calls_under_one_switch() {
    // Most of the free space is in pieces of one block, so files get many extents, and maps of these.
    let in_pieces = |form, bytes| {
        let mut spec = eager(1);
        (spec.blocks, spec.log_blocks) = (4096, 1024);
        let mut machine = Machine::new(processors(4, true), &spec, form);
        machine.0.xfs_mut(0).break_up(2_900);
        let results = run(&mut machine, &phase(1, 20, of_bytes(bytes, 100_000)));
        let maps: u64 = machine.files_inside().iter().map(|file| file.map_blocks).sum();
        let site = sites(&results);
        let switches = (site("xfs_alloc_vextent"), site("xfs_bmapi_allocate"));
        (machine.allocator_calls(), maps, switches)
    };
    let (metadata_calls, _, _) = in_pieces(Allocation::Direct, 0);
    let (calls, maps, switches) = in_pieces(Allocation::Mapping, 100_000);
    assert!(maps >= 10, "{maps}");
    assert_eq!(switches, (0, calls - metadata_calls - maps));
    let (calls, _, switches) = in_pieces(Allocation::Workqueue, 100_000);
    assert_eq!(switches, (calls, 0));
}

#[test]
fn pages_stay_dirty_until_they_have_expired_or_are_too_many() {
    let allocated = |expire_ns, background_blocks| {
        let mut spec = filesystem(8);
        spec.writeback.period_ns = 5_000_000;
        spec.writeback.expire_ns = expire_ns;
        spec.writeback.background_blocks = background_blocks;
        let mut machine = Machine::new(processors(4, true), &spec, Allocation::DataOnly);
        run(&mut machine, &phase(1, 1_000, of_bytes(4096, 4096)));
        machine.files_inside().iter().filter(|file| !file.extents.is_empty()).count()
    };
    assert_eq!(allocated(3_600_000_000_000, 100_000), 0);
    let expired = allocated(10_000_000, 100_000);
    assert!((500..1_000).contains(&expired), "{expired}");
    let over = allocated(3_600_000_000_000, 100);
    // What is on its way to the drive is dirty yet.
    assert!((900..905).contains(&over), "{over}");
}

#[test]
fn blocks_lie_near_the_inode() {
    let mut machine = Machine::new(processors(4, true), &eager(8), Allocation::Direct);
    run(&mut machine, &phase(1, 500, of_bytes(8192, 8192)));
    for file in machine.files_inside() {
        assert_eq!(file.extents.len(), 1);
        assert_eq!(u64::from(file.extents[0].0), file.inode >> 32);
        assert_eq!(file.extents[0].1, 2);
    }
}

#[test]
fn writes_find_a_filesystem_full_that_is_only_reserved() {
    let mut spec = filesystem(1);
    (spec.blocks, spec.log_blocks) = (4096, 1024);
    spec.writeback.expire_ns = 3_600_000_000_000;
    let mut machine = Machine::new(processors(2, false), &spec, Allocation::Mapping);
    let mut changes = of_bytes(1 << 20, 1 << 16);
    changes["/job/until_full"] = json!(true);
    let results = run(&mut machine, &phase(1, 1_000, changes));
    assert!((10..13).contains(&files(&results)), "{}", files(&results));
    assert!(results.filesystem_used_percent > 97.0);
}

/// One CPU whose queue has one allocation under way, and one group. Who has its free-space header from a first call on and
/// makes a second one in the same transaction needs the worker in which somebody else's call waits for the header.
fn with_one_worker(form: Allocation, bytes: u64) -> Result<(), Violation> {
    let mut spec = eager(1);
    spec.workers_max = 1;
    spec.writeback.flushers = 3;
    let mut machine = Machine::new(processors(1, true), &spec, form);
    let phase = phase(4, 20, of_bytes(bytes, 1 << 13));
    machine.begin(&phase, false).unwrap();
    machine.0.run(|_| true);
    machine.end();
    machine.0.check()
}

#[test]
fn a_holder_starves_behind_those_who_wait_for_it_unless_one_worker_makes_all_its_calls() {
    assert!(with_one_worker(Allocation::Workqueue, 1 << 18).is_err());
    for (form, bytes) in [(Allocation::Workqueue, 0), (Allocation::Direct, 1 << 18), (Allocation::Mapping, 1 << 18)] {
        let kept = with_one_worker(form, bytes);
        assert!(kept.is_ok(), "{form:?}");
    }
}

/// The second of two calls finds the room gone that it waited for. With that group's header still locked it then waited for
/// a lower one, whose holder waited for this one.
#[test]
fn a_header_that_has_no_room_after_all_is_let_go() {
    let mut spec = eager(2);
    (spec.blocks, spec.log_blocks) = (2 * 4096, 2048);
    spec.writeback.background_blocks = 25;
    spec.writeback.flushers = 3;
    let mut machine = Machine::new(processors(4, false), &spec, Allocation::DataOnly);
    machine.0.xfs_mut(0).break_up(1758);
    for _ in 0..2 {
        let mut changes = of_bytes(16_385, 16_385);
        changes["/job/keep"] = json!(false);
        run(&mut machine, &phase(5, 150, changes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No block is given twice and none is lost (`Xfs::check`), however the data are written, written back and unlinked;
    /// and a worker for each CPU is enough where one makes all of a mapping's calls.
    #[test]
    fn every_block_has_one_owner(
        threads in 1u32..6,
        keep in any::<bool>(),
        ag_count in 1u32..4,
        form in prop::sample::select(ALL.to_vec()),
        bytes in 1u64..60_000,
        write in 500u32..70_000,
        background in 0u32..200,
        flushers in 1u32..5,
        pieces in 0u32..2_000,
        small in any::<bool>(),
    ) {
        let mut spec = eager(ag_count);
        if small {
            (spec.blocks, spec.log_blocks) = (u64::from(ag_count) * 4096, 2048);
        }
        spec.writeback.background_blocks = background;
        spec.writeback.flushers = flushers;
        if matches!(form, Allocation::Mapping | Allocation::Direct) {
            spec.workers_max = 1;
        }
        let mut machine = Machine::new(processors(4, false), &spec, form);
        machine.0.xfs_mut(0).break_up(pieces);
        let mut changes = of_bytes(bytes, write);
        changes["/job/keep"] = json!(keep);
        for _ in 0..2 {
            let results = run(&mut machine, &phase(threads, 150, changes.clone()));
            prop_assert!(small || files(&results) == u64::from(threads) * 150);
            if !keep && !small {
                prop_assert_eq!(machine.files_inside().len(), 0);
            }
        }
    }
}
