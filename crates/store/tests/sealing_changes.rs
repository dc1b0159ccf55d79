//! Sealed objects with new sizes or keys, and volatile ones (S3.1, S3.2).

use super::seal_keys::{KEY, file, of, open, passphrase, pool, seal_error};
use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::seal::{KeyPage, PageBytes, Tree};
use indelible_store::store::{Severity, Store};
use indelible_store::table::CreateOptions;
use indelible_testing::pool::{check_tiling, process, psync};
use indelible_testing::scenario::formatted;
use indelible_testing::sealed::{self, page_at};
use indelible_testing::{Fault, OpKind, SimConfig, SimMedium};
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn a_rotation_keeps_the_slots_of_the_keys_that_are_given() {
    let (_, store) = pool();
    let (first, second, third) = (file(1), passphrase("second"), file(3));
    let labels = [(&first, "first"), (&second, "second"), (&third, "third")];
    let free = store.info().unwrap().free;
    store.create_sealed("a", &of(300_000), &labels).unwrap();
    let former = store.unlock("a", KEY, &first).unwrap();
    let mut writer = store.attach_sealed_writer("a", KEY, &former).unwrap();
    psync(&mut writer, &[(7, b"kept"), (299_000, b"too")]).unwrap();
    let refused = seal_error(writer.reencrypt(&[&first, &file(9)], &mut |_, _| {}));
    assert_eq!(refused, SealError::WrongKey { slots: 3 });
    assert!(matches!(seal_error(writer.reencrypt(&[], &mut |_, _| {})), SealError::BadKey { .. }));
    let before = writer.sealed_pages().unwrap().state();
    let mut told = Vec::new();
    writer.reencrypt(&[&third, &first, &third], &mut |done, all| told.push((done, all))).unwrap();
    assert_eq!(told, [(64, 74), (74, 74)]);
    let after = writer.sealed_pages().unwrap().state();
    assert!(after.id == before.id && after.version > before.version);
    psync(&mut writer, &[(17, b"later")]).unwrap();
    writer.detach().unwrap();
    assert_eq!(
        seal_error(store.attach_sealed_writer("a", KEY, &former).map(drop)),
        SealError::WrongKey { slots: 2 }
    );
    assert_eq!(seal_error(store.unlock("a", KEY, &second).map(drop)), SealError::WrongKey { slots: 2 });
    let slots = store.key_page("a", KEY).unwrap().slots();
    assert_eq!(slots.iter().map(|slot| slot.label.as_str()).collect::<Vec<_>>(), ["first", "third"]);
    for key in [&first, &third] {
        let unlocked = store.unlock("a", KEY, key).unwrap();
        let reader = store.attach_sealed_reader("a", KEY, &unlocked).unwrap();
        let bytes = sealed::bytes(&reader.sealed_pages().unwrap()).unwrap();
        assert_eq!(
            (&bytes[7..11], &bytes[17..22], &bytes[299_000..299_003]),
            (&b"kept"[..], &b"later"[..], &b"too"[..])
        );
    }
    check_tiling(&store).unwrap();
    store.destroy("a", KEY).unwrap();
    assert!(store.info().unwrap().free + (1 << 20) >= free, "the former extent is free");
}

#[test]
fn an_erasable_object_opens_by_its_one_key_file_alone() {
    let (medium, store) = pool();
    fn bad<T>(result: Result<T>) -> bool {
        matches!(seal_error(result), SealError::BadKey { .. })
    }
    let (first, second) = (file(1).erasable().unwrap(), file(2));
    assert!(bad(passphrase("second").erasable()));
    for others in [vec![(&first, ""), (&second, "")], vec![(&second, ""), (&first, "")]] {
        assert!(bad(store.create_sealed("a", &of(9000), &others)));
    }
    let expires = first.clone().until(1 << 40);
    assert!(bad(store.create_sealed("a", &of(9000), &[(&expires, "")])));
    store.create_sealed("a", &of(9000), &[(&first, "label")]).unwrap();
    let unlocked = store.unlock("a", KEY, &first).unwrap();
    let mut writer = store.attach_sealed_writer("a", KEY, &unlocked).unwrap();
    psync(&mut writer, &[(7, b"first")]).unwrap();
    let copied = medium.to_bytes();
    assert!(bad(writer.change_keys(&unlocked, |page, key| page.add(key, &second, ""))));
    assert!(bad(writer.change_keys(&unlocked, |page, _| page.exchange(&first, &second, None))));
    assert!(bad(writer.renew(&first, &passphrase("second"), &mut |_, _| {})));
    assert_eq!(seal_error(writer.renew(&second, &second, &mut |_, _| {})), SealError::WrongKey { slots: 1 });
    writer.renew(&first, &second, &mut |_, _| {}).unwrap();
    psync(&mut writer, &[(7, b"later")]).unwrap();
    writer.detach().unwrap();
    let page = store.key_page("a", KEY).unwrap();
    assert!(page.is_erasable());
    assert_eq!(page.slots().iter().map(|slot| (slot.slot, &*slot.label)).collect::<Vec<_>>(), [(0, "label")]);
    assert_eq!(seal_error(store.unlock("a", KEY, &first).map(drop)), SealError::WrongKey { slots: 1 });
    let unlocked = store.unlock("a", KEY, &second).unwrap();
    let reader = store.attach_sealed_reader("a", KEY, &unlocked).unwrap();
    assert_eq!(sealed::bytes(&reader.sealed_pages().unwrap()).unwrap()[7..12], *b"later");
    let copy =
        Store::open(Arc::new(SimMedium::from_bytes(&copied, SimConfig::default())), process(2)).unwrap();
    assert_eq!(seal_error(copy.unlock("a", KEY, &second).map(drop)), SealError::WrongKey { slots: 1 });
    copy.unlock("a", KEY, &first).unwrap();
}

