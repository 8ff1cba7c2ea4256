//! Reads and writes by copying from and to a mapping; a fault on it is that operation's error and not the process's end.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::OnceLock;

use workload::job::{Op, OpKind};

use crate::backend::{Serial, Target, serial};
use crate::buffers::Buffers;

pub struct Mmap {
    files: Vec<Option<Mapping>>,
    buffers: Rc<Buffers>,
}

struct Mapping {
    target: Target,
    start: *mut u8,
    bytes: usize,
    /// From the mapping's start, which is page-aligned, to the file's range.
    lead: usize,
    protection: libc::c_int,
}

const SLOT: u32 = 0;
const PAGE: usize = 4096;

impl Mmap {
    pub fn new(files: Vec<Target>, buffers: Rc<Buffers>) -> io::Result<Mmap> {
        catch_bus_errors();
        let map = |file: Target| (file.fd >= 0).then(|| Mapping::new(file)).transpose();
        Ok(Mmap { files: files.into_iter().map(map).collect::<io::Result<_>>()?, buffers })
    }
}

impl Serial for Mmap {
    #[inline(always)]
    fn execute(&mut self, op: &Op) -> i32 {
        let Some(mapping) = &self.files[op.file as usize] else {
            return -libc::EBADF;
        };
        let (bytes, offset) = (op.bytes as usize, op.offset as usize);
        let place = mapping.start.wrapping_add(mapping.lead + offset);
        match op.kind {
            // SAFETY: jobs stay inside their files' ranges, which the mapping covers, and the slot's buffers hold the
            // largest operation. A page that can't be had raises SIGBUS, which `on_bus_error` turns into a flag.
            OpKind::Read => mapping.guarded(op.bytes, || unsafe {
                std::ptr::copy_nonoverlapping(place, self.buffers.read(SLOT), bytes);
            }),
            OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => {
                // SAFETY: as above.
                let written = mapping.guarded(op.bytes, || unsafe {
                    std::ptr::copy_nonoverlapping(self.buffers.write(SLOT), place, bytes);
                });
                let synced = match op.kind {
                    OpKind::DurableWrite => mapping.sync(OpKind::Fdatasync),
                    OpKind::OsyncWrite => mapping.sync(OpKind::Fsync),
                    _ => 0,
                };
                if synced == 0 { written } else { synced }
            }
            OpKind::Fsync | OpKind::Fdatasync => mapping.sync(op.kind),
            OpKind::SyncFileRange => serial::sync(op.kind, mapping.target),
            OpKind::Discard | OpKind::WriteZeroes => mapping.target.clear(op),
        }
    }
}

impl Mapping {
    fn new(target: Target) -> io::Result<Mapping> {
        let lead = target.base as usize % PAGE;
        let bytes = (lead + target.size as usize).max(1);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let map = |protection| unsafe {
            let offset = (target.base as usize - lead) as libc::off_t;
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, target.fd, offset)
        };
        let (read_write, read_only) = (libc::PROT_READ | libc::PROT_WRITE, libc::PROT_READ);
        let mut protection = read_write;
        let mut start = map(read_write);
        if start == libc::MAP_FAILED && io::Error::last_os_error().raw_os_error() == Some(libc::EACCES) {
            // Opened for reading: nobody writes to it.
            protection = read_only;
            start = map(read_only);
        }
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { target, start: start.cast(), bytes, lead, protection })
    }

    /// Does the copy; its result is EIO when a page could not be had.
    #[inline(always)]
    fn guarded(&self, bytes: u32, copy: impl FnOnce()) -> i32 {
        GUARD.set(Guard { start: self.start as usize, end: self.start as usize + self.bytes, faulted: false });
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        copy();
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        let faulted = GUARD.replace(Guard::NONE).faulted;
        if faulted { self.restore() } else { bytes as i32 }
    }

    /// Maps the file again where the handler put blank pages.
    #[cold]
    fn restore(&self) -> i32 {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: replaces exactly this value's own mapping by an equal one.
        unsafe {
            let offset = self.offset();
            libc::mmap(self.start.cast(), self.bytes, self.protection, flags, self.target.fd, offset);
        }
        -libc::EIO
    }

    fn offset(&self) -> libc::off_t {
        (self.target.base as usize - self.lead) as libc::off_t
    }

    /// msync writes the pages back; only fsync also reaches the device's own cache.
    fn sync(&self, kind: OpKind) -> i32 {
        // SAFETY: the range is this value's mapping.
        if unsafe { libc::msync(self.start.cast(), self.bytes, libc::MS_SYNC) } != 0 {
            return -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        }
        serial::sync(kind, self.target)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; no reference into it is left.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// The mapping that this thread copies from or to right now.
#[derive(Clone, Copy)]
struct Guard {
    start: usize,
    end: usize,
    faulted: bool,
}

impl Guard {
    const NONE: Guard = Guard { start: 0, end: 0, faulted: false };
}

thread_local! {
    static GUARD: Cell<Guard> = const { Cell::new(Guard::NONE) };
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// What was installed before `on_bus_error`.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

fn catch_bus_errors() {
    PREVIOUS.get_or_init(|| {
        let handler: Handler = on_bus_error;
        // SAFETY: all-zero is a valid sigaction; the handler has the signature that SA_SIGINFO announces and calls nothing
        // that isn't safe in a handler.
        unsafe {
            let mut previous: libc::sigaction = std::mem::zeroed();
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, &mut previous);
            previous
        }
    });
}

/// A fault in the guarded mapping gets a blank page, so that the copy continues, and is remembered. Any other goes
/// where it went before.
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo.
    let address = unsafe { (*info).si_addr() } as usize;
    let guard = GUARD.get();
    if (guard.start..guard.end).contains(&address) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let page = (address & !(PAGE - 1)) as *mut libc::c_void;
        // SAFETY: the page lies in the guarded mapping, which belongs to the interrupted thread's own operation.
        let blank = unsafe { libc::mmap(page, PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if blank != libc::MAP_FAILED {
            GUARD.set(Guard { faulted: true, ..guard });
            return;
        }
    }
    // SAFETY: `PREVIOUS` is what the kernel said was installed before: with SA_SIGINFO, and neither the default nor ignored, a
    // handler of this type. Back in place, it is met when the faulting instruction runs again.
    unsafe {
        match PREVIOUS.get() {
            Some(previous) if previous.sa_flags & libc::SA_SIGINFO != 0 && previous.sa_sigaction > libc::SIG_IGN => {
                let chained: Handler = std::mem::transmute(previous.sa_sigaction);
                chained(signal, info, context);
            }
            Some(previous) => {
                libc::sigaction(signal, previous, std::ptr::null_mut());
            }
            None => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
