//! Classes of objects with the same rights from each of a view's security contexts (S2.16):
//! entering contexts costs a change per class.

use super::layout::ViewSlot;
use crate::error::{Error, SecurityError};
use crate::far::Rights;
use crate::protection::{Domain, Means, Open, ProtectionError};
use crate::security::Grants;
use crate::sys::mmap::Protection;
use indelible_store::Mutant;
use std::sync::Arc;

pub(super) struct Classes {
    means: Means,
    known: Vec<Known>,
}

struct Known {
    rights: Vec<Protection>,
    domain: Arc<Domain>,
}

pub(super) enum Class {
    Everybody,
    Of(Arc<Domain>),
    None(Error),
}

pub(super) type Opened = Vec<Open>;

impl Classes {
    pub(super) fn new(means: Means) -> Classes {
        Classes { means, known: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn means(&self) -> Means {
        self.means
    }

    pub(super) fn prune(&mut self) {
        self.known.retain(|known| Arc::strong_count(&known.domain) > 1);
    }

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

    pub(super) fn open(&self, contexts: &[usize]) -> Result<Opened, ProtectionError> {
        self.known.iter().map(|known| known.domain.open(together(&known.rights, contexts))).collect()
    }
}

pub(super) fn together(rights: &[Protection], contexts: &[usize]) -> Protection {
    let given = |number: &usize| rights.get(*number).copied();
    let all = rights.iter().copied().max();
    match Mutant::AllContextsEntered.is_on() {
        true => all.unwrap_or(Protection::None),
        false => contexts.iter().filter_map(given).max().unwrap_or(Protection::None),
    }
}

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
