//! Classes of objects: those to which each of a view's security contexts gives the same rights
//! (S2.16). A class opens and closes as one, so that a thread's contexts cost it a change for each
//! class rather than for each object.

use super::layout::ViewSlot;
use crate::error::{Error, SecurityError};
use crate::far::Rights;
use crate::protection::{Domain, Means, Open, ProtectionError};
use crate::security::Grants;
use crate::sys::mmap::Protection;
use indelible_store::Mutant;
use std::sync::Arc;

/// The classes of a view.
pub(super) struct Classes {
    means: Means,
    known: Vec<Known>,
}

struct Known {
    /// The access that each context gives.
    rights: Vec<Protection>,
    domain: Arc<Domain>,
}

/// The class of an object.
pub(super) enum Class {
    /// The view has no classes: its contexts are those of the process.
    Everybody,
    Of(Arc<Domain>),
    /// It cannot be attached, for it has no class.
    None(Error),
}

/// The classes that a thread has open, each with the rights of its contexts.
pub(super) type Opened = Vec<Open>;

impl Classes {
    pub(super) fn new(means: Means) -> Classes {
        Classes { means, known: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// How rights are kept apart: for each thread, or not.
    pub(super) fn means(&self) -> Means {
        self.means
    }

    /// Gives those up that no object has.
    pub(super) fn prune(&mut self) {
        self.known.retain(|known| Arc::strong_count(&known.domain) > 1);
    }

    /// The class of these rights, made if `make`.
    pub(super) fn of(&mut self, rights: &[Protection], make: bool) -> Result<Arc<Domain>, SecurityError> {
        if let Some(known) = self.known.iter().find(|known| known.rights == rights) {
            return Ok(known.domain.clone());
        }
        if !make {
            return Err(SecurityError::NoClass);
        }
        let domain = Domain::new(self.means)?;
        self.known.push(Known { rights: rights.to_vec(), domain: domain.clone() });
        Ok(domain)
    }

    /// Opens to this thread what contexts give together, by their numbers.
    pub(super) fn open(&self, contexts: &[usize]) -> Result<Opened, ProtectionError> {
        self.known.iter().map(|known| known.domain.open(together(&known.rights, contexts))).collect()
    }
}

/// The access that some of the contexts give together.
pub(super) fn together(rights: &[Protection], contexts: &[usize]) -> Protection {
    let given = |number: &usize| rights.get(*number).copied();
    let all = rights.iter().copied().max();
    match Mutant::AllContextsEntered.is_on() {
        true => all.unwrap_or(Protection::None),
        false => contexts.iter().filter_map(given).max().unwrap_or(Protection::None),
    }
}

/// The access that each context gives, of the one that a slot asks for.
pub(super) fn rights(want: &ViewSlot, grants: &Grants) -> Vec<Protection> {
    let given = grants.each_to(&want.target).into_iter().map(|given| given.and(want.rights));
    given.map(access).collect()
}

fn access(rights: Rights) -> Protection {
    match (rights.has(Rights::READ), rights.has(Rights::WRITE)) {
        (false, _) => Protection::None,
        (true, false) => Protection::Read,
        (true, true) => Protection::ReadWrite,
    }
}
