//! Probes see what the engine did, count what they missed, and leave nothing behind.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use crate::common::devices::LoopDevice;
use crate::common::*;
use engine::probe::{ProbeReports, Probes, Spec, TracefsPaths};
use serde_json::{Value, json};
use workload::phase::EngineKind;
use workload::spec::{JobBounds, JobSpec};

const TRACEFS: &str = "/sys/kernel/tracing";

/// Running probes with what else this test wants; each test has an instance of its own.
fn start(test: &str, mut wanted: Value) -> Probes {
    wanted["trace_instance"] = json!(instance(test));
    Probes::start(&spec(wanted)).unwrap()
}

fn spec(json: Value) -> Spec {
    serde_json::from_value(json).unwrap()
}

fn instance(test: &str) -> String {
    format!("iolab-test-{}-{test}", std::process::id())
}

fn observation<'a>(observed: &'a ProbeReports, probe: &str) -> &'a Value {
    observed.observations.get(probe).unwrap_or_else(|| panic!("{probe} is absent: {:?}", observed.absent))
}

fn number(value: &Value, path: &str) -> u64 {
    let found = value.pointer(path);
    found.and_then(Value::as_u64).unwrap_or_else(|| panic!("no number {path} in {value:#}"))
}

/// Has root, and tracing to look at.
fn can_trace(test: &str) -> bool {
    if !is_root(test) {
        return false;
    }
    let there = Path::new(TRACEFS).join("instances").exists();
    if !there {
        eprintln!("SKIPPED {test}: tracefs is not mounted");
    }
    there
}

/// A tracing instance that the probes have nothing to do with.
struct ForeignInstance(PathBuf);

impl ForeignInstance {
    fn new(test: &str) -> ForeignInstance {
        let path = Path::new(TRACEFS).join("instances").join(instance(test));
        std::fs::create_dir(&path).unwrap();
        ForeignInstance(path)
    }
}

impl Drop for ForeignInstance {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).unwrap();
    }
}

fn device_number(path: &str) -> String {
    let number = std::fs::metadata(path).unwrap().rdev();
    format!("{}:{}", libc::major(number), libc::minor(number))
}

fn block(path: &str, buffer_bytes: u64) -> Value {
    json!({"block": {
        "devices": [device_number(path)],
        "buffer_bytes": buffer_bytes,
        "interval_ns": 10_000_000,
    }})
}

/// Direct I/O of 4 KiB, this many of them, past the page cache.
fn direct_io(path: &str, engine: EngineKind, job: JobSpec, ops: u64) {
    let until = JobBounds::of_ops(ops);
    let mut group = group(engine, vec![JobSpec { until, ..job }]);
    group.direct = true;
    let mut phase = phase(path, vec![group]);
    phase.files[0].create = false;
    assert_eq!(only_job(&run(phase)).errors.len(), 0);
}

