//! x86-64: `movnt*`, `clwb`/`clflushopt`/`clflush`, `sfence`.
//!
//! Invariant: `LEVEL` is 0 (not asked yet) or a [`Level`] that the CPU and the kernel support.
//!
//! The 512-bit kernels use registers 16 to 31, which need no `vzeroupper`.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _mm_sfence};
use std::sync::atomic::{AtomicU8, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Wide {
    Sse2 = 0,
    Avx2 = 1,
    Avx512 = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Back {
    Flush = 0,
    FlushOpt = 1,
    Clwb = 2,
}

const KNOWN: u8 = 0x80;
static LEVEL: AtomicU8 = AtomicU8::new(0);

#[inline]
fn level() -> u8 {
    match LEVEL.load(Ordering::Relaxed) {
        0 => detect(),
        level => level,
    }
}

#[cold]
fn detect() -> u8 {
    let wide = if is_x86_feature_detected!("avx512f") {
        Wide::Avx512
    } else if is_x86_feature_detected!("avx2") {
        Wide::Avx2
    } else {
        Wide::Sse2
    };
    // Older compilers declare these unsafe; every x86-64 CPU has the instruction.
    #[allow(unused_unsafe)]
    // SAFETY: `cpuid` exists on x86-64 and only reads.
    let bits = unsafe { if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 } };
    let back = if bits & 1 << 24 != 0 {
        Back::Clwb
    } else if bits & 1 << 23 != 0 {
        Back::FlushOpt
    } else {
        Back::Flush
    };
    let level = KNOWN | (wide as u8) << 4 | back as u8;
    LEVEL.store(level, Ordering::Relaxed);
    level
}

#[inline]
fn wide() -> Wide {
    match level() >> 4 & 3 {
        2 => Wide::Avx512,
        1 => Wide::Avx2,
        _ => Wide::Sse2,
    }
}

pub(super) fn available() -> bool {
    true
}

pub(super) fn instructions() -> &'static [&'static str] {
    match (wide(), level() & 3) {
        (Wide::Avx512, 2) => &["avx512f", "clwb"],
        (Wide::Avx2, 2) => &["avx2", "clwb"],
        (Wide::Sse2, 2) => &["sse2", "clwb"],
        (Wide::Avx512, 1) => &["avx512f", "clflushopt"],
        (Wide::Avx2, 1) => &["avx2", "clflushopt"],
        (Wide::Sse2, 1) => &["sse2", "clflushopt"],
        (Wide::Avx512, _) => &["avx512f", "clflush"],
        (Wide::Avx2, _) => &["avx2", "clflush"],
        (Wide::Sse2, _) => &["sse2", "clflush"],
    }
}

pub(super) fn fence() {
    // SAFETY: part of the x86-64 baseline.
    unsafe { _mm_sfence() }
}

/// Locked instructions, such as a lock's release, order write-backs and streamed lines.
pub(super) fn hand_over() {}

/// # Safety
/// See `flush::copy`.
#[inline]
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promise. The loops move whole words below 256 bytes, where the start-up
    // of `rep movsb` dominates.
    unsafe {
        if len >= 256 {
            asm!("rep movsb", inout("rcx") len => _, inout("rdi") dst => _, inout("rsi") src => _,
                options(nostack, preserves_flags));
        } else {
            asm!(
                "cmp {n}, 16", "jb 3f",
                "2:", "movdqu {x}, [{s}]", "movdqu [{d}], {x}", "add {s}, 16", "add {d}, 16",
                "sub {n}, 16", "cmp {n}, 16", "jae 2b",
                "3:", "cmp {n}, 8", "jb 4f",
                "mov {w}, [{s}]", "mov [{d}], {w}", "add {s}, 8", "add {d}, 8", "sub {n}, 8",
                "4:", "test {n}, {n}", "jz 6f",
                "5:", "mov {w:l}, [{s}]", "mov [{d}], {w:l}", "inc {s}", "inc {d}", "dec {n}", "jnz 5b",
                "6:",
                n = inout(reg) len => _, s = inout(reg) src => _, d = inout(reg) dst => _,
                w = out(reg_abcd) _, x = out(xmm_reg) _, options(nostack));
        }
    }
}

/// # Safety
/// `dst` starts on a line; both ranges of `lines` lines are valid; `lines` > 0.
#[inline]
pub(super) unsafe fn stream_lines(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: the caller's promise; `wide` names only instructions that exist here.
    unsafe {
        match wide() {
            Wide::Avx512 => stream_512(dst, src, lines),
            Wide::Avx2 => stream_256(dst, src, lines),
            Wide::Sse2 => stream_128(dst, src, lines),
        }
    }
}

