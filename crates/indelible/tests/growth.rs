use crate::support::{Ground, World, everywhere, name_root};
use indelible::collections::PVec;
use indelible::{CreateOptions, ErrorKind, Heap, HeapOptions, Object, Pool, Tracking, TypeInfo};
use indelible_testing::sim::{Choice, Fault as Failure, OpKind};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::sync::Arc;

const PAGE: usize = 4096;

fn object(pool: &Pool, wall: bool) -> Object {
    let name = if wall { "walled" } else { "free" };
    pool.create_with(name, &CreateOptions::new(10_000).reach(1 << 20)).unwrap();
    if wall {
        pool.create("wall", 10_000).unwrap();
    }
    let mut object = pool.attach(name).unwrap();
    object.as_mut_slice().fill(1);
    object.psync().unwrap();
    object.range_mut(5000..5001)[0] = 2;
    object
}

struct Taken(usize);

impl Taken {
    fn at(address: usize) -> Taken {
        let at = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: replaces nothing.
        unsafe {
            mmap_anonymous(at, PAGE, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE)
        }
        .unwrap();
        Taken(address)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: our own page, which no thread can use.
        unsafe { munmap(std::ptr::with_exposed_provenance_mut(self.0), PAGE) }.unwrap();
    }
}

#[test]
fn a_growth_into_addresses_that_are_taken_changes_nothing() {
    everywhere(|world| {
        let pool = world.format();
        for wall in [false, true] {
            let mut a = object(&pool, wall);
            let name = a.name().to_owned();
            for taken in [12_288, 81_920] {
                let taken = Taken::at(a.as_ptr().addr() + taken);
                assert_eq!(a.grow(90_000).unwrap_err().kind(), ErrorKind::AddressTaken);
                drop(taken);
                assert_eq!(a.len(), 10_000);
                assert_eq!(pool.stat(&name).unwrap().size, 10_000);
                a.range_mut(0..1)[0] += 1;
                a.psync().unwrap();
            }
            a.range_mut(0..1)[0] += 1;
            a.grow(90_000).unwrap();
            assert_eq!(
                (a.len(), a.as_slice()[0], a.as_slice()[5000], a.as_slice()[89_999]),
                (90_000, 4, 2, 0)
            );
            a.psync().unwrap();
            a.detach().unwrap();
            let a = pool.attach_read(&name).unwrap();
            assert_eq!((a.as_slice()[0], a.as_slice()[5000], a.as_slice()[9_999]), (4, 2, 1));
        }
    });
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Map,
    Register,
}

