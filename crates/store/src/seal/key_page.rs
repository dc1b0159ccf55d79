use super::PageBytes;
use super::aead::{Nonces, Sealer};
use super::blobs;
use super::cipher;
use super::key::{Cost, ObjectKey, Owned, SealKey};
use super::secret::{Secret, scrub_stack_deep};
use super::signature::{Signed, Signer};
use super::slots::{self, is_intact, sum};
use crate::entropy::{now, random};
use crate::error::{Result, SealError, StoreError};
use crate::format::seal::{
    FLAG_ANCHORED, FLAG_ERASABLE, FLAG_IDENTITY, FLAG_SIGNED, Header, IDENTITY, Identity, KEY_PAGE, KeySlot,
    MAGIC, ROOT, SIGNATURE, SIGNATURE_LEN, SLOT_BLOB, SLOT_COUNT, SLOT_EMPTY, SLOT_KEY_FILE, SLOT_PASSPHRASE,
    SLOT_TPM, SLOTS, SUITE, Seal, Shape, VERSION,
};
use crate::format::{LINE, PAGE, pages_for};
use std::sync::Arc;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

pub(super) const TOO_LONG: &str = "a sealed object has from 1 byte to 64 TiB";
pub(super) const NO_LASTING_KEY: SealError =
    SealError::BadKey { why: "a sealed object has at least one key that does not expire" };
const ONE_KEY: SealError = SealError::BadKey {
    why: "an erasable object has one key slot: a key file, without expiry, that its next one replaces as the object is sealed anew",
};
pub(super) const NO_KEY_PAGE: SealError =
    SealError::Broken { page: KEY_PAGE, what: "of its extent, its key page" };

/// A key page. Only the root's seal proves the header; each slot proves itself.
#[derive(Clone)]
pub struct KeyPage {
    bytes: Box<PageBytes>,
    header: Header,
}

/// A slot, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotInfo {
    /// Slot number.
    pub slot: usize,
    /// `SLOT_*`.
    pub kind: u16,
    /// Creation, in seconds since 1970.
    pub created: u64,
    /// Label.
    pub label: String,
    /// Expiry, in seconds since 1970; `None`: never.
    pub expires: Option<u64>,
    /// Whether it is damaged.
    pub damaged: bool,
}

impl SlotInfo {
    /// Whether it has expired.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.expires.is_some_and(|expires| now() >= expires)
    }

    pub(super) fn lasts(&self) -> bool {
        !self.damaged && self.kind != SLOT_EMPTY && self.expires.is_none()
    }

    /// Kind in words.
    #[must_use]
    pub fn kind_word(&self) -> String {
        match self.kind {
            SLOT_KEY_FILE => "key file".to_owned(),
            SLOT_PASSPHRASE => "passphrase".to_owned(),
            SLOT_TPM => "TPM".to_owned(),
            other => format!("kind {other}"),
        }
    }
}

impl KeyPage {
    /// Page of a new zeroed object of `size` bytes for these owners, and its key. The root
    /// authenticates `identity`.
    ///
    /// # Errors
    /// `BadKey`: no key, no lasting key, or an unusable one. `NoSlot`: too many. No random numbers.
    pub fn new(size: u64, identity: &Identity, keys: &[(&SealKey, &str)]) -> Result<(KeyPage, ObjectKey)> {
        if keys.is_empty() {
            return Err(SealError::BadKey { why: "a sealed object has at least one key" }.into());
        }
        if keys.iter().any(|(key, _)| key.meant().is_named()) {
            let why = "a new object is sealed under its own name, and a key is given for one that was sealed under another";
            return Err(SealError::BadKey { why }.into());
        }
        let erasable = keys.iter().any(|(key, _)| key.erasable);
        if erasable && keys.len() > 1 {
            return Err(ONE_KEY.into());
        }
        let signer = signer_of(keys)?;
        let (key, id) = (ObjectKey::new()?, random()?);
        let header = Header {
            magic: U32::new(MAGIC),
            version: U16::new(VERSION),
            suite: U16::new(SUITE),
            granule: U32::new(PAGE as u32),
            flags: U32::new(
                FLAG_IDENTITY
                    | if signer.is_some() { FLAG_SIGNED } else { 0 }
                    | if erasable { FLAG_ERASABLE } else { 0 },
            ),
            id,
            size: U64::new(size),
            content: U64::new(pages_for(size)),
            ..Header::new_zeroed()
        };
        let shape = Shape::of(pages_for(size)).ok_or(SealError::BadKey { why: TOO_LONG })?;
        let (top, blank, nonces) = ((shape.top(), 0), [0; PAGE as usize], &mut Nonces::default());
        let head = head(&header, Some(identity));
        let root = Sealer::new(&key, &header).seal_node(top, 1, Some(&head), &blank, nonces)?;
        let mut page = KeyPage::of(header, Some(identity), &root);
        page.sign(signer)?;
        for (owner, label) in keys {
            page.add_first(&key, owner, (label, owner.expires), 0)?;
        }
        page.expect_lasting()?;
        Ok((page, key))
    }

