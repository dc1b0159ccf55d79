//! New headers, also with other sizes: new pages are absent, lost pages become absent first.

use super::key_page::TOO_LONG;
use super::secret::PlainPage;
use super::signature::Signer;
use super::tree::ReadPage;
use super::{Change, PageBytes, Tree};
use crate::error::{Result, SealError};
use crate::format::seal::{ARITY, FLAG_ANCHORED, FLAG_IDENTITY, Header, Identity, Shape};
use crate::format::{LINE, PAGE, pages_for};
use crate::mutant::Mutant;
use zerocopy::little_endian::{U32, U64};

impl Change {
    /// Sets the object's size; bytes behind the old or new end are gone. Returns the changed
    /// content page, encrypted, if any.
    ///
    /// # Errors
    /// As for [`page`](Change::page); `BadKey`: impossible size.
    pub fn resize(
        &mut self,
        tree: &mut Tree,
        size: u64,
        read: ReadPage<'_>,
    ) -> Result<Option<(u64, Box<PageBytes>)>> {
        let shape = Shape::of(pages_for(size)).ok_or(SealError::BadKey { why: TOO_LONG })?;
        let header = Header { size: U64::new(size), content: U64::new(shape.content()), ..tree.header };
        let page = self.clear_end(tree, size.min(tree.size()), read)?;
        self.cut(tree, shape, read)?;
        self.head(tree, (header, shape), read)?;
        Ok(page)
    }

    /// Records whether the object has an anchor.
    pub fn anchor(&mut self, tree: &mut Tree, anchored: bool, read: ReadPage<'_>) -> Result<()> {
        let others = tree.header.flags.get() & !FLAG_ANCHORED;
        let flags = U32::new(others | if anchored { FLAG_ANCHORED } else { 0 });
        self.head(tree, (Header { flags, ..tree.header }, tree.shape), read)
    }

    /// Replaces a signed object's signer.
    ///
    /// # Errors
    /// `NotSigned`; as for [`page`](Change::page).
    pub fn sign(&mut self, tree: &mut Tree, signer: Signer, read: ReadPage<'_>) -> Result<()> {
        if tree.signer.is_none() {
            return Err(SealError::NotSigned.into());
        }
        self.signer = Some(signer);
        self.head(tree, (tree.header, tree.shape), read)
    }

    /// Lets the root authenticate `identity`.
    pub fn identify(&mut self, tree: &mut Tree, identity: Identity, read: ReadPage<'_>) -> Result<()> {
        self.identity = Some(identity);
        let flags = U32::new(tree.header.flags.get() | FLAG_IDENTITY);
        self.head(tree, (Header { flags, ..tree.header }, tree.shape), read)
    }

    fn head(&mut self, tree: &mut Tree, (header, shape): (Header, Shape), read: ReadPage<'_>) -> Result<()> {
        self.node(tree, (shape.top().min(tree.shape.top()), 0), read)?;
        self.header = Some((header, shape));
        Ok(())
    }

    fn clear_end(
        &mut self,
        tree: &mut Tree,
        end: u64,
        read: ReadPage<'_>,
    ) -> Result<Option<(u64, Box<PageBytes>)>> {
        let (page, from) = (end / PAGE, (end % PAGE) as usize);
        if from == 0 {
            return Ok(None);
        }
        let mut bytes = PlainPage::new();
        tree.page(page, &mut bytes, read)?;
        if bytes[from..].iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        bytes[from..].fill(0);
        self.page(tree, page, &mut bytes, read)?;
        Ok(Some((page, Box::new(*bytes))))
    }

    fn cut(&mut self, tree: &mut Tree, shape: Shape, read: ReadPage<'_>) -> Result<()> {
        let mut below = shape.content();
        if below >= tree.shape.content() || Mutant::CutKept.is_on() {
            return Ok(());
        }
        for level in 0..=shape.top() {
            let (index, first) = (below / ARITY, below % ARITY);
            if first != 0 && tree.has(level, index, read)? {
                let (bytes, lines) = self.node(tree, (level, index), read)?;
                bytes[(first * LINE) as usize..].fill(0);
                *lines |= u64::MAX << first;
            }
            below = shape.nodes(level);
        }
        Ok(())
    }
}