unsafe fn stream_512(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: as for `stream_lines`.
    unsafe {
        asm!("2:", "vmovdqu64 zmm16, [{s}]", "vmovntdq [{d}], zmm16", "add {s}, 64", "add {d}, 64",
            "dec {n}", "jnz 2b",
            s = inout(reg) src => _, d = inout(reg) dst => _, n = inout(reg) lines => _,
            out("xmm16") _, options(nostack));
    }
}

unsafe fn stream_256(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: as for `stream_lines`.
    unsafe {
        asm!("2:", "vmovdqu ymm0, [{s}]", "vmovdqu ymm1, [{s} + 32]", "vmovntdq [{d}], ymm0",
            "vmovntdq [{d} + 32], ymm1", "add {s}, 64", "add {d}, 64", "dec {n}", "jnz 2b", "vzeroupper",
            s = inout(reg) src => _, d = inout(reg) dst => _, n = inout(reg) lines => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _, options(nostack));
    }
}

unsafe fn stream_128(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: as for `stream_lines`.
    unsafe {
        asm!("2:", "movdqu {a}, [{s}]", "movdqu {b}, [{s} + 16]", "movdqu {c}, [{s} + 32]", "movdqu {e}, [{s} + 48]",
            "movntdq [{d}], {a}", "movntdq [{d} + 16], {b}", "movntdq [{d} + 32], {c}", "movntdq [{d} + 48], {e}",
            "add {s}, 64", "add {d}, 64", "dec {n}", "jnz 2b",
            s = inout(reg) src => _, d = inout(reg) dst => _, n = inout(reg) lines => _,
            a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, e = out(xmm_reg) _, options(nostack));
    }
}

/// # Safety
/// The lines are mapped; `start` is the address of the first.
#[inline]
pub(super) unsafe fn write_back_lines(start: *const u8, lines: usize) {
    // SAFETY: the caller's promise; the instruction is one that exists here.
    unsafe {
        match level() & 3 {
            2 => asm!("2:", "clwb [{p}]", "add {p}, 64", "dec {n}", "jnz 2b",
                p = inout(reg) start => _, n = inout(reg) lines => _, options(nostack)),
            1 => asm!("2:", "clflushopt [{p}]", "add {p}, 64", "dec {n}", "jnz 2b",
                p = inout(reg) start => _, n = inout(reg) lines => _, options(nostack)),
            _ => asm!("2:", "clflush [{p}]", "add {p}, 64", "dec {n}", "jnz 2b",
                p = inout(reg) start => _, n = inout(reg) lines => _, options(nostack)),
        }
    }
}

