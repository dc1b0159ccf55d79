//! A change of the table under construction.
//!
//! Invariants:
//! 1. `root` is the verified root page plus this transaction's changes; `seal_root` writes it back.
//! 2. A page is in exactly one of: an extent (of an object, lane or table chunk), free space.
//! 3. A page of a table chunk is in exactly one of: a tree, the entry slots, the list of free
//!    pages, the unused part of the newest chunk.
//! 4. Every operation starts with at least `SPARE` table pages at hand, so that none fails half-way
//!    for want of a page.
//! 5. Entry slots lie only in pages straight from a chunk: redo of a former node's page would
//!    overwrite progress lines, which are not the table's.

use super::nodes::Nodes;
use crate::error::{Part, Result, StoreError};
use crate::format::root::Root;
use crate::format::{DATA, PAGE, TABLE_ROOT};
use crate::medium::{Medium, PageEdit};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Unpublished changes of the table.
pub struct TableTransaction<'m> {
    pub(super) pages: PageEdit<'m>,
    pub(super) nodes: Option<&'m Nodes>,
    /// The changed root.
    pub root: Root,
    before: Option<Root>,
    pub(super) seed: u64,
    pub(super) pool_len: u64,
}

impl<'m> TableTransaction<'m> {
    /// A transaction of the table on `medium`, for a pool with length `superblock` in its
    /// superblock.
    ///
    /// # Errors
    /// The root page is damaged or unreadable. `Truncated`: the medium is shorter than the pool.
    pub fn begin(medium: &'m dyn Medium, seed: u64, superblock: u64) -> Result<Self> {
        let pages = PageEdit::new(medium);
        let root: Root = pages.read(TABLE_ROOT)?;
        if !root.verify(seed, superblock) {
            return Err(StoreError::damaged(Part::Root, TABLE_ROOT));
        }
        let pool_len = root.pool_len(superblock);
        if pool_len > medium.len() {
            return Err(StoreError::Truncated { pool: pool_len, medium: medium.len() });
        }
        Ok(TableTransaction { pages, nodes: None, root, before: Some(root), seed, pool_len })
    }

    /// Reads nodes through `nodes`, which is up to date.
    #[must_use]
    pub fn with_nodes(self, nodes: &'m Nodes) -> Self {
        TableTransaction { nodes: Some(nodes), ..self }
    }

    /// A transaction of a new table.
    #[must_use]
    pub fn blank(medium: &'m dyn Medium, seed: u64, pool_len: u64, root: Root) -> Self {
        TableTransaction { pages: PageEdit::new(medium), nodes: None, root, before: None, seed, pool_len }
    }

    /// The changed pages.
    pub fn pages_mut(&mut self) -> &mut PageEdit<'m> {
        &mut self.pages
    }

    /// The changed pages, read-only.
    #[must_use]
    pub fn pages(&self) -> &PageEdit<'m> {
        &self.pages
    }

    /// Drops changed nodes from the cache.
    pub fn forget_changed(&self) {
        if let Some(nodes) = self.nodes {
            self.pages.touched().for_each(|page| nodes.forget(page));
        }
    }

    /// Seed of the pool's checksums.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Length of the pool in bytes.
    #[must_use]
    pub fn pool_len(&self) -> u64 {
        self.pool_len
    }

    /// Writes the root into its page, as the last step before publication.
    ///
    /// # Errors
    /// `Damaged`: a damaged table led to an invalid root. Nothing is published.
    pub fn seal_root(&mut self) -> Result<()> {
        self.root = self.root.sealed(self.seed);
        if !self.root.verify(self.seed, self.pool_len) {
            return Err(StoreError::damaged(Part::Root, TABLE_ROOT));
        }
        let root = self.root;
        Ok(self.pages.write(TABLE_ROOT, &root)?)
    }

    /// Whether the root's fields changed.
    #[must_use]
    pub fn root_changed(&self) -> bool {
        self.before.is_none_or(|before| before.as_bytes() != self.root.as_bytes())
    }

    /// Notes that the bytes before `end` may have been written.
    pub fn raise_virgin(&mut self, end: u64) {
        if end > self.root.virgin.get() {
            self.root.virgin = U64::new(end);
        }
    }

    /// Takes a table page that never was one, with the medium's content.
    pub fn take_fresh_page(&mut self) -> Result<u64> {
        let next = self.root.chunk_next.get();
        if next < self.root.chunk_end.get() && next < DATA {
            return Err(StoreError::damaged(Part::Root, TABLE_ROOT));
        }
        if next >= self.root.chunk_end.get() {
            let free = self.root.free_pages.get() * PAGE;
            return Err(StoreError::NoRoom { needed: PAGE, largest: 0, free });
        }
        self.root.chunk_next = U64::new(next + PAGE);
        Ok(next)
    }

    /// Takes a table page, cleared.
    pub fn take_page(&mut self) -> Result<u64> {
        let page = self.root.free_page.get();
        if page == 0 {
            let page = self.take_fresh_page()?;
            self.pages.fresh_page(page, u64::MAX)?;
            return Ok(page);
        }
        let link: U64 = self.pages.read(page)?;
        let sound = link.get() == 0 || (DATA..self.pool_len).contains(&link.get());
        if !sound || !link.get().is_multiple_of(PAGE) {
            return Err(StoreError::damaged(Part::FreeSpace, page));
        }
        self.root.free_page = link;
        self.root.free_page_count = U64::new(self.root.free_page_count.get().saturating_sub(1));
        self.pages.fresh_page(page, u64::MAX)?;
        Ok(page)
    }

    /// Returns a table page.
    pub fn give_page(&mut self, page: u64) -> Result<()> {
        let head = self.root.free_page;
        self.pages.force_first_line(page)?;
        self.pages.write(page, &head)?;
        self.root.free_page = U64::new(page);
        self.root.free_page_count = U64::new(self.root.free_page_count.get().saturating_add(1));
        Ok(())
    }
}
