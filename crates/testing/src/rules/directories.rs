use super::{CONFIG, KEY, Verdict, crash_on, create, open};
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimConfig};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{Severity, Store};
use std::sync::Arc;

const NAMES: [&str; 5] = ["a/1", "a/2", "a/b/3", "a/b/b/3", "other"];

fn prepare(store: &Arc<Store>) {
    NAMES.into_iter().for_each(|name| create(store, name, 100));
}

fn rename(store: &Arc<Store>, from: &str, to: &str) -> Result<u64> {
    store.rename_directory(from, to, KEY).map_err(|unmoved| unmoved.cause)
}

pub(super) fn a_directory_is_moved_whole_or_not_at_all_by_a_power_cut() -> Verdict {
    for disk in [true, false] {
        let config = SimConfig { disk, ..CONFIG };
        crash_on(config, prepare, |scenario| {
            scenario.step(|store| rename(store, "a/", "c/d/"))?;
            scenario.step(|store| rename(store, "c/d/b/", "c/d/"))?;
            Ok(())
        })?;
    }
    Ok(())
}

pub(super) fn a_directory_is_moved_whole_or_not_at_all_wherever_it_ends() -> Verdict {
    const KINDS: [OpKind; 3] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier];
    for (kind, fault) in
        KINDS.into_iter().flat_map(|kind| [(kind, Fault::Kill), (kind, Fault::Io), (kind, Fault::After)])
    {
        for nth in 0.. {
            let named = |what: String| format!("{kind:?} {nth}, {fault:?}: {what}");
            let medium = formatted(2 << 20, CONFIG);
            let store = open(&medium, 2);
            prepare(&store);
            medium.fail_at(kind, nth, fault);
            let moved = rename(&store, "a/", "c/").is_ok();
            medium.clear_faults();
            for choice in [Choice::None, Choice::All] {
                let cut = medium.power_cut(choice).medium();
                let is_new = all_or_none(&open(&cut, 3)).map_err(named)?;
                if moved && !is_new {
                    return Err(named("a move that had ended is gone".into()));
                }
                let report = Store::check(Arc::new(cut.handle()), &mut |_, _| {});
                let report = report.map_err(|error| named(error.to_string()))?;
                if let Some(wrong) =
                    report.findings.iter().find(|finding| finding.severity >= Severity::Warning)
                {
                    return Err(named(format!("{wrong:?}")));
                }
            }
            if moved {
                break;
            }
        }
    }
    Ok(())
}

fn all_or_none(store: &Arc<Store>) -> Result<bool, String> {
    let is_there = |name: &str| match store.find(name) {
        Err(StoreError::NotFound) => Ok(false),
        found => found.map(|_| true).map_err(|error| error.to_string()),
    };
    let moving = NAMES.into_iter().filter_map(|name| name.strip_prefix("a/"));
    let (mut old, mut new) = (0, 0);
    for name in moving {
        old += usize::from(is_there(&format!("a/{name}"))?);
        new += usize::from(is_there(&format!("c/{name}"))?);
    }
    match (old, new) {
        (4, 0) => Ok(false),
        (0, 4) => Ok(true),
        _ => Err(format!("{old} have the old name, {new} the new one")),
    }
}

pub(super) fn a_directory_that_cannot_be_moved_stays_whole() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    prepare(&store);
    create(&store, "c/b/3", 100);
    let refused = |from: &str, to: &str, expected: fn(&StoreError) -> bool, object: Option<&str>| match store
        .rename_directory(from, to, KEY)
    {
        Err(unmoved) if expected(&unmoved.cause) && unmoved.object.as_deref() == object => Ok(()),
        other => Err(format!("{from} {to}: {other:?}")),
    };
    refused("a/", "c/", |cause| matches!(cause, StoreError::Exists), Some("c/b/3"))?;
    store.destroy("c/b/3", KEY).map_err(|error| error.to_string())?;
    refused("x/", "y/", |cause| matches!(cause, StoreError::NotFound), None)?;
    refused("a/", "a/b/", |cause| matches!(cause, StoreError::BadName { .. }), None)?;
    let long = format!("{}/", "n".repeat(509));
    refused("a/b/", &long, |cause| matches!(cause, StoreError::BadName { .. }), Some("a/b/b/3"))?;
    let writer = store.attach_writer("a/2", KEY).map_err(|error| error.to_string())?;
    refused("a/", "e/", |cause| matches!(cause, StoreError::Held { .. }), Some("a/2"))?;
    drop(writer);
    if all_or_none(&store)? { Err("it was moved".into()) } else { Ok(()) }
}
