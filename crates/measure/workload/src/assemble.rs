//! From what the groups measured to the phase's record: the common cut, and all figures over the same window.

use crate::measure::JobMeasurement;
use crate::phase::{GroupSpec, Phase};
use crate::record::{ClockKind, GroupRecord, IntervalRecord, JobRecord, OpRecord, PhaseRecord, Transient};
use crate::steady;
use crate::timeline::{Interval, Total, totals};
use base::histogram::LatencyHistogram;
use base::time::Time;
use base::usage::{Sample, Samples, Usage};

/// What a group hands back when all its jobs are done.
#[derive(Debug)]
pub struct GroupMeasured {
    /// In the order of the group's specification.
    pub jobs: Vec<JobMeasurement>,
    /// One line each: what was asked for and not done, which jobs gave up and why.
    pub notes: Vec<String>,
    /// What thread and process had used at the interval boundaries.
    pub samples: Samples,
    /// What they had used when the last job was done.
    pub last_sample: Sample,
}

/// What a record holds about the phase as a whole, and no group has.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// Wall-clock time of the common start, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// By how much the wall clock moved against the monotonic clock during the phase, in nanoseconds.
    pub wall_clock_shift_ns: i64,
    /// The clock that all times come from.
    pub clock: ClockKind,
    /// Someone called stop().
    pub stopped: bool,
    /// How the engine was compiled: `release` or `debug`.
    pub build_profile: &'static str,
}

/// `results` are by group, in the order of the phase; None for one that never came back.
pub fn assemble(phase: &Phase, circumstances: Circumstances, results: Vec<Option<GroupMeasured>>) -> PhaseRecord {
    let elapsed_ns = jobs(&results).map(|job| job.finished).max().unwrap_or(0);
    let from_ns = jobs(&results).filter_map(|job| job.measured_from).max().unwrap_or(phase.warm_up_ns);
    let transient = phase.cut_transient.then(|| find_transient(&results, from_ns, elapsed_ns));
    let cut_ns = transient.as_ref().map_or(0, |transient| transient.cut_ns);
    let measured_from_ns = (from_ns + cut_ns).min(elapsed_ns);
    let process = process_usage(&results, measured_from_ns);
    let groups = results
        .into_iter()
        .zip(&phase.groups)
        .map(|(measured, spec)| match measured {
            Some(measured) => group_record(spec, measured, measured_from_ns),
            None => lost_group(spec),
        })
        .collect();
    PhaseRecord {
        phase: phase.name.clone(),
        started_unix_ns: circumstances.started_unix_ns,
        elapsed_ns,
        wall_clock_shift_ns: circumstances.wall_clock_shift_ns,
        measured_from_ns,
        measured_to_ns: elapsed_ns,
        transient,
        stopped: circumstances.stopped,
        build_profile: circumstances.build_profile,
        clock: circumstances.clock,
        groups,
        process_cpu_user_ns: process.cpu_user_ns,
        process_cpu_system_ns: process.cpu_system_ns,
    }
}

fn jobs(results: &[Option<GroupMeasured>]) -> impl Iterator<Item = &JobMeasurement> {
    results.iter().flatten().flat_map(|group| &group.jobs)
}

/// Over the sum of all jobs, because they share the device: one cut for all of them.
fn find_transient(results: &[Option<GroupMeasured>], warm_up_ns: Time, elapsed_ns: Time) -> Transient {
    let intervals = || jobs(results).flat_map(|job| &job.intervals);
    // Widths are the wanted one doubled so and so often, so finer series fit into the grid of the coarsest.
    let width_ns = intervals().map(|interval| interval.length_ns).max().unwrap_or(1).max(1);
    let whole = (elapsed_ns.saturating_sub(warm_up_ns) / width_ns) as usize;
    let mut rates = vec![0.0; whole];
    for interval in intervals() {
        let cell = ((interval.start_ns - warm_up_ns) / width_ns) as usize;
        if let Some(rate) = rates.get_mut(cell) {
            let bytes = [&interval.read, &interval.write, &interval.null];
            *rate += bytes.map(|activity| activity.bytes).iter().sum::<u64>() as f64;
        }
    }
    let cut = steady::transient(&rates);
    Transient { cut_ns: cut.intervals as Time * width_ns, steady: cut.steady }
}

