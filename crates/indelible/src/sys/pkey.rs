//! Protection keys: the kernel's three calls, and the register of a thread's rights.
//!
//! Invariants:
//! 1. The register is accessed only where [`lack`] found that the kernel has enabled it: elsewhere
//!    the instructions are illegal.
//! 2. The compiler moves no access to memory over [`write`].
//!
//! Only x86-64 has the register `PKRU`; elsewhere there are no keys.

#![allow(unsafe_code)]

use std::io;

use super::mmap::Protection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u8);

impl Key {
    /// Its rights are bits 2·index and 2·index + 1 of the register.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    Processor,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "other processors have none"))]
    Kernel,
    Refused(i32),
}

impl Lack {
    pub(crate) fn why(self) -> &'static str {
        match self {
            Lack::Processor => "the processor has none",
            Lack::Kernel => "the kernel has not enabled those of the processor",
            Lack::Refused(_) => "the system call pkey_alloc is refused",
        }
    }
}

pub(crate) fn available() -> Result<(), Lack> {
    if let Some(lack) = lack() {
        return Err(lack);
    }
    match allocate() {
        Ok(key) => {
            // SAFETY: no page has it.
            unsafe { free(key) };
            Ok(())
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => Ok(()),
        Err(error) => Err(Lack::Refused(error.raw_os_error().unwrap_or(0))),
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn lack() -> Option<Lack> {
    use std::sync::atomic::{AtomicU8, Ordering};
    const ASK: u8 = 0xff;
    static KNOWN: AtomicU8 = AtomicU8::new(ASK);
    let mut bits = KNOWN.load(Ordering::Relaxed);
    if bits == ASK {
        bits = ask();
        KNOWN.store(bits, Ordering::Relaxed);
    }
    match (bits & 1 != 0, bits & 2 != 0) {
        (_, true) => None,
        (true, false) => Some(Lack::Kernel),
        (false, false) => Some(Lack::Processor),
    }
}

#[cfg(target_arch = "x86_64")]
fn ask() -> u8 {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    if cfg!(miri) {
        return 0;
    }
    // Older compilers declare these unsafe; every x86-64 CPU has the instruction.
    #[allow(unused_unsafe)]
    // SAFETY: `cpuid` exists on x86-64 and only reads.
    let bits = unsafe { if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ecx } else { 0 } };
    (bits >> 3 & 3) as u8
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn lack() -> Option<Lack> {
    Some(Lack::Processor)
}

/// This thread's rights. Async-signal-safe.
///
/// # Safety
/// [`lack`] has found nothing.
#[inline]
pub(crate) unsafe fn read() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        let word: u32;
        // SAFETY: enabled, as the caller promises (1); reads a register.
        unsafe {
            std::arch::asm!("rdpkru", in("ecx") 0, out("eax") word, out("edx") _,
                options(nomem, nostack, preserves_flags));
        }
        word
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("there are no keys")
}

/// Async-signal-safe.
///
/// # Safety
/// [`lack`] has found nothing, and no reference relies on the access that is taken away.
#[inline]
pub(crate) unsafe fn write(word: u32) {
    // SAFETY: enabled, as the caller promises (1). Without `nomem`: stores stay on their side of it
    // (2).
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("wrpkru", in("eax") word, in("ecx") 0, in("edx") 0, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("there are no keys for the word {word:#x}")
}

/// Closed for this thread; other threads may have rights of an earlier use. `ENOSPC`: none is left,
/// or unsupported.
pub(crate) fn allocate() -> io::Result<Key> {
    const ACCESS_DISABLED: libc::c_ulong = 1;
    // SAFETY: changes a table of the kernel's, and the rights of a free key.
    let got = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, ACCESS_DISABLED) };
    match u8::try_from(got) {
        Ok(key) => Ok(Key(key)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// # Safety
/// No page has it: its next user could open that page.
pub(crate) unsafe fn free(key: Key) {
    // SAFETY: the caller's promise. The call fails for keys that are not allocated.
    unsafe { libc::syscall(libc::SYS_pkey_free, libc::c_long::from(key.0)) };
}

/// `None`: the key of ordinary memory.
///
/// # Safety
/// The range is the caller's mapping, and no reference relies on the access that is taken away.
pub(crate) unsafe fn protect(addr: usize, len: usize, most: Protection, key: Option<Key>) -> io::Result<()> {
    let key = key.map_or(0, |key| libc::c_long::from(key.0));
    let bits = libc::c_long::from(most.bits());
    // SAFETY: the caller's promise.
    match unsafe { libc::syscall(libc::SYS_pkey_mprotect, addr, len, bits, key) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
