//! The pages of an attached sealed object: read through verified seals, and sealed for a batch.
//!
//! Invariants:
//! 1. The tree is that of the newest durable batch. It accepts a change once its batch is durable;
//!    nodes that it changes were read before.
//! 2. Pages of plaintext are overwritten before their memory is freed.
//! 3. Upkeep may move the object's bases during a read outside of a change. Such a page does not
//!    verify, so only a failure checks for that.
//! 4. Any thread may read a page at any time, also one that answers faults of the sealing thread:
//!    no lock is held while program memory is touched, and `seals` is not held during decryption.

use super::ciphertext::{Ciphertext, Images, by_page};
use super::live::LivePages;
use super::tail::Lines;
use super::unlocked::Unlocked;
use crate::error::{Result, SealError, StoreError};
use crate::format::PAGE;
use crate::format::seal::{Identity, KEY_PAGE, Seal};
use crate::lane::Batch;
use crate::medium::Device;
use crate::mutant::Mutant;
use crate::seal::{
    AnchorRecord, Change, KeyPage, Opener, PageBytes, PlainPage, PutPage, SealKey, Signer, Tree, broken,
};
use crate::store::lanes::PageCache;
use crate::store::locks::lock;
use crate::sync::Mutex;
use crate::table::{Located, SharedLayers};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem::swap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest application of a batch: other mismatches are damage.
const APPLIED: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) enum Heading {
    Size(u64),
    Anchored(bool),
    Signer(Signer),
    Identity(Identity),
}

/// The pages of an attached sealed object.
pub struct SealedPages {
    seals: Mutex<Seals>,
    pages: Ciphertext,
    live: Option<LivePages>,
}

struct Seals {
    tree: Tree,
    under_way: BTreeMap<u64, Seal>,
    moving: bool,
}

#[derive(PartialEq, Eq)]
struct Found {
    seal: Seal,
    next: Option<Seal>,
    at: u64,
    moving: bool,
}

pub(super) struct Sealing {
    pages: Arc<SealedPages>,
    change: Change,
}

impl Sealing {
    pub(super) fn new(pages: Arc<SealedPages>, change: Change) -> Sealing {
        Sealing { pages, change }
    }

    pub(super) fn change(&self) -> &Change {
        &self.change
    }

    pub(super) fn accept(mut self) {
        let mut seals = lock(&self.pages.seals);
        std::mem::take(&mut self.change).accept(&mut seals.tree);
        seals.under_way.clear();
    }
}

impl Drop for Sealing {
    fn drop(&mut self) {
        lock(&self.pages.seals).under_way.clear();
    }
}

pub(super) struct Moving(Arc<SealedPages>);

impl Drop for Moving {
    fn drop(&mut self) {
        lock(&self.0.seals).moving = false;
    }
}

impl SealedPages {
    pub(super) fn open(
        device: Arc<dyn Device>,
        (object, asked): (&Located, &Located),
        layers: SharedLayers,
        page_cache: Option<Arc<Mutex<PageCache>>>,
        live: Option<LivePages>,
        unlocked: &Unlocked,
    ) -> Result<Arc<SealedPages>> {
        let pages = Ciphertext::new(device, layers, page_cache);
        let key_page = pages.key_page(object)?;
        if !unlocked.is_for(&key_page) {
            return Err(SealError::WrongKey { slots: key_page.slots().len() }.into());
        }
        let tree = Tree::open(&key_page, unlocked.key(), unlocked.signer(), &mut |page, bytes| {
            pages.read(page, bytes)
        })?;
        unlocked.meant().judge(tree.identity(), &asked.entry)?;
        let seals = Mutex::new(Seals { tree, under_way: BTreeMap::new(), moving: false });
        Ok(Arc::new(SealedPages { seals, pages, live }))
    }

    pub(super) fn key_page(&self, object: &Located) -> Result<KeyPage> {
        self.pages.key_page(object)
    }

    /// Until dropped, mismatching pages are reread.
    pub(super) fn moving(self: &Arc<Self>) -> Moving {
        lock(&self.seals).moving = true;
        Moving(self.clone())
    }

    fn find(&self, page: u64) -> Result<(Found, Opener)> {
        let mut seals = lock(&self.seals);
        let mut read = |page, bytes: &mut PageBytes| self.pages.read(page, bytes);
        let seal = loop {
            match seals.tree.page_seal(page, &mut read) {
                // The node may have moved.
                Err(StoreError::Seal(SealError::Broken { .. })) if seals.moving => {}
                seal => break seal?,
            }
            drop(seals);
            std::thread::yield_now();
            seals = lock(&self.seals);
        };
        let (next, at) = (seals.under_way.get(&page).copied(), seals.tree.shape().content_page(page));
        Ok((Found { seal, next, at, moving: seals.moving }, seals.tree.opener()))
    }

