//! Opening events of the kernel's performance monitor: perf_event_open(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::record::Period;
use crate::probe::Reason;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ContextSwitches,
    /// A timer per CPU.
    CpuClock,
    Cycles,
    Instructions,
    CacheMisses,
    StalledCyclesFrontend,
    StalledCyclesBackend,
}

/// Whose events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All tasks on this CPU.
    Cpu(u32),
    /// This process with the threads that it starts from now on.
    #[cfg(test)]
    OwnProcess,
}

/// How often a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Every Nth event.
    Every(u64),
    /// About this many times a second; each event while there are fewer. The kernel adapts.
    PerSecond(u64),
}

impl Rate {
    pub fn period(self) -> Period {
        match self {
            Rate::Every(period) => Period::Fixed(period),
            Rate::PerSecond(_) => Period::Recorded,
        }
    }
}

/// Counts from now on.
pub fn open_counter(kind: Kind, scope: Scope) -> Result<OwnedFd, Reason> {
    let attributes = Attributes { read_format: FORMAT_TOTAL_TIMES, flags: INHERIT, ..Attributes::new(kind) };
    open(&attributes, scope).map_err(|error| refusal(kind, scope, &error))
}

/// A sampler of kernel stacks that is off until `enable`.
pub fn open_sampler(kind: Kind, cpu: u32, rate: Rate, wake_bytes: u32) -> Result<OwnedFd, Reason> {
    let (period, by_rate) = match rate {
        Rate::Every(period) => (period, 0),
        Rate::PerSecond(rate) => (rate, FREQUENCY),
    };
    let scope = Scope::Cpu(cpu);
    let attributes = Attributes {
        sample_period: period,
        sample_type: rate.period().sample_fields(),
        flags: by_rate | DISABLED | EXCLUDE_IDLE | EXCLUDE_CALLCHAIN_USER | WATERMARK | USE_CLOCK,
        wakeup_watermark: wake_bytes,
        // The clock of the engine's own times.
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::new(kind)
    };
    open(&attributes, scope).map_err(|error| refusal(kind, scope, &error))
}

pub fn enable(event: &OwnedFd) -> io::Result<()> {
    // SAFETY: the request takes no pointer.
    match unsafe { libc::ioctl(event.as_raw_fd(), IOC_ENABLE, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn open(attributes: &Attributes, scope: Scope) -> io::Result<OwnedFd> {
    let (pid, cpu): (libc::c_int, libc::c_int) = match scope {
        Scope::Cpu(cpu) => (-1, cpu as libc::c_int),
        #[cfg(test)]
        Scope::OwnProcess => (0, -1),
    };
    // SAFETY: the attributes outlive the call, and their size is in them; the descriptor is nobody else's.
    unsafe {
        let no_group = -1;
        let fd =
            libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(attributes), pid, cpu, no_group, FLAG_CLOEXEC);
        match fd {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd as libc::c_int)),
        }
    }
}

fn refusal(kind: Kind, scope: Scope, error: &io::Error) -> Reason {
    let what = kind.name();
    match (error.raw_os_error(), scope) {
        (Some(libc::EACCES | libc::EPERM), _) => {
            let setting = std::fs::read_to_string(PARANOID).unwrap_or_default();
            format!(
                "perf event {what}: {error}; kernel.perf_event_paranoid is {}: run as root, or sysctl \
                 kernel.perf_event_paranoid=-1",
                setting.trim()
            )
        }
        (Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV), Scope::Cpu(cpu)) if kind.is_software() => {
            format!("perf event {what}: CPU {cpu} is not online")
        }
        (Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL), _) => {
            format!("perf event {what}: this CPU's monitor does not count it, or the machine is a guest without one")
        }
        (Some(libc::ENOSYS), _) => {
            format!("perf event {what}: this kernel has no perf events (CONFIG_PERF_EVENTS)")
        }
        _ => format!("perf event {what}: {error}"),
    }
}

impl Kind {
    /// As perf(1) calls it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ContextSwitches => "context-switches",
            Kind::CpuClock => "cpu-clock",
            Kind::Cycles => "cycles",
            Kind::Instructions => "instructions",
            Kind::CacheMisses => "cache-misses",
            Kind::StalledCyclesFrontend => "stalled-cycles-frontend",
            Kind::StalledCyclesBackend => "stalled-cycles-backend",
        }
    }

    fn is_software(self) -> bool {
        self.type_and_config().0 == TYPE_SOFTWARE
    }

    /// include/uapi/linux/perf_event.h.
    fn type_and_config(self) -> (u32, u64) {
        match self {
            Kind::ContextSwitches => (TYPE_SOFTWARE, 3),
            Kind::CpuClock => (TYPE_SOFTWARE, 0),
            Kind::Cycles => (TYPE_HARDWARE, 0),
            Kind::Instructions => (TYPE_HARDWARE, 1),
            Kind::CacheMisses => (TYPE_HARDWARE, 3),
            Kind::StalledCyclesFrontend => (TYPE_HARDWARE, 7),
            Kind::StalledCyclesBackend => (TYPE_HARDWARE, 8),
        }
    }
}

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const FLAG_CLOEXEC: libc::c_ulong = 1 << 3;
const IOC_ENABLE: libc::Ioctl = 0x2400;
/// A read gives the count and the times for which the event was wanted and did count.
const FORMAT_TOTAL_TIMES: u64 = 0b11;
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_IDLE: u64 = 1 << 7;
const FREQUENCY: u64 = 1 << 10;
const WATERMARK: u64 = 1 << 14;
const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const USE_CLOCK: u64 = 1 << 25;

/// `struct perf_event_attr` as of Linux 4.1 (PERF_ATTR_SIZE_VER5), which all later kernels take.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint_kind: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_interrupt: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

impl Attributes {
    fn new(kind: Kind) -> Attributes {
        let (event_kind, config) = kind.type_and_config();
        Attributes { kind: event_kind, size: size_of::<Attributes>() as u32, config, ..Attributes::default() }
    }
}

const _: () = assert!(size_of::<Attributes>() == 112);
