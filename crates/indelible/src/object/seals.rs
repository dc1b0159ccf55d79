use super::anchored::{ask, check_beside};
use crate::error::{Cause, Result};
use crate::pool::{Pool, SealKey};
use indelible_store::error::{SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::store::{Reader, SealedPages};
use indelible_store::table::{Key, Located};
use std::collections::BTreeSet;

/// A page of a sealed object that does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BrokenPage {
    /// Its number within the contents or the extent, as `what` says.
    pub page: u64,
    /// Its part in the object.
    pub what: &'static str,
}

impl Pool {
    /// Verifies every page of a sealed object's last psync, or of a snapshot; returns the broken
    /// pages, without those below a broken node. `progress` gets the bytes verified, and all.
    ///
    /// # Errors
    /// As for [`attach_snapshot_sealed`](Pool::attach_snapshot_sealed); failures of the medium. In
    /// a pool opened for reading, `Held` if a process writes the object.
    pub fn verify_sealed(
        &self,
        name: &str,
        key: &[u8],
        seal: &SealKey,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<BrokenPage>> {
        let inner = self.inner();
        let anchor = seal.anchor.as_deref();
        let told = anchor.map_or(Ok(None), ask);
        let told = self.about("verify", name, told)?;
        let held =
            inner.alive().and_then(|()| inner.patiently(|| Ok(inner.store.attach_still(name, Key(key))?)));
        let mut reader = self.about("verify", name, held)?;
        let verified = verify(&mut reader, seal, progress, |object, pages| match &seal.anchor {
            Some(anchor) => check_beside(object, pages, Some(anchor), told.as_ref()),
            None => Ok(()),
        });
        let _ = inner.store.end_snapshot(reader);
        self.about("verify", name, verified)
    }

    /// Whether a sealed object was sealed under its present name and ID. `false`: it is a copy, a
    /// snapshot, renamed without its key, or exchanged. `None`: an earlier release made it.
    ///
    /// # Errors
    /// As for [`verify_sealed`](Pool::verify_sealed); `Damaged` as well.
    pub fn is_sealed_as_named(&self, name: &str, key: &[u8], seal: &SealKey) -> Result<Option<bool>> {
        let inner = self.inner();
        let held =
            inner.alive().and_then(|()| inner.patiently(|| Ok(inner.store.attach_still(name, Key(key))?)));
        let mut reader = self.about("verify", name, held)?;
        let any = seal.key.clone().of_any_name();
        let opened = reader.unlock(&any).and_then(|unlocked| reader.unseal(&unlocked));
        let named = opened.map(|()| reader.is_sealed_as_named());
        let _ = inner.store.end_snapshot(reader);
        self.about("verify", name, named.map_err(Cause::from))
    }
}

fn verify(
    reader: &mut Reader,
    seal: &SealKey,
    progress: &mut dyn FnMut(u64, u64),
    judge: impl FnOnce(&Located, &SealedPages) -> Result<(), Cause>,
) -> Result<Vec<BrokenPage>, Cause> {
    let mut broken = BTreeSet::new();
    let mut note = |error| match error {
        StoreError::Seal(SealError::Broken { page, what }) => {
            broken.insert(BrokenPage { page, what });
            Ok(())
        }
        error => Err(error),
    };
    let opened = reader.unlock(&seal.key).and_then(|unlocked| reader.unseal(&unlocked));
    opened.or_else(&mut note)?;
    if let Some(pages) = reader.sealed_pages() {
        judge(reader.asked(), &pages)?;
        let end = pages.size().div_ceil(PAGE);
        for page in 0..end {
            pages.verify(page).or_else(&mut note)?;
            progress((page + 1) * PAGE, end * PAGE);
        }
    }
    Ok(broken.into_iter().collect())
}
