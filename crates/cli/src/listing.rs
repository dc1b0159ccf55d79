//! Objects of a pool by pattern, one after the other: a pool may have a million, and no command
//! keeps them all.

use crate::failure::{Failure, Result};
use crate::glob::Glob;
use indelible::{ErrorKind, Pool, Stat};

/// Shows `look` the objects whose names match, or all, in no particular order. Damaged ones are
/// reported, and the rest is shown.
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
        // A name that stands for an ID is no name that matches.
        Ok(stat) if stat.name != name => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::BadName) => Ok(()),
        found => every([found], damaged, &mut look),
    }
}

/// Shows `look` the objects of a listing. Damaged ones are reported, and the rest is shown.
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