    pub(super) fn of(header: Header, identity: Option<&Identity>, root: &Seal) -> KeyPage {
        let mut bytes = Box::new([0; PAGE as usize]);
        bytes[..LINE as usize].copy_from_slice(header.as_bytes());
        if let Some(identity) = identity {
            bytes[IDENTITY..IDENTITY + LINE as usize].copy_from_slice(identity.as_bytes());
        }
        bytes[ROOT..ROOT + LINE as usize].copy_from_slice(root.as_bytes());
        KeyPage { bytes, header }
    }

    /// Parses a key page of an object with `pages` pages.
    ///
    /// # Errors
    /// `Unknown`: a later release's. `Broken`: invalid, or the object exceeds its extent.
    pub fn read(bytes: Box<PageBytes>, pages: u64) -> Result<KeyPage> {
        let Ok((header, _)) = Header::read_from_prefix(&bytes[..]) else { return Err(NO_KEY_PAGE.into()) };
        if header.magic.get() != MAGIC {
            return Err(NO_KEY_PAGE.into());
        }
        let unknown = |what, number| Err(SealError::Unknown { what, number }.into());
        if header.version.get() != VERSION {
            return unknown("layout of sealing", u32::from(header.version.get()));
        }
        if header.suite.get() != SUITE {
            return unknown("cipher suite", u32::from(header.suite.get()));
        }
        if header.granule.get() != PAGE as u32 {
            return unknown("unit of sealing", header.granule.get());
        }
        if header.flags.get() & !(FLAG_ANCHORED | FLAG_SIGNED | FLAG_IDENTITY | FLAG_ERASABLE) != 0 {
            return unknown("set of flags", header.flags.get());
        }
        let has = |flag| header.flags.get() & flag != 0;
        let unsigned = SIGNATURE..if has(FLAG_SIGNED) { SIGNATURE } else { SIGNATURE + SIGNATURE_LEN };
        let behind = if has(FLAG_IDENTITY) { IDENTITY + LINE as usize } else { IDENTITY };
        let mut unused = bytes[unsigned].iter().chain(&bytes[behind..SLOTS]);
        let (size, content) = (header.size.get(), header.content.get());
        let fits = Shape::of(content).is_some_and(|shape| shape.pages() <= pages);
        if !fits || size == 0 || pages_for(size) != content || unused.any(|byte| *byte != 0) {
            return Err(NO_KEY_PAGE.into());
        }
        Ok(KeyPage { bytes, header })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &PageBytes {
        &self.bytes
    }

    pub(super) fn shape(&self) -> Result<Shape> {
        let content = self.header.content.get();
        Shape::of(content).ok_or(SealError::BadKey { why: TOO_LONG }.into())
    }

    pub(super) fn root(&self) -> Seal {
        Seal::read_from_bytes(&self.bytes[ROOT..ROOT + LINE as usize]).unwrap_or_else(|_| Seal::new_zeroed())
    }

    /// Whether the header says that the object is signed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.header.flags.get() & FLAG_SIGNED != 0
    }

    /// Whether the header says that the object is [erasable](SealKey::erasable).
    #[must_use]
    pub fn is_erasable(&self) -> bool {
        self.header.flags.get() & FLAG_ERASABLE != 0
    }

    fn expect_several_keys(&self) -> Result<()> {
        if self.is_erasable() { Err(ONE_KEY.into()) } else { Ok(()) }
    }

    pub(super) fn signature(&self) -> Option<Signed> {
        self.bytes[SIGNATURE..].first_chunk().copied().filter(|_| self.is_signed())
    }

