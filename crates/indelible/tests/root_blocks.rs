use crate::support::{Ground, World, everywhere, name_root};
use indelible::collections::{PString, PVec};
use indelible::raw::{self, Permission, transactions as calls};
use indelible::{Class, CreateOptions, ErrorKind, Heap, HeapOptions, Pool, Tracking, TypeInfo};
use std::ptr::NonNull;

const BYTES: TypeInfo = TypeInfo { name: "bytes", fingerprint: 7, layout: "bytes" };

fn world() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

fn free(heap: &Heap, address: usize) -> indelible::Result<()> {
    // SAFETY: blocks of a test, to which it refers no more, or those of roots.
    unsafe { heap.free(std::ptr::with_exposed_provenance_mut(address)) }
}

#[track_caller]
fn refused<T>(result: indelible::Result<T>, name: &str) {
    let error = result.err().expect("the block of a root");
    assert_eq!(error.kind(), ErrorKind::RootExists, "{error}");
    assert!(
        error.to_string().contains(&format!("is that of root {name:?} (remove the root first")),
        "{error}"
    );
}

fn kept(heap: &mut Heap, names: &[&str]) {
    for name in names {
        let address = heap.root_any(name).unwrap().address;
        for _ in 0..2 {
            refused(free(heap, address), name);
        }
        for size in [1, 200, 100_000, 4 << 20] {
            // SAFETY: as for `free`.
            let moved = unsafe { heap.realloc(std::ptr::with_exposed_provenance_mut(address), size) };
            refused(moved, name);
        }
    }
    assert_eq!(heap.check(), []);
}

fn made(pool: &Pool, options: HeapOptions) -> Heap {
    let mut heap = Heap::open_or_format_with(pool.attach("h").unwrap(), options).unwrap();
    heap.root_or_default::<PVec<u64>>("small").unwrap().extend(0..100);
    heap.root_or_default::<PString>("text").unwrap().push_str("kept");
    for (name, size) in [("run", 20_000), ("large", 3 << 20)] {
        let block = heap.malloc(size).unwrap();
        name_root(&heap, name, block.as_ptr(), 100, &BYTES).unwrap();
    }
    heap
}

const NAMES: [&str; 4] = ["small", "text", "run", "large"];

#[test]
pub fn blocks_of_roots_are_not_freed() {
    everywhere(|world| {
        let pool = world.format();
        for options in [HeapOptions::new(), HeapOptions::new().debug(true)] {
            pool.create("h", 8 << 20).unwrap();
            let mut heap = made(&pool, options);
            kept(&mut heap, &NAMES);
            heap.psync().unwrap();
            drop(heap);
            let mut heap = Heap::open_with(pool.attach("h").unwrap(), options).unwrap();
            kept(&mut heap, &NAMES);
            assert_eq!(heap.root_mut::<PVec<u64>>("small").unwrap().len(), 100);
            assert_eq!(heap.root_mut::<PString>("text").unwrap(), "kept");
            drop(heap);
            let heap = Heap::open_with(pool.attach("h").unwrap(), options).unwrap();
            let address = heap.root_any("text").unwrap().address;
            let size = heap.usable_size(std::ptr::with_exposed_provenance(address)).unwrap();
            let beside = heap.malloc(size).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| refused(free(&heap, address), "text"));
            });
            free(&heap, beside.addr().get()).unwrap();
            refused(free(&heap, address), "text");
            drop(heap);
            pool.destroy("h").unwrap();
        }
    });
}

#[test]
pub fn blocks_of_roots_that_are_gone_are_freed() {
    let world = world();
    let pool = world.format();
    pool.create("h", 8 << 20).unwrap();
    let mut heap = made(&pool, HeapOptions::new());
    let blocks = heap.stats().unwrap().blocks;
    for name in ["run", "large"] {
        let root = heap.remove_root(name).unwrap();
        free(&heap, root.address).unwrap();
        let kinds = [ErrorKind::DoubleFree, ErrorKind::NotABlock];
        assert!(kinds.contains(&free(&heap, root.address).unwrap_err().kind()), "{name}");
    }
    heap.drop_root::<PVec<u64>>("small").unwrap();
    heap.drop_root::<PString>("text").unwrap();
    assert_eq!((heap.stats().unwrap().blocks, heap.check()), (blocks - 6, vec![]));
    let block = heap.malloc(96).unwrap();
    for (name, at) in [("first", 0), ("second", 0), ("middle", 64)] {
        name_root(&heap, name, block.as_ptr().wrapping_add(at), 8, &BYTES).unwrap();
    }
    for name in ["first", "middle", "second"] {
        assert_eq!(free(&heap, block.addr().get()).unwrap_err().kind(), ErrorKind::RootExists);
        heap.remove_root(name).unwrap();
    }
    free(&heap, block.addr().get()).unwrap();
    assert_eq!(free(&heap, block.addr().get()).unwrap_err().kind(), ErrorKind::DoubleFree);
    assert_eq!(heap.check(), []);
}

#[test]
pub fn a_root_in_a_span_of_another_thread_is_seen_there() {
    let world = world();
    let pool = world.format();
    pool.create("h", 8 << 20).unwrap();
    let heap = Heap::format(pool.attach("h").unwrap()).unwrap();
    let blocks: Vec<NonNull<u8>> = (0..50).map(|_| heap.malloc(48).unwrap()).collect();
    free(&heap, blocks[0].addr().get()).unwrap();
    let rooted = blocks[7].addr().get();
    std::thread::scope(|scope| {
        let name = || name_root(&heap, "r", std::ptr::with_exposed_provenance(rooted), 48, &BYTES);
        scope.spawn(name).join().unwrap().unwrap();
    });
    refused(free(&heap, rooted), "r");
    for block in blocks.iter().skip(1).map(|block| block.addr().get()).filter(|block| *block != rooted) {
        free(&heap, block).unwrap();
    }
    refused(free(&heap, rooted), "r");
    heap.remove_root("r").unwrap();
    free(&heap, rooted).unwrap();
    assert_eq!(heap.stats().unwrap().blocks, 0);
}

