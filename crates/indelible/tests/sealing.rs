//! Attached sealed objects on every medium with every tracking (S3.1, S3.2, S3.5).

use super::support::{Ground, World, everywhere, seal_key as key};
use indelible::collections::PVec;
use indelible::{Cost, CreateOptions, ErrorKind, Heap, HeapOptions, Pool, SealKey, psync_all};
use indelible_testing::Seeded;

const SIZE: usize = 300_000;
const PLANTED: &[u8] = b"planted plaintext of thirty-two.";

fn sealed(pool: &Pool, name: &str) {
    pool.create_with(name, &CreateOptions::new(SIZE as u64).sealed(&key(), "test")).unwrap();
}

#[test]
fn psynced_bytes_come_back_and_are_nowhere_in_the_pool() {
    everywhere(|world| {
        let pool = world.format();
        sealed(&pool, "a");
        let (mut expected, mut rng) = (vec![0_u8; SIZE], Seeded::new(0x5eed));
        for round in 0..4 {
            let mut a = pool.attach_sealed("a", b"", &key()).unwrap();
            assert!(a.as_slice() == expected, "round {round}");
            for _ in 0..6 {
                let at = rng.usize(..SIZE - 9000);
                let len = [1, 8, 200, 9000][rng.usize(..4)];
                let planted: Vec<u8> = PLANTED.iter().cycle().take(len).copied().collect();
                a.range_mut(at..at + len).copy_from_slice(&planted);
                expected[at..at + len].copy_from_slice(&planted);
                a.psync().unwrap();
            }
            a.range_mut(0..8).fill(0xee);
            a.detach().unwrap();
            let bytes = world.raw();
            assert!(!bytes.windows(16).any(|window| window == &PLANTED[..16]), "round {round}: plaintext");
        }
        drop(pool);
        let pool = world.open();
        let a = pool.attach_read_sealed("a", b"", &key()).unwrap();
        let again = pool.attach_read_sealed("a", b"", &key()).unwrap();
        assert!(a.as_slice() == expected && again.as_slice() == expected);
    });
}

// S3.2
#[test]
fn without_its_key_nothing_of_an_object_is_read() {
    everywhere(|world| {
        let pool = world.format();
        sealed(&pool, "a");
        pool.create("plain", 4096).unwrap();
        let cheap = Cost { memory: 64, passes: 1, lanes: 1 };
        let wrong = [
            SealKey::file(vec![1; 32]).unwrap(),
            SealKey::passphrase("guess".into()).unwrap().costing(cheap).unwrap(),
        ];
        for wrong in &wrong {
            for error in [
                pool.attach_sealed("a", b"", wrong).err().unwrap(),
                pool.attach_read_sealed("a", b"", wrong).err().unwrap(),
            ] {
                assert_eq!(error.kind(), ErrorKind::WrongKey, "{error}");
                assert!(
                    error.to_string().contains("\"a\"") && !error.to_string().contains("guess"),
                    "{error}"
                );
            }
        }
        for error in [
            pool.attach("a").err().unwrap(),
            pool.attach_read("a").err().unwrap(),
            pool.attach_snapshot("a").err().unwrap(),
            pool.resize("a", 10, b"").err().unwrap(),
            pool.attach_sealed("plain", b"", &key()).err().unwrap(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Sealed, "{error}");
        }
        pool.attach_sealed("a", b"", &key()).unwrap().detach().unwrap();
    });
}

