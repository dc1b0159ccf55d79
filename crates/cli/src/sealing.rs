//! Sealed objects: where their keys come from, and attaches with them. A key is never an argument.

use crate::alike;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use clap::Args;
use indelible::{ErrorKind, FileAnchor, Object, Pool, ReadObject, SealKey};
use std::path::{Path, PathBuf};

/// The seal key of an object.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Seal keys")]
pub struct SealArgs {
    /// Key file of a sealed object: 32 random bytes or more, all of which count [env: PMO_SEAL_KEY_FILE]
    #[arg(long, value_name = "FILE", conflicts_with = "seal_passphrase_file")]
    seal_key_file: Option<PathBuf>,

    /// File that has the passphrase of a sealed object; a line break at its end does not count [env: PMO_SEAL_PASSPHRASE_FILE]
    #[arg(long, value_name = "FILE")]
    seal_passphrase_file: Option<PathBuf>,

    #[command(flatten)]
    anchor: AnchorArgs,
}

/// The anchor of a sealed object.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Seal keys")]
pub struct AnchorArgs {
    /// File, out of the pool's way, that keeps the number of the object's newest state: an older one is refused [env: PMO_ANCHOR]
    #[arg(long, value_name = "FILE")]
    anchor: Option<PathBuf>,
}

impl AnchorArgs {
    /// The file, if one is named.
    pub fn path(&self) -> Option<PathBuf> {
        let named = || std::env::var_os("PMO_ANCHOR").filter(|path| !path.is_empty()).map(PathBuf::from);
        self.anchor.clone().or_else(named)
    }

    /// The key with the anchor.
    fn with(&self, key: SealKey) -> SealKey {
        match self.path() {
            Some(path) => key.anchored(FileAnchor::new(path)),
            None => key,
        }
    }
}

impl SealArgs {
    /// The key; `None`: none was given.
    pub fn read(&self) -> Result<Option<SealKey>> {
        Ok(self.read_key()?.map(|key| self.anchor.with(key)))
    }

    fn read_key(&self) -> Result<Option<SealKey>> {
        if self.is_given() {
            return from_files(self.seal_key_file.as_deref(), self.seal_passphrase_file.as_deref());
        }
        let file = |variable| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        let [key, passphrase] = ["PMO_SEAL_KEY_FILE", "PMO_SEAL_PASSPHRASE_FILE"].map(file);
        from_files(key.as_deref(), passphrase.as_deref())
    }

    /// The anchor, if one is named.
    pub fn anchor(&self) -> Option<PathBuf> {
        self.anchor.path()
    }

    /// Whether an option names one.
    pub fn is_given(&self) -> bool {
        self.seal_key_file.is_some() || self.seal_passphrase_file.is_some()
    }

    /// The key, which the command needs.
    pub fn required(&self) -> Result<SealKey> {
        self.read()?.ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                "no seal key is given",
                "give --seal-key-file or --seal-passphrase-file, or name a file in PMO_SEAL_KEY_FILE",
            )
        })
    }
}

/// The key in one of two files, if one is given.
pub fn from_files(key: Option<&Path>, passphrase: Option<&Path>) -> Result<Option<SealKey>> {
    if let Some(path) = key {
        return Ok(Some(SealKey::file(contents(path)?)?));
    }
    let Some(path) = passphrase else { return Ok(None) };
    let mut text = contents(path)?;
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    let text = String::from_utf8(text).map_err(|_| {
        let message = format!("the passphrase in {} is not UTF-8", path.display());
        Failure::new(Exit::Usage, message, "give a file of any bytes as --seal-key-file")
    })?;
    Ok(Some(SealKey::passphrase(text)?))
}

fn contents(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::file("read the seal key from", path, &error))
}

/// Attaches an object for writing, by a seal key if one is given.
pub fn attach(pool: &Pool, name: &str, key: &[u8], seal: Option<&SealKey>) -> indelible::Result<Object> {
    match seal.filter(|_| is_sealed(pool, name)) {
        Some(seal) => pool.attach_sealed(name, key, seal),
        None => pool.attach_with_key(name, key),
    }
}

/// Attaches a sealed object for reading, or what its last psync left if a process writes it. `None`: it is not sealed.
pub fn attach_read(pool: &Pool, name: &str, key: &[u8], args: &SealArgs) -> Result<Option<ReadObject>> {
    match args.read()?.filter(|_| is_sealed(pool, name)) {
        None => Ok(None),
        Some(seal) => {
            let attached = match pool.attach_read_sealed(name, key, &seal) {
                Err(held) if held.kind() == ErrorKind::Held => {
                    pool.attach_snapshot_sealed_anywhere(name, key, &seal)
                }
                attached => attached,
            };
            attached.map(Some).map_err(|error| alike::explain(pool, name, error))
        }
    }
}

/// A key that the environment names is for the objects that are sealed.
fn is_sealed(pool: &Pool, name: &str) -> bool {
    pool.stat(name).is_ok_and(|stat| stat.sealed)
}
