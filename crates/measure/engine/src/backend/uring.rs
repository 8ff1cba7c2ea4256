//! io_uring: batches in, batches out, with whatever of the ring's fast paths this kernel grants.

use std::io;
use std::rc::Rc;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{cqueue, opcode, squeue};
use workload::job::{Op, OpKind};
use workload::phase::GroupSpec;

use crate::backend::ring::Ring;
use crate::backend::serial::WRITE_AND_WAIT;
use crate::backend::{Completion, IoQueue, Target, fallocate_mode};
use crate::buffers::Buffers;
use crate::call_flags::{CallFlags, waited_note};
use crate::features::kernel_is_at_least;
use crate::hybrid_poll::hybrid_polled;

pub struct Uring {
    /// Before the buffers that it names.
    ring: Ring<squeue::Entry, cqueue::Entry>,
    files: Vec<RingFile>,
    buffers: Rc<Buffers>,
    file_flag: squeue::Flags,
    opcodes: Opcodes,
    /// No bits without registered buffers, of which no piece is to be named.
    piece_mask: u16,
    flags: CallFlags,
    /// By slot, what was last pushed; empty unless reads are first asked for without waiting.
    first: Vec<Option<Op>>,
    waited: u64,
    /// Whether the kernel takes discards of devices into a ring.
    queues_discards: bool,
    /// Done in the call: discards of devices that it does not take.
    cleared: Vec<Completion>,
}

#[derive(Clone, Copy)]
struct RingFile {
    /// Its index among the registered files if there are such, or its descriptor: `file_flag` distinguishes them.
    name: Fd,
    target: Target,
}

struct Opcodes {
    read: u8,
    write: u8,
}

/// A read or a write as the kernel has it, `struct io_uring_sqe` (include/uapi/linux/io_uring.h, Linux 6.12), because
/// the forms with and without registered buffers and files differ in values alone. The crate's builders are different
/// types, which branches would put together in registers and copy piece by piece.
#[repr(C)]
struct Transfer {
    opcode: u8,
    flags: u8,
    priority: u16,
    file: i32,
    offset: u64,
    buffer: u64,
    bytes: u32,
    call_flags: i32,
    slot: u64,
    piece: u16,
    unused: [u16; 11],
}

/// `BLOCK_URING_CMD_DISCARD`, and the kernel that has it first.
const DISCARD: u32 = 0x1200;
const DISCARDS_FROM: (u32, u32) = (6, 12);

impl Uring {
    /// To be called on the thread that will use it. What was asked for and refused is added to `notes`.
    pub fn new(
        spec: &GroupSpec,
        slots: u32,
        poll: bool,
        files: Vec<Target>,
        buffers: Rc<Buffers>,
        notes: &mut Vec<String>,
    ) -> io::Result<Uring> {
        let ring = if poll && spec.hybrid_poll {
            Ring::of(hybrid_polled((slots + 2).next_power_of_two())?, false, true)?
        } else {
            Ring::new(spec, slots, poll, notes)?
        };
        let descriptors: Vec<_> = files.iter().map(|file| file.fd).collect();
        let fixed_files = spec.registered_files && ring.register_files(&descriptors, notes);
        let fixed_buffers = spec.fixed_buffers && ring.register_buffers(&buffers, notes);
        Ok(Uring {
            ring,
            files: (0..)
                .zip(files)
                .map(|(index, target)| RingFile { name: Fd(if fixed_files { index } else { target.fd }), target })
                .collect(),
            buffers,
            file_flag: if fixed_files { squeue::Flags::FIXED_FILE } else { squeue::Flags::empty() },
            opcodes: Opcodes::new(fixed_buffers),
            piece_mask: if fixed_buffers { u16::MAX } else { 0 },
            flags: CallFlags::of_group(spec),
            first: vec![None; if spec.nowait_reads { slots as usize } else { 0 }],
            waited: 0,
            queues_discards: !poll && kernel_is_at_least(DISCARDS_FROM),
            cleared: Vec::new(),
        })
    }

    #[inline(always)]
    fn push_transfer(&mut self, slot: u32, op: &Op, opcode: u8, buffer: *mut u8, call_flags: i32) {
        let file = &self.files[op.file as usize];
        let entry = Transfer {
            opcode,
            flags: self.file_flag.bits(),
            priority: 0,
            file: file.name.0,
            offset: file.target.base + op.offset,
            buffer: buffer as u64,
            bytes: op.bytes,
            call_flags,
            slot: u64::from(slot),
            piece: self.buffers.piece(slot, op.kind.is_write()) & self.piece_mask,
            unused: [0; 11],
        };
        self.ring.push(&entry.into());
    }

