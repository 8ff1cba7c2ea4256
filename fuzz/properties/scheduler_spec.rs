//! Any text is a scheduler or an error that names what is wrong; a scheduler that is accepted gives out what it is given,
//! each request once. The first line is the kernel, each further one a setting: `name=cfq`, `slice_idle=0`.

use std::collections::BTreeMap;

use block_layer::scheduler::spec::{BadScheduler, SchedulerSpec, Surroundings};
use block_layer::{Bio, Direction, Priority, RequestQueue, SubmitOutcome};
use events::time::MILLISECOND;
use kernels::hardware_queue::{TagLimit, TagWakeRule};
use kernels::queue::{Merges, PlugRules, PoolRules, QueueRules};

const BIOS: u32 = 48;
const TASKS: u32 = 5;
const AT_DEVICE_MAX: usize = 4;
/// Far more than any scheduler waits in vain.
const STEPS_MAX: u32 = 10_000;

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (kernel, settings) = text.split_once('\n').unwrap_or((text, ""));
    let given: BTreeMap<String, String> = settings
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    for hz in [100, 1000] {
        match SchedulerSpec::new(&given, kernel, hz) {
            Ok(spec) => [false, true].into_iter().for_each(|rotational| serve(&spec, rotational)),
            Err(error) => names_what_is_wrong(&error, &given),
        }
    }
}

fn names_what_is_wrong(error: &BadScheduler, given: &BTreeMap<String, String>) {
    let text = error.to_string();
    assert!(text.contains("scheduler") || text.contains("kernel"), "{text}");
    if let Some(tunable) = error.tunable() {
        assert!(given.contains_key(tunable), "{tunable:?} was not given");
        let quoted = format!("{tunable:?}");
        assert!(text.contains(tunable) || text.contains(&quoted), "{text}");
    }
}

fn serve(spec: &SchedulerSpec, rotational: bool) {
    let scheduler = spec.build(&Surroundings {
        rotational,
        queue_map: &block_layer::QueueMap::SINGLE,
        request_sectors_max: 64,
        pool_requests: 128,
        group_weights: &[1000, 100, 900],
        group_policies: &[],
    });
    let rules = QueueRules {
        request_sectors_max: 64,
        request_segments_max: 128,
        merges: Merges::All,
        pool: PoolRules::tags(2 * BIOS, TagWakeRule::Batch, TagLimit::OfWord),
        pool_by_sync: true,
        plug: PlugRules::NONE,
    };
    let mut queue = RequestQueue::new(rules, scheduler);
    let (mut now, mut submitted, mut accepted, mut done) = (0, 0, 0, Vec::new());
    let mut at_device = std::collections::VecDeque::new();
    for _ in 0..STEPS_MAX {
        let offered = submitted..BIOS.min(submitted + 3);
        submitted = offered.end;
        for number in offered {
            accepted += usize::from(queue.submit(now, bio(number, now)) != SubmitOutcome::MustWait);
        }
        while at_device.len() < AT_DEVICE_MAX
            && let Some(id) = queue.dispatch(now)
        {
            at_device.push_back(id);
        }
        if let Some(id) = at_device.pop_front() {
            now += MILLISECOND;
            queue.completed(now, id, &mut done);
        } else if let Some(at) = queue.next_wakeup() {
            now = now.max(at);
            queue.wake(now);
        } else if submitted == BIOS {
            break;
        }
    }
    let mut tags: Vec<u32> = done.iter().map(|bio| bio.tag).collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), done.len(), "nothing comes back twice");
    assert_eq!(done.len(), accepted, "nothing is lost");
    queue.check("queue", now).expect("its books balance");
}

/// Reads and writes of several tasks, some in sequence, some scattered.
fn bio(number: u32, now: u64) -> Bio {
    let task = number % TASKS;
    let scattered = u64::from(number) * 7_919 % 1_000 * 1_000;
    Bio {
        direction: if number.is_multiple_of(3) { Direction::Write } else { Direction::Read },
        sync: !number.is_multiple_of(6),
        metadata: number.is_multiple_of(7),
        read_ahead: false,
        writeback: false,
        behind_flush: false,
        force_unit_access: false,
        qos: Default::default(),
        allocated: None,
        workers: 0,
        polled: false,
        write_stream: 0,
        no_idle: number.is_multiple_of(11),
        start: if task < 2 { u64::from(task) * 5_000_000 + u64::from(number) * 8 } else { scattered },
        sectors: 8,
        segments: 1,
        task,
        group: (task % 3) as u16,
        priority: Priority::default(),
        cpu: 0,
        submitted_at: now,
        tag: number,
        next: None,
    }
}