// S3.5
#[test]
fn a_page_that_was_changed_is_an_error_that_names_it() {
    everywhere(|world| {
        let pool = world.format();
        sealed(&pool, "ledger");
        let mut ledger = pool.attach_sealed("ledger", b"", &key()).unwrap();
        ledger.range_mut(5 * 4096..5 * 4096 + 8).fill(7);
        ledger.psync().unwrap();
        ledger.detach().unwrap();
        let at = pool.store().find("ledger").unwrap().entry.primary_offset() + (1 + 1 + 5) * 4096 + 100;
        let flip = || match world.sim() {
            Some(sim) => sim.flip(at, 3),
            None => {
                use std::os::unix::fs::FileExt;
                let file = std::fs::File::options().read(true).write(true).open(world.path()).unwrap();
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                file.write_all_at(&[byte[0] ^ 8], at).unwrap();
            }
        };
        flip();
        let written = pool.attach_sealed("ledger", b"", &key()).and_then(|ledger| ledger.prefault(0..SIZE));
        let read = pool.attach_read_sealed("ledger", b"", &key()).and_then(|ledger| ledger.prefault(0..SIZE));
        for error in [written.unwrap_err(), read.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            let text = error.to_string();
            assert!(text.contains("\"ledger\"") && text.contains("page 5"), "{text}");
        }
        flip();
        assert_eq!(pool.attach_sealed("ledger", b"", &key()).unwrap().as_slice()[5 * 4096], 7);
    });
}

// S3.1
#[test]
fn sealed_and_plain_objects_are_psynced_as_one_step_and_reverted() {
    everywhere(|world| {
        let pool = world.format();
        sealed(&pool, "a");
        pool.create("b", SIZE as u64).unwrap();
        let mut a = pool.attach_sealed("a", b"", &key()).unwrap();
        let mut b = pool.attach("b").unwrap();
        for value in 1..5 {
            a.range_mut(0..SIZE).fill(value);
            b.range_mut(0..SIZE).fill(value);
            psync_all(&mut [&mut a, &mut b]).unwrap();
        }
        a.range_mut(100..9000).fill(99);
        a.revert().unwrap();
        assert!(a.as_slice().iter().all(|byte| *byte == 4));
        a.psync().unwrap();
        a.detach().unwrap();
        b.detach().unwrap();
        let a = pool.attach_read_sealed("a", b"", &key()).unwrap();
        assert!(a.as_slice().iter().all(|byte| *byte == 4));
    });
}