#[test]
fn a_sealed_object_takes_any_size_and_keeps_what_is_left() {
    let (medium, store) = pool();
    sealed::create(&store, "a", 100).unwrap();
    let mut expected = vec![0_u8; 100];
    let mut rng = fastrand::Rng::with_seed(3);
    for round in 0..60 {
        let size = [1, rng.usize(1..9000), rng.usize(1..300_000), 64 * 4096, 64 * 4096 + 1, 65 * 4096]
            [rng.usize(..6)];
        let attached = rng.bool() && size >= expected.len();
        if attached {
            let mut writer = sealed::writer(&store, "a").unwrap();
            writer.grow(size as u64).unwrap();
            assert!(matches!(writer.grow(1), Err(StoreError::BadSize { .. })) || size <= 4096);
            writer.detach().unwrap();
        } else {
            sealed::resize(&store, "a", size as u64).unwrap();
        }
        expected.resize(if attached && size <= 4096 { 1 } else { size }, 0);
        let object = store.find("a").unwrap();
        assert_eq!(object.entry.size.get(), expected.len() as u64, "round {round}");
        let mut writer = sealed::writer(&store, "a").unwrap();
        let pages = writer.sealed_pages().unwrap();
        assert!(sealed::bytes(&pages).unwrap() == expected, "round {round}: {size}");
        let at = rng.usize(..expected.len());
        let bytes: Vec<u8> = (0..rng.usize(1..9000)).map(|_| rng.u8(..)).collect();
        let bytes = &bytes[..bytes.len().min(expected.len() - at)];
        expected[at..at + bytes.len()].copy_from_slice(bytes);
        psync(&mut writer, &[(at as u64, bytes)]).unwrap();
        writer.detach().unwrap();
    }
    for size in [0, (1 << 46) + 1] {
        let refused = sealed::resize(&store, "a", size);
        assert!(matches!(refused, Err(StoreError::BadSize { .. })), "{refused:?}");
    }
    check_tiling(&store).unwrap();
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).unwrap();
    assert!(report.findings.iter().all(|finding| finding.severity < Severity::Warning), "{report:?}");
}

#[test]
fn every_bit_of_a_grown_object_is_covered() {
    let (medium, store) = pool();
    sealed::create(&store, "a", 100).unwrap();
    let mut writer = sealed::writer(&store, "a").unwrap();
    psync(&mut writer, &[(0, &[7; 100])]).unwrap();
    for size in [66 * PAGE, 65 * PAGE + 5, 130 * PAGE] {
        writer.resize(size).unwrap();
        psync(&mut writer, &[(64 * PAGE, &[8; 100])]).unwrap();
    }
    writer.detach().unwrap();
    let object = store.find("a").unwrap();
    let (shape, bytes) = (sealed::shape(&object), medium.to_bytes());
    let place = |page: u64| bytes[page_at(&object, page)].to_vec();
    let mut pages: BTreeMap<u64, Vec<u8>> = (0..shape.pages()).map(|page| (page, place(page))).collect();
    let key = KeyPage::read(Box::new(pages[&0].as_slice().try_into().unwrap()), shape.pages()).unwrap();
    let key = key.open(&sealed::key()).unwrap();
    let read = |pages: &BTreeMap<u64, Vec<u8>>| -> Result<[u8; 2]> {
        let key_page = KeyPage::read(Box::new(pages[&0].as_slice().try_into().unwrap()), shape.pages())?;
        let mut read = |page: u64, bytes: &mut PageBytes| {
            bytes.copy_from_slice(&pages[&page]);
            Ok(())
        };
        let mut tree = Tree::open(&key_page, &key, None, &mut read)?;
        let mut bytes = [[0; PAGE as usize]; 3];
        for (page, bytes) in [0, 64, 129].into_iter().zip(&mut bytes) {
            tree.page(page, bytes, &mut read)?;
        }
        assert!(tree.size() == 130 * PAGE && bytes[2] == [0; PAGE as usize]);
        Ok([bytes[0][99], bytes[1][99]])
    };
    assert_eq!(read(&pages).unwrap(), [7, 8]);
    let used = [shape.key_page(), shape.page(0, 0), shape.page(0, 1), shape.page(1, 0)];
    let contents = [0, 64].map(|page| shape.content_page(page));
    for page in used.into_iter().chain(contents) {
        for byte in 0..if page == 0 { 1024 } else { PAGE as usize } {
            for bit in 0..8 {
                pages.get_mut(&page).unwrap()[byte] ^= 1 << bit;
                assert!(read(&pages).is_err(), "page {page}, byte {byte}, bit {bit}");
                pages.get_mut(&page).unwrap()[byte] ^= 1 << bit;
            }
        }
    }
    for page in [shape.page(0, 2), shape.content_page(1), shape.content_page(129)] {
        pages.get_mut(&page).unwrap().fill(0xff);
    }
    assert_eq!(read(&pages).unwrap(), [7, 8]);
}

