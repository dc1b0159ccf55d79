//! Chains of bases: merged, absorbed, kept short.

use super::beside::{SIZE, keep, on_each, same, text};
use super::{CONFIG, KEY, Verdict, crash, create, open};
use crate::pool::{contents, process, psync};
use crate::scenario::formatted;
use crate::sim::{Choice, SimConfig, Turns};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::Store;
use indelible_store::{Selected, with_seed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Bases that nobody needs any more are merged beneath a writer, and with the object once it has detached; named ones stay.
pub(super) fn bases_are_merged_beneath_a_writer() -> Verdict {
    on_each(|mut beside| {
        for round in 0..5_u8 {
            let name = format!("s{round}");
            keep(&beside.other, &[("a", &name)]).map_err(text)?;
            beside.psync(0, 4096 * usize::from(round % 4) + 50, 10 + round, 5000).map_err(text)?;
            if round == 2 {
                beside.psync(1, 0, 9, 9).map_err(text)?;
            }
        }
        // A snapshot that is made later would absorb them.
        for name in ["s0", "s1", "s3", "s4"] {
            beside.other.destroy(name, KEY).map_err(text)?;
        }
        let kept = {
            let reader = beside.other.attach_reader("s2", KEY).map_err(text)?;
            contents(&beside.other, reader.object()).map_err(text)?
        };
        let before = beside.other.info().map_err(text)?.free;
        if beside.other.merge("a").map_err(text)? == 0 {
            return Err("nothing was merged".into());
        }
        if beside.other.info().map_err(text)?.free < before + 2 * SIZE as u64 {
            return Err("too little was given back".into());
        }
        beside.psync(0, 9000, 30, 64).map_err(text)?;
        beside.shows("s2", &kept)?;
        // Pages that were merged are whole after a power cut at once.
        let cut = open(&beside.medium.power_cut(Choice::None).medium(), 9);
        same(&cut, "a", &beside.expected[0])?;
        let a = beside.writers.remove(0);
        a.detach().map_err(text)?;
        beside.other.merge("a").map_err(text)?;
        let cut = open(&beside.medium.power_cut(Choice::None).medium(), 9);
        same(&cut, "a", &beside.expected[0])?;
        same(&cut, "s2", &kept)?;
        beside.other.destroy("s2", KEY).map_err(text)?;
        beside.other.merge("a").map_err(text)?;
        let plain = beside.other.find("a").map_err(text)?;
        if plain.entry.base.get() != 0 {
            return Err("it rests on a base that nobody else needs".into());
        }
        beside.writers.insert(0, beside.store.attach_writer("a", KEY).map_err(text)?);
        beside.psync(0, 70, 31, 64).map_err(text)?;
        beside.ends()
    })
}

/// Readers follow an object of `size` bytes between changes of a few, whose chain is shortened, and the power is cut anywhere. With `merge`,
/// its bases are merged at the end.
fn followed(size: usize, changes: &[(usize, u8)], merge: bool) -> Verdict {
    crash(
        |store| {
            create(store, "a", size as u64);
            let mut a = store.attach_writer("a", KEY).unwrap();
            psync(&mut a, &[(0, &vec![1; size])]).unwrap();
            a.detach().unwrap();
        },
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            for (at, value) in changes {
                let mut after = run.last();
                let (_, _, bytes) = after.get_mut("a").expect("it was created");
                bytes[*at..at + 8].fill(*value);
                run.step_to(after, |_| psync(&mut a, &[(*at as u64, &[*value; 8])]))?;
                let after = run.last();
                run.step_to(after, |store| {
                    let reader = store.attach_snapshot("a", KEY)?;
                    store.end_snapshot(reader)
                })?;
            }
            let after = run.last();
            run.step_to(after, |_| a.detach())?;
            let after = run.last();
            run.step_to(after, |store| if merge { store.merge("a").map(drop) } else { Ok(()) })
        },
    )
}

/// Of an object of few pages, whole bases are absorbed.
pub(super) fn bases_are_absorbed_whole() -> Verdict {
    followed(SIZE, &[(100, 2), (5000, 3), (9000, 4), (200, 5)], true)
}

/// Readers that come and go, of which one stays: what lies below the object is a few bases, and each shows what it should.
pub(super) fn the_chain_below_readers_stays_short() -> Verdict {
    const PAGES: usize = 40;
    on_each(|mut beside| {
        create(&beside.store, "c", PAGES as u64 * 4096);
        let mut c = beside.store.attach_writer("c", KEY).map_err(text)?;
        let mut bytes = vec![1; PAGES * 4096];
        psync(&mut c, &[(0, &bytes)]).map_err(text)?;
        let mut readers = Vec::new();
        for round in 0..30_u8 {
            let at = usize::from(round) * 7 % PAGES * 4096;
            bytes[at..at + 10].fill(round);
            psync(&mut c, &[(at as u64, &[round; 10])]).map_err(text)?;
            let reader = beside.other.attach_snapshot("c", KEY).map_err(text)?;
            let found = contents(&beside.other, reader.object()).map_err(text)?;
            if found != bytes {
                return Err(format!("round {round} is not what a reader sees"));
            }
            readers.push((reader, found));
            if readers.len() > 2 {
                let (reader, then) = readers.remove(1);
                if contents(&beside.other, reader.object()).map_err(text)? != then {
                    return Err(format!("in round {round} a reader sees something else than before"));
                }
                beside.other.end_snapshot(reader).map_err(text)?;
            }
        }
        let hidden = beside.other.info().map_err(text)?.objects;
        if hidden > 12 {
            return Err(format!("{hidden} objects and bases"));
        }
        c.detach().map_err(text)?;
        same(&beside.other, "c", &bytes)?;
        beside.psync(0, 0, 3, 10).map_err(text)?;
        beside.ends()
    })
}

