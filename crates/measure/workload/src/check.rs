//! What makes a specification impossible: reported before anything runs.

use crate::job_error::JobError;
use crate::limits::{STEADY_INTERVAL_NS_MIN, STEADY_INTERVALS_MAX};
use crate::spec::{Arrival, BlockSize, JobSpec, Pattern, Spacing, Sync, SyncKind, Zone};
use crate::traced::Timing;

/// `file_sizes` are those of all files of the phase, in bytes.
pub fn check(spec: &JobSpec, file_sizes: &[u64]) -> Result<(), JobError> {
    let findings = [
        check_files(spec, file_sizes),
        check_blocks(spec),
        check_range(spec),
        check_pattern(spec),
        check_share(spec),
        check_queue_depth(spec),
        check_arrival(spec),
        check_sync(spec),
        check_until(spec),
        check_start(spec),
        check_search(spec),
        check_steady_state(spec),
        check_replay(spec),
    ];
    findings.into_iter().collect::<Result<(), Finding>>().map_err(|Finding { key, message }| JobError {
        job: spec.name.clone(),
        key,
        message,
    })
}

struct Finding {
    key: &'static str,
    message: String,
}

fn require(holds: bool, key: &'static str, message: impl FnOnce() -> String) -> Result<(), Finding> {
    if holds { Ok(()) } else { Err(Finding { key, message: message() }) }
}

/// No kernel has offsets beyond this.
const OFFSET_MAX: u64 = i64::MAX as u64;

fn check_files(spec: &JobSpec, file_sizes: &[u64]) -> Result<(), Finding> {
    require(!spec.files.is_empty(), "files", || "no file; expected at least one".into())?;
    for &file in &spec.files {
        let Some(&size) = file_sizes.get(file as usize) else {
            return require(false, "files", || {
                format!("no file {file}; the phase has {}, counted from 0", file_sizes.len())
            });
        };
        let end = spec.offset_bytes.checked_add(spec.length_bytes);
        require(end.is_some_and(|end| end <= size.min(OFFSET_MAX)), "length_bytes", || {
            format!(
                "{} bytes from offset {} reach past the end of file {file} ({size} bytes)",
                spec.length_bytes, spec.offset_bytes
            )
        })?;
    }
    Ok(())
}

fn check_blocks(spec: &JobSpec) -> Result<(), Finding> {
    check_sizes(&spec.blocks)?;
    spec.writes.as_ref().map_or(Ok(()), |writes| check_sizes(&writes.blocks))
}

fn check_sizes(blocks: &[BlockSize]) -> Result<(), Finding> {
    require(!blocks.is_empty(), "blocks", || "no block size; expected at least one".into())?;
    for block in blocks {
        require(block.bytes > 0, "blocks", || "a block of 0 bytes; expected at least 1".into())?;
        require(block.weight.is_finite() && block.weight > 0.0, "blocks", || {
            format!("weight {} of block size {}; expected a positive number", block.weight, block.bytes)
        })?;
    }
    let total: f64 = blocks.iter().map(|block| block.weight).sum();
    require(total.is_finite(), "blocks", || "the sum of the weights is too large".into())
}

fn check_range(spec: &JobSpec) -> Result<(), Finding> {
    for align in spec.alignments() {
        require(align > 0, "align_bytes", || "0; expected at least 1".into())?;
        require(spec.offset_bytes.is_multiple_of(align), "offset_bytes", || {
            format!("{} is not a multiple of align_bytes = {align}", spec.offset_bytes)
        })?;
    }
    for block in spec.all_blocks() {
        require(u64::from(block.bytes) <= spec.length_bytes, "length_bytes", || {
            format!("{} bytes hold no block of {} bytes", spec.length_bytes, block.bytes)
        })?;
    }
    Ok(())
}