// S3.1
#[test]
fn a_volatile_sealed_object_ends_with_the_boot() {
    let (_, store) = pool();
    let volatile = CreateOptions { volatile: Some(process(1).boot), ..of(100) };
    store.create_sealed("v", &volatile, &[(&sealed::key(), "")]).unwrap();
    let mut writer = sealed::writer(&store, "v").unwrap();
    psync(&mut writer, &[(7, b"kept")]).unwrap();
    writer.detach().unwrap();
    assert_eq!(&sealed::contents(&store, &store.find("v").unwrap()).unwrap()[7..11], b"kept");
    let past = CreateOptions { volatile: Some([9; 16]), ..of(100) };
    store.create_sealed("w", &past, &[(&sealed::key(), "")]).unwrap();
    assert!(matches!(store.unlock("w", KEY, &sealed::key()).map(drop), Err(StoreError::VolatileGone)));
    store.create_sealed("w", &volatile, &[(&sealed::key(), "")]).unwrap();
    assert!(sealed::writer(&store, "w").is_ok());
}

/// Others get the extents that it leaves.
// S3.3
#[test]
fn pages_are_read_beside_growth() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let medium = formatted(16 << 20, SimConfig::default());
    let store = open(&medium);
    sealed::create(&store, "a", 40 * PAGE).unwrap();
    let mut writer = sealed::writer(&store, "a").unwrap();
    for page in 0..40 {
        psync(&mut writer, &[(page * PAGE, &[page as u8 + 1; PAGE as usize])]).unwrap();
    }
    let (pages, done) = (writer.sealed_pages().unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (pages, done) = (&pages, &done);
            scope.spawn(move || {
                for round in thread.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let (page, mut bytes) = (round * 7 % 40, [9; PAGE as usize]);
                    pages.read(page, &mut bytes).unwrap();
                    assert!(bytes.iter().all(|byte| *byte == page as u8 + 1), "page {page}");
                }
            });
        }
        let grown = (1..40).try_for_each(|step| {
            writer.grow((40 + step * 5) * PAGE).map(drop)?;
            let name = format!("b{step}");
            store.create(&name, &of(30 * PAGE))?;
            let mut other = store.attach_writer(&name, KEY)?;
            psync(&mut other, &[(0, &[0xee; 30 * PAGE as usize])])?;
            other.detach()
        });
        done.store(true, Ordering::Relaxed);
        grown.unwrap();
    });
}

#[test]
fn a_size_that_could_not_be_sealed_leaves_nothing_behind() {
    let mut failed = 0;
    for kind in [OpKind::Reserve, OpKind::Write, OpKind::WriteDurable] {
        for nth in 0..20 {
            let (medium, store) = pool();
            let how = CreateOptions { sparse: true, ..of(100_000) };
            store.create_sealed("a", &how, &[(&sealed::key(), "")]).unwrap();
            let mut writer = sealed::writer(&store, "a").unwrap();
            psync(&mut writer, &[(5000, &[7; 3000])]).unwrap();
            medium.fail_at(kind, nth, Fault::NoSpace);
            let grown = writer.resize(600_000);
            medium.clear_faults();
            if grown.is_ok() {
                break;
            }
            let (size, poisoned) = (writer.object().entry.size.get(), writer.is_poisoned());
            let next = writer.resize(300_000);
            let grows = writer.grow(320_000);
            assert!(poisoned || next.is_ok() && grows.is_ok(), "{kind:?} {nth}: {next:?}, {grows:?}");
            failed += u32::from(!poisoned && size == 100_000);
            drop(writer);
            let again = open(&medium);
            let writer = sealed::writer(&again, "a").unwrap();
            assert!(poisoned || writer.object().entry.size.get() == 320_000, "{kind:?} {nth}");
            writer.detach().unwrap();
            check_tiling(&again).unwrap_or_else(|what| panic!("{kind:?} {nth}: {what}"));
            let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).unwrap();
            assert!(report.findings.iter().all(|finding| finding.severity == Severity::Note), "{report:?}");
        }
    }
    assert!(failed > 1, "only {failed}");
}
