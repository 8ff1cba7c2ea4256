//! Metadata loads on a filesystem that is a set of names: what is made, written, synced and unlinked, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use workload::metadata::{
    Call, FilePosition, MetadataJob, MetadataSpec, NameSpec, NextDirectory, SyncMethod, WalkSpec,
};

const SYNC_METHODS: [SyncMethod; 7] = [
    SyncMethod::None,
    SyncMethod::BeforeClose,
    SyncMethod::SystemThenFirst,
    SyncMethod::Reverse,
    SyncMethod::SystemThenReverse,
    SyncMethod::InOrder,
    SyncMethod::SystemThenInOrder,
];

fn spec() -> MetadataSpec {
    MetadataSpec {
        name: "thread".into(),
        files: 5,
        file_bytes: 10,
        write_bytes: 4,
        sync: SyncMethod::None,
        keep: false,
        until_full: false,
        subdirectories: None,
        names: NameSpec { bytes: 40, random_bytes: 24, first: 0, step: 1 },
        seed: 1,
    }
}

/// What a run left and did. A file is known by its subdirectory and name.
#[derive(Default)]
struct Disk {
    calls: Vec<Call>,
    directories: BTreeSet<u32>,
    bytes: BTreeMap<(Option<u32>, Vec<u8>), u64>,
    unlinked: u64,
    open: Option<(Option<u32>, Vec<u8>)>,
}

impl Disk {
    /// Each call takes a nanosecond; the calls numbered in `failing` fail.
    fn run(spec: &MetadataSpec, failing: &BTreeSet<usize>) -> Disk {
        let mut job = MetadataJob::new(spec).expect("a sound specification");
        let mut disk = Disk::default();
        let mut progress = 0.0;
        for now in 0.. {
            let call = job.next(now);
            assert_eq!(job.next(now), call, "asking again changes nothing");
            if call == Call::Done {
                break;
            }
            let succeeds = !failing.contains(&disk.calls.len());
            disk.calls.push(call);
            disk.apply(call, &job, succeeds);
            if !succeeds && spec.until_full {
                job.full();
            }
            job.completed(succeeds);
            let Some(now_done) = job.progress() else {
                assert!(spec.until_full);
                continue;
            };
            assert!((progress..=1.0).contains(&now_done), "progress never goes back");
            progress = now_done;
        }
        assert_eq!(job.progress(), Some(1.0));
        assert!(disk.open.is_none(), "a file was left open");
        disk
    }

    fn apply(&mut self, call: Call, job: &MetadataJob, succeeds: bool) {
        let name = |place: FilePosition| {
            let mut name = vec![0; job.name_bytes()];
            job.write_name(place.file, &mut name);
            (place.subdirectory, name)
        };
        match call {
            Call::Close => assert!(self.open.take().is_some(), "closed what was not open"),
            _ if !succeeds => {}
            Call::MakeDirectory { directory } => assert!(self.directories.insert(directory)),
            Call::Create(place) => {
                let key = name(place);
                assert!(key.0.is_none_or(|of| self.directories.contains(&of)));
                assert!(self.open.is_none());
                assert_eq!(self.bytes.insert(key.clone(), 0), None, "made twice");
                self.open = Some(key);
            }
            Call::Write { bytes } => {
                let key = self.open.as_ref().expect("an open file");
                *self.bytes.get_mut(key).unwrap() += u64::from(bytes);
            }
            Call::Fsync => assert!(self.open.is_some()),
            Call::FsyncAgain(place) => assert!(self.bytes.contains_key(&name(place))),
            Call::Unlink(place) => {
                assert!(self.bytes.remove(&name(place)).is_some());
                self.unlinked += 1;
            }
            Call::SystemSync | Call::Done => {}
        }
    }

    fn count(&self, is: impl Fn(&Call) -> bool) -> usize {
        self.calls.iter().filter(|call| is(call)).count()
    }

    fn synced_again(&self) -> Vec<u64> {
        let file = |call: &Call| match call {
            Call::FsyncAgain(place) => Some(place.file),
            _ => None,
        };
        self.calls.iter().filter_map(file).collect()
    }
}

#[test]
fn a_file_is_made_written_in_chunks_and_closed_and_at_the_end_all_are_unlinked() {
    let mut spec = spec();
    spec.files = 2;
    let calls = Disk::run(&spec, &BTreeSet::new()).calls;
    let place = |file| FilePosition { file, subdirectory: None };
    let one = |file| {
        [
            Call::Create(place(file)),
            Call::Write { bytes: 4 },
            Call::Write { bytes: 4 },
            Call::Write { bytes: 2 },
            Call::Close,
        ]
    };
    let mut expected: Vec<Call> = (0..2).flat_map(one).collect();
    expected.extend((0..2).map(|file| Call::Unlink(place(file))));
    assert_eq!(calls, expected);
}

#[test]
fn each_sync_method_syncs_what_its_name_says() {
    for (method, before_close, system, again) in [
        (SyncMethod::None, 0, 0, vec![]),
        (SyncMethod::BeforeClose, 5, 0, vec![]),
        (SyncMethod::SystemThenFirst, 0, 1, vec![0]),
        (SyncMethod::Reverse, 0, 0, vec![4, 3, 2, 1, 0]),
        (SyncMethod::SystemThenReverse, 0, 1, vec![4, 3, 2, 1, 0]),
        (SyncMethod::InOrder, 0, 0, vec![0, 1, 2, 3, 4]),
        (SyncMethod::SystemThenInOrder, 0, 1, vec![0, 1, 2, 3, 4]),
    ] {
        let mut spec = spec();
        spec.sync = method;
        let disk = Disk::run(&spec, &BTreeSet::new());
        assert_eq!(disk.count(|call| *call == Call::Fsync), before_close);
        assert_eq!(disk.count(|call| *call == Call::SystemSync), system);
        assert_eq!(disk.synced_again(), again, "{method:?}");
    }
}

