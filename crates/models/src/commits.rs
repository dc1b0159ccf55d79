use crate::error::{Result, StoreError};
use crate::lane::Batch;
use crate::medium::Medium;
use crate::medium::volatile::VolatileMedium;
use crate::shared::Shared;
use crate::store::{Identity, Store, Writer};
use crate::table::Key;
use loom::thread::{Builder, JoinHandle};
use std::sync::{Arc, OnceLock};

pub(crate) const POOL: u64 = 1 << 20;
const LANE: u64 = 64 << 10;
const PAGE: u64 = 4096;
const NAMES: [&str; 3] = ["a", "b", "large"];

/// Made once by the normal store: that part needs no exploration.
pub(crate) fn image() -> &'static [u8] {
    use indelible_store as real;
    use real::medium::Medium as _;
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(|| {
        let device = Arc::new(real::medium::volatile::VolatileMedium::new(POOL));
        let window = Some(real::store::Window { start: 0x4000_0000_0000, len: 1 << 30 });
        let how = real::store::FormatOptions { zeroed: true, window, ..Default::default() };
        let store = real::store::Store::format(device.clone(), Default::default(), &how).unwrap();
        for (name, size) in [("a", PAGE), ("b", PAGE), ("large", LANE)] {
            let how = real::table::CreateOptions { size, ..Default::default() };
            store.create(name, &how).unwrap();
        }
        let mut bytes = vec![0; POOL as usize];
        device.read(0, &mut bytes).unwrap();
        bytes
    })
}

pub(crate) fn spawn<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    Builder::new().stack_size(1 << 18).spawn(body).unwrap()
}

fn begin() -> (Arc<VolatileMedium>, Arc<Store>) {
    let (medium, _, store) = begin_on_disk();
    (medium, store)
}

pub(crate) fn begin_on_disk() -> (Arc<VolatileMedium>, Arc<Shared>, Arc<Store>) {
    let medium = Arc::new(VolatileMedium::new(POOL));
    medium.write(0, image()).unwrap();
    let disk = Arc::new(Shared::new(&medium));
    let store = Store::open(disk.clone(), Identity::default()).unwrap();
    (medium, disk, store)
}

fn psync(writer: &mut Writer, line: u64, value: u8) -> Result<()> {
    writer.psync(&mut |primary: u64, batch: &mut Batch| {
        batch.copy_lines(primary + line * 64, &[value; 64]);
        Ok((line + 1) * 64)
    })
}

pub(crate) fn attach(store: &Arc<Store>, name: &str) -> Writer {
    store.attach_writer(name, Key::default()).unwrap()
}

/// As recovery of this process's lane finds it.
pub(crate) fn recovered(medium: &Arc<VolatileMedium>, name: &str, line: u64) -> u8 {
    let store = Store::open(Arc::new(Shared::new(medium)), Identity::default()).unwrap();
    let writer = attach(&store, name);
    let mut byte = [0];
    store.device().read(writer.object().entry.primary_offset() + line * 64, &mut byte).unwrap();
    byte[0]
}

/// Psyncs in one write or in two: both are in the lane and in place.
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
        std::mem::forget((a, b));
        assert_eq!((recovered(&medium, "a", 1), recovered(&medium, "b", 2)), (7, 9));
    })
    .join()
    .unwrap();
}

/// The batch counts in the generation that it was written in.
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

fn psync_page(writer: &mut Writer, value: u8) -> Result<()> {
    writer.psync(&mut |primary: u64, batch: &mut Batch| {
        batch.copy_lines(primary, &[value; PAGE as usize]);
        Ok(PAGE)
    })
}

/// The lane fits one of two batches: the second writer checkpoints beside the first one's
/// application.
pub(crate) fn a_lane_that_runs_full_beside_a_commit() {
    spawn(|| {
        let (medium, store) = begin();
        let (mut a, mut b) = (attach(&store, "a"), attach(&store, "b"));
        let mut large = attach(&store, "large");
        let filled = LANE - 2 * PAGE;
        large
            .psync(&mut |primary: u64, batch: &mut Batch| {
                batch.copy_lines(primary, &vec![3; filled as usize]);
                Ok(filled)
            })
            .unwrap();
        let before = large.lane_use().checkpoints;
        let thread = spawn(move || {
            psync_page(&mut a, 7).unwrap();
            a
        });
        psync_page(&mut b, 9).unwrap();
        let a = thread.join().unwrap();
        assert_eq!(large.lane_use().checkpoints, before + 1);
        std::mem::forget((a, b, large));
        let found = ["a", "b", "large"].map(|name| recovered(&medium, name, 1));
        assert_eq!(found, [7, 9, 3]);
    })
    .join()
    .unwrap();
}

/// Returned psyncs are there, failed ones are not, and the lane's objects take no more psyncs.
pub(crate) fn a_failed_write_fails_each_batch_that_it_carried<const WRITES: u32>() {
    spawn(|| {
        let (medium, disk, store) = begin_on_disk();
        let [a, b, mut large] = NAMES.map(|name| attach(&store, name));
        disk.fail_after(WRITES);
        let others = [a, b].map(|mut writer| {
            spawn(move || {
                let done = psync(&mut writer, 1, 7).is_ok();
                (writer, done)
            })
        });
        let last = psync(&mut large, 1, 7).is_ok();
        let [(a, first), (b, second)] = others.map(|thread| thread.join().unwrap());
        let done = [first, second, last];
        let failed = done.contains(&false);
        assert!(failed || large.lane_use().commits <= u64::from(WRITES));
        let mut writers = [a, b, large];
        for writer in &mut writers {
            assert_eq!(writer.is_poisoned(), failed);
            assert!(!failed || matches!(psync(writer, 1, 8), Err(StoreError::Poisoned)));
        }
        std::mem::forget(writers);
        let found = NAMES.map(|name| recovered(&medium, name, 1) == 7);
        assert_eq!(found, done);
    })
    .join()
    .unwrap();
}
