//! Kinds of machines: kernels and media.

use clap::ValueEnum;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kernel {
    /// Bookworm's: stores are tracked by page protection
    #[value(name = "6.1")]
    V6_1,
    /// Its backports': stores are tracked by the kernel
    #[value(name = "6.12")]
    V6_12,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Medium {
    /// A file on ext4, mounted with -o dax, mapped with `MAP_SYNC`
    Fsdax,
    Devdax,
}

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

    /// The expected tracking; with another one the rig would test something else.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Steps,
    OnDemand,
}

impl Program {
    pub(crate) fn layer(self) -> &'static str {
        match self {
            Program::Steps => "power-cut",
            Program::OnDemand => "power-guard",
        }
    }

    pub(crate) fn cycles(self) -> (u64, u64) {
        match self {
            Program::Steps => (12, 250),
            Program::OnDemand => (1, 40),
        }
    }

    pub(crate) fn loads(self) -> &'static [Option<Load>] {
        match self {
            Program::Steps => &[None],
            Program::OnDemand => &[Some(Load::Busy), Some(Load::Idle), Some(Load::Alone)],
        }
    }

    /// Rules that a writer breaks on request, with its load. Each must be noticed on every kind.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// They go on, with a guard.
    Busy,
    /// They have ended their volatile transactions, with a guard.
    Idle,
    /// They go on, without a guard.
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
