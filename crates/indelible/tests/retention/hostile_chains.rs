//! Fuzzed stores to chains of extensions: every reader gets the right value or an error, no block
//! is freed twice, and the heap stays valid. Also part of the fuzz target `chain`.

use indelible::collections::{PString, PVec, RootTypes};
use indelible::retention::{Extensions, extendible};
use indelible::{Error, ErrorKind, Heap, Persist, Pool};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

const SIZE: u64 = 256 << 10;
const ITEMS: u64 = 4;
const HEADER: usize = 3;
const CHANGE: usize = 10;
const CHANGES: usize = 8;

mod v1 {
    use super::*;

    #[extendible]
    #[derive(Persist, Clone)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub count: u32,
    }

    pub type Items<'h> = PVec<'h, Item<'h>>;
}

mod v3 {
    use super::*;

    #[extendible]
    #[derive(Persist, Clone)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub count: u32,
        #[extension(1, init = |item| i64::from(item.count) * 2)]
        pub price: i64,
        #[extension(2, init = |item| item.price() + 1)]
        pub gross: i64,
        #[extension(3)]
        pub code: [u8; 20],
    }

    pub type Items<'h> = PVec<'h, Item<'h>>;
}

const PRICES: [i64; ITEMS as usize] = [0, 70, 71, 72];
const GROSS: [i64; ITEMS as usize] = [1, 71, 80, 81];

fn name(count: u32) -> String {
    format!("item number {count}, in a block of its own")
}

struct Ground {
    heap: Heap,
    words: Vec<*mut u64>,
    blocks: Vec<u64>,
    _folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Result<Ground, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let pool = Pool::format(folder.path().join("p"), 4 << 20)?;
        let mut heap = Heap::format(pool.create_attached("o", SIZE)?)?;
        let (items, h) = heap.root_and_heap::<v1::Items<'_>>("items")?;
        for count in 0..ITEMS as u32 {
            let name = PString::from_in(&name(count), h);
            items.push(v1::Item { name, count, extensions: Extensions::new() });
        }
        let items = heap.root_mut::<v3::Items<'_>>("items")?;
        *items[1].price_mut() = PRICES[1];
        for index in [2, 3] {
            *items[index].gross_mut() = GROSS[index];
            *items[index].price_mut() = PRICES[index];
        }
        *items[3].code_mut() = [3; 20];
        let links: Vec<_> = items.iter_mut().map(|item| (&raw mut item.extensions).cast::<u64>()).collect();
        heap.psync()?;
        let mut words = Vec::new();
        for mut slot in links {
            words.push(slot);
            // SAFETY: no other code uses the heap, which is not damaged yet.
            while let block @ 1.. = unsafe { *slot } {
                slot = std::ptr::with_exposed_provenance_mut(block as usize);
                words.extend((0..HEADER).map(|index| slot.wrapping_add(index)));
            }
        }
        let blocks = heap.blocks().map(|block| Ok(block?.address as u64)).collect::<Result<_, Error>>()?;
        Ok(Ground { heap, words, blocks, _folder: folder })
    }

    fn change(&mut self, change: &[u8]) {
        let value = u64::from_le_bytes(change[2..].try_into().expect("eight bytes"));
        let (base, any) = (self.heap.base().addr() as u64, |len: usize| (value % len as u64) as usize);
        let new = match change[1] % 6 {
            0 => value,
            1 => base.wrapping_add(value % SIZE),
            2 => self.blocks[any(self.blocks.len())].wrapping_add(value >> 56),
            // SAFETY: a word of the heap, which no other code uses.
            3 => unsafe { *self.words[any(self.words.len())] }.wrapping_add(value >> 56),
            4 => value & 0xffff,
            _ => 0,
        };
        let at = usize::from(change[0]) % self.words.len();
        // SAFETY: as above; no value of the heap is borrowed.
        unsafe { self.words[at].write(new) };
    }
}

