use super::beside::{Beside, SIZE, keep, on_each, same, text};
use super::{KEY, Verdict, crash, create, open};
use crate::pool::{contents, psync};
use crate::sim::Choice;

pub(super) fn bases_are_merged_beneath_a_writer() -> Verdict {
    on_each(merged_beneath)
}

pub(super) fn merged_beneath(mut beside: Beside) -> Verdict {
    for round in 0..5_u8 {
        let name = format!("s{round}");
        keep(&beside.other, &[("a", &name)]).map_err(text)?;
        beside.psync(0, 4096 * usize::from(round % 4) + 50, 10 + round, 5000).map_err(text)?;
        if round == 2 {
            beside.psync(1, 0, 9, 9).map_err(text)?;
        }
    }
    for name in ["s0", "s1", "s3", "s4"] {
        beside.other.destroy(name, KEY).map_err(text)?;
    }
    let kept = {
        let object = beside.other.find("s2").map_err(text)?;
        contents(&beside.other, &object).map_err(text)?
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
        return Err("it rests on a base that no other object needs".into());
    }
    beside.attach()?;
    beside.psync(0, 70, 31, 64).map_err(text)?;
    beside.ends()
}

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

pub(super) fn bases_are_absorbed_whole() -> Verdict {
    followed(SIZE, &[(100, 2), (5000, 3), (9000, 4), (200, 5)], true)
}

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

pub(super) fn absorbed_pages_are_there_after_a_power_cut() -> Verdict {
    followed(20 * 4096, &[(100, 2), (50_000, 3), (70_000, 4)], false)
}

const NAMES_OF_KEPT: [&str; 3] = ["s0", "s1", "s2"];

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
            // Later ones would absorb them.
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
