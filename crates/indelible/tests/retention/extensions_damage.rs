use crate::extensions::{make, name, v1, v2, v3};
use crate::heaps::made;
use indelible::collections::RootTypes;
use indelible::{Error, ErrorKind, Heap, ReadHeap};
use indelible_testing::Seeded;
use std::panic::{AssertUnwindSafe, catch_unwind};

const ITEMS: u32 = 4;
const HEADER: usize = 3;

fn chains(heap: &mut Heap) -> Vec<*mut u64> {
    make(heap, ITEMS);
    let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
    *items[1].price_mut() = 70;
    for item in &mut items[2..] {
        *item.gross_mut() = 80;
    }
    let mut words = Vec::new();
    for item in items.iter_mut() {
        let mut slot = (&raw mut item.extensions).cast::<u64>();
        words.push(slot);
        // SAFETY: the test has the heap to itself, which is not damaged yet.
        while let block @ 1.. = unsafe { *slot } {
            slot = std::ptr::with_exposed_provenance_mut(block as usize);
            words.extend((0..HEADER).map(|index| slot.wrapping_add(index)));
        }
    }
    words
}

fn wrong(heap: &Heap, words: &[*mut u64], rng: &mut Seeded) -> u64 {
    let blocks: Vec<_> = heap.blocks().map(Result::unwrap).collect();
    let block = blocks[rng.usize(..blocks.len())].address as u64;
    // SAFETY: a word of the heap, which this test alone uses.
    let other = unsafe { *words[rng.usize(..words.len())] };
    match rng.u8(..12) {
        0 => 0,
        1 => heap.base().addr() as u64,
        2 => heap.base().addr() as u64 + (2 << 20) - 8,
        3 | 4 => block,
        5 => block + 8,
        6 => block + 3,
        7 => other,
        8 => other.wrapping_add(8),
        9 => 1 << rng.u8(..64),
        10 => u64::from(rng.u8(..)) * 8,
        _ => rng.u64(..),
    }
}

fn guarded<R>(what: &str, run: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => Some(result),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map_or("", String::as_str);
            let refused =
                ["is damaged", "an extension", "no extension"].iter().any(|part| text.contains(part));
            assert!(refused, "{what}: {text}");
            None
        }
    }
}

fn judge<T: PartialEq + std::fmt::Debug>(
    what: &str,
    clean: bool,
    found: Option<Result<T, Error>>,
    right: &T,
) {
    match found {
        Some(Ok(value)) => assert!(!clean || value == *right, "{what}: {value:?} instead of {right:?}"),
        Some(Err(error)) => {
            let known =
                [ErrorKind::Damaged, ErrorKind::RootType, ErrorKind::HeapFull].contains(&error.kind());
            assert!(known, "{what}: {error}");
        }
        None => {}
    }
}

