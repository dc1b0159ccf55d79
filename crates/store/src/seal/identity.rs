//! Identities of sealed objects, which tell exchanged objects of the same keys apart.
//!
//! The root authenticates the object's ID and name, because neither the table nor an extent's place
//! is authentic.

use crate::error::{Result, SealError};
use crate::format::entry::Entry;
use crate::format::seal::Identity;
use crate::mutant::Mutant;
use sha2::{Digest, Sha256};

const NAME: &[u8] = b"indelible name 1";

impl Identity {
    /// Identity of an object with this ID and name.
    #[must_use]
    pub fn of(id: [u8; 16], name: &str) -> Identity {
        let name = hash(name);
        Identity { id, name, other: name }
    }

    #[must_use]
    pub(crate) fn or_named(self, other: &str) -> Identity {
        Identity { other: hash(other), ..self }
    }

    #[must_use]
    pub(crate) fn has_two_names(&self) -> bool {
        self.name != self.other
    }

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

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Meant {
    /// The object of the requested name, or an object of an earlier release, whose root has no
    /// identity.
    #[default]
    Found,
    /// The object sealed under the name with this hash, or a copy of it.
    SealedAs([u8; 24]),
    /// Any object.
    Any,
}

impl Meant {
    pub(super) fn sealed_as(name: &str) -> Meant {
        Meant::SealedAs(hash(name))
    }

    pub(super) fn is_named(self) -> bool {
        matches!(self, Meant::SealedAs(_))
    }

    /// `found`: the table's.
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
