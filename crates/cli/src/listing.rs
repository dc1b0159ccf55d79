//! Objects by pattern, in sequence: a pool may have too many to keep.

use crate::failure::{Failure, Result};
use crate::glob::Glob;
use indelible::{ErrorKind, Pool, Stat};

/// Calls `look` for the objects with matching names, or all, in no order. Damaged ones are
/// reported.
pub fn each(
    pool: &Pool,
    pattern: Option<&str>,
    damaged: &mut bool,
    mut look: impl FnMut(Stat) -> Result,
) -> Result {
    let Some(glob) = pattern.map(Glob::new) else {
        return every(pool.list(), damaged, look);
    };
    let Some(name) = glob.literal() else {
        return every(pool.list().named(move |name| glob.matches(name)), damaged, look);
    };
    match pool.stat(name) {
        Ok(stat) if stat.name != name => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::BadName) => Ok(()),
        found => every([found], damaged, &mut look),
    }
}

/// Calls `look` for a listing's objects. Damaged ones are reported.
pub fn every(
    listing: impl IntoIterator<Item = indelible::Result<Stat>>,
    damaged: &mut bool,
    mut look: impl FnMut(Stat) -> Result,
) -> Result {
    for stat in listing {
        match stat {
            Ok(stat) => look(stat)?,
            Err(error) if error.kind() == ErrorKind::Damaged => {
                Failure::from(error).report();
                *damaged = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
