//! Contents of the pools and backups in a folder, without IDs and times.

use crate::kills::check_pool;
use anyhow::{Context, Result, bail, ensure};
use indelible::{ErrorKind, Pool, PoolOptions, Severity, Stat, check};
use indelible_backup::{RestoreOptions, restore, verify};
use indelible_store::error::Part;
use indelible_store::table::Key;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

/// Its objects by name: properties and a hash of the bytes.
type Objects = BTreeMap<String, (String, u64)>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// By path. `None`: a pool without its superblock.
    pub(super) files: BTreeMap<String, Option<Objects>>,
    /// Pools with a damaged copy of their superblock, which serves no reader and is repaired.
    unrepaired: BTreeSet<String>,
    pub(super) left: BTreeSet<String>,
}

impl State {
    pub(super) fn of(folder: &Path) -> Result<State> {
        let mut state = State::default();
        state.add(folder, "")?;
        Ok(state)
    }

    fn add(&mut self, folder: &Path, within: &str) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let named = format!("{within}{name}");
            let what = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
            match what {
                _ if path.is_dir() => self.add(&path, &format!("{named}/"))?,
                "pmo" => {
                    let spared = Pool::open(&path).is_ok() && lacks_a_superblock(&path)?;
                    let objects = pool(&path, spared).with_context(|| named.clone())?;
                    if spared {
                        self.unrepaired.insert(named.clone());
                    }
                    self.files.insert(named, objects);
                }
                "pmobackup" if !name.starts_with('.') => {
                    let objects = backup(&path).with_context(|| named.clone())?;
                    self.files.insert(named, Some(objects));
                }
                // A lock file stays; an index is of no backup or of one that is compared.
                "lock" | "pmoindex" => {}
                _ => _ = self.left.insert(named),
            }
        }
        Ok(())
    }

    /// Whether the last backup in a folder equals the pool, with only interrupted ones beside it.
    pub(super) fn is_last_in(&self, folder: &str, pool: &str) -> bool {
        let last = self.files.iter().rfind(|(name, _)| name.starts_with(folder));
        last.is_some_and(|(_, last)| Some(last) == self.files.get(pool))
            && self.left.iter().all(|name| name.ends_with(".pmopart"))
    }

    pub(super) fn has_the_pools_of(&self, state: &State) -> bool {
        self.files == state.files && self.unrepaired == state.unrepaired
    }

    /// Whether all is there, and only superblocks are still to be repaired.
    pub(super) fn is_unrepaired(&self, after: &State) -> bool {
        !self.unrepaired.is_empty() && self.files == after.files && self.left == after.left
    }

    /// Whether the killed command left this between `before` and `after`, by its rule for objects.
    pub(super) fn is_between(
        &self,
        before: &State,
        after: &State,
        rule: &dyn Fn(&str, [bool; 3]) -> bool,
    ) -> bool {
        let sides = [before, self, after];
        let files = || sides.iter().flat_map(|side| side.files.keys()).collect::<BTreeSet<_>>();
        files().into_iter().all(|file| {
            let objects = sides.map(|side| side.files.get(file).and_then(Option::as_ref));
            let [Some(before), Some(here), Some(after)] = objects else { return false };
            let names: BTreeSet<_> = before.keys().chain(here.keys()).chain(after.keys()).collect();
            names.into_iter().all(|name| {
                let found = [before.get(name), here.get(name), after.get(name)];
                let same = found[1].is_none() || found[1] == found[0] || found[1] == found[2];
                same && rule(name, found.map(|found| found.is_some()))
            })
        })
    }
}

/// Whether that is all that a check finds.
fn lacks_a_superblock(path: &Path) -> Result<bool> {
    let report = check(path, &PoolOptions::new(), &mut |_, _| {})?;
    let mut found = report.findings.iter().filter(|finding| finding.severity > Severity::Note).peekable();
    Ok(found.peek().is_some() && found.all(|finding| finding.part == Part::Superblock))
}

/// Checks a pool, unless it is spared, and reads all of it; `None` if it has no superblock.
fn pool(path: &Path, spared: bool) -> Result<Option<Objects>> {
    let pool = match Pool::open(path) {
        Err(error) if error.kind() == ErrorKind::NotAPool => return Ok(None),
        pool => pool?,
    };
    if !spared && let Err(trouble) = check_pool(path, false) {
        bail!("{trouble:?}");
    }
    let length = pool.info()?.length;
    let mut objects = BTreeMap::from([(String::new(), (String::new(), length))]);
    let all: Vec<Stat> = pool.list().collect::<indelible::Result<_>>()?;
    for stat in all {
        let mut hasher = DefaultHasher::new();
        // Recovers it if its writer died.
        let reader = pool.recovering(|store| store.attach_raw_reader(&stat.name, Key(b"")))??;
        let mut bytes = vec![0; stat.size as usize];
        pool.store().read_object(reader.object(), 0, &mut bytes)?;
        hasher.write(&bytes);
        let Stat { size, class, read_only, snapshot, position_independent, .. } = stat;
        let properties = format!("{size} {class:?} {read_only} {snapshot} {position_independent}");
        objects.insert(stat.name, (properties, hasher.finish()));
    }
    if !spared && let Err(trouble) = check_pool(path, true) {
        bail!("{trouble:?}");
    }
    Ok(Some(objects))
}

/// Verifies a backup, restores it elsewhere, and reads that.
fn backup(path: &Path) -> Result<Objects> {
    let verified = verify(path, &mut |_, _| {})?;
    ensure!(verified.damage.is_empty(), "damage: {:?}", verified.damage);
    let elsewhere = tempfile::tempdir()?;
    let to = elsewhere.path().join("restored.pmo");
    restore(path, &to, &RestoreOptions::default(), &PoolOptions::new(), &mut |_, _| {})?;
    pool(&to, false)?.context("the restored pool has no superblock")
}