#[test]
fn an_empty_file_is_not_written() {
    let mut spec = spec();
    spec.file_bytes = 0;
    let disk = Disk::run(&spec, &BTreeSet::new());
    assert_eq!(disk.count(|call| matches!(call, Call::Write { .. })), 0);
}

#[test]
fn a_stopped_job_does_nothing_more() {
    let mut job = MetadataJob::new(&spec()).unwrap();
    assert!(matches!(job.next(0), Call::Create(_)) && job.is_writing());
    job.stop();
    job.completed(true);
    assert!(job.next(1) == Call::Done && !job.is_writing());
}

#[test]
fn what_makes_no_sense_is_refused_with_the_thread_and_the_field() {
    for (field, change) in [
        ("files", (|spec| spec.files = 0) as fn(&mut MetadataSpec)),
        ("write_bytes", |spec| spec.write_bytes = 0),
        ("random", |spec| spec.names.random_bytes = 41),
        ("subdirectory", |spec| {
            let next_after = NextDirectory::Files(1);
            spec.subdirectories = Some(WalkSpec { count: 2, first: 2, next_after });
        }),
    ] {
        let mut wrong = spec();
        change(&mut wrong);
        let error = MetadataJob::new(&wrong).unwrap_err();
        assert!(error.contains("\"thread\"") && error.contains(field), "{error}");
    }
}

fn walks() -> impl Strategy<Value = Option<WalkSpec>> {
    let next_after = prop_oneof![(1u64..6).prop_map(NextDirectory::Files), (0u64..40).prop_map(NextDirectory::TimeNs)];
    let walk = (1u32..6, next_after)
        .prop_flat_map(|(count, next_after)| (0..count).prop_map(move |first| WalkSpec { count, first, next_after }));
    prop::option::of(walk)
}

prop_compose! {
    fn specs()(
        files in 1u64..60,
        file_bytes in 0u64..20,
        write_bytes in 1u32..8,
        method in 0..SYNC_METHODS.len(),
        keep: bool,
        subdirectories in walks(),
        seed: u64,
    ) -> MetadataSpec {
        MetadataSpec { files, file_bytes, write_bytes, sync: SYNC_METHODS[method], keep, subdirectories, seed, ..spec() }
    }
}

proptest! {
    #[test]
    fn every_file_is_made_once_whole_and_unlinked_once_or_kept(spec in specs()) {
        let disk = Disk::run(&spec, &BTreeSet::new());
        prop_assert_eq!(disk.count(|call| matches!(call, Call::Create(_))) as u64, spec.files);
        prop_assert_eq!(disk.count(|call| *call == Call::Close) as u64, spec.files);
        if spec.keep {
            prop_assert_eq!(disk.bytes.len() as u64, spec.files);
            prop_assert!(disk.bytes.values().all(|&bytes| bytes == spec.file_bytes));
        } else {
            prop_assert_eq!(disk.unlinked, spec.files);
            prop_assert!(disk.bytes.is_empty());
        }
    }

    #[test]
    fn files_go_round_the_directories_as_told(spec in specs()) {
        let disk = Disk::run(&spec, &BTreeSet::new());
        for call in &disk.calls {
            let (Call::Create(place) | Call::Unlink(place)) = call else { continue };
            match spec.subdirectories {
                None => prop_assert_eq!(place.subdirectory, None),
                Some(WalkSpec { count, first, next_after: NextDirectory::Files(each) }) => {
                    let expected = (u64::from(first) + place.file / each) % u64::from(count);
                    prop_assert_eq!(place.subdirectory, Some(expected as u32));
                }
                Some(WalkSpec { count, .. }) => prop_assert!(place.subdirectory.is_some_and(|of| of < count)),
            }
        }
    }

    /// Whatever fails: a file that is there at the end was made and not unlinked, none is open, nothing is done twice.
    #[test]
    fn failures_lose_no_file_from_the_books(
        spec in specs(),
        failing in prop::collection::btree_set(0usize..300, 0..30),
    ) {
        let disk = Disk::run(&spec, &failing);
        let succeeded = |is: fn(&Call) -> bool| {
            let calls = disk.calls.iter().enumerate();
            calls.filter(|(number, call)| !failing.contains(number) && is(call)).count()
        };
        let made = succeeded(|call| matches!(call, Call::Create(_)));
        let unlinked = succeeded(|call| matches!(call, Call::Unlink(_)));
        prop_assert_eq!(disk.bytes.len(), made - unlinked);
        prop_assert_eq!(disk.count(|call| *call == Call::Close), made);
        let tried = disk.count(|call| matches!(call, Call::Unlink(_)));
        prop_assert_eq!(tried, if spec.keep { 0 } else { made });
    }
}

/// Five files would be 25 calls of create, write (3) and close. Whichever of them finds the filesystem full is of the last.
#[test]
fn a_full_filesystem_ends_the_writing_with_the_file_it_hits() {
    let filling = MetadataSpec { until_full: true, keep: true, sync: SyncMethod::InOrder, ..spec() };
    for hit in (0..25).filter(|call| call % 5 != 4) {
        let disk = Disk::run(&filling, &BTreeSet::from([hit]));
        let creates = disk.calls.iter();
        let made = creates.filter(|call| matches!(call, Call::Create(_))).count();
        assert_eq!(made, hit / 5 + 1, "{hit}");
        let again = disk.calls.iter();
        let again = again.filter(|call| matches!(call, Call::FsyncAgain(_))).count();
        assert_eq!(again, made - usize::from(hit % 5 == 0), "{hit}");
    }
}
