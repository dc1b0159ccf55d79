//! Objects of page ranges of others (S2.2).

use super::support::{World, everywhere, seal_key};
use indelible::{Class, CreateOptions, ErrorKind, PageRange, Pool};
use indelible_testing::Seeded;
use std::collections::BTreeMap;
use std::ops::Range;

const PAGE: usize = 4096;

type Model = BTreeMap<String, Vec<u8>>;

fn of(object: &str, bytes: Range<usize>, at: usize) -> PageRange<'_> {
    PageRange { object, bytes: bytes.start as u64..bytes.end as u64, at: at as u64 }
}

fn add(pool: &Pool, model: &mut Model, name: &str, size: usize) {
    let seed = name.bytes().map(usize::from).sum::<usize>();
    let bytes: Vec<u8> = (0..size).map(|at| ((at / 61 + at / PAGE + seed) % 251) as u8).collect();
    let mut object = pool.create_attached(name, size as u64).unwrap();
    object.as_mut_slice().copy_from_slice(&bytes);
    object.psync().unwrap();
    object.detach().unwrap();
    model.insert(name.to_owned(), bytes);
}

fn expect(pool: &Pool, model: &Model, context: &str) {
    for (name, bytes) in model {
        let object = pool.attach_read(name).unwrap();
        let found = object.as_slice().iter().zip(bytes).position(|(a, b)| a != b);
        assert_eq!((found, object.as_slice().len()), (None, bytes.len()), "{name}, {context}");
    }
}

