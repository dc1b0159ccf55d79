//! Tracking that starts once code that may not mark its stores gets addresses in the object.

use super::Tracked;
use crate::dirty::Rung;
use crate::error::Cause;
use crate::shadow::{Params, Source};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Pool,
    /// Only code that marks its stores has addresses in the object, until
    /// [`Core::find_stores`](crate::object::Core::find_stores).
    Typed,
    By(Rung),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stores {
    Found,
    Marked,
    Wanted,
}

impl Stores {
    /// A service that fills pages must know beforehand whether it protects them.
    pub(super) fn of(finding: Finding, params: &mut Params<'_>) -> Stores {
        match (finding, &params.source, params.rung) {
            (Finding::By(rung), ..) => {
                params.rung = Some(rung);
                Stores::Found
            }
            (Finding::Typed, Source::PrivateFile { .. }, None) => {
                params.rung = Some(Rung::Explicit);
                Stores::Marked
            }
            _ => Stores::Found,
        }
    }
}

impl Tracked {
    pub(in crate::object) fn is_typed(&self) -> bool {
        self.stores == Stores::Marked
    }

    pub(in crate::object) fn find_stores(&mut self) -> Result<(), Cause> {
        if self.stores == Stores::Found {
            return Ok(());
        }
        let late = self.stores == Stores::Wanted;
        self.stores = Stores::Wanted;
        let advice = self.pool.advice();
        let shadow = self.shadow_mut()?;
        shadow.find_stores(Rung::best(), advice)?;
        if let (Some(marks), true) = (shadow.marks(), late) {
            // Stores since the first attempt were not found.
            marks.mark(std::iter::once(0..shadow.len()));
        }
        self.stores = Stores::Found;
        Ok(())
    }

    pub(in crate::object) fn be_ready(&mut self) -> Result<(), Cause> {
        if self.stores == Stores::Wanted { self.find_stores() } else { Ok(()) }
    }

    #[cfg(test)]
    pub(in crate::object) fn want_stores(&mut self) {
        self.stores = Stores::Wanted;
    }
}
