//! The commands that are killed, and the states that a kill may leave.

use anyhow::{Result, ensure};
use indelible::Pool;
use std::path::Path;

pub(super) const POOL: &str = "pool.pmo";

/// Words that begin with `./` are paths in the folder of the case.
type Words = &'static [&'static str];

#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) before: &'static [Words],
    pub(super) damaged: bool,
    pub(super) words: Words,
    /// A state between the two that the command's help names, and the command that it advises
    /// there.
    pub(super) between: Option<(Between, Words)>,
    /// A folder that gets one more backup each time.
    pub(super) adds: Option<&'static str>,
    /// Exit codes of the same command once it is done.
    pub(super) again: &'static [i32],
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Between {
    /// Objects of this directory go one by one.
    Some(&'static str),
    /// An object is in both pools.
    Both(&'static str),
    /// All objects are there; a superblock is still to be repaired.
    Unrepaired,
}

const DONE: &[i32] = &[0];
const GONE: &[i32] = &[5];
const EXISTS: &[i32] = &[7];

const fn case(name: &'static str, words: Words, again: &'static [i32]) -> Case {
    Case { name, before: &[], damaged: false, words, between: None, adds: None, again }
}

const BACKUP: &[Words] = &[&["backup", "./pool.pmo", "./kept.pmobackup"]];
const CHANGED: &[Words] = &[
    &["backup", "./pool.pmo", "./kept.pmobackup"],
    &["rm", "./pool.pmo", "keep"],
    &["cp", "./pool.pmo", "big", "new"],
];
const FOLDER: &[Words] = &[
    &["backup", "./pool.pmo", "./kept/"],
    &["rm", "./pool.pmo", "keep"],
    &["cp", "./pool.pmo", "big", "new"],
];
const OTHER: &[Words] = &[&["format", "./other.pmo", "--size", "2M"]];
const SNAPSHOT: &[Words] = &[
    &["snapshot", "./pool.pmo", "big", "--as", "big@1"],
    &["resize", "./pool.pmo", "big", "64K", "--shrink"],
];

pub(super) const CASES: [Case; 22] = [
    case("create", &["create", "./pool.pmo", "made", "20K"], EXISTS),
    case("cp", &["cp", "./pool.pmo", "big", "copy"], EXISTS),
    case("mv", &["mv", "./pool.pmo", "keep", "kept"], GONE),
    case("mv of a directory", &["mv", "./pool.pmo", "a/", "c/d/"], GONE),
    Case {
        before: OTHER,
        between: Some((Between::Both("keep"), &["rm", "./pool.pmo", "keep"])),
        ..case("mv to another pool", &["mv", "./pool.pmo", "keep", "--to", "./other.pmo"], GONE)
    },
    case("rm", &["rm", "./pool.pmo", "keep"], GONE),
    Case {
        between: Some((Between::Some("a/"), &["rm", "-r", "./pool.pmo", "a/"])),
        ..case("rm of a directory", &["rm", "-r", "./pool.pmo", "a/"], GONE)
    },
    case("snapshot", &["snapshot", "./pool.pmo", "big", "--as", "big@1"], EXISTS),
    Case { before: SNAPSHOT, ..case("rollback", &["rollback", "./pool.pmo", "big", "big@1"], DONE) },
    case("set", &["set", "./pool.pmo", "keep", "--class", "on-demand"], DONE),
    case("resize that grows", &["resize", "./pool.pmo", "a/1", "300K"], DONE),
    case("resize that shrinks", &["resize", "./pool.pmo", "big", "40K", "--shrink"], DONE),
    case("grow", &["grow", "./pool.pmo", "8M"], DONE),
    case("backup", &["backup", "./pool.pmo", "./new.pmobackup"], EXISTS),
    Case {
        before: CHANGED,
        ..case("backup --force", &["backup", "--force", "./pool.pmo", "./kept.pmobackup"], DONE)
    },
    Case {
        before: FOLDER,
        adds: Some("kept/"),
        ..case("backup to a folder", &["backup", "./pool.pmo", "./kept/"], DONE)
    },
    Case { before: BACKUP, ..case("restore", &["restore", "./kept.pmobackup", "./new.pmo"], EXISTS) },
    Case {
        before: CHANGED,
        ..case("restore --force", &["restore", "--force", "./kept.pmobackup", "./pool.pmo"], DONE)
    },
    case("clone", &["clone", "./pool.pmo", "./new.pmo"], EXISTS),
    Case {
        before: &[
            &["set", "./pool.pmo", "keep", "--position-independent", "yes"],
            &["rm", "-r", "./pool.pmo", "a/", "big"],
        ],
        ..case("clone --rebase", &["clone", "--rebase", "./pool.pmo", "./new.pmo"], EXISTS)
    },
    case("export", &["export", "./pool.pmo", "keep", "big", "./new.pmobackup"], EXISTS),
    Case {
        damaged: true,
        between: Some((Between::Unrepaired, &["repair", "./pool.pmo"])),
        ..case("repair", &["repair", "./pool.pmo"], DONE)
    },
];

const OBJECTS: [(&str, usize); 5] =
    [("a/1", 8 << 10), ("a/2", 20_000), ("a/b/3", 5_000), ("keep", 12 << 10), ("big", 256 << 10)];

/// Makes the pool that all cases begin with.
pub(super) fn make(folder: &Path, seed: u64) -> Result<()> {
    let pool = Pool::format(folder.join(POOL), 4 << 20)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    for (name, size) in OBJECTS {
        pool.create(name, size as u64)?;
        let mut object = pool.attach(name)?;
        // The last half of each stays zeros.
        rng.fill(object.range_mut(0..size / 2));
        object.psync()?;
        object.detach()?;
    }
    Ok(())
}

/// Overwrites both slots of the superblock, which has a copy at the pool's end.
pub(super) fn damage(folder: &Path) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(folder.join(POOL))?;
    file.write_all_at(&[0x5a; 8192], 0)?;
    ensure!(Pool::open(folder.join(POOL)).is_err(), "the pool can be opened without a superblock");
    Ok(())
}
