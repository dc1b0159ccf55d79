//! Signed objects: an attacker with a seal key who may write to the pool makes no state that a
//! reader accepts.

use super::{CONFIG, KEY, LIMITS, Verdict, crash_on, open};
use crate::for_each_crash;
use crate::independent::Independent;
use crate::poly1305::OneTime;
use crate::pool::psync;
use crate::scenario::formatted;
use crate::sealed::{self, page_at, shape};
use crate::sim::{SimConfig, SimMedium};
use chacha20poly1305::XNonce;
use chacha20poly1305::aead::AeadInPlace;
use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::seal::SignKey;
use indelible_store::table::Located;
use sha2::{Digest, Sha256};

const SIZE: u64 = 66 * PAGE - 100;
const FORGED: u64 = 1;

fn text(error: StoreError) -> String {
    error.to_string()
}

struct Made {
    object: Located,
    older: Vec<u8>,
    newer: Vec<u8>,
}

fn made() -> Result<Made> {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 1);
    sealed::create_signed(&store, "a", SIZE)?;
    let psynced = |value: u8| -> Result<Vec<u8>> {
        let mut writer = sealed::writer(&store, "a")?;
        psync(&mut writer, &[(640, &[value; 64]), (FORGED * PAGE, &[value; 64]), (65 * PAGE, &[value; 64])])?;
        writer.detach()?;
        Ok(medium.to_bytes())
    };
    let (older, newer) = (psynced(1)?, psynced(2)?);
    Ok(Made { object: store.find("a")?, older, newer })
}

fn held(bytes: &[u8]) -> Result<()> {
    let store = open(&SimMedium::from_bytes(bytes, CONFIG), 7);
    let key = sealed::key().verified_by(sealed::sign_key().verify_key());
    let reader = store.attach_sealed_reader("a", KEY, &store.unlock("a", KEY, &key)?)?;
    let pages = reader.sealed_pages().expect("it is sealed");
    [0, FORGED, 65].into_iter().try_for_each(|page| pages.verify(page))
}

fn is_refused(bytes: &[u8], what: &str, is_right: fn(&SealError) -> bool) -> Verdict {
    match held(bytes) {
        Err(StoreError::Seal(error)) if is_right(&error) => Ok(()),
        Err(error) => Err(format!("{what}: {error}")),
        Ok(_) => Err(format!("{what}: it is accepted")),
    }
}

struct Forger {
    key: Independent,
    object: Located,
    bytes: Vec<u8>,
    nonces: u8,
}

impl Forger {
    fn of(made: &Made) -> std::result::Result<Forger, String> {
        let (object, bytes) = (made.object, made.newer.clone());
        let key = Independent::open(&bytes[page_at(&object, shape(&object).key_page())])?;
        Ok(Forger { key, object, bytes, nonces: 0 })
    }

    fn page(&mut self, page: u64) -> &mut [u8] {
        &mut self.bytes[page_at(&self.object, page)]
    }

    fn place(&self, kind: &[u8; 8], (level, index): (u64, u64), version: &[u8]) -> Vec<u8> {
        [kind, &self.key.id[..], &level.to_le_bytes(), &index.to_le_bytes(), version].concat()
    }

    fn seal(&mut self, associated: &[u8], bytes: &mut [u8], version: &[u8]) -> [u8; 64] {
        self.nonces += 1;
        let nonce = [0xe0 + self.nonces; 24];
        let tag = self.key.cipher.encrypt_in_place_detached(XNonce::from_slice(&nonce), associated, bytes);
        let hash = Sha256::new().chain_update(nonce).chain_update(associated).chain_update(bytes).finalize();
        let mut seal = [0; 64];
        seal[..24].copy_from_slice(&nonce);
        seal[24..40].copy_from_slice(&tag.expect("it is short"));
        seal[40..48].copy_from_slice(version);
        seal[48..].copy_from_slice(&hash[..16]);
        seal
    }

    fn page_seal(&mut self) -> Vec<u8> {
        let leaf = shape(&self.object).page(0, 0);
        self.page(leaf)[(FORGED * 64) as usize..][..64].to_vec()
    }

