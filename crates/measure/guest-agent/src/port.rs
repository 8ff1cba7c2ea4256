//! The way out of the machine: QEMU's debug port takes bytes, its exit port ends the machine. Neither needs a driver.

use std::io;

use serde_json::Value;

/// The port of `-device isa-debugcon`.
const DEBUG_PORT: u16 = 0xe9;
/// The port of `-device isa-debug-exit`.
const EXIT_PORT: u16 = 0xf4;
const EXIT_PORTS: u64 = 4;

/// Both ports, which this process may use.
pub struct Port(());

impl Port {
    /// Asks the kernel for the ports. An error if it gives none.
    pub fn open() -> io::Result<Port> {
        // SAFETY: changes this process's permissions only.
        let refused =
            unsafe { libc::ioperm(DEBUG_PORT.into(), 1, 1) != 0 || libc::ioperm(EXIT_PORT.into(), EXIT_PORTS, 1) != 0 };
        if refused { Err(io::Error::last_os_error()) } else { Ok(Port(())) }
    }

    /// A line of JSON.
    pub fn emit(&mut self, message: &Value) {
        self.send(message.to_string().as_bytes());
        self.send(b"\n");
    }

    /// Bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        // SAFETY: `bytes` outlives the instruction, which reads it to its end; the port was granted.
        unsafe {
            std::arch::asm!(
                "rep outsb",
                in("dx") DEBUG_PORT,
                inout("rsi") bytes.as_ptr() => _,
                inout("rcx") bytes.len() => _,
                options(nostack)
            );
        }
    }

    /// Ends the machine: QEMU exits with `2 * status + 1`.
    pub fn end_machine(self, status: u32) -> ! {
        // SAFETY: the port was granted; the machine is gone afterwards.
        unsafe {
            std::arch::asm!("out dx, eax", in("dx") EXIT_PORT, in("eax") status);
        }
        loop {
            std::thread::park();
        }
    }
}
