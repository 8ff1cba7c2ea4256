//! The few system calls of an init: mounts, modules, the kernel's name.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use crate::failure::Failure;

const OWN: [(&str, &str); 4] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")];
/// A kernel may do without it.
const OPTIONAL: [&str; 1] = ["tmpfs"];

/// /proc, /sys and /dev, and what else this kernel has.
pub fn mount_own_filesystems() -> Result<(), Failure> {
    for (kind, place) in OWN {
        fs::create_dir_all(place).map_err(|error| Failure::os(place, &error))?;
        match mount(kind, place, kind, "") {
            Err(_) if OPTIONAL.contains(&kind) => {}
            // The kernel may have mounted devtmpfs itself.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            other => other.map_err(|error| Failure::os(place, &error))?,
        }
    }
    Ok(())
}

/// mount(2); options as for `mount -o`, of which the common flags are known.
pub fn mount(source: &str, place: &str, kind: &str, options: &str) -> io::Result<()> {
    let mut flags = 0;
    let mut data = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "defaults" | "rw" => {}
            "ro" => flags |= libc::MS_RDONLY,
            "noatime" => flags |= libc::MS_NOATIME,
            "nodiratime" => flags |= libc::MS_NODIRATIME,
            "relatime" => flags |= libc::MS_RELATIME,
            "strictatime" => flags |= libc::MS_STRICTATIME,
            "lazytime" => flags |= libc::MS_LAZYTIME,
            "sync" => flags |= libc::MS_SYNCHRONOUS,
            "dirsync" => flags |= libc::MS_DIRSYNC,
            "nodev" => flags |= libc::MS_NODEV,
            "noexec" => flags |= libc::MS_NOEXEC,
            "nosuid" => flags |= libc::MS_NOSUID,
            of_filesystem => data.push(of_filesystem),
        }
    }
    let (source, place, kind) = (text(source)?, text(place)?, text(kind)?);
    let data = text(&data.join(","))?;
    // SAFETY: all pointers are strings that outlive the call.
    checked(unsafe { libc::mount(source.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast()) })
}

/// Loads a module's file; one that is there already is no error.
pub fn load_module(path: &str, parameters: &str) -> io::Result<()> {
    let file = File::open(path)?;
    let parameters = text(parameters)?;
    // SAFETY: the descriptor and the string outlive the call.
    let failed = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    if failed == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        error => Err(error),
    }
}

/// swapon(2), before any area that is on already; several areas of one machine share what is swapped.
pub fn swap_on(path: &str) -> io::Result<()> {
    /// A flag of swapon(2) (linux/swap.h).
    const SWAP_FLAG_PREFER: libc::c_int = 0x8000;
    const PRIORITY: libc::c_int = 1;
    let path = text(path)?;
    // SAFETY: the string outlives the call.
    checked(unsafe { libc::swapon(path.as_ptr(), SWAP_FLAG_PREFER | PRIORITY) })
}

/// Restricts the calling thread, and those that it makes, to these CPUs.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.iter().any(|&cpu| cpu >= libc::CPU_SETSIZE as usize) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a set of CPUs is plain bits, and each CPU is below its size; the call reads it.
    checked(unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    })
}

/// Fills the kernel's pool with bytes that follow from `seed`, and counts them as random: from then on a random number
/// costs what it costs on a machine that is up. Until a pool is seeded, each one hashes it (drivers/char/random.c, 6.1).
pub fn seed_random_numbers(seed: u64) -> io::Result<()> {
    let mut entropy =
        Entropy { bits: 8 * POOL_BYTES as libc::c_int, bytes: POOL_BYTES as libc::c_int, pool: [0; POOL_BYTES] };
    for (place, byte) in entropy.pool.iter_mut().enumerate() {
        *byte = seed.to_le_bytes()[place % size_of::<u64>()];
    }
    let pool = OpenOptions::new().write(true).open("/dev/urandom")?;
    // SAFETY: the call reads the structure, which says how long it is and outlives the call.
    checked(unsafe { libc::ioctl(pool.as_raw_fd(), RNDADDENTROPY, &raw const entropy) })
}

/// Maps all of this program's pages. Else the kernel maps a page of its code, and 15 beside it, when it is first run: for
/// some 9,100 instructions (Debian's 6.1), in a load or before, depending on what ran before.
pub fn map_own_pages() -> io::Result<()> {
    // SAFETY: they take and give numbers. What is mapped stays so when it is unlocked.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT) })?;
    checked(unsafe { libc::munlockall() })
}

/// More than any kernel's pool takes to be seeded: 128 bits until 5.18, 256 since.
const POOL_BYTES: usize = 64;

/// Of linux/random.h.
const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;

/// `struct rand_pool_info` of linux/random.h.
#[repr(C)]
struct Entropy {
    bits: libc::c_int,
    bytes: libc::c_int,
    pool: [u8; POOL_BYTES],
}

fn checked(status: libc::c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Where programs are looked for.
pub const PATH: &str = "/bin:/sbin:/usr/bin:/usr/sbin";

/// What children that have ended used since the machine started: user and system time in ns, voluntary and involuntary
/// context switches, minor and major faults.
pub fn used_by_children() -> io::Result<[u64; 6]> {
    // SAFETY: usage is plain numbers, which the call fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        checked(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage))?;
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Ok([
        ns(usage.ru_utime),
        ns(usage.ru_stime),
        usage.ru_nvcsw as u64,
        usage.ru_nivcsw as u64,
        usage.ru_minflt as u64,
        usage.ru_majflt as u64,
    ])
}

/// Kills every process but this one, the machine's first, and waits for them.
pub fn kill_all_others() {
    // SAFETY: takes numbers; without a place for the status, waiting writes nothing.
    unsafe {
        libc::kill(-1, libc::SIGKILL);
        while libc::waitpid(-1, std::ptr::null_mut(), 0) > 0 {}
    }
}

/// sync(2).
pub fn sync() {
    // SAFETY: takes nothing.
    unsafe { libc::sync() };
}

/// The kernel's release, as uname(2) has it.
pub fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

fn text(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
