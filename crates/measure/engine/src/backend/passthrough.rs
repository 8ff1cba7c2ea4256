//! NVMe commands through a ring (`io_uring_cmd`): from the ring to the driver's queue, past the block layer's bios,
//! scheduler and splits.

use std::io;
use std::rc::Rc;

use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};
use workload::job::{Op, OpKind};
use workload::phase::GroupSpec;

use crate::backend::ring::Ring;
use crate::backend::{Completion, IoQueue, Target};
use crate::buffers::Buffers;
use crate::files::OpenFile;
use crate::namespace::Namespace;
use crate::nvme_command::Command;

pub struct Passthrough {
    /// Before the buffers that it names.
    ring: Ring<squeue::Entry128, cqueue::Entry32>,
    namespaces: Vec<RingNamespace>,
    buffers: Rc<Buffers>,
    file_flag: squeue::Flags,
    fixed_buffers: bool,
    /// By slot, the bytes that the command in flight moves: its completion has none.
    bytes: Vec<u32>,
    /// Done in the call.
    cleared: Vec<Completion>,
}

#[derive(Clone, Copy)]
struct RingNamespace {
    /// As in a ring of files.
    name: Fd,
    id: u32,
    block_bytes: u64,
    /// Which placement identifier writes name, if they name one.
    placement: Option<u16>,
    target: Target,
}

/// `NVME_URING_CMD_IO` (include/uapi/linux/nvme_ioctl.h, Linux 6.12).
const NVME_URING_CMD_IO: u32 = 0xc048_4e80;
/// Opcodes of the NVM command set (NVM Express NVM Command Set Specification 1.0, figure 7).
const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
/// Force unit access, dword 12.
const FUA: u32 = 1 << 30;
/// The directive type of data placement, dword 12: dword 13 names where (TP4146).
const PLACED: u32 = 2 << 20;

impl Passthrough {
    /// As `Uring::new`.
    pub fn new(
        spec: &GroupSpec,
        slots: u32,
        poll: bool,
        files: &[Option<OpenFile>],
        buffers: Rc<Buffers>,
        notes: &mut Vec<String>,
    ) -> io::Result<Passthrough> {
        let ring = Ring::new(spec, slots, poll, notes)?;
        let opened = files.iter().map(|file| file.as_ref().and_then(|file| file.namespace.as_ref()));
        let mut namespaces: Vec<_> = opened
            .zip(Target::all(files))
            .map(|(namespace, target)| RingNamespace {
                name: Fd(namespace.map_or(-1, Namespace::fd)),
                id: namespace.map_or(0, |namespace| namespace.id),
                block_bytes: namespace.map_or(1, |namespace| namespace.block_bytes),
                placement: namespace.and_then(|namespace| namespace.placement),
                target,
            })
            .collect();
        let descriptors: Vec<_> = namespaces.iter().map(|each| each.name.0).collect();
        let mut file_flag = squeue::Flags::empty();
        if spec.registered_files && ring.register_files(&descriptors, notes) {
            file_flag = squeue::Flags::FIXED_FILE;
            for (index, namespace) in (0..).zip(&mut namespaces) {
                namespace.name = Fd(index);
            }
        }
        let fixed_buffers = spec.fixed_buffers && ring.register_buffers(&buffers, notes);
        Ok(Passthrough {
            ring,
            namespaces,
            buffers,
            file_flag,
            fixed_buffers,
            bytes: vec![0; slots as usize],
            cleared: Vec::new(),
        })
    }

    #[inline(always)]
    fn push_command(&mut self, slot: u32, namespace: RingNamespace, command: Command, piece: u16) {
        // SAFETY: a command is as long as the array, of integers without padding.
        let bytes = unsafe { std::mem::transmute::<Command, [u8; 80]>(command) };
        let moves_data = self.bytes[slot as usize] > 0;
        let entry = opcode::UringCmd80::new(namespace.name, NVME_URING_CMD_IO)
            .cmd(bytes)
            .buf_index((self.fixed_buffers && moves_data).then_some(piece))
            .build()
            .flags(self.file_flag)
            .user_data(u64::from(slot));
        self.ring.push(&entry);
    }
}

