//! Sealed objects: contract, keys, refusals, and every bit and line (S3.1, S3.2, S3.5).

use super::seal_keys::{CHEAP, KEY, file, of, open, passphrase, pool, seal_error};
use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::format::seal::Shape;
use indelible_store::seal::{Cost, KeyPage, ObjectKey, PageBytes, SealKey, Signer, Tree};
use indelible_store::store::{FormatOptions, Severity, SnapshotOf, Store};
use indelible_testing::pool::{check_tiling, process, psync};
use indelible_testing::scenario::formatted;
use indelible_testing::sealed::{self, page_at};
use indelible_testing::{SimConfig, SimMedium};
use std::sync::Arc;

#[test]
fn a_sealed_object_keeps_what_was_psynced() {
    for disk in [true, false] {
        let medium = formatted(4 << 20, SimConfig { disk, ..SimConfig::default() });
        let store = open(&medium);
        let free = store.info().unwrap().free;
        let object = sealed::create(&store, "a", 300_000).unwrap();
        assert_eq!(sealed::contents(&store, &object).unwrap(), vec![0; 300_000]);
        let mut expected = vec![0_u8; 300_000];
        let mut rng = fastrand::Rng::with_seed(7);
        for round in 0..20 {
            let mut writer = sealed::writer(&store, "a").unwrap();
            for _ in 0..5 {
                let at = rng.usize(..290_000);
                let bytes: Vec<u8> = (0..rng.usize(1..9000)).map(|_| rng.u8(..)).collect();
                let bytes = &bytes[..bytes.len().min(300_000 - at)];
                expected[at..at + bytes.len()].copy_from_slice(bytes);
                psync(&mut writer, &[(at as u64, bytes)]).unwrap();
            }
            let pages = writer.sealed_pages().unwrap();
            assert!(sealed::bytes(&pages).unwrap() == expected, "round {round}, attached");
            writer.detach().unwrap();
            assert!(sealed::contents(&store, &object).unwrap() == expected, "round {round}");
        }
        check_tiling(&store).unwrap();
        let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).unwrap();
        assert!(report.findings.iter().all(|finding| finding.severity < Severity::Warning), "{report:?}");
        store.destroy("a", KEY).unwrap();
        assert!(store.info().unwrap().free + (1 << 20) >= free);
    }
}

// S3.1
#[test]
fn a_psync_of_nothing_writes_nothing() {
    let (_, store) = pool();
    sealed::create(&store, "a", 9000).unwrap();
    let mut writer = sealed::writer(&store, "a").unwrap();
    psync(&mut writer, &[(100, b"first")]).unwrap();
    psync(&mut writer, &[(100, b"first")]).unwrap();
    assert_eq!(writer.psyncs(), 1);
}

#[test]
fn each_of_its_keys_opens_an_object_and_no_other_does() {
    let (medium, store) = pool();
    let keys = [file(1), passphrase("correct horse")];
    let labels = [(&keys[0], "file"), (&keys[1], "passphrase")];
    store.create_sealed("a", &of(5000), &labels).unwrap();
    for key in &keys {
        let unlocked = store.unlock("a", KEY, key).unwrap();
        let mut writer = store.attach_sealed_writer("a", KEY, &unlocked).unwrap();
        psync(&mut writer, &[(7, b"kept")]).unwrap();
        writer.detach().unwrap();
        store.attach_sealed_reader("a", KEY, &unlocked).unwrap().detach().unwrap();
    }
    let before = medium.to_bytes();
    for wrong in [file(2), passphrase("correct horse "), passphrase("x")] {
        assert_eq!(seal_error(store.unlock("a", KEY, &wrong).map(drop)), SealError::WrongKey { slots: 2 });
    }
    assert_eq!(seal_error(store.attach_writer("a", KEY).map(drop)), SealError::KeyNeeded);
    assert_eq!(seal_error(store.attach_reader("a", KEY).map(drop)), SealError::KeyNeeded);
    assert!(medium.to_bytes() == before, "nothing was written");
    store.create_sealed("b", &of(5000), &[(&keys[0], "")]).unwrap();
    let other = store.unlock("b", KEY, &keys[0]).unwrap();
    assert_eq!(
        seal_error(store.attach_sealed_writer("a", KEY, &other).map(drop)),
        SealError::WrongKey { slots: 2 }
    );
    store.create("plain", &of(5000)).unwrap();
    assert_eq!(seal_error(store.unlock("plain", KEY, &keys[0]).map(drop)), SealError::NotSealed);
    assert_eq!(seal_error(store.attach_sealed_writer("plain", KEY, &other).map(drop)), SealError::NotSealed);
    store.attach_sealed_writer("b", KEY, &other).unwrap().detach().unwrap();
}