    /// Bytes of the object, by the verified header; the entry may differ after an interrupted
    /// resize.
    #[must_use]
    pub fn size(&self) -> u64 {
        lock(&self.seals).tree.size()
    }

    pub(super) fn is_blank(&self) -> bool {
        lock(&self.seals).tree.is_blank()
    }

    /// The present state, for an anchor.
    #[must_use]
    pub fn state(&self) -> AnchorRecord {
        lock(&self.seals).tree.state()
    }

    /// See [`Tree::counted`].
    pub fn counted(&self, record: AnchorRecord, value: u64) -> Result<AnchorRecord> {
        lock(&self.seals).tree.counted(record, value)
    }

    /// See [`Tree::judge_count`].
    pub fn judge_count(&self, record: &AnchorRecord, counter: u64) -> Result<()> {
        lock(&self.seals).tree.judge_count(record, counter)
    }

    /// The identity in the root; `None`: an earlier release made the object.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        lock(&self.seals).tree.identity().copied()
    }

    /// Whether the header says that it has an anchor.
    #[must_use]
    pub fn is_anchored(&self) -> bool {
        lock(&self.seals).tree.is_anchored()
    }

    pub(super) fn rotate(
        &self,
        object: &Located,
        owners: (&[&SealKey], Option<&SealKey>),
        put: PutPage<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tree> {
        let mut read = |page, bytes: &mut PageBytes| self.pages.read(page, bytes);
        self.unless_moved(|| {
            let key_page = self.key_page(object)?;
            lock(&self.seals).tree.rotate(&key_page, owners, &mut read, put, progress)
        })
    }

    pub(super) fn follow(&self, tree: Tree) {
        lock(&self.seals).tree = tree;
    }

    pub(super) fn head(&self, heading: Heading, start: u64, batch: &mut Batch) -> Result<Change> {
        let (mut seals, mut change) = (lock(&self.seals), Change::default());
        let tree = &mut seals.tree;
        let mut read = |page, bytes: &mut PageBytes| self.pages.read(page, bytes);
        let cleared = match heading {
            Heading::Size(size) => change.resize(tree, size, &mut read)?,
            Heading::Anchored(anchored) => change.anchor(tree, anchored, &mut read).map(|()| None)?,
            Heading::Identity(identity) => change.identify(tree, identity, &mut read).map(|()| None)?,
            Heading::Signer(signer) => change.sign(tree, signer, &mut read).map(|()| None)?,
        };
        if let Some((page, bytes)) = cleared {
            batch.copy_lines(start + tree.shape().content_page(page) * PAGE, &bytes[..]);
        }
        change.finish(tree, &mut read, &mut |page, offset, bytes| {
            batch.copy_lines(start + page * PAGE + offset, bytes);
        })?;
        seals.under_way = change.pages().collect();
        Ok(change)
    }

    /// Reads and verifies a content page.
    ///
    /// # Errors
    /// `Broken`: it does not match its seal, and `bytes` are zeros. The medium's.
    pub fn read(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        self.unless_moved(|| self.read_once(page, bytes))
    }

    fn read_once(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        let (found, opener) = self.find(page)?;
        if found.next.is_none() {
            if found.seal.is_absent() {
                bytes.fill(0);
                return Ok(());
            }
            self.pages.read(found.at, bytes)?;
            if opener.open(page, &found.seal, bytes) {
                return Ok(());
            }
        }
        self.read_changing(page, bytes)
    }

    #[cold]
    fn read_changing(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        let begin = Instant::now();
        let (mut found, mut opener) = self.find(page)?;
        loop {
            // Absent before: bytes are undefined, or the batch's.
            for seal in [Some(found.seal), found.next].into_iter().flatten().filter(|seal| !seal.is_absent())
            {
                self.pages.read_still(found.at, bytes)?;
                if opener.open(page, &seal, bytes) {
                    return Ok(());
                }
            }
            let now = self.find(page)?;
            // A batch may be half applied.
            let applied = found.next.is_some() && !found.seal.is_absent() && begin.elapsed() < APPLIED;
            if now.0 == found && !found.moving && !applied {
                bytes.fill(0);
                return if found.seal.is_absent() { Ok(()) } else { Err(broken(page)) };
            }
            std::thread::yield_now();
            (found, opener) = now;
        }
    }

    fn unless_moved<R>(&self, mut read: impl FnMut() -> Result<R>) -> Result<R> {
        loop {
            let seen = self.live.as_ref().map(LivePages::revision);
            let done = read();
            // This waits for a psync, which may wait for the tree.
            match (&self.live, seen) {
                (Some(live), Some(seen))
                    if done.is_err() && !Mutant::MovedUnseen.is_on() && live.has_moved(seen)? => {}
                _ => return done,
            }
        }
    }

    /// Verifies a content page.
    pub fn verify(&self, page: u64) -> Result<()> {
        self.read(page, &mut PlainPage::new())
    }

    /// Reads whole pages from `first` on.
    pub fn read_all(&self, first: u64, bytes: &mut [u8]) -> Result<()> {
        let (pages, _) = bytes.as_chunks_mut::<{ PAGE as usize }>();
        (first..).zip(pages).try_for_each(|(page, bytes)| self.read(page, bytes))
    }

    pub(super) fn seal(&self, plain: &Batch, start: u64, batch: &mut Batch) -> Result<Change> {
        let mut lines: BTreeMap<u64, Vec<(usize, &[u8])>> = BTreeMap::new();
        for (target, bytes) in plain.redo() {
            for (page, offset, bytes) in by_page(target - start, bytes) {
                lines.entry(page).or_default().push((offset, bytes));
            }
        }
        let mut change = Change::default();
        let mut read = |page, bytes: &mut PageBytes| self.pages.read(page, bytes);
        let mut bytes = PlainPage::new();
        for (page, lines) in lines {
            if lines.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < PAGE as usize {
                self.read(page, &mut bytes)?;
            }
            for (offset, line) in lines {
                bytes[offset..offset + line.len()].copy_from_slice(line);
            }
            let mut seals = lock(&self.seals);
            change.page(&mut seals.tree, page, &mut bytes, &mut read)?;
            batch.copy_lines(start + seals.tree.shape().content_page(page) * PAGE, &bytes[..]);
        }
        let mut seals = lock(&self.seals);
        change.finish(&mut seals.tree, &mut read, &mut |page, offset, bytes| {
            batch.copy_lines(start + page * PAGE + offset, bytes);
        })?;
        seals.under_way = change.pages().collect();
        Ok(change)
    }
}

