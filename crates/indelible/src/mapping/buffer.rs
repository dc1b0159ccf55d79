//! Memory for plaintext in transit.

#![allow(unsafe_code)]

use super::{Mapping, MappingError};
use crate::sys::PAGE;
use crate::sys::mmap::Protection;

#[derive(Debug)]
pub(crate) struct SecretBuffer(Mapping);

impl SecretBuffer {
    pub(crate) fn new(pages: usize) -> Result<SecretBuffer, MappingError> {
        let len = pages * PAGE;
        let mut mapping = Mapping::anonymous(None, len, Protection::ReadWrite)?;
        let addr = mapping.addr();
        mapping.keep_secret().map_err(|source| MappingError::Io { addr, len, source })?;
        Ok(SecretBuffer(mapping))
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped readable and writable until drop (1 of `Mapping`), and its address is
        // private.
        unsafe { std::slice::from_raw_parts_mut(self.0.base().as_ptr(), self.0.len()) }
    }
}