fn check_pattern(spec: &JobSpec) -> Result<(), Finding> {
    match &spec.pattern {
        Pattern::Strided { stride_bytes, .. } => require(
            *stride_bytes > 0 && spec.alignments().all(|align| stride_bytes.is_multiple_of(align)),
            "pattern",
            || format!("stride_bytes = {stride_bytes}; expected a multiple of align_bytes = {}", spec.align_bytes),
        ),
        Pattern::Zipf { theta } => require(theta.is_finite() && *theta >= 0.0, "pattern", || {
            format!("theta = {theta}; expected a number not below 0")
        }),
        Pattern::Pareto { h } => {
            require(*h > 0.0 && *h < 1.0, "pattern", || format!("h = {h}; expected a number above 0 and below 1"))
        }
        Pattern::Normal { deviation_percent } => require((0.0..=100.0).contains(deviation_percent), "pattern", || {
            format!("deviation_percent = {deviation_percent}; expected 0 to 100")
        }),
        Pattern::Zoned { zones } => check_zones(spec, zones),
        &Pattern::Permutation { blocks_done } => {
            let of_writes = spec.writes.as_ref().map(|writes| writes.blocks.len());
            let sizes = spec.blocks.len().max(of_writes.unwrap_or(0));
            require(sizes == 1, "pattern", || format!("permutation visits blocks of one size; found {sizes} sizes"))?;
            let goes_on = spec.scatter_seed.is_some() && spec.files.len() == 1;
            require(blocks_done == 0 || goes_on, "pattern", || {
                format!("blocks_done = {blocks_done}; expected 0 without a scatter_seed, or of several files")
            })
        }
        Pattern::Sequential | Pattern::Backward | Pattern::Uniform => Ok(()),
    }
}

/// Each zone that is drawn has room for an aligned operation of any size.
fn check_zones(spec: &JobSpec, zones: &[Zone]) -> Result<(), Finding> {
    let weights: f64 = zones.iter().map(|zone| zone.weight).sum();
    let are_weights = zones.iter().all(|zone| zone.weight >= 0.0) && weights.is_finite();
    require(are_weights && weights > 0.0, "pattern", || {
        "weights of zones; expected numbers not below 0 with a sum above 0".into()
    })?;
    let align_bytes = spec.alignments().max().unwrap_or(1);
    let largest = spec.all_blocks().map(|block| u64::from(block.bytes)).max().unwrap_or(1);
    let mut start = 0u64;
    for (number, zone) in zones.iter().enumerate() {
        let end = start.saturating_add(zone.length_bytes);
        let first = start.next_multiple_of(align_bytes);
        let fits = first < end && first.saturating_add(largest) <= spec.length_bytes;
        require(fits || zone.weight == 0.0, "pattern", || {
            format!(
                "zone {} holds no operation; expected {align_bytes} bytes or more within the range of {} bytes",
                number + 1,
                spec.length_bytes
            )
        })?;
        start = end;
    }
    Ok(())
}

fn check_share(spec: &JobSpec) -> Result<(), Finding> {
    require((0.0..=1.0).contains(&spec.read_share), "read_share", || {
        format!("{}; expected a share from 0 to 1", spec.read_share)
    })
}

fn check_queue_depth(spec: &JobSpec) -> Result<(), Finding> {
    require(spec.queue_depth > 0, "queue_depth", || "0; expected at least 1".into())
}

fn check_arrival(spec: &JobSpec) -> Result<(), Finding> {
    match spec.arrival {
        Arrival::Closed { think_ns, think_every } => require(think_ns == 0 || think_every > 0, "arrival", || {
            "think_every = 0; expected at least 1 when think_ns is not 0".into()
        }),
        Arrival::Open { rate_per_s, spacing } => {
            require((1e-6..=1e9).contains(&rate_per_s), "arrival", || {
                format!("rate_per_s = {rate_per_s}; expected a number from 1e-6 to 1e9")
            })?;
            let is_mix = spec.read_share > 0.0 && spec.read_share < 1.0;
            let has_directions = spacing != Spacing::ConstantEach || is_mix;
            require(has_directions, "arrival", || {
                format!("spacing = constant_each, with read_share = {}; expected a mix", spec.read_share)
            })
        }
    }
}

fn check_sync(spec: &JobSpec) -> Result<(), Finding> {
    require(spec.sync.is_none_or(|sync| sync.every_writes > 0), "sync", || {
        "every_writes = 0; expected at least 1".into()
    })?;
    require(spec.dsync_every.is_none_or(|every| every > 0), "dsync_every", || {
        "dsync_every = 0; expected at least 1".into()
    })?;
    require(spec.osync_every.is_none_or(|every| every > 0), "osync_every", || {
        "osync_every = 0; expected at least 1".into()
    })?;
    require(spec.dsync_every.is_none() || spec.osync_every.is_none(), "osync_every", || {
        "dsync_every is given too".into()
    })?;
    require(!spec.commits || makes_durable(spec), "commits", || {
        "nothing makes the records durable; expected sync, or dsync_every = 1".into()
    })
}

