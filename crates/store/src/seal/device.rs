//! Devices that keep secrets: a TPM.

use zeroize::Zeroizing;

/// Bytes of a secret.
pub const SECRET: usize = 32;

/// Makes blobs of secrets, of which no other device makes the secret again. Errors are texts that
/// name the device and the reason.
pub trait SecretDevice: Send + Sync {
    /// Makes a blob.
    ///
    /// # Errors
    /// The device's.
    fn seal(&self, secret: &[u8; SECRET]) -> Result<Vec<u8>, String>;

    /// Gives the secret of a blob.
    ///
    /// # Errors
    /// The device's; the blob is another one's.
    fn unseal(&self, blob: &[u8]) -> Result<Zeroizing<[u8; SECRET]>, String>;
}
