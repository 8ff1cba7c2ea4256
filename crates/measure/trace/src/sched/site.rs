//! Where a task waits: the function that wanted to wait, behind those that only implement waiting.

/// The first function of a kernel stack, innermost first, that is not part of the scheduler, of a lock or of a generic
/// wait. The outermost if all are; None for an empty stack.
///
/// `__schedule, schedule, schedule_timeout, wait_for_completion, xfs_log_force, ...` waits in `xfs_log_force`.
pub fn site_of<'a>(frames: &[&'a str]) -> Option<&'a str> {
    let mut names = frames.iter().copied().map(plain_name);
    let chosen = names.clone().find(|name| !is_generic(name));
    chosen.or_else(|| names.next_back())
}

/// Without what compilers append to copies and parts of functions.
fn plain_name(name: &str) -> &str {
    name.split_once('.').map_or(name, |(plain, _)| plain)
}

fn is_generic(name: &str) -> bool {
    let bare = name.trim_start_matches('_');
    GENERIC.contains(&bare) || GENERIC_BEGINNINGS.iter().any(|beginning| bare.starts_with(beginning))
}

/// Without leading underscores. Names of kernels from 3.x to 6.18; a function that is not known here is a site, which errs
/// on the side of showing too much.
const GENERIC: &[&str] = &[
    "schedule",
    "cond_resched",
    "might_resched",
    "yield",
    "do_wait_for_common",
    "wait_for_common",
    "wait_for_common_io",
    "do_wait_intr",
    "do_wait_intr_irq",
    "wait_event",
    "wait_woken",
    "bit_wait",
    "bit_wait_io",
    "bit_wait_timeout",
    "bit_wait_io_timeout",
    "wait_on_bit",
    "wait_on_bit_io",
    "wait_on_bit_lock",
    "wait_on_bit_timeout",
    "out_of_line_wait_on_bit",
    "out_of_line_wait_on_bit_lock",
    "out_of_line_wait_on_bit_timeout",
    "wait_on_page_bit",
    "wait_on_page_bit_common",
    "folio_wait_bit",
    "folio_wait_bit_common",
    "folio_lock",
    "folio_lock_killable",
    "lock_page",
    "sleep_on_page",
    "sleep_on_buffer",
    "wait_on_buffer",
    "lock_buffer",
    "do_nanosleep",
    "down",
    "down_common",
    "percpu_rwsem_wait",
    "percpu_down_read",
    "percpu_down_write",
    "futex_do_wait",
    "futex_wait",
    "futex_wait_queue",
    "futex_wait_queue_me",
    "do_futex",
    "prepare_to_wait",
    "poll_schedule_timeout",
    "irqentry_exit",
    "irqentry_exit_cond_resched",
    "raw_irqentry_exit_cond_resched",
    "rt_mutex_schedule",
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
];

/// The beginnings of names of families of functions, without leading underscores.
const GENERIC_BEGINNINGS: &[&str] = &[
    "schedule_",
    "io_schedule",
    "preempt_schedule",
    "traceiter_sched",
    "perf_trace_sched",
    "bpf_trace_sched",
    "trace_event_raw_event_sched",
    "perf_swevent",
    "wait_for_completion",
    "mutex_lock",
    "ww_mutex_lock",
    "rt_mutex_lock",
    "rt_mutex_slowlock",
    "rwsem_down",
    "rwbase_",
    "down_read",
    "down_write",
    "down_interruptible",
    "down_killable",
    "down_timeout",
    "usleep_range",
    "msleep",
    "fsleep",
    "asm_",
    "sysvec_",
    "reschedule_interrupt",
    "apic_timer_interrupt",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_lies_behind_generic_waiting() {
        for (frames, site) in [
            (
                &[
                    "__schedule",
                    "schedule",
                    "schedule_timeout",
                    "__wait_for_common",
                    "wait_for_completion",
                    "xfs_log_force",
                ][..],
                "xfs_log_force",
            ),
            (
                &["__schedule", "schedule", "io_schedule", "bit_wait_io", "__wait_on_bit", "jbd2_log_wait"],
                "jbd2_log_wait",
            ),
            (&["__schedule", "schedule", "worker_thread", "kthread", "ret_from_fork"], "worker_thread"),
            (&["schedule", "exit_to_user_mode_loop", "do_syscall_64"], "exit_to_user_mode_loop"),
            (&["__schedule", "schedule_preempt_disabled", "__mutex_lock.constprop.0", "pipe_write"], "pipe_write"),
            (&["schedule", "rwsem_down_write_slowpath", "down_write", "ext4_map_blocks.part.0"], "ext4_map_blocks"),
            (
                &["__schedule", "preempt_schedule_irq", "irqentry_exit", "asm_sysvec_apic_timer_interrupt", "do_csum"],
                "do_csum",
            ),
        ] {
            assert_eq!(site_of(frames), Some(site));
        }
    }

    #[test]
    fn a_stack_of_generic_functions_has_its_outermost_as_site() {
        assert_eq!(site_of(&["__schedule", "schedule"]), Some("schedule"));
        assert_eq!(site_of(&[]), None);
    }
}
