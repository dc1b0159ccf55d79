//! On-demand commits of compiled blocks, as their runtime makes them: [`raw::blocks::tell`], stores
//! of the lines, [`raw::blocks::stored`].

use crate::support::{Ground, World};
use indelible::raw::{self, blocks};
use indelible::{
    Class, CreateOptions, EpochBounds, Error, ErrorKind, Pool, PoolOptions, Tracking, TxCell, TxObject,
    transaction,
};
use indelible_stm::{Damaged, Direct, Memory, Stm, Volatile};
use indelible_testing::{Fault, OpKind, SimConfig, SimMedium};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

type Cells = [TxCell<u64>; 64];

#[derive(Clone, Copy)]
struct Pair([blocks::ForBlocks; 2]);

impl Pair {
    fn attach(pool: &Pool) -> Pair {
        pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 20 });
        Pair(["a", "b"].map(|name| blocks::attach(pool, name, b"").unwrap()))
    }

    fn word(&self, object: usize, line: usize) -> &AtomicU64 {
        // SAFETY: the first word of a line of an attached object, which blocks load and store as
        // atomics.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(self.0[object].view + 64 * line)) }
    }

    fn tell(&self, line: usize, value: u64) -> indelible::Result<blocks::Telling> {
        let lines = self.0.map(|object| {
            let mut bytes = [0; 64];
            bytes[..8].copy_from_slice(&value.to_le_bytes());
            blocks::Line { address: object.address + 64 * line, view: object.view + 64 * line, bytes }
        });
        blocks::tell(self.0[0].demand, &lines)
    }

    fn commit(&self, line: usize, value: u64) {
        while let blocks::Telling::Short(short) = self.tell(line, value).unwrap() {
            blocks::make_room(self.0[0].address, short).unwrap();
        }
        (0..2).for_each(|object| self.word(object, line).store(value, Ordering::Relaxed));
        blocks::stored();
    }

    fn detach(self) {
        self.0.iter().for_each(|object| raw::detach(std::ptr::without_provenance(object.address)).unwrap());
    }
}

fn formatted() -> World {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    for name in ["a", "b"] {
        pool.create_with(name, &CreateOptions::new(4096).class(Class::OnDemand)).unwrap();
    }
    world
}

fn found(pool: &Pool) -> [Vec<u64>; 2] {
    let objects: [TxObject<Cells>; 2] = ["a", "b"].map(|name| pool.attach_transactional(name).unwrap());
    let [a, b] = &objects;
    transaction(&[a, b], |tx| {
        let mut read = |object: &TxObject<Cells>| {
            (0..4).map(|line| tx.read(&object[8 * line])).collect::<indelible::Result<Vec<_>>>()
        };
        Ok::<_, Error>([read(a)?, read(b)?])
    })
    .unwrap()
}

fn after(test: &str, how: usize) -> [Vec<u64>; 2] {
    let world = formatted();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("blocks_on_demand::{test}"), "--nocapture", "--ignored"]);
    let output = command.env("WORK_POOL", world.path()).env("WORK_WORLD", how.to_string()).output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{how}: {output:?}");
    found(&world.open())
}

fn work() -> Option<(std::path::PathBuf, usize)> {
    Some((std::env::var_os("WORK_POOL")?.into(), std::env::var("WORK_WORLD").ok()?.parse().ok()?))
}

fn die() -> ! {
    // SAFETY: this process is to die.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!()
}

/// Dies where `how` says: before the block, or after telling and `how` − 1 stores.
#[test]
#[ignore = "run by the other test as a process of its own"]
fn dies_in_a_commit() {
    let Some((path, how)) = work() else { return };
    let pair = Pair::attach(&Pool::open(path).unwrap());
    pair.commit(0, 7);
    pair.commit(1, 8);
    if how > 0 {
        pair.tell(1, 9).unwrap();
        (0..how - 1).for_each(|object| pair.word(object, 1).store(9, Ordering::Relaxed));
    }
    die();
}

