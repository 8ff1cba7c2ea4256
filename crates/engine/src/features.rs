//! What this kernel lets the engine use.

use io_uring::{Builder, IoUring, Probe, opcode};
use serde::Serialize;

use crate::clock::tsc_unusable_because;

#[derive(Clone, Debug, Serialize)]
pub struct Features {
    pub kernel: String,
    pub io_uring: RingFeatures,
    pub libaio: bool,
    pub tsc: bool,
    /// Why the time stamp counter is not used.
    pub tsc_unusable_because: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct RingFeatures {
    pub usable: bool,
    /// Why it is not.
    pub unusable_because: Option<String>,
    pub single_issuer: bool,
    pub defer_taskrun: bool,
    pub coop_taskrun: bool,
    pub sqpoll: bool,
    pub fixed_io: bool,
    pub min_timeout: bool,
}

pub fn features() -> Features {
    Features {
        kernel: kernel(),
        io_uring: ring_features(),
        libaio: has_libaio(),
        tsc: tsc_unusable_because().is_none(),
        tsc_unusable_because: tsc_unusable_because().map(str::to_owned),
    }
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .unwrap_or_default()
        .trim()
        .to_owned()
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
        sqpoll: grants(|builder| builder.setup_sqpoll(10)),
        fixed_io: probed && probe.is_supported(opcode::ReadFixed::CODE),
        min_timeout: ring.params().is_feature_min_timeout(),
    }
}

fn unusable(why: String) -> RingFeatures {
    RingFeatures {
        unusable_because: Some(why),
        ..RingFeatures::default()
    }
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
