//! Creating sealed objects, hidden until the key page is durable.

use super::revive::Revived;
use crate::entropy::{now, random_id};
use crate::error::{Result, StoreError};
use crate::format::PAGE;
use crate::format::seal::{Identity, KEY_PAGE};
use crate::recovery::Standing;
use crate::seal::{KeyPage, SealKey};
use crate::store::pool::Store;
use crate::table::{CreateOptions, Located, check_name};
use std::sync::Arc;

impl Store {
    /// Creates a detached sealed object of zeros with these keys and labels.
    ///
    /// [`reap`](Store::reap) removes a hidden one that a crash leaves.
    ///
    /// # Errors
    /// As for [`create`](Store::create); `BadKey`, `NoSlot`.
    pub fn create_sealed(
        self: &Arc<Self>,
        name: &str,
        how: &CreateOptions<'_>,
        keys: &[(&SealKey, &str)],
    ) -> Result<Located> {
        check_name(name)?;
        if how.size == 0 || how.size > 1 << 46 {
            let why = "a sealed object has from 1 byte to 64 TiB";
            return Err(StoreError::BadSize { size: how.size, why });
        }
        self.with_way_made(name, || {
            let id = random_id()?;
            let (page, _key) = KeyPage::new(how.size, &Identity::of(id, name), keys)?;
            let hidden = self.create_hidden_sealed(name, id, how)?;
            hidden.write(KEY_PAGE * PAGE, page.bytes())?;
            hidden.publish()
        })
    }

    fn create_hidden_sealed(
        self: &Arc<Self>,
        name: &str,
        id: [u8; 16],
        how: &CreateOptions<'_>,
    ) -> Result<Revived> {
        let now = now();
        self.revive_made(|table| {
            let object = table.create_sealed(name, id, now, &self.with_window(how))?;
            self.prepare_extent(table, &object, 0)?;
            // A pool relies on zeros behind, and the key page is none.
            let standing = Standing { published: object.entry.extent_len(), ..Standing::default() };
            Ok((object, standing))
        })
    }
}
