//! What this kernel lets the engine use.

use io_uring::{Builder, IoUring, Probe, cqueue, opcode, squeue};
use serde::Serialize;

use crate::clock::tsc_unusable_because;
use crate::hybrid_poll::hybrid_polled;
use crate::registered_wait;

/// The I/O interfaces and clocks that this kernel offers, found by trying them.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Features {
    /// The release, from /proc/sys/kernel/osrelease.
    pub kernel: String,
    /// io_uring and its setup modes.
    pub io_uring: RingFeatures,
    /// Whether io_setup(2) works.
    pub libaio: bool,
    /// Whether operations can be timed with the processor's time-stamp counter.
    pub tsc: bool,
    /// Why the time stamp counter is not used.
    pub tsc_unusable_because: Option<String>,
}

/// What io_uring_setup(2) and IORING_REGISTER_PROBE grant; all false if rings are not usable.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct RingFeatures {
    /// Whether a ring can be made; needs the timed wait of Linux 5.11.
    pub usable: bool,
    /// Why it is not.
    pub unusable_because: Option<String>,
    /// IORING_SETUP_SINGLE_ISSUER.
    pub single_issuer: bool,
    /// IORING_SETUP_DEFER_TASKRUN, together with IORING_SETUP_SINGLE_ISSUER.
    pub defer_taskrun: bool,
    /// IORING_SETUP_COOP_TASKRUN.
    pub coop_taskrun: bool,
    /// IORING_SETUP_HYBRID_IOPOLL: a polling ring sleeps first.
    pub hybrid_poll: bool,
    /// IORING_SETUP_SQE128 and IORING_SETUP_CQE32: entries that hold a command of NVMe.
    pub passthrough: bool,
    /// IORING_SETUP_SQPOLL.
    pub sqpoll: bool,
    /// Reads from and writes to registered buffers (IORING_OP_READ_FIXED).
    pub fixed_io: bool,
    /// Waits read their arguments from registered memory (IORING_ENTER_EXT_ARG_REG).
    pub registered_waits: bool,
    /// A minimum wait for a batch of completions (IORING_FEAT_MIN_TIMEOUT).
    pub min_timeout: bool,
}

/// Asks this kernel; makes and drops a few small rings.
pub fn features() -> Features {
    Features {
        kernel: kernel(),
        io_uring: ring_features(),
        libaio: has_libaio(),
        tsc: tsc_unusable_because().is_none(),
        tsc_unusable_because: tsc_unusable_because().map(str::to_owned),
    }
}

/// Whether the kernel is of that version, major and minor, or a later one.
pub(crate) fn kernel_is_at_least(version: (u32, u32)) -> bool {
    let release = kernel();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
    let number = |found: Option<u32>| found.unwrap_or(0);
    let major = number(numbers.next());
    (major, number(numbers.next())) >= version
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

fn ring_features() -> RingFeatures {
    let ring = match IoUring::new(2) {
        Ok(ring) if ring.params().is_feature_ext_arg() => ring,
        Ok(_) => return unusable("this kernel's rings have no timed wait (Linux 5.11)".into()),
        Err(error) => return unusable(error.to_string()),
    };
    let mut probe = Probe::new();
    let probed = ring.submitter().register_probe(&mut probe).is_ok();
    let grants = |mode: fn(&mut Builder) -> &mut Builder| {
        let mut builder = IoUring::builder();
        mode(&mut builder);
        builder.build(2).is_ok()
    };
    RingFeatures {
        usable: true,
        unusable_because: None,
        single_issuer: grants(|builder| builder.setup_single_issuer()),
        defer_taskrun: grants(|builder| builder.setup_single_issuer().setup_defer_taskrun()),
        coop_taskrun: grants(|builder| builder.setup_coop_taskrun()),
        hybrid_poll: hybrid_polled(2).is_ok(),
        passthrough: IoUring::<squeue::Entry128, cqueue::Entry32>::builder().build(2).is_ok(),
        sqpoll: grants(|builder| builder.setup_sqpoll(10)),
        fixed_io: probed && probe.is_supported(opcode::ReadFixed::CODE),
        registered_waits: registered_wait::probe().is_ok(),
        min_timeout: ring.params().is_feature_min_timeout(),
    }
}

fn unusable(why: String) -> RingFeatures {
    RingFeatures { unusable_because: Some(why), ..RingFeatures::default() }
}

fn has_libaio() -> bool {
    let mut context: libc::c_ulong = 0;
    // SAFETY: `io_setup` stores one context through the pointer, and that context is destroyed again.
    unsafe {
        let made = libc::syscall(libc::SYS_io_setup, 1 as libc::c_long, &raw mut context) == 0;
        if made {
            libc::syscall(libc::SYS_io_destroy, context);
        }
        made
    }
}
