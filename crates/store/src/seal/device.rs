//! Devices that keep secrets, such as a TPM.

use zeroize::Zeroizing;

/// Bytes of a secret.
pub const SECRET: usize = 32;

/// Turns secrets into blobs that only this device can open. Errors are texts with device and
/// reason.
pub trait SecretDevice: Send + Sync {
    /// Seals a secret into a blob.
    ///
    /// # Errors
    /// The device's.
    fn seal(&self, secret: &[u8; SECRET]) -> Result<Vec<u8>, String>;

    /// The secret in a blob.
    ///
    /// # Errors
    /// The device's; the blob is another device's.
    fn unseal(&self, blob: &[u8]) -> Result<Zeroizing<[u8; SECRET]>, String>;
}
