use super::*;
use crate::invariants;
use proptest::prelude::*;

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
    owned.collect()
}

fn spec(pairs: &[(&str, &str)], kernel: &str) -> Result<SchedulerSpec, BadScheduler> {
    SchedulerSpec::new(&given(pairs), kernel, 1000)
}

fn error(pairs: &[(&str, &str)], kernel: &str) -> String {
    spec(pairs, kernel).expect_err("a mistake").to_string()
}

const AROUND: Surroundings = Surroundings {
    rotational: true,
    queue_map: &QueueMap::SINGLE,
    request_sectors_max: 255,
    pool_requests: 128,
    group_weights: &[1000],
    group_policies: &[],
};

#[test]
fn each_kernel_has_its_own_form() {
    for (name, kernel, version) in [
        ("linus", "2.4.20-pre10", "2.4"),
        ("linus", "2.4.20aa1", "2.4"),
        ("linus", "2.4.31", "2.4.21"),
        ("linus", "2.5.10", "2.4"),
        ("noop", "2.4.20", "2.4"),
        ("noop", "2.5.56", "2.6"),
        ("deadline", "2.5.56", "A"),
        ("deadline", "2.5.59", "B"),
        ("deadline", "2.5.59-mm2", "mm"),
        ("deadline", "2.5.62-mm1", "mm"),
        ("deadline", "2.5.62-mm2", "B"),
        ("deadline", "2.6.35", "C"),
        ("deadline", "2.5.53-mm1", "B"),
        ("anticipatory", "2.5.59-mm5", "2.5.59-mm5"),
        ("anticipatory", "2.5.70-mm7", "2.5.59-mm5"),
        ("anticipatory", "2.5.75-mm1", "first"),
        ("anticipatory", "2.6.1", "first"),
        ("anticipatory", "2.6.2", "2.6.2"),
        ("anticipatory", "2.6.14", "2.6.2"),
        ("anticipatory", "2.6.15", "2.6.15"),
        ("anticipatory", "2.6.24", "2.6.24"),
        ("anticipatory", "2.6.32", "2.6.32"),
        ("cfq", "2.6.35-group-idle-v2", "2.6.35-group-idle-v2"),
        ("cfq", "2.6.0-test11-mm1", "2.6.6"),
        ("cfq", "2.6.9", "2.6.6"),
        ("cfq", "2.6.12", "2.6.10"),
        ("cfq", "2.6.16", "2.6.15"),
        ("cfq", "2.6.18", "2.6.18"),
        ("cfq", "2.6.24", "2.6.22"),
        ("cfq", "2.6.29", "2.6.29"),
        ("cfq", "2.6.32", "2.6.29"),
        ("cfq", "2.6.35", "2.6.35"),
        ("cfq", "3.10", "2.6.37"),
        ("mq-deadline", "5.4", "C"),
        ("mq-deadline", "5.15", "5.14"),
        ("mq-deadline", "6.1.104", "5.14"),
        ("mq-deadline", "6.1.105", "6.1.105"),
        ("mq-deadline", "6.4", "5.14"),
        ("mq-deadline", "6.6", "6.5"),
        ("mq-deadline", "6.x", "6.10"),
        ("bfq", "5.10", "5.10"),
        ("bfq", "5.15", "5.13"),
        ("bfq", "6.1.0", "5.17"),
        ("bfq", "6.2", "6.2"),
        ("kyber", "4.14", "4.12"),
        ("kyber", "6.x", "5.10"),
        ("none", "6.x", "blk-mq"),
    ] {
        let spec = spec(&[("name", name)], kernel).expect(name);
        assert_eq!((spec.name(), spec.version()), (name, version), "{kernel}");
    }
}

#[test]
fn cfq_asks_whether_the_device_seeks_from_2_6_29_on() {
    for (kernel, idles) in [("2.6.28", true), ("2.6.29", false)] {
        let around = Surroundings { rotational: false, ..AROUND };
        let scheduler = spec(&[("name", "cfq")], kernel).unwrap().build(&around);
        let rules = invariants::rules();
        let mut queue = crate::RequestQueue::new(rules, scheduler);
        let read = |task: u32, start| crate::Bio { task, ..invariants::bench::bio(0, crate::Direction::Read, start) };
        queue.submit(0, read(1, 0));
        queue.submit(0, read(2, 90_000_000));
        let first = queue.dispatch(0).expect("it has its turn");
        queue.completed(1_000_000, first, &mut Vec::new());
        assert_eq!(queue.dispatch(1_000_000).is_none(), idles, "{kernel}");
    }
}

