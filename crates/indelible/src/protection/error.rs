use std::io;

use super::rights::MOST;
use crate::sys::pkey::Lack;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtectionError {
    #[error(
        "no protection key is left for one more class of objects: a process has {MOST} at most, this library has \
         {ours} of them and the program has the others; close what is not needed, or put objects into one class"
    )]
    NoKeys { ours: u32 },
    #[error("there are no protection keys: {}", .0.why())]
    Lacking(Lack),
    #[error("the objects were attached before a fork, in the parent process; attach them here")]
    Forked,
    #[error("cannot open the pages of a domain: {0}")]
    Open(io::Error),
    #[error("cannot change the protection of {len} bytes at {addr:#x}: {source}")]
    Io { addr: usize, len: usize, source: io::Error },
    #[error("cannot make a domain of protected pages: {0}")]
    Refused(io::Error),
}
