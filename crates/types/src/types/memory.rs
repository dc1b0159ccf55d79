//! The bytes that a walk goes through, by their addresses.

#[derive(Clone, Copy, Debug)]
pub struct Memory<'m> {
    pub base: u64,
    pub bytes: &'m [u8],
}

impl<'m> Memory<'m> {
    pub fn of(bytes: &'m [u8]) -> Memory<'m> {
        Memory { base: bytes.as_ptr().addr() as u64, bytes }
    }

    #[inline]
    pub fn get(&self, address: u64, len: u64) -> Option<&'m [u8]> {
        let start = address.checked_sub(self.base)?;
        let end = start.checked_add(len)?;
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    pub(super) fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let bytes = self.get(address, 8 * N as u64)?;
        let word = |index: usize| bytes[8 * index..8 * index + 8].try_into().map_or(0, u64::from_le_bytes);
        Some(std::array::from_fn(word))
    }

    /// `len` > 0.
    #[inline]
    pub(super) fn holds(&self, address: u64, len: u64, align: u64) -> bool {
        len > 0 && address.is_multiple_of(align) && self.get(address, len).is_some()
    }
}