#[test]
fn a_version_that_the_kernel_never_had_is_refused() {
    let asked = |name, version, kernel| spec(&[("name", name), ("version", version)], kernel);
    for (name, version, kernel, kernels) in [
        ("anticipatory", "first", "2.5.61", "2.5.75 or later, before 2.6.2"),
        ("deadline", "mm", "2.6.35", "patched 2.5.59 or later, before 2.5.63"),
        ("cfq", "2.6.35-group-idle-v2", "2.6.18", "patched 2.6.35 or later, before 2.6.36"),
        ("kyber", "5.10", "4.14", "4.20.0 or later"),
    ] {
        let said = asked(name, version, kernel).unwrap_err().to_string();
        let expected =
            format!("scheduler {name} has version {version:?} in kernels {kernels}, and none such in {kernel}");
        assert_eq!(said, expected);
    }
    assert!(asked("deadline", "B", "2.5.51-mm1").is_ok());
    assert!(asked("kyber", "5.10", "6.x").is_ok());
}

#[test]
fn a_patched_version_may_be_asked_for_of_the_kernel_it_is_for() {
    let pairs = [("name", "cfq"), ("version", "2.6.35-group-idle-v2"), ("slice_idle", "0"), ("group_idle", "8")];
    let spec = spec(&pairs, "2.6.35").unwrap();
    assert_eq!(spec.version(), "2.6.35-group-idle-v2");
    assert!(!spec.is_multi_queue());
}

#[test]
fn mistakes_are_named_with_what_there_is() {
    assert_eq!(
        error(&[("name", "cfq")], "6.x"),
        "scheduler \"cfq\" is not in kernel 6.x, which has none, mq-deadline, kyber, bfq"
    );
    assert_eq!(
        error(&[("name", "cfq"), ("group_idle", "8")], "2.6.35"),
        "scheduler cfq (2.6.35) has no tunable \"group_idle\", it has quantum, fifo_expire_sync, fifo_expire_async, \
         back_seek_max, back_seek_penalty, slice_sync, slice_async, slice_async_rq, slice_idle, low_latency, \
         group_isolation"
    );
    assert_eq!(
        error(&[("name", "deadline"), ("fifo_batch", "many")], "2.6.35"),
        "scheduler deadline (C): fifo_batch is \"many\", expected a whole number from 0 to 2147483647"
    );
    assert_eq!(
        error(&[("name", "cfq"), ("version", "9")], "2.6.35"),
        "scheduler cfq has no version \"9\", expected one of 2.6.6, 2.6.10, 2.6.15, 2.6.18, 2.6.22, 2.6.29, 2.6.35, 2.6.35-group-idle-v2, 2.6.37"
    );
    assert_eq!(
        error(&[("name", "noop"), ("slice_idle", "0")], "2.6.35"),
        "scheduler noop (2.6) has no tunable \"slice_idle\", it has none"
    );
    assert!(error(&[], "6.x").contains("the name is missing"));
    assert!(error(&[("name", "bfq")], "six").contains("\"six\""));
    assert!(error(&[("name", "cfq"), ("quantum", "0")], "2.6.35").contains("from 1"));
}

proptest! {
    /// Whatever is written: a scheduler that works, or an error.
    #[test]
    fn any_settings_give_a_working_scheduler_or_an_error(
        name in prop::sample::select(vec![
            "linus", "noop", "deadline", "anticipatory", "cfq", "none", "mq-deadline", "kyber", "bfq",
        ]),
        kernel in prop::sample::select(vec!["2.4.20", "2.5.56", "2.5.59", "2.6.9", "2.6.12", "2.6.16", "2.6.32", "2.6.35", "3.2", "5.4", "6.x", "", "."]),
        tunable in prop::sample::select(vec![
            "slice_idle", "quantum", "read_expire", "fifo_batch", "max_budget", "timeout_sync", "read_lat_nsec",
            "antic_expire", "read_latency", "slice_sync", "async_depth", "writes_starved", "fifo_expire_sync",
        ]),
        value in prop_oneof![any::<u64>().prop_map(|value| value.to_string()), "[0-9]{1,3}", ".{0,4}"],
        load in invariants::arrivals(4),
    ) {
        if let Ok(spec) = spec(&[("name", name), (tunable, &value)], kernel) {
            invariants::completes_each_once(&invariants::serve(spec.build(&AROUND), &load, 4, 1_000_000));
        }
    }
}
