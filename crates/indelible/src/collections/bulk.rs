//! Copies of many bytes take a few blocks and marks.

use super::{HeapRef, KeyHash, PHashMap, PString, PVec, StableHash};
use crate::{Heap, Persist, Pool};
use std::cell::Cell;

thread_local! {
    static MARKS: Cell<usize> = const { Cell::new(0) };
    static BLOCKS: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn count_mark() {
    MARKS.set(MARKS.get() + 1);
}

pub(super) fn count_block() {
    BLOCKS.set(BLOCKS.get() + 1);
}

fn counts(work: impl FnOnce()) -> (usize, usize) {
    let before = (MARKS.get(), BLOCKS.get());
    work();
    (MARKS.get() - before.0, BLOCKS.get() - before.1)
}

#[derive(Persist, Default)]
#[repr(C)]
struct Data<'h> {
    list: PVec<'h, PVec<'h, u8>>,
    map: PHashMap<'h, u64, PVec<'h, u8>>,
    keys: PHashMap<'h, PVec<'h, u8>, u64>,
    texts: PHashMap<'h, PString<'h>, PString<'h>>,
    words: PVec<'h, u64>,
}

type Way = for<'a, 'h> fn(&'a [u8], HeapRef<'h>, &'a mut Data<'h>);

const WAYS: [(&str, Way); 17] = [
    ("push of a slice", |bytes, _, data| data.list.push(bytes)),
    ("push of a std vector", |bytes, _, data| data.list.push(bytes.to_vec())),
    ("insert of a slice", |bytes, _, data| drop(data.map.insert(1_u64, bytes))),
    ("insert of a std vector", |bytes, _, data| drop(data.map.insert(2_u64, bytes.to_vec()))),
    ("a key of bytes", |bytes, _, data| assert_eq!(data.keys.insert(bytes, 1_u64), None)),
    ("an entry of bytes", |bytes, _, data| *data.keys.entry(&bytes[1..]).or_insert(0) += 1),
    ("a text, by a text", |bytes, _, data| {
        let text = std::str::from_utf8(bytes).unwrap();
        data.texts.insert(text, text);
    }),
    ("from_slice_in", |bytes, heap, _| drop(PVec::<u8>::from_slice_in(bytes, heap))),
    ("from_in", |bytes, heap, _| drop(PVec::<u8>::from_in(bytes.iter().copied(), heap))),
    ("extend_from_slice", |bytes, _, data| data.list[0].extend_from_slice(bytes)),
    ("try_extend_from_slice", |bytes, _, data| data.list[0].try_extend_from_slice(bytes).unwrap()),
    ("try_append", |bytes, _, data| data.list[0].try_append(bytes).unwrap()),
    ("extend", |bytes, _, data| data.list[0].extend(bytes.iter().copied())),
    ("extend of numbers", |bytes, _, data| data.words.extend(bytes.iter().map(|byte| u64::from(*byte)))),
    ("clone", |_, _, data| drop(data.list[0].clone())),
    ("resize", |bytes, _, data| {
        let len = data.list[0].len() + bytes.len();
        data.list[0].resize(len, 7);
    }),
    ("split_off", |_, _, data| drop(data.list[0].split_off(1))),
];

const FEW: usize = 12;

#[test]
fn obvious_ways_copy_in_one_piece() {
    const LEN: usize = 50_000;
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 32 << 20).unwrap();
    let mut heap: Heap = pool.heap("o", 8 << 20).unwrap();
    let bytes: Vec<u8> = (0..LEN).map(|index| b'a' + (index * 7 % 23) as u8).collect();
    let (data, place) = heap.root_and_heap::<Data<'_>>("data").unwrap();
    for (name, way) in WAYS {
        let (marks, blocks) = counts(|| way(&bytes, place, data));
        assert!(marks <= FEW && blocks <= FEW, "{name}: {marks} marks, {blocks} blocks for {LEN} bytes");
    }
    let (marks, _) = counts(|| bytes.iter().for_each(|byte| data.list[1].push(*byte)));
    assert!(marks >= LEN, "{marks} marks of {LEN} pushes: the count is none");
}

#[test]
fn bytes_are_hashed_in_one_piece() {
    let bytes: Vec<u8> = (0..1000).map(|index| (index % 251) as u8).collect();
    let (mut whole, mut as_key, mut as_slice) = (KeyHash::new(3), KeyHash::new(3), KeyHash::new(3));
    whole.bytes(&bytes);
    bytes.stable_hash(&mut as_key);
    bytes[..].stable_hash(&mut as_slice);
    assert_eq!((as_key.finish(), as_slice.finish()), (whole.finish(), whole.finish()));
}