// S3.2
#[test]
fn keys_that_cannot_be_used_are_refused() {
    let (_, store) = pool();
    let bad = |result: Result<SealKey>| matches!(seal_error(result.map(drop)), SealError::BadKey { .. });
    assert!(bad(SealKey::file(vec![1; 31])) && bad(SealKey::passphrase(String::new())));
    assert!(bad(SealKey::file(vec![1; (1 << 20) + 1])));
    for cost in
        [Cost { memory: u32::MAX, ..CHEAP }, Cost { passes: 1000, ..CHEAP }, Cost { memory: 0, ..CHEAP }]
    {
        assert!(bad(SealKey::passphrase("x".into()).unwrap().costing(cost)), "{cost:?}");
    }
    assert!(matches!(seal_error(store.create_sealed("a", &of(5000), &[])), SealError::BadKey { .. }));
    let many = vec![file(1); 13];
    let labelled: Vec<_> = many.iter().map(|key| (key, "")).collect();
    assert_eq!(seal_error(store.create_sealed("a", &of(5000), &labelled)), SealError::NoSlot { slots: 12 });
    let long = "l".repeat(57);
    assert!(matches!(
        seal_error(store.create_sealed("a", &of(5000), &[(&many[0], &long)])),
        SealError::BadKey { .. }
    ));
    assert!(matches!(store.find("a"), Err(StoreError::NotFound)));
    for size in [0, (1 << 46) + 1] {
        let refused = store.create_sealed("a", &of(size), &labelled[..1]);
        assert!(matches!(refused, Err(StoreError::BadSize { .. })), "{refused:?}");
    }
    let debug = format!("{:?} {:?}", file(0x77), passphrase("secret"));
    assert_eq!(debug, "SealKey(key file) SealKey(passphrase)");
}

#[test]
fn keys_are_added_and_removed_and_the_last_one_stays() {
    let (_, store) = pool();
    let (first, second) = (file(1), passphrase("second"));
    store.create_sealed("a", &of(5000), &[(&first, "first")]).unwrap();
    let unlocked = store.unlock("a", KEY, &first).unwrap();
    let mut writer = store.attach_sealed_writer("a", KEY, &unlocked).unwrap();
    psync(&mut writer, &[(7, b"kept")]).unwrap();
    let added = writer.change_keys(&unlocked, |page, key| page.add(key, &second, "second")).unwrap();
    assert_eq!(added, 1);
    psync(&mut writer, &[(17, b"later")]).unwrap();
    writer.change_keys(&unlocked, |page, _| page.remove(0)).unwrap();
    for slot in [0, 1, 5] {
        let refused = seal_error(writer.change_keys(&unlocked, |page, _| page.remove(slot)));
        assert!(matches!(refused, SealError::BadSlot { slot: named, .. } if named == slot), "{refused}");
    }
    writer.detach().unwrap();
    assert_eq!(seal_error(store.unlock("a", KEY, &first).map(drop)), SealError::WrongKey { slots: 1 });
    let unlocked = store.unlock("a", KEY, &second).unwrap();
    let reader = store.attach_sealed_reader("a", KEY, &unlocked).unwrap();
    let bytes = sealed::bytes(&reader.sealed_pages().unwrap()).unwrap();
    assert_eq!((&bytes[7..11], &bytes[17..22]), (&b"kept"[..], &b"later"[..]));
    let slots = store.key_page("a", KEY).unwrap().slots();
    assert_eq!((slots.len(), slots[0].label.as_str()), (1, "second"));
}

