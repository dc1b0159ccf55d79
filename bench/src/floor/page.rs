#![allow(unsafe_code)]

const PAGE: usize = 4096;
const LINE: usize = 64;

pub struct PageFloor {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl PageFloor {
    /// `None`: the processor lacks `clwb`.
    pub fn new(pages: usize) -> Option<Self> {
        let bytes = || vec![1; (pages + 1) * PAGE];
        has_write_back().then(|| PageFloor { from: bytes(), to: bytes() })
    }

    pub fn copy(&mut self, page: usize) {
        let range = page * PAGE..(page + 1) * PAGE;
        let (from, to) = (&self.from[range.clone()], &mut self.to[range]);
        for (from, to) in from.chunks(LINE).zip(to.chunks_mut(LINE)) {
            to.copy_from_slice(from);
            write_back(to);
        }
        fence();
    }
}

#[cfg(target_arch = "x86_64")]
fn has_write_back() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // Older compilers declare these unsafe.
    #[allow(unused_unsafe)]
    // SAFETY: `cpuid` exists on x86-64 and only reads.
    unsafe {
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & 1 << 24 != 0
    }
}

#[cfg(target_arch = "x86_64")]
fn write_back(line: &mut [u8]) {
    // SAFETY: `PageFloor::new` has asked for the instruction; the line is mapped.
    unsafe { std::arch::asm!("clwb [{}]", in(reg) line.as_mut_ptr(), options(nostack, preserves_flags)) }
}

#[cfg(target_arch = "x86_64")]
fn fence() {
    // Older compilers declare it unsafe.
    #[allow(unused_unsafe)]
    // SAFETY: part of the x86-64 baseline.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn has_write_back() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn write_back(_line: &mut [u8]) {}

#[cfg(not(target_arch = "x86_64"))]
fn fence() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_arrive_whole() {
        let Some(mut floor) = PageFloor::new(3) else { return };
        floor.from[PAGE..2 * PAGE].fill(7);
        floor.copy(1);
        assert!(floor.to[PAGE..2 * PAGE].iter().all(|byte| *byte == 7));
        assert!(floor.to[..PAGE].iter().chain(&floor.to[2 * PAGE..]).all(|byte| *byte == 1));
    }
}
