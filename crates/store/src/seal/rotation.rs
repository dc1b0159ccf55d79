//! Key rotation: seals all pages anew, in another place. Seal ID and versions continue, for
//! anchors.

use super::PageBytes;
use super::aead::{Nonces, Sealer};
use super::key::{ObjectKey, SealKey};
use super::key_page::{KeyPage, NO_LASTING_KEY, SlotInfo, head};
use super::secret::PlainPage;
use super::tree::{ReadPage, Tree};
use crate::error::Result;
use crate::format::seal::{ARITY, Header, Seal};
use crate::format::{LINE, PAGE};
use crate::mutant::Mutant;
use std::collections::BTreeMap;
use zerocopy::little_endian::U64;

/// Receives a page of the new object.
pub type PutPage<'p> = &'p mut dyn FnMut(u64, &PageBytes) -> Result<()>;

impl KeyPage {
    /// The slots that these keys open and a [rotation](Tree::rotate) keeps, each with the index of
    /// its key.
    ///
    /// # Errors
    /// As for [`open`](KeyPage::open), of the first key that opens none.
    pub fn opened_by(&self, owners: &[&SealKey]) -> Result<Vec<(SlotInfo, usize)>> {
        let opened = owners.iter().enumerate().map(|(nth, owner)| Ok((self.open_slot(owner)?.0, nth)));
        let mut slots = opened.collect::<Result<Vec<_>>>()?;
        slots.sort_by_key(|(slot, _)| slot.slot);
        slots.dedup_by_key(|(slot, _)| slot.slot);
        Ok(slots)
    }
}

impl Tree {
    /// Hands out all present pages, sealed by a new key, which the slots that `owners` open get;
    /// others go. `new` takes the slot of the first owner. Returns the new tree.
    ///
    /// # Errors
    /// `Broken`; those of `read` and `put`. `BadKey`: no owner with a lasting slot. `WrongKey`: one
    /// opens no slot. `SignKeyNeeded`. No random numbers.
    pub fn rotate(
        &mut self,
        key_page: &KeyPage,
        (owners, new): (&[&SealKey], Option<&SealKey>),
        read: ReadPage<'_>,
        put: PutPage<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tree> {
        let slots = key_page.opened_by(owners)?;
        if !slots.iter().any(|(slot, _)| slot.lasts()) {
            return Err(NO_LASTING_KEY.into());
        }
        let next = |owner: usize| new.filter(|_| owner == 0).unwrap_or(owners[owner]);
        if key_page.is_erasable() {
            slots.iter().try_for_each(|(_, owner)| next(*owner).clone().erasable().map(drop))?;
        }
        let key =
            if Mutant::KeyKept.is_on() { key_page.open(owners[slots[0].1])? } else { ObjectKey::new()? };
        let rotations = U64::new(self.header.rotations.get().saturating_add(1));
        let header = Header { rotations, ..self.header };
        let (sealer, nonces) = (Sealer::new(&key, &header), Nonces::default());
        let mut rotation = Rotation { sealer, nonces, nodes: BTreeMap::new() };
        let all = self.shape.content();
        for leaf in 0..self.shape.nodes(0) {
            if self.has(0, leaf, read)? {
                rotation.leaf(self, leaf, read, put)?;
            }
            progress(((leaf + 1) * ARITY).min(all), all);
        }
        let identity = self.identity;
        let root = rotation.finish(self, &head(&header, identity.as_ref()), read, put)?;
        let mut page = KeyPage::of(header, identity.as_ref(), &root);
        page.sign(self.signer.as_ref())?;
        for (slot, owner) in slots {
            page.add_first(&key, next(owner), (&slot.label, slot.expires.unwrap_or(0)), 0)?;
        }
        put(self.shape.key_page(), page.bytes())?;
        let (sealer, signer) = (rotation.sealer.into(), self.signer.clone());
        Ok(Tree { sealer, shape: self.shape, header, identity, root, signer, nodes: BTreeMap::new() })
    }
}

struct Rotation {
    sealer: Sealer,
    nonces: Nonces,
    nodes: BTreeMap<(u32, u64), Box<PageBytes>>,
}

impl Rotation {
    fn leaf(&mut self, tree: &mut Tree, leaf: u64, read: ReadPage<'_>, put: PutPage<'_>) -> Result<()> {
        let mut seals = Box::new([0; PAGE as usize]);
        let mut bytes = PlainPage::new();
        for page in leaf * ARITY..((leaf + 1) * ARITY).min(tree.shape.content()) {
            let old = tree.seal(0, page, read)?;
            if old.is_absent() {
                continue;
            }
            tree.page(page, &mut bytes, read)?;
            let seal = self.sealer.seal(page, old.version.get() + 1, &mut bytes, &mut self.nonces)?;
            put(tree.shape.content_page(page), &bytes)?;
            place(&mut seals, page, &seal);
        }
        self.nodes.insert((0, leaf), seals);
        if tree.shape.top() > 0 { self.node(tree, (0, leaf), read, put) } else { Ok(()) }
    }

    fn node(&mut self, tree: &mut Tree, at: (u32, u64), read: ReadPage<'_>, put: PutPage<'_>) -> Result<()> {
        let Some(bytes) = self.nodes.remove(&at) else { return Ok(()) };
        let (level, index) = at;
        let version = tree.seal(level + 1, index, read)?.version.get() + 1;
        let seal = self.sealer.seal_node(at, version, None, &bytes, &mut self.nonces)?;
        put(tree.shape.page(level, index), &bytes)?;
        let above = self.nodes.entry((level + 1, index / ARITY));
        place(above.or_insert_with(|| Box::new([0; PAGE as usize])), index, &seal);
        Ok(())
    }

    fn finish(&mut self, tree: &mut Tree, head: &[u8], read: ReadPage<'_>, put: PutPage<'_>) -> Result<Seal> {
        let top = tree.shape.top();
        for level in 1..top {
            let nodes: Vec<u64> =
                self.nodes.range((level, 0)..=(level, u64::MAX)).map(|((_, index), _)| *index).collect();
            for index in nodes {
                self.node(tree, (level, index), read, put)?;
            }
        }
        let bytes = self.nodes.remove(&(top, 0)).unwrap_or_else(|| Box::new([0; PAGE as usize]));
        put(tree.shape.page(top, 0), &bytes)?;
        let version = if Mutant::VersionRewound.is_on() { 1 } else { tree.version() + 1 };
        self.sealer.seal_node((top, 0), version, Some(head), &bytes, &mut self.nonces)
    }
}

fn place(node: &mut PageBytes, index: u64, seal: &Seal) {
    let at = (index % ARITY * LINE) as usize;
    node[at..at + LINE as usize].copy_from_slice(&Tree::line(seal));
}