// S2.2, S3.5
#[test]
fn an_object_goes_back_to_a_snapshot_that_was_sealed_as_it_was() {
    let (_, store) = pool();
    let ((_, sealed_elsewhere), (_, plain)) = (pool(), pool());
    sealed::create(&store, "a", 9000).unwrap();
    sealed::create(&sealed_elsewhere, "a", 9000).unwrap();
    plain.create("a", &of(9000)).unwrap();
    for (name, other) in [("b", &sealed_elsewhere), ("c", &plain)] {
        sealed::rename(other, "a", name).unwrap();
        let leaving = other.begin_leaving(name, KEY).unwrap();
        let revived = store.adopt(&leaving.attributes()).unwrap();
        let mut bytes = vec![0; leaving.attributes().end() as usize];
        leaving.read(0, &mut bytes).unwrap();
        revived.write(0, &bytes).unwrap();
        revived.publish().unwrap();
        let snapshot = format!("of {name}");
        store.snapshot(&[SnapshotOf { object: name, key: KEY, name: &snapshot }]).unwrap();
        let addresses = ["a", name].map(|name| store.find(name).unwrap().entry.address);
        assert_eq!(addresses[0], addresses[1]);
        for (object, snapshot) in [("a", &snapshot[..]), (name, "of a")] {
            store.reap().unwrap();
            if store.find("of a").is_err() {
                store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "of a" }]).unwrap();
            }
            let refused = store.rollback(object, snapshot, KEY);
            assert!(
                matches!(refused, Err(StoreError::NotItsSnapshot { .. })),
                "{object} to {snapshot}: {refused:?}"
            );
        }
        let refused = seal_error(store.diff("a", name, KEY));
        assert!(matches!(refused, SealError::Unrelated { .. }), "{refused}");
    }
    assert_eq!(sealed::contents(&store, &store.find("a").unwrap()).unwrap(), vec![0; 9000]);
    assert_eq!(sealed::contents(&store, &store.find("b").unwrap()).unwrap(), vec![0; 9000]);
    let mut a = sealed::writer(&store, "a").unwrap();
    psync(&mut a, &[(7, b"kept")]).unwrap();
    a.detach().unwrap();
    store.create_from("a", KEY, "trial", &of(0)).unwrap();
    let mut trial = sealed::writer(&store, "trial").unwrap();
    psync(&mut trial, &[(7, b"then")]).unwrap();
    trial.detach().unwrap();
    store.snapshot(&[SnapshotOf { object: "trial", key: KEY, name: "tried" }]).unwrap();
    store.rollback("a", "tried", KEY).unwrap();
    assert_eq!(&sealed::contents(&store, &store.find("a").unwrap()).unwrap()[7..11], b"then");
    check_tiling(&store).unwrap();
}

// S3.1
#[test]
fn an_object_is_blank_until_something_of_its_contents_is_psynced() {
    let (_, store) = pool();
    sealed::create(&store, "a", 70 * PAGE).unwrap();
    let unlocked = sealed::unlock(&store, "a").unwrap();
    let mut a = sealed::writer(&store, "a").unwrap();
    assert!(a.is_blank());
    a.change_keys(&unlocked, |page, key| page.add(key, &file(2), "second")).unwrap();
    assert!(a.is_blank());
    psync(&mut a, &[(69 * PAGE, b"x")]).unwrap();
    assert!(!a.is_blank());
    a.detach().unwrap();
    assert!(!sealed::writer(&store, "a").unwrap().is_blank());
}

// S3.2
#[test]
fn keys_are_changed_beside_a_process_that_makes_snapshots() {
    for disk in [true, false] {
        let medium = formatted(4 << 20, SimConfig { disk, ..SimConfig::default() });
        let (store, other) = (open(&medium), open(&medium));
        sealed::create(&store, "a", 9000).unwrap();
        let unlocked = sealed::unlock(&store, "a").unwrap();
        let mut a = sealed::writer(&store, "a").unwrap();
        psync(&mut a, &[(7, b"kept")]).unwrap();
        other.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "s" }]).unwrap();
        a.change_keys(&unlocked, |page, key| page.add(key, &file(2), "second")).unwrap();
        psync(&mut a, &[(17, b"later")]).unwrap();
        a.detach().unwrap();
        let slots = |name| store.key_page(name, KEY).unwrap().slots().len();
        assert_eq!((slots("a"), slots("s")), (2, 1), "disk {disk}");
        let mut reader = store.attach_raw_reader("a", KEY).unwrap();
        let unlocked = reader.unlock(&file(2).sealed_as("a")).unwrap();
        reader.unseal(&unlocked).unwrap();
        let bytes = sealed::bytes(&reader.sealed_pages().unwrap()).unwrap();
        assert_eq!((&bytes[7..11], &bytes[17..22]), (&b"kept"[..], &b"later"[..]));
        store.attach_sealed_reader("s", KEY, &unlocked).unwrap().detach().unwrap();
        assert_eq!(seal_error(store.unlock("s", KEY, &file(2)).map(drop)), SealError::WrongKey { slots: 1 });
    }
}

