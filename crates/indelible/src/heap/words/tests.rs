use super::{WordHeap, Words};
use crate::error::Cause;
use crate::heap::check::check;
use crate::heap::error::HeapError;
use indelible_testing::Seeded;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

enum Seen {
    True,
    Zeros,
    Noise(RefCell<Seeded>),
}

struct Fake {
    words: HashMap<u64, u64>,
    len: u64,
    seen: Seen,
}

impl Fake {
    fn new(len: u64, seen: Seen) -> Fake {
        Fake { words: HashMap::new(), len, seen }
    }

    fn get(&self, offset: u64) -> u64 {
        self.words.get(&offset).copied().unwrap_or(0)
    }
}

impl Words for Fake {
    fn load(&mut self, offset: u64) -> Result<u64, Cause> {
        assert!(offset.is_multiple_of(8), "{offset}");
        if offset + 8 > self.len {
            return Err(HeapError::Damaged { offset, what: "beyond the end" }.into());
        }
        Ok(self.get(offset))
    }

    fn store(&mut self, offset: u64, value: u64) -> Result<(), Cause> {
        self.load(offset)?;
        self.words.insert(offset, value);
        Ok(())
    }

    fn store_byte(&mut self, offset: u64, value: u8) -> Result<(), Cause> {
        let (word, up) = (offset & !7, offset % 8 * 8);
        let old = self.load(word)?;
        self.store(word, old & !(0xff << up) | u64::from(value) << up)
    }

    fn peek(&self, offset: u64) -> u64 {
        match &self.seen {
            Seen::True => self.get(offset),
            Seen::Zeros => 0,
            Seen::Noise(random) => random.borrow_mut().u64(0..),
        }
    }
}

const BASE: usize = 0x5000_0000_0000;

fn heap(words: &mut Fake) -> WordHeap {
    let heap = WordHeap::new(BASE, words.len as usize);
    heap.open(words).unwrap();
    heap
}

fn sound(heap: &WordHeap, words: &mut Fake) {
    assert_eq!(heap.prepare(words, |window| Ok(check(&window))).unwrap(), []);
}

fn against_model(len: u64, seen: Seen, seed: u64) {
    let (mut words, mut random) = (Fake::new(len, seen), Seeded::new(seed));
    let heap = heap(&mut words);
    let mut model = BTreeMap::new();
    for round in 0..600 {
        if random.u8(0..5) < 3 || model.is_empty() {
            let size = match random.u8(0..8) {
                0 => random.usize(1..60_000),
                1..4 => 24,
                _ => random.usize(1..600),
            };
            let Ok(offset) = heap.allocate(&mut words, size, 8) else { continue };
            let before = model.range(..=offset).next_back().is_none_or(|(at, len)| at + len <= offset);
            let after = model.range(offset..).next().is_none_or(|(at, _)| offset + size as u64 <= *at);
            assert!(before && after, "round {round}: {size} bytes at {offset:#x} overlap a block");
            let room = heap.size_of(&mut words, BASE as u64 + offset).unwrap();
            assert!(room >= size as u64, "{room} bytes for {size}");
            model.insert(offset, room);
        } else {
            let at = random.usize(0..model.len());
            let offset = *model.keys().nth(at).unwrap();
            model.remove(&offset);
            heap.free(&mut words, BASE as u64 + offset).unwrap();
        }
    }
    sound(&heap, &mut words);
    for offset in std::mem::take(&mut model).into_keys() {
        heap.free(&mut words, BASE as u64 + offset).unwrap();
        assert!(heap.free(&mut words, BASE as u64 + offset).is_err());
    }
    let most = len as usize - (64 << 10);
    heap.allocate(&mut words, most, 8).unwrap();
    sound(&heap, &mut words);
}

#[test]
fn blocks_are_those_of_a_model_whatever_memory_shows() {
    for seed in 0..4 {
        against_model(1 << 20, Seen::True, seed);
        against_model(1 << 20, Seen::Zeros, seed);
        against_model(1 << 20, Seen::Noise(RefCell::new(Seeded::new(seed + 100))), seed);
    }
}

#[test]
fn a_large_heap_has_a_directory_of_its_own() {
    let mut words = Fake::new(700 << 20, Seen::True);
    let first = heap(&mut words);
    let blocks = [300 << 20, 300 << 20, 5000, 3 << 20];
    let offsets = blocks.map(|size| first.allocate(&mut words, size, 8).unwrap());
    assert!(first.allocate(&mut words, 300 << 20, 8).is_err());
    sound(&first, &mut words);
    words.len = 1500 << 20;
    let longer = heap(&mut words);
    let more = longer.allocate(&mut words, 300 << 20, 8).unwrap();
    sound(&longer, &mut words);
    for offset in offsets.into_iter().chain([more]) {
        longer.free(&mut words, BASE as u64 + offset).unwrap();
    }
    sound(&longer, &mut words);
}

#[test]
fn damaged_words_are_errors() {
    for seed in 0..200 {
        let (mut words, mut random) = (Fake::new(1 << 20, Seen::True), Seeded::new(seed));
        let heap = heap(&mut words);
        let blocks: Vec<u64> = (0..40).map(|_| heap.allocate(&mut words, 40, 8).unwrap()).collect();
        let known: Vec<u64> = words.words.keys().copied().collect();
        for _ in 0..random.usize(1..6) {
            let at = known[random.usize(0..known.len())];
            let value = match random.u8(0..3) {
                0 => random.u64(0..),
                1 => u64::MAX,
                _ => words.get(at) ^ 1 << random.u8(0..64),
            };
            words.words.insert(at, value);
        }
        for block in blocks {
            let _ = heap.free(&mut words, BASE as u64 + block);
            for size in [40, 700, 9000] {
                if let Ok(offset) = heap.allocate(&mut words, size, 8) {
                    assert!(offset + size as u64 <= words.len, "seed {seed}: {offset:#x}");
                }
            }
        }
        let _ = heap.open(&mut words);
    }
}
