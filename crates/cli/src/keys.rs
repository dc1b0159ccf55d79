//! Keys: from an option, a file, or the environment, in this order.

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::terminal::note;
use clap::Args;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The key of an object that exists.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Keys")]
pub struct KeyArgs {
    /// Key of the object. Other users can see it in the list of processes: prefer a file, or
    /// PMO_KEY
    #[arg(long, value_name = "KEY", conflicts_with = "key_file")]
    key: Option<OsString>,

    /// File that has the key; a line break at its end does not count [env: PMO_KEY has the key
    /// itself]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Further keys of an object to be created.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Keys")]
pub struct RoleKeyArgs {
    /// Key needed to attach for reading; the write key does, too
    #[arg(long, value_name = "KEY", conflicts_with = "read_key_file")]
    read_key: Option<OsString>,

    /// File with the read key [env: PMO_READ_KEY]
    #[arg(long, value_name = "FILE")]
    read_key_file: Option<PathBuf>,

    /// Key needed to attach for writing, to resize, rename and destroy
    #[arg(long, value_name = "KEY", conflicts_with = "write_key_file")]
    write_key: Option<OsString>,

    /// File with the write key [env: PMO_WRITE_KEY]
    #[arg(long, value_name = "FILE")]
    write_key_file: Option<PathBuf>,
}

impl KeyArgs {
    /// Empty: none was given.
    pub fn read(&self) -> Result<Vec<u8>> {
        find(self.key.as_ref(), self.key_file.as_deref(), "PMO_KEY")
    }
}

impl RoleKeyArgs {
    /// (read key, write key); `both` replaces a missing one.
    pub fn read(&self, both: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
        let given = |key: Vec<u8>| if key.is_empty() { both.to_vec() } else { key };
        let read = given(find(self.read_key.as_ref(), self.read_key_file.as_deref(), "PMO_READ_KEY")?);
        let write = given(find(self.write_key.as_ref(), self.write_key_file.as_deref(), "PMO_WRITE_KEY")?);
        if write.is_empty() && !read.is_empty() {
            return Err(Failure::new(
                Exit::Usage,
                "a read key without a write key guards nothing: anybody could attach for writing, and read",
                "give --write-key too, or --key for both",
            ));
        }
        Ok((read, write))
    }
}

fn find(option: Option<&OsString>, file: Option<&Path>, variable: &str) -> Result<Vec<u8>> {
    let (key, from) = match (option, file) {
        (Some(key), _) => (key.clone().into_vec(), "the option"),
        (None, Some(path)) => (from_file(path)?, "the file"),
        (None, None) => return Ok(std::env::var_os(variable).unwrap_or_default().into_vec()),
    };
    if key.is_empty() {
        let message = format!("{from} has an empty key");
        return Err(Failure::new(Exit::Usage, message, "leave the option out if no key is meant"));
    }
    Ok(key)
}

fn from_file(path: &Path) -> Result<Vec<u8>> {
    let mut key = std::fs::read(path).map_err(|error| Failure::file("read the key from", path, &error))?;
    if key.last() == Some(&b'\n') {
        key.pop();
    }
    warn_if_open(path);
    Ok(key)
}

/// Warns if all users can read a secret's file, by its mode and those of its folders.
pub fn warn_if_open(path: &Path) {
    let has = |path: &Path, bit| path.metadata().is_ok_and(|found| found.permissions().mode() & bit != 0);
    let is_open = path.is_file()
        && has(path, 0o004)
        && path.canonicalize().is_ok_and(|path| path.ancestors().skip(1).all(|folder| has(folder, 0o001)));
    if is_open {
        let path = path.display();
        note(&format!("every user of this machine can read the key in {path}: `chmod 600 {path}`"));
    }
}
