//! The built-in resolvers (S2.11).

use crate::error::{Error, ErrorKind, Result};
use crate::far::FarTarget;
use crate::pool::{Pool, Stat};

/// `None`: no such built-in resolver; `Some(None)`: no such object.
pub(crate) fn built_in(pools: &[Pool], resolver: &str, name: &str) -> Result<Option<Option<FarTarget>>> {
    Ok(Some(match resolver {
        "name" => by_name(pools, name)?,
        "pool" => by_pool(pools, name)?,
        "latest" => latest(pools, name)?,
        _ => return Ok(None),
    }))
}

fn stat(pool: &Pool, name: &str) -> Result<Option<Stat>> {
    match pool.stat(name) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn target(stat: Option<Stat>) -> Option<FarTarget> {
    stat.map(|stat| FarTarget::Object(stat.id))
}

fn by_name(pools: &[Pool], name: &str) -> Result<Option<FarTarget>> {
    let found = pools.iter().find_map(|pool| stat(pool, name).transpose()).transpose()?;
    Ok(target(found))
}

fn by_pool(pools: &[Pool], name: &str) -> Result<Option<FarTarget>> {
    for pool in pools {
        let names = [pool.info()?.label, pool.path().to_string_lossy().into_owned()];
        let rest = names
            .iter()
            .filter(|known| !known.is_empty())
            .find_map(|known| name.strip_prefix(known.as_str())?.strip_prefix(':'));
        if let Some(object) = rest {
            return Ok(target(stat(pool, object)?));
        }
    }
    Ok(None)
}

fn latest(pools: &[Pool], prefix: &str) -> Result<Option<FarTarget>> {
    let mut newest: Option<Stat> = None;
    for pool in pools {
        for found in pool.list().filter_map(|found: Result<Stat, Error>| found.ok()) {
            let newer = |than: &Stat| (found.created, &found.name) > (than.created, &than.name);
            if found.name.starts_with(prefix) && !found.snapshot && newest.as_ref().is_none_or(newer) {
                newest = Some(found);
            }
        }
    }
    Ok(target(newest))
}