#[test]
fn by_address_they_are_not_freed_either() {
    let world = world();
    let pool = world.format();
    pool.create("h", 1 << 20).unwrap();
    let object = raw::attach(&pool, "h", Permission::Write, b"").unwrap().as_ptr();
    // SAFETY: this thread alone has the object, and stores nothing.
    unsafe {
        raw::format_heap(object, HeapOptions::new()).unwrap();
        let block = raw::malloc(object, 100).unwrap().as_ptr();
        raw::expect_free(block).unwrap();
        raw::create_root(object, "r", block, 100, &BYTES).unwrap();
        refused(raw::free(block), "r");
        refused(raw::expect_free(block), "r");
        refused(raw::realloc(block, 1000), "r");
        raw::remove_root(object, "r").unwrap();
        raw::expect_free(block).unwrap();
        raw::free(block).unwrap();
        assert_eq!(raw::expect_free(block).unwrap_err().kind(), ErrorKind::DoubleFree);
    }
    raw::detach(object).unwrap();
}

pub fn transaction<R>(own: *const u8, mut body: impl FnMut() -> indelible::Result<R>) -> R {
    raw::begin_transaction(&[own]).unwrap();
    loop {
        let done = body();
        if !calls::is_conflicted() {
            let done = done.unwrap();
            if calls::commit().unwrap() {
                return done;
            }
        }
        calls::again().unwrap();
    }
}

const ROOTS: [(&str, usize); 2] = [("small", 48), ("wide", 9000)];

fn roots(own: *const u8) -> [*const u8; 2] {
    ROOTS.map(|(name, size)| {
        transaction(own, || calls::root(own, name, (size, 16), &BYTES)).as_ptr().cast_const()
    })
}

#[test]
pub fn transactions_do_not_free_the_blocks_of_roots() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("h", &CreateOptions::new(1 << 20).class(Class::Transactional)).unwrap();
        let own = calls::attach_transactional(&pool, "h", b"").unwrap().as_ptr();
        let made = roots(own);
        for attached in 0..2 {
            for ((name, size), root) in ROOTS.into_iter().zip(made) {
                let beside = transaction(own, || {
                    let beside = calls::alloc(own, size, 16)?;
                    refused(calls::free(root), name);
                    Ok(beside)
                });
                transaction(own, || {
                    calls::free(beside.as_ptr())?;
                    refused(calls::free(root), name);
                    Ok(())
                });
            }
            raw::detach(own).unwrap();
            assert_eq!(calls::attach_transactional(&pool, "h", b"").unwrap().as_ptr(), own);
            assert_eq!(roots(own), made, "attached {attached} times");
        }
        raw::detach(own).unwrap();
        let heap = pool.transactional_heap("h", 1 << 20).unwrap();
        assert_eq!((heap.check().unwrap(), heap.stats().unwrap().blocks), (vec![], 2));
        ROOTS.iter().for_each(|(name, _)| heap.transaction(|tx| heap.remove_root(tx, name)).unwrap());
        heap.detach().unwrap();
        calls::attach_transactional(&pool, "h", b"").unwrap();
        made.iter().for_each(|root| transaction(own, || calls::free(*root)));
        let again = transaction(own, || Ok(calls::free(made[0]).unwrap_err().kind()));
        assert_eq!(again, ErrorKind::DoubleFree);
        raw::detach(own).unwrap();
        let heap = pool.transactional_heap("h", 1 << 20).unwrap();
        assert_eq!((heap.check().unwrap(), heap.stats().unwrap().blocks), (vec![], 0));
    });
}

#[cfg(feature = "__mutants")]
mod mutants {
    crate::watches! {
        HEAP:
        RootBlockFreed: root_blocks::blocks_of_roots_are_not_freed,
            root_blocks::a_root_in_a_span_of_another_thread_is_seen_there,
            root_blocks::transactions_do_not_free_the_blocks_of_roots;
        HeapMadeUnasked: blank_objects::an_allocation_makes_no_heap,
            blank_objects::an_object_that_is_a_value_becomes_no_heap,
            blank_objects::an_allocation_of_a_block_makes_no_heap;
        ContentsCutOff: contents::s0_07_a_heap_gives_what_is_free_at_its_end_and_no_more,
            contents::s0_07_a_transactional_heap_with_check_words_gives_up_its_end,
            contents::a_view_and_a_security_context_keep_their_entries;
    }

    #[test]
    fn a_check_compares_roots_with_blocks() {
        use super::*;
        use indelible_store::{Mutant, with_mutant};

        let world = world();
        let pool = world.format();
        pool.create("h", 8 << 20).unwrap();
        let mut heap = made(&pool, HeapOptions::new());
        for (count, name) in NAMES.into_iter().enumerate() {
            let root = heap.root_any(name).unwrap();
            with_mutant(Mutant::RootBlockFreed, || free(&heap, root.address)).unwrap();
            let found = heap.check();
            assert_eq!(found.len(), count + 1, "{found:?}");
            let wanted = format!("root {name:?} is not in a block in use");
            assert!(found.iter().any(|found| found.what.contains(&wanted)), "{found:?}");
        }
    }
}
