//! Sealed objects: an attachment reads plaintext through verified seals, and its psyncs put ciphertext, seals and the root into one batch.
//!
//! Whoever collects changes knows nothing of it: lines of plaintext are collected into a batch that is never written, and become the sealed lines
//! of the one that is. That one is redone, checkpointed and recovered as any other.
//!
//! Invariants:
//! 1. The tree is that of the newest durable batch. A change is taken over once its batch is durable; nodes that it changes were read before.
//! 2. Pages of plaintext are overwritten before their memory is given up.
//! 3. Page caches hold ciphertext: plaintext is read anew.

use super::writer::Writer;
use crate::error::{Result, SealError};
use crate::format::batch::kind;
use crate::format::{LINE, PAGE};
use crate::lane::Batch;
use crate::medium::{Device, Medium};
use crate::mutant::Mutant;
use crate::seal::{Change, KeyPage, ObjectKey, PageBytes, SealKey, Tree};
use crate::store::attachment::Changes;
use crate::store::lanes::PageCache;
use crate::store::locks::lock;
use crate::store::pool::Store;
use crate::sync::Mutex;
use crate::table::{Key, Layers, Located, SharedLayers};
use std::collections::BTreeMap;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zeroize::{Zeroize, Zeroizing};

/// The key of an object, which one of its key slots gave.
#[derive(Clone, Debug)]
pub struct Unlocked {
    key: ObjectKey,
    id: [u8; 16],
}

/// The pages of an attached sealed object.
pub struct SealedPages {
    tree: Mutex<Tree>,
    pages: Ciphertext,
}

/// The pages as they are in the pool, with lines that wait in memory.
struct Ciphertext {
    device: Arc<dyn Device>,
    layers: SharedLayers,
    page_cache: Option<Arc<Mutex<PageCache>>>,
}

impl Ciphertext {
    fn read(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        let home = {
            let layers = lock(&self.layers);
            layers.read(&*self.device, page * PAGE, bytes)?;
            layers.home(page)
        };
        if let Some(page_cache) = &self.page_cache {
            lock(page_cache).amend(home, bytes);
        }
        Ok(())
    }

    fn key_page(&self, object: &Located) -> Result<KeyPage> {
        let mut bytes = Box::new([0; PAGE as usize]);
        self.read(object.entry.keys.get(), &mut bytes)?;
        KeyPage::read(bytes, object.entry.size.get())
    }
}

impl SealedPages {
    pub(super) fn open(
        device: Arc<dyn Device>,
        object: &Located,
        layers: SharedLayers,
        page_cache: Option<Arc<Mutex<PageCache>>>,
        unlocked: &Unlocked,
    ) -> Result<Arc<SealedPages>> {
        let pages = Ciphertext { device, layers, page_cache };
        let key_page = pages.key_page(object)?;
        if key_page.header().id != unlocked.id {
            // Another object has the name by now.
            return Err(SealError::WrongKey { slots: key_page.slots().len() }.into());
        }
        let tree = Tree::open(&key_page, &unlocked.key, &mut |page, bytes| pages.read(page, bytes))?;
        Ok(Arc::new(SealedPages { tree: Mutex::new(tree), pages }))
    }

    /// Reads the page of the contents, verified.
    ///
    /// # Errors
    /// `Broken`: it is not what was sealed, and `bytes` are zeros. The medium's.
    pub fn read(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        lock(&self.tree).page(page, bytes, &mut |page, bytes| self.pages.read(page, bytes))
    }

    /// Reads whole pages from `first` on.
    ///
    /// # Errors
    /// As for [`read`](SealedPages::read).
    pub fn read_all(&self, first: u64, bytes: &mut [u8]) -> Result<()> {
        let (pages, _) = bytes.as_chunks_mut::<{ PAGE as usize }>();
        (first..).zip(pages).try_for_each(|(page, bytes)| self.read(page, bytes))
    }

    /// Seals the lines of `plain`, whose object begins at `start`, into the current section of `batch`.
    fn seal(&self, plain: &Batch, start: u64, batch: &mut Batch) -> Result<Change> {
        let mut lines: BTreeMap<u64, Vec<(usize, &[u8])>> = BTreeMap::new();
        for (target, mut bytes) in plain.redo() {
            let mut at = target - start;
            while !bytes.is_empty() {
                let (page, offset) = (at / PAGE, (at % PAGE) as usize);
                let (now, rest) = bytes.split_at(bytes.len().min(PAGE as usize - offset));
                lines.entry(page).or_default().push((offset, now));
                (bytes, at) = (rest, at + now.len() as u64);
            }
        }
        let (mut tree, mut change) = (lock(&self.tree), Change::default());
        let mut read = |page, bytes: &mut PageBytes| self.pages.read(page, bytes);
        let mut bytes = Zeroizing::new([0; PAGE as usize]);
        for (page, lines) in lines {
            // In parts: the rest is as it was.
            if lines.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < PAGE as usize {
                tree.page(page, &mut bytes, &mut read)?;
            }
            for (offset, line) in lines {
                bytes[offset..offset + line.len()].copy_from_slice(line);
            }
            change.page(&mut tree, page, &mut bytes, &mut read)?;
            batch.copy_lines(start + page * PAGE, &bytes[..]);
        }
        change.finish(&mut tree, &mut read, &mut |page, offset, bytes| {
            batch.copy_lines(start + page * PAGE + offset, bytes);
        })?;
        Ok(change)
    }
}

