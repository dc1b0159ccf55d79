//! How the guest talks past its kernel: each word has left the machine when the call returns, so that the
//! power cannot go between a promise and its being known.
//!
//! Invariant: the ports are open to this process (`ioperm`) before a byte goes out.

#![allow(unsafe_code)]

use std::arch::asm;
use std::sync::OnceLock;

/// Port of QEMU's debug console.
const PORT: u16 = 0xe9;

/// Points in the run that the plugin knows by an instruction that does nothing.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    /// From here on stores are watched.
    Watch,
    /// From here on they are the writer's.
    Go,
}

pub(crate) fn mark(mark: Mark) {
    // SAFETY: a no-operation, whatever its operand is.
    unsafe {
        match mark {
            Mark::Watch => asm!("nop dword ptr [rax + 0x52494701]", options(nomem, nostack, preserves_flags)),
            Mark::Go => asm!("nop dword ptr [rax + 0x52494702]", options(nomem, nostack, preserves_flags)),
        }
    }
}

/// Sends a line.
///
/// # Panics
/// If the ports cannot be had: nothing the rig finds would be known.
pub(crate) fn say(line: &str) {
    static OPEN: OnceLock<()> = OnceLock::new();
    OPEN.get_or_init(|| {
        // SAFETY: only opens a port of the emulator's to this process.
        let status = unsafe { libc::ioperm(PORT.into(), 1, 1) };
        assert_eq!(status, 0, "no access to the debug console");
    });
    for byte in line.replace('\n', " ").bytes().chain([b'\n']) {
        // SAFETY: opened above; the port takes any byte.
        unsafe { asm!("out dx, al", in("dx") PORT, in("al") byte, options(nomem, nostack, preserves_flags)) }
    }
}
