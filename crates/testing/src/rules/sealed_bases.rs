use super::beside::{
    Beside, SIZE, keep, keeper_dies, on_each_sealed, several_are_kept, text, the_writer_dies,
};
use super::chains::merged_beneath;
use super::following::{do_not_miss, follow_by_the_log};
use super::sealing::{nonces, written_over};
use super::{CONFIG, KEY, LIMITS, Verdict, crash_on, create, of, open};
use crate::for_each_crash;
use crate::pool::{contents, psync};
use crate::scenario::formatted;
use crate::sealed::{self, page_at};
use crate::sim::{SimConfig, SimMedium};
use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::store::{SealedPages, SnapshotOf, Store};
use indelible_store::table::Located;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) fn several_sealed_objects_are_kept_as_of_one_moment() -> Verdict {
    on_each_sealed(several_are_kept)
}

pub(super) fn a_sealed_object_whose_writer_dies_after_a_snapshot_is_recovered() -> Verdict {
    on_each_sealed(the_writer_dies)
}

pub(super) fn a_process_that_makes_a_snapshot_of_a_sealed_object_may_die() -> Verdict {
    keeper_dies(true)
}

pub(super) fn sealed_bases_are_merged_beneath_a_writer() -> Verdict {
    on_each_sealed(merged_beneath)
}

pub(super) fn readers_follow_a_sealed_object() -> Verdict {
    on_each_sealed(follow_by_the_log)
}

pub(super) fn readers_of_a_sealed_object_do_not_miss_the_last_psync() -> Verdict {
    on_each_sealed(do_not_miss)
}

const PAGES: u64 = 66;
const WRITTEN: [u64; 3] = [0, 1, 65];

fn change(store: &Arc<Store>, name: &str, value: u8) -> Result<()> {
    let mut writer = sealed::writer(store, name)?;
    let line = [value; 64];
    let edits: Vec<_> = WRITTEN.iter().map(|page| (page * PAGE + 640, &line[..])).collect();
    psync(&mut writer, &edits)?;
    writer.detach()
}

fn pages(object: &Located) -> Vec<u64> {
    let shape = sealed::shape(object);
    let nodes = [shape.key_page(), shape.page(0, 0), shape.page(0, 1), shape.page(1, 0)];
    WRITTEN.into_iter().map(|page| shape.content_page(page)).chain(nodes).collect()
}

pub(super) fn copies_of_a_sealed_object_do_not_mix() -> Verdict {
    let medium = formatted(4 << 20, CONFIG);
    let store = open(&medium, 1);
    let made = || -> Result<[Located; 3]> {
        sealed::create(&store, "a", PAGES * PAGE)?;
        change(&store, "a", 1)?;
        change(&store, "a", 2)?;
        store.create_from("a", KEY, "b", &of(0))?;
        change(&store, "a", 3)?;
        change(&store, "b", 3)?;
        store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "s" }])?;
        change(&store, "a", 4)?;
        Ok([store.find("a")?, store.find("b")?, store.find("s")?])
    };
    let [a, b, s] = made().map_err(text)?;
    let bytes = medium.to_bytes();
    let all = pages(&a);
    for (into, from) in [(&b, &s), (&s, &b), (&a, &b), (&a, &s)] {
        let mut accepted = Vec::new();
        for mixture in 0..1_u32 << all.len() {
            let mut mixed = bytes.clone();
            for (_, page) in all.iter().enumerate().filter(|(nth, _)| mixture >> nth & 1 == 1) {
                mixed[page_at(into, *page)].copy_from_slice(&bytes[page_at(from, *page)]);
            }
            let store = open(&SimMedium::from_bytes(&mixed, CONFIG), 7);
            match store.find(&into.entry.name()).and_then(|object| contents(&store, &object)) {
                Ok(_) => accepted.push(mixture),
                Err(StoreError::Seal(SealError::Broken { .. })) => {}
                Err(error) => return Err(text(error)),
            }
        }
        if accepted != [0, (1 << all.len()) - 1] {
            let names = [into, from].map(|object| object.entry.name());
            return Err(format!("of {names:?} these mixtures are accepted: {accepted:?}"));
        }
    }
    Ok(())
}

