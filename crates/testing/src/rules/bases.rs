use super::{CONFIG, KEY, Verdict, crash, crash_on, create, of, open};
use crate::pool::{contents, psync};
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::Result;
use indelible_store::store::{SnapshotOf, Store};
use std::sync::Arc;

const SIZE: usize = 9000;

fn source(store: &Arc<Store>) -> Result<()> {
    create(store, "a", SIZE as u64);
    let mut a = store.attach_writer("a", KEY)?;
    psync(&mut a, &[(0, &[7; SIZE])])?;
    psync(&mut a, &[(0, &[1; SIZE])])?;
    a.detach()
}

fn shows(store: &Arc<Store>, name: &str, expected: &[u8]) -> Verdict {
    let text = |error: indelible_store::error::StoreError| format!("{name}: {error}");
    let found = contents(store, &store.find(name).map_err(text)?).map_err(text)?;
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(at) => Err(format!("{name} shows {} at {at}, not {}", found[at], expected[at])),
        None => Ok(()),
    }
}

pub(super) fn first_changes_keep_the_rest_of_their_pages() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    let run = || -> Result<()> {
        source(&store)?;
        store.create_from("a", KEY, "b", &of(0))?;
        for (name, at) in [("a", 100), ("b", 5000)] {
            let mut writer = store.attach_writer(name, KEY)?;
            psync(&mut writer, &[(at, &[2; 8])])?;
            writer.detach()?;
        }
        Ok(())
    };
    run().map_err(|error| error.to_string())?;
    let expected = |at: usize| {
        let mut bytes = vec![1; SIZE];
        bytes[at..at + 8].fill(2);
        bytes
    };
    for store in [&store, &open(&medium, 3)] {
        shows(store, "a", &expected(100))?;
        shows(store, "b", &expected(5000))?;
    }
    Ok(())
}

pub(super) fn first_changes_are_whole_after_a_power_cut() -> Verdict {
    first_changes(CONFIG)
}

pub(super) fn first_changes_in_memory_are_whole_after_a_power_cut() -> Verdict {
    first_changes(SimConfig { disk: false, ..CONFIG })
}

fn first_changes(config: SimConfig) -> Verdict {
    crash_on(
        config,
        |store| source(store).unwrap(),
        |run| {
            run.step(|store| store.create_from("a", KEY, "b", &of(0)))?;
            let mut b = run.quiet(|store| store.attach_writer("b", KEY))?;
            for at in [4000, 4090, 100] {
                let mut after = run.last();
                let (_, _, bytes) = after.get_mut("b").expect("it was created");
                bytes[at..at + 8].fill(2);
                run.step_to(after, |_| psync(&mut b, &[(at as u64, &[2; 8])]))?;
            }
            run.quiet(|_| b.detach())
        },
    )
}

pub(super) fn first_changes_of_several_pages_in_memory_are_whole_after_a_power_cut() -> Verdict {
    crash_on(
        SimConfig { disk: false, ..CONFIG },
        |store| source(store).unwrap(),
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.step(|store| store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "s" }]))?;
            let mut after = run.last();
            let (_, _, bytes) = after.get_mut("a").expect("it was created");
            let edits = [(70_usize, [3; 8]), (4200, [4; 8]), (8500, [5; 8])];
            for (at, value) in &edits {
                bytes[*at..at + 8].copy_from_slice(value);
            }
            let edits: Vec<_> = edits.iter().map(|(at, value)| (*at as u64, &value[..])).collect();
            run.step_to(after, |_| psync(&mut a, &edits))?;
            run.quiet(|_| a.detach())
        },
    )
}

pub(super) fn a_base_outlives_the_first_of_its_users() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    let run = || -> Result<()> {
        source(&store)?;
        store.create_from("a", KEY, "b", &of(0))?;
        store.destroy("a", KEY)?;
        for name in ["c", "d", "e"] {
            create(&store, name, SIZE as u64);
            let mut writer = store.attach_writer(name, KEY)?;
            psync(&mut writer, &[(0, &[3; SIZE])])?;
            writer.detach()?;
        }
        Ok(())
    };
    run().map_err(|error| error.to_string())?;
    shows(&store, "b", &[1; SIZE])
}

