//! Verification of chains that foreign stores changed: a named error, and the data stay closed.

use crate::extensions::{make, name, v1, v2, v3};
use crate::heaps::{again, made, sound};
use indelible::collections::RootTypes;
use indelible::{ErrorKind, Heap, Object};
use std::ptr::from_ref;
use tempfile::TempDir;

struct Places {
    base: u64,
    link: usize,
    one: [usize; 2],
    other: [usize; 2],
}

fn word(object: &Object, at: usize) -> u64 {
    u64::from_le_bytes(object.as_slice()[at..at + 8].try_into().unwrap())
}

fn closed() -> (TempDir, Object, Places) {
    let (dir, mut heap) = made();
    make(&mut heap, 2);
    let items = heap.root_ref::<v3::Items<'_>>("items").unwrap();
    items.iter().for_each(|item| item.extend().unwrap());
    let links = [0, 1].map(|item| from_ref(&items[item].extensions).addr());
    heap.psync().unwrap();
    let object = heap.into_object();
    let base = object.as_ptr().addr();
    let next = |at: usize| (word(&object, at) as usize) - base;
    let chain = |link: usize| [next(link - base), next(next(link - base))];
    let places =
        Places { base: base as u64, link: links[0] - base, one: chain(links[0]), other: chain(links[1]) };
    (dir, object, places)
}

fn refused(finding: &str, damage: impl Fn(&Places) -> (usize, u64)) {
    let (dir, mut object, places) = closed();
    let (at, value) = damage(&places);
    object.range_mut(at..at + 8).copy_from_slice(&value.to_le_bytes());
    let mut heap = again(&dir, Heap::open(stored(object)).unwrap());
    let types = [
        RootTypes::new().root::<v1::Items<'_>>("items"),
        RootTypes::new().root::<v2::Items<'_>>("items"),
        RootTypes::new().root::<v3::Items<'_>>("items"),
    ];
    for types in &types {
        let error = heap.verify(types).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        let text = error.to_string();
        assert!(text.contains("object \"o\"") && text.contains(finding), "{text} does not say {finding:?}");
        assert!(text.contains("].extensions"), "{text} does not say where");
        assert!(!heap.is_trusted());
        assert_eq!(heap.root_mut::<v3::Items<'_>>("items").err().unwrap().kind(), ErrorKind::Untrusted);
    }
    assert_eq!(heap.check(), []);
}

fn stored(mut object: Object) -> Object {
    object.psync().unwrap();
    object
}

#[test]
fn chains_that_no_program_makes_are_refused_by_every_version() {
    let owners = "a block has two owners";
    refused(owners, |at| (at.one[0], at.base + at.one[0] as u64));
    refused(owners, |at| (at.one[1], at.base + at.one[0] as u64));
    refused(owners, |at| (at.one[1], at.base + at.one[1] as u64));
    refused(owners, |at| (at.link, at.base + at.other[0] as u64));
    refused(owners, |at| (at.one[0], at.base + at.other[1] as u64));
    refused("no value of its type", |at| (at.one[0], at.base + at.one[1] as u64 + 4));
    refused("no value of its type", |at| (at.one[0], 1 << 60));
    refused("no value of its type", |at| (at.one[0], u64::MAX - 7));
    refused("another size", |at| (at.link, at.base + at.one[0] as u64 + 8));
    refused("another size", |at| (at.one[0] + 8, 23));
    refused("another size", |at| (at.one[0] + 8, u64::MAX - 7));
    refused("another size", |at| (at.one[1] + 8, 1 << 40));
    refused("smaller than its value", |at| (at.one[1] + 8, 4000));
}

#[test]
fn a_chain_without_an_end_in_reach_is_refused() {
    let (_dir, object, places) = closed();
    let heap = Heap::open(object).unwrap();
    let blocks: Vec<u64> = (0..64).map(|_| heap.malloc(24).unwrap().addr().get() as u64).collect();
    let mut object = heap.into_object();
    let mut last = places.one[1];
    for block in blocks {
        object.range_mut(last..last + 8).copy_from_slice(&block.to_le_bytes());
        last = (block - places.base) as usize;
        object.range_mut(last..last + 16).copy_from_slice(&[0, 24].map(u64::to_le_bytes).concat());
    }
    let mut heap = Heap::open(object).unwrap();
    let error = heap.verify(&RootTypes::new().root::<v3::Items<'_>>("items")).unwrap_err();
    assert!(error.to_string().contains("more extensions than a value can have"), "{error}");
    assert!(!heap.is_trusted());
}

#[test]
fn extensions_of_a_newer_version_are_verified_and_stay() {
    let (_dir, mut object, _) = closed();
    let last = object.len() - 1;
    object.range_mut(last..last + 1).fill(1);
    let mut heap = Heap::open(object).unwrap();
    assert!(!heap.is_trusted());
    heap.verify(&RootTypes::new().root::<v1::Items<'_>>("items")).unwrap();
    assert!(heap.is_trusted());
    let items = heap.root_mut::<v1::Items<'_>>("items").unwrap();
    assert_eq!((&*items[1].name, items[1].count), (&*name(1), 1));
    let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
    assert_eq!((items[1].price(), items[1].gross()), (2, 3));
    assert_eq!(sound(&mut heap), 8);
    heap.root_mut::<v1::Items<'_>>("items").unwrap().pop();
    assert_eq!(sound(&mut heap), 5);
}