#[test]
fn every_direct_io_appears_once() {
    if !can_trace("every_direct_io_appears_once") {
        return;
    }
    let device = LoopDevice::new(4 * MIB);
    let probes = start("once", block(&device.path, 4 * MIB));
    direct_io(&device.path, EngineKind::IoUring, writer(), 300);
    direct_io(&device.path, EngineKind::IoUring, job(), 5000);
    let observed = probes.stop();
    let seen = observation(&observed, "block");
    assert_eq!(number(seen, "/trace_events_lost"), 0, "{seen:#}");
    let conserved = |name: &str| number(seen, &format!("/devices/0/conservation/{name}"));
    // The kernel, a daemon or another iolab may read the device meanwhile, also when the probe begins and ends.
    let (begun_before, left) = (conserved("unqueued"), conserved("in_flight") + conserved("unmatched"));
    let (mut bios, mut located, mut merges) = (0, 0, 0);
    for (direction, ops) in [("read", 5000), ("write", 300)] {
        let count = |name: &str| number(seen, &format!("/all/{direction}/{name}"));
        let queued = count("bios_queued");
        let merged = count("back_merges") + count("front_merges") + count("request_merges");
        let (issued, completed) = (count("requests_issued"), count("requests_completed"));
        if direction == "read" {
            assert!(queued >= ops, "{seen:#}");
            assert!(left <= queued - ops + begun_before, "{seen:#}");
            assert_eq!(completed + merged + left, queued + begun_before, "{seen:#}");
            assert!(completed <= issued + begun_before && issued <= completed + left);
        } else {
            assert_eq!(queued, ops, "{seen:#}");
            assert_eq!(count("bytes_completed"), ops * 4096);
            assert_eq!(completed + merged, ops);
            assert_eq!(issued, completed);
        }
        bios += queued;
        merges += merged;
        located += count("queue_local") + count("queue_remote");
    }
    // Of requests alike in flight nobody can tell which of them a completion is of, nor who queued its bios: one, and
    // those that were merged.
    let alike = number(seen, "/devices/0/times_unknown");
    assert!(
        located <= bios + begun_before && bios <= located + alike + merges + left,
        "{located} of {bios}, {alike} requests alike, {merges} merged"
    );
    assert_eq!(seen["devices"][0]["device"], device_number(&device.path));
    assert_eq!(seen["devices"].as_array().map(Vec::len), Some(1));
}

#[test]
fn other_devices_are_not_recorded() {
    if !can_trace("other_devices_are_not_recorded") {
        return;
    }
    let (watched, other) = (LoopDevice::new(4 * MIB), LoopDevice::new(4 * MIB));
    let probes = start("other", block(&watched.path, MIB));
    direct_io(&other.path, EngineKind::IoUring, job(), 500);
    let observed = probes.stop();
    assert_eq!(number(observation(&observed, "block"), "/all/total/bios_queued"), 0);
}

/// A disk in memory whose driver takes bios, not requests.
struct Zram(String);

impl Zram {
    fn new(bytes: u64) -> Option<Zram> {
        let number = std::fs::read_to_string("/sys/class/zram-control/hot_add").ok()?;
        let zram = Zram(number.trim().to_owned());
        let size = format!("/sys/block/zram{}/disksize", zram.0);
        std::fs::write(size, bytes.to_string()).unwrap();
        Some(zram)
    }

    fn path(&self) -> String {
        format!("/dev/zram{}", self.0)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        std::fs::write(format!("/sys/block/zram{}/reset", self.0), "1").unwrap();
        std::fs::write("/sys/class/zram-control/hot_remove", &self.0).unwrap();
    }
}

#[test]
fn bios_of_a_device_without_requests_complete() {
    const NAME: &str = "bios_of_a_device_without_requests_complete";
    if !can_trace(NAME) {
        return;
    }
    let Some(device) = Zram::new(4 * MIB) else {
        return eprintln!("SKIPPED {NAME}: no zram; sudo modprobe zram");
    };
    let probes = start("bios", block(&device.path(), 4 * MIB));
    direct_io(&device.path(), EngineKind::Psync, job(), 500);
    let observed = probes.stop();
    let seen = observation(&observed, "block");
    assert_eq!(number(seen, "/all/read/bios_queued"), 500);
    let conserved = |name: &str| number(seen, &format!("/devices/0/conservation/{name}"));
    assert_eq!((conserved("completed"), conserved("in_flight")), (500, 0), "{seen:#}");
}

