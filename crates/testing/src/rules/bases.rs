//! Copies that rest on bases.

use super::{CONFIG, KEY, Verdict, crash, crash_on, create, of, open};
use crate::pool::{contents, psync};
use crate::scenario::formatted;
use crate::sim::{Choice, SimConfig};
use indelible_store::error::Result;
use indelible_store::store::Store;
use std::sync::Arc;

const SIZE: usize = 9000;

/// An object `a` of three pages that holds ones, psynced twice.
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

/// A few bytes of a copy change: the rest of their pages is what it was, in the copy and in what it was made from, at once and in the
/// next attachment.
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

/// The same, with the power cut everywhere.
pub(super) fn first_changes_are_whole_after_a_power_cut() -> Verdict {
    first_changes(CONFIG)
}

/// The same where the medium is memory.
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

/// The object that a copy was made from is destroyed, and its space is used again: the copy shows what it showed.
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

/// A copy that is reported as created has its progress, and none of its pages but those of its base, after a power cut.
pub(super) fn a_copy_is_there_with_its_progress() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    let run = || -> Result<()> {
        source(&store)?;
        // Space that was used: its bits say that pages are the copy's own.
        create(&store, "used", 30_000);
        let mut used = store.attach_writer("used", KEY)?;
        psync(&mut used, &[(0, &[0xff; 30_000])])?;
        used.detach()?;
        store.destroy("used", KEY)?;
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