/// Every group samples the process too: from the sample nearest to the cut to the very last one.
fn process_usage(results: &[Option<GroupMeasured>], from: Time) -> Usage {
    let groups = || results.iter().flatten();
    let first = groups().filter_map(|group| group.samples.nearest(from)).min_by_key(|sample| sample.at.abs_diff(from));
    let last = groups().map(|group| &group.last_sample).max_by_key(|sample| sample.at);
    first.zip(last).map_or_else(Usage::default, |(first, last)| last.process.since(first.process))
}

fn group_record(spec: &GroupSpec, measured: GroupMeasured, from: Time) -> GroupRecord {
    let first = measured.samples.nearest(from);
    let used = first.map_or_else(Usage::default, |first| measured.last_sample.thread.since(first.thread));
    let found = measured.jobs.iter().zip(&spec.jobs).flat_map(|(job, of_job)| {
        let depth = job.searched.as_ref().map(|found| found.note(&of_job.name));
        let steady = job.steadiness.as_ref().map(|found| found.note(&of_job.name));
        depth.into_iter().chain(steady)
    });
    let notes = measured.notes.into_iter().chain(found).collect();
    let jobs = measured.jobs.into_iter().zip(&spec.jobs).map(|(job, spec)| job_record(&spec.name, job, from));
    GroupRecord::new(spec.name.clone(), notes, used, jobs.collect())
}

/// A group whose thread is stuck in the kernel has no figures; none is better than zeros.
fn lost_group(spec: &GroupSpec) -> GroupRecord {
    let names: Vec<_> = spec.jobs.iter().map(|job| format!("{:?}", job.name)).collect();
    let note = format!("never came back from the kernel and was left there; no figures of job {}", names.join(", "));
    GroupRecord::new(spec.name.clone(), vec![note], Usage::default(), Vec::new())
}

fn job_record(name: &str, job: JobMeasurement, from: Time) -> JobRecord {
    let measured = totals(&job.intervals, from);
    JobRecord {
        name: name.to_owned(),
        finished_ns: job.finished,
        read: op_record(&measured.read),
        write: op_record(&measured.write),
        sync: op_record(&measured.sync),
        discard: (measured.discard.latency.count() > 0).then(|| op_record(&measured.discard)),
        null: job.is_null.then(|| op_record(&measured.null)),
        commit: job.commits.then(|| op_record(&measured.commit)),
        depth_search: job.searched,
        steady_state: job.steadiness,
        replay: job.replayed,
        errors: job.errors,
        mismatches_count: job.mismatches_count,
        mismatches: job.mismatches,
        intervals: job.intervals.iter().map(|interval| interval_record(interval, job.is_null)).collect(),
    }
}

fn op_record(total: &Total) -> OpRecord {
    OpRecord::new(total.bytes, &total.latency)
}

fn interval_record(interval: &Interval, is_null: bool) -> IntervalRecord {
    let mut latency = LatencyHistogram::new();
    latency.merge_sparse(&interval.read.latency);
    latency.merge_sparse(&interval.write.latency);
    latency.merge_sparse(&interval.null.latency);
    IntervalRecord {
        start_ns: interval.start_ns,
        length_ns: interval.length_ns,
        read_ops: interval.read.latency.count(),
        read_bytes: interval.read.bytes,
        write_ops: interval.write.latency.count(),
        write_bytes: interval.write.bytes,
        null_ops: is_null.then(|| interval.null.latency.count()),
        null_bytes: is_null.then_some(interval.null.bytes),
        latency_ns_p50: latency.quantile_ns(0.50),
        latency_ns_p99: latency.quantile_ns(0.99),
        latency_ns_max: latency.max_ns(),
        latency_counts: coarse_counts(&latency),
    }
}