#[test]
fn what_finds_no_room_is_counted_as_lost() {
    if !can_trace("what_finds_no_room_is_counted_as_lost") {
        return;
    }
    let device = LoopDevice::new(4 * MIB);
    let observe = |buffer_bytes: u64, ops: u64| {
        let probes = start("lost", block(&device.path, buffer_bytes));
        use_cpu(libc::SCHED_OTHER, libc::CPU_SETSIZE as usize);
        direct_io(&device.path, EngineKind::Psync, job(), ops);
        IS_OVER.store(true, Ordering::Relaxed);
        let observed = probes.stop();
        let seen = observation(&observed, "block");
        // What the sub-buffers say of their own gaps is part of what the kernel counts.
        assert!(number(seen, "/events_lost") <= number(seen, "/trace_events_lost"));
        (events(seen), number(seen, "/trace_events_lost"))
    };
    // One at a time, so that nothing merges and each takes the same way.
    let (events_of_1000, lost) = observe(4 * MIB, 1000);
    assert_eq!((events_of_1000 % 1000, lost), (0, 0));
    // The thread that empties the buffers inherits to run when its CPU has nothing else to do, and it has.
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    IS_OVER.store(false, Ordering::Relaxed);
    let other = std::thread::spawn(|| {
        use_cpu(libc::SCHED_OTHER, 1);
        while !IS_OVER.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    use_cpu(libc::SCHED_IDLE, 1);
    let (recorded, lost) = observe(1, 5000);
    other.join().unwrap();
    assert!(lost > 0);
    assert_eq!(recorded + lost, 5 * events_of_1000);
}

/// How the calling thread runs: by this policy, on the first so many CPUs.
fn use_cpu(policy: libc::c_int, cpus: usize) {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: all-zero is an empty set, to which CPUs are added; it and the parameters outlive the calls.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (0..cpus).for_each(|cpu| libc::CPU_SET(cpu, &mut set));
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set), 0);
        assert_eq!(libc::sched_setscheduler(0, policy, &param), 0);
    }
}

fn events(block: &Value) -> u64 {
    let kinds = block["devices"][0]["events"].as_object().unwrap();
    kinds.values().filter_map(Value::as_u64).sum()
}

#[test]
fn nothing_of_others_is_touched_and_nothing_of_ours_is_left() {
    if !can_trace("nothing_of_others_is_touched_and_nothing_of_ours_is_left") {
        return;
    }
    let theirs = ForeignInstance::new("theirs");
    let settings = [
        "trace_clock",
        "tracing_on",
        "buffer_size_kb",
        "buffer_subbuf_size_kb",
        "buffer_percent",
        "events/block/enable",
        "events/block/block_rq_issue/filter",
        "events/sched/enable",
    ];
    let look = || {
        let both = [Path::new(TRACEFS), &theirs.0];
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        both.map(|root| settings.map(|file| read(&root.join(file))))
    };
    let before = look();
    let device = LoopDevice::new(4 * MIB);
    let mut wanted = block(&device.path, MIB);
    wanted["switches"] = json!({"interval_ns": 10_000_000, "stack_every": null, "pids": null});
    let ours = Path::new(TRACEFS).join("instances").join(instance("ours"));
    let probes = start("ours", wanted);
    assert!(ours.exists());
    assert_eq!(look(), before);
    direct_io(&device.path, EngineKind::IoUring, job(), 100);
    drop(probes.stop());
    assert_eq!(look(), before);
    let left = std::fs::read_dir(ours.parent().unwrap()).unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.starts_with(&instance("ours")).then_some(name)
    });
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
}

/// Two threads that wake each other through pipes, on one CPU, this many rounds: two switches each. Runs `then` while
/// the one which asks sleeps and has nothing left to do but to end: with its thread id, and how often it had left the CPU
/// when it began.
fn ping_pong<T>(rounds: u64, then: impl FnOnce(libc::pid_t, u64) -> T) -> T {
    let ((mut theirs, ours), (mut mine, other)) = (pipe(), pipe());
    let answering = move || {
        use_cpu(libc::SCHED_OTHER, 1);
        let mut other = other;
        let mut byte = [0];
        while theirs.read_exact(&mut byte).is_ok() {
            other.write_all(&byte).unwrap();
        }
    };
    let (done, is_done) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let asking = move || {
        // SAFETY: reads an id.
        let thread = unsafe { libc::gettid() };
        let before = switches_of(thread);
        use_cpu(libc::SCHED_OTHER, 1);
        let mut ours = ours;
        let mut byte = [0];
        for _ in 0..rounds {
            ours.write_all(&byte).unwrap();
            mine.read_exact(&mut byte).unwrap();
        }
        done.send((thread, before)).unwrap();
        // Nobody sends: it ends when the other side goes.
        ends.recv().unwrap_err();
    };
    let named = |name: &str| std::thread::Builder::new().name(name.into());
    let answers = named("iolab-pong").spawn(answering).unwrap();
    let asks = named("iolab-ping").spawn(asking).unwrap();
    let (thread, before) = is_done.recv().unwrap();
    while status_of(thread, "State") != "S (sleeping)" {
        std::thread::yield_now();
    }
    let found = then(thread, before);
    drop(end);
    asks.join().unwrap();
    answers.join().unwrap();
    found
}

