//! Sealing: authenticated encryption of an object's pages, the tree that says which of them are the
//! newest, and key slots.
//!
//! No medium is known here: the caller reads pages, and writes what comes of it as ordinary lines
//! of the object's batches. So redo, checkpoint, check and repair see ciphertext, and need no key.
//!
//! Invariants:
//! 1. Each seal has a nonce of its own, from the system's random numbers. No nonce is derived from
//!    anything that a crash, a copy or a restore takes back.
//! 2. A page is used once its tag was verified against a seal that was verified itself, up to the
//!    root.
//! 3. Nothing of a signed object is used before its root's signature and the hashes below it were
//!    verified, and nothing is signed that was made of other pages.
//! 4. Plaintext and keys are in memory that is overwritten when it is given up; keys that stay are
//!    in that of `secret` alone, and nothing of them is left on the stack.

mod aead;
mod anchor;
mod blobs;
mod change;
mod cipher;
mod device;
mod differences;
mod hex;
mod identity;
mod key;
mod key_page;
mod resize;
mod rotation;
mod secret;
mod signature;
mod slots;
mod tree;

pub use anchor::{AnchorRecord, Count};
pub use change::Change;
#[cfg(feature = "__engines")]
pub use cipher::choice::{Engine, choose};
pub use device::{SECRET, SecretDevice};
pub use differences::Outline;
pub(crate) use identity::Meant;
pub use key::{Cost, ObjectKey, SealKey};
pub use key_page::{KeyPage, SlotInfo};
pub use rotation::PutPage;
pub(crate) use secret::PlainPage;
pub use secret::{Keeper, KeptBytes, keep_secrets_in};
pub use signature::{SignKey, Signer, VerifyKey};
pub(crate) use tree::broken;
pub use tree::{Opener, Tree};

use crate::format::PAGE;

/// The bytes of a page.
pub type PageBytes = [u8; PAGE as usize];