#[inline]
pub(super) fn fetch_line(at: *const u8) {
    // SAFETY: a hint: where nothing is mapped it does nothing.
    unsafe { asm!("prefetcht0 [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly)) };
}

/// # Safety
/// See `flush::lines_changed`.
#[inline]
pub(super) unsafe fn lines_changed(a: *const u8, b: *const u8, ahead: [*const u8; 2]) -> u64 {
    // SAFETY: the caller's promise; `wide` names only instructions that exist here.
    unsafe {
        match wide() {
            Wide::Avx512 => changed_512(a, b, ahead),
            Wide::Avx2 => changed_256(a, b, ahead),
            Wide::Sse2 => changed_128(a, b, ahead),
        }
    }
}

// Backwards, with both pages prefetched: the processor's own prefetch ends with a page.

unsafe fn changed_512(a: *const u8, b: *const u8, [p, q]: [*const u8; 2]) -> u64 {
    let mask: u64;
    // SAFETY: reads 4096 bytes of each, as promised.
    unsafe {
        asm!("xor {m:e}, {m:e}", "mov {i:e}, 4032",
            "2:", "vmovdqu64 zmm16, [{a} + {i}]", "prefetcht0 [{p} + {i}]",
            "vpcmpneqd k1, zmm16, [{b} + {i}]", "prefetcht0 [{q} + {i}]",
            "xor {f:e}, {f:e}", "kortestw k1, k1", "setnz {f:l}", "lea {m}, [{m} * 2 + {f}]",
            "sub {i}, 64", "jae 2b",
            a = in(reg) a, b = in(reg) b, p = in(reg) p, q = in(reg) q, i = out(reg_abcd) _, m = out(reg) mask,
            f = out(reg_abcd) _, out("xmm16") _, out("k1") _, options(nostack, readonly));
    }
    mask
}

unsafe fn changed_256(a: *const u8, b: *const u8, [p, q]: [*const u8; 2]) -> u64 {
    let mask: u64;
    // SAFETY: reads 4096 bytes of each, as promised.
    unsafe {
        asm!("xor {m:e}, {m:e}", "mov {i:e}, 4032",
            "2:", "vmovdqu ymm0, [{a} + {i}]", "vmovdqu ymm1, [{a} + {i} + 32]", "prefetcht0 [{p} + {i}]",
            "vpxor ymm0, ymm0, [{b} + {i}]", "vpxor ymm1, ymm1, [{b} + {i} + 32]", "prefetcht0 [{q} + {i}]",
            "vpor ymm0, ymm0, ymm1", "xor {f:e}, {f:e}", "vptest ymm0, ymm0", "setnz {f:l}",
            "lea {m}, [{m} * 2 + {f}]", "sub {i}, 64", "jae 2b", "vzeroupper",
            a = in(reg) a, b = in(reg) b, p = in(reg) p, q = in(reg) q, i = out(reg_abcd) _, m = out(reg) mask,
            f = out(reg_abcd) _, out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _,
            out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack, readonly));
    }
    mask
}

unsafe fn changed_128(a: *const u8, b: *const u8, [p, q]: [*const u8; 2]) -> u64 {
    let mask: u64;
    // SAFETY: reads 4096 bytes of each, as promised.
    unsafe {
        asm!("xor {m:e}, {m:e}", "mov {i:e}, 4032",
            "2:", "prefetcht0 [{p} + {i}]", "prefetcht0 [{q} + {i}]",
            "movdqu {x}, [{a} + {i}]", "movdqu {y}, [{b} + {i}]", "pcmpeqb {x}, {y}",
            "movdqu {z}, [{a} + {i} + 16]", "movdqu {y}, [{b} + {i} + 16]", "pcmpeqb {z}, {y}", "pand {x}, {z}",
            "movdqu {z}, [{a} + {i} + 32]", "movdqu {y}, [{b} + {i} + 32]", "pcmpeqb {z}, {y}", "pand {x}, {z}",
            "movdqu {z}, [{a} + {i} + 48]", "movdqu {y}, [{b} + {i} + 48]", "pcmpeqb {z}, {y}", "pand {x}, {z}",
            "pmovmskb {f:e}, {x}", "cmp {f:e}, 0xffff", "setne {f:l}", "movzx {f:e}, {f:l}",
            "lea {m}, [{m} * 2 + {f}]", "sub {i}, 64", "jae 2b",
            a = in(reg) a, b = in(reg) b, p = in(reg) p, q = in(reg) q, i = out(reg_abcd) _, m = out(reg) mask,
            f = out(reg_abcd) _, x = out(xmm_reg) _, y = out(xmm_reg) _, z = out(xmm_reg) _,
            options(nostack, readonly));
    }
    mask
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    type Kernel = unsafe fn(*const u8, *const u8, [*const u8; 2]) -> u64;

    pub(crate) fn kernels_agree() {
        #[repr(align(64))]
        struct Page([u8; 4096]);
        let mut seed = 0x9e37_79b9_u64;
        for round in 0..200 {
            let mut a = Page([0; 4096]);
            for byte in &mut a.0 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (seed >> 56) as u8;
            }
            let mut b = Page(a.0);
            let mut expected = 0_u64;
            for _ in 0..round {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let byte = (seed >> 40) as usize % 4096;
                b.0[byte] = !a.0[byte];
                expected |= 1 << (byte / 64);
            }
            // SAFETY: pages of 4096 bytes; only kernels that this CPU has are called.
            unsafe {
                let mut kernels: Vec<Kernel> = vec![changed_128];
                let mut streams: Vec<unsafe fn(*mut u8, *const u8, usize)> = vec![stream_128];
                if wide() as u8 >= 1 {
                    kernels.push(changed_256);
                    streams.push(stream_256);
                }
                if wide() as u8 >= 2 {
                    kernels.push(changed_512);
                    streams.push(stream_512);
                }
                for (n, kernel) in kernels.iter().enumerate() {
                    // Nothing need be mapped ahead.
                    for ahead in [[a.0.as_ptr(), b.0.as_ptr()], [std::ptr::null(); 2]] {
                        let found = kernel(a.0.as_ptr(), b.0.as_ptr(), ahead);
                        assert_eq!(found, expected, "kernel {n}, round {round}");
                    }
                }
                for stream in streams {
                    let mut to = Page([0; 4096]);
                    stream(to.0.as_mut_ptr(), a.0.as_ptr(), 64);
                    fence();
                    assert!(to.0 == a.0);
                }
            }
        }
    }
}
