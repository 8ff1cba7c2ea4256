//! Any bytes are a job's specification or an error; a job that is accepted keeps inside its range.

use workload::job::{Job, JobStep};
use workload::spec::JobSpec;

/// Sizes of the phase's files: nothing, a usual one, the largest there can be.
const FILE_SIZES: [u64; 3] = [0, 1 << 30, i64::MAX as u64];

const STEPS: usize = 200;

pub fn check(bytes: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<JobSpec>(bytes) else {
        return;
    };
    let text = serde_json::to_string(&spec).expect("a specification can be written");
    assert_eq!(serde_json::from_str::<JobSpec>(&text).expect("and read again"), spec);
    match Job::new(&spec, &FILE_SIZES) {
        Ok(job) => run(job, &spec),
        Err(error) => assert!(!error.message.is_empty()),
    }
}

/// Completes the oldest operation whenever the job waits.
fn run(mut job: Job, spec: &JobSpec) {
    let mut in_flight = std::collections::VecDeque::new();
    let mut now = 0;
    for _ in 0..STEPS {
        match job.next(now) {
            JobStep::Io(op) => {
                let end = op.offset + u64::from(op.bytes);
                assert!(op.kind.is_sync() || op.offset >= spec.offset_bytes);
                assert!(op.kind.is_sync() || end <= spec.offset_bytes + spec.length_bytes);
                assert!(op.offset.is_multiple_of(spec.align_bytes));
                in_flight.push_back(op);
            }
            JobStep::WaitUntil(time) => {
                assert!(time > now);
                now = time;
            }
            JobStep::WaitForCompletion => {
                let op = in_flight.pop_front().expect("something is in flight");
                now = now.saturating_add(1_000);
                job.completed(now, &op, Ok(op.bytes));
            }
            JobStep::Done => return assert!(in_flight.is_empty()),
        }
        assert!(in_flight.len() <= spec.queue_depth as usize);
    }
}
