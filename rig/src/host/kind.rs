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

    /// The way in which stores must be tracked there, or the rig does not test its subject.
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

/// A program that the machines run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Psyncs, step by step.
    Steps,
    /// Transactions on demand, with a guard and without.
    OnDemand,
}

impl Program {
    /// Name of its campaigns.
    pub(crate) fn layer(self) -> &'static str {
        match self {
            Program::Steps => "power-cut",
            Program::OnDemand => "power-guard",
        }
    }

    /// Cuts of each kind, and with each load, in CI and in a campaign.
    pub(crate) fn cycles(self) -> (u64, u64) {
        match self {
            Program::Steps => (12, 250),
            Program::OnDemand => (1, 40),
        }
    }

    /// Loads of the sound writers.
    pub(crate) fn loads(self) -> &'static [Option<Load>] {
        match self {
            Program::Steps => &[None],
            Program::OnDemand => &[Some(Load::Busy), Some(Load::Idle), Some(Load::Alone)],
        }
    }

    /// Rules that a writer breaks on request, and its load meanwhile. Each must be noticed on every
    /// kind.
    pub(crate) fn mutants(self) -> &'static [(&'static str, Option<Load>)] {
        match self {
            Program::Steps => &[("NoWriteBack", None), ("NoFence", None), ("ApplyFirst", None)],
            // Busy writers publish by themselves once they have no budget.
            Program::OnDemand => {
                &[("AcknowledgedUnflushed", Some(Load::Idle)), ("NoWriteBack", Some(Load::Busy))]
            }
        }
    }
}

/// The doings of writers on demand when their power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// They go on; the guard is told.
    Busy,
    /// They have ended their transactions, and not made them durable; the guard is told.
    Idle,
    /// They go on, and there is no guard.
    Alone,
}

impl Load {
    pub(crate) const ALL: [Load; 3] = [Load::Busy, Load::Idle, Load::Alone];
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Load::Busy => "with a guard, busy",
            Load::Idle => "with a guard, idle",
            Load::Alone => "without a guard",
        })
    }
}
