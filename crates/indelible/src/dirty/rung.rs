//! The ways to notice stores, from best to last.

use crate::sys::pagemap::Pagemap;
use crate::sys::uffd::Uffd;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rung {
    WpAsync,
    Mprotect,
    Explicit,
}

impl Rung {
    pub(crate) const ALL: [Rung; 3] = [Rung::WpAsync, Rung::Mprotect, Rung::Explicit];

    pub(crate) fn best() -> Rung {
        if Rung::WpAsync.available() { Rung::WpAsync } else { Rung::Mprotect }
    }

    pub(crate) fn available(self) -> bool {
        match self {
            Rung::WpAsync => Uffd::wp_async().is_ok() && Pagemap::supported(),
            Rung::Mprotect | Rung::Explicit => true,
        }
    }

    pub(crate) fn starts_read_only(self) -> bool {
        self == Rung::Mprotect
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::WpAsync => "wp-async",
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
#[error("{0:?} is no way to track stores: use wp-async, mprotect or explicit")]
pub(crate) struct UnknownRung(String);
