use super::device::{SECRET, SecretDevice};
use super::identity::Meant;
use super::secret::{LONGEST, SHORTEST, Secret, scrub_stack_deep};
use super::signature::{SignKey, Signer, VerifyKey};
use crate::entropy::random;
use crate::error::{Result, SealError};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

const MOST_MEMORY: u32 = 1 << 20;
const MOST_PASSES: u32 = 16;
/// KiB that a slot, perhaps forged, may demand unless the key allows more.
const FREE_MEMORY: u32 = 256 << 10;
/// KiB times passes that it may demand: five times the default, within two seconds.
const FREE_WORK: u64 = 1 << 20;

const TOO_COSTLY: &str = "a key slot asks for more than 256 MiB of memory, or more than five times the usual work, for its passphrase: \
    give that cost with the passphrase if the slot is yours";

/// Cost of deriving a key from a passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Memory in KiB.
    pub memory: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl Cost {
    fn is_within(self, own: Cost) -> bool {
        let work = |cost: Cost| u64::from(cost.memory) * u64::from(cost.passes);
        self.memory <= FREE_MEMORY.max(own.memory) && work(self) <= FREE_WORK.max(work(own))
    }
}

impl Default for Cost {
    /// The second recommendation of RFC 9106, on one lane.
    fn default() -> Self {
        Cost { memory: 64 << 10, passes: 3, lanes: 1 }
    }
}

/// An owner's key. Dropping it overwrites it, and no error or debug output shows it.
#[derive(Clone)]
pub struct SealKey {
    pub(super) owned: Owned,
    /// Expiry of slots made with it, in seconds since 1970; 0: never.
    pub(super) expires: u64,
    pub(super) signer: Option<Signer>,
    pub(super) meant: Meant,
    pub(super) erasable: bool,
}

#[derive(Clone)]
pub(super) enum Owned {
    File(Arc<Secret>),
    Passphrase(Arc<Secret>, Cost),
    Device(Arc<dyn SecretDevice>),
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.owned {
            Owned::File(_) => "SealKey(key file)",
            Owned::Passphrase(..) => "SealKey(passphrase)",
            Owned::Device(_) => "SealKey(TPM)",
        })
    }
}

impl SealKey {
    fn of(owned: Owned) -> SealKey {
        SealKey { owned, expires: 0, signer: None, meant: Meant::default(), erasable: false }
    }

    /// Sets the expiry of slots made with it, in seconds since 1970: a guard rail that other
    /// software can ignore.
    #[must_use]
    pub fn until(self, seconds: u64) -> SealKey {
        SealKey { expires: seconds.max(1), ..self }
    }

    /// A new object by this key is erasable: it has this one key slot, and another only by
    /// [`Writer::renew`](crate::store::Writer::renew).
    ///
    /// # Errors
    /// `BadKey`: it is no key file.
    pub fn erasable(self) -> Result<SealKey> {
        match self.owned {
            Owned::File(_) => Ok(SealKey { erasable: true, ..self }),
            _ => {
                Err(SealError::BadKey { why: "an erasable object has a key file, which can be destroyed" }
                    .into())
            }
        }
    }

    /// Adds the object's sign key: holders of the seal key alone read, and cannot forge.
    ///
    /// # Errors
    /// `BadKey`: it is the seal key.
    pub fn signed_by(self, key: &SignKey) -> Result<SealKey> {
        let same = matches!(&self.owned, Owned::File(secret) if SignKey::of(secret).verify_key() == key.verify_key());
        if same {
            let why = "its sign key is the seal key: all who read the object could sign it";
            return Err(SealError::BadKey { why }.into());
        }
        Ok(SealKey { signer: Some(key.clone().into()), ..self })
    }

    /// Adds the verify key: objects without a signature of it are refused.
    #[must_use]
    pub fn verified_by(self, key: VerifyKey) -> SealKey {
        SealKey { signer: Some(key.into()), ..self }
    }

    /// Expects an object sealed under `name`, or a copy or snapshot of it. Refuses roots without a
    /// name, of earlier releases.
    #[must_use]
    pub fn sealed_as(self, name: &str) -> SealKey {
        SealKey { meant: Meant::sealed_as(name), ..self }
    }

    /// Accepts an object of any name and ID: exchanged objects go unnoticed.
    #[must_use]
    pub fn of_any_name(self) -> SealKey {
        SealKey { meant: Meant::Any, ..self }
    }

    /// Whether it includes a sign key.
    #[must_use]
    pub fn signs(&self) -> bool {
        self.signer.as_ref().is_some_and(Signer::signs)
    }

    pub(crate) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    pub(crate) fn meant(&self) -> Meant {
        self.meant
    }

