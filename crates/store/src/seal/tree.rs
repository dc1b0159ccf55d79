//! The tree of seals: a leaf has the seals of pages, a node those of the nodes below, the key page
//! that of the top. Nodes are verified on first use, and kept. An absent page or subtree is zeros,
//! and not read.

use super::PageBytes;
use super::aead::Sealer;
use super::anchor::{AnchorRecord, Count};
use super::key::ObjectKey;
use super::key_page::{KeyPage, NO_KEY_PAGE, head};
use super::signature::Signer;
use crate::error::{Result, SealError, StoreError};
use crate::format::seal::{ARITY, FLAG_ANCHORED, Header, Identity, Seal, Shape};
use crate::format::{LINE, PAGE};
use crate::mutant::Mutant;
use std::collections::BTreeMap;
use std::sync::Arc;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Reads a page of the object from the pool.
pub type ReadPage<'r> = &'r mut dyn FnMut(u64, &mut PageBytes) -> Result<()>;

/// Decrypts an object's content pages.
#[derive(Clone)]
pub struct Opener(Arc<Sealer>);

impl Opener {
    /// Decrypts page `page` by its verified seal; `false`: no match, and `bytes` is zeros.
    #[must_use]
    pub fn open(&self, page: u64, seal: &Seal, bytes: &mut PageBytes) -> bool {
        let opened = self.0.open(page, seal, bytes);
        if !opened {
            bytes.fill(0);
        }
        opened
    }
}

pub(crate) fn broken(page: u64) -> StoreError {
    SealError::Broken { page, what: "of its contents" }.into()
}

/// The verified seals of an object.
pub struct Tree {
    pub(super) sealer: Arc<Sealer>,
    pub(super) shape: Shape,
    pub(super) header: Header,
    pub(super) identity: Option<Identity>,
    pub(super) root: Seal,
    pub(super) signer: Option<Signer>,
    pub(super) nodes: BTreeMap<u64, Box<PageBytes>>,
}

impl Tree {
    /// The tree of the object with this key page, with a verified top.
    ///
    /// # Errors
    /// `Broken`: the key page or the top node. `VerifyKeyNeeded`, `NotSigned`, `BadSignature`:
    /// `signer` does not accept it. The medium's.
    pub fn open(
        page: &KeyPage,
        key: &ObjectKey,
        signer: Option<&Signer>,
        read: ReadPage<'_>,
    ) -> Result<Tree> {
        Tree::begin(page, Arc::new(Sealer::new(key, page.header())), signer, read)
    }

    pub(super) fn begin(
        page: &KeyPage,
        sealer: Arc<Sealer>,
        signer: Option<&Signer>,
        read: ReadPage<'_>,
    ) -> Result<Tree> {
        let (shape, header, root, identity) = (page.shape()?, *page.header(), page.root(), page.identity());
        let (signer, nodes) = (signer.cloned(), BTreeMap::new());
        let mut tree = Tree { sealer, shape, header, identity, root, signer, nodes };
        Signer::judge(tree.signer.as_ref(), (&tree.head(), &tree.root), page.signature().as_ref())?;
        if !page.is_signed() && tree.root.hash != [0; 16] {
            return Err(NO_KEY_PAGE.into());
        }
        tree.node(shape.top(), 0, read)?;
        Ok(tree)
    }

