//! Attachments of sealed objects. Collected plaintext goes to a batch that is never written, and
//! becomes sealed lines of the real one. Page caches hold ciphertext.

use super::attach::Reader;
use super::sealed_pages::{Heading, SealedPages, Sealing};
use super::staged::Changes;
use super::tail::{Lines, Tail};
use super::unlocked::{Unlocked, expect_key};
use super::writer::Writer;
use crate::error::{Result, SealError, StoreError};
use crate::format::batch::kind;
use crate::format::seal::{KEY_PAGE, ROOT, SIGNATURE, SLOTS};
use crate::format::{LINE, PAGE};
use crate::lane::Batch;
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::seal::{Change, KeyPage, ObjectKey, SealKey, SignKey, SlotInfo};
use crate::store::pool::Store;
use crate::sync::Mutex;
use crate::table::{Key, Layers, Located, read_pages};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Longer than a page's write.
const SLOTS_CHANGED: Duration = Duration::from_millis(200);

impl Store {
    /// A sealed object's key page, after recovery.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `Held`; `NotSealed`; `Broken` or `Unknown` of the page.
    pub fn key_page(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<KeyPage> {
        self.attach_raw_reader(name, key)?.key_page()
    }

    /// A sealed object's key slots, after recovery, or as published if a process writes it.
    ///
    /// # Errors
    /// As for [`key_page`](Store::key_page), but `Held`: a change of slots does not end.
    pub fn key_slots(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Vec<SlotInfo>> {
        let mut begun = None;
        loop {
            let held = match self.key_page(name, key) {
                Err(held @ StoreError::Held { .. }) => held,
                found => return Ok(found?.slots()),
            };
            let last = begun.get_or_insert_with(Instant::now).elapsed() >= SLOTS_CHANGED;
            match self.published_slots(name, key)? {
                Some(slots) if last || slots.iter().all(|slot| !slot.damaged) => return Ok(slots),
                None if last => return Err(held),
                _ => self.device.pause(Duration::from_millis(1)),
            }
        }
    }

    fn published_slots(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Option<Vec<SlotInfo>>> {
        self.view(|table| {
            let object = self.usable(table, name)?;
            if !object.opens_for_reading(key) {
                return Err(StoreError::WrongKey);
            }
            if !object.is_sealed() {
                return Err(SealError::NotSealed.into());
            }
            let read = || {
                let mut bytes = Box::new([0; PAGE as usize]);
                table.read_object(&object, KEY_PAGE * PAGE, &mut bytes[..])?;
                Ok::<_, StoreError>(bytes)
            };
            let (first, second) = (read()?, read()?);
            // Psyncs change the root.
            if first[..ROOT] != second[..ROOT] || first[SLOTS..] != second[SLOTS..] {
                return Ok(None);
            }
            Ok(Some(KeyPage::read(second, object.entry.pages.get())?.slots()))
        })
    }

    /// A sealed object's key by an owner's. May derive a key from a passphrase, without locks.
    ///
    /// # Errors
    /// Those of [`key_page`](Store::key_page); of the seal key.
    pub fn unlock(self: &Arc<Self>, name: &str, key: Key<'_>, owner: &SealKey) -> Result<Unlocked> {
        let key_page = self.key_page(name, key)?;
        Unlocked::new(owner, &key_page)
    }
}

impl Reader {
    /// The object's key page.
    ///
    /// # Errors
    /// `NotSealed`; `Broken` or `Unknown` of the page; the medium's.
    pub fn key_page(&self) -> Result<KeyPage> {
        if !self.object.is_sealed() {
            return Err(SealError::NotSealed.into());
        }
        let mut bytes = Box::new([0; PAGE as usize]);
        let layers = self.layers.as_ref();
        read_pages(&*self.store.device, &self.object, layers, KEY_PAGE * PAGE, &mut bytes[..])?;
        KeyPage::read(bytes, self.object.entry.pages.get())
    }

    /// The object's key by an owner's, as [`Store::unlock`].
    ///
    /// # Errors
    /// Those of [`key_page`](Reader::key_page); of the seal key.
    pub fn unlock(&self, owner: &SealKey) -> Result<Unlocked> {
        let key_page = self.key_page()?;
        Unlocked::new(owner, &key_page)
    }

    /// Decrypts later reads. Call it before its layers are taken.
    ///
    /// # Errors
    /// `NotSealed`, `Broken`; `WrongKey`: another object's key.
    pub fn unseal(&mut self, unlocked: &Unlocked) -> Result<()> {
        expect_key(&self.object, Some(unlocked))?;
        let layers = self.take_layers().unwrap_or_else(|| Layers::alone(&self.object));
        let (device, layers) = (self.store.device.clone(), Arc::new(Mutex::new(layers)));
        let asked = *self.asked();
        let opened = SealedPages::open(device, (&self.object, &asked), layers, None, None, unlocked);
        if opened.is_err() && !self.is_current()? {
            // The bytes may be of two psyncs.
            return Err(StoreError::TableInMotion { seconds: 0.0 });
        }
        let sealed = self.sealed.insert(opened?);
        self.object.entry.size = U64::new(sealed.size());
        Ok(())
    }

    /// The requested object; the reader may read its base.
    #[must_use]
    pub fn asked(&self) -> &Located {
        self.tail.as_ref().map_or(&self.object, Tail::object)
    }

    /// Whether the unsealed object's root has its name and ID; `None`: the root has none.
    #[must_use]
    pub fn is_sealed_as_named(&self) -> Option<bool> {
        let sealed = self.sealed.as_ref()?.identity()?;
        Some(sealed.is_of(&self.asked().entry))
    }

    /// Its pages, if unsealed.
    #[must_use]
    pub fn sealed_pages(&self) -> Option<Arc<SealedPages>> {
        self.sealed.clone()
    }

    /// Continues with the pages of `older`, a reader of an earlier state, which the caller then
    /// ends; returns the differing contents. `None`: not sealed or another size.
    ///
    /// # Errors
    /// `Broken`, the medium's: nothing changed.
    pub fn succeed(&mut self, older: &Reader) -> Result<Option<Lines>> {
        let (Some(newer), Some(pages)) = (&self.sealed, &older.sealed) else { return Ok(None) };
        let changed = pages.become_newer(newer)?;
        if changed.is_some() {
            self.sealed = Some(pages.clone());
        }
        Ok(changed)
    }
}

impl Writer {
    pub(super) fn unseal(&mut self, unlocked: &Unlocked) -> Result<()> {
        let live = self.pages();
        loop {
            let seen = live.revision();
            let (device, cache) = (self.store.device.clone(), self.page_cache.clone());
            let layers = self.layers.clone();
            let of = (&self.object, &self.object);
            let opened = SealedPages::open(device, of, layers, cache, Some(live.clone()), unlocked);
            if opened.is_err() && live.has_moved(seen)? {
                continue;
            }
            self.sealed = Some(opened?);
            return Ok(());
        }
    }

    /// Its pages, if sealed.
    #[must_use]
    pub fn sealed_pages(&self) -> Option<Arc<SealedPages>> {
        self.sealed.clone()
    }

    /// Whether [direct writes](Writer::begin_direct) are possible: not with a base or seals.
    #[must_use]
    pub fn takes_direct_writes(&self) -> bool {
        !self.based && self.sealed.is_none()
    }

    pub(super) fn collect_sealed(
        &mut self,
        sealed: &Arc<SealedPages>,
        changes: &mut dyn Changes,
        batch: &mut Batch,
    ) -> Result<(u64, Sealing)> {
        let mut plain = Batch::secret();
        plain.begin(kind::PSYNC, self.object.offset, self.object.entry.binding.get());
        let mut primary = self.primary();
        let collected = changes.collect(&mut primary, &mut plain);
        drop(primary);
        let start = self.object.entry.primary_offset();
        let content = start..start + self.object.entry.content_len();
        let done = collected.and_then(|_| {
            debug_assert!(
                plain.targets().all(|(at, lines)| content.contains(&at) && at + lines * LINE <= content.end)
            );
            match self.heading.clone() {
                Some(heading) => sealed.head(heading, start, batch),
                None if plain.is_empty() => Ok(Change::default()),
                None => sealed.seal(&plain, start, batch),
            }
        });
        plain.wipe();
        done.map(|change| {
            let end = if change.is_empty() { 0 } else { self.object.entry.extent_len() };
            (end, Sealing::new(sealed.clone(), change))
        })
    }

    pub(super) fn accept_seals(&self, sealing: Sealing) -> Result<()> {
        let change = sealing.change();
        if let Some(root) = change.root().filter(|_| Mutant::RootApart.is_on()) {
            self.lane.medium().write(self.key_page_offset() + ROOT as u64, root.as_bytes())?;
        }
        if let Some(header) = change.header().filter(|_| Mutant::SizeApart.is_on()) {
            self.lane.medium().write(self.key_page_offset(), header.as_bytes())?;
        }
        if let Some(signature) = change.signature().filter(|_| Mutant::SignatureApart.is_on()) {
            self.lane.medium().write(self.key_page_offset() + SIGNATURE as u64, signature)?;
        }
        sealing.accept();
        Ok(())
    }

    /// Changes a sealed object's key slots in one step.
    pub fn change_keys<R>(
        &mut self,
        unlocked: &Unlocked,
        change: impl FnOnce(&mut KeyPage, &ObjectKey) -> Result<R>,
    ) -> Result<R> {
        let Some(sealed) = self.sealed.clone() else { return Err(SealError::NotSealed.into()) };
        let changing = self.change()?;
        let mut page = sealed.key_page(&self.object)?;
        // Deriving a key takes long.
        drop(changing);
        let out = change(&mut page, unlocked.key())?;
        self.psync_key_page(page.bytes())?;
        Ok(out)
    }

    fn key_page_offset(&self) -> u64 {
        self.object.entry.primary_offset() + KEY_PAGE * PAGE
    }

    /// Records whether the object has an anchor.
    ///
    /// # Errors
    /// `NotSealed`; those of [`psync`](Writer::psync).
    pub fn set_anchored(&mut self, anchored: bool) -> Result<()> {
        match &self.sealed {
            None => Err(SealError::NotSealed.into()),
            Some(sealed) if sealed.is_anchored() == anchored => Ok(()),
            Some(_) => self.psync_header(Heading::Anchored(anchored)),
        }
    }

    /// Replaces a signed object's signer.
    ///
    /// # Errors
    /// `NotSealed`, `NotSigned`; those of [`psync`](Writer::psync).
    pub fn change_signer(&mut self, key: &SignKey) -> Result<()> {
        match &self.sealed {
            None => Err(SealError::NotSealed.into()),
            Some(_) => self.psync_header(Heading::Signer(key.clone().into())),
        }
    }

    pub(super) fn psync_header(&mut self, heading: Heading) -> Result<()> {
        self.heading = Some(heading);
        let done = self.psync_step(&mut |_, _: &mut Batch| Ok(0));
        self.heading = None;
        done
    }

    fn psync_key_page(&mut self, bytes: &[u8]) -> Result<()> {
        let sealed = self.sealed.take();
        let end = self.object.entry.extent_len();
        let done = self.psync_step(&mut |primary, batch: &mut Batch| {
            batch.copy_lines(primary + KEY_PAGE * PAGE, bytes);
            Ok(end)
        });
        self.sealed = sealed;
        done
    }
}