    /// What moves no data.
    #[cold]
    fn push_other(&mut self, slot: u32, op: Op) {
        let op = &op;
        let RingFile { name: file, target } = self.files[op.file as usize];
        if op.kind == OpKind::Discard && target.is_device && !self.queues_discards {
            let result = target.clear(op);
            return self.cleared.push(Completion { slot, result });
        }
        let offset = target.base + op.offset;
        let entry = match op.kind {
            OpKind::Fdatasync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            OpKind::SyncFileRange => {
                // A length of 0 is to the end, beyond what the call has room for.
                let bytes = u32::try_from(target.size).unwrap_or(0);
                let sync = opcode::SyncFileRange::new(file, bytes).offset(target.base);
                sync.flags(WRITE_AND_WAIT).build()
            }
            OpKind::Discard if target.is_device => {
                let mut command = [0; 16];
                command[..8].copy_from_slice(&u64::from(op.bytes).to_ne_bytes());
                let discard = opcode::UringCmd16::new(file, DISCARD).cmd(command);
                discard.addr(Some(offset)).build()
            }
            OpKind::Discard | OpKind::WriteZeroes => {
                let clear = opcode::Fallocate::new(file, u64::from(op.bytes)).offset(offset);
                clear.mode(fallocate_mode(op.kind)).build()
            }
            _ => opcode::Fsync::new(file).build(),
        };
        let entry = entry.flags(self.file_flag).user_data(u64::from(slot));
        self.ring.push(&entry);
    }

    /// Asks for a read that would have waited once more, and this time lets it wait. False: it was no such read, or was
    /// asked for twice.
    #[cold]
    fn ask_again(&mut self, slot: u32) -> bool {
        let kept = self.first.get_mut(slot as usize);
        let Some(op) = kept.and_then(Option::take) else {
            return false;
        };
        self.waited += 1;
        let (buffer, flags) = (self.buffers.read(slot), self.flags.of(op.kind));
        self.push_transfer(slot, &op, self.opcodes.read, buffer, flags);
        true
    }
}

impl Opcodes {
    fn new(fixed_buffers: bool) -> Opcodes {
        if fixed_buffers {
            Opcodes { read: opcode::ReadFixed::CODE, write: opcode::WriteFixed::CODE }
        } else {
            Opcodes { read: opcode::Read::CODE, write: opcode::Write::CODE }
        }
    }
}

impl From<Transfer> for squeue::Entry {
    #[inline(always)]
    fn from(transfer: Transfer) -> squeue::Entry {
        // SAFETY: both are C's layout of the same structure of the kernel, made of integers, and as long as one another,
        // which the compiler checks.
        unsafe { std::mem::transmute(transfer) }
    }
}

impl IoQueue for Uring {
    #[inline(always)]
    fn push(&mut self, slot: u32, op: &Op) {
        if op.kind == OpKind::Read {
            if let Some(kept) = self.first.get_mut(slot as usize) {
                *kept = Some(*op);
            }
            let (buffer, flags) = (self.buffers.read(slot), self.flags.at_first(op.kind));
            self.push_transfer(slot, op, self.opcodes.read, buffer, flags);
        } else if op.kind.is_write() {
            let (buffer, flags) = (self.buffers.write(slot), self.flags.of(op.kind));
            self.push_transfer(slot, op, self.opcodes.write, buffer, flags);
        } else {
            self.push_other(slot, *op);
        }
    }

    #[inline]
    fn submit(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        let want = want.saturating_sub(self.cleared.len() as u32);
        self.ring.submit(want, timeout_ns)
    }

    #[inline(always)]
    fn reap(&mut self) -> Option<Completion> {
        while let Some(entry) = self.ring.reap() {
            let (slot, result) = (entry.user_data() as u32, entry.result());
            if !self.flags.would_wait(OpKind::Read, result) || !self.ask_again(slot) {
                return Some(Completion { slot, result });
            }
        }
        self.cleared.pop()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.ring.notes();
        notes.extend(waited_note(self.waited));
        notes
    }

    fn cancel(&mut self) {
        self.ring.cancel();
    }
}

#[cfg(test)]
mod tests {
    use io_uring::types::Fixed;

    use super::*;

    fn bytes(entry: squeue::Entry) -> [u8; 64] {
        // SAFETY: an entry is 64 bytes of integers without padding.
        unsafe { std::mem::transmute(entry) }
    }

    #[test]
    fn a_transfer_is_what_the_builder_makes() {
        let mut data = [0u8; 4096];
        let buffer = data.as_mut_ptr();
        let transfer = |opcode, flags: squeue::Flags, piece| Transfer {
            opcode,
            flags: flags.bits(),
            priority: 0,
            file: 3,
            offset: 8192,
            buffer: buffer as u64,
            bytes: 4096,
            call_flags: libc::RWF_DSYNC,
            slot: 7,
            piece,
            unused: [0; 11],
        };
        let (none, fixed) = (squeue::Flags::empty(), squeue::Flags::FIXED_FILE);
        let read = opcode::Read::new(Fd(3), buffer, 4096).offset(8192);
        let write = opcode::Write::new(Fixed(3), buffer, 4096).offset(8192);
        let read_fixed = opcode::ReadFixed::new(Fixed(3), buffer, 4096, 5).offset(8192);
        let write_fixed = opcode::WriteFixed::new(Fd(3), buffer, 4096, 5).offset(8192);
        let (plain, registered) = (Opcodes::new(false), Opcodes::new(true));
        for (made, built) in [
            (transfer(plain.read, none, 0), read.rw_flags(libc::RWF_DSYNC).build()),
            (transfer(plain.write, fixed, 0), write.rw_flags(libc::RWF_DSYNC).build()),
            (transfer(registered.read, fixed, 5), read_fixed.rw_flags(libc::RWF_DSYNC).build()),
            (transfer(registered.write, none, 5), write_fixed.rw_flags(libc::RWF_DSYNC).build()),
        ] {
            assert_eq!(bytes(made.into()), bytes(built.user_data(7)));
        }
    }
}