// S3.1
#[test]
fn operations_that_sealed_objects_do_not_have_are_refused_and_change_nothing() {
    let ((_, store), (_, other)) = (pool(), pool());
    let object = sealed::create(&store, "a", 5000).unwrap();
    let mut writer = sealed::writer(&store, "a").unwrap();
    psync(&mut writer, &[(7, b"kept")]).unwrap();
    let refused =
        |what: &str, error: SealError| assert!(matches!(error, SealError::Refused { .. }), "{what}: {error}");
    refused("direct", seal_error(writer.begin_direct(8192)));
    refused("still", seal_error(store.hold_still("a", KEY).map(drop)));
    writer.detach().unwrap();
    for size in [9000, 100] {
        assert_eq!(seal_error(store.resize("a", KEY, size)), SealError::KeyNeeded);
    }
    assert_eq!(seal_error(store.read_object(&object, 0, &mut [0; 64])), SealError::KeyNeeded);
    let kept = indelible_store::store::Attributes::of(&object);
    refused("rebase", seal_error(other.adopt_elsewhere(&kept, None).map(drop)));
    assert_eq!(&sealed::contents(&store, &object).unwrap()[7..11], b"kept");
    assert_eq!(seal_error(store.rename("a", "b", KEY)), SealError::NameSealed);
    sealed::rename(&store, "a", "b").unwrap();
    assert_eq!(&sealed::contents(&store, &store.find("b").unwrap()).unwrap()[7..11], b"kept");
    store.delete("b", KEY).unwrap();
    check_tiling(&store).unwrap();
}

struct Pages {
    key_page: Vec<u8>,
    pages: Vec<Vec<u8>>,
    key: ObjectKey,
    signer: Option<Signer>,
    expected: Vec<u8>,
}

impl Pages {
    fn new(signed: bool) -> (Pages, Pages) {
        let (medium, store) = pool();
        let size = 2 * PAGE;
        let create = if signed { sealed::create_signed } else { sealed::create };
        let object = create(&store, "a", size).unwrap();
        let [older, newer] = [1_u8, 2].map(|value| {
            let mut writer = sealed::writer(&store, "a").unwrap();
            psync(&mut writer, &[(0, &vec![value; 8192])]).unwrap();
            writer.detach().unwrap();
            let bytes = medium.to_bytes();
            let pages: Vec<Vec<u8>> = (0..4).map(|page| bytes[page_at(&object, page)].to_vec()).collect();
            let key_page = KeyPage::read(Box::new(pages[0].as_slice().try_into().unwrap()), 4).unwrap();
            let key = key_page.open(&sealed::key()).unwrap();
            let signer = signed.then(|| sealed::sign_key().verify_key().into());
            Pages { key_page: pages[0].clone(), pages, key, signer, expected: vec![value; 8192] }
        });
        assert_eq!(Shape::of(2).unwrap().pages(), 4);
        (older, newer)
    }

    fn read(&self) -> Result<Vec<u8>> {
        let key_page = KeyPage::read(Box::new(self.key_page.as_slice().try_into().unwrap()), 4)?;
        let mut read = |page: u64, bytes: &mut PageBytes| {
            bytes.copy_from_slice(&self.pages[page as usize]);
            Ok(())
        };
        let mut tree = Tree::open(&key_page, &self.key, self.signer.as_ref(), &mut read)?;
        let mut bytes = vec![0; 8192];
        for (page, bytes) in (0..).zip(bytes.as_chunks_mut().0) {
            tree.page(page, bytes, &mut read)?;
        }
        Ok(bytes)
    }