#[test]
fn s1_09_a_block_on_demand_has_committed_once_it_is_told() {
    for how in 0..=3 {
        let last = if how == 0 { 8 } else { 9 };
        assert_eq!(after("dies_in_a_commit", how), [vec![7, last, 0, 0], vec![7, last, 0, 0]], "{how}");
    }
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn fails_and_dies() {
    let Some((path, how)) = work() else { return };
    let sim = SimMedium::from_bytes(&std::fs::read(&path).unwrap(), SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(sim.handle()), false).unwrap();
    let pair = Pair::attach(&pool);
    pair.commit(0, 7);
    blocks::wait(pair.0[0].address).unwrap();
    pair.commit(1, 8);
    sim.fail_at(OpKind::WriteDurable, 0, if how == 0 { Fault::Io } else { Fault::After });
    assert_eq!(blocks::wait(pair.0[1].address).unwrap_err().kind(), ErrorKind::Io);
    sim.clear_faults();
    for _ in 0..2 {
        assert_eq!(pair.tell(2, 9).unwrap_err().kind(), ErrorKind::Poisoned);
        blocks::stored();
        assert!(blocks::wait(pair.0[0].address).is_err());
        assert!(blocks::make_room(pair.0[0].address, 1).is_err());
    }
    std::fs::write(&path, sim.to_bytes()).unwrap();
    die();
}

#[test]
fn s1_09_an_epoch_of_blocks_fails_calls_go_on_and_the_process_dies() {
    for how in 0..2 {
        assert_eq!(after("fails_and_dies", how), [vec![7, 8, 0, 0], vec![7, 8, 0, 0]], "{how}");
    }
}

#[test]
fn s1_06_an_epoch_waits_until_a_block_has_stored_what_it_told() {
    let world = formatted();
    let pool = world.open();
    let pair = Pair::attach(&pool);
    for value in 1..200 {
        let stored = AtomicBool::new(false);
        std::thread::scope(|scope| {
            assert_eq!(pair.tell(3, value).unwrap(), blocks::Telling::Told(false));
            let waits = scope.spawn(|| {
                blocks::wait(pair.0[0].address).unwrap();
                assert!(stored.load(Ordering::Relaxed), "an epoch was taken in the middle of a commit");
            });
            std::thread::yield_now();
            (0..2).for_each(|object| pair.word(object, 3).store(value, Ordering::Relaxed));
            stored.store(true, Ordering::Relaxed);
            blocks::stored();
            waits.join().unwrap();
        });
    }
    pair.detach();
    assert_eq!(found(&pool), [vec![0, 0, 0, 199], vec![0, 0, 0, 199]]);
}

#[test]
fn s1_06_a_block_without_room_in_the_epoch_is_not_told() {
    let world = formatted();
    let pool = world.open();
    let pair = Pair::attach(&pool);
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 128 });
    pair.commit(0, 1);
    let address = pair.0[0].address;
    assert_eq!(blocks::shortage(&[address, address + 64]).unwrap(), 2);
    assert_eq!(pair.tell(1, 2).unwrap(), blocks::Telling::Short(2));
    blocks::stored();
    blocks::make_room(address, 2).unwrap();
    assert_eq!(blocks::shortage(&[address, address + 64]).unwrap(), 0);
    pair.commit(1, 3);
    pair.detach();
    assert_eq!(found(&pool), [vec![1, 3, 0, 0], vec![1, 3, 0, 0]]);
}

fn at_the_end(what: Box<dyn FnOnce()>) {
    extern "C" fn run(what: *mut libc::c_void) {
        // SAFETY: from `Box::into_raw` below, once.
        let what = unsafe { Box::from_raw(what.cast::<Box<dyn FnOnce()>>()) };
        what();
    }
    let mut key = 0;
    // SAFETY: a key of this test's own, whose value this thread's destructor takes.
    unsafe {
        assert_eq!(libc::pthread_key_create(&raw mut key, Some(run)), 0);
        assert_eq!(libc::pthread_setspecific(key, Box::into_raw(Box::new(what)).cast()), 0);
    }
}