fn sound(world: &World) {
    if world.sim().is_none() {
        let report = indelible::check(world.path(), &world.options(), &mut |_, _| {}).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

/// Random ranges in ascending places, with gaps, of which every second one keeps its place.
fn random<'a>(model: &'a Model, rng: &mut Seeded) -> (Vec<PageRange<'a>>, Vec<u8>) {
    let names: Vec<&String> = model.keys().collect();
    let (mut ranges, mut bytes, mut at) = (Vec::new(), Vec::new(), 0);
    for _ in 0..1 + rng.usize(..5) {
        let name = names[rng.usize(..names.len())];
        let source = &model[name];
        at += rng.usize(..3);
        let stays = rng.usize(..2) == 0 && at * PAGE < source.len();
        let first = if stays { at } else { rng.usize(..source.len().div_ceil(PAGE)) };
        let end = ((first + 1 + rng.usize(..24)) * PAGE).min(source.len());
        let range = first * PAGE..end;
        bytes.resize(at * PAGE, 0);
        bytes.extend(&source[range.clone()]);
        ranges.push(of(name, range.clone(), at * PAGE));
        at += range.len().div_ceil(PAGE);
    }
    bytes.resize(bytes.len() + rng.usize(..3 * PAGE), 0);
    (ranges, bytes)
}

#[test]
fn s2_02_an_object_of_page_ranges_changes_apart_from_its_sources() {
    everywhere(|world| {
        let (pool, mut model, mut rng) = (world.format(), Model::new(), Seeded::new(0x4a6e));
        println!("seed 0x4a6e");
        add(&pool, &mut model, "a", 40 * PAGE + 100);
        add(&pool, &mut model, "b", 3 * PAGE - 1);
        pool.snapshot("a", "s", b"").unwrap();
        model.insert("s".into(), model["a"].clone());
        for round in 0..15 {
            let (ranges, bytes) = random(&model, &mut rng);
            let name = format!("n{round}");
            let how = CreateOptions::new(bytes.len() as u64);
            pool.create_from_ranges(&name, &ranges, b"", &how).unwrap();
            drop(ranges);
            model.insert(name.clone(), bytes);
            let context = format!("round {round}");
            expect(&pool, &model, &context);
            // The new one, or another one but the snapshot, changes.
            let names: Vec<String> = model.keys().filter(|name| *name != "s").cloned().collect();
            for name in [&name, &names[rng.usize(..names.len())]] {
                let bytes = model.get_mut(name).unwrap();
                let mut object = pool.attach(name).unwrap();
                for _ in 0..3 {
                    let at = rng.usize(..bytes.len());
                    let end = (at + [1, 200, 9000][rng.usize(..3)]).min(bytes.len());
                    object.range_mut(at..end).fill(round);
                    bytes[at..end].fill(round);
                }
                object.psync().unwrap();
                object.detach().unwrap();
            }
            if round % 3 == 2 {
                let gone = &names[rng.usize(..names.len())];
                pool.destroy(gone).unwrap();
                model.remove(gone);
            }
            if round % 7 == 6 {
                pool.collect(&mut |_, _| {}).unwrap();
            }
            expect(&pool, &model, &context);
        }
        drop(pool);
        expect(&world.open(), &model, "opened again");
        sound(world);
    });
}

#[test]
fn pages_that_keep_their_place_are_shared() {
    everywhere(|world| {
        let (pool, mut model) = (world.format(), Model::new());
        add(&pool, &mut model, "a", 100 * PAGE);
        add(&pool, &mut model, "b", 100 * PAGE);
        let how = CreateOptions::new(120 * PAGE as u64);
        let both = [of("a", 0..60 * PAGE, 0), of("b", 0..40 * PAGE, 60 * PAGE)];
        pool.create_from_ranges("n", &both, b"", &how).unwrap();
        let own = |name: &str| pool.stat(name).unwrap().own / PAGE as u64;
        assert!(pool.stat("n").unwrap().shares && pool.stat("a").unwrap().shares);
        assert_eq!((own("n"), own("a"), own("b")), (60, 0, 100));
        // Its addresses are its own: a process attaches it beside its sources.
        let (n, a) = (pool.attach("n").unwrap(), pool.attach("a").unwrap());
        assert_eq!(n.as_slice()[..60 * PAGE], a.as_slice()[..60 * PAGE]);
        assert_eq!(n.as_slice()[60 * PAGE..100 * PAGE], model["b"][..40 * PAGE]);
        drop((n, a));
        // Few pages are copied, unless of a snapshot.
        pool.create_from_ranges("few", &[of("a", 0..15 * PAGE, 0)], b"", &how).unwrap();
        assert!(!pool.stat("few").unwrap().shares);
        pool.snapshot("b", "s", b"").unwrap();
        pool.create_from_ranges("one", &[of("s", PAGE..2 * PAGE, PAGE)], b"", &how).unwrap();
        assert!(pool.stat("one").unwrap().shares);
        let diff = pool.diff("s", "one", b"").unwrap();
        assert_eq!(diff.pages, [0..1, 2..100], "only page 1 is equal");
        pool.destroy("a").unwrap();
        pool.collect(&mut |_, _| {}).unwrap();
        assert!(!pool.stat("n").unwrap().shares, "its base is its own now");
        let n = pool.attach_read("n").unwrap();
        assert_eq!(n.as_slice()[..60 * PAGE], model["a"][..60 * PAGE]);
        assert_eq!(n.as_slice()[60 * PAGE..100 * PAGE], model["b"][..40 * PAGE]);
        assert!(n.as_slice()[100 * PAGE..].iter().all(|byte| *byte == 0));
        drop(n);
        drop(pool);
        sound(world);
    });
}

#[test]
fn ranges_are_of_the_last_psync_beside_writers() {
    everywhere(|world| {
        let (pool, mut model) = (world.format(), Model::new());
        add(&pool, &mut model, "a", 30 * PAGE);
        add(&pool, &mut model, "b", 2 * PAGE);
        let (mut a, mut b) = (pool.attach("a").unwrap(), pool.attach("b").unwrap());
        a.range_mut(0..8).fill(1);
        a.psync().unwrap();
        a.range_mut(8..16).fill(2);
        b.range_mut(0..8).fill(3);
        let how = CreateOptions::new(40 * PAGE as u64);
        let ranges = [of("a", 0..30 * PAGE, 0), of("b", 0..2 * PAGE, 30 * PAGE)];
        pool.create_from_ranges("n", &ranges, b"", &how).unwrap();
        a.psync().unwrap();
        b.psync().unwrap();
        let n = pool.attach_read("n").unwrap();
        assert_eq!((n.as_slice()[0], n.as_slice()[8]), (1, model["a"][8]));
        assert_eq!(n.as_slice()[30 * PAGE], model["b"][0]);
        drop((n, a, b));
        assert_eq!(pool.attach_read("a").unwrap().as_slice()[8], 2);
        assert!(pool.stat("n").unwrap().shares);
    });
}

#[test]
fn wrong_ranges_are_refused_and_nothing_happens() {
    everywhere(|world| {
        let (pool, mut model) = (world.format(), Model::new());
        add(&pool, &mut model, "a", 20 * PAGE + 5);
        pool.create_with("locked", &CreateOptions::new(8192).key(b"key")).unwrap();
        pool.create_with("sealed", &CreateOptions::new(8192).sealed(&seal_key(), "test")).unwrap();
        pool.create_with("demand", &CreateOptions::new(8192).class(Class::OnDemand)).unwrap();
        pool.create_with("checked", &CreateOptions::new(8192).ecc(true)).unwrap();
        pool.create_with("shared", &CreateOptions::new(8192).class(Class::Shared)).unwrap();
        let names = || pool.list().flatten().map(|stat| (stat.name, stat.shares)).collect::<Vec<_>>();
        let before = names();
        let size = 40 * PAGE;
        let far = usize::MAX - PAGE + 1;
        let wrong = [
            (vec![of("a", 1..PAGE + 1, 0)], ErrorKind::BadSize, "multiples of a page"),
            (vec![of("a", 0..PAGE, 100)], ErrorKind::BadSize, "multiples of a page"),
            (vec![of("a", 0..PAGE + 1, 0)], ErrorKind::BadSize, "neither with a page"),
            (vec![of("a", 0..0, 0)], ErrorKind::BadSize, "there are none"),
            (
                vec![of("a", 20 * PAGE..21 * PAGE, 0)],
                ErrorKind::BadSize,
                "the object that has them ends before",
            ),
            (vec![of("a", far..usize::MAX, 0)], ErrorKind::BadSize, "ends before"),
            (vec![of("a", 0..PAGE, size)], ErrorKind::BadSize, "the new object ends before"),
            (vec![of("a", 0..PAGE, far)], ErrorKind::BadSize, "the new object ends before"),
            (
                vec![of("a", 20 * PAGE..20 * PAGE + 5, PAGE), of("a", 0..2 * PAGE, 0)],
                ErrorKind::BadSize,
                "other bytes were to go there",
            ),
            (vec![of("none", 0..PAGE, 0)], ErrorKind::NotFound, "\"none\""),
            (vec![of("locked", 0..PAGE, 0)], ErrorKind::WrongKey, "\"locked\""),
            (vec![of("sealed", 0..PAGE, 0)], ErrorKind::Sealed, "\"sealed\""),
            (vec![of("demand", 0..PAGE, 0)], ErrorKind::ClassMismatch, "\"demand\""),
            (vec![of("checked", 0..PAGE, 0)], ErrorKind::ClassMismatch, "\"checked\""),
            (vec![of("shared", 0..PAGE, 0)], ErrorKind::ClassMismatch, "\"shared\""),
        ];
        for (ranges, kind, part) in wrong {
            let first = [of("a", 0..18 * PAGE, 20 * PAGE)];
            for ranges in [ranges.clone(), [&first[..], &ranges].concat()] {
                let how = CreateOptions::new(size as u64);
                let error = pool.create_from_ranges("n", &ranges, b"", &how).unwrap_err();
                let text = error.to_string();
                assert!(
                    error.kind() == kind && text.contains(part),
                    "{ranges:?}: {:?}, {text}",
                    error.kind()
                );
                assert!(text.contains("\"n\""), "{text}");
                assert_eq!(names(), before, "{ranges:?}");
            }
        }
        let good = [of("a", 0..20 * PAGE, 0)];
        let refused = |name: &str, how: &CreateOptions| {
            let error = pool.create_from_ranges(name, &good, b"", how).unwrap_err();
            assert_eq!(names(), before, "{error}");
            error.kind()
        };
        let how = CreateOptions::new(size as u64);
        assert_eq!(refused("locked", &how), ErrorKind::Exists);
        assert_eq!(refused("", &how), ErrorKind::BadName);
        assert_eq!(refused("n", &how.clone().sealed(&seal_key(), "test")), ErrorKind::Sealed);
        assert_eq!(refused("n", &how.clone().class(Class::Transactional)), ErrorKind::ClassMismatch);
        assert_eq!(refused("n", &CreateOptions::new(1 << 30)), ErrorKind::NoRoom);
        let far = CreateOptions::new(1 << 47);
        assert_eq!(refused("n", &far), ErrorKind::BadSize);
        // The right key; and no ranges at all.
        pool.create_from_ranges("n", &[of("locked", 0..PAGE, 0)], b"key", &how).unwrap();
        pool.create_from_ranges("zeros", &[], b"", &CreateOptions::new(5)).unwrap();
        assert_eq!(pool.attach_read("zeros").unwrap().as_slice(), [0; 5]);
    });
}
