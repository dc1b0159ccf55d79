//! The pages of an attached sealed object: read through verified seals, and sealed for a batch.
//!
//! Invariants:
//! 1. The tree is that of the newest durable batch. A change is taken over once its batch is durable; nodes that it changes were read before.
//! 2. Pages of plaintext are overwritten before their memory is given up.
//! 3. Any thread may read a page at any time, also one that answers the faults of the thread that seals: no lock is held while memory of the
//!    program is touched, and `seals` is not held while a page is decrypted.

use crate::error::{Result, SealError};
use crate::format::PAGE;
use crate::format::seal::Seal;
use crate::lane::Batch;
use crate::medium::Device;
use crate::seal::{Change, KeyPage, ObjectKey, Opener, PageBytes, Tree, broken};
use crate::store::lanes::PageCache;
use crate::store::locks::lock;
use crate::sync::Mutex;
use crate::table::{Located, SharedLayers};
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The key of an object, which one of its key slots gave.
#[derive(Clone, Debug)]
pub struct Unlocked {
    key: ObjectKey,
    id: [u8; 16],
}

impl Unlocked {
    pub(super) fn new(key: ObjectKey, key_page: &KeyPage) -> Unlocked {
        Unlocked { key, id: key_page.header().id }
    }

    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }
}

/// The pages of an attached sealed object.
pub struct SealedPages {
    seals: Mutex<Seals>,
    opener: Opener,
    pages: Ciphertext,
}

struct Seals {
    tree: Tree,
    /// Pages of a batch that was sealed last. From when it is durable until the tree has its seals, the pool has the one state of a page, and the
    /// tree the seal of the other.
    under_way: BTreeMap<u64, Seal>,
}

/// The seals that a page may have: the tree's, and that of a batch under way.
type Candidates = (Seal, Option<Seal>);

/// The pages as they are in the pool, with lines that wait in memory.
pub(super) struct Ciphertext {
    device: Arc<dyn Device>,
    layers: SharedLayers,
    page_cache: Option<Arc<Mutex<PageCache>>>,
}

impl Ciphertext {
    pub(super) fn new(
        device: Arc<dyn Device>,
        layers: SharedLayers,
        page_cache: Option<Arc<Mutex<PageCache>>>,
    ) -> Ciphertext {
        Ciphertext { device, layers, page_cache }
    }

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

    /// As [`read`](Ciphertext::read), while no line in memory is written to the pool: between its page and those lines none is missed.
    #[cold]
    fn read_still(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        let page_cache = self.page_cache.as_deref().map(lock);
        let layers = lock(&self.layers);
        layers.read(&*self.device, page * PAGE, bytes)?;
        if let Some(page_cache) = page_cache {
            page_cache.amend(layers.home(page), bytes);
        }
        Ok(())
    }

    pub(super) fn key_page(&self, object: &Located) -> Result<KeyPage> {
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
        let pages = Ciphertext::new(device, layers, page_cache);
        let key_page = pages.key_page(object)?;
        if key_page.header().id != unlocked.id {
            // Another object has the name by now.
            return Err(SealError::WrongKey { slots: key_page.slots().len() }.into());
        }
        let tree = Tree::open(&key_page, &unlocked.key, &mut |page, bytes| pages.read(page, bytes))?;
        let (opener, under_way) = (tree.opener(), BTreeMap::new());
        Ok(Arc::new(SealedPages { seals: Mutex::new(Seals { tree, under_way }), opener, pages }))
    }

    pub(super) fn key_page(&self, object: &Located) -> Result<KeyPage> {
        self.pages.key_page(object)
    }

    /// The batch with this change is durable.
    pub(super) fn accept(&self, change: Change) {
        let mut seals = lock(&self.seals);
        change.accept(&mut seals.tree);
        seals.under_way.clear();
    }

    fn candidates(&self, page: u64) -> Result<Candidates> {
        let mut seals = lock(&self.seals);
        let seal = seals.tree.page_seal(page, &mut |page, bytes| self.pages.read(page, bytes))?;
        Ok((seal, seals.under_way.get(&page).copied()))
    }

    /// Reads the page of the contents, verified.
    ///
    /// # Errors
    /// `Broken`: it is not what was sealed, and `bytes` are zeros. The medium's.
    pub fn read(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        let found = self.candidates(page)?;
        if found.1.is_none() {
            if found.0.is_absent() {
                bytes.fill(0);
                return Ok(());
            }
            self.pages.read(page, bytes)?;
            if self.opener.open(page, &found.0, bytes) {
                return Ok(());
            }
        }
        self.read_changing(page, bytes)
    }

    /// As [`read`](SealedPages::read), of a page that a psync changes, or whose lines were written to the pool while it was read. It is not what was sealed
    /// if its seals did not change meanwhile.
    #[cold]
    fn read_changing(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        let mut found = self.candidates(page)?;
        loop {
            for seal in [Some(found.0), found.1].into_iter().flatten() {
                if seal.is_absent() {
                    // Of a batch under way, and the pool has bytes of no account, or those of the batch.
                    continue;
                }
                self.pages.read_still(page, bytes)?;
                if self.opener.open(page, &seal, bytes) {
                    return Ok(());
                }
            }
            let now = self.candidates(page)?;
            if now == found {
                return match found.0.is_absent() {
                    true => Ok(bytes.fill(0)),
                    false => Err(broken(page)),
                };
            }
            found = now;
        }
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
    pub(super) fn seal(&self, plain: &Batch, start: u64, batch: &mut Batch) -> Result<Change> {
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
        let mut change = Change::default();
        let mut read = |page, bytes: &mut PageBytes| self.pages.read(page, bytes);
        let mut bytes = Zeroizing::new([0; PAGE as usize]);
        for (page, lines) in lines {
            // In parts: the rest is as it was.
            if lines.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < PAGE as usize {
                self.read(page, &mut bytes)?;
            }
            for (offset, line) in lines {
                bytes[offset..offset + line.len()].copy_from_slice(line);
            }
            // Locked for each page alone: faults are answered meanwhile.
            change.page(&mut lock(&self.seals).tree, page, &mut bytes, &mut read)?;
            batch.copy_lines(start + page * PAGE, &bytes[..]);
        }
        let mut seals = lock(&self.seals);
        change.finish(&mut seals.tree, &mut read, &mut |page, offset, bytes| {
            batch.copy_lines(start + page * PAGE + offset, bytes);
        })?;
        seals.under_way = change.pages().collect();
        Ok(change)
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