/// The chain below an object that is attached stays short, too, each of whose snapshots is destroyed before the next is made; one that is left shows what
/// it did.
pub(super) fn the_chain_of_destroyed_snapshots_stays_short() -> Verdict {
    on_each(|mut beside| {
        keep(&beside.other, &[("a", "first")]).map_err(text)?;
        let first = beside.expected[0].clone();
        for round in 0..40_u8 {
            beside.psync(0, usize::from(round) * 7 % 5 * 4096, round, 10).map_err(text)?;
            keep(&beside.other, &[("a", "snapshot")]).map_err(text)?;
            beside.shows("snapshot", &beside.expected[0])?;
            beside.shows("first", &first)?;
            beside.other.destroy("snapshot", KEY).map_err(text)?;
        }
        let objects = beside.other.info().map_err(text)?.objects;
        if objects > 12 {
            return Err(format!("{objects} objects and bases"));
        }
        beside.ends()
    })
}

/// Of a larger one, few pages are absorbed at a time.
pub(super) fn absorbed_pages_are_there_after_a_power_cut() -> Verdict {
    followed(20 * 4096, &[(100, 2), (50_000, 3), (70_000, 4)], false)
}

const NAMES_OF_KEPT: [&str; 3] = ["s0", "s1", "s2"];

/// An object whose bases nothing else needs takes their place, with the power cut everywhere.
pub(super) fn merges_are_whole_after_a_power_cut() -> Verdict {
    crash(
        |store| {
            create(store, "a", SIZE as u64);
            for (round, at) in [0, 100, 5000, 9000].into_iter().enumerate() {
                let mut a = store.attach_writer("a", KEY).unwrap();
                let len = if round == 0 { SIZE } else { 8 };
                psync(&mut a, &[(at, &vec![1 + round as u8; len])]).unwrap();
                a.detach().unwrap();
                if round < 3 {
                    keep(store, &[("a", NAMES_OF_KEPT[round])]).unwrap();
                }
            }
            // A snapshot that is made later would absorb them.
            NAMES_OF_KEPT.iter().for_each(|name| store.destroy(name, KEY).unwrap());
        },
        |run| {
            let after = run.last();
            run.step_to(after, |store| store.merge("a").map(drop))?;
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            let mut after = run.last();
            let (_, _, bytes) = after.get_mut("a").expect("it was created");
            bytes[6000..6008].fill(9);
            run.step_to(after, |_| psync(&mut a, &[(6000, &[9; 8])]))?;
            run.quiet(|_| a.detach())
        },
    )
}

/// Runs that differ in the order of operations.
const SEEDS: u64 = 100;

/// Again as long as another process is in the way: it goes on only while this one calls.
fn again(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        match attempt() {
            Err(StoreError::HeldStill { .. } | StoreError::Changing { .. }) => {}
            done => return done,
        }
    }
}

/// A process psyncs an object and dies while another one makes a snapshot of it, which absorbs a base: its psync is there afterwards.
fn a_writer_dies_beside_a_snapshot(disk: bool) -> Verdict {
    for seed in 0..SEEDS {
        let medium = formatted(4 << 20, SimConfig { disk, ..CONFIG });
        let (dying, other) = (Arc::new(medium.handle()), open(&medium, 2));
        let store = Store::open(dying.clone(), process(1)).map_err(text)?;
        create(&store, "a", SIZE as u64);
        [&store, &other].iter().for_each(|store| store.set_patience(Duration::ZERO));
        let mut a = store.attach_writer("a", KEY).map_err(text)?;
        let mut expected = vec![1; SIZE];
        psync(&mut a, &[(0, &expected)]).map_err(text)?;
        keep(&other, &[("a", "before")]).map_err(text)?;
        psync(&mut a, &[(5000, &[2; 8])]).map_err(text)?;
        other.destroy("before", KEY).map_err(text)?;
        expected[5000..5008].fill(2);
        let (turns, selected) = (Turns::new(2, seed), Selected::here());
        let write = || {
            // Between what the snapshot publishes and what it does afterwards.
            while store.find("beside").is_err() {}
            again(|| psync(&mut a, &[(0, &[3; 8])]))?;
            dying.kill();
            Ok(())
        };
        let snapshot = || again(|| keep(&other, &[("a", "beside")]).map(drop));
        let (turns, selected) = (&turns, &selected);
        let done = thread::scope(|scope| {
            let writer = scope.spawn(move || selected.run(|| with_seed(seed, || turns.take_part(0, write))));
            let keeper =
                scope.spawn(move || selected.run(|| with_seed(seed + 1000, || turns.take_part(1, snapshot))));
            [writer.join(), keeper.join()].map(|done| done.map_err(|_| "a process panicked".to_owned()))
        });
        for done in done {
            done?.map_err(|error| format!("seed {seed}: {error}"))?;
        }
        expected[..8].fill(3);
        same(&open(&medium, 3), "a", &expected).map_err(|what| format!("seed {seed}: {what}"))?;
    }
    Ok(())
}

pub(super) fn a_writer_on_a_disk_dies_beside_a_snapshot() -> Verdict {
    a_writer_dies_beside_a_snapshot(true)
}

pub(super) fn a_writer_in_memory_dies_beside_a_snapshot() -> Verdict {
    a_writer_dies_beside_a_snapshot(false)
}
