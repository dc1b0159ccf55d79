use crate::error::{Result, SealError};
use crate::seal::{KeyPage, Meant, ObjectKey, SealKey, Signer};
use crate::table::Located;

/// An object's key, from one of its slots.
#[derive(Clone, Debug)]
pub struct Unlocked {
    key: ObjectKey,
    id: [u8; 16],
    rotations: u64,
    signer: Option<Signer>,
    is_signed: bool,
    meant: Meant,
}

impl Unlocked {
    pub(super) fn new(owner: &SealKey, key_page: &KeyPage) -> Result<Unlocked> {
        let (key, header) = (key_page.open(owner)?, key_page.header());
        let (signer, is_signed) = (owner.signer().cloned(), key_page.is_signed());
        let (id, rotations, meant) = (header.id, header.rotations.get(), owner.meant());
        Ok(Unlocked { key, id, rotations, signer, is_signed, meant })
    }

    pub(super) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// The tree judges objects that claim to be unsigned.
    pub(super) fn expect_sign_key(&self) -> Result<()> {
        let signs = self.signer.as_ref().is_some_and(Signer::signs);
        if self.is_signed && !signs { Err(SealError::SignKeyNeeded.into()) } else { Ok(()) }
    }

    pub(super) fn meant(&self) -> Meant {
        self.meant
    }

    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Whether it may be the key of this page's object: not another's, nor a former one.
    #[must_use]
    pub fn is_for(&self, key_page: &KeyPage) -> bool {
        let header = key_page.header();
        (header.id, header.rotations.get()) == (self.id, self.rotations)
    }
}

pub(super) fn expect_key(object: &Located, unlocked: Option<&Unlocked>) -> Result<()> {
    match (object.is_sealed(), unlocked) {
        (true, None) => Err(SealError::KeyNeeded.into()),
        (false, Some(_)) => Err(SealError::NotSealed.into()),
        _ => Ok(()),
    }
}

pub(super) fn expect_plain(object: &Located, what: &'static str, instead: &'static str) -> Result<()> {
    if object.is_sealed() { Err(SealError::Refused { what, instead }.into()) } else { Ok(()) }
}