pub(super) fn no_nonce_comes_twice_in_copies_and_snapshots() -> Verdict {
    let medium = formatted(4 << 20, CONFIG);
    let store = open(&medium, 1);
    sealed::create(&store, "a", 9000).map_err(text)?;
    written_over(&store, "a", 1).map_err(text)?;
    store.create_from("a", KEY, "b", &of(0)).map_err(text)?;
    medium.settle();
    let mut seals = HashMap::new();
    let go_on = |store: &Arc<Store>, value: u8, name: &str| -> Result<()> {
        written_over(store, "a", value)?;
        written_over(store, "b", value)?;
        store.snapshot(&[SnapshotOf { object: "a", key: KEY, name }])?;
        written_over(store, "a", value + 1)?;
        store.rollback("a", name, KEY)?;
        written_over(store, "a", value + 1)
    };
    let record = |medium: &SimMedium| go_on(&open(medium, 2), 10, "s").unwrap();
    let judge = |image: &crate::CrashImage| -> Verdict {
        let medium = image.medium();
        nonces(&medium.to_bytes(), &mut seals)?;
        go_on(&open(&medium, 3), 10, "t").map_err(text)?;
        nonces(&medium.to_bytes(), &mut seals)
    };
    for_each_crash(&medium, record, judge, &LIMITS).map_err(|failure| failure.to_string())?;
    if seals.len() < 50 { Err(format!("{} seals were seen", seals.len())) } else { Ok(()) }
}

fn whole(disk: bool) -> Verdict {
    crash_on(
        SimConfig { disk, ..CONFIG },
        |store| {
            sealed::create(store, "a", 9000).unwrap();
            written_over(store, "a", 1).unwrap();
        },
        |run| {
            run.step(|store| store.create_from("a", KEY, "b", &of(0)))?;
            run.step(|store| store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "s" }]))?;
            for (name, at, value) in [("b", 4090_usize, 2), ("a", 70, 3), ("b", 100, 4)] {
                let mut writer = run.quiet(|store| sealed::writer(store, name))?;
                let mut after = run.last();
                let (_, _, bytes) = after.get_mut(name).expect("it was created");
                bytes[at..at + 8].fill(value);
                run.step_to(after, |_| psync(&mut writer, &[(at as u64, &[value; 8])]))?;
                run.quiet(|_| writer.detach())?;
            }
            run.step(|store| store.rollback("a", "s", KEY))?;
            run.step(|store| store.destroy("s", KEY))?;
            run.step(|store| store.merge("a").and_then(|_| store.merge("b")).map(drop))
        },
    )
}

pub(super) fn sealed_copies_on_a_disk_are_whole_after_a_power_cut() -> Verdict {
    whole(true)
}

pub(super) fn sealed_copies_in_memory_are_whole_after_a_power_cut() -> Verdict {
    whole(false)
}

const FILLERS: [&str; 4] = ["f0", "f1", "f2", "f3"];

fn compare(beside: &Beside, pages: &SealedPages, when: &str) -> Verdict {
    for name in FILLERS {
        create(&beside.store, name, SIZE as u64 + 3 * PAGE);
        let mut filler = beside.store.attach_writer(name, KEY).map_err(text)?;
        psync(&mut filler, &[(0, &[0xee; SIZE + 3 * PAGE as usize])]).map_err(text)?;
        filler.detach().map_err(text)?;
    }
    let found = sealed::bytes(pages);
    FILLERS.iter().try_for_each(|name| beside.store.destroy(name, KEY)).map_err(text)?;
    match found {
        Ok(bytes) if bytes == beside.expected[0] => Ok(()),
        Ok(_) => Err(format!("{when}, its writer gets other pages than the last psync left")),
        Err(error) => Err(format!("{when}: {error}")),
    }
}

fn pages_of(beside: &Beside) -> Arc<SealedPages> {
    beside.writers[0].sealed_pages().expect("it is sealed")
}

pub(super) fn pages_of_a_sealed_object_are_right_while_bases_are_absorbed() -> Verdict {
    on_each_sealed(|mut beside| {
        let (other, pages) = (beside.other.clone(), pages_of(&beside));
        for round in 0..4_u8 {
            let reader = other.attach_snapshot("a", KEY).map_err(text)?;
            other.end_snapshot(reader).map_err(text)?;
            compare(&beside, &pages, &format!("after {round} psyncs"))?;
            beside.psync(0, 4096 * usize::from(round) + 9, 70 + round, 50).map_err(text)?;
            compare(&beside, &pages, "behind a psync")?;
        }
        beside.ends()
    })
}

pub(super) fn pages_of_a_sealed_object_are_right_while_bases_are_merged() -> Verdict {
    on_each_sealed(|mut beside| {
        let pages = pages_of(&beside);
        for (round, name) in ["s0", "s1", "s2"].into_iter().enumerate() {
            keep(&beside.other, &[("a", name)]).map_err(text)?;
            beside.psync(0, 4096 * round + 9, 70 + round as u8, 50).map_err(text)?;
        }
        compare(&beside, &pages, "with snapshots")?;
        for name in ["s1", "s2"] {
            beside.other.destroy(name, KEY).map_err(text)?;
            compare(&beside, &pages, "with fewer snapshots")?;
        }
        if beside.other.merge("a").map_err(text)? == 0 {
            return Err("nothing was merged".into());
        }
        compare(&beside, &pages, "after a merge")?;
        beside.ends()
    })
}
