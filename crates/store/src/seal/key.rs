//! Keys: what users have, and what objects have.

use crate::entropy::random;
use crate::error::{Result, SealError};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Bytes of a key file, at least: it is used as it is, and must not be guessed.
const SHORTEST: usize = 32;
/// Bytes of a key file, at most.
const LONGEST: usize = 1 << 20;
/// Most memory in KiB that a slot may ask for: a forged one must not exhaust the machine.
const MOST_MEMORY: u32 = 1 << 20;
/// Most passes and lanes that a slot may ask for.
const MOST_PASSES: u32 = 16;

/// Work that deriving a key from a passphrase takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Memory in KiB.
    pub memory: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl Default for Cost {
    /// 64 MiB and three passes, the second recommendation of RFC 9106, on one lane.
    fn default() -> Self {
        Cost { memory: 64 << 10, passes: 3, lanes: 1 }
    }
}

/// A key as its owner has it. It is overwritten when it is dropped, and no error or debug output shows it.
#[derive(Clone)]
pub struct SealKey {
    pub(super) secret: Zeroizing<Vec<u8>>,
    /// `None`: the contents of a key file.
    pub(super) cost: Option<Cost>,
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.cost.is_some() { "SealKey(passphrase)" } else { "SealKey(key file)" })
    }
}

impl SealKey {
    /// The contents of a key file: 32 random bytes or more.
    ///
    /// # Errors
    /// `BadKey`: too short, or too long.
    pub fn file(contents: Vec<u8>) -> Result<SealKey> {
        let secret = Zeroizing::new(contents);
        if secret.len() < SHORTEST {
            let why = "a key file has at least 32 bytes, which should be random (or use a passphrase)";
            return Err(SealError::BadKey { why }.into());
        }
        if secret.len() > LONGEST {
            return Err(SealError::BadKey { why: "a key file has at most 1 MiB" }.into());
        }
        Ok(SealKey { secret, cost: None })
    }

    /// A passphrase.
    ///
    /// # Errors
    /// `BadKey`: it is empty.
    pub fn passphrase(text: String) -> Result<SealKey> {
        SealKey::passphrase_at(text, Cost::default())
    }

    /// As [`passphrase`](SealKey::passphrase); slots that are made with it ask for so much work. Opening a slot takes what that slot asks for.
    ///
    /// # Errors
    /// `BadKey`: it is empty, or the cost is out of bounds.
    pub fn passphrase_at(text: String, cost: Cost) -> Result<SealKey> {
        let secret = Zeroizing::new(text.into_bytes());
        if secret.is_empty() {
            return Err(SealError::BadKey { why: "the passphrase is empty" }.into());
        }
        check(cost)?;
        Ok(SealKey { secret, cost: Some(cost) })
    }

    /// The key that opens a slot with this salt; `cost` is the slot's.
    pub(super) fn derive(&self, salt: &[u8; 32], cost: Cost) -> Result<Zeroizing<[u8; 32]>> {
        let mut out = Zeroizing::new([0; 32]);
        if self.cost.is_some() {
            let params = check(cost)?;
            let mut memory = Zeroizing::new(Vec::new());
            let why = "there is no memory for its passphrase: it asks for up to 1 GiB";
            memory.try_reserve_exact(params.block_count()).map_err(|_| SealError::BadKey { why })?;
            memory.resize(params.block_count(), Block::default());
            let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
            let failed = |_| SealError::BadKey { why: "Argon2id refuses the passphrase: it is too long" };
            argon
                .hash_password_into_with_memory(&self.secret, salt, &mut *out, &mut *memory)
                .map_err(failed)?;
        } else {
            let digest = Sha256::new().chain_update(b"indelible key file 1").chain_update(salt);
            out.copy_from_slice(&digest.chain_update(&*self.secret).finalize());
        }
        Ok(out)
    }
}

/// Refuses a cost that a damaged slot may ask for.
fn check(cost: Cost) -> Result<Params> {
    let bad = SealError::BadKey {
        why: "the cost of its passphrase is out of bounds: at most 1 GiB, 16 passes and 16 lanes",
    };
    if cost.memory > MOST_MEMORY || cost.passes > MOST_PASSES || cost.lanes > MOST_PASSES {
        return Err(bad.into());
    }
    Params::new(cost.memory, cost.passes, cost.lanes, Some(32)).map_err(|_| bad.into())
}

/// The key of an object, which its pages are encrypted by. It is overwritten when it is dropped.
#[derive(Clone)]
pub struct ObjectKey(pub(super) Zeroizing<[u8; 32]>);

impl std::fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ObjectKey")
    }
}

impl ObjectKey {
    /// A new one.
    pub(super) fn new() -> Result<ObjectKey> {
        Ok(ObjectKey(Zeroizing::new(random()?)))
    }
}