    fn forge_page(&mut self) {
        let (shape, version) = (shape(&self.object), self.page_seal()[40..48].to_vec());
        let (mut bytes, place) = ([0x99; PAGE as usize], self.place(b"granule\0", (0, FORGED), &version));
        let seal = self.seal(&place, &mut bytes, &version);
        self.page(shape.content_page(FORGED)).copy_from_slice(&bytes);
        self.page(shape.page(0, 0))[(FORGED * 64) as usize..][..64].copy_from_slice(&seal);
    }

    fn node(&mut self, level: u64) -> (Vec<u8>, Vec<u8>) {
        let (shape, is_top) = (shape(&self.object), level == 1);
        let (above, header) = if is_top { (shape.key_page(), 64) } else { (shape.page(1, 0), 0) };
        let seal = self.page(above)[header..header + 64].to_vec();
        let mut associated = self.place(b"node\0\0\0\0", (level, 0), &seal[40..48]);
        let key_page = self.page(shape.key_page()).to_vec();
        associated.extend_from_slice(&key_page[..header]);
        if is_top {
            associated.extend_from_slice(&key_page[192..256]);
        }
        associated.extend_from_slice(self.page(shape.page(level as u32, 0)));
        (seal, associated)
    }

    fn forge_nodes(&mut self) {
        let shape = shape(&self.object);
        for (level, above, at) in [(0, shape.page(1, 0), 0), (1, shape.key_page(), 64)] {
            let (seal, associated) = self.node(level);
            let seal = self.seal(&associated, &mut [], &seal[40..48]);
            self.page(above)[at..at + 64].copy_from_slice(&seal);
        }
    }

    /// Finds another end of `message` with the same tag; 16 bytes at `free`, and 16 before it, are
    /// free.
    fn same_tag(&self, seal: &[u8], message: &[u8], free: usize) -> Vec<u8> {
        let one_time = OneTime::of(&self.key.key, seal[..24].try_into().expect("a nonce"));
        let tag = seal[24..40].try_into().expect("a tag");
        let mut forged = message.to_vec();
        for attempt in 0..1000_u128 {
            forged[free - 16..free].copy_from_slice(&attempt.to_le_bytes());
            if one_time.forge(&mut forged, free, &tag) {
                return forged;
            }
        }
        panic!("a tag was not met")
    }
}

pub(super) fn a_seal_key_makes_no_state_of_a_signed_object() -> Verdict {
    let made = made().map_err(text)?;
    held(&made.newer).map_err(text)?;
    let mut forger = Forger::of(&made)?;
    forger.forge_page();
    forger.forge_nodes();
    is_refused(&forger.bytes, "a forged page", |error| *error == SealError::BadSignature)?;
    let key_page = shape(&forger.object).key_page();
    forger.page(key_page)[12] &= !2;
    forger.page(key_page)[128..192].fill(0);
    forger.forge_nodes();
    is_refused(&forger.bytes, "without a signature", |error| *error == SealError::NotSigned)
}

pub(super) fn the_signature_of_another_state_is_refused() -> Verdict {
    let Made { object, older, newer } = made().map_err(text)?;
    let place = page_at(&object, shape(&object).key_page()).start;
    let mut bytes = newer.clone();
    bytes[place + 128..place + 192].copy_from_slice(&older[place + 128..place + 192]);
    is_refused(&bytes, "an older signature", |error| *error == SealError::BadSignature)?;
    for at in (128..192).step_by(7) {
        let mut bytes = newer.clone();
        bytes[place + at] ^= 1;
        is_refused(&bytes, &format!("byte {at}"), |error| *error == SealError::BadSignature)?;
    }
    // Both signature and tags cover them.
    for at in [16, 48, 63, 64, 88, 104, 112, 127] {
        let mut bytes = newer.clone();
        bytes[place + at] ^= 1;
        if held(&bytes).is_ok() {
            return Err(format!("byte {at}: it is accepted"));
        }
    }
    Ok(())
}

pub(super) fn another_page_with_the_tag_of_a_signed_one_is_refused() -> Verdict {
    let mut forger = Forger::of(&made().map_err(text)?)?;
    let (seal, at) = (forger.page_seal(), shape(&forger.object).content_page(FORGED));
    let place = forger.place(b"granule\0", (0, FORGED), &seal[40..48]);
    let lengths = [48_u64.to_le_bytes(), PAGE.to_le_bytes()].concat();
    let mut forged = forger.page(at).to_vec();
    forged[100] ^= 0x55;
    let message = forger.same_tag(&seal, &[&place[..], &forged, &lengths].concat(), 48 + 4080);
    forger.page(at).copy_from_slice(&message[48..48 + PAGE as usize]);
    is_refused(&forger.bytes, "a page", |error| matches!(error, SealError::Broken { page: FORGED, .. }))
}

