//! A thread's rights to all classes of pages as one word: two bits each, as in the register `PKRU`.

use crate::sys::mmap::Protection;

pub(super) const MOST: usize = 15;

/// No access to any class, as the kernel sets it for handlers.
pub(super) const CLOSED: u32 = 0x5555_5554;

const NO_ACCESS: u32 = 1;
const NO_STORES: u32 = 2;

#[inline]
pub(super) fn mask(index: usize) -> u32 {
    debug_assert!((1..=MOST).contains(&index));
    3 << (2 * index)
}

#[inline]
pub(super) fn of(word: u32, index: usize) -> Protection {
    match word >> (2 * index) & 3 {
        0 => Protection::ReadWrite,
        NO_STORES => Protection::Read,
        _ => Protection::None,
    }
}

#[inline]
pub(super) fn with(word: u32, index: usize, right: Protection) -> u32 {
    let bits = match right {
        Protection::None => NO_ACCESS,
        Protection::Read => NO_STORES,
        Protection::ReadWrite => 0,
    };
    word & !mask(index) | bits << (2 * index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_changes_no_other() {
        let all = [Protection::None, Protection::Read, Protection::ReadWrite];
        for index in 1..=MOST {
            assert_eq!(of(CLOSED, index), Protection::None);
            for right in all {
                let word = with(CLOSED, index, right);
                for other in 1..=MOST {
                    assert_eq!(of(word, other), if other == index { right } else { Protection::None });
                }
                assert_eq!((word ^ CLOSED) & !mask(index), 0);
                assert_eq!(with(word, index, Protection::None), CLOSED);
            }
        }
        assert_eq!(of(CLOSED, 0), Protection::ReadWrite);
    }
}
