use super::{CONFIG, KEY, Verdict, crash_on, open};
use crate::pool::{check_tiling, process, psync};
use crate::scenario::formatted;
use crate::sealed;
use crate::sim::{Fault, OpKind, SimConfig};
use indelible_store::error::Result;
use indelible_store::format::PAGE;
use indelible_store::store::{Store, Writer};
use std::sync::Arc;

const SIZE: u64 = 65 * PAGE + 100;
const PLACES: [u64; 4] = [70, 2 * PAGE + 3000, 3 * PAGE, 65 * PAGE];
const SIZES: [u64; 6] = [64 * PAGE + 7, 2 * PAGE + 500, 2 * PAGE + 100, 3 * PAGE, SIZE, 1];

fn text(error: indelible_store::error::StoreError) -> String {
    error.to_string()
}

fn prepare(store: &Arc<Store>) -> Result<()> {
    sealed::create(store, "a", SIZE)?;
    let mut a = sealed::writer(store, "a")?;
    write(&mut a)?;
    a.detach()
}

fn write(a: &mut Writer) -> Result<()> {
    PLACES.iter().try_for_each(|at| psync(a, &[(*at, &[9; 8])]))
}

fn resized(mut bytes: Vec<u8>, size: u64) -> Vec<u8> {
    bytes.resize(size as usize, 0);
    bytes
}

pub(super) fn a_sealed_object_has_one_size_after_a_power_cut() -> Verdict {
    for disk in [true, false] {
        crash_on(
            SimConfig { disk, ..CONFIG },
            |store| prepare(store).unwrap(),
            |run| {
                for size in SIZES {
                    let mut after = run.last();
                    let (_, _, bytes) = after.get_mut("a").expect("it was created");
                    *bytes = resized(std::mem::take(bytes), size);
                    run.step_to(after.clone(), |store| sealed::resize(store, "a", size))?;
                    assert_eq!(run.step(|store| store.find("a"))?.entry.size.get(), size);
                    assert!(run.last() == after, "size {size}");
                }
                Ok(())
            },
        )?;
    }
    Ok(())
}

pub(super) fn an_attached_sealed_object_grows_whole() -> Verdict {
    for disk in [true, false] {
        crash_on(
            SimConfig { disk, ..CONFIG },
            |store| {
                sealed::create(store, "a", 2 * PAGE + 500).unwrap();
                sealed::create(store, "behind", PAGE).unwrap();
            },
            |run| {
                let mut state = run.last();
                let mut a = run.quiet(|store| sealed::writer(store, "a"))?;
                for (size, value) in [(2 * PAGE + 900, 1), (64 * PAGE, 2), (65 * PAGE, 3), (65 * PAGE + 9, 4)]
                {
                    let (_, _, bytes) = state.get_mut("a").expect("it was created");
                    let at = bytes.len() - 20;
                    bytes[at..at + 8].fill(value);
                    let now = state.clone();
                    run.step_to(now, |_| psync(&mut a, &[(at as u64, &[value; 8])]))?;
                    let (_, _, bytes) = state.get_mut("a").expect("it was created");
                    *bytes = resized(std::mem::take(bytes), size);
                    run.step_to(state.clone(), |_| a.grow(size))?;
                }
                run.quiet(|_| a.detach())
            },
        )?;
    }
    Ok(())
}

pub(super) fn a_process_that_resizes_a_sealed_object_may_die() -> Verdict {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    let all = KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
    for ((kind, late), size) in all.flat_map(|how| [(how, 2 * PAGE + 500), (how, 70 * PAGE)]) {
        for nth in 0.. {
            let medium = formatted(2 << 20, CONFIG);
            prepare(&open(&medium, 1)).map_err(text)?;
            let handle = Arc::new(medium.handle());
            let store = Store::open(handle.clone(), process(2)).map_err(text)?;
            let before = sealed::contents(&store, &store.find("a").map_err(text)?).map_err(text)?;
            medium.fail_at(kind, nth, if late { Fault::KillLate } else { Fault::Kill });
            let done = sealed::resize(&store, "a", size);
            medium.clear_faults();
            let named = |what: String| format!("size {size}, {kind:?} {nth}, late {late}: {what}");
            if !handle.is_dead() {
                done.map_err(|error| named(error.to_string()))?;
                break;
            }
            drop((done, store));
            let store = open(&medium, 3);
            let mut a = sealed::writer(&store, "a").map_err(|error| named(error.to_string()))?;
            let pages = a.sealed_pages().expect("it is sealed");
            let found = sealed::bytes(&pages).map_err(|error| named(error.to_string()))?;
            if found != before && found != resized(before.clone(), size) {
                return Err(named(format!("{} bytes, which are neither", found.len())));
            }
            // Cut pages come back as zeros.
            if a.object().entry.size.get() < SIZE {
                a.grow(SIZE).map_err(|error| named(error.to_string()))?;
                let grown = sealed::bytes(&pages).map_err(|error| named(error.to_string()))?;
                if grown != resized(found, SIZE) {
                    return Err(named("what was cut off comes back".into()));
                }
            }
            write(&mut a).and_then(|()| a.detach()).map_err(|error| named(error.to_string()))?;
            let found = sealed::contents(&store, &store.find("a").map_err(text)?).map_err(text)?;
            if PLACES.iter().any(|at| found[*at as usize] != 9) {
                return Err(named("it does not keep what is psynced".into()));
            }
            check_tiling(&store).map_err(named)?;
            store.destroy("a", KEY).map_err(text)?;
        }
    }
    Ok(())
}