fn read(heap: &mut Heap, case: &str, clean: bool) {
    macro_rules! opened {
        ($heap:expr, $items:ty) => {
            match $heap.root_mut::<$items>("items") {
                Ok(items) => items,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::RootType, "{case}: {error}");
                    continue;
                }
            }
        };
    }
    for index in 0..ITEMS as usize {
        let what = |how| format!("{case}: {how} of item {index}");
        let price = [0, 70, 4, 6][index];
        let gross = [1, 71, 80, 80][index];
        let items = opened!(heap, v3::Items<'_>);
        judge(&what("price"), clean, guarded(&what("price"), || items[index].try_price()), &price);
        judge(&what("gross"), clean, guarded(&what("gross"), || items[index].try_gross()), &gross);
        let own = guarded(&what("its fields"), || (items[index].name.to_string(), items[index].count));
        assert!(own.is_none_or(|own| own == (name(index as u32), index as u32)), "{case}");
        let items = opened!(heap, v2::Items<'_>);
        let by_v2 = guarded(&what("price, version 2"), || items[index].try_price_mut().map(|price| *price));
        judge(&what("price, version 2"), clean, by_v2, &price);
        let items = opened!(heap, v3::Items<'_>);
        let all = |item: &mut v3::Item<'_>| item.try_extended().map(|view| (*view.price, *view.gross));
        let extended = guarded(&what("extended()"), || all(&mut items[index]));
        judge(&what("extended()"), clean, extended, &(price, gross));
        let items = opened!(heap, v3::Items<'_>);
        let copy = guarded(&what("copy"), || items[index].clone());
        let of_copy = copy.and_then(|copy| guarded(&what("gross of a copy"), || copy.try_gross()));
        judge(&what("gross of a copy"), clean, of_copy, &gross);
    }
}

fn audited(heap: &mut Heap, case: &str) -> bool {
    let audit = heap.audit().unwrap();
    assert_eq!(heap.check(), [], "{case}");
    audit.findings.is_empty() && audit.leaks.is_empty()
}

fn damage(seed: u64, refused: &mut u64) {
    let mut rng = Seeded::new(seed);
    let (dir, mut heap) = made();
    let words = chains(&mut heap);
    let mut case = format!("seed {seed}");
    let count = rng.u8(1..4);
    for _ in 0..count {
        let (at, value) = (rng.usize(..words.len()), wrong(&heap, &words, &mut rng));
        case += &format!(", word {at} is {value:#x}");
        // SAFETY: a word of the heap, which this test alone uses.
        unsafe { words[at].write(value) };
    }
    let clean = audited(&mut heap, &case);
    *refused += u64::from(!clean);
    if rng.bool() {
        // Several words may hand a chain to another value, undetectably.
        read(&mut heap, &case, clean && count == 1);
    }
    heap.psync().unwrap();
    drop(heap);
    let pool = indelible::Pool::open(dir.path().join("p")).unwrap();
    let reader = ReadHeap::open(pool.attach_read("o").unwrap()).unwrap();
    let types = RootTypes::new().root::<v3::Items<'_>>("items");
    let (found, freed) = (reader.check_roots(&types).len(), reader.reclaimable("items"));
    assert_eq!(found == 0, freed.is_ok(), "{case}: the same walk, two answers");
    assert_eq!(reader.audit().unwrap().findings.is_empty(), found == 0, "{case}");
    assert!(reader.root_any("items").unwrap().lines().contains("Extensions"));
    drop(reader);
    let mut heap = Heap::open(pool.attach("o").unwrap()).unwrap();
    if rng.bool() {
        guarded(&case, || heap.drop_root::<v1::Items<'_>>("items").unwrap());
    } else {
        let reset = heap.root_from::<u64>("items").or_reset(|_| ()).or_default().map(drop);
        assert_eq!(reset.is_ok(), found == 0, "{case}");
    }
    assert_eq!(heap.check(), [], "{case}");
}

fn damaged(cases: u64) {
    let mut refused = 0;
    (0..cases).for_each(|seed| damage(seed, &mut refused));
    assert!(refused > cases / 2 && refused < cases, "{refused} of {cases} were found");
}

#[test]
fn generated_damage_to_chains_is_an_error_and_never_a_wrong_value() {
    damaged(100);
}

#[test]
#[ignore = "long: run by hand, or with the campaigns of a release"]
fn ten_thousand_chains_are_damaged() {
    damaged(10_000);
}

#[test]
pub fn inputs_of_a_fuzzer_are_errors_and_never_a_wrong_value() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/chain");
    let files: Vec<_> = std::fs::read_dir(&corpus).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 20, "{} inputs in {}", files.len(), corpus.display());
    files.iter().for_each(|file| crate::hostile_chains::run(&std::fs::read(file).unwrap()));
    let mut rng = Seeded::new(1);
    for _ in 0..500 {
        let input: Vec<u8> = (0..1 + 10 * rng.usize(1..4)).map(|_| rng.u8(..)).collect();
        crate::hostile_chains::run(&input);
    }
}