fn check_until(spec: &JobSpec) -> Result<(), Finding> {
    let until = spec.until;
    require(until.ops.is_some() || until.bytes.is_some() || until.duration_ns.is_some(), "until", || {
        "no bound; expected at least one of ops, bytes, duration_ns".into()
    })?;
    let bounds = [("ops", until.ops), ("bytes", until.bytes), ("duration_ns", until.duration_ns)];
    for (name, bound) in bounds {
        require(bound != Some(0), "until", || format!("{name} = 0; expected at least 1"))?;
    }
    let largest = spec.all_blocks().map(|block| u64::from(block.bytes)).max().unwrap_or(0);
    require(until.bytes.is_none_or(|bytes| bytes >= largest), "until", || {
        format!("bytes = {}; expected at least one block of {largest} bytes", until.bytes.unwrap_or(0))
    })
}

fn check_start(spec: &JobSpec) -> Result<(), Finding> {
    let start_ns = spec.start_ns.unwrap_or(0);
    require(spec.until.duration_ns.is_none_or(|end_ns| start_ns < end_ns), "start_ns", || {
        format!("{start_ns} leaves nothing of duration_ns")
    })
}

fn check_replay(spec: &JobSpec) -> Result<(), Finding> {
    let Some(replay) = &spec.replay else {
        return Ok(());
    };
    require(replay.thread < replay.threads, "replay", || format!("thread {} of {}", replay.thread, replay.threads))?;
    let scale = replay.time_scale;
    let least = match replay.timing {
        Timing::Recorded => 1e-6,
        Timing::Dependent => 0.0,
    };
    require((least..=1e6).contains(&scale), "replay", || {
        format!("time_scale = {scale}; expected a number from {least} to 1e6")
    })?;
    require(replay.region_bytes >= 4096 && replay.region_bytes.is_multiple_of(spec.align_bytes), "replay", || {
        format!("region_bytes = {}; expected a multiple of align_bytes, at least 4096", replay.region_bytes)
    })?;
    let is_plain = spec.depth_search.is_none()
        && spec.steady_state.is_none()
        && spec.sync.is_none()
        && spec.dsync_every.is_none()
        && spec.osync_every.is_none()
        && !spec.commits
        && !spec.sync_at_end;
    require(is_plain && !spec.files.is_empty(), "replay", || "a trace has its own syncs and depth".into())
}

fn makes_durable(spec: &JobSpec) -> bool {
    let syncs = |sync: &Sync| sync.kind != SyncKind::SyncFileRange;
    spec.sync.as_ref().is_some_and(syncs) || spec.dsync_every == Some(1) || spec.osync_every == Some(1)
}

fn check_search(spec: &JobSpec) -> Result<(), Finding> {
    let Some(search) = spec.depth_search else {
        return Ok(());
    };
    require(search.target_ns > 0 && search.window_ns > 0, "depth_search", || {
        "target_ns or window_ns = 0; expected at least 1".into()
    })?;
    require(search.share > 0.0 && search.share <= 1.0, "depth_search", || {
        format!("share = {}; expected a share above 0 and up to 1", search.share)
    })?;
    let is_closed = matches!(spec.arrival, Arrival::Closed { .. });
    require(is_closed, "depth_search", || "an open loop has no queue depth to choose; expected closed arrival".into())
}

fn check_steady_state(spec: &JobSpec) -> Result<(), Finding> {
    let Some(wanted) = spec.steady_state else {
        return Ok(());
    };
    for limit in std::iter::once(wanted.limit).chain(wanted.spread_limit) {
        require(limit > 0.0 && limit.is_finite(), "steady_state", || {
            format!("limit = {limit}; expected a number above 0")
        })?;
    }
    // Each interval that ends costs the job a look at the whole window.
    require(wanted.interval_ns >= STEADY_INTERVAL_NS_MIN, "steady_state", || {
        format!("interval_ns = {}; expected 10 ms or more", wanted.interval_ns)
    })?;
    require(wanted.window_ns.is_multiple_of(wanted.interval_ns), "steady_state", || {
        "window_ns is no multiple of interval_ns".into()
    })?;
    require((2..=STEADY_INTERVALS_MAX).contains(&(wanted.window_ns / wanted.interval_ns)), "steady_state", || {
        format!("{} intervals in a window; expected 2 to {STEADY_INTERVALS_MAX}", wanted.window_ns / wanted.interval_ns)
    })?;
    require(spec.depth_search.is_none(), "steady_state", || "a search for a queue depth ends the job itself".into())
}
