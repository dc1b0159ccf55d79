//! Sixteen control bytes of a hash table at once.
//!
//! A control byte is 0xff for a slot never used since the table was made, 0x80 for a removed key,
//! and otherwise the seven highest bits of the key's hash.

#![allow(unsafe_code)]

pub(super) use crate::types::{EMPTY, GROUP, REMOVED};

#[inline]
pub(super) const fn tag(hash: u64) -> u8 {
    (hash >> 57) as u8
}

#[derive(Clone, Copy)]
pub(super) struct Slots(u16);

impl Slots {
    pub(super) const fn none() -> Slots {
        Slots(0)
    }

    #[inline]
    pub(super) const fn any(self) -> bool {
        self.0 != 0
    }
}

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let first = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(first)
    }
}

pub(super) struct Probe {
    pub(super) at: usize,
    mask: usize,
    step: usize,
}

impl Probe {
    #[inline]
    pub(super) fn new(hash: u64, slots: u64) -> Probe {
        let mask = slots as usize - GROUP;
        Probe { at: hash as usize & mask, mask, step: 0 }
    }

    #[inline]
    pub(super) fn next(&mut self) -> bool {
        self.step += GROUP;
        self.at = (self.at + self.step) & self.mask;
        self.step <= self.mask
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use sse2::Group;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::{EMPTY, GROUP, Slots};
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_set1_epi8};

    #[derive(Clone, Copy)]
    pub(in super::super) struct Group(__m128i);

    impl Group {
        /// # Safety
        /// Sixteen bytes, at a multiple of 16.
        #[inline]
        pub(in super::super) unsafe fn load(at: *const u8) -> Group {
            debug_assert!(at.addr().is_multiple_of(GROUP));
            // SAFETY: the caller's promise; every x86-64 has SSE2.
            Group(unsafe { _mm_load_si128(at.cast()) })
        }

        #[inline]
        pub(in super::super) fn matches(self, tag: u8) -> Slots {
            // SAFETY: every x86-64 has SSE2.
            Slots(unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_set1_epi8(tag as i8))) } as u16)
        }

        #[inline]
        pub(in super::super) fn empty(self) -> Slots {
            self.matches(EMPTY)
        }

        #[inline]
        pub(in super::super) fn full(self) -> Slots {
            Slots(!self.free().0)
        }

        #[inline]
        pub(in super::super) fn free(self) -> Slots {
            // SAFETY: every x86-64 has SSE2.
            Slots(unsafe { _mm_movemask_epi8(self.0) } as u16)
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) use portable::Group;

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::{EMPTY, GROUP, Slots};

    #[derive(Clone, Copy)]
    pub(in super::super) struct Group([u8; GROUP]);

    impl Group {
        /// # Safety
        /// Sixteen bytes, at a multiple of 16.
        #[inline]
        pub(in super::super) unsafe fn load(at: *const u8) -> Group {
            // SAFETY: the caller's promise.
            Group(unsafe { at.cast::<[u8; GROUP]>().read() })
        }

        #[inline]
        fn which(self, wanted: impl Fn(u8) -> bool) -> Slots {
            let bit = |(index, byte): (usize, &u8)| u16::from(wanted(*byte)) << index;
            Slots(self.0.iter().enumerate().map(bit).sum())
        }

        #[inline]
        pub(in super::super) fn matches(self, tag: u8) -> Slots {
            self.which(|byte| byte == tag)
        }

        #[inline]
        pub(in super::super) fn empty(self) -> Slots {
            self.matches(EMPTY)
        }

        #[inline]
        pub(in super::super) fn full(self) -> Slots {
            self.which(|byte| byte < 0x80)
        }

        #[inline]
        pub(in super::super) fn free(self) -> Slots {
            self.which(|byte| byte >= 0x80)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Bytes([u8; GROUP]);

    #[test]
    fn groups_are_the_same_on_every_machine() {
        let mut byte = 1_u8;
        for _ in 0..1000 {
            let bytes = Bytes(std::array::from_fn(|_| {
                byte = byte.wrapping_mul(137).wrapping_add(91);
                match byte % 5 {
                    0 => EMPTY,
                    1 => REMOVED,
                    _ => byte & 0x7f,
                }
            }));
            // SAFETY: sixteen aligned bytes.
            let (group, portable) =
                unsafe { (Group::load(bytes.0.as_ptr()), portable::Group::load(bytes.0.as_ptr())) };
            let all = |slots: Slots| slots.collect::<Vec<_>>();
            let which = |wanted: &dyn Fn(u8) -> bool| -> Vec<usize> {
                (0..GROUP).filter(|index| wanted(bytes.0[*index])).collect()
            };
            for (one, other, right) in [
                (group.full(), portable.full(), which(&|byte| byte < 0x80)),
                (group.free(), portable.free(), which(&|byte| byte >= 0x80)),
                (group.empty(), portable.empty(), which(&|byte| byte == EMPTY)),
                (group.matches(0x15), portable.matches(0x15), which(&|byte| byte == 0x15)),
            ] {
                assert_eq!((all(one), all(other)), (right.clone(), right));
            }
        }
    }
}
