//! Copies, snapshots, readers beside writers and moves of sealed objects, on every medium with
//! every tracking (S2.2, S3.1, S3.5).

use super::support::{Ground, World, everywhere, seal_key};
use indelible::{BrokenPage, CreateOptions, ErrorKind, Object, Pool, SealKey, psync_all};
use indelible_store::format::seal::Shape;
use indelible_testing::Seeded;
use std::collections::BTreeMap;

const PAGE: usize = 4096;
const SIZE: usize = 70 * PAGE - 100;
const PLANTED: &[u8] = b"planted plaintext of thirty-two.";

fn key() -> SealKey {
    seal_key().of_any_name()
}

fn wrong() -> SealKey {
    SealKey::file(vec![1; 32]).unwrap()
}

fn sealed(pool: &Pool, name: &str) -> Object {
    pool.create_attached_with(name, &CreateOptions::new(SIZE as u64).sealed(&key(), "test")).unwrap()
}

fn change(object: &mut Object, bytes: &mut [u8], rng: &mut Seeded) {
    for _ in 0..1 + rng.usize(..4) {
        let at = rng.usize(..bytes.len());
        let end = (at + [1, 8, 200, 9000][rng.usize(..4)]).min(bytes.len());
        let shift = rng.usize(..32);
        let text = PLANTED.iter().cycle().skip(shift).take(end - at);
        bytes[at..end].iter_mut().zip(text).for_each(|(byte, text)| *byte = *text);
        object.range_mut(at..end).copy_from_slice(&bytes[at..end]);
    }
    object.psync().unwrap();
}

#[track_caller]
fn holds(pool: &Pool, name: &str, expected: &[u8]) {
    let object = pool.attach_read_sealed(name, b"", &key()).unwrap();
    let found = object.as_slice().iter().zip(expected).position(|(a, b)| a != b);
    assert_eq!((found, object.len()), (None, expected.len()), "{name}");
}

fn differing(older: &[u8], newer: &[u8]) -> Vec<u64> {
    let pairs = (0..).zip(older.chunks(PAGE).zip(newer.chunks(PAGE)));
    pairs.filter(|(_, (older, newer))| older != newer).map(|(page, _)| page).collect()
}

#[test]
fn s2_02_copies_and_snapshots_of_a_sealed_object_change_apart() {
    everywhere(|world| {
        println!("seed 0x5ea1");
        let (pool, mut rng) = (world.format(), Seeded::new(0x5ea1));
        let mut expected = BTreeMap::new();
        let mut a = sealed(&pool, "a");
        let mut bytes = vec![0; SIZE];
        change(&mut a, &mut bytes, &mut rng);
        for round in 0..3 {
            let name = format!("s{round}");
            pool.snapshot("a", &name, b"").unwrap();
            expected.insert(name.clone(), bytes.clone());
            change(&mut a, &mut bytes, &mut rng);
            let found: Vec<u64> = pool.diff(&name, "a", b"").unwrap().pages.into_iter().flatten().collect();
            assert_eq!(found, differing(&expected[&name], &bytes), "round {round}");
        }
        pool.create_from("a", "copy", b"", &CreateOptions::new(0)).unwrap();
        expected.insert("copy".into(), bytes.clone());
        change(&mut a, &mut bytes, &mut rng);
        a.detach().unwrap();
        expected.insert("a".into(), bytes);
        pool.create_from("s1", "trial", b"", &CreateOptions::new(0)).unwrap();
        expected.insert("trial".into(), expected["s1"].clone());
        for name in ["copy", "trial", "a", "copy"] {
            let mut object = pool.attach_sealed(name, b"", &key()).unwrap();
            change(&mut object, expected.get_mut(name).unwrap(), &mut rng);
            object.detach().unwrap();
        }
        expected.iter().for_each(|(name, bytes)| holds(&pool, name, bytes));
        pool.rollback("a", "s2", b"").unwrap();
        expected.insert("a".into(), expected["s2"].clone());
        for name in ["s0", "s2"] {
            pool.destroy(name).unwrap();
            expected.remove(name);
        }
        pool.collect(&mut |_, _| {}).unwrap();
        expected.iter().for_each(|(name, bytes)| holds(&pool, name, bytes));
        assert_eq!(pool.attach_sealed("s1", b"", &key()).err().unwrap().kind(), ErrorKind::ObjectReadOnly);
        for name in ["a", "copy", "s1"] {
            assert_eq!(pool.attach_read(name).err().unwrap().kind(), ErrorKind::Sealed);
            assert_eq!(
                pool.attach_read_sealed(name, b"", &wrong()).err().unwrap().kind(),
                ErrorKind::WrongKey
            );
        }
        drop(pool);
        assert!(!world.raw().windows(16).any(|window| window == &PLANTED[..16]), "plaintext");
        let pool = world.open();
        expected.iter().for_each(|(name, bytes)| holds(&pool, name, bytes));
    });
}

