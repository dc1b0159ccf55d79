//! The pages of an attached sealed object: read through verified seals, and sealed for a batch.
//!
//! Invariants:
//! 1. The tree is that of the newest durable batch. A change is taken over once its batch is durable; nodes that it changes were read before.
//! 2. Pages of plaintext are overwritten before their memory is given up.

use crate::error::{Result, SealError};
use crate::format::PAGE;
use crate::format::seal::KEY_PAGE;
use crate::lane::Batch;
use crate::medium::Device;
use crate::seal::{AnchorRecord, Change, KeyPage, ObjectKey, PageBytes, PutPage, SealKey, Tree};
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
    rotations: u64,
}

impl Unlocked {
    pub(super) fn new(key: ObjectKey, key_page: &KeyPage) -> Unlocked {
        let header = key_page.header();
        Unlocked { key, id: header.id, rotations: header.rotations.get() }
    }

    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }
}

/// A change of a sealed object's header.
#[derive(Clone, Copy)]
pub(super) enum Heading {
    /// Another size.
    Size(u64),
    /// Whether it has an anchor.
    Anchored(bool),
}

/// The pages of an attached sealed object.
pub struct SealedPages {
    tree: Mutex<Tree>,
    pages: Ciphertext,
}

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

    pub(super) fn key_page(&self, object: &Located) -> Result<KeyPage> {
        let mut bytes = Box::new([0; PAGE as usize]);
        self.read(KEY_PAGE, &mut bytes)?;
        KeyPage::read(bytes, object.entry.pages.get())
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
        let header = key_page.header();
        if (header.id, header.rotations.get()) != (unlocked.id, unlocked.rotations) {
            // Another object has the name by now, or the object another key.
            return Err(SealError::WrongKey { slots: key_page.slots().len() }.into());
        }
        let tree = Tree::open(&key_page, &unlocked.key, &mut |page, bytes| pages.read(page, bytes))?;
        Ok(Arc::new(SealedPages { tree: Mutex::new(tree), pages }))
    }

    pub(super) fn key_page(&self, object: &Located) -> Result<KeyPage> {
        self.pages.key_page(object)
    }

    /// The batch with this change is durable.
    pub(super) fn accept(&self, change: Change) {
        change.accept(&mut lock(&self.tree));
    }

    /// Bytes of the object, by the header that is verified. The entry of an object whose change of size was interrupted may say otherwise.
    #[must_use]
    pub fn size(&self) -> u64 {
        lock(&self.tree).size()
    }

    /// The state that it is in, for an anchor.
    #[must_use]
    pub fn state(&self) -> AnchorRecord {
        lock(&self.tree).state()
    }

    /// Whether it says that it has an anchor.
    #[must_use]
    pub fn is_anchored(&self) -> bool {
        lock(&self.tree).is_anchored()
    }

    /// See [`Tree::rotate`]. The tree stays as it is until [`follow`](SealedPages::follow).
    pub(super) fn rotate(
        &self,
        object: &Located,
        owners: &[&SealKey],
        put: PutPage<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tree> {
        let key_page = self.key_page(object)?;
        let mut read = |page, bytes: &mut PageBytes| self.pages.read(page, bytes);
        let (_key, tree) = lock(&self.tree).rotate(&key_page, owners, &mut read, put, progress)?;
        Ok(tree)
    }

    /// The object is what this is the tree of.
    pub(super) fn follow(&self, tree: Tree) {
        *lock(&self.tree) = tree;
    }

    /// Puts what gives the object another header into the current section of `batch`. The object begins at `start`.
    pub(super) fn head(&self, heading: Heading, start: u64, batch: &mut Batch) -> Result<Change> {
        let (mut tree, mut change) = (lock(&self.tree), Change::default());
        let mut read = |page, bytes: &mut PageBytes| self.pages.read(page, bytes);
        let cleared = match heading {
            Heading::Size(size) => change.resize(&mut tree, size, &mut read)?,
            Heading::Anchored(anchored) => change.anchor(&mut tree, anchored, &mut read).map(|()| None)?,
        };
        if let Some((page, bytes)) = cleared {
            batch.copy_lines(start + tree.shape().content_page(page) * PAGE, &bytes[..]);
        }
        change.finish(&mut tree, &mut read, &mut |page, offset, bytes| {
            batch.copy_lines(start + page * PAGE + offset, bytes);
        })?;
        Ok(change)
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
            batch.copy_lines(start + tree.shape().content_page(page) * PAGE, &bytes[..]);
        }
        change.finish(&mut tree, &mut read, &mut |page, offset, bytes| {
            batch.copy_lines(start + page * PAGE + offset, bytes);
        })?;
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