#[test]
fn s1_06_a_block_commits_in_the_last_destructors_of_a_thread() {
    let world = formatted();
    let pool = world.open();
    let pair = Pair::attach(&pool);
    let done = Arc::new(AtomicBool::new(false));
    let of_thread = done.clone();
    let thread = std::thread::spawn(move || {
        at_the_end(Box::new(move || {
            let committed = std::panic::catch_unwind(|| pair.commit(1, 8));
            of_thread.store(committed.is_ok(), Ordering::Relaxed);
        }));
        pair.commit(0, 7);
    });
    thread.join().unwrap();
    assert!(done.load(Ordering::Relaxed));
    pair.detach();
    assert_eq!(found(&pool), [vec![7, 8, 0, 0], vec![7, 8, 0, 0]]);
}

/// The memory of a library whose blocks call this one.
struct Beside;

// SAFETY: as `Direct`.
unsafe impl Memory for Beside {
    const BESIDE_OTHERS: bool = true;

    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        // SAFETY: the caller's promise.
        unsafe { Direct.load(address) }
    }

    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        // SAFETY: the caller's promise.
        unsafe { Direct.store(address, value, bits) };
    }
}

/// With both libraries linked, the block's transaction may share this library's thread state.
#[test]
fn s1_06_room_is_made_within_a_transaction_of_another_memory() {
    let world = formatted();
    let pool = world.open();
    let options = CreateOptions::new(65536).class(Class::OnDemand).reach(1 << 20);
    for name in ["heap", "third"] {
        pool.create_with(name, &options).unwrap();
    }
    let (pair, heap) = (Pair::attach(&pool), blocks::attach(&pool, "heap", b"").unwrap());
    pair.commit(0, 1);
    let mut other = Stm::new(Beside, Volatile).thread();
    other.begin_alone().unwrap();
    blocks::make_room(pair.0[0].address, 1).unwrap();
    let len = blocks::grow(heap.address, 100_000).unwrap();
    assert!(len > 100_000, "{len}");
    let third = blocks::attach(&pool, "third", b"").unwrap();
    raw::detach(std::ptr::without_provenance(third.address)).unwrap();
    assert!(other.running().is_some(), "it runs still");
    other.abort(false);
    raw::detach(std::ptr::without_provenance(heap.address)).unwrap();
    pair.detach();
}

#[test]
fn a_block_changes_objects_of_one_class() {
    let world = formatted();
    let pool = world.open();
    let pair = Pair::attach(&pool);
    pool.create_with("c", &CreateOptions::new(4096).class(Class::Transactional)).unwrap();
    drop(pool.attach_transactional::<Cells>("c").unwrap());
    let held = pool.attach_transactional::<Cells>("a").map(drop).unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Held, "{held}");
    let other = blocks::attach(&pool, "c", b"").unwrap();
    assert!(other.demand == 0 && pair.0[0].demand != 0 && pair.0[0].demand == pair.0[1].demand);
    let of = |object: &blocks::ForBlocks| blocks::Line {
        address: object.address,
        view: object.view,
        bytes: [1; 64],
    };
    for lines in [[of(&pair.0[0]), of(&other)], [of(&other), of(&pair.0[0])]] {
        let demand = if lines[0].address == other.address { 0 } else { pair.0[0].demand };
        let error = blocks::tell(demand, &lines).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ClassMismatch, "{error}");
        assert!(error.to_string().contains("a block changes objects of one class"), "{error}");
        blocks::stored();
    }
    raw::detach(std::ptr::without_provenance(other.address)).unwrap();
    pair.detach();
    assert_eq!(found(&pool), [vec![0; 4], vec![0; 4]]);
}
