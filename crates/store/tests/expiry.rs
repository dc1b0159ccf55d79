//! Expiring key slots, key slots beside a writer, psyncs of sealed objects given up (S3.2, S3.3,
//! S3.6).

use super::seal_keys::{KEY, file, of, open, passphrase, pool, seal_error};
use indelible_store::error::{SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::format::seal::Shape;
use indelible_store::lane::Batch;
use indelible_store::seal::{KeyPage, ObjectKey, SealKey};
use indelible_store::store::{Changes, Store, stage};
use indelible_testing::pool::{process, psync};
use indelible_testing::scenario::formatted;
use indelible_testing::sealed::{self, page_at};
use indelible_testing::{Hook, Hooked, SimConfig, SimMedium};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// 2001, and never.
const PAST: u64 = 1_000_000_000;
const FUTURE: u64 = u64::MAX;

fn add(store: &Arc<Store>, by: &SealKey, new: &SealKey, label: &str) -> Result<usize, StoreError> {
    change(store, by, |page, key| page.add(key, new, label))
}

fn change<R>(
    store: &Arc<Store>,
    by: &SealKey,
    f: impl FnOnce(&mut KeyPage, &ObjectKey) -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    let unlocked = store.unlock("a", KEY, by)?;
    let mut writer = store.attach_sealed_writer("a", KEY, &unlocked)?;
    let out = writer.change_keys(&unlocked, f);
    writer.detach()?;
    out
}

#[test]
fn an_expired_slot_is_refused_with_its_label_and_date() {
    let (medium, store) = pool();
    store.create_sealed("a", &of(9000), &[(&file(1), "owner")]).unwrap();
    let phrase = passphrase("correct horse");
    add(&store, &file(1), &phrase.clone().until(PAST), "intern").unwrap();
    let found = store.unlock("a", KEY, &phrase).unwrap_err();
    assert_eq!(
        found.to_string(),
        "key slot 1, labelled \"intern\", which the seal key opens, expired at 2001-09-09T01:46:40Z: ask the owner of another key to add one"
    );
    add(&store, &file(1), &file(2).until(FUTURE), "guest").unwrap();
    store.unlock("a", KEY, &file(2)).unwrap();
    add(&store, &file(1), &phrase, "again").unwrap();
    store.unlock("a", KEY, &phrase).unwrap();
    let slots = open(&medium).key_slots("a", KEY).unwrap();
    let shown: Vec<_> = slots.iter().map(|slot| (slot.expires, slot.has_expired())).collect();
    assert_eq!(shown, [(None, false), (Some(PAST), true), (Some(FUTURE), false), (None, false)]);
    let object = store.find("a").unwrap();
    let (mut bytes, at) = (medium.to_bytes(), page_at(&object, 0).start + 1024 + 256);
    let slot = &mut bytes[at..at + 256];
    slot[192..200].fill(0);
    slot[16..24].fill(0);
    let sum = indelible_store::format::checksum(0, &[slot]);
    slot[16..24].copy_from_slice(&sum.to_le_bytes());
    change(&store, &file(1), |page, _| page.remove(3)).unwrap();
    let forged = open(&SimMedium::from_bytes(&bytes, SimConfig::default()));
    assert_eq!(forged.key_slots("a", KEY).unwrap()[1].expires, None);
    assert_eq!(forged.key_slots("a", KEY).unwrap().len(), 4);
    change(&forged, &file(1), |page, _| page.remove(3)).unwrap();
    assert!(matches!(seal_error(forged.unlock("a", KEY, &phrase)), SealError::WrongKey { .. }));
}

#[test]
fn a_slot_that_does_not_expire_stays() {
    let (_, store) = pool();
    let never = "at least one key that does not expire";
    let refused = store.create_sealed("a", &of(9000), &[(&file(1).until(FUTURE), "")]);
    assert!(refused.unwrap_err().to_string().contains(never));
    store.create_sealed("a", &of(9000), &[(&file(1), "")]).unwrap();
    add(&store, &file(1), &file(2).until(FUTURE), "guest").unwrap();
    let refused = change(&store, &file(2), |page, _| page.remove(0)).unwrap_err();
    assert!(refused.to_string().contains("the last one that does not expire"), "{refused}");
    let refused = change(&store, &file(1), |page, _| page.exchange(&file(1), &file(3).until(FUTURE), None));
    assert!(refused.unwrap_err().to_string().contains(never));
    change(&store, &file(2), |page, _| page.exchange(&file(2), &file(4), None)).unwrap();
    assert_eq!(store.key_slots("a", KEY).unwrap()[1].expires, Some(FUTURE));
    let mut writer =
        store.attach_sealed_writer("a", KEY, &store.unlock("a", KEY, &file(4)).unwrap()).unwrap();
    let refused = writer.reencrypt(&[&file(4)], &mut |_, _| {}).unwrap_err();
    assert!(refused.to_string().contains(never), "{refused}");
    writer.reencrypt(&[&file(4), &file(1)], &mut |_, _| {}).unwrap();
    writer.detach().unwrap();
    let slots = store.key_slots("a", KEY).unwrap();
    assert_eq!(slots.iter().filter(|slot| slot.expires == Some(FUTURE)).count(), 1);
    add(&store, &file(1), &file(5), "").unwrap();
    let guest = slots.iter().find(|slot| slot.expires.is_some()).unwrap().slot;
    change(&store, &file(5), |page, _| page.remove(guest)).unwrap();
    change(&store, &file(5), |page, _| page.remove(1 - guest)).unwrap();
    assert_eq!(store.key_slots("a", KEY).unwrap().len(), 1);
}

#[test]
fn keys_are_listed_beside_the_process_that_has_the_object() {
    for disk in [true, false] {
        let medium = formatted(4 << 20, SimConfig { disk, ..SimConfig::default() });
        let store = open(&medium);
        store.create_sealed("a", &of(9000), &[(&file(1), "one"), (&sealed::key(), "two")]).unwrap();
        store.create("plain", &of(9000)).unwrap();
        let mut writer = sealed::writer(&store, "a").unwrap();
        psync(&mut writer, &[(0, &[7; 9000])]).unwrap();
        let others = [
            store.clone(),
            Store::open(Arc::new(medium.handle()), process(2)).unwrap(),
            Store::open(Arc::new(medium.read_only_handle()), process(3)).unwrap(),
        ];
        let listed = |store: &Arc<Store>| {
            let slots = store.key_slots("a", KEY).unwrap();
            slots.into_iter().map(|slot| (slot.label, slot.damaged)).collect::<Vec<_>>()
        };
        for other in &others {
            assert!(matches!(other.key_page("a", KEY), Err(StoreError::Held { .. })));
            assert_eq!(listed(other), [("one".into(), false), ("two".into(), false)]);
            assert!(matches!(seal_error(other.key_slots("plain", KEY)), SealError::NotSealed));
        }
        let unlocked = store.unlock("a", KEY, &file(1));
        assert!(matches!(unlocked, Err(StoreError::Held { .. })));
        writer.detach().unwrap();
        add(&store, &file(1), &file(3), "three").unwrap();
        let _writer = sealed::writer(&store, "a").unwrap();
        for other in &others {
            assert_eq!(listed(other).len(), 3);
        }
    }
}

#[derive(Default)]
struct Reads(AtomicU64);

impl Hook for Reads {
    fn before_read(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Rereading for ten seconds would wait for a psync that is gone.
#[test]
fn a_page_of_a_psync_that_was_given_up_is_damaged_at_once() {
    for disk in [true, false] {
        let medium = formatted(4 << 20, SimConfig { disk, ..SimConfig::default() });
        let device = Hooked::new(Arc::new(medium.handle()), Reads::default());
        let store = Store::open(device.clone(), process(1)).unwrap();
        sealed::create(&store, "a", 3 * PAGE).unwrap();
        let mut writer = sealed::writer(&store, "a").unwrap();
        psync(&mut writer, &[(PAGE, &[7; PAGE as usize])]).unwrap();
        writer.checkpoint().unwrap();
        writer.set_cached_pages(0);
        let pages = writer.sealed_pages().unwrap();
        let mut changes = |primary: u64, batch: &mut Batch| {
            batch.copy_lines(primary + PAGE, &[8; PAGE as usize]);
            Ok(2 * PAGE)
        };
        drop(stage([(&mut writer, &mut changes as &mut dyn Changes)], None).unwrap());
        let object = *writer.object();
        let place = page_at(&object, Shape::of(3).unwrap().content_page(1));
        medium.flip(place.start as u64, 0);
        device.0.store(0, Ordering::Relaxed);
        let found = seal_error(pages.verify(1));
        assert!(matches!(found, SealError::Broken { page: 1, .. }), "{found}");
        let reads = device.0.load(Ordering::Relaxed);
        assert!(reads < 100, "{reads} reads");
    }
}