    /// The object's identity, if stated.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        let is_there = self.header.flags.get() & FLAG_IDENTITY != 0;
        Identity::read_from_prefix(&self.bytes[IDENTITY..]).ok().map(|(found, _)| found).filter(|_| is_there)
    }

    pub(super) fn sign(&mut self, signer: Option<&Signer>) -> Result<()> {
        if let Some(signer) = signer {
            let head = head(&self.header, self.identity().as_ref());
            let signature = signer.sign(&head, &self.root())?;
            self.bytes[SIGNATURE..SIGNATURE + SIGNATURE_LEN].copy_from_slice(&signature);
        }
        Ok(())
    }

    fn slot(&self, slot: usize) -> KeySlot {
        slots::slot(&self.bytes, slot)
    }

    fn put(&mut self, slot: usize, with: &KeySlot) {
        slots::put(&mut self.bytes, slot, with);
    }

    /// Slots in use, without intact parts of blobs.
    #[must_use]
    pub fn slots(&self) -> Vec<SlotInfo> {
        let all = (0..SLOT_COUNT).map(|slot| (slot, self.slot(slot)));
        let used = all.filter(|(_, found)| found.as_bytes().iter().any(|byte| *byte != 0));
        used.filter(|(_, found)| found.kind.get() != SLOT_BLOB || !is_intact(found))
            .map(|(slot, found)| {
                let label = found.label.split(|byte| *byte == 0).next().unwrap_or_default();
                let lacks_blob = || found.kind.get() == SLOT_TPM && blobs::read(&self.bytes, slot).is_none();
                SlotInfo {
                    slot,
                    kind: found.kind.get(),
                    created: found.created.get(),
                    label: String::from_utf8_lossy(label).into_owned(),
                    expires: Some(found.expires.get()).filter(|expires| *expires != 0),
                    damaged: !is_intact(&found) || lacks_blob(),
                }
            })
            .collect()
    }

    /// The object's key by an owner's, from a slot of its kind.
    ///
    /// # Errors
    /// `WrongKey`. `Expired`: the matching slot. `Broken`: a slot is damaged, and no other opens.
    /// `BadKey`. `Device`: it opens no slot.
    pub fn open(&self, owner: &SealKey) -> Result<ObjectKey> {
        self.open_slot(owner).map(|(_, key)| key)
    }

    pub(super) fn open_slot(&self, owner: &SealKey) -> Result<(SlotInfo, ObjectKey)> {
        let (slots, mut damaged, mut refused, mut expired) = (self.slots(), false, None, None);
        for info in &slots {
            let slot = self.slot(info.slot);
            // The damage may be in its kind.
            if info.damaged {
                damaged = true;
                continue;
            }
            if slot.kind.get() != kind(owner) {
                continue;
            }
            let cost = Cost { memory: slot.memory.get(), passes: slot.passes.get(), lanes: slot.lanes.get() };
            let blob = blobs::read(&self.bytes, info.slot).unwrap_or_default();
            let derived = match owner.derive(&slot.salt, cost, &blob) {
                // Another machine's device, or a forged cost.
                Err(error @ StoreError::Seal(SealError::Device { .. } | SealError::BadKey { .. })) => {
                    refused = Some(error);
                    continue;
                }
                derived => derived?,
            };
            let mut key = Secret::zeros(slot.wrapped.len());
            key.copy_from_slice(&slot.wrapped);
            let bound = bound(&self.header.id, &slot);
            let opened = cipher::decrypt(derived.key(), &slot.nonce, &bound, &mut key, &slot.tag);
            scrub_stack_deep();
            if opened && info.has_expired() {
                let (slot, label, at) = (info.slot, info.label.clone(), slot.expires.get());
                expired = Some(SealError::Expired { slot, label, at }.into());
            } else if opened {
                return Ok((info.clone(), ObjectKey(Arc::new(key))));
            }
        }
        Err(match (expired.or(refused), damaged) {
            (Some(refused), _) => refused,
            (None, true) => {
                SealError::Broken { page: KEY_PAGE, what: "of its extent, a key slot in its key page" }.into()
            }
            (None, false) => SealError::WrongKey { slots: slots.len() }.into(),
        })
    }

    /// Adds a slot for an owner; returns its number.
    ///
    /// # Errors
    /// `NoSlot`; `BadKey`, also of an erasable object; `Device`. No random numbers.
    pub fn add(&mut self, key: &ObjectKey, owner: &SealKey, label: &str) -> Result<usize> {
        self.expect_several_keys()?;
        self.add_first(key, owner, (label, owner.expires), 0)
    }

    /// Adds a slot, `first` if free.
    pub(super) fn add_first(
        &mut self,
        key: &ObjectKey,
        owner: &SealKey,
        (label, expires): (&str, u64),
        first: usize,
    ) -> Result<usize> {
        let is_free = |slot: &usize| self.slot(*slot).as_bytes().iter().all(|byte| *byte == 0);
        let others = (0..SLOT_COUNT).filter(|slot| *slot != first);
        let free: Vec<usize> = std::iter::once(first).chain(others).filter(is_free).collect();
        let blob = if free.is_empty() { Vec::new() } else { owner.new_blob()? };
        let parts = blobs::slots(&blob);
        let Some((first, rest)) = free.split_first().filter(|(_, rest)| rest.len() >= parts) else {
            return Err(SealError::NoSlot { slots: SLOT_COUNT }.into());
        };
        let mut slot = KeySlot::new_zeroed();
        slot.kind = U16::new(kind(owner));
        let mut cost = Cost::default();
        if let Owned::Passphrase(_, its) = &owner.owned {
            cost = *its;
            (slot.memory, slot.passes, slot.lanes) =
                (U32::new(cost.memory), U32::new(cost.passes), U32::new(cost.lanes));
        }
        let Some(room) = slot.label.get_mut(..label.len()) else {
            return Err(SealError::BadKey { why: "its label has more than 56 bytes" }.into());
        };
        room.copy_from_slice(label.as_bytes());
        (slot.created, slot.expires) = (U64::new(now()), U64::new(expires));
        (slot.salt, slot.nonce) = (random()?, random()?);
        let derived = owner.derive(&slot.salt, cost, &blob)?;
        let bound = bound(&self.header.id, &slot);
        let mut wrapped = Secret::zeros(slot.wrapped.len());
        wrapped.copy_from_slice(key.0.key());
        slot.tag = cipher::encrypt(derived.key(), &slot.nonce, &bound, &mut wrapped);
        scrub_stack_deep();
        slot.wrapped.copy_from_slice(&wrapped);
        slot.checksum = U64::new(sum(&slot));
        self.put(*first, &slot);
        blobs::write(&mut self.bytes, *first, &rest[..parts], &blob);
        Ok(*first)
    }

    /// Replaces an owner's key; returns the new slot. Label and expiry default to the old slot's.
    ///
    /// # Errors
    /// Those of [`open`](KeyPage::open) and [`add`](KeyPage::add); `BadKey`: of an
    /// erasable object; or no lasting slot remains, and the page is unusable.
    pub fn exchange(&mut self, owner: &SealKey, new: &SealKey, label: Option<&str>) -> Result<usize> {
        self.expect_several_keys()?;
        let (before, key) = self.open_slot(owner)?;
        self.empty(before.slot);
        let expires = if new.expires == 0 { before.expires.unwrap_or(0) } else { new.expires };
        let slot = self.add_first(&key, new, (label.unwrap_or(&before.label), expires), before.slot)?;
        self.expect_lasting()?;
        Ok(slot)
    }

    fn expect_lasting(&self) -> Result<()> {
        if self.slots().iter().any(SlotInfo::lasts) { Ok(()) } else { Err(NO_LASTING_KEY.into()) }
    }

    /// Empties a slot. Its owner may have kept the object's key.
    ///
    /// # Errors
    /// `BadSlot`: empty, or the last intact or lasting one.
    pub fn remove(&mut self, slot: usize) -> Result<()> {
        let slots = self.slots();
        let bad = |why| Err(SealError::BadSlot { slot, why }.into());
        let Some(goes) = slots.iter().find(|info| info.slot == slot) else { return bad("is empty") };
        let mut stay = slots.iter().filter(|info| info.slot != slot);
        if !stay.clone().any(|info| !info.damaged && info.kind != SLOT_EMPTY) {
            return bad("is the last one: no key would open the object any more");
        }
        if goes.lasts() && !stay.any(SlotInfo::lasts) {
            return bad("is the last one that does not expire: add a key that does not, first");
        }
        self.empty(slot);
        Ok(())
    }

    fn empty(&mut self, slot: usize) {
        for part in blobs::of(&self.bytes, slot) {
            self.put(part, &KeySlot::new_zeroed());
        }
        self.put(slot, &KeySlot::new_zeroed());
    }
}

