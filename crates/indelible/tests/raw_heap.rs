use crate::support::{Ground, World, everywhere};
use indelible::raw::{self, Permission};
use indelible::{ErrorKind, Heap, HeapOptions, Pool, TypeInfo};
use std::ptr::NonNull;
use std::sync::mpsc::channel;

const NUMBER: TypeInfo = TypeInfo { name: "u64", fingerprint: 8, layout: "u64 at 0" };

fn kind<T>(result: indelible::Result<T>) -> ErrorKind {
    result.err().expect("this had to fail").kind()
}

fn attach(pool: &Pool, name: &str) -> *mut u8 {
    raw::attach(pool, name, Permission::Write, b"").unwrap().as_ptr()
}

fn malloc(object: *mut u8, size: usize) -> indelible::Result<NonNull<u8>> {
    // SAFETY: tests detach when no thread is in the heap, and store to their own blocks.
    unsafe { raw::malloc(object, size) }
}

fn free(block: NonNull<u8>) -> indelible::Result<()> {
    // SAFETY: as for `malloc`; the block is the test's, or must be refused.
    unsafe { raw::free(block.as_ptr()) }
}

#[test]
fn a_heap_by_address_is_the_heap_by_handle() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("heap", &indelible::CreateOptions::new(1 << 20).reach(32 << 20)).unwrap();
        let object = attach(&pool, "heap");
        assert_eq!(kind(malloc(object, 8)), ErrorKind::NotAHeap);
        // SAFETY: this thread alone has the object, and stores to live blocks.
        unsafe {
            raw::format_heap(object, HeapOptions::new().grow(true)).unwrap();
            assert_eq!(kind(raw::format_heap(object, HeapOptions::new())), ErrorKind::Exists);
            let number = raw::calloc(object, 1, 8).unwrap();
            number.cast::<u64>().write(7);
            world.mark(number.as_ptr(), 8);
            raw::create_root(object, "number", number.as_ptr(), 8, &NUMBER).unwrap();
            let text = raw::realloc(malloc(object, 10).unwrap().as_ptr(), 3 << 20).unwrap();
            assert!(raw::usable_size(text.as_ptr()).unwrap() >= 3 << 20, "the object grew");
            assert_eq!(raw::aligned(object, 4096, 1).unwrap().addr().get() % 4096, 0);
            raw::grow(number.as_ptr(), 16 << 20).unwrap();
            raw::psync(text.as_ptr()).unwrap();
            malloc(object, 100).unwrap();
            assert_eq!(raw::check(object).unwrap(), []);
            assert_eq!(raw::attached(text.as_ptr()).unwrap().len, 16 << 20);
        }
        raw::detach(object).unwrap();
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        let root = heap.root("number", &NUMBER).unwrap();
        // SAFETY: the root is a u64 of this heap.
        assert_eq!(unsafe { *std::ptr::with_exposed_provenance::<u64>(root.address) }, 7);
        assert_eq!((heap.check(), heap.stats().unwrap().blocks), (vec![], 3));
        assert_eq!(heap.stats().unwrap().bytes, 16 << 20);
    });
}

#[test]
fn threads_forget_heaps_that_were_closed() {
    let world = World::new(Ground::Memory, indelible::Tracking::Auto, false);
    let pool = world.format();
    for name in ["a", "b"] {
        pool.create(name, 1 << 20).unwrap();
    }
    let (to, orders) = channel::<usize>();
    let (answers, from) = channel();
    let other = std::thread::spawn(move || {
        for object in orders {
            let block = malloc(std::ptr::with_exposed_provenance_mut(object), 100);
            answers.send(block.map(|block| block.addr().get()).map_err(|error| error.kind())).unwrap();
        }
    });
    let (mut a, mut kept) = (attach(&pool, "a"), 0);
    // SAFETY: the other thread is not in the heap meanwhile.
    unsafe { raw::format_heap(a, HeapOptions::new()).unwrap() };
    for round in 0..20 {
        let mine = malloc(a, 100).unwrap();
        to.send(a.expose_provenance()).unwrap();
        let theirs = from.recv().unwrap().unwrap();
        assert_ne!(mine.addr().get(), theirs);
        kept += 2;
        if round % 3 == 0 {
            let theirs = NonNull::new(std::ptr::with_exposed_provenance_mut(theirs)).unwrap();
            free(theirs).unwrap();
            assert!(matches!(kind(free(theirs)), ErrorKind::DoubleFree | ErrorKind::NotABlock));
            kept -= 1;
        }
        if round % 2 == 0 {
            raw::psync_cut(a).unwrap();
            raw::detach(a).unwrap();
            assert_eq!(kind(malloc(a, 100)), ErrorKind::NotAttached);
            assert_eq!(kind(free(mine)), ErrorKind::NotAttached);
            to.send(a.expose_provenance()).unwrap();
            assert_eq!(from.recv().unwrap(), Err(ErrorKind::NotAttached));
            let b = attach(&pool, "b");
            assert_eq!(kind(free(mine)), ErrorKind::NotAttached);
            raw::detach(b).unwrap();
            a = attach(&pool, "a");
        }
        // SAFETY: the other thread waits.
        let (findings, stats) = unsafe { (raw::check(a).unwrap(), raw::heap_stats(a).unwrap()) };
        assert_eq!((findings, stats.blocks), (vec![], kept), "round {round}");
        // SAFETY: as above: open with other options, and with the first ones again.
        unsafe { raw::open_heap(a, HeapOptions::new().grow(round % 4 == 0)).unwrap() };
    }
    drop(to);
    other.join().unwrap();
    raw::detach(a).unwrap();
}

