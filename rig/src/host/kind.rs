//! Kinds of machines: kernels and media.

use clap::ValueEnum;
use std::fmt;

/// A kernel of Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kernel {
    /// Bookworm's: stores are tracked by page protection
    #[value(name = "6.1")]
    V6_1,
    /// Its backports': stores are tracked by the kernel
    #[value(name = "6.12")]
    V6_12,
}

/// Medium of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Medium {
    /// A file on ext4, mounted with -o dax, mapped with `MAP_SYNC`
    Fsdax,
    /// The character device
    Devdax,
}

/// A kernel and a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) kernel: Kernel,
    pub(crate) medium: Medium,
}

impl Kernel {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kernel::V6_1 => "6.1",
            Kernel::V6_12 => "6.12",
        }
    }

    /// How stores have to be tracked there, or the rig does not test what it says.
    pub(crate) fn rung(self) -> &'static str {
        match self {
            Kernel::V6_1 => "mprotect",
            Kernel::V6_12 => "wp-async",
        }
    }
}

impl Medium {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Medium::Fsdax => "fsdax",
            Medium::Devdax => "devdax",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kernel.word(), self.medium.word())
    }
}

/// Rules that the writer breaks on request. Each has to be noticed on every kind.
pub(crate) const MUTANTS: [&str; 3] = ["NoWriteBack", "NoFence", "ApplyFirst"];