fn status_of(thread: libc::pid_t, key: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| *name == key).unwrap();
    value.trim().into()
}

/// How often the kernel says that this thread left the CPU.
fn switches_of(thread: libc::pid_t) -> u64 {
    ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"]
        .map(|key| status_of(thread, key).parse::<u64>().unwrap())
        .iter()
        .sum()
}

fn pipe() -> (File, File) {
    let (reader, writer) = std::io::pipe().unwrap();
    (File::from(OwnedFd::from(reader)), File::from(OwnedFd::from(writer)))
}

const ROUNDS: u64 = 1000;

/// One at a time, or they would count one another's switches.
static SWITCHING: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    SWITCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn switches(stack_every: Value, pids: Value) -> Value {
    json!({"switches": {"interval_ns": 10_000_000, "stack_every": stack_every, "pids": pids}})
}

fn task<'a>(seen: &'a Value, name: &str) -> &'a Value {
    let tasks = seen["tasks"].as_array().unwrap();
    let found = tasks.iter().find(|task| task["comm"] == name);
    found.unwrap_or_else(|| panic!("no {name} among {tasks:#?}"))
}

#[test]
fn every_switch_is_counted_and_its_site_is_found() {
    if !can_trace("every_switch_is_counted_and_its_site_is_found") {
        return;
    }
    let _alone = alone();
    let probes = start("switches", switches(json!(1), json!(null)));
    let (observed, named) = ping_pong(ROUNDS, |thread, before| {
        let observed = probes.stop();
        let all = switches_of(thread);
        (observed, all - before..=all)
    });
    let seen = observation(&observed, "switches");
    assert_eq!(number(seen, "/trace_events_lost"), 0);
    // Those before it had its name are not counted under it.
    let counted = number(task(seen, "iolab-ping"), "/switches");
    assert!(named.contains(&counted), "{counted} counted, not {named:?}");
    let slept = |name: &str| number(task(seen, name), "/by_state/sleep");
    let slept = slept("iolab-ping") + slept("iolab-pong");
    assert!(number(seen, "/wakeup_latency_ns/count") >= slept - 4);
    let sites = seen["sites"].as_array().unwrap();
    let pipe = sites.iter().find(|site| site["site"].as_str().unwrap().ends_with("pipe_read"));
    let pipe = pipe.unwrap_or_else(|| panic!("{:#?} {}", sites, seen["notes"]));
    let at_pipe = number(pipe, "/switches");
    assert!(at_pipe.abs_diff(slept) < slept / 10, "{at_pipe} at the pipe, slept {slept} times: {}", seen["notes"]);
    let chain = pipe["chain"].as_array().unwrap();
    assert!(chain.iter().any(|function| function.as_str().unwrap().contains("read")), "{chain:?}");
}

#[test]
fn a_sample_stands_for_the_switches_between() {
    if !can_trace("a_sample_stands_for_the_switches_between") {
        return;
    }
    let _alone = alone();
    for (every, rounds) in [(json!(7), ROUNDS), (json!(null), 5 * ROUNDS)] {
        let probes = start("weights", switches(every.clone(), json!(null)));
        ping_pong(rounds, |_, _| ());
        let observed = probes.stop();
        let seen = observation(&observed, "switches");
        let samples = number(seen, "/stacks/taken");
        let all = number(seen, "/switches") - number(seen, "/by_state/cpu_idle");
        let sites = seen["sites"].as_array().unwrap();
        let estimated: u64 = sites.iter().map(|site| number(site, "/switches")).sum();
        assert!(samples < all / 2, "{samples} of {all}");
        // All but the rounding of each.
        assert!(
            estimated.abs_diff(all) <= sites.len() as u64,
            "of {every}: {estimated} estimated, {all} seen: {}",
            seen["notes"]
        );
    }
}