    fn bytes(&mut self, page: usize) -> &mut Vec<u8> {
        if page == 0 { &mut self.key_page } else { &mut self.pages[page] }
    }
}

// S3.5: another test covers key slots.
#[test]
fn every_bit_of_every_structure_is_covered() {
    for (signed, step) in [(false, 1), (true, 8)] {
        let (_, mut pages) = Pages::new(signed);
        assert_eq!(pages.read().unwrap(), pages.expected);
        let mut errors = 0;
        for page in 0..4 {
            let (len, step) = if page == 0 { (1024, 1) } else { (4096, step) };
            for bit in (0..8 * len).step_by(step) {
                let flip = 1 << ((bit / 8 + bit) % 8);
                pages.bytes(page)[bit / 8] ^= flip;
                assert!(pages.read().is_err(), "page {page}, byte {}, bits {flip:#x}", bit / 8);
                pages.bytes(page)[bit / 8] ^= flip;
                errors += 1;
            }
        }
        assert_eq!(errors, 8 * (3 * 4096 / step + 1024));
        assert_eq!(pages.read().unwrap(), pages.expected);
    }
}

#[test]
fn every_bit_of_a_key_slot_is_covered() {
    let (_, store) = pool();
    store.create_sealed("a", &of(8192), &[(&file(1), "label"), (&file(2), "other")]).unwrap();
    let page = store.key_page("a", KEY).unwrap();
    for byte in 1024..1280 {
        for bit in 0..8 {
            let mut bytes = Box::new(*page.bytes());
            bytes[byte] ^= 1 << bit;
            let damaged = KeyPage::read(bytes, 4).unwrap();
            let found = seal_error(damaged.open(&file(1)).map(drop));
            assert!(matches!(found, SealError::Broken { page: 0, .. }), "byte {byte}, bit {bit}: {found}");
            damaged.open(&file(2)).unwrap();
        }
    }
    let mut bytes = Box::new(*page.bytes());
    bytes[1024 + 40] ^= 1;
    bytes[1024 + 16..1024 + 24].fill(0);
    let sum = indelible_store::format::checksum(0, &[&bytes[1024..1280]]);
    bytes[1024 + 16..1024 + 24].copy_from_slice(&sum.to_le_bytes());
    let found = seal_error(KeyPage::read(bytes, 4).unwrap().open(&file(1)).map(drop));
    assert_eq!(found, SealError::WrongKey { slots: 2 });
}

#[test]
fn no_line_of_an_older_state_or_of_another_place_is_accepted() {
    let (mut older, mut pages) = Pages::new(false);
    let states = [older.expected.clone(), pages.expected.clone()];
    let lines: Vec<(usize, usize)> = (0..4)
        .flat_map(|page| (0..if page == 0 { 16 } else { 64 }).map(move |line| (page, 64 * line)))
        .collect();
    let (mut refused, mut same) = (0, 0);
    let mut judge = |pages: &Pages, what: &dyn Fn() -> String| match pages.read() {
        Err(StoreError::Seal(_)) => refused += 1,
        Err(error) => panic!("{}: {error}", what()),
        Ok(bytes) => {
            assert_eq!(bytes, states[1], "{}", what());
            same += 1;
        }
    };
    for (page, at) in &lines {
        let kept = pages.bytes(*page)[*at..at + 64].to_vec();
        let old = older.bytes(*page)[*at..at + 64].to_vec();
        pages.bytes(*page)[*at..at + 64].copy_from_slice(&old);
        judge(&pages, &|| format!("older line at {at} of page {page}"));
        pages.bytes(*page)[*at..at + 64].copy_from_slice(&kept);
    }
    for (nth, (page, at)) in lines.iter().enumerate() {
        for (other, there) in &lines[nth + 1..] {
            let (one, two) =
                (pages.bytes(*page)[*at..at + 64].to_vec(), pages.bytes(*other)[*there..there + 64].to_vec());
            if one == two {
                continue;
            }
            pages.bytes(*page)[*at..at + 64].copy_from_slice(&two);
            pages.bytes(*other)[*there..there + 64].copy_from_slice(&one);
            judge(&pages, &|| format!("lines at {at} of {page} and at {there} of {other}"));
            pages.bytes(*page)[*at..at + 64].copy_from_slice(&one);
            pages.bytes(*other)[*there..there + 64].copy_from_slice(&two);
        }
    }
    println!("{refused} mixtures refused, {same} were no change");
    assert!(refused > 15_000 && same < 100, "{refused} refused, {same} the same");
}

