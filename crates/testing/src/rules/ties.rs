use super::{CONFIG, KEY, LIMITS, Verdict, create, open};
use crate::for_each_crash;
use crate::pool::{check_tiling, contents, process, psync};
use crate::scenario::formatted;
use crate::sim::{Choice, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{Severity, Store};
use std::sync::Arc;

const SIZE: usize = 5000;

fn text(error: StoreError) -> String {
    error.to_string()
}

fn made(store: &Arc<Store>, names: &[&str]) -> Result<Vec<[u8; 16]>> {
    let mut ids = Vec::new();
    for (value, name) in (1..).zip(names) {
        create(store, name, SIZE as u64);
        let mut writer = store.attach_writer(name, KEY)?;
        psync(&mut writer, &[(0, &[value; SIZE])])?;
        ids.push(writer.object().entry.id);
        writer.detach()?;
    }
    Ok(ids)
}

fn is_sound(medium: &SimMedium, store: &Store) -> Verdict {
    check_tiling(store)?;
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(text)?;
    match report.findings.iter().find(|finding| finding.severity > Severity::Note) {
        Some(finding) => Err(format!("{finding:?}")),
        None => Ok(()),
    }
}

pub(super) fn a_tied_object_outlives_the_other() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    let ids = made(&store, &["a", "b", "c", "d"]).map_err(text)?;
    let there = |of: usize| store.find_id(&ids[of]).and_then(|found| contents(&store, &found));
    let free = store.info().map_err(text)?.free;
    for (name, to) in [("a", "b"), ("a", "c"), ("a", "b"), ("d", "c"), ("d", "a")] {
        store.tie(name, KEY, to).map_err(text)?;
    }
    for (name, to) in [("a", "a"), ("b", "a"), ("c", "d")] {
        if !matches!(store.tie(name, KEY, to), Err(StoreError::TieCycle)) {
            return Err(format!("{name} is tied to {to}"));
        }
    }
    let names = |name| Ok(store.ties(name)?.into_iter().map(|tie| tie.name).collect::<Vec<_>>());
    if [names("a"), names("b")].into_iter().collect::<Result<Vec<_>>>().map_err(text)?
        != [vec!["b", "c"], vec![]]
    {
        return Err("its ties are others".into());
    }
    store.delete("a", KEY).map_err(text)?;
    store.destroy("d", KEY).map_err(text)?;
    store.destroy("b", KEY).map_err(text)?;
    store.reap().map_err(text)?;
    if there(0).map_err(text)? != [1; SIZE] || there(3).map_err(text)? != [4; SIZE] || there(1).is_ok() {
        return Err("it has gone before the others".into());
    }
    is_sound(&medium, &store)?;
    let reader = store.attach_reader("c", KEY).map_err(text)?;
    store.delete("c", KEY).map_err(text)?;
    store.reap().map_err(text)?;
    there(0).and_then(|_| there(3)).map_err(text)?;
    reader.detach().map_err(text)?;
    for of in [0, 2, 3] {
        if there(of).is_ok() {
            return Err(format!("{of} is still there"));
        }
    }
    is_sound(&medium, &store)?;
    let left = store.info().map_err(text)?.free;
    if left != free + 4 * 8192 {
        return Err(format!("{left} bytes are free, {free} before"));
    }
    made(&store, &["e", "f"]).map_err(text)?;
    store.tie("e", KEY, "f").map_err(text)?;
    let untied = [store.untie("e", KEY, "f"), store.untie("e", KEY, "f")];
    if !matches!(untied, [Ok(true), Ok(false)]) {
        return Err(format!("untied: {untied:?}"));
    }
    store.destroy("e", KEY).map_err(text)?;
    if store.info().map_err(text)?.objects != 1 {
        return Err("it is still there".into());
    }
    is_sound(&medium, &store)
}

pub(super) fn chains_of_ties_end_from_the_far_end() -> Verdict {
    const LONG: usize = 40;
    for forward in [true, false] {
        let medium = formatted(4 << 20, CONFIG);
        let store = open(&medium, 2);
        let names: Vec<String> = (0..LONG).map(|nth| format!("{nth}")).collect();
        names.iter().for_each(|name| create(&store, name, 100));
        let ends = names.windows(2).map(|pair| (&pair[0], &pair[1]));
        for (one, other) in ends {
            let (tied, to) = if forward { (one, other) } else { (other, one) };
            store.tie(tied, KEY, to).map_err(text)?;
        }
        let last = if forward { LONG - 1 } else { 0 };
        for name in names.iter().filter(|name| **name != names[last]) {
            store.destroy(name, KEY).map_err(text)?;
        }
        store.reap().map_err(text)?;
        let before = store.info().map_err(text)?.objects;
        store.destroy(&names[last], KEY).map_err(text)?;
        let after = store.info().map_err(text)?.objects;
        if (before, after) != (LONG as u64, 0) {
            return Err(format!("{before} objects before the last went, {after} behind"));
        }
        is_sound(&medium, &store)?;
    }
    Ok(())
}

pub(super) fn lists_are_whole_after_a_power_cut() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    made(&store, &["a", "b", "c"]).map_err(text)?;
    for (nth, to) in ["b", "c"].into_iter().enumerate() {
        store.tie("a", KEY, to).map_err(text)?;
        let cut = medium.power_cut(Choice::None).medium();
        let after = open(&cut, 3);
        let found = after.ties("a").map_err(|error| format!("after a power cut: {error}"))?;
        if found.len() != nth + 1 {
            return Err(format!("{found:?} after a power cut"));
        }
        is_sound(&cut, &after)?;
    }
    Ok(())
}

pub(super) fn a_tied_object_is_there_as_long_as_the_other_with_a_power_cut_everywhere() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let ids = made(&open(&medium, 1), &["a", "b", "c"]).map_err(text)?;
    medium.settle();
    let record = |medium: &SimMedium| {
        let store = open(medium, 2);
        let run = || -> Result<()> {
            store.tie("a", KEY, "b")?;
            medium.mark(1);
            store.tie("a", KEY, "c")?;
            store.delete("a", KEY)?;
            medium.mark(2);
            store.destroy("c", KEY)?;
            store.destroy("b", KEY)?;
            medium.mark(3);
            Ok(())
        };
        run().unwrap_or_else(|error| panic!("without a crash: {error}"));
    };
    let judge = |image: &crate::sim::CrashImage| -> Verdict {
        let (medium, mark) = (image.medium(), image.last_mark().unwrap_or(0));
        let store = Store::open(Arc::new(medium.handle()), process(5)).map_err(text)?;
        let named = store.find("a").is_ok();
        if mark == 1 && named && store.ties("a").map_err(text)?.is_empty() {
            return Err("its tie is gone".into());
        }
        store.reap().map_err(text)?;
        let there = |of: usize| store.find_id(&ids[of]).is_ok();
        if !there(0) && (there(1) || mark < 2) {
            return Err("it is gone before the other".into());
        }
        if there(0) && contents(&store, &store.find_id(&ids[0]).map_err(text)?).map_err(text)? != [1; SIZE] {
            return Err("it has something else".into());
        }
        if there(0) && !named && !there(1) && !there(2) || mark == 3 && there(0) {
            return Err("it is there behind the others".into());
        }
        is_sound(&medium, &store)
    };
    for_each_crash(&medium, record, judge, &LIMITS).map(drop).map_err(|failure| failure.to_string())
}
