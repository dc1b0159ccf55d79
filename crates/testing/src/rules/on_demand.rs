//! Objects on demand in the pool: epochs are a prefix after a power cut; a dead process's commits
//! reach the pool before any attach.

use super::transactions::{NAMES, few, prefixes_of};
use super::{CONFIG, KEY, Verdict, open};
use crate::pool::process;
use crate::scenario::formatted;
use crate::sim::{Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::format::LINE;
use indelible_store::store::{ChangedLine, Commits, Identity, Store};
use indelible_store::table::{Class, CreateOptions};
use std::sync::Arc;

const MEMORY: u64 = 77;

fn text(error: StoreError) -> String {
    error.to_string()
}

pub(super) fn epochs_are_a_prefix_after_a_power_cut() -> Verdict {
    [false, true]
        .into_iter()
        .try_for_each(|disk| prefixes_of(Class::OnDemand, SimConfig { disk, ..CONFIG }, few))
}

fn left() -> std::result::Result<SimMedium, String> {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 1);
    let how = CreateOptions { size: 9000, class: Class::OnDemand, ..CreateOptions::default() };
    for name in NAMES {
        store.create(name, &how).map_err(text)?;
    }
    drop(store);
    let dying = Arc::new(medium.handle());
    let store = Store::open(dying.clone(), process(2)).map_err(text)?;
    for name in NAMES {
        std::mem::forget(store.attach_on_demand_writer(name, KEY, MEMORY).map_err(text)?);
    }
    dying.kill();
    std::mem::forget(store);
    Ok(medium)
}

fn bring(store: &Arc<Store>, value: u8) -> Result<()> {
    let (commits, mut lines) = (Commits::default(), Vec::new());
    let found = store.objects_in(MEMORY)?;
    for object in &found {
        commits.join(store.attach_left_writer(&object.entry.id, MEMORY)?)?;
        lines.push(ChangedLine { object: object.offset, offset: 0, bytes: [value; LINE as usize] });
    }
    commits.tell(1, lines)?;
    commits.wait(1)?;
    for object in &found {
        let (writer, flushed) = commits.leave(object.offset);
        flushed?;
        if let Some(mut writer) = writer {
            writer.forget_memory();
            writer.detach()?;
        }
    }
    Ok(())
}

fn refusals(store: &Arc<Store>) -> [bool; 4] {
    let refused = |result: Result<()>| matches!(result, Err(StoreError::MemoryLeft { memory: MEMORY }));
    [
        refused(store.attach_on_demand_writer("a", KEY, 1).map(drop)),
        refused(store.attach_reader("a", KEY).map(drop)),
        refused(store.set_class("a", KEY, Class::Psync)),
        refused(store.create_from("a", KEY, "copy", &CreateOptions::default()).map(drop)),
    ]
}

pub(super) fn commits_left_in_memory_come_to_the_pool_first() -> Verdict {
    let medium = left()?;
    let store = open(&medium, 3);
    if refusals(&store) != [true; 4] {
        return Err(format!("an object whose commits are in memory is used: {:?}", refusals(&store)));
    }
    let a = store.find("a").map_err(text)?;
    if !matches!(store.attach_left_writer(&a.entry.id, MEMORY + 1), Err(StoreError::NotFound)) {
        return Err("memory of another number is taken for its own".into());
    }
    drop(store.attach_left_writer(&a.entry.id, MEMORY).map_err(text)?);
    if refusals(&store) != [true; 4] {
        return Err("memory is forgotten before the pool has it".into());
    }
    bring(&store, 5).map_err(text)?;
    for name in NAMES {
        if store.find(name).map_err(text)?.entry.memory.get() != 0 {
            return Err(format!("{name:?} still has memory"));
        }
    }
    store.attach_reader("a", KEY).map_err(text)?.detach().map_err(text)?;
    store.attach_on_demand_writer("a", KEY, 1).map(drop).map_err(text)?;
    let medium = left()?;
    let boot = Identity { boot: [2; 16], ..process(4) };
    let store = Store::open(Arc::new(medium.handle()), boot).map_err(text)?;
    store.attach_reader("b", KEY).map_err(text)?.detach().map_err(text)?;
    store.attach_on_demand_writer("a", KEY, 1).map(drop).map_err(text)
}

pub(super) fn a_recovery_of_memory_may_die() -> Verdict {
    let kinds = [OpKind::WriteDurable, OpKind::Barrier, OpKind::Write];
    for (kind, fault) in kinds.into_iter().flat_map(|kind| [(kind, Fault::Kill), (kind, Fault::KillLate)]) {
        for nth in 0..60 {
            let medium = left()?;
            let dying = Arc::new(medium.handle());
            let store = Store::open(dying.clone(), process(3)).map_err(text)?;
            medium.fail_at(kind, nth, fault);
            let died = bring(&store, 6);
            medium.clear_faults();
            dying.kill();
            std::mem::forget(store);
            let store = open(&medium, 4);
            let at = format!("{kind:?} {nth}, {fault:?}");
            for name in NAMES {
                let object = store.find(name).map_err(text)?;
                if object.entry.memory.get() == 0 {
                    let writer = store.attach_on_demand_writer(name, KEY, 9).map_err(text)?;
                    let mut line = [0; LINE as usize];
                    writer.pages().read(0, &mut line).map_err(text)?;
                    if line != [6; LINE as usize] {
                        return Err(format!("{at}: {name:?} has no memory, and not all of its commits"));
                    }
                } else if store.attach_reader(name, KEY).is_ok() {
                    return Err(format!("{at}: {name:?} is read without its commits in memory"));
                }
            }
            if died.is_ok() {
                break;
            }
        }
    }
    Ok(())
}