impl SealedPages {
    /// Lays later psyncs over the pages; returns changed contents. `None`: a new header.
    ///
    /// # Errors
    /// `Broken`: a page does not match its seal with them. The medium's.
    pub(super) fn lay(&self, object: &Located, lines: &Lines) -> Result<Option<Lines>> {
        let mut images = Images::new();
        for (at, bytes) in lines.iter() {
            for (page, offset, bytes) in by_page(at, bytes) {
                let image = match images.entry(page) {
                    Entry::Occupied(image) => image.into_mut(),
                    Entry::Vacant(place) => {
                        let mut image = Box::new([0; PAGE as usize]);
                        self.pages.read(page, &mut image)?;
                        place.insert(image)
                    }
                };
                image[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
        let mut read = |page, bytes: &mut PageBytes| match images.get(&page) {
            Some(image) => {
                bytes.copy_from_slice(&image[..]);
                Ok(())
            }
            None => self.pages.read(page, bytes),
        };
        let mut key_page = Box::new([0; PAGE as usize]);
        read(KEY_PAGE, &mut key_page)?;
        let key_page = KeyPage::read(key_page, object.entry.pages.get())?;
        let mut seals = lock(&self.seals);
        let tree = &mut seals.tree;
        let mut newer = tree.renewed(&key_page, &mut read)?;
        if !newer.is_of_same_object(tree) {
            return Ok(None);
        }
        let changed = changes(&mut newer, tree, &mut read)?;
        *tree = newer;
        lock(&self.pages.laid).append(&mut images);
        Ok(Some(changed))
    }

    /// Takes over the state of `newer`; returns differing contents. `None`: another header.
    pub(super) fn become_newer(&self, newer: &SealedPages) -> Result<Option<Lines>> {
        let (mut seals, mut to) = (lock(&self.seals), lock(&newer.seals));
        let (tree, to) = (&mut seals.tree, &mut to.tree);
        if !to.is_of_same_object(tree) {
            return Ok(None);
        }
        let changed = changes(to, tree, &mut |page, bytes| newer.pages.read(page, bytes))?;
        swap(tree, to);
        swap(&mut *lock(&self.pages.layers), &mut *lock(&newer.pages.layers));
        swap(&mut *lock(&self.pages.laid), &mut *lock(&newer.pages.laid));
        Ok(Some(changed))
    }
}

fn changes(
    newer: &mut Tree,
    older: &mut Tree,
    read: &mut dyn FnMut(u64, &mut PageBytes) -> Result<()>,
) -> Result<Lines> {
    let pages = newer.changed_since(older, read)?;
    let mut lines = Lines::of_pages(pages.len());
    let mut bytes = PlainPage::new();
    for page in pages {
        newer.page(page, &mut bytes, read)?;
        lines.add(0, page * PAGE, &bytes[..]);
    }
    Ok(lines)
}