#[test]
fn s2_02_readers_of_a_sealed_object_go_on_to_its_newest_psync() {
    everywhere(|world| {
        println!("seed 0x5ea2");
        let (pool, mut rng) = (world.format(), Seeded::new(0x5ea2));
        let (mut a, mut bytes) = (sealed(&pool, "a"), vec![0; SIZE]);
        let mut plain = pool.create_attached("plain", SIZE as u64).unwrap();
        let mut readers = [(); 2].map(|()| pool.attach_snapshot_sealed_anywhere("a", b"", &key()).unwrap());
        for round in 0..16 {
            change(&mut a, &mut bytes, &mut rng);
            if round % 4 == 3 {
                a.checkpoint().unwrap();
                change(&mut a, &mut bytes, &mut rng);
            }
            a.range_mut(5..6).fill(round);
            plain.range_mut(5..6).fill(round);
            bytes[5] = round;
            psync_all(&mut [&mut a, &mut plain]).unwrap();
            assert!(readers[0].refresh().unwrap(), "round {round}");
            assert!(readers[0].as_slice() == bytes, "round {round}");
            if round % 3 == 0 {
                let newer = readers[1].newer().unwrap().expect("there is one");
                assert!(newer.as_slice() == bytes && readers[1].as_slice() != bytes, "round {round}");
                assert!(readers[1].refresh().unwrap() && readers[1].as_slice() == bytes);
            }
        }
        assert!(!readers[0].refresh().unwrap());
        a.detach().unwrap();
        drop(readers);
        holds(&pool, "a", &bytes);
    });
}

// S3.5
#[test]
fn a_reader_beside_a_writer_has_the_seal_key() {
    let world = World::new(Ground::File, indelible::Tracking::Auto, false);
    let pool = world.format();
    let mut a = sealed(&pool, "a");
    pool.create("plain", 4096).unwrap();
    let free = pool.info().unwrap().free;
    let refused = |reader: indelible::Result<indelible::ReadObject>| reader.err().unwrap().kind();
    assert_eq!(refused(pool.attach_snapshot("a")), ErrorKind::Sealed);
    assert_eq!(refused(pool.attach_snapshot_sealed_anywhere("a", b"", &wrong())), ErrorKind::WrongKey);
    assert_eq!(refused(pool.attach_snapshot_sealed("plain", b"", &key())), ErrorKind::Sealed);
    assert_eq!(refused(pool.attach_snapshot_sealed("none", b"", &key())), ErrorKind::NotFound);
    a.range_mut(0..4).fill(7);
    a.psync().unwrap();
    a.detach().unwrap();
    pool.collect(&mut |_, _| {}).unwrap();
    assert_eq!(pool.info().unwrap().free, free, "nothing is left of those that were refused");
    let found = pool.attach_snapshot_sealed("a", b"", &key()).unwrap();
    assert_eq!(found.as_slice()[..4], [7; 4]);
}

fn flip(world: &World, pool: &Pool, name: &str, page: usize) {
    use std::os::unix::fs::FileExt;
    let place = Shape::of(SIZE.div_ceil(PAGE) as u64).unwrap().content_page(page as u64);
    let at = pool.store().find(name).unwrap().entry.primary_offset() + place * PAGE as u64 + 100;
    let file = std::fs::File::options().read(true).write(true).open(world.path()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 8], at).unwrap();
}

