//! Backups and clones have the commits on demand that dead processes left in memory.

use indelible::{Class, CreateOptions, EpochBounds, Pool, PoolOptions, TxCell};
use indelible_backup::{Choice, RestoreOptions, backup_to, clone_pool, restore_stream};
use indelible_store::medium::{Device, Fatal, MediumError};
use indelible_testing::{Hook, Hooked};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

#[derive(Default)]
struct Dying(AtomicBool);

impl Hook for Dying {
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Fatal(MediumError::Io(std::io::Error::other("it is dying")))),
            false => under.write_durable(offset, bytes),
        }
    }
}

fn left(path: &Path) {
    let real = Pool::format(path, 16 << 20).unwrap();
    real.create_with("a", &CreateOptions::new(4096).class(Class::OnDemand)).unwrap();
    let dying = Hooked::new(real.store().device().clone(), Dying::default());
    let pool = PoolOptions::new().on_device(dying.clone(), false).unwrap();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 20 });
    let a = pool.attach_with_on_demand::<[TxCell<u64>; 64]>("a", b"").unwrap();
    a.transaction(|tx| tx.write(&a[0], 7)).unwrap();
    // It can no longer publish, and leaves its memory as a death does.
    dying.0.store(true, Ordering::Relaxed);
    a.tx_sync().unwrap_err();
}

#[track_caller]
fn has(path: &Path) {
    let a = Pool::open(path).unwrap().attach_read("a").unwrap();
    assert_eq!(a.as_slice()[..8], 7_u64.to_le_bytes());
}

#[test]
fn s1_09_a_clone_has_the_commits_that_a_dead_process_left_in_memory() {
    let dir = TempDir::new().unwrap();
    let (path, clone) = (dir.path().join("a.pmo"), dir.path().join("clone.pmo"));
    left(&path);
    clone_pool(&path, &clone, &PoolOptions::new(), &mut |_, _| {}).unwrap();
    has(&clone);
    has(&path);
}

#[test]
fn s1_09_a_backup_has_the_commits_that_a_dead_process_left_in_memory() {
    for snapshots in [false, true] {
        let dir = TempDir::new().unwrap();
        let (path, restored) = (dir.path().join("a.pmo"), dir.path().join("restored.pmo"));
        left(&path);
        let (pool, mut backup) = (Pool::open(&path).unwrap(), Vec::new());
        let choice = Choice { snapshots, ..Choice::default() };
        backup_to(&pool, &choice, &mut backup, &mut |_, _| {}).unwrap();
        drop(pool);
        let how = RestoreOptions { len: None, force: false, rebase: false };
        let name = Path::new("the stream");
        let options = PoolOptions::new();
        restore_stream(&mut &backup[..], name, &restored, &how, &options, &mut |_, _| {}).unwrap();
        has(&restored);
    }
}
