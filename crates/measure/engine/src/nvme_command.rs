//! A command to an NVMe drive, as the kernel takes it.

/// `struct nvme_uring_cmd` (include/uapi/linux/nvme_ioctl.h, Linux 6.12), and the 72 bytes of `struct nvme_passthru_cmd`.
#[derive(Default)]
#[repr(C)]
pub struct Command {
    pub opcode: u8,
    pub flags: u8,
    pub reserved: u16,
    pub namespace: u32,
    pub cdw2: u32,
    pub cdw3: u32,
    pub metadata: u64,
    pub address: u64,
    pub metadata_bytes: u32,
    pub data_bytes: u32,
    /// Command dwords 10 to 15.
    pub cdw: [u32; 6],
    pub timeout_ms: u32,
    pub unused: u32,
    /// The rest of the entry.
    pub rest: u64,
}
