//! Memory of keys: overwritten when freed, and kept out of core dumps and swap if the mapping code
//! can.

use super::PageBytes;
use crate::format::PAGE;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use zeroize::{Zeroize, Zeroizing};

/// Least bytes of a key file, which must not be guessed.
pub(super) const SHORTEST: usize = 32;
pub(super) const LONGEST: usize = 1 << 20;

/// Bytes that dropping overwrites.
pub trait KeptBytes: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The bytes, mutable.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// Allocates zeros for a secret; `None`: no such memory.
pub type Keeper = fn(usize) -> Option<Box<dyn KeptBytes>>;

static KEEPER: OnceLock<Keeper> = OnceLock::new();

/// Keeps secrets in this kind of memory instead of the heap. The first call counts.
pub fn keep_secrets_in(keeper: Keeper) {
    let _ = KEEPER.set(keeper);
}

pub(super) struct Secret(Box<dyn KeptBytes>);

struct OnHeap(Zeroizing<Vec<u8>>);

impl KeptBytes for OnHeap {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Secret {
    pub(super) fn zeros(len: usize) -> Secret {
        let kept = KEEPER.get().and_then(|keeper| keeper(len));
        Secret(kept.unwrap_or_else(|| Box::new(OnHeap(Zeroizing::new(vec![0; len])))))
    }

    pub(super) fn take(bytes: &mut [u8]) -> Secret {
        let mut secret = Secret::zeros(bytes.len());
        secret.copy_from_slice(bytes);
        bytes.zeroize();
        secret
    }

    pub(super) fn key(&self) -> &[u8; 32] {
        self.first_chunk().unwrap_or(&[0; 32])
    }
}

impl Deref for Secret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for Secret {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// [`Zeroizing`] would overwrite it byte by byte, in a microsecond.
pub(crate) struct PlainPage(PageBytes);

impl PlainPage {
    pub(crate) fn new() -> PlainPage {
        PlainPage([0; PAGE as usize])
    }
}

impl Deref for PlainPage {
    type Target = PageBytes;

    fn deref(&self) -> &PageBytes {
        &self.0
    }
}

impl DerefMut for PlainPage {
    fn deref_mut(&mut self) -> &mut PageBytes {
        &mut self.0
    }
}

impl Drop for PlainPage {
    fn drop(&mut self) {
        self.0.fill(0);
        std::hint::black_box(&mut self.0);
    }
}

/// Overwrites the stack deeper than a cipher goes.
#[inline(never)]
pub(super) fn scrub_stack() {
    std::hint::black_box(&mut [0_u64; 512]);
}

/// As deep as key derivation.
#[inline(never)]
pub(super) fn scrub_stack_deep() {
    std::hint::black_box(&mut [0_u64; 8192]);
}