pub(super) fn a_copy_is_there_with_its_progress() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    let run = || -> Result<()> {
        source(&store)?;
        use_space(&store)?;
        store.create_from("a", KEY, "b", &of(0)).map(drop)
    };
    run().map_err(|error| error.to_string())?;
    let cut = open(&medium.power_cut(Choice::None).medium(), 3);
    shows(&cut, "a", &[1; SIZE])?;
    shows(&cut, "b", &[1; SIZE])?;
    let b = cut.attach_writer("b", KEY).map_err(|error| error.to_string())?;
    match (b.psyncs(), b.published()) {
        (2, published) if published >= SIZE as u64 => Ok(()),
        found => Err(format!("psyncs and bytes published: {found:?}")),
    }
}

fn use_space(store: &Arc<Store>) -> Result<()> {
    create(store, "used", 30_000);
    let mut used = store.attach_writer("used", KEY)?;
    psync(&mut used, &[(0, &[0xff; 30_000])])?;
    used.detach()?;
    store.destroy("used", KEY)
}

fn changed(store: &Arc<Store>) -> Result<Vec<u8>> {
    source(store)?;
    store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "s" }])?;
    use_space(store)?;
    let mut bytes = vec![1; SIZE];
    for (value, places) in [(5, &[6000][..]), (2, &[100, 5000, 8500])] {
        let mut a = store.attach_writer("a", KEY)?;
        for at in places {
            psync(&mut a, &[(*at, &[value; 8])])?;
            bytes[*at as usize..*at as usize + 8].fill(value);
        }
        a.detach()?;
        if value == 5 {
            store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "t" }])?;
        }
    }
    Ok(bytes)
}

pub(super) fn a_rollback_is_whole_after_a_power_cut() -> Verdict {
    crash(
        |store| drop(changed(store).unwrap()),
        |run| {
            for size in [SIZE, 2 * SIZE, SIZE / 2] {
                run.step(|store| store.resize("a", KEY, size as u64))?;
                let mut after = run.last();
                after.get_mut("a").expect("it was created").2 = vec![1; SIZE];
                run.step_to(after, |store| store.rollback("a", "s", KEY))?;
                let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
                for at in [4000, 4090, 100] {
                    let mut after = run.last();
                    let (_, _, bytes) = after.get_mut("a").expect("it was created");
                    bytes[at..at + 8].fill(3);
                    run.step_to(after, |_| psync(&mut a, &[(at as u64, &[3; 8])]))?;
                }
                run.quiet(|_| a.detach())?;
            }
            Ok(())
        },
    )
}

pub(super) fn whoever_rolls_back_may_die() -> Verdict {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    let text = |error: indelible_store::error::StoreError| error.to_string();
    for (kind, late) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for nth in 0.. {
            let medium = formatted(2 << 20, CONFIG);
            let before = changed(&open(&medium, 1)).map_err(text)?;
            let handle = Arc::new(medium.handle());
            let store = Store::open(handle.clone(), crate::pool::process(2)).map_err(text)?;
            medium.fail_at(kind, nth, if late { Fault::KillLate } else { Fault::Kill });
            let done = store.rollback("a", "s", KEY);
            medium.clear_faults();
            let named = |what| format!("{kind:?} {nth}, late {late}: {what}");
            if !handle.is_dead() {
                done.map_err(text).map_err(named)?;
                break;
            }
            for choice in [Choice::None, Choice::All] {
                goes_on(&medium.power_cut(choice).medium(), &before).map_err(named)?;
            }
            goes_on(&medium, &before).map_err(named)?;
        }
    }
    Ok(())
}

fn goes_on(medium: &SimMedium, before: &[u8]) -> Verdict {
    let text = |error: indelible_store::error::StoreError| error.to_string();
    let next = open(medium, 3);
    shows(&next, "a", before).or_else(|_| shows(&next, "a", &[1; SIZE]))?;
    shows(&next, "s", &[1; SIZE])?;
    next.rollback("a", "s", KEY).map_err(text)?;
    shows(&next, "a", &[1; SIZE])?;
    next.reap().map_err(text)?;
    drop(next);
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(text)?;
    report.findings.first().map_or(Ok(()), |finding| Err(format!("{finding:?}")))
}
