//! Processes beside commits on demand: they sweep, recover, keep and copy, and must take nothing.

use super::banks::{BANKS, OBJECTS, name};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use crate::workloads::world::Trouble;
use indelible::{ErrorKind, Pool, PoolOptions};
use indelible_backup::{BackupError, Choice, backup_to, clone_pool};
use std::path::Path;

fn unless_others_have_it<T>(result: indelible::Result<T>) -> Result<(), Trouble> {
    match result {
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::Held
                    | ErrorKind::Busy
                    | ErrorKind::NoRoom
                    | ErrorKind::Exists
                    | ErrorKind::NotFound
            ) =>
        {
            Err(error.into())
        }
        _ => Ok(()),
    }
}

pub(super) fn keep(path: &Path, seed: u64, steps: u64) -> Result<(), Trouble> {
    let pool = Pool::open(path)?;
    let own = std::process::id();
    let copy = path.with_extension(format!("copy-{own}"));
    for step in 0..steps {
        let mut rng = mixed(seed, u64::from(own), step);
        match rng.u8(0..8) {
            0..3 => unless_others_have_it(pool.collect(&mut |_, _| {}))?,
            3 => unless_others_have_it(pool.recover())?,
            4 | 5 => {
                let of = name(rng.usize(0..BANKS), rng.usize(0..=OBJECTS));
                let kept = format!("kept {own}");
                unless_others_have_it(pool.snapshot(&of, &kept, b""))?;
                unless_others_have_it(pool.destroy(&kept))?;
            }
            6 => {
                let mut nowhere = std::io::sink();
                match backup_to(&pool, &Choice::default(), &mut nowhere, &mut |_, _| {}) {
                    Err(BackupError::Pool(error)) => unless_others_have_it(Err::<(), _>(error))?,
                    Err(error) => return Err(Trouble::Wrong(format!("backup: {error}"))),
                    Ok(_) => {}
                }
            }
            _ => {
                drop(std::fs::copy(path, &copy));
                drop(indelible::remove_leftovers(&copy));
                if let Ok(copy) = PoolOptions::new().open(&copy) {
                    drop(copy.collect(&mut |_, _| {}));
                    drop(copy.recover());
                }
                drop(std::fs::remove_file(&copy));
            }
        }
        Said::Count { what: "calls beside commits on demand".into(), count: 1 }.say();
    }
    Ok(())
}

pub(super) fn clone(path: &Path, to: &Path) -> Result<(), Trouble> {
    drop(std::fs::remove_file(to));
    match clone_pool(path, to, &PoolOptions::new(), &mut |_, _| {}) {
        Ok(_) => {
            Said::Count { what: "clones of pools whose processes died".into(), count: 1 }.say();
            Ok(())
        }
        Err(error) => Err(Trouble::Wrong(format!("clone: {error}"))),
    }
}