thread_local!(static GUARDED: Cell<bool> = const { Cell::new(false) });

#[allow(dead_code)] // by tests, whose panics are not shown
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// A reference to no value is not made: a panic reports the damage.
fn guarded<R>(run: impl FnOnce() -> R) -> Option<R> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(outer);
    match result {
        Ok(result) => Some(result),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map_or("", String::as_str);
            let refused = ["is damaged", "an extension", "no extension"];
            assert!(refused.iter().any(|part| text.contains(part)), "another panic: {text}");
            None
        }
    }
}

fn judge<T: PartialEq + std::fmt::Debug>(sure: bool, found: Option<Result<T, Error>>, right: &T) {
    match found {
        Some(Ok(value)) => assert!(!sure || value == *right, "{value:?} instead of {right:?}"),
        Some(Err(error)) => {
            let known = [ErrorKind::Damaged, ErrorKind::RootType, ErrorKind::HeapFull];
            assert!(known.contains(&error.kind()), "another error: {error}");
        }
        None => {}
    }
}

fn read(heap: &mut Heap, how: u8, sure: bool) {
    for index in 0..ITEMS as usize {
        let Ok(items) = heap.root_mut::<v3::Items<'_>>("items") else { return };
        let (price, gross) = (PRICES[index], GROSS[index]);
        let own = guarded(|| (items[index].name.to_string(), items[index].count));
        assert!(own.is_none_or(|own| own == (name(index as u32), index as u32)));
        judge(sure, guarded(|| items[index].try_price()), &price);
        judge(sure, guarded(|| items[index].try_gross()), &gross);
        if how & 1 != 0 {
            judge(sure, guarded(|| items[index].try_price_mut().map(|price| *price)), &price);
        }
        if how & 2 != 0 {
            let all = guarded(|| items[index].try_extended().map(|view| (*view.price, *view.gross)));
            judge(sure, all, &(price, gross));
        }
        if how & 4 != 0 {
            let copy = guarded(|| items[index].clone());
            judge(sure, copy.and_then(|copy| guarded(|| copy.try_gross())), &gross);
        }
    }
}

thread_local!(static GROUND: RefCell<Option<Ground>> = const { RefCell::new(None) });

pub fn run(input: &[u8]) {
    let Some((how, changes)) = input.split_first() else { return };
    GROUND.with_borrow_mut(|ground| {
        let ground = ground.get_or_insert_with(|| Ground::new().expect("a heap"));
        let changes: Vec<&[u8]> = changes.chunks_exact(CHANGE).take(CHANGES).collect();
        changes.iter().for_each(|change| ground.change(change));
        let heap = &mut ground.heap;
        let types = RootTypes::new().root::<v3::Items<'_>>("items");
        let clean = heap.check_roots(&types).is_empty();
        let audit = heap.audit().expect("the heap itself is whole");
        assert_eq!(audit.findings.is_empty(), clean, "the same walk, two answers");
        read(heap, how >> 2, clean && audit.leaks.is_empty() && changes.len() < 2);
        let clean = heap.check_roots(&types).is_empty();
        match how % 4 {
            0 => drop(guarded(|| heap.drop_root::<v1::Items<'_>>("items").expect("a root"))),
            1 => {
                let reset = heap.root_from::<u64>("items").or_reset(|_| ()).or_default().map(drop);
                assert_eq!(reset.is_ok(), clean, "a reset of {audit:?}: {reset:?}");
            }
            2 => {
                let items = heap.root_mut::<v1::Items<'_>>("items").expect("its own fields are whole");
                drop(guarded(|| items.swap_remove(usize::from(*how >> 5) % ITEMS as usize)));
            }
            _ => {}
        }
        assert_eq!(heap.check(), []);
        heap.revert().expect("the last psync");
        assert_eq!(heap.blocks().count(), ground.blocks.len());
        assert_eq!(heap.check_roots(&types), []);
    });
}
