use super::{CONFIG, KEY, Verdict, crash_on, create, of, open};
use crate::pool::{contents, psync};
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{RangeOf, SnapshotOf, Store};
use std::sync::Arc;

const PAGE: usize = 4096;
/// Enough pages for the new object to share some of them.
const A: usize = 20 * PAGE;
const B: usize = 9000;
const NEW: usize = 22 * PAGE + 5;

fn text(error: StoreError) -> String {
    error.to_string()
}

fn sources(store: &Arc<Store>) -> Result<()> {
    for (name, size, first) in [("used", 60_000, 0xff), ("a", A, 1), ("b", B, 101)] {
        create(store, name, size as u64);
        let mut writer = store.attach_writer(name, KEY)?;
        for (page, at) in (0..).zip((0..size).step_by(PAGE)) {
            let value = if name == "used" { first } else { first + page };
            psync(&mut writer, &[(at as u64, &vec![value; PAGE.min(size - at)])])?;
        }
        writer.detach()?;
    }
    store.destroy("used", KEY)
}

/// Ranges that stay and ranges that move, of two sources, with zeros between and behind them.
fn ranges(a: &str) -> [RangeOf<'_>; 4] {
    let of = |object, from: usize, to: usize, at: usize| RangeOf {
        object,
        key: KEY,
        bytes: from as u64..to as u64,
        at: at as u64,
    };
    [
        of(a, 0, 9 * PAGE, 0),
        of("b", 2 * PAGE, B, 9 * PAGE),
        of(a, 11 * PAGE, A, 11 * PAGE),
        of(a, PAGE, 2 * PAGE, 20 * PAGE),
    ]
}

fn expected() -> Vec<u8> {
    let mut bytes = vec![0; NEW];
    for page in (0..9).chain(11..20) {
        bytes[page * PAGE..][..PAGE].fill(1 + page as u8);
    }
    bytes[9 * PAGE..][..B - 2 * PAGE].fill(103);
    bytes[20 * PAGE..][..PAGE].fill(2);
    bytes
}

fn make(store: &Arc<Store>, a: &str) -> Result<()> {
    store.create_from_ranges("new", &ranges(a), &of(NEW as u64)).map(drop)
}

fn shows(store: &Arc<Store>, name: &str, expected: &[u8]) -> Verdict {
    let found = contents(store, &store.find(name).map_err(text)?).map_err(text)?;
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        _ if found.len() != expected.len() => Err(format!("{name} has {} bytes", found.len())),
        Some(at) => Err(format!("{name} shows {} at {at}, not {}", found[at], expected[at])),
        None => Ok(()),
    }
}

pub(super) fn an_object_of_ranges_is_whole_after_a_power_cut() -> Verdict {
    for (disk, a) in [(true, "a"), (false, "s")] {
        crash_on(
            SimConfig { disk, ..CONFIG },
            |store| {
                sources(store).unwrap();
                store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "s" }]).unwrap();
            },
            |run| {
                let bytes = expected();
                run.step(|store| {
                    make(store, a)?;
                    shows(store, "new", &bytes).unwrap_or_else(|error| panic!("{error}"));
                    Ok(())
                })?;
                let mut new = run.quiet(|store| store.attach_writer("new", KEY))?;
                for at in [9 * PAGE + 10, NEW - 8] {
                    let mut after = run.last();
                    let (_, _, bytes) = after.get_mut("new").expect("it was created");
                    bytes[at..at + 8].fill(0xee);
                    run.step_to(after, |_| psync(&mut new, &[(at as u64, &[0xee; 8])]))?;
                }
                run.quiet(|_| new.detach())?;
                run.step(|store| store.destroy(a, KEY))
            },
        )
        .map_err(|error| format!("disk {disk}, of {a}: {error}"))?;
    }
    Ok(())
}

pub(super) fn an_object_of_ranges_is_whole_wherever_its_maker_dies() -> Verdict {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    for (kind, late) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for nth in 0.. {
            let medium = formatted(2 << 20, CONFIG);
            sources(&open(&medium, 1)).map_err(text)?;
            let handle = Arc::new(medium.handle());
            let store = Store::open(handle.clone(), crate::pool::process(2)).map_err(text)?;
            medium.fail_at(kind, nth, if late { Fault::KillLate } else { Fault::Kill });
            let done = make(&store, "a");
            medium.clear_faults();
            let named = |what| format!("{kind:?} {nth}, late {late}: {what}");
            if !handle.is_dead() {
                done.map_err(text).map_err(named)?;
                shows(&store, "new", &expected()).map_err(named)?;
                break;
            }
            for choice in [Choice::None, Choice::All] {
                goes_on(&medium.power_cut(choice).medium()).map_err(named)?;
            }
            goes_on(&medium).map_err(named)?;
        }
    }
    Ok(())
}

fn goes_on(medium: &SimMedium) -> Verdict {
    let next = open(medium, 3);
    match make(&next, "a") {
        Ok(()) | Err(StoreError::Exists) => {}
        Err(error) => return Err(text(error)),
    }
    shows(&next, "new", &expected())?;
    next.reap().map_err(text)?;
    drop(next);
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(text)?;
    report.findings.first().map_or(Ok(()), |finding| Err(format!("{finding:?}")))
}
