//! Key slots with devices' secrets, and exchanged keys (S3.6).

use super::seal_keys::{file, seal_error};
use indelible_store::error::SealError;
use indelible_store::format::checksum;
use indelible_store::format::seal::{Identity, KeySlot, SLOTS};
use indelible_store::seal::{Cost, KeyPage, PageBytes, SECRET, SealKey, SecretDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zerocopy::{FromBytes, IntoBytes};
use zeroize::Zeroizing;

const SIZE: u64 = 8192;

struct Fake {
    number: u8,
    len: usize,
    locked: AtomicBool,
}

impl Fake {
    fn new(number: u8, len: usize) -> Arc<Fake> {
        Arc::new(Fake { number, len, locked: AtomicBool::new(false) })
    }

    fn usable(&self) -> Result<(), String> {
        if self.locked.load(Ordering::Relaxed) { Err("the fake TPM is locked".into()) } else { Ok(()) }
    }
}

impl SecretDevice for Fake {
    fn seal(&self, secret: &[u8; SECRET]) -> Result<Vec<u8>, String> {
        self.usable()?;
        let mut blob = vec![self.number; self.len];
        for (byte, secret) in blob[1..].iter_mut().zip(secret) {
            *byte = secret ^ 0x55;
        }
        Ok(blob)
    }

    fn unseal(&self, blob: &[u8]) -> Result<Zeroizing<[u8; SECRET]>, String> {
        self.usable()?;
        if blob.len() != self.len || blob[0] != self.number {
            return Err(format!("fake TPM {} did not make this blob", self.number));
        }
        let mut secret = Zeroizing::new([0; SECRET]);
        for (byte, blob) in secret.iter_mut().zip(&blob[1..]) {
            *byte = blob ^ 0x55;
        }
        Ok(secret)
    }
}

fn of_a() -> Identity {
    Identity::of([1; 16], "a")
}

fn of(device: &Arc<Fake>) -> SealKey {
    SealKey::device(device.clone())
}

fn read(bytes: Box<PageBytes>) -> KeyPage {
    KeyPage::read(bytes, 100).unwrap()
}

fn again(page: &KeyPage) -> KeyPage {
    read(Box::new(*page.bytes()))
}

fn kinds(page: &KeyPage) -> Vec<(usize, String, bool)> {
    page.slots().into_iter().map(|slot| (slot.slot, slot.kind_word(), slot.damaged)).collect()
}

#[test]
fn a_device_opens_the_slots_that_it_made() {
    for len in [40, 232, 233, 700] {
        let (ours, others) = (Fake::new(1, len), Fake::new(2, len));
        let (mut page, key) = KeyPage::new(
            SIZE,
            &of_a(),
            &[(&of(&others), "theirs"), (&of(&ours), "ours"), (&file(1), "file")],
        )
        .unwrap();
        let parts = len.div_ceil(232);
        let found: Vec<_> = again(&page).slots().into_iter().map(|slot| (slot.slot, slot.label)).collect();
        let expected = [(0, "theirs"), (1 + parts, "ours"), (2 + 2 * parts, "file")];
        assert_eq!(found, expected.map(|(slot, label)| (slot, label.to_owned())), "{len}");
        for owner in [of(&ours), of(&others), file(1)] {
            again(&page).open(&owner).unwrap();
        }
        let third = seal_error(page.open(&of(&Fake::new(3, len))));
        assert!(third.to_string().contains("fake TPM 3 did not make"), "{third}");
        ours.locked.store(true, Ordering::Relaxed);
        assert!(seal_error(page.open(&of(&ours))).to_string().contains("locked"));
        assert!(seal_error(page.add(&key, &of(&ours), "")).to_string().contains("locked"));
        ours.locked.store(false, Ordering::Relaxed);
        let refused = seal_error(page.remove(1));
        assert!(matches!(refused, SealError::BadSlot { slot: 1, .. }), "{refused}");
        page.remove(0).unwrap();
        assert!(page.bytes()[1024..1024 + 256 * (1 + parts)].iter().all(|byte| *byte == 0), "{len}");
        let gone = seal_error(page.open(&of(&others)));
        assert!(gone.to_string().contains("did not make"), "{gone}");
        page.open(&of(&ours)).unwrap();
    }
}

#[test]
fn a_device_that_needs_more_slots_than_are_free_is_refused_and_changes_nothing() {
    let (mut page, key) = KeyPage::new(SIZE, &of_a(), &[(&file(1), "")]).unwrap();
    for byte in 2..12 {
        page.add(&key, &file(byte), "").unwrap();
    }
    let before = *page.bytes();
    assert_eq!(seal_error(page.add(&key, &of(&Fake::new(1, 40)), "")), SealError::NoSlot { slots: 12 });
    assert!(*page.bytes() == before);
    page.exchange(&file(3), &of(&Fake::new(1, 40)), None).unwrap();
    page.open(&of(&Fake::new(1, 40))).unwrap();
    assert_eq!(seal_error(page.add(&key, &file(9), "")), SealError::NoSlot { slots: 12 });
}

#[test]
fn every_bit_of_a_devices_slot_and_blob_is_covered() {
    let device = Fake::new(1, 300);
    let (page, _) = KeyPage::new(SIZE, &of_a(), &[(&of(&device), "device"), (&file(2), "file")]).unwrap();
    assert_eq!(kinds(&page), [(0, "TPM".into(), false), (3, "key file".into(), false)]);
    for byte in 1024..1024 + 3 * 256 {
        for bit in 0..8 {
            let mut bytes = Box::new(*page.bytes());
            bytes[byte] ^= 1 << bit;
            let damaged = read(bytes);
            let found = seal_error(damaged.open(&of(&device)));
            assert!(matches!(found, SealError::Broken { page: 0, .. }), "byte {byte}, bit {bit}: {found}");
            damaged.open(&file(2)).unwrap();
            assert!(kinds(&damaged).iter().any(|(_, _, damaged)| *damaged), "byte {byte}, bit {bit}");
        }
    }
    for part in [1, 2] {
        let mut bytes = Box::new(*page.bytes());
        bytes[1024 + 256 * part..1024 + 256 * (part + 1)].fill(0);
        assert_eq!(kinds(&read(bytes))[0], (0, "TPM".into(), true));
        let mut bytes = Box::new(*page.bytes());
        bytes.copy_within(1024 + 256 * part..1024 + 256 * (part + 1), 1024 + 256 * 4);
        assert_eq!(kinds(&read(bytes))[0], (0, "TPM".into(), true));
    }
}

#[test]
fn an_exchanged_key_opens_nothing_and_the_new_one_does() {
    let cheap = Cost { memory: 64, passes: 1, lanes: 1 };
    let phrase = |text: &str| SealKey::passphrase(text.into()).unwrap().costing(cheap).unwrap();
    let (mut page, _) =
        KeyPage::new(SIZE, &of_a(), &[(&file(1), "first"), (&phrase("old"), "alice")]).unwrap();
    assert_eq!(page.exchange(&phrase("old"), &phrase("new"), None).unwrap(), 1);
    page.open(&phrase("new")).unwrap();
    page.open(&file(1)).unwrap();
    assert_eq!(seal_error(page.open(&phrase("old"))), SealError::WrongKey { slots: 2 });
    assert_eq!(page.slots()[1].label, "alice");
    assert_eq!(page.exchange(&file(1), &file(2), Some("renamed")).unwrap(), 0);
    assert_eq!((page.slots()[0].label.as_str(), page.slots().len()), ("renamed", 2));
    assert_eq!(seal_error(page.exchange(&file(1), &file(3), None)), SealError::WrongKey { slots: 2 });
}

/// A writer of the pool can forge a slot's cost.
#[test]
fn a_forged_cost_keeps_no_valid_passphrase_out() {
    let cheap = Cost { memory: 64, passes: 1, lanes: 1 };
    let right = SealKey::passphrase("right".into()).unwrap().costing(cheap).unwrap();
    let (page, _) = KeyPage::new(SIZE, &of_a(), &[(&right, "forged"), (&right, "own")]).unwrap();
    let forged = |slots: &[usize], (memory, passes, lanes): (u32, u32, u32)| {
        let mut bytes = Box::new(*page.bytes());
        for slot in slots {
            let at = SLOTS + slot * size_of::<KeySlot>();
            let place = &mut bytes[at..at + size_of::<KeySlot>()];
            let mut slot = KeySlot::read_from_bytes(place).unwrap();
            (slot.memory, slot.passes, slot.lanes) = (memory.into(), passes.into(), lanes.into());
            slot.checksum = 0.into();
            slot.checksum = checksum(0, &[slot.as_bytes()]).into();
            place.copy_from_slice(slot.as_bytes());
        }
        read(bytes)
    };
    for cost in
        [(0, 0, 0), (u32::MAX, u32::MAX, u32::MAX), (1 << 20, 16, 1), (512 << 10, 1, 1), (256 << 10, 5, 1)]
    {
        assert!(forged(&[0], cost).open(&right).is_ok(), "{cost:?}");
        let refused = seal_error(forged(&[0, 1], cost).open(&right));
        assert!(matches!(refused, SealError::BadKey { .. }), "{cost:?}: {refused}");
    }
}

struct Noisy(Arc<Fake>, usize);

impl SecretDevice for Noisy {
    fn seal(&self, secret: &[u8; SECRET]) -> Result<Vec<u8>, String> {
        let mut blob = self.0.seal(secret)?;
        blob[self.1] ^= 1;
        Ok(blob)
    }

    fn unseal(&self, blob: &[u8]) -> Result<Zeroizing<[u8; SECRET]>, String> {
        self.0.unseal(blob)
    }
}

#[test]
fn a_blob_that_opens_nothing_is_no_key() {
    for at in [0, 1, 32] {
        let noisy = SealKey::device(Arc::new(Noisy(Fake::new(1, 40), at)));
        let refused = seal_error(KeyPage::new(SIZE, &of_a(), &[(&noisy, "")]).map(drop));
        assert!(matches!(refused, SealError::Device { .. }), "{at}: {refused}");
        let (mut page, key) = KeyPage::new(SIZE, &of_a(), &[(&file(1), "")]).unwrap();
        assert!(page.add(&key, &noisy, "").is_err() && page.slots().len() == 1, "{at}");
    }
}

#[test]
fn a_slot_that_costs_more_is_opened_by_a_passphrase_of_that_cost() {
    let dear = Cost { memory: 257 << 10, passes: 1, lanes: 1 };
    let key = |cost| SealKey::passphrase("right".into()).unwrap().costing(cost).unwrap();
    let (page, _) = KeyPage::new(SIZE, &of_a(), &[(&key(dear), "")]).unwrap();
    again(&page).open(&key(dear)).unwrap();
    let refused = seal_error(again(&page).open(&key(Cost::default())));
    assert!(matches!(refused, SealError::BadKey { .. }), "{refused}");
}
