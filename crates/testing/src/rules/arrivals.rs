//! Objects that come to a pool together; objects whose ID is the hash of their bytes.

use super::{CONFIG, KEY, Verdict, crash_on, create, open};
use crate::pool::contents;
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::format::entry::{FLAG_CONTENT, FLAG_READ_ONLY};
use indelible_store::medium::Medium;
use indelible_store::store::{Attributes, Revived, Severity, Store, content_id};
use std::sync::Arc;

const NAMES: [&str; 3] = ["a", "b", "c"];
const SIZE: u64 = 5000;

fn attributes(number: u8) -> Attributes {
    let name = NAMES[usize::from(number)].to_owned();
    Attributes { name, id: [number + 1; 16], size: SIZE, published: SIZE, psyncs: 1, ..Attributes::default() }
}

fn bring(store: &Arc<Store>) -> Result<()> {
    store.reap()?;
    let begun: Result<Vec<Revived>> = (0..3)
        .map(|number| {
            let revived = store.adopt_elsewhere(&attributes(number), None)?;
            revived.write(0, &[number + 1; 8192])?;
            Ok(revived)
        })
        .collect();
    Revived::publish_all(begun?).map(drop).map_err(|unpublished| unpublished.cause)
}

fn all_or_none(store: &Arc<Store>) -> Result<usize, String> {
    let text = |error: StoreError| error.to_string();
    store.reap().map_err(text)?;
    let mut there = 0;
    for (name, number) in NAMES.into_iter().zip(1_u8..) {
        let reader = match store.attach_raw_reader(name, KEY) {
            Err(StoreError::NotFound) => continue,
            reader => reader.map_err(text)?,
        };
        if contents(store, reader.object()).map_err(text)? != [number; SIZE as usize] {
            return Err(format!("object {name} has other bytes"));
        }
        there += 1;
    }
    let listed = store.list((0, 0), 9).map_err(text)?.objects.len();
    if there == listed && [0, 3].contains(&there) {
        Ok(there)
    } else {
        Err(format!("{there} of 3, {listed} listed"))
    }
}

fn sound(medium: &SimMedium) -> Verdict {
    let report =
        Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(|error| error.to_string())?;
    let wrong = report.findings.iter().find(|finding| finding.severity >= Severity::Warning);
    wrong.map_or(Ok(()), |finding| Err(format!("{finding:?}")))
}

pub(super) fn objects_that_come_together_are_there_together_after_a_power_cut() -> Verdict {
    for disk in [true, false] {
        let config = SimConfig { disk, ..CONFIG };
        crash_on(config, |_| (), |scenario| scenario.step(bring))?;
    }
    Ok(())
}

pub(super) fn objects_that_come_together_are_there_together_wherever_it_ends() -> Verdict {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    let text = |error: StoreError| error.to_string();
    for (kind, fault) in
        KINDS.into_iter().flat_map(|kind| [(kind, Fault::Kill), (kind, Fault::Io), (kind, Fault::After)])
    {
        for nth in 0.. {
            let named = |what: String| format!("{kind:?} {nth}, {fault:?}: {what}");
            let medium = formatted(2 << 20, CONFIG);
            let store = open(&medium, 2);
            medium.fail_at(kind, nth, fault);
            let brought = bring(&store);
            medium.clear_faults();
            for choice in [Choice::None, Choice::All] {
                let cut = medium.power_cut(choice).medium();
                let there = all_or_none(&open(&cut, 3)).map_err(named)?;
                if brought.is_ok() && there == 0 {
                    return Err(named("an import that had ended is gone".into()));
                }
                sound(&cut).map_err(named)?;
            }
            drop(store);
            let next = open(&medium, 4);
            if all_or_none(&next).map_err(named)? == 0 {
                bring(&next).map_err(text).map_err(named)?;
            }
            let cut = medium.power_cut(Choice::None).medium();
            if all_or_none(&open(&cut, 5)).map_err(named)? != 3 {
                return Err(named("the second import is gone".into()));
            }
            if brought.is_ok() {
                break;
            }
        }
    }
    Ok(())
}

pub(super) fn many_objects_at_once_come_or_are_refused_as_a_whole() -> Verdict {
    let text = |error: StoreError| error.to_string();
    let (mut refused, mut came) = (0, 0);
    for (count, full) in [(600_u64, true), (3000, false), (3000, true)] {
        let medium = formatted(64 << 20, CONFIG);
        let store = open(&medium, 2);
        let begun: Result<Vec<Revived>> = (0..count)
            .map(|number| {
                let mut id = [7; 16];
                id[..8].copy_from_slice(&number.to_le_bytes());
                let kept = Attributes { name: format!("{number:05}"), id, size: 1, ..Attributes::default() };
                store.adopt_elsewhere(&kept, None)
            })
            .collect();
        for number in 0.. {
            let largest = store.info().map_err(text)?.largest;
            if !full || largest < 64 << 10 {
                break;
            }
            create(&store, &format!("filler {number}"), largest - (4 << 10));
        }
        let published = Revived::publish_all(begun.map_err(text)?);
        let there = usize::from(store.find("00000").is_ok());
        match published {
            Ok(all) if all.len() as u64 == count && there == 1 => came += 1,
            Err(why) if matches!(why.cause, StoreError::NoRoom { .. }) && there == 0 => refused += 1,
            other => return Err(format!("{count}: {there} there, {:?}", other.err())),
        }
        store.reap().map_err(text)?;
        sound(&medium)?;
    }
    if (came, refused) == (2, 1) { Ok(()) } else { Err(format!("{came} came, {refused} were refused")) }
}

pub(super) fn bytes_of_another_content_do_not_come() -> Verdict {
    let text = |error: StoreError| error.to_string();
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    let bytes = [2; 8192];
    for (id, right) in [(content_id(&bytes[..SIZE as usize]), true), ([2; 16], false)] {
        let kept = Attributes { id, flags: FLAG_CONTENT, ..attributes(1) };
        let revived = store.adopt_elsewhere(&kept, None).map_err(text)?;
        revived.write(0, &bytes).map_err(text)?;
        match revived.publish() {
            Ok(found) if right && found.entry.has(FLAG_READ_ONLY) => store.destroy("b", KEY).map_err(text)?,
            Err(StoreError::Damaged { .. }) if !right => {}
            other => return Err(format!("right {right}: {:?}", other.map(|found| found.entry.name()))),
        }
        store.reap().map_err(text)?;
    }
    if store.list((0, 0), 1).map_err(text)?.objects.is_empty() {
        sound(&medium)
    } else {
        Err("it is there".into())
    }
}

pub(super) fn a_content_that_changed_is_found() -> Verdict {
    let text = |error: StoreError| error.to_string();
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    let content = [9; SIZE as usize];
    let (made, first) = store.create_by_content("a", &content).map_err(text)?;
    let (same, second) = store.create_by_content("b", &content).map_err(text)?;
    let ids = [made.entry.id, same.entry.id, content_id(&content)];
    if !first || second || ids != [ids[0]; 3] || store.verify_content("a", KEY).map_err(text)? != Some(true) {
        return Err("not the same object".into());
    }
    let changed = medium.handle().write(made.entry.primary_offset() + 4097, &[8]);
    changed.map_err(|error| StoreError::from(error).to_string())?;
    if store.verify_content("a", KEY).map_err(text)? != Some(false) {
        return Err("changed bytes were not found".into());
    }
    match store.create_by_content("b", &content) {
        Err(StoreError::Damaged { .. }) => Ok(()),
        other => {
            Err(format!("other bytes count as the same: {:?}", other.map(|(found, _)| found.entry.name())))
        }
    }
}