    /// Places of the object's pages.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The seal ID.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.header.id
    }

    /// Bytes of the object.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.header.size.get()
    }

    /// The authenticated identity, if any.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    fn head(&self) -> Vec<u8> {
        head(&self.header, self.identity.as_ref())
    }

    pub(crate) fn is_blank(&self) -> bool {
        let top = self.nodes.get(&self.shape.page(self.shape.top(), 0));
        top.is_some_and(|node| node.iter().all(|byte| *byte == 0))
    }

    /// Whether the header says that the object has an anchor.
    #[must_use]
    pub fn is_anchored(&self) -> bool {
        self.header.flags.get() & FLAG_ANCHORED != 0
    }

    /// The present state, for an anchor.
    #[must_use]
    pub fn state(&self) -> AnchorRecord {
        let (id, version, tag) = (self.header.id, self.version(), self.root.tag);
        AnchorRecord { id, version, tag, left: false, count: None }
    }

    /// Numbers and proves a record, for an anchor with a counter.
    ///
    /// # Errors
    /// No random numbers.
    pub fn counted(&self, record: AnchorRecord, value: u64) -> Result<AnchorRecord> {
        let proof = self.sealer.prove(&record.counted(value))?;
        Ok(AnchorRecord { count: Some(Count { value, proof }), ..record })
    }

    /// Refuses a record that is not the newest by its anchor's `counter`.
    ///
    /// # Errors
    /// `RecordBehind`; `BadAnchor`: not counted, or not made with the object's key.
    pub fn judge_count(&self, record: &AnchorRecord, counter: u64) -> Result<()> {
        record.judge_count(counter, |text, proof| self.sealer.is_proof(text, proof))
    }

    /// Number of times the root was sealed.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.root.version.get()
    }

    /// Reads content page `page`.
    ///
    /// # Errors
    /// `Broken`: it or a node above it; `bytes` are zeros. The medium's.
    pub fn page(&mut self, page: u64, bytes: &mut PageBytes, read: ReadPage<'_>) -> Result<()> {
        let seal = self.page_seal(page, read)?;
        if seal.is_absent() {
            bytes.fill(0);
            return Ok(());
        }
        read(self.shape.content_page(page), bytes)?;
        if self.opener().open(page, &seal, bytes) { Ok(()) } else { Err(broken(page)) }
    }

    /// The verified seal of content page `page`.
    ///
    /// # Errors
    /// `Broken`: a node above it. The medium's.
    pub fn page_seal(&mut self, page: u64, read: ReadPage<'_>) -> Result<Seal> {
        self.seal(0, page, read)
    }

    /// Decrypts content pages, for threads without the tree.
    #[must_use]
    pub fn opener(&self) -> Opener {
        Opener(self.sealer.clone())
    }

    pub(super) fn seal(&mut self, level: u32, index: u64, read: ReadPage<'_>) -> Result<Seal> {
        Ok(Tree::seal_in(self.node(level, index / ARITY, read)?, index % ARITY))
    }

    pub(super) fn seal_in(node: &PageBytes, line: u64) -> Seal {
        let at = (line * LINE) as usize;
        Seal::read_from_bytes(&node[at..at + LINE as usize]).unwrap_or_else(|_| Seal::new_zeroed())
    }

    pub(super) fn has(&mut self, level: u32, index: u64, read: ReadPage<'_>) -> Result<bool> {
        let top = self.shape.top();
        if level >= top {
            return Ok((level, index) == (top, 0));
        }
        Ok(index < self.shape.nodes(level) && !self.seal(level + 1, index, read)?.is_absent())
    }

    pub(super) fn node(&mut self, level: u32, index: u64, read: ReadPage<'_>) -> Result<&PageBytes> {
        let page = self.shape.page(level, index);
        if !self.nodes.contains_key(&page) {
            let is_top = level == self.shape.top();
            let seal = if is_top { self.root } else { self.seal(level + 1, index, read)? };
            let mut bytes = Box::new([0; PAGE as usize]);
            if is_top || !seal.is_absent() {
                read(page, &mut bytes)?;
                let head = is_top.then(|| self.head());
                let blank = Mutant::AbsentUnsealed.is_on() && bytes.iter().all(|byte| *byte == 0);
                if !blank && !self.sealer.verifies((level, index), &seal, head.as_deref(), &bytes) {
                    let what = if is_top {
                        "of its extent, the top of its tree of seals (or its key page)"
                    } else {
                        "of its extent, a node of its tree of seals"
                    };
                    return Err(SealError::Broken { page, what }.into());
                }
            }
            self.nodes.insert(page, bytes);
        }
        Ok(&self.nodes[&page])
    }

    pub(super) fn line(seal: &Seal) -> [u8; LINE as usize] {
        let mut line = [0; LINE as usize];
        line.copy_from_slice(seal.as_bytes());
        line
    }
}
