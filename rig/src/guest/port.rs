//! Output past the kernel: each word has left the machine when the call returns, so that no power
//! cut falls between a promise and its report.
//!
//! Invariant: the ports are open to this thread (`ioperm`) before a byte goes out.

#![allow(unsafe_code)]

use std::arch::asm;
use std::cell::OnceCell;
use std::sync::{Mutex, PoisonError};

const PORT: u16 = 0xe9;

/// Points in the run, marked by no-operations that the plugin knows.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    /// From here on stores are watched.
    Watch,
    /// From here on stores are the writer's.
    Go,
    Durable,
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

/// Makes the power supply set the serial port's lines: bits of `TIOCMGET`.
pub(crate) fn set_lines(bits: i32) {
    // SAFETY: a no-operation, with any operand; the plugin reads the register.
    unsafe {
        asm!("nop dword ptr [rax + 0x52494710]", in("rax") i64::from(bits), options(nomem, nostack, preserves_flags));
    }
}

/// Sends a whole line, from any thread. Other processes of the machine must not.
///
/// # Panics
/// The ports are unavailable, so that no finding would be known.
pub(crate) fn say(line: &str) {
    // Granted to the asking thread and to threads that it starts.
    thread_local! {
        static OPEN: OnceCell<()> = const { OnceCell::new() };
    }
    static WHOLE: Mutex<()> = Mutex::new(());
    let _whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    let open = || {
        // SAFETY: only opens an emulator's port to this thread.
        let status = unsafe { libc::ioperm(PORT.into(), 1, 1) };
        assert_eq!(status, 0, "no access to the debug console");
    };
    OPEN.with(|opened| *opened.get_or_init(open));
    for byte in line.replace('\n', " ").bytes().chain([b'\n']) {
        // SAFETY: opened above; the port takes any byte.
        unsafe { asm!("out dx, al", in("dx") PORT, in("al") byte, options(nomem, nostack, preserves_flags)) }
    }
}
