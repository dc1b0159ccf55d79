//! Every image of a power cut opens, is consistent, and is one psync's tree. Sequences are those of
//! CrashMonkey's ACE: all pairs of operations on a few files.

use crate::support::{Dump, OWN, check, dump};
use indelible::{Pool, PoolOptions};
use indelible_posix::{Allocate, Existing, New, ROOT, Rename, Set, Volume};
use indelible_testing::{CrashImage, Limits, SimConfig, SimMedium, for_each_crash};
use std::sync::Arc;

type Step = (&'static str, fn(&mut Volume));

fn file(volume: &mut Volume, path: &[u8]) -> Option<u64> {
    match volume.find(path) {
        Ok(inode) => Some(inode),
        Err(_) => {
            let (directory, name) = volume.find_parent(path).ok()?;
            volume.create_file(directory, name, &OWN).ok()
        }
    }
}

/// Some fail, as their file is missing.
const STEPS: [Step; 12] = [
    ("create", |volume| {
        let _ = file(volume, b"A/new");
    }),
    ("mkdir", |volume| drop(volume.create_directory(ROOT, b"B", &OWN))),
    ("append", |volume| {
        let Some(inode) = file(volume, b"A/foo") else { return };
        let size = volume.attributes(inode).unwrap().size;
        volume.write(inode, size, &[size as u8; 5000]).unwrap();
    }),
    ("overwrite", |volume| {
        let Some(inode) = file(volume, b"A/foo") else { return };
        volume.write(inode, 1000, &[0x5a; 3000]).unwrap();
    }),
    ("far write", |volume| {
        let Some(inode) = file(volume, b"bar") else { return };
        drop(volume.write(inode, 200_000, b"far"));
    }),
    ("truncate", |volume| {
        let Some(inode) = file(volume, b"A/foo") else { return };
        volume.set(inode, &Set { size: Some(1500), ..Set::default() }).unwrap();
    }),
    ("punch", |volume| {
        let Some(inode) = file(volume, b"A/foo") else { return };
        volume.allocate(inode, 500..2500, Allocate::Punch).unwrap();
    }),
    ("link", |volume| {
        let Some(inode) = file(volume, b"A/foo") else { return };
        drop(volume.link(inode, ROOT, b"link"));
    }),
    ("unlink", |volume| {
        let (directory, name) = volume.find_parent(b"A/foo").unwrap();
        drop(volume.unlink(directory, name));
    }),
    ("replace", |volume| {
        let (from, to) = (volume.find_parent(b"bar").unwrap(), volume.find_parent(b"A/foo").unwrap());
        drop(volume.rename(from, to, Rename::Replace));
    }),
    ("exchange", |volume| drop(volume.rename((ROOT, b"A"), (ROOT, b"bar"), Rename::Exchange))),
    ("attribute", |volume| {
        volume.set_attribute(ROOT, b"user.a", b"value", Existing::Any).unwrap();
        drop(volume.create_link(ROOT, b"symlink", &New { target: b"A/foo", ..OWN }));
    }),
];

fn set_up(volume: &mut Volume) {
    for entry in volume.entries(ROOT, None, 100).unwrap() {
        for below in volume.entries(entry.inode, None, 100).unwrap_or_default() {
            volume.unlink(entry.inode, &below.name).unwrap();
        }
        let removed = volume.unlink(ROOT, &entry.name);
        removed.or_else(|_| volume.remove_directory(ROOT, &entry.name)).unwrap();
    }
    let _ = volume.remove_attribute(ROOT, b"user.a");
    let a = volume.create_directory(ROOT, b"A", &OWN).unwrap();
    let inner = volume.create_file(a, b"foo", &OWN).unwrap();
    volume.write(inner, 0, &[0x11; 4000]).unwrap();
    let bar = volume.create_file(ROOT, b"bar", &OWN).unwrap();
    volume.write(bar, 0, b"bar").unwrap();
}

fn on(device: SimMedium, format: bool) -> indelible::Result<Pool> {
    PoolOptions::new().on_device(Arc::new(device), format)
}

/// Runs the step before each of all steps; returns the number of judged images.
fn pairs(first: &Step, points: u64) -> u64 {
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    // The tree of each sync.
    let mut states: Vec<Dump> = Vec::new();
    let mut record = |medium: &SimMedium| {
        let pool = on(medium.handle(), true).unwrap();
        let mut volume = Volume::create(&pool, "files", &OWN).unwrap();
        let mut sync = |volume: &mut Volume| {
            volume.sync().unwrap();
            states.push(dump(volume));
            medium.mark(states.len() as u64);
        };
        sync(&mut volume);
        for second in &STEPS {
            set_up(&mut volume);
            sync(&mut volume);
            first.1(&mut volume);
            second.1(&mut volume);
            sync(&mut volume);
        }
        drop((volume, pool));
    };
    let limits = Limits { exhaustive: 8, singles: 2, random: 2, points, seed: 56 };
    // The states are complete before an image is judged.
    record(&medium);
    let judge = |image: &CrashImage| -> Result<(), String> {
        let done = image.last_mark().unwrap_or(0) as usize;
        if done == 0 {
            return Ok(());
        }
        let pool = on(image.medium(), false).map_err(|error| error.to_string())?;
        let mut volume = Volume::open(&pool, "files").map_err(|error| error.to_string())?;
        check(&mut volume);
        let found = dump(&volume);
        match states[done - 1..states.len().min(done + 1)].contains(&found) {
            true => Ok(()),
            false => Err(format!("after sync {done} of {}: {found:?}", first.0)),
        }
    };
    let mut judged = 0;
    for image in medium.power_cut_states(&limits) {
        if let Err(error) = judge(&image) {
            panic!("{error} at {}", image.cut());
        }
        judged += 1;
    }
    let changed = states.windows(2).filter(|two| two[0] != two[1]).count();
    assert!(changed >= states.len() - 6, "{changed} of {} syncs changed the tree", states.len());
    judged
}

#[test]
fn s2_22_a_power_cut_leaves_the_tree_of_one_psync() {
    let points = std::env::var("POINTS").map_or(24, |text| text.parse().unwrap());
    let judged: u64 = STEPS.iter().map(|first| pairs(first, points)).sum();
    assert!(judged > 280, "{judged} images");
}

#[test]
fn images_differ_where_trees_do() {
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    let record = |medium: &SimMedium| {
        let pool = on(medium.handle(), true).unwrap();
        let mut volume = Volume::create(&pool, "files", &OWN).unwrap();
        set_up(&mut volume);
        volume.sync().unwrap();
        medium.mark(1);
        STEPS[2].1(&mut volume);
        volume.sync().unwrap();
        medium.mark(2);
    };
    let mut sizes = std::collections::BTreeSet::new();
    let judge = |image: &CrashImage| -> Result<(), String> {
        if image.last_mark().unwrap_or(0) > 0 {
            let pool = on(image.medium(), false).map_err(|error| error.to_string())?;
            let volume = Volume::open(&pool, "files").map_err(|error| error.to_string())?;
            sizes.insert(volume.attributes(volume.find(b"A/foo").unwrap()).unwrap().size);
        }
        Ok(())
    };
    let limits = Limits { exhaustive: 8, singles: 2, random: 2, points: 200, seed: 56 };
    for_each_crash(&medium, record, judge, &limits).unwrap();
    assert_eq!(Vec::from_iter(sizes), [4000, 9000]);
}
