//! Sealing: encrypted pages, the tree of their seals, and key slots.
//!
//! The caller reads pages and logs the results, so that the store sees only ciphertext.
//!
//! Invariants:
//! 1. Each seal has its own nonce from the system's random numbers; no nonce is derived from
//!    anything that a crash, a copy or a restore takes back.
//! 2. A page is used only after its tag was verified against a verified seal, up to the root.
//! 3. Nothing of a signed object is used before its root's signature and the hashes below it were
//!    verified, and nothing made of other pages is signed.
//! 4. Plaintext and keys are in memory that is overwritten when freed; lasting keys are in that of
//!    `secret` alone, and nothing of them stays on the stack.

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

/// A page.
pub type PageBytes = [u8; PAGE as usize];