    /// A key file's contents: at least 32 random bytes.
    ///
    /// # Errors
    /// `BadKey`: too short, or too long.
    pub fn file(contents: Vec<u8>) -> Result<SealKey> {
        let mut secret = Zeroizing::new(contents);
        if secret.len() < SHORTEST {
            let why = "a key file has at least 32 bytes, which should be random (or use a passphrase)";
            return Err(SealError::BadKey { why }.into());
        }
        if secret.len() > LONGEST {
            return Err(SealError::BadKey { why: "a key file has at most 1 MiB" }.into());
        }
        Ok(SealKey::of(Owned::File(Arc::new(Secret::take(&mut secret)))))
    }

    /// A passphrase.
    ///
    /// # Errors
    /// `BadKey`: it is empty.
    pub fn passphrase(text: String) -> Result<SealKey> {
        let mut secret = Zeroizing::new(text.into_bytes());
        if secret.is_empty() {
            return Err(SealError::BadKey { why: "the passphrase is empty" }.into());
        }
        Ok(SealKey::of(Owned::Passphrase(Arc::new(Secret::take(&mut secret)), Cost::default())))
    }

    /// Sets the cost of slots made with it. Opening accepts 256 MiB and five times the default's
    /// work, or `cost` if that is more.
    ///
    /// # Errors
    /// `BadKey`: not a passphrase, or the cost is out of bounds.
    pub fn costing(self, cost: Cost) -> Result<SealKey> {
        check(cost)?;
        match self.owned {
            Owned::Passphrase(secret, _) => Ok(SealKey { owned: Owned::Passphrase(secret, cost), ..self }),
            _ => Err(SealError::BadKey { why: "a cost is given with a key that is no passphrase" }.into()),
        }
    }

    /// A device, which opens slots made with it.
    #[must_use]
    pub fn device(device: Arc<dyn SecretDevice>) -> SealKey {
        SealKey::of(Owned::Device(device))
    }

    pub(super) fn derive(&self, salt: &[u8; 32], cost: Cost, blob: &[u8]) -> Result<Secret> {
        let derived = match &self.owned {
            Owned::File(secret) => Ok(digest(b"indelible key file 1", salt, secret)),
            Owned::Passphrase(secret, own) if cost.is_within(*own) => stretch(secret, salt, cost),
            Owned::Passphrase(..) => Err(SealError::BadKey { why: TOO_COSTLY }.into()),
            Owned::Device(device) => {
                let failed = |what| SealError::Device { what }.into();
                let secret = device.unseal(blob).map_err(failed);
                secret.map(|secret| digest(b"indelible device 1", salt, &secret[..]))
            }
        };
        scrub_stack_deep();
        derived
    }

    /// Empty unless the key is a device.
    pub(super) fn new_blob(&self) -> Result<Vec<u8>> {
        let Owned::Device(device) = &self.owned else { return Ok(Vec::new()) };
        let secret = Zeroizing::new(random::<SECRET>()?);
        let failed = |what| SealError::Device { what };
        let blob = device.seal(&secret).map_err(failed)?;
        // A damaged blob opens nothing.
        match device.unseal(&blob).map_err(failed)? == secret {
            true => Ok(blob),
            false => {
                Err(failed("the device does not give back the secret that it was given".to_owned()).into())
            }
        }
    }
}

fn digest(role: &[u8], salt: &[u8; 32], secret: &[u8]) -> Secret {
    let mut digest = Sha256::new().chain_update(role).chain_update(salt).chain_update(secret).finalize();
    Secret::take(&mut digest)
}

fn stretch(passphrase: &[u8], salt: &[u8; 32], cost: Cost) -> Result<Secret> {
    let params = check(cost)?;
    let mut memory = Zeroizing::new(Vec::new());
    let why = "there is no memory for its passphrase: it asks for up to 1 GiB";
    memory.try_reserve_exact(params.block_count()).map_err(|_| SealError::BadKey { why })?;
    memory.resize(params.block_count(), Block::default());
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let failed = |_| SealError::BadKey { why: "Argon2id refuses the passphrase: it is too long" };
    let mut out = Secret::zeros(32);
    argon.hash_password_into_with_memory(passphrase, salt, &mut out, &mut *memory).map_err(failed)?;
    Ok(out)
}

fn check(cost: Cost) -> Result<Params> {
    let bad = SealError::BadKey {
        why: "the cost of its passphrase is out of bounds: at most 1 GiB, 16 passes and 16 lanes",
    };
    if cost.memory > MOST_MEMORY || cost.passes > MOST_PASSES || cost.lanes > MOST_PASSES {
        return Err(bad.into());
    }
    Params::new(cost.memory, cost.passes, cost.lanes, Some(32)).map_err(|_| bad.into())
}

/// The key of an object's pages, overwritten when dropped.
#[derive(Clone)]
pub struct ObjectKey(pub(super) Arc<Secret>);

impl std::fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ObjectKey")
    }
}

impl ObjectKey {
    pub(super) fn new() -> Result<ObjectKey> {
        let mut key = random::<32>()?;
        let kept = Secret::take(&mut key);
        key.zeroize();
        scrub_stack_deep();
        Ok(ObjectKey(Arc::new(kept)))
    }
}
