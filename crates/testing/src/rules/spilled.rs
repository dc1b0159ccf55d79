//! Changes of the table that its lane cannot hold.

use super::{CONFIG, KEY, Verdict, create, open};
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::Result;
use indelible_store::format::TABLE_LANE_LEN;
use indelible_store::store::{Severity, SnapshotOf, Store};
use std::sync::Arc;

const COUNT: usize = 600;

/// Names of which a longer prefix changes each line.
fn names(prefix: &str) -> Vec<String> {
    let long = |number: usize| (0..75).map(|part| format!("{:04}", 7 * number + part)).collect::<String>();
    (0..COUNT).map(|number| format!("{prefix}{}", long(number))).collect()
}

fn prepared(config: SimConfig) -> Vec<u8> {
    let medium = formatted(16 << 20, config);
    let store = open(&medium, 2);
    names("a/").iter().for_each(|name| create(&store, name, 1));
    medium.to_bytes()
}

/// Writes to space that the image had, as long as there is any.
fn use_space(store: &Arc<Store>) -> Result<()> {
    for number in 0..8 {
        let largest = store.info()?.largest;
        create(store, &format!("later {number}"), (largest / 2).max(4 << 10));
        let mut writer = store.attach_writer(&format!("later {number}"), KEY)?;
        crate::pool::psync(&mut writer, &[(0, &[7; 9000][..(largest / 2).clamp(1, 9000) as usize])])?;
        writer.detach()?;
    }
    Ok(())
}

fn check(medium: &SimMedium) -> Verdict {
    let report =
        Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(|error| error.to_string())?;
    match report.findings.iter().find(|finding| finding.severity >= Severity::Warning) {
        Some(wrong) => Err(format!("{wrong:?}")),
        None => Ok(()),
    }
}

/// The change by a process that fails or dies at each of some operations; then all objects have the
/// new state, or none.
fn wherever(change: impl Fn(&Arc<Store>) -> Result<()>, of: fn(&str) -> Vec<String>, to: &str) -> Verdict {
    let text = |error: indelible_store::error::StoreError| error.to_string();
    let has = |store: &Arc<Store>| {
        let there = of(to).iter().filter(|name| store.find(name).is_ok()).count();
        match there {
            0 => Ok(false),
            COUNT => Ok(true),
            there => Err(format!("{there} of {COUNT} changed")),
        }
    };
    for disk in [false, true] {
        let config = SimConfig { disk, ..CONFIG };
        let bytes = prepared(config);
        let begun = || {
            let medium = SimMedium::from_bytes(&bytes, config);
            let store = open(&medium, 2);
            (medium, store)
        };
        let (medium, store) = begun();
        let other = open(&medium, 9);
        has(&other)?;
        let before = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier].map(|kind| medium.count(kind));
        change(&store).map_err(text)?;
        let counts = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier].map(|kind| medium.count(kind));
        let lane = &store.lanes().map_err(text)?[0];
        if lane.batches.iter().any(|batch| 64 * batch.lines > TABLE_LANE_LEN / 2) {
            return Err(format!("the lane of {TABLE_LANE_LEN} bytes held the change"));
        }
        if !has(&other)? {
            return Err("another process does not see the change".into());
        }
        drop(store);
        check(&medium)?;
        // Its space is free: a process that comes later reads nothing there.
        use_space(&open(&medium, 3)).map_err(text)?;
        if !has(&open(&medium, 4))? {
            return Err("the change is gone".into());
        }
        for (kind, (from, to)) in [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier]
            .into_iter()
            .zip(before.into_iter().zip(counts))
        {
            let all = to - from;
            let some = (0..all).filter(|nth| *nth < 2 || *nth + 5 > all || nth % (all / 4 + 1) == 0);
            for (nth, fault) in some.flat_map(|nth| [Fault::Kill, Fault::After].map(|fault| (nth, fault))) {
                let named = |what: String| format!("{kind:?} {nth} of {all}, {fault:?}, disk {disk}: {what}");
                let (medium, store) = begun();
                let other = open(&medium, 9);
                has(&other)?;
                medium.fail_at(kind, nth, fault);
                let changed = change(&store).is_ok();
                medium.clear_faults();
                drop(store);
                for choice in [Choice::None, Choice::All, Choice::Random(nth)] {
                    let cut = medium.power_cut(choice).medium();
                    let found = has(&open(&cut, 5)).map_err(named)?;
                    if changed && !found {
                        return Err(named("a change that had ended is gone".into()));
                    }
                    use_space(&open(&cut, 6)).map_err(|error| named(error.to_string()))?;
                    if has(&open(&cut, 7)).map_err(named)? != found {
                        return Err(named("it changed later".into()));
                    }
                    check(&cut).map_err(named)?;
                }
                // A process that knew the lane goes on beside the dead one.
                if fault == Fault::Kill {
                    let found = has(&other).map_err(named)?;
                    use_space(&other).map_err(|error| named(error.to_string()))?;
                    if has(&open(&medium, 8)).map_err(named)? != found {
                        return Err(named("it changed later".into()));
                    }
                }
            }
        }
    }
    Ok(())
}

pub(super) fn names_of_many_objects_change_as_one_step_wherever_it_ends() -> Verdict {
    let rename = |store: &Arc<Store>| {
        store.rename_directory("a/", "bbb/", KEY).map(drop).map_err(|unmoved| unmoved.cause)
    };
    wherever(rename, names, "bbb/")
}

pub(super) fn snapshots_of_many_objects_are_one_step_wherever_it_ends() -> Verdict {
    let snapshot = |store: &Arc<Store>| {
        let (objects, stills) = (names("a/"), names("s/"));
        let of: Vec<_> =
            objects.iter().zip(&stills).map(|(object, name)| SnapshotOf { object, key: KEY, name }).collect();
        store.snapshot(&of).map(drop)
    };
    wherever(snapshot, names, "s/")
}
