//! The ways to notice stores, from best to last.

use crate::sys::fault_ring;
use crate::sys::pagemap::Pagemap;
use crate::sys::uffd::Uffd;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rung {
    WpAsync,
    /// As `WpAsync`, and the kernel's log of page faults names pages.
    FaultLog,
    Mprotect,
    Explicit,
}

impl Rung {
    pub(crate) const ALL: [Rung; 4] = [Rung::WpAsync, Rung::FaultLog, Rung::Mprotect, Rung::Explicit];

    pub(crate) fn best() -> Rung {
        if Rung::WpAsync.available() { Rung::WpAsync } else { Rung::Mprotect }
    }

    pub(crate) fn available(self) -> bool {
        match self {
            Rung::WpAsync => Uffd::wp_async().is_ok() && Pagemap::supported(),
            Rung::FaultLog => Rung::WpAsync.available() && fault_ring::seen().is_ok(),
            Rung::Mprotect | Rung::Explicit => true,
        }
    }

    pub(crate) fn is_wp_async(self) -> bool {
        matches!(self, Rung::WpAsync | Rung::FaultLog)
    }

    pub(crate) fn starts_read_only(self) -> bool {
        self == Rung::Mprotect
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::WpAsync => "wp-async",
            Rung::FaultLog => "fault-log",
            Rung::Mprotect => "mprotect",
            Rung::Explicit => "explicit",
        })
    }
}

impl FromStr for Rung {
    type Err = UnknownRung;

    fn from_str(text: &str) -> Result<Rung, UnknownRung> {
        Rung::ALL.into_iter().find(|rung| rung.to_string() == text).ok_or_else(|| UnknownRung(text.into()))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("unknown tracking mode {0:?}: use wp-async, fault-log, mprotect or explicit")]
pub(crate) struct UnknownRung(String);