#[test]
fn sealed_objects_grow_while_they_are_attached() {
    everywhere(|world| {
        let pool = world.format();
        sealed(&pool, "a");
        let mut a = pool.attach_sealed("a", b"", &key()).unwrap();
        a.range_mut(0..8).fill(1);
        a.psync().unwrap();
        a.range_mut(SIZE - 8..SIZE).fill(2);
        let (from, mut size) = (a.as_slice().as_ptr(), SIZE);
        for more in [9000, 300_000] {
            a.grow((size + more) as u64).unwrap();
            assert!(a.as_slice().as_ptr() == from && a.len() == size + more);
            assert!(a.as_slice()[size..].iter().all(|byte| *byte == 0));
            a.range_mut(size + more - 8..size + more).fill(3);
            a.psync().unwrap();
            size += more;
            if pool.stat("b").is_err() {
                pool.create("b", 4096).unwrap();
            }
        }
        let expected = a.as_slice().to_vec();
        a.detach().unwrap();
        assert_eq!(pool.stat("a").unwrap().size, size as u64);
        let a = pool.attach_read_sealed("a", b"", &key()).unwrap();
        assert!(a.as_slice() == expected && expected[..8] == [1; 8] && expected[SIZE - 8..SIZE] == [2; 8]);
        drop(a);
        pool.resize_sealed("a", 5, b"", &key()).unwrap();
        pool.resize_sealed("a", 5000, b"", &key()).unwrap();
        let a = pool.attach_read_sealed("a", b"", &key()).unwrap();
        assert!(a.as_slice()[..5] == [1; 5] && a.as_slice()[5..].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn a_heap_in_a_sealed_object_grows_by_itself() {
    everywhere(|world| {
        let pool = world.format();
        sealed(&pool, "a");
        pool.create("b", 4096).unwrap();
        let open = || {
            let object = pool.attach_sealed("a", b"", &key()).unwrap();
            Heap::open_or_format_with(object, HeapOptions::new().grow(true)).unwrap()
        };
        let mut heap = open();
        heap.root_or_default::<PVec<u64>>("numbers").unwrap().extend(0..100_000);
        heap.psync().unwrap();
        assert!(pool.stat("a").unwrap().size > 800_000);
        drop(heap);
        let mut heap = open();
        assert!(heap.root_or_default::<PVec<u64>>("numbers").unwrap().iter().copied().eq(0..100_000));
    });
}

// S3.2
#[test]
fn an_object_gets_another_key() {
    everywhere(|world| {
        let pool = world.format();
        let other = SealKey::file(vec![1; 32]).unwrap();
        let options = CreateOptions::new(SIZE as u64).sealed(&key(), "test").sealed(&other, "other");
        let mut a = pool.create_attached_with("a", &options).unwrap();
        a.range_mut(0..SIZE).fill(7);
        a.psync().unwrap();
        assert_eq!(pool.reencrypt("a", b"", &[&key()], |_, _| {}).unwrap_err().kind(), ErrorKind::Held);
        a.detach().unwrap();
        let former = world.raw();
        let mut told = (0, 0);
        pool.reencrypt("a", b"", &[&key()], |done, all| told = (done, all)).unwrap();
        assert!(told.0 == told.1 && told.1 == SIZE.div_ceil(4096) as u64, "{told:?}");
        assert_eq!(pool.attach_sealed("a", b"", &other).err().unwrap().kind(), ErrorKind::WrongKey);
        assert!(pool.attach_read_sealed("a", b"", &key()).unwrap().as_slice().iter().all(|byte| *byte == 7));
        let labels: Vec<String> =
            pool.key_slots("a", b"").unwrap().into_iter().map(|slot| slot.label).collect();
        assert_eq!(labels, ["test"]);
        assert_ne!(former, world.raw());
    });
}

// S3.2
#[test]
fn keys_come_and_go() {
    let world = World::new(Ground::File, indelible::Tracking::Auto, false);
    let pool = world.format();
    let cheap = Cost { memory: 64, passes: 1, lanes: 1 };
    let other = SealKey::passphrase("correct horse".into()).unwrap().costing(cheap).unwrap();
    let options = CreateOptions::new(5000).key(b"guard").sealed(&key(), "first");
    let mut a = pool.create_attached_with("a", &options).unwrap();
    a.range_mut(0..4).fill(9);
    a.psync().unwrap();
    assert_eq!(pool.add_key("a", b"guard", &key(), &other, "x").unwrap_err().kind(), ErrorKind::Held);
    a.detach().unwrap();
    assert_eq!(pool.add_key("a", b"guard", &key(), &other, "second").unwrap(), 1);
    assert_eq!(pool.add_key("a", b"", &key(), &other, "x").unwrap_err().kind(), ErrorKind::WrongKey);
    pool.remove_key("a", b"guard", &other, 0).unwrap();
    assert_eq!(pool.remove_key("a", b"guard", &other, 1).unwrap_err().kind(), ErrorKind::Sealed);
    assert_eq!(pool.attach_sealed("a", b"guard", &key()).err().unwrap().kind(), ErrorKind::WrongKey);
    let labels: Vec<String> =
        pool.key_slots("a", b"guard").unwrap().into_iter().map(|slot| slot.label).collect();
    assert_eq!(labels, ["second"]);
    assert_eq!(pool.attach_read_sealed("a", b"guard", &other).unwrap().as_slice()[..4], [9; 4]);
}

// S3.1
#[test]
fn core_dumps_have_no_plaintext() {
    let world = World::new(Ground::File, indelible::Tracking::Auto, false);
    let pool = world.format();
    sealed(&pool, "a");
    pool.create("plain", SIZE as u64).unwrap();
    let flags = |address: *const u8| {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let from = maps.find(&format!("{:x}-", address as usize)).expect("it is mapped");
        maps[from..].lines().find(|line| line.starts_with("VmFlags:")).unwrap().to_owned()
    };
    let (a, plain) = (pool.attach_sealed("a", b"", &key()).unwrap(), pool.attach("plain").unwrap());
    assert!(flags(a.as_slice().as_ptr()).contains(" dd"), "{}", flags(a.as_slice().as_ptr()));
    assert!(!flags(plain.as_slice().as_ptr()).contains(" dd"));
    a.detach().unwrap();
    let a = pool.attach_read_sealed("a", b"", &key()).unwrap();
    assert!(flags(a.as_slice().as_ptr()).contains(" dd"));
}