#[test]
fn only_the_switches_of_the_processes_that_were_named() {
    if !can_trace("only_the_switches_of_the_processes_that_were_named") {
        return;
    }
    let _alone = alone();
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    for (pid, expected) in [(std::process::id(), ROUNDS..=u64::MAX), (other.id(), 0..=ROUNDS / 10)] {
        let probes = start("pids", switches(json!(null), json!([pid])));
        ping_pong(ROUNDS, |_, _| ());
        let observed = probes.stop();
        let tasks = observation(&observed, "switches")["tasks"].as_array().unwrap().clone();
        let found = tasks.iter().filter(|task| task["comm"] == "iolab-ping");
        // Threads that a process starts meanwhile are its own.
        let counted: u64 = found.map(|task| number(task, "/switches")).sum();
        assert!(expected.contains(&counted), "{counted}");
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_profile_shows_what_ran() {
    if !is_root("a_profile_shows_what_ran") {
        return;
    }
    let probes = start("profile", json!({"profile": {"interval_ns": 10_000_000, "frequency_hz": 1000}}));
    let mut zero = File::open("/dev/zero").unwrap();
    let mut buffer = vec![0; 1 << 20];
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_millis(300) {
        zero.read_exact(&mut buffer).unwrap();
    }
    let observed = probes.stop();
    let seen = observation(&observed, "profile");
    assert!(number(seen, "/samples") > 20, "{seen:#}");
    let functions = seen["functions"].as_array().unwrap();
    assert!(functions.iter().any(|row| row["function"] == "read_zero"), "{functions:#?}");
}

#[test]
fn probes_that_are_dropped_leave_nothing_behind() {
    if !can_trace("probes_that_are_dropped_leave_nothing_behind") {
        return;
    }
    let device = LoopDevice::new(MIB);
    drop(start("dropped", block(&device.path, MIB)));
    assert!(!Path::new(TRACEFS).join("instances").join(instance("dropped")).exists());
}

#[test]
fn an_instance_that_is_there_already_is_somebody_elses() {
    if !can_trace("an_instance_that_is_there_already_is_somebody_elses") {
        return;
    }
    let theirs = ForeignInstance::new("taken");
    let device = LoopDevice::new(MIB);
    let observed = start("taken", block(&device.path, MIB)).stop();
    assert!(theirs.0.exists());
    assert!(observed.absent["block"].contains("exists"), "{observed:?}");
}

#[test]
fn a_tracefs_that_can_not_be_used_is_a_reason() {
    let place = ScratchDirectory::in_memory();
    let nowhere =
        || TracefsPaths { tracefs: vec![place.path("tracing").into()], lockdown: place.path("lockdown").into() };
    let wanted = || {
        spec(json!({
            "trace_instance": "iolab-nowhere",
            "block": {"devices": ["7:0"], "buffer_bytes": 4096, "interval_ns": 1},
            "cpu": {"interval_ns": 1_000_000},
        }))
    };
    let reason = |places: &TracefsPaths| {
        let observed = Probes::start_at(&wanted(), places).unwrap().stop();
        assert!(observed.observations.contains_key("cpu"), "what can be read is read: {observed:?}");
        observed.absent["block"].clone()
    };
    assert!(reason(&nowhere()).contains("mount -t tracefs"));
    std::fs::create_dir_all(place.path("tracing/events")).unwrap();
    assert!(reason(&nowhere()).contains("no tracing instances"));
    std::fs::create_dir(place.path("tracing/instances")).unwrap();
    // A directory that is no tracefs has none of its files.
    assert!(reason(&nowhere()).contains("tracing_on"));
    std::fs::write(place.path("lockdown"), "none integrity [confidentiality]\n").unwrap();
    assert!(reason(&nowhere()).contains("lockdown=confidentiality"));
}
