//! The object that was sealed, and the one that a caller means: two objects of the same keys that
//! were exchanged are told apart.
//!
//! The root of an object authenticates its ID and its name. Neither the table nor the place of an
//! extent is authentic: both are compared with the root.

use crate::error::{Result, SealError};
use crate::format::entry::Entry;
use crate::format::seal::Identity;
use crate::mutant::Mutant;
use sha2::{Digest, Sha256};

/// Beginning of the text that is hashed of a name.
const NAME: &[u8] = b"indelible name 1";

impl Identity {
    /// That of an object with an ID and a name.
    #[must_use]
    pub fn of(id: [u8; 16], name: &str) -> Identity {
        let name = hash(name);
        Identity { id, name, other: name }
    }

    /// The same, to which another name leads as well.
    #[must_use]
    pub(crate) fn or_named(self, other: &str) -> Identity {
        Identity { other: hash(other), ..self }
    }

    /// Whether a rename that gives it another name was begun and not ended.
    #[must_use]
    pub(crate) fn has_two_names(&self) -> bool {
        self.name != self.other
    }

    /// Whether its object is the one that the table has.
    #[must_use]
    pub(crate) fn is_of(&self, found: &Entry) -> bool {
        self.id == found.id && self.is_named(&hash(&found.name()))
    }

    fn is_named(&self, name: &[u8; 24]) -> bool {
        [self.name, self.other].contains(name)
    }
}

fn hash(name: &str) -> [u8; 24] {
    let (mut out, hash) = ([0; 24], Sha256::new().chain_update(NAME).chain_update(name).finalize());
    out.copy_from_slice(&hash[..24]);
    out
}

/// The object that a caller means.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Meant {
    /// The one of the name that is asked for. An object of an earlier release, whose root says
    /// nothing of it, is taken for that.
    #[default]
    Found,
    /// The one that was sealed under the name with this hash, or a copy of it.
    SealedAs([u8; 24]),
    /// Any one.
    Any,
}

impl Meant {
    pub(super) fn sealed_as(name: &str) -> Meant {
        Meant::SealedAs(hash(name))
    }

    /// Whether it says a name.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Meant::SealedAs(_))
    }

    /// Refuses an object whose root has another identity than the one that is meant. `found`: the
    /// object that was asked for, as the table has it.
    pub(crate) fn judge(self, sealed: Option<&Identity>, found: &Entry) -> Result<()> {
        let is_meant = match (self, sealed) {
            (Meant::Any, _) | (Meant::Found, None) => true,
            (Meant::SealedAs(_), None) => return Err(SealError::NoIdentity.into()),
            (Meant::Found, Some(sealed)) => sealed.is_of(found),
            (Meant::SealedAs(name), Some(sealed)) => sealed.is_named(&name),
        };
        if is_meant || Mutant::IdentityUnchecked.is_on() {
            Ok(())
        } else {
            Err(SealError::AnotherIdentity.into())
        }
    }
}