impl Store {
    /// The key page of a sealed object, recovered.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `Held`; `NotSealed`; `Broken` or `Unknown` of the page.
    pub fn key_page(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<KeyPage> {
        let mut reader = self.attach_reader_raw(name, key)?;
        let object = *reader.object();
        if !object.is_sealed() {
            return Err(SealError::NotSealed.into());
        }
        let layers = reader.take_layers().unwrap_or_else(|| Layers::alone(&object));
        let (device, layers) = (self.device.clone(), Arc::new(Mutex::new(layers)));
        Ciphertext { device, layers, page_cache: None }.key_page(&object)
    }

    /// The key of a sealed object, by that of an owner. Takes the time that deriving a key from a passphrase takes; nothing is locked meanwhile.
    ///
    /// # Errors
    /// Those of [`key_page`](Store::key_page); of the seal key.
    pub fn unlock(self: &Arc<Self>, name: &str, key: Key<'_>, owner: &SealKey) -> Result<Unlocked> {
        let key_page = self.key_page(name, key)?;
        Ok(Unlocked { key: key_page.open(owner)?, id: key_page.header().id })
    }
}

/// Refuses a sealed object without its key, and a key of an object that is not sealed.
pub(super) fn expect_key(object: &Located, unlocked: Option<&Unlocked>) -> Result<()> {
    match (object.is_sealed(), unlocked) {
        (true, None) => Err(SealError::KeyNeeded.into()),
        (false, Some(_)) => Err(SealError::NotSealed.into()),
        _ => Ok(()),
    }
}

/// Refuses what is not possible with sealed objects.
pub(in crate::store) fn expect_plain(object: &Located, what: &'static str) -> Result<()> {
    if object.is_sealed() { Err(SealError::Refused { what }.into()) } else { Ok(()) }
}

impl Writer {
    /// Its pages, if it is sealed.
    #[must_use]
    pub fn sealed_pages(&self) -> Option<Arc<SealedPages>> {
        self.sealed.clone()
    }

    /// Reads a page of the object as last psynced.
    ///
    /// # Errors
    /// The medium's; `Broken` of a sealed object.
    pub fn read_page(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        match &self.sealed {
            Some(sealed) => sealed.read(page, bytes),
            None => self.store.read_object(&self.object, page * PAGE, bytes),
        }
    }

    /// Whether pages can be [written straight to their place](Writer::begin_direct): not those that others have as well, and no plaintext.
    #[must_use]
    pub fn takes_direct_writes(&self) -> bool {
        !self.based && self.sealed.is_none()
    }

    /// Collects the changes of a sealed object, and puts them into the current section of `batch`, sealed. Returns the end of what the object
    /// has by then.
    pub(super) fn collect_sealed(
        &mut self,
        sealed: &SealedPages,
        changes: &mut dyn Changes,
        batch: &mut Batch,
    ) -> Result<(u64, Change)> {
        let mut plain = Batch::new();
        plain.begin(kind::PSYNC, self.object.offset, self.object.entry.binding.get());
        let mut primary = self.primary();
        let collected = changes.collect(&mut primary, &mut plain);
        drop(primary);
        let start = self.object.entry.primary_offset();
        let content = start..start + self.object.entry.content_len();
        let done = collected.and_then(|_| {
            // Lines behind the contents would be those of the seals.
            debug_assert!(
                plain.targets().all(|(at, lines)| content.contains(&at) && at + lines * LINE <= content.end)
            );
            if plain.is_empty() { Ok(Change::default()) } else { sealed.seal(&plain, start, batch) }
        });
        plain.wipe();
        let end = if plain.is_empty() { 0 } else { self.object.entry.extent_len() };
        done.map(|change| (end, change))
    }

    /// The batch with this change is durable.
    pub(super) fn accept_seals(&self, change: Change) -> Result<()> {
        let Some(sealed) = &self.sealed else { return Ok(()) };
        if let Some(root) = change.root().filter(|_| Mutant::RootApart.is_on()) {
            let at = self.object.entry.primary_offset() + self.object.entry.content_len();
            self.lane.medium().write(at + crate::format::seal::ROOT as u64, root.as_bytes())?;
        }
        change.accept(&mut lock(&sealed.tree));
        Ok(())
    }

    /// Changes the key page of a sealed object: its slots, as one step.
    ///
    /// # Errors
    /// Those of `change`, and of [`psync`](Writer::psync). `NotSealed`.
    pub fn change_keys<R>(
        &mut self,
        unlocked: &Unlocked,
        change: impl FnOnce(&mut KeyPage, &ObjectKey) -> Result<R>,
    ) -> Result<R> {
        let Some(sealed) = self.sealed.clone() else { return Err(SealError::NotSealed.into()) };
        let mut page = sealed.pages.key_page(&self.object)?;
        let out = change(&mut page, &unlocked.key)?;
        let at = self.object.entry.primary_offset() + self.object.entry.content_len();
        self.psync_sealed_lines(at, page.bytes())?;
        Ok(out)
    }

    /// Makes lines that are not the contents durable, as they are.
    fn psync_sealed_lines(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let sealed = self.sealed.take();
        let end = self.object.entry.extent_len();
        let done = self.psync(&mut |_, batch: &mut Batch| {
            batch.copy_lines(at, bytes);
            Ok(end)
        });
        self.sealed = sealed;
        done
    }
}

impl Batch {
    /// Overwrites its lines, which were those of a sealed object.
    fn wipe(&mut self) {
        self.wipe_with(|bytes| bytes.zeroize());
    }
}
