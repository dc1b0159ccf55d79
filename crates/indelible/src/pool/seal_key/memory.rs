//! Secrets of the store in memory that is neither dumped nor swapped.

use crate::sys::secret::SecretPages;
use indelible_store::seal::KeptBytes;

pub(super) fn keep(len: usize) -> Option<Box<dyn KeptBytes>> {
    Some(Box::new(SecretPages::new(len)?))
}

impl KeptBytes for SecretPages {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}
