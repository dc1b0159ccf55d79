//! How the guest talks past its kernel: each word has left the machine when the call returns, so
//! that the power cannot go between a promise and its being known.
//!
//! Invariant: the ports are open to this thread (`ioperm`) before a byte goes out.

#![allow(unsafe_code)]

use std::arch::asm;
use std::cell::OnceCell;
use std::sync::{Mutex, PoisonError};

/// Port of QEMU's debug console.
const PORT: u16 = 0xe9;

/// Points in the run that the plugin knows by an instruction that does nothing.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    /// From here on stores are watched.
    Watch,
    /// From here on they are the writer's.
    Go,
    /// The guard says that everything is durable.
    Durable,
    /// The guest has stated the promised state.
    Promised,
}

pub(crate) fn mark(mark: Mark) {
    // SAFETY: a no-operation, with any operand.
    unsafe {
        match mark {
            Mark::Watch => asm!("nop dword ptr [rax + 0x52494701]", options(nomem, nostack, preserves_flags)),
            Mark::Go => asm!("nop dword ptr [rax + 0x52494702]", options(nomem, nostack, preserves_flags)),
            Mark::Durable => {
                asm!("nop dword ptr [rax + 0x52494703]", options(nomem, nostack, preserves_flags))
            }
            Mark::Promised => {
                asm!("nop dword ptr [rax + 0x52494704]", options(nomem, nostack, preserves_flags))
            }
        }
    }
}

/// Has the power supply put the lines of the serial port so: bits of `TIOCMGET`.
pub(crate) fn set_lines(bits: i32) {
    // SAFETY: a no-operation, with any operand; the plugin reads the register.
    unsafe {
        asm!("nop dword ptr [rax + 0x52494710]", in("rax") i64::from(bits), options(nomem, nostack, preserves_flags));
    }
}

/// Sends a line, whole, whichever threads do. Other processes of the machine must not.
///
/// # Panics
/// If the ports cannot be had: nothing the rig finds would be known.
pub(crate) fn say(line: &str) {
    // A right of the thread that asked for it, and of those that it starts.
    thread_local! {
        static OPEN: OnceCell<()> = const { OnceCell::new() };
    }
    static WHOLE: Mutex<()> = Mutex::new(());
    let _whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    let open = || {
        // SAFETY: only opens a port of the emulator's to this thread.
        let status = unsafe { libc::ioperm(PORT.into(), 1, 1) };
        assert_eq!(status, 0, "no access to the debug console");
    };
    OPEN.with(|opened| *opened.get_or_init(open));
    for byte in line.replace('\n', " ").bytes().chain([b'\n']) {
        // SAFETY: opened above; the port takes any byte.
        unsafe { asm!("out dx, al", in("dx") PORT, in("al") byte, options(nomem, nostack, preserves_flags)) }
    }
}
