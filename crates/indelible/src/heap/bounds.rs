//! The address range that pointers and lengths in an object are checked against.

/// Bytes of an object.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub(crate) base: usize,
    pub(crate) len: usize,
}

impl Bounds {
    pub(crate) const NONE: Bounds = Bounds { base: 0, len: 0 };

    #[inline]
    pub(crate) fn holds(&self, address: u64, count: u64, size: usize, align: usize) -> bool {
        let room = (self.len as u64).saturating_sub(address.wrapping_sub(self.base as u64));
        let Some(bytes) = count.checked_mul(size as u64) else { return false };
        address.is_multiple_of(align as u64) && bytes.wrapping_sub(1) < room
    }
}
