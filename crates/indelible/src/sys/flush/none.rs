//! Unknown architectures: files work, persistent memory is refused.

use super::LINE;

pub(super) fn available() -> bool {
    false
}

pub(super) fn instructions() -> &'static [&'static str] {
    &[]
}

pub(super) fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

pub(super) fn hand_over() {}

pub(super) fn fetch_line(_at: *const u8) {}

/// # Safety
/// See `flush::copy`.
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    if cfg!(miri) {
        // SAFETY: the caller's promise; under Miri no other process maps the memory, and single
        // bytes are slow.
        return unsafe { dst.copy_from_nonoverlapping(src, len) };
    }
    for at in 0..len {
        // SAFETY: the caller's promise; volatile, because other processes may map the memory.
        unsafe { dst.add(at).write_volatile(src.add(at).read_volatile()) };
    }
}

/// # Safety
/// Both ranges of `lines` lines are valid.
pub(super) unsafe fn stream_lines(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy(dst, src, lines * LINE) }
}

/// # Safety
/// None: nothing is done.
pub(super) unsafe fn write_back_lines(_start: *const u8, _lines: usize) {}

/// # Safety
/// See `flush::lines_changed`.
pub(super) unsafe fn lines_changed(a: *const u8, b: *const u8, _ahead: [*const u8; 2]) -> u64 {
    if cfg!(miri) {
        // SAFETY: both pages; as for `copy`.
        let line = |page: *const u8, at: usize| unsafe { page.add(at * LINE).cast::<[u8; LINE]>().read() };
        return (0..64).fold(0, |mask, at| mask | u64::from(line(a, at) != line(b, at)) << at);
    }
    (0..4096).fold(0, |mask, at| {
        // SAFETY: within the page; volatile, because other processes may map the memory.
        let differs = unsafe { a.add(at).read_volatile() != b.add(at).read_volatile() };
        mask | u64::from(differs) << (at / LINE)
    })
}
