//! Sealed objects verified, page by page.

use super::anchored::{ask, check_beside};
use crate::error::{Cause, Result};
use crate::pool::{Pool, SealKey};
use indelible_store::error::{SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::store::{Reader, SealedPages};
use indelible_store::table::{Key, Located};
use std::collections::BTreeSet;

/// A page of a sealed object that is not what was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BrokenPage {
    /// Its number, among the pages of the contents or of the extent, as `what` says.
    pub page: u64,
    /// Its part in the object.
    pub what: &'static str,
}

impl Pool {
    /// Verifies every page that a sealed object had at its last psync, attached or not, or every
    /// page of a snapshot; returns those that differ from the sealed state, each once. All pages
    /// below a node that is broken are unreadable, and not named one by one. `progress` gets the
    /// number of bytes verified, and of all. The name, a signature and an anchor are judged as by
    /// an attach; without its anchor, an object that has one is verified in its present state.
    ///
    /// # Errors
    /// As for [`attach_snapshot_sealed`](Pool::attach_snapshot_sealed); failures of the medium. In
    /// a pool that is opened for reading, `Held` if a process writes the object.
    pub fn verify_sealed(
        &self,
        name: &str,
        key: &[u8],
        seal: &SealKey,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<BrokenPage>> {
        let inner = self.inner();
        let anchor = seal.anchor.as_deref();
        // Before its state is had: a writer may go on, and tell the anchor of later ones.
        let told = anchor.map_or(Ok(None), ask);
        let told = self.about("verify", name, told)?;
        let held =
            inner.alive().and_then(|()| inner.patiently(|| Ok(inner.store.attach_still(name, Key(key))?)));
        let mut reader = self.about("verify", name, held)?;
        let verified = verify(&mut reader, seal, progress, |object, pages| match &seal.anchor {
            Some(anchor) => check_beside(object, pages, Some(anchor), told.as_ref()),
            None => Ok(()),
        });
        // A base that is left goes with the next one.
        let _ = inner.store.end_snapshot(reader);
        self.about("verify", name, verified)
    }

    /// Whether a sealed object, attached or not, was sealed under the name and the ID that it has.
    /// `false`: it is a copy, a snapshot of an object, was renamed without its key, or
    /// exchanged for another one. `None`: an earlier release made it,
    /// and its root says no name.
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