#[test]
fn several_objects_with_heaps_are_psynced_by_any_address() {
    everywhere(|world| {
        let pool = world.format();
        let objects: Vec<_> = ["a", "b"]
            .map(|name| {
                pool.create(name, 1 << 20).unwrap();
                let object = attach(&pool, name);
                // SAFETY: this thread alone has the object.
                unsafe { raw::format_heap(object, HeapOptions::new()).unwrap() };
                object
            })
            .into();
        let blocks: Vec<_> =
            objects.iter().map(|object| malloc(*object, 64).unwrap().as_ptr().cast_const()).collect();
        raw::psync_all_cut(&[blocks[1], blocks[0], blocks[1]]).unwrap();
        malloc(objects[0], 64).unwrap();
        // SAFETY: no thread stores.
        unsafe { raw::psync_all(&blocks).unwrap() };
        malloc(objects[1], 64).unwrap();
        for (object, (name, expected)) in objects.iter().zip([("a", 2), ("b", 1)]) {
            raw::detach(*object).unwrap();
            assert_eq!(raw::attach(&pool, name, Permission::Read, b"").unwrap().as_ptr(), *object);
            // SAFETY: no thread detaches meanwhile.
            unsafe {
                assert_eq!(raw::heap_stats(*object).unwrap().blocks, expected);
                assert_eq!(kind(raw::grow(*object, 2 << 20)), ErrorKind::ReadOnly);
            }
            assert_eq!(kind(malloc(*object, 8)), ErrorKind::ReadOnly);
            raw::psync_all_cut(&[*object]).unwrap();
            raw::detach(*object).unwrap();
        }
    });
}

#[test]
fn a_heap_by_address_goes_back_to_its_last_psync() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("heap", &indelible::CreateOptions::new(64 << 10).reach(32 << 20)).unwrap();
        let object = attach(&pool, "heap");
        // SAFETY: this thread alone has the object, and stores to live blocks.
        unsafe {
            raw::format_heap(object, HeapOptions::new().grow(true)).unwrap();
            raw::revert(object).unwrap();
            assert_eq!(kind(malloc(object, 8)), ErrorKind::NotAHeap, "never psynced");
            raw::format_heap(object, HeapOptions::new().grow(true)).unwrap();
            let number = raw::calloc(object, 1, 8).unwrap();
            raw::create_root(object, "number", number.as_ptr(), 8, &NUMBER).unwrap();
            raw::psync(object).unwrap();
            for round in 0..3 {
                for _ in 0..2000 {
                    malloc(object, 48).unwrap();
                }
                raw::remove_root(object, "number").unwrap();
                free(number).unwrap();
                raw::revert(number.as_ptr()).unwrap();
                assert_eq!(raw::check(object).unwrap(), [], "round {round}");
                assert_eq!(raw::heap_stats(object).unwrap().blocks, 1);
                assert_eq!(raw::root(object, "number", &NUMBER).unwrap().address, number.addr().get());
            }
            malloc(object, 1 << 20).unwrap();
        }
        raw::detach(object).unwrap();
        let object = raw::attach(&pool, "heap", Permission::Read, b"").unwrap().as_ptr();
        // SAFETY: no other thread uses it.
        unsafe { raw::revert(object).unwrap() };
        raw::detach(object).unwrap();
        assert_eq!(kind(unsafe_revert(object)), ErrorKind::NotAttached);
    });
}

fn unsafe_revert(object: *mut u8) -> indelible::Result<()> {
    // SAFETY: it is not attached.
    unsafe { raw::revert(object) }
}
