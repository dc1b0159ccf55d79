//! Threads that commit to one lane.

use crate::error::Result;
use crate::lane::Batch;
use crate::medium::Medium;
use crate::medium::volatile::VolatileMedium;
use crate::shared::Shared;
use crate::store::{Identity, Store, Writer};
use crate::table::Key;
use loom::thread::{Builder, JoinHandle};
use std::sync::{Arc, OnceLock};

const POOL: u64 = 1 << 20;

/// A pool with objects `a` and `b`, made once, by the store as it is built: nothing of that is to be explored.
fn image() -> &'static [u8] {
    use indelible_store as real;
    use real::medium::Medium as _;
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(|| {
        let device = Arc::new(real::medium::volatile::VolatileMedium::new(POOL));
        let window = Some(real::store::Window { start: 0x4000_0000_0000, len: 1 << 30 });
        let how = real::store::FormatOptions { zeroed: true, window, ..Default::default() };
        let store = real::store::Store::format(device.clone(), Default::default(), &how).unwrap();
        for name in ["a", "b"] {
            let how = real::table::CreateOptions { size: 4096, ..Default::default() };
            store.create(name, &how).unwrap();
        }
        let mut bytes = vec![0; POOL as usize];
        device.read(0, &mut bytes).unwrap();
        bytes
    })
}

/// A thread with a stack that the store fits into.
fn spawn<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    Builder::new().stack_size(1 << 18).spawn(body).unwrap()
}

/// A process that has just opened a copy of that pool.
fn begin() -> (Arc<VolatileMedium>, Arc<Store>) {
    let medium = Arc::new(VolatileMedium::new(POOL));
    medium.write(0, image()).unwrap();
    let store = Store::open(Arc::new(Shared(medium.clone())), Identity::default()).unwrap();
    (medium, store)
}

fn psync(writer: &mut Writer, line: u64, value: u8) -> Result<()> {
    writer.psync(&mut |primary: u64, batch: &mut Batch| {
        batch.copy_lines(primary + line * 64, &[value; 64]);
        Ok((line + 1) * 64)
    })
}

fn attach(store: &Arc<Store>, name: &str) -> Writer {
    store.attach_writer(name, Key::default()).unwrap()
}

/// The first byte of a line of an object, as a process sees it that recovers what this one left.
fn recovered(medium: &Arc<VolatileMedium>, name: &str, line: u64) -> u8 {
    let store = Store::open(Arc::new(Shared(medium.clone())), Identity::default()).unwrap();
    let writer = attach(&store, name);
    let mut byte = [0];
    store.device().read(writer.object().entry.primary_offset() + line * 64, &mut byte).unwrap();
    byte[0]
}

/// Two threads psync objects of one lane: both are in the lane and in place, in one write or in two.
pub(crate) fn commits_of_two_threads_are_both_kept() {
    spawn(|| {
        let (medium, store) = begin();
        let (mut a, mut b) = (attach(&store, "a"), attach(&store, "b"));
        let thread = spawn(move || {
            psync(&mut a, 1, 7).unwrap();
            a
        });
        psync(&mut b, 2, 9).unwrap();
        let a = thread.join().unwrap();
        let used = b.lane_use();
        assert_eq!(used.batches, 2);
        assert!((1..=2).contains(&used.commits));
        // Both die here: what recovery finds is in the lane.
        std::mem::forget((a, b));
        assert_eq!((recovered(&medium, "a", 1), recovered(&medium, "b", 2)), (7, 9));
    })
    .join()
    .unwrap();
}

/// A checkpoint beside a psync: the batch counts in the generation it was written in.
pub(crate) fn a_checkpoint_beside_a_commit_loses_nothing() {
    spawn(|| {
        let (medium, store) = begin();
        let (mut a, b) = (attach(&store, "a"), attach(&store, "b"));
        let thread = spawn(move || {
            psync(&mut a, 1, 7).unwrap();
            a
        });
        b.checkpoint().unwrap();
        let a = thread.join().unwrap();
        std::mem::forget((a, b));
        assert_eq!(recovered(&medium, "a", 1), 7);
    })
    .join()
    .unwrap();
}

/// One thread gives up the last attachment of a lane while another takes one.
pub(crate) fn a_lane_given_up_while_another_takes_one() {
    spawn(|| {
        let (medium, store) = begin();
        let a = attach(&store, "a");
        let other = store.clone();
        let thread = spawn(move || {
            let mut b = attach(&other, "b");
            psync(&mut b, 2, 9).unwrap();
            b
        });
        a.detach().unwrap();
        let b = thread.join().unwrap();
        std::mem::forget(b);
        assert_eq!(recovered(&medium, "b", 2), 9);
    })
    .join()
    .unwrap();
}