fn with<T: Send>(fault: Fault, work: impl FnOnce() -> T + Send) -> T {
    let run = || {
        let (number, argument, bits) = match fault {
            Fault::Map => (libc::SYS_mmap, 3, libc::MAP_FIXED as u32),
            Fault::Register => (libc::SYS_ioctl, 1, 0xc020_aa00),
        };
        let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        let (equal, and) = (libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_ALU | libc::BPF_AND);
        let mut program = [
            step(load, 0, 0, 0),
            step(equal, 0, 4, number as u32),
            step(load, 0, 0, 16 + 8 * argument),
            step(and, 0, 0, bits),
            step(equal, 0, 1, bits),
            step(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOMEM as u32),
            step(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: a filter of as many steps as it says; it binds this thread alone, which ends with
        // the work.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
        };
        assert!(installed, "{}", std::io::Error::last_os_error());
        work()
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn a_growth_in_place_that_cannot_be_mapped_leaves_the_object_as_it_was() {
    everywhere(|world| {
        let pool = world.format();
        let mut a = object(&pool, false);
        with(Fault::Map, || a.grow(90_000)).unwrap_err();
        assert_eq!((a.len(), a.as_slice()[5000]), (10_000, 2));
        a.as_mut_slice().fill(3);
        a.psync().unwrap();
        a.grow(90_000).unwrap();
        assert_eq!((a.len(), a.as_slice()[9_999], a.as_slice()[10_000]), (90_000, 3, 0));
        a.psync().unwrap();
    });
}

#[test]
fn an_object_that_moved_and_cannot_be_mapped_is_lost_and_says_so() {
    everywhere(|world| {
        let pool = world.format();
        lost(&pool, Fault::Map);
        if world.tracking == Tracking::WpAsync {
            for name in ["walled", "wall", "heap", "behind", "reserved", "beyond"] {
                pool.destroy(name).unwrap();
            }
            lost(&pool, Fault::Register);
        }
    });
}

fn lost(pool: &Pool, fault: Fault) {
    let mut a = object(pool, true);
    let address = a.as_ptr();
    let error = with(fault, || a.grow(90_000)).expect_err("it has to be mapped anew");
    assert_ne!(error.kind(), ErrorKind::Poisoned, "the cause comes first: {error}");
    assert_eq!(a.as_ptr(), address);
    assert!(a.as_slice().len() >= 10_000);
    a.as_mut_slice().fill(9);
    assert!(a.as_slice().iter().all(|byte| *byte == 9));
    assert_eq!(a.psync().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(a.psync_cut().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(a.grow(100_000).unwrap_err().kind(), ErrorKind::Poisoned);
    a.detach().unwrap();
    let mut a = pool.attach("walled").unwrap();
    assert_eq!((a.len(), a.as_slice()[5000], a.as_slice()[9_999], a.as_slice()[10_000]), (90_000, 1, 1, 0));
    a.range_mut(0..1)[0] = 7;
    a.psync().unwrap();
    a.detach().unwrap();

    pool.create_with("heap", &CreateOptions::new(1 << 20).reach(8 << 20)).unwrap();
    pool.create("behind", 1 << 20).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    let block = heap.malloc(100).unwrap();
    heap.psync().unwrap();
    let grown = with(fault, || heap.grow(4 << 20));
    assert!(grown.is_err(), "{fault:?}");
    // SAFETY: a block of the heap, whose memory stays.
    unsafe { block.as_ptr().write_bytes(1, 100) };
    let _ = heap.malloc(100_000);
    let _ = heap.check();
    assert_eq!(heap.psync().unwrap_err().kind(), ErrorKind::Poisoned);
    drop(heap);
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    assert_eq!((heap.check(), heap.size()), (vec![], 4 << 20));
    assert_eq!(heap.usable_size(block.as_ptr()).unwrap(), 112);

    pool.create("reserved", 64 << 10).unwrap();
    pool.create("beyond", 4096).unwrap();
    let mut heap =
        Heap::format_with(pool.attach("reserved").unwrap(), HeapOptions::new().grow(true)).unwrap();
    let error = with(fault, || heap.reserve(1 << 20)).expect_err("it has to be mapped anew");
    assert_ne!(error.kind(), ErrorKind::Poisoned, "the cause comes first: {error}");
}

#[test]
fn a_heap_that_a_pool_opens_grows_as_far_as_the_pool_reaches() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let list = |heap: &mut Heap, more: u64| {
        let list = heap.root_or_default::<PVec<u64>>("list").unwrap();
        list.extend(0..more);
        list.len()
    };
    let mut heap = world.format().heap("heap", 64 << 10).unwrap();
    assert_eq!((list(&mut heap, 1000), heap.size()), (1000, 64 << 10));
    heap.psync().unwrap();
    drop(heap);
    let mut heap = world.open().heap("heap", 1 << 40).unwrap();
    assert_eq!((list(&mut heap, 0), heap.size()), (1000, 64 << 10), "it has its size");
    assert_eq!(list(&mut heap, 300_000), 301_000);
    assert!(heap.size() > 2 << 20);
    let pages = |heap: &Heap| heap.psync_stats().pages_changed;
    let before = pages(&heap);
    heap.psync().unwrap();
    assert!(before == 0 && pages(&heap) > 0, "counters of a heap that is only read");
    drop(heap);
    let pool = world.open();
    assert_eq!(pool.heap("heap", 0).unwrap().root_ref::<PVec<u64>>("list").unwrap().len(), 301_000);
    pool.create("data", 1 << 20).unwrap();
    let mut data = pool.attach("data").unwrap();
    data.as_mut_slice()[0] = 1;
    data.psync().unwrap();
    drop(data);
    assert_eq!(pool.heap("data", 1 << 20).unwrap_err().kind(), ErrorKind::NotAHeap);
    assert_eq!(pool.heap("none", 0).unwrap_err().kind(), ErrorKind::BadSize);
}

#[test]
fn a_heap_grows_until_its_pool_is_full_or_says_which_limit_it_met() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let grow = || HeapOptions::new().grow(true);
    let fill = |heap: &Heap, block: usize| loop {
        if let Err(error) = heap.malloc(block) {
            assert_eq!(error.kind(), ErrorKind::HeapFull, "{error}");
            return error.to_string();
        }
    };
    pool.create("heap", 64 << 10).unwrap();
    let heap = Heap::format_with(pool.attach("heap").unwrap(), grow()).unwrap();
    let said = fill(&heap, 40_000);
    let free = pool.info().unwrap().free;
    assert!(free < 256 << 10, "{free} bytes are left, and the heap has {}: {said}", heap.size());
    assert!(said.contains("does not grow: the pool has no free piece that is large enough"), "{said}");
    drop(heap);
    pool.destroy("heap").unwrap();
    pool.create_with("heap", &CreateOptions::new(64 << 10).reach(1 << 20)).unwrap();
    let mut heap = Heap::format_with(pool.attach("heap").unwrap(), grow()).unwrap();
    let said = fill(&heap, 40_000);
    assert_eq!(heap.size(), 1 << 20);
    assert!(said.contains("its address range ends there") && said.contains("a larger reach"), "{said}");
    heap.psync().unwrap();
    drop(heap);
    pool.create("behind", 4096).unwrap();
    pool.create("walled", 64 << 10).unwrap();
    pool.create("wall", 4096).unwrap();
    let heap = Heap::format_with(pool.attach("walled").unwrap(), grow()).unwrap();
    let said = fill(&heap, 40_000);
    assert!(heap.size() > 16 << 20, "{}: {said}", heap.size());
    assert!(said.contains("no free piece") && said.contains("pmo grow"), "{said}");
    drop(heap);
    let heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    let said = fill(&heap, 40_000);
    assert!(said.contains("HeapOptions::grow"), "{said}");
}

#[test]
fn a_heap_whose_growth_fails_goes_on_and_loses_nothing() {
    const WORDS: TypeInfo = TypeInfo { name: "Words", fingerprint: 24, layout: "small, big: u64 at 0, 8" };
    let kinds = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero, OpKind::Reserve];
    let faults = [Failure::Io, Failure::Short, Failure::After, Failure::NoSpace, Failure::KillLate];
    let (mut failed, mut went_on) = (0, 0);
    let kinds = kinds.into_iter().flat_map(|kind| faults.map(|fault| (kind, fault)));
    let ways = kinds.flat_map(|each| [(each, false), (each, true)]);
    for ((kind, fault), wall) in ways.filter(|((_, fault), wall)| !wall || *fault != Failure::KillLate) {
        for nth in 0.. {
            let world = World::new(Ground::Simulated, Tracking::Auto, false);
            let (pool, sim) = (world.format(), world.sim().unwrap());
            pool.create("heap", 128 << 10).unwrap();
            if wall {
                pool.create("wall", 4096).unwrap();
            }
            let mut heap =
                Heap::format_with(pool.attach("heap").unwrap(), HeapOptions::new().grow(true)).unwrap();
            let words = heap.calloc(1, 16).unwrap().cast::<[u64; 2]>();
            name_root(&heap, "words", words.as_ptr().cast(), 16, &WORDS).unwrap();
            heap.psync().unwrap();
            sim.fail_from(kind, nth, fault);
            let big = heap.malloc(1 << 20);
            let met = sim.faults_met() > 0;
            sim.clear_faults();
            let small = heap.malloc(3000);
            for (word, block, len) in [(0, &small, 3000), (1, &big, 1 << 20)] {
                // SAFETY: new blocks of at least that size, and the root's, which has two words.
                unsafe {
                    if let Ok(block) = block {
                        block.as_ptr().write_bytes(7, len);
                        words.as_ptr().cast::<u64>().add(word).write(block.addr().get() as u64);
                    }
                }
            }
            let promised = heap.psync().is_ok();
            failed += u32::from(big.is_err());
            went_on += u32::from(big.is_err() && promised);
            let images = [Choice::None, Choice::Random(nth), Choice::All].map(|choice| sim.power_cut(choice));
            drop(heap);
            for image in images {
                let what = format!("{fault:?} of {kind:?} {nth}, wall {wall}, psync {promised}");
                let pool = world.options().on_device(Arc::new(image.medium()), false).unwrap();
                let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
                assert_eq!(heap.check(), [], "{what}");
                // SAFETY: the root's block.
                let found = unsafe { *(heap.root("words", &WORDS).unwrap().address as *const [u64; 2]) };
                let made =
                    [&small, &big].map(|block| block.as_ref().map_or(0, |block| block.addr().get() as u64));
                assert!(found == made || !promised && found == [0, 0], "{what}: {found:x?} of {made:x?}");
                let blocks = 1 + found.iter().filter(|address| **address != 0).count() as u64;
                assert_eq!(heap.stats().unwrap().blocks, blocks, "{what}");
                for (address, len) in
                    found.into_iter().zip([3000, 1 << 20]).filter(|(address, _)| *address != 0)
                {
                    // SAFETY: a block of that size.
                    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
                    assert!(bytes.iter().all(|byte| *byte == 7), "{what}");
                }
            }
            if !met {
                break;
            }
        }
    }
    assert!(failed > 10 && went_on > 0, "{failed} growths failed, {went_on} heaps went on");
}
