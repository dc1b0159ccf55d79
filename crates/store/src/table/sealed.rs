use super::objects::Seen;
use super::{CreateOptions, Located};
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_SEALED;
use crate::format::seal::{FLAG_IDENTITY, Header, IDENTITY, Identity, KEY_PAGE, MAGIC, Shape};
use crate::format::{PAGE, pages_for};
use crate::space::TableTransaction;
use zerocopy::{FromZeros, IntoBytes};

impl TableTransaction<'_> {
    /// Adds a hidden object with room for seals; the caller zeroes it, writes its key page and
    /// reveals it.
    pub fn create_sealed(
        &mut self,
        name: &str,
        id: [u8; 16],
        now: u64,
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        self.expect_free(name)?;
        let why = "a sealed object has from 1 byte to 64 TiB";
        let shape = Shape::of(pages_for(how.size)).ok_or(StoreError::BadSize { size: how.size, why })?;
        self.add(name, id, now, how, (Seen::Later, Some(shape)))
    }

    /// The unverified seal ID of an unchanging object, shared with its snapshots and copies;
    /// `None`: not sealed.
    pub fn seal_id(&self, object: &Located) -> Result<Option<[u8; 16]>> {
        if !object.is_sealed() {
            return Ok(None);
        }
        let mut header = Header::new_zeroed();
        self.read_object(object, KEY_PAGE * PAGE, header.as_mut_bytes())?;
        Ok(Some(header.id))
    }

    /// The unverified identity in a detached object's key page, if any.
    pub fn sealed_identity(&self, object: &Located) -> Result<Option<Identity>> {
        if !object.is_sealed() {
            return Ok(None);
        }
        let (mut header, mut identity) = (Header::new_zeroed(), Identity::new_zeroed());
        self.read_object(object, KEY_PAGE * PAGE, header.as_mut_bytes())?;
        self.read_object(object, KEY_PAGE * PAGE + IDENTITY as u64, identity.as_mut_bytes())?;
        let has_it = header.magic.get() == MAGIC && header.flags.get() & FLAG_IDENTITY != 0;
        Ok(has_it.then_some(identity))
    }
}

impl Located {
    /// Whether its pages are encrypted.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.entry.has(FLAG_SEALED)
    }
}
