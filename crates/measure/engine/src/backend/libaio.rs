//! Linux native AIO by its raw system calls.

use std::io;
use std::rc::Rc;

use workload::job::{Op, OpKind};

use crate::backend::{Completion, IoQueue, Target, serial};
use crate::buffers::Buffers;
use crate::call_flags::CallFlags;

pub struct Libaio {
    context: Context,
    files: Vec<Target>,
    buffers: Rc<Buffers>,
    flags: CallFlags,
    /// One control block per slot; the kernel has copied it when the submission returns.
    blocks: Vec<libc::iocb>,
    queued: Vec<*mut libc::iocb>,
    events: Vec<IoEvent>,
    /// Events not yet handed out are the first `ready`.
    ready: usize,
    /// Done in the call: the interface has no such operation.
    cleared: Vec<Completion>,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct IoEvent {
    data: u64,
    block: u64,
    result: i64,
    result2: i64,
}

struct Context(libc::c_ulong);

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;

impl Libaio {
    pub fn new(slots: u32, files: Vec<Target>, buffers: Rc<Buffers>, flags: CallFlags) -> io::Result<Libaio> {
        let mut context = 0;
        // SAFETY: the call stores one context through the pointer, which must hold zero before.
        check(unsafe { libc::syscall(libc::SYS_io_setup, libc::c_long::from(slots), &raw mut context) })?;
        // SAFETY: all-zero is a valid iocb.
        let blank: libc::iocb = unsafe { std::mem::zeroed() };
        Ok(Libaio {
            context: Context(context),
            files,
            buffers,
            flags,
            blocks: vec![blank; slots as usize],
            queued: Vec::with_capacity(slots as usize),
            events: vec![IoEvent::default(); slots as usize],
            ready: 0,
            cleared: Vec::new(),
        })
    }

    /// How many of the queued operations the kernel took.
    fn submit_queued(&mut self) -> io::Result<usize> {
        let count = self.queued.len() as libc::c_long;
        // SAFETY: each pointer names a block in `blocks`, whose buffer and descriptor outlive the operation.
        let taken =
            check(unsafe { libc::syscall(libc::SYS_io_submit, self.context.0, count, self.queued.as_mut_ptr()) })?;
        self.queued.drain(..taken as usize);
        Ok(taken as usize)
    }

    /// The operation at the head of the queue can't even be submitted: that is its result.
    fn fail_first(&mut self, error: &io::Error) {
        // SAFETY: queued pointers name blocks in `blocks`, which are never moved or freed while this lives.
        let slot = unsafe { (*self.queued.remove(0)).aio_data };
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        self.events[self.ready] = IoEvent { data: slot, result: -i64::from(errno), ..IoEvent::default() };
        self.ready += 1;
    }
}

impl IoQueue for Libaio {
    #[inline(always)]
    fn push(&mut self, slot: u32, op: &Op) {
        let file = self.files[op.file as usize];
        let (opcode, buffer) = match op.kind {
            OpKind::Read => (IOCB_CMD_PREAD, self.buffers.read(slot) as u64),
            OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => {
                (IOCB_CMD_PWRITE, self.buffers.write(slot) as u64)
            }
            OpKind::Fsync => (IOCB_CMD_FSYNC, 0),
            OpKind::Fdatasync => (IOCB_CMD_FDSYNC, 0),
            OpKind::SyncFileRange => {
                let result = serial::sync(op.kind, file);
                return self.cleared.push(Completion { slot, result });
            }
            OpKind::Discard | OpKind::WriteZeroes => {
                let result = file.clear(op);
                return self.cleared.push(Completion { slot, result });
            }
        };
        let is_sync = op.kind.is_sync();
        let block = &mut self.blocks[slot as usize];
        block.aio_data = u64::from(slot);
        block.aio_lio_opcode = opcode;
        block.aio_fildes = file.fd as u32;
        block.aio_buf = buffer;
        // A sync with flags is refused.
        block.aio_rw_flags = if is_sync { 0 } else { self.flags.of(op.kind) };
        block.aio_nbytes = u64::from(op.bytes);
        block.aio_offset = if is_sync { 0 } else { (file.base + op.offset) as i64 };
        self.queued.push(block);
    }

    fn submit(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        while !self.queued.is_empty() {
            match self.submit_queued() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => break,
                    _ => self.fail_first(&error),
                },
            }
        }
        let here = self.ready + self.cleared.len();
        let wanted = (want as usize).saturating_sub(here) as libc::c_long;
        let room = (self.events.len() - self.ready) as libc::c_long;
        let mut time = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the kernel stores at most `room` events after the ones that are ready, inside `events`.
        let got = check(unsafe {
            let free = self.events.as_mut_ptr().add(self.ready);
            libc::syscall(libc::SYS_io_getevents, self.context.0, wanted.min(room), room, free, &raw mut time)
        });
        match got {
            Ok(count) => self.ready += count as usize,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self) -> Option<Completion> {
        if let Some(cleared) = self.cleared.pop() {
            return Some(cleared);
        }
        self.ready = self.ready.checked_sub(1)?;
        let event = self.events[self.ready];
        Some(Completion { slot: event.data as u32, result: event.result as i32 })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: destroys the context that `io_setup` made; it waits for what is in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

fn check(status: libc::c_long) -> io::Result<libc::c_long> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}