// S3.5
#[test]
fn a_later_or_foreign_key_page_is_refused_by_name() {
    let (_, store) = pool();
    sealed::create(&store, "a", 8192).unwrap();
    let page = store.key_page("a", KEY).unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = Box::new(*page.bytes());
        bytes[at] = value;
        seal_error(KeyPage::read(bytes, 4).map(drop))
    };
    assert_eq!(with(4, 2), SealError::Unknown { what: "layout of sealing", number: 2 });
    assert_eq!(with(6, 9), SealError::Unknown { what: "cipher suite", number: 9 });
    assert_eq!(with(12, 16), SealError::Unknown { what: "set of flags", number: 16 });
    assert_eq!(with(9, 4), SealError::Unknown { what: "unit of sealing", number: 1024 });
    assert!(matches!(with(0, 0), SealError::Broken { page: 0, .. }));
    assert!(matches!(
        seal_error(KeyPage::read(Box::new(*page.bytes()), 3).map(drop)),
        SealError::Broken { .. }
    ));
}

// S3.1
#[test]
fn a_pool_without_space_refuses_and_keeps_the_last_psync() {
    let medium = SimMedium::new(1 << 20, SimConfig::default());
    Store::format(
        Arc::new(medium.handle()),
        process(1),
        &FormatOptions { zeroed: true, ..FormatOptions::default() },
    )
    .unwrap();
    let store = open(&medium);
    assert!(matches!(sealed::create(&store, "large", 2 << 20), Err(StoreError::NoRoom { .. })));
    sealed::create(&store, "a", 9000).unwrap();
    assert!(matches!(sealed::create(&store, "a", 9000), Err(StoreError::Exists)));
    check_tiling(&store).unwrap();
}

// S3.5
#[test]
fn key_pages_that_somebody_made_up_are_refused() {
    let target = indelible_testing::hostile::TARGETS.iter().find(|target| target.name == "key_page").unwrap();
    let mut rng = fastrand::Rng::with_seed(11);
    for seed in (target.seeds)() {
        (target.run)(&seed);
        (target.run)(&seed[..100]);
        for _ in 0..2000 {
            let mut bytes = seed.clone();
            for _ in 0..rng.usize(1..5) {
                let at = if rng.bool() { rng.usize(..256) } else { rng.usize(1024..1600) };
                bytes[at] = rng.u8(..);
            }
            (target.run)(&bytes);
        }
    }
}

/// Never taken for damaged.
#[test]
fn pages_are_read_beside_psyncs() {
    use std::sync::atomic::{AtomicBool, Ordering};
    for disk in [true, false] {
        let medium = formatted(4 << 20, SimConfig { disk, ..SimConfig::default() });
        let store = open(&medium);
        sealed::create(&store, "a", 40 * PAGE).unwrap();
        let mut writer = sealed::writer(&store, "a").unwrap();
        writer.set_cached_pages(8);
        let (pages, done) = (writer.sealed_pages().unwrap(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 0..2_u64 {
                let (pages, done) = (&pages, &done);
                scope.spawn(move || {
                    let mut newest = [0; 40];
                    for round in thread.. {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        let (page, mut bytes) = (round * 7 % 40, [9; PAGE as usize]);
                        pages.read(page, &mut bytes).unwrap();
                        let version = bytes[0];
                        assert!(bytes.iter().all(|byte| *byte == version), "page {page} is of two psyncs");
                        assert!(version >= newest[page as usize], "page {page} went back to {version}");
                        newest[page as usize] = version;
                    }
                });
            }
            for version in 1..=120_u8 {
                let first = u64::from(version) * 3 % 36;
                let bytes = vec![version; 4 * PAGE as usize];
                psync(&mut writer, &[(first * PAGE, &bytes)]).unwrap();
                if version % 10 == 0 {
                    writer.checkpoint().unwrap();
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
