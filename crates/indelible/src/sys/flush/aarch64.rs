//! aarch64: `dc cvap` where the CPU has it (`HWCAP_DCPOP`), `dsb`.

use std::arch::asm;

use super::LINE;

const DCPOP: libc::c_ulong = 1 << 16;

fn dcpop() -> bool {
    // SAFETY: reads the auxiliary vector.
    (unsafe { libc::getauxval(libc::AT_HWCAP) }) & DCPOP != 0
}

pub(super) fn available() -> bool {
    dcpop()
}

pub(super) fn instructions() -> &'static [&'static str] {
    if dcpop() { &["dc cvap"] } else { &["dc cvac"] }
}

pub(super) fn fence() {
    // SAFETY: a barrier touches no memory.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) }
}

/// A `dsb` waits for its own processor's cache maintenance only.
pub(super) fn hand_over() {
    fence();
}

/// # Safety
/// See `flush::copy`.
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("cbz {n}, 3f", "2:", "cmp {n}, 16", "b.lo 4f", "ldp {x}, {y}, [{s}], 16", "stp {x}, {y}, [{d}], 16",
            "subs {n}, {n}, 16", "b.ne 2b", "b 3f",
            "4:", "ldrb {x:w}, [{s}], 1", "strb {x:w}, [{d}], 1", "subs {n}, {n}, 1", "b.ne 4b", "3:",
            n = inout(reg) len => _, s = inout(reg) src => _, d = inout(reg) dst => _,
            x = out(reg) _, y = out(reg) _, options(nostack));
    }
}

/// # Safety
/// `dst` starts on a line; both ranges of `lines` lines are valid.
pub(super) unsafe fn stream_lines(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        copy(dst, src, lines * LINE);
        write_back_lines(dst, lines);
    }
}

/// # Safety
/// The lines are mapped.
pub(super) unsafe fn write_back_lines(start: *const u8, lines: usize) {
    let persist = dcpop();
    for line in 0..lines {
        // SAFETY: the line is mapped; `dc cvap` (spelt out for older assemblers) only where the CPU
        // has it.
        unsafe {
            let at = start.add(line * LINE);
            if persist {
                asm!("sys #3, c7, c12, #1, {p}", p = in(reg) at, options(nostack, preserves_flags));
            } else {
                asm!("dc cvac, {p}", p = in(reg) at, options(nostack, preserves_flags));
            }
        }
    }
}

#[inline]
pub(super) fn fetch_line(at: *const u8) {
    // SAFETY: a hint: where nothing is mapped it does nothing.
    unsafe { asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly)) };
}

/// # Safety
/// See `flush::lines_changed`.
pub(super) unsafe fn lines_changed(a: *const u8, b: *const u8, _ahead: [*const u8; 2]) -> u64 {
    let mut mask = 0;
    for line in 0..64 {
        let mut differs = 0;
        for word in 0..8 {
            let at = line * LINE + word * 8;
            // SAFETY: within the page; volatile, because other processes may map the memory.
            differs |=
                unsafe { a.add(at).cast::<u64>().read_volatile() ^ b.add(at).cast::<u64>().read_volatile() };
        }
        mask |= u64::from(differs != 0) << line;
    }
    mask
}
