//! Makes cache lines durable: non-temporal stores, line write-back, fences.
//!
//! Assumes ADR, not eADR: a line is safe once it has left the caches and a fence has ordered that.
//! Only assembly touches memory that other processes map.

#![allow(unsafe_code)]

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[path = "aarch64.rs"]
mod arch;
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[path = "x86_64.rs"]
mod arch;
#[cfg(any(miri, not(any(target_arch = "aarch64", target_arch = "x86_64"))))]
#[path = "none.rs"]
mod arch;

use indelible_store::Mutant;

pub(crate) const LINE: usize = 64;

pub(crate) fn instructions() -> &'static [&'static str] {
    arch::instructions()
}

pub(crate) fn available() -> bool {
    arch::available()
}

/// Copies around the caches. Durable after [`fence`].
///
/// # Safety
/// `dst` is valid for writes of `src.len()` bytes, and no other thread accesses them meanwhile.
pub(crate) unsafe fn persist_copy(dst: *mut u8, src: &[u8]) {
    if Mutant::NoWriteBack.is_on() {
        // SAFETY: the caller's promise.
        return unsafe { arch::copy(dst, src.as_ptr(), src.len()) };
    }
    let head = dst.align_offset(LINE).min(src.len());
    let body = (src.len() - head) & !(LINE - 1);
    let tail = src.len() - head - body;
    // SAFETY: the three parts lie within the caller's range; the middle one starts on a line.
    unsafe {
        if head > 0 {
            cached_copy(dst, &src[..head]);
        }
        if body > 0 {
            arch::stream_lines(dst.add(head), src.as_ptr().add(head), body / LINE);
        }
        if tail > 0 {
            cached_copy(dst.add(head + body), &src[head + body..]);
        }
    }
}

/// Starts writing lines back; they stay cached where the CPU allows it. Durable after [`fence`].
///
/// # Safety
/// As for [`persist_copy`].
pub(crate) unsafe fn cached_copy(dst: *mut u8, src: &[u8]) {
    // SAFETY: the caller's promise; source and destination are different memory.
    unsafe {
        arch::copy(dst, src.as_ptr(), src.len());
        write_back(dst, src.len());
    }
}

/// As [`cached_copy`], for uncached sources: overlaps write-back with reading.
///
/// # Safety
/// As for [`persist_copy`], and `src` is valid for reads of `len` bytes that no thread changes; the
/// two do not overlap.
pub(crate) unsafe fn cached_move(dst: *mut u8, src: *const u8, len: usize) {
    const PIECE: usize = 4 * LINE;
    fetch(src, len);
    for at in (0..len).step_by(PIECE) {
        let len = PIECE.min(len - at);
        // SAFETY: within the caller's ranges.
        unsafe {
            arch::copy(dst.add(at), src.add(at), len);
            write_back(dst.add(at), len);
        }
    }
}

/// Durable after [`fence`].
///
/// # Safety
/// As for [`persist_copy`].
pub(crate) unsafe fn persist_zeros(dst: *mut u8, len: usize) {
    static ZEROS: [u8; 4096] = [0; 4096];
    let mut done = 0;
    while done < len {
        let n = ZEROS.len().min(len - done);
        // SAFETY: within the caller's range.
        unsafe { persist_copy(dst.add(done), &ZEROS[..n]) };
        done += n;
    }
}

/// Durable after [`fence`].
///
/// # Safety
/// The range is mapped.
pub(crate) unsafe fn write_back(start: *const u8, len: usize) {
    if len == 0 || Mutant::NoWriteBack.is_on() {
        return;
    }
    let skew = start.addr() % LINE;
    // SAFETY: the lines that cover a mapped range are mapped: pages consist of whole lines.
    unsafe { arch::write_back_lines(start.sub(skew), (skew + len).div_ceil(LINE)) }
}

/// Copies in assembly, without write-back.
///
/// # Safety
/// `dst` is valid for writes and `src` for reads of `len` bytes; they do not overlap.
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { arch::copy(dst, src, len) }
}

/// On return, everything written back or streamed before is durable.
pub(crate) fn fence() {
    if Mutant::NoFence.is_on() {
        return;
    }
    arch::fence();
}

/// Lets the next lock holder's fence cover this thread's write-backs: x86-64 orders them by the
/// lock's release, aarch64 by a barrier.
pub(crate) fn hand_over() {
    arch::hand_over();
}

/// Prefetches lines in parallel: a hint. They need not be mapped.
#[inline]
pub(crate) fn fetch(at: *const u8, len: usize) {
    for line in 0..len.div_ceil(LINE) {
        arch::fetch_line(at.wrapping_add(line * LINE));
    }
}

/// Bit `i` for bytes `[64 i, 64 i + 64)`. `ahead`: the next two pages to compare, prefetched.
///
/// # Safety
/// Both are valid for reads of 4096 bytes.
pub(crate) unsafe fn lines_changed(a: *const u8, b: *const u8, ahead: [*const u8; 2]) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { arch::lines_changed(a, b, ahead) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_alignment_arrives_whole() {
        let src: Vec<u8> = (0..700u32).map(|i| (i * 7 + 1) as u8).collect();
        for skew in 0..65 {
            for len in (0..140).chain(500..520) {
                for way in 0..3 {
                    let mut dst = vec![0u8; 800];
                    // SAFETY: the destination is this test's own and long enough.
                    unsafe {
                        let to = dst.as_mut_ptr().add(skew);
                        match way {
                            0 => persist_copy(to, &src[..len]),
                            1 => cached_copy(to, &src[..len]),
                            _ => cached_move(to, src.as_ptr(), len),
                        }
                    }
                    fence();
                    assert!(dst[..skew].iter().all(|b| *b == 0));
                    assert_eq!(dst[skew..skew + len], src[..len]);
                    assert!(dst[skew + len..].iter().all(|b| *b == 0));
                }
            }
        }
    }

    #[test]
    fn each_changed_byte_marks_its_line_and_no_other() {
        let a = vec![0x5a_u8; 4096];
        for byte in 0..4096 {
            let mut b = a.clone();
            b[byte] ^= 1 << (byte % 8);
            // SAFETY: both are 4096 bytes.
            let mask = unsafe { lines_changed(a.as_ptr(), b.as_ptr(), [a.as_ptr(), b.as_ptr()]) };
            assert_eq!(mask, 1 << (byte / LINE), "byte {byte}");
        }
        // SAFETY: as above.
        assert_eq!(unsafe { lines_changed(a.as_ptr(), a.as_ptr(), [a.as_ptr(); 2]) }, 0);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn all_kernels_agree() {
        arch::tests::kernels_agree();
    }
}