/// The bytes beside the tree that root and signature authenticate.
pub(super) fn head(header: &Header, identity: Option<&Identity>) -> Vec<u8> {
    [header.as_bytes(), identity.map_or(&[], |identity| identity.as_bytes())].concat()
}

fn signer_of<'k>(keys: &[(&'k SealKey, &str)]) -> Result<Option<&'k Signer>> {
    let mut signers = keys.iter().filter_map(|(key, _)| key.signer());
    let Some(signer) = signers.next() else { return Ok(None) };
    let why = "the keys of a new object are given with one sign key, or without any";
    if !signer.signs() || signers.any(|other| other.verify_key() != signer.verify_key()) {
        return Err(SealError::BadKey { why }.into());
    }
    Ok(Some(signer))
}

fn kind(owner: &SealKey) -> u16 {
    match owner.owned {
        Owned::File(_) => SLOT_KEY_FILE,
        Owned::Passphrase(..) => SLOT_PASSPHRASE,
        Owned::Device(_) => SLOT_TPM,
    }
}

fn bound(id: &[u8; 16], slot: &KeySlot) -> Vec<u8> {
    let bound = KeySlot { checksum: U64::new(0), nonce: [0; 24], wrapped: [0; 32], tag: [0; 16], ..*slot };
    [b"key slot", &id[..], bound.as_bytes()].concat()
}
