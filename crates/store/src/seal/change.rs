//! A sealed object's change by one batch: new ciphertext and seals up to the root. The tree accepts
//! it once the batch is durable.

use super::PageBytes;
use super::aead::Nonces;
use super::key_page::head;
use super::signature::{Signed, Signer};
use super::tree::{ReadPage, Tree};
use crate::error::Result;
use crate::format::seal::{ARITY, Header, IDENTITY, Identity, ROOT, SIGNATURE, Seal, Shape};
use crate::format::{LINE, PAGE};
use crate::mutant::Mutant;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use zerocopy::IntoBytes;

const WHOLE: u64 = u64::MAX;

/// Receives lines of the object: page, offset in it, bytes.
pub type PutLines<'p> = &'p mut dyn FnMut(u64, u64, &[u8]);

/// A change; see the module. Dropped, it has no effect, and its nonces are never used again.
#[derive(Default)]
pub struct Change {
    /// Changed nodes by level and index, with bits of the changed lines.
    pub(super) nodes: BTreeMap<(u32, u64), (Box<PageBytes>, u64)>,
    pub(super) header: Option<(Header, Shape)>,
    pub(super) identity: Option<Identity>,
    root: Option<Seal>,
    pub(super) signer: Option<Signer>,
    signature: Option<Signed>,
    nonces: Nonces,
}

impl Change {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.header.is_none()
    }

    /// The new seal of the root.
    #[must_use]
    pub fn root(&self) -> Option<&Seal> {
        self.root.as_ref()
    }

    /// The new signature of a signed object's root.
    #[must_use]
    pub fn signature(&self) -> Option<&Signed> {
        self.signature.as_ref()
    }

    /// Changed content pages with their new seals.
    pub fn pages(&self) -> impl Iterator<Item = (u64, Seal)> + '_ {
        let leaves = self.nodes.range((0, 0)..=(0, u64::MAX));
        leaves.flat_map(|((_, index), (bytes, lines))| {
            let changed = (0..ARITY).filter(move |line| lines >> line & 1 == 1);
            changed.map(move |line| (index * ARITY + line, Tree::seal_in(bytes, line)))
        })
    }

    /// The new header.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref().map(|(header, _)| header)
    }

    /// Encrypts `bytes` in place as content page `page`, and seals it.
    ///
    /// # Errors
    /// `Broken`: nodes above it. The medium's. No random numbers. `SignKeyNeeded`.
    pub fn page(
        &mut self,
        tree: &mut Tree,
        page: u64,
        bytes: &mut PageBytes,
        read: ReadPage<'_>,
    ) -> Result<()> {
        let version = tree.seal(0, page, read)?.version.get() + 1;
        let sealer = tree.sealer.clone();
        let seal = if Mutant::LanePlain.is_on() {
            sealer.seal(page, version, &mut bytes.clone(), &mut self.nonces)?
        } else {
            sealer.seal(page, version, bytes, &mut self.nonces)?
        };
        self.put(tree, 0, page, &seal, read)
    }

    /// Seals changed nodes up to the root; hands out the changed lines.
    pub fn finish(&mut self, tree: &mut Tree, read: ReadPage<'_>, put: PutLines<'_>) -> Result<()> {
        let sealer = tree.sealer.clone();
        let (header, shape) = self.header.unwrap_or((tree.header, tree.shape));
        let head = head(&header, self.identity.as_ref().or(tree.identity.as_ref()));
        let (old_top, top) = (tree.shape.top(), shape.top());
        for level in 0..=top {
            let changed: Vec<u64> =
                self.nodes.range((level, 0)..=(level, u64::MAX)).map(|((_, index), _)| *index).collect();
            for index in changed {
                let is_top = level == top;
                // The root's version continues whichever node is the top.
                let of_root = is_top || level >= old_top;
                let old = if of_root { tree.root } else { tree.seal(level + 1, index, read)? };
                let head = is_top.then_some(&head[..]);
                let Some((bytes, lines)) = self.nodes.get(&(level, index)) else { continue };
                let version = old.version.get() + 1;
                let seal = sealer.seal_node((level, index), version, head, bytes, &mut self.nonces)?;
                put_lines(shape.page(level, index), bytes, *lines, put);
                if is_top {
                    self.root = Some(seal);
                } else {
                    self.put(tree, level + 1, index, &seal, read)?;
                }
            }
        }
        if let Some((header, shape)) = self.header.as_ref().filter(|_| !Mutant::SizeApart.is_on()) {
            put(shape.key_page(), 0, header.as_bytes());
        }
        if let Some(identity) = &self.identity {
            put(shape.key_page(), IDENTITY as u64, identity.as_bytes());
        }
        if let Some(root) = self.root.filter(|_| !Mutant::RootApart.is_on()) {
            put(tree.shape.key_page(), ROOT as u64, root.as_bytes());
        }
        if let (Some(root), Some(signer)) = (&self.root, self.signer.as_ref().or(tree.signer.as_ref())) {
            let signature = self.signature.insert(signer.sign(&head, root)?);
            if !Mutant::SignatureApart.is_on() {
                put(tree.shape.key_page(), SIGNATURE as u64, signature);
            }
        }
        Ok(())
    }

    /// Updates the tree once the batch is durable.
    pub fn accept(self, tree: &mut Tree) {
        if let Some((header, shape)) = self.header {
            (tree.header, tree.shape) = (header, shape);
            tree.nodes.retain(|page, _| *page < shape.pages());
        }
        tree.identity = self.identity.or(tree.identity);
        for ((level, index), (bytes, _)) in self.nodes {
            tree.nodes.insert(tree.shape.page(level, index), bytes);
        }
        if let Some(root) = self.root {
            tree.root = root;
        }
        if self.signer.is_some() {
            tree.signer = self.signer;
        }
    }

    fn put(
        &mut self,
        tree: &mut Tree,
        level: u32,
        child: u64,
        seal: &Seal,
        read: ReadPage<'_>,
    ) -> Result<()> {
        let (index, line) = (child / ARITY, child % ARITY);
        let (bytes, lines) = self.node(tree, (level, index), read)?;
        let at = (line * LINE) as usize;
        bytes[at..at + LINE as usize].copy_from_slice(&Tree::line(seal));
        *lines |= 1 << line;
        Ok(())
    }

    /// An absent node is written whole.
    pub(super) fn node(
        &mut self,
        tree: &mut Tree,
        (level, index): (u32, u64),
        read: ReadPage<'_>,
    ) -> Result<&mut (Box<PageBytes>, u64)> {
        Ok(match self.nodes.entry((level, index)) {
            Entry::Occupied(place) => place.into_mut(),
            Entry::Vacant(place) => {
                let absent = !tree.has(level, index, read)?;
                let (bytes, lines) =
                    if absent { ([0; PAGE as usize], WHOLE) } else { (*tree.node(level, index, read)?, 0) };
                place.insert((Box::new(bytes), lines))
            }
        })
    }
}

fn put_lines(page: u64, bytes: &PageBytes, lines: u64, put: PutLines<'_>) {
    if lines == WHOLE {
        put(page, 0, bytes);
        return;
    }
    for line in (0..ARITY).filter(|line| lines >> line & 1 == 1) {
        let at = (line * LINE) as usize;
        put(page, line * LINE, &bytes[at..at + LINE as usize]);
    }
}
