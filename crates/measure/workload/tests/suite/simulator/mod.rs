//! A device without I/O: k servers with a common queue. Drives a job through virtual time and writes down what it did.

use std::collections::BTreeMap;

use base::time::Time;
use workload::job::{Job, JobStep, Op};

/// One operation's life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServedOp {
    pub op: Op,
    pub started_ns: Time,
    pub completed_ns: Time,
}

/// Runs the job to its end; in order of start. Checks what must hold at every instant: the queue depth, the count in
/// flight, waits that end in the future, `Done` only when nothing is in flight and then for good.
pub fn run(job: &mut Job, queue_depth: u32, servers: usize, mut service_ns: impl FnMut(&Op) -> Time) -> Vec<ServedOp> {
    let mut served: Vec<ServedOp> = Vec::new();
    let mut in_flight: BTreeMap<(Time, usize), Op> = BTreeMap::new();
    let mut free_at = vec![0; servers];
    let mut now = 0;
    loop {
        assert_eq!(job.in_flight() as usize, in_flight.len());
        let first_completion = in_flight.keys().next().copied();
        let wakeup = match job.next(now) {
            JobStep::Io(op) => {
                let server = free_at.iter_mut().min().expect("a server");
                *server = now.max(*server) + service_ns(&op);
                in_flight.insert((*server, served.len()), op);
                assert!(in_flight.len() <= queue_depth as usize, "deeper than {queue_depth}");
                served.push(ServedOp { op, started_ns: now, completed_ns: *server });
                continue;
            }
            JobStep::WaitUntil(time) => {
                assert!(time > now, "asked to wait for the past");
                // None: an operation that is held back needs a completion as well.
                assert!(job.next_wakeup().is_none_or(|wakeup| wakeup == time));
                Some(time)
            }
            JobStep::WaitForCompletion => {
                assert!(first_completion.is_some(), "waits for a completion, but nothing is in flight");
                None
            }
            JobStep::Done => {
                assert!(in_flight.is_empty(), "done with operations in flight");
                assert_eq!(job.next(now + 1), JobStep::Done);
                return served;
            }
        };
        match (first_completion, wakeup) {
            (Some(key), wakeup) if wakeup.is_none_or(|time| key.0 <= time) => {
                now = now.max(key.0);
                let op = in_flight.remove(&key).expect("in flight");
                job.completed(now, &op, Ok(op.bytes));
            }
            (_, Some(time)) => now = time,
            (_, None) => unreachable!("the first arm takes every completion"),
        }
    }
}