/// A read or a write of whole logical blocks.
#[inline(always)]
fn transfer(op: &Op, namespace: &RingNamespace, buffer: *mut u8) -> Command {
    let first = (namespace.target.base + op.offset) / namespace.block_bytes;
    let count = (u64::from(op.bytes) / namespace.block_bytes) as u32;
    let is_durable = matches!(op.kind, OpKind::DurableWrite | OpKind::OsyncWrite);
    let flags = if is_durable { FUA } else { 0 };
    let (placed, identifier) = match namespace.placement {
        Some(identifier) if op.kind.is_write() => (PLACED, u32::from(identifier) << 16),
        _ => (0, 0),
    };
    Command {
        opcode: if op.kind.is_write() { WRITE } else { READ },
        namespace: namespace.id,
        address: buffer as u64,
        data_bytes: op.bytes,
        cdw: [first as u32, (first >> 32) as u32, (count - 1) | flags | placed, identifier, 0, 0],
        ..Command::default()
    }
}

impl IoQueue for Passthrough {
    #[inline(always)]
    fn push(&mut self, slot: u32, op: &Op) {
        let namespace = self.namespaces[op.file as usize];
        let is_write = op.kind.is_write();
        if is_write || op.kind == OpKind::Read {
            self.bytes[slot as usize] = op.bytes;
            let buffer = if is_write { self.buffers.write(slot) } else { self.buffers.read(slot) };
            let command = transfer(op, &namespace, buffer);
            let piece = self.buffers.piece(slot, is_write);
            return self.push_command(slot, namespace, command, piece);
        }
        self.bytes[slot as usize] = 0;
        let result = match op.kind {
            OpKind::Fsync | OpKind::Fdatasync => {
                let command = Command { opcode: FLUSH, namespace: namespace.id, ..Command::default() };
                return self.push_command(slot, namespace, command, 0);
            }
            OpKind::Discard | OpKind::WriteZeroes => namespace.target.clear(op),
            _ => -libc::EOPNOTSUPP,
        };
        self.cleared.push(Completion { slot, result });
    }

    #[inline]
    fn submit(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        let want = want.saturating_sub(self.cleared.len() as u32);
        self.ring.submit(want, timeout_ns)
    }

    #[inline(always)]
    fn reap(&mut self) -> Option<Completion> {
        let Some(entry) = self.ring.reap() else {
            return self.cleared.pop();
        };
        let slot = entry.user_data() as u32;
        let result = match entry.result() {
            0 => self.bytes[slot as usize] as i32,
            refused if refused < 0 => refused,
            // The drive's own status.
            _ => -libc::EIO,
        };
        Some(Completion { slot, result })
    }

    fn notes(&self) -> Vec<String> {
        self.ring.notes()
    }

    fn cancel(&mut self) {
        self.ring.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace() -> RingNamespace {
        RingNamespace {
            name: Fd(0),
            id: 3,
            block_bytes: 512,
            placement: None,
            target: Target { fd: -1, base: 1 << 42, size: 1 << 20, is_device: true },
        }
    }

    fn op(kind: OpKind) -> Op {
        Op { kind, file: 0, offset: 4096, bytes: 8192, due: 0 }
    }

    #[test]
    fn a_transfer_counts_from_the_range_in_logical_blocks() {
        let command = transfer(&op(OpKind::Read), &namespace(), std::ptr::null_mut());
        assert_eq!((command.opcode, command.namespace), (READ, 3));
        assert_eq!(command.data_bytes, 8192);
        assert_eq!(command.cdw, [8, 2, 15, 0, 0, 0]);
    }

    #[test]
    fn a_durable_write_reaches_the_medium() {
        let command = transfer(&op(OpKind::DurableWrite), &namespace(), std::ptr::null_mut());
        assert_eq!((command.opcode, command.cdw[2]), (WRITE, 15 | FUA));
    }

    #[test]
    fn a_write_names_the_place_of_its_hint_and_a_read_none() {
        let namespace = RingNamespace { placement: Some(0x0203), ..namespace() };
        let command = |kind| transfer(&op(kind), &namespace, std::ptr::null_mut()).cdw;
        let write = OpKind::Write;
        assert_eq!(command(write), [8, 2, 15 | PLACED, 0x0203_0000, 0, 0]);
        assert_eq!(command(OpKind::Read), [8, 2, 15, 0, 0, 0]);
    }
}