#[test]
fn pages_of_bases_that_were_changed_are_named() {
    let world = World::new(Ground::File, indelible::Tracking::Auto, false);
    let pool = world.format();
    let mut a = sealed(&pool, "a");
    a.range_mut(0..SIZE).fill(3);
    a.psync().unwrap();
    pool.snapshot("a", "s", b"").unwrap();
    a.range_mut(0..4).fill(7);
    a.psync().unwrap();
    a.detach().unwrap();
    let verify = |name, key: &SealKey| pool.verify_sealed(name, b"", key, &mut |_, _| {});
    let broken = |pages: &[u64]| -> Vec<BrokenPage> {
        pages.iter().map(|page| BrokenPage { page: *page, what: "of its contents" }).collect()
    };
    assert_eq!((verify("a", &key()).unwrap(), verify("s", &key()).unwrap()), (broken(&[]), broken(&[])));
    assert_eq!(verify("a", &wrong()).unwrap_err().kind(), ErrorKind::WrongKey);
    flip(&world, &pool, "s", 0);
    flip(&world, &pool, "s", 5);
    assert_eq!(verify("s", &key()).unwrap(), broken(&[0, 5]));
    assert_eq!(verify("a", &key()).unwrap(), broken(&[5]));
    for name in ["a", "s"] {
        let error = pool.attach_read_sealed(name, b"", &key()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    }
    let error = pool.attach_snapshot_sealed("a", b"", &key()).err().unwrap();
    assert!(error.kind() == ErrorKind::Damaged && error.to_string().contains("page 5"), "{error}");
    flip(&world, &pool, "s", 5);
    let mut a = pool.attach_sealed("a", b"", &key()).unwrap();
    let mut reader = pool.attach_snapshot_sealed_anywhere("a", b"", &key()).unwrap();
    a.range_mut(9 * PAGE..9 * PAGE + 8).fill(9);
    a.psync().unwrap();
    a.checkpoint().unwrap();
    a.range_mut(0..1).fill(1);
    a.psync().unwrap();
    a.checkpoint().unwrap();
    flip(&world, &pool, "a", 9);
    let error = reader.refresh().unwrap_err();
    assert!(error.kind() == ErrorKind::Damaged && error.to_string().contains("page 9"), "{error}");
    assert!(reader.as_slice().iter().all(|byte| *byte == 3 || *byte == 7), "it is as it was");
}

#[test]
fn s2_04_a_sealed_object_moves_from_medium_to_medium_with_its_keys() {
    everywhere(|world| {
        println!("seed 0x5ea3");
        let (pool, mut rng) = (world.format(), Seeded::new(0x5ea3));
        let other = world.options().format(world.dir().join("other.pmo"), 64 << 20).unwrap();
        let (mut a, mut bytes) = (sealed(&pool, "a"), vec![0; SIZE]);
        let mut silent = |_, _| {};
        change(&mut a, &mut bytes, &mut rng);
        pool.copy_to("a", b"", &other, "copy", &mut silent).unwrap();
        let copied = bytes.clone();
        pool.snapshot("a", "s", b"").unwrap();
        change(&mut a, &mut bytes, &mut rng);
        a.detach().unwrap();
        holds(&other, "copy", &copied);
        let refused = pool.copy_rebased("a", b"", &other, "rebased", &mut silent).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Sealed, "{refused}");
        assert_eq!(pool.move_rebased("a", b"", &other, &mut silent).unwrap_err().kind(), ErrorKind::Sealed);
        let (before, slots) = (pool.stat("a").unwrap(), pool.key_slots("a", b"").unwrap());
        pool.move_to("a", b"", &other, &mut silent).unwrap();
        let there = other.stat("a").unwrap();
        assert_eq!(
            (there.id, there.size, there.address, there.psyncs),
            (before.id, SIZE as u64, before.address, before.psyncs)
        );
        assert!(there.sealed && other.key_slots("a", b"").unwrap() == slots);
        holds(&other, "a", &bytes);
        holds(&pool, "s", &copied);
        assert_eq!(other.attach_read_sealed("a", b"", &wrong()).err().unwrap().kind(), ErrorKind::WrongKey);
        let mut a = other.attach_sealed("a", b"", &key()).unwrap();
        change(&mut a, &mut bytes, &mut rng);
        a.detach().unwrap();
        other.move_to("a", b"", &pool, &mut silent).unwrap();
        holds(&pool, "a", &bytes);
        sealed(&pool, "new").detach().unwrap();
        pool.move_to("new", b"", &other, &mut silent).unwrap();
        holds(&other, "new", &vec![0; SIZE]);
        drop(pool);
        holds(&world.open(), "a", &bytes);
    });
}