/// Two classes per power of two, in rising order: enough for an eye, and a few numbers per interval.
fn coarse_counts(latency: &LatencyHistogram) -> Vec<(u64, u64)> {
    let mut classes: Vec<(u64, u64)> = Vec::new();
    for bucket in latency.buckets() {
        let highest = class_end(bucket.high_ns);
        match classes.last_mut() {
            Some((of_last, count)) if *of_last == highest => *count += bucket.count,
            _ => classes.push((highest, bucket.count)),
        }
    }
    classes
}

/// The highest value of the class: 2, 3, 5, 7, 11, 15, 23, 31 ...
fn class_end(latency_ns: u64) -> u64 {
    let power = 1u64 << latency_ns.max(2).ilog2();
    let middle = power + power / 2;
    if latency_ns < middle { middle - 1 } else { power + (power - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Op, OpKind};
    use crate::measure::Measure;
    use crate::phase::EngineKind;
    use crate::spec::{JobBounds, JobSpec};

    const MS: Time = 1_000_000;

    #[test]
    fn latencies_of_an_interval_are_counted_in_classes_of_half_a_power_of_two() {
        for (latency_ns, end) in
            [(0, 2), (2, 2), (3, 3), (4, 5), (6, 7), (8, 11), (100_000, 131_071), (u64::MAX, u64::MAX)]
        {
            assert_eq!(class_end(latency_ns), end);
        }
        let mut latency = LatencyHistogram::new();
        for latency_ns in [5, 4, 130_000, 100_000, 131_072] {
            latency.record(latency_ns);
        }
        let counts = coarse_counts(&latency);
        assert_eq!(counts, [(5, 2), (131_071, 2), (196_607, 1)]);
    }

    fn phase(groups: usize) -> Phase {
        let job = JobSpec::reads(0, 4096, 1 << 20, JobBounds::of_ops(20));
        let group = |index| GroupSpec {
            name: format!("group {index}"),
            engine: EngineKind::Psync,
            direct: true,
            cpus: None,
            batch: None,
            fixed_buffers: false,
            registered_files: false,
            poll: false,
            hybrid_poll: false,
            registered_waits: false,
            sqpoll: false,
            sqpoll_cpu: None,
            fresh_data: false,
            close_in_time: false,
            realtime: false,
            uncached: false,
            atomic_writes: false,
            nowait_reads: false,
            io_log: None,
            cgroup: None,
            jobs: vec![job.clone()],
        };
        Phase {
            name: "phase".into(),
            files: Vec::new(),
            groups: (0..groups).map(group).collect(),
            warm_up_ns: 10 * MS,
            interval_ns: 5 * MS,
            cut_transient: false,
            verify: false,
            pattern: None,
            drop_caches: false,
            ends_with_first: false,
            stops_with: None,
            seed: 1,
        }
    }

    const SIMULATED: Circumstances = Circumstances {
        started_unix_ns: 7,
        wall_clock_shift_ns: 0,
        clock: ClockKind::Model,
        stopped: false,
        build_profile: "release",
    };

    /// Used at `at` by a thread that is on its CPU all the time, one of two of its process.
    fn sample(at: Time) -> Sample {
        let used = |cpu_user_ns| Usage { cpu_user_ns, ..Usage::default() };
        Sample { at, thread: used(at), process: used(2 * at) }
    }

    /// A read of 4 KiB each millisecond up to the twentieth.
    fn measured(phase: &Phase) -> GroupMeasured {
        let mut measure = Measure::new(phase.warm_up_ns, phase.interval_ns, |_| "EIO".into());
        let mut samples = Samples::new(phase.warm_up_ns, phase.interval_ns);
        for at in (1..=20).map(|turn| turn * MS) {
            let op = Op { kind: OpKind::Read, file: 0, offset: 0, bytes: 4096, due: at - MS };
            measure.succeeded(at, &op);
            if at >= samples.due() {
                samples.add(sample(at));
            }
        }
        GroupMeasured {
            jobs: vec![measure.finish()],
            notes: vec!["a note".into()],
            samples,
            last_sample: sample(20 * MS),
        }
    }

    #[test]
    fn all_figures_are_of_the_time_after_the_warm_up() {
        let phase = phase(2);
        let results = vec![Some(measured(&phase)), Some(measured(&phase))];
        let record = assemble(&phase, SIMULATED, results);
        assert_eq!((record.measured_from_ns, record.elapsed_ns), (10 * MS, 20 * MS));
        assert_eq!(record.process_cpu_user_ns, 20 * MS);
        for group in &record.groups {
            assert_eq!((group.cpu_user_ns, group.notes.len()), (10 * MS, 1));
            let read = &group.jobs[0].read;
            assert_eq!((read.count, read.bytes), (11, 11 * 4096));
            assert_eq!(read.latency.as_ref().unwrap().min_ns, MS);
        }
    }

    #[test]
    fn a_job_that_began_anew_is_measured_from_there() {
        let mut phase = phase(1);
        phase.warm_up_ns = 0;
        let mut measure = Measure::new(0, phase.interval_ns, |_| "EIO".into());
        let mut samples = Samples::new(0, phase.interval_ns);
        for at in (1..=20).map(|turn| turn * MS) {
            let op = Op { kind: OpKind::Read, file: 0, offset: 0, bytes: 4096, due: at - MS };
            measure.succeeded(at, &op);
            if at == 12 * MS {
                measure.begin_anew(at);
                samples.want(at);
            }
            if at >= samples.due() {
                samples.add(sample(at));
            }
        }
        let measured =
            GroupMeasured { jobs: vec![measure.finish()], notes: Vec::new(), samples, last_sample: sample(20 * MS) };
        let record = assemble(&phase, SIMULATED, vec![Some(measured)]);
        assert_eq!(record.measured_from_ns, 12 * MS);
        let group = &record.groups[0];
        assert_eq!((group.jobs[0].read.count, group.cpu_user_ns), (8, 8 * MS));
        assert_eq!(group.jobs[0].intervals[0].start_ns, 12 * MS);
    }

    #[test]
    fn null_operations_are_neither_reads_nor_writes() {
        let phase = phase(1);
        let mut measure = Measure::new(0, phase.interval_ns, |_| "EIO".into()).of_null_operations();
        for at in (1..=20).map(|turn| turn * MS) {
            let op = Op { kind: OpKind::Read, file: 0, offset: 0, bytes: 4096, due: at - MS };
            measure.succeeded(at, &op);
        }
        let record = job_record("a", measure.finish(), 0);
        let null = record.null.as_ref().unwrap();
        assert_eq!((null.count, record.read.count, record.write.count), (20, 0, 0));
        let interval = &record.intervals[0];
        assert_eq!((interval.read_ops, interval.read_bytes), (0, 0));
        assert_eq!(interval.null_ops, Some(4));
        let json = serde_json::to_value(measured_reads()).unwrap();
        assert!(json.get("null").is_none() && json["intervals"][0].get("null_ops").is_none());
    }

    fn measured_reads() -> JobRecord {
        let phase = phase(1);
        let job = measured(&phase).jobs.remove(0);
        job_record("a", job, 0)
    }

    #[test]
    fn a_group_that_never_came_back_has_a_note_and_no_jobs() {
        let phase = phase(2);
        let record = assemble(&phase, SIMULATED, vec![Some(measured(&phase)), None]);
        assert_eq!(record.groups[0].jobs.len(), 1);
        assert_eq!(record.groups[1].jobs.len(), 0);
        assert!(record.groups[1].notes[0].contains("\"job\""));
    }

    #[test]
    fn the_record_says_that_its_times_are_simulated() {
        let phase = phase(1);
        let record = assemble(&phase, SIMULATED, vec![Some(measured(&phase))]);
        let json = serde_json::to_value(record).unwrap();
        assert_eq!(json["clock"], "model");
        assert_eq!(json["started_unix_ns"], 7);
    }
}