pub(super) fn another_node_with_the_tag_of_a_signed_one_is_refused() -> Verdict {
    let made = made().map_err(text)?;
    for level in [0, 1] {
        let mut forger = Forger::of(&made)?;
        forger.forge_page();
        if level == 1 {
            let (seal, associated) = forger.node(0);
            let (seal, top) =
                (forger.seal(&associated, &mut [], &seal[40..48]), shape(&forger.object).page(1, 0));
            forger.page(top)[..64].copy_from_slice(&seal);
        }
        let (seal, node) = forger.node(level);
        let lengths = [(node.len() as u64).to_le_bytes(), 0_u64.to_le_bytes()].concat();
        // The seal of a page that is absent or not read.
        let free = node.len() - 16;
        let message = forger.same_tag(&seal, &[&node[..], &lengths].concat(), free);
        let (at, end) = (shape(&forger.object).page(level as u32, 0), node.len());
        forger.page(at).copy_from_slice(&message[end - PAGE as usize..end]);
        is_refused(&forger.bytes, &format!("a node of level {level}"), |error| {
            matches!(error, SealError::Broken { .. })
        })?;
    }
    Ok(())
}

pub(super) fn signed_psyncs_are_whole_after_a_power_cut() -> Verdict {
    for disk in [true, false] {
        crash_on(
            SimConfig { disk, ..CONFIG },
            |store| assert!(sealed::create_signed(store, "a", 9000).is_ok()),
            |run| {
                let mut state = run.last();
                let mut a = run.quiet(|store| sealed::writer(store, "a"))?;
                for (at, value) in [(70_usize, 3), (8500, 5), (70, 6)] {
                    let (_, _, bytes) = state.get_mut("a").expect("it was created");
                    bytes[at..at + 8].fill(value);
                    run.step_to(state.clone(), |_| psync(&mut a, &[(at as u64, &[value; 8])]))?;
                }
                run.step_to(state.clone(), |_| a.set_anchored(true))?;
                run.step_to(state, |_| a.reencrypt(&[&sealed::key()], &mut |_, _| {}))?;
                run.quiet(|_| a.detach())
            },
        )?;
    }
    Ok(())
}

pub(super) fn one_key_signs_an_object_after_a_power_cut() -> Verdict {
    let other = || SignKey::file(vec![0x77; 32]).expect("it is long enough");
    for disk in [true, false] {
        let medium = formatted(2 << 20, SimConfig { disk, ..CONFIG });
        sealed::create_signed(&open(&medium, 1), "a", 9000).map_err(text)?;
        medium.settle();
        let record = |medium: &SimMedium| {
            let mut a = sealed::writer(&open(medium, 2), "a").unwrap();
            psync(&mut a, &[(70, &[1; 8])]).unwrap();
            a.change_signer(&other()).unwrap();
            medium.mark(1);
            psync(&mut a, &[(70, &[2; 8])]).unwrap();
        };
        let judge = |image: &crate::CrashImage| -> Verdict {
            let store = open(&image.medium(), 3);
            let opens = |verify| {
                let key = sealed::key().verified_by(verify);
                let unlocked = store.unlock("a", KEY, &key)?;
                store.attach_sealed_reader("a", KEY, &unlocked).map(drop)
            };
            let (former, new) = (opens(sealed::sign_key().verify_key()), opens(other().verify_key()));
            match (former, new, image.last_mark()) {
                (Err(StoreError::Seal(SealError::BadSignature)), Ok(()), _)
                | (Ok(()), Err(StoreError::Seal(SealError::BadSignature)), None | Some(0)) => Ok(()),
                (former, new, mark) => Err(format!("{mark:?}: {former:?}, {new:?}")),
            }
        };
        for_each_crash(&medium, record, judge, &LIMITS).map_err(|failure| failure.to_string())?;
    }
    Ok(())
}
