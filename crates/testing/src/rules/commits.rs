use super::{CONFIG, KEY, Verdict, crash, crash_on, create, of, open};
use crate::pool::{process, psync, snapshot};
use crate::scenario::{formatted, judge_medium};
use crate::sim::{Choice, SimConfig};
use indelible_store::format::lane::BODY;
use indelible_store::medium::Medium;
use indelible_store::store::Store;
use std::sync::Arc;

pub(super) fn psyncs_and_a_checkpoint() -> Verdict {
    psyncs_on(CONFIG)
}

pub(super) fn psyncs_in_pieces() -> Verdict {
    psyncs_on(SimConfig { disk: false, ..CONFIG })
}

fn psyncs_on(config: SimConfig) -> Verdict {
    crash_on(
        config,
        |store| create(store, "a", 9000),
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            for round in 1..4_u8 {
                run.step(|_| psync(&mut a, &[(0, &[round; 200]), (5000, &[round]), (8_900, &[round; 99])]))?;
            }
            run.quiet(|_| a.checkpoint())?;
            run.step(|_| psync(&mut a, &[(0, &[9; 200]), (5000, &[9]), (8_900, &[9; 99])]))?;
            run.quiet(|_| a.detach())
        },
    )
}

pub(super) fn detach_forgets_what_waits_in_memory() -> Verdict {
    crash(
        |store| create(store, "a", 9000),
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.step(|_| psync(&mut a, &[(0, &[1; 200])]))?;
            run.quiet(|_| a.detach())
        },
    )
}

pub(super) fn sequence_ignored() -> Verdict {
    let medium = formatted(1 << 20, CONFIG);
    let store = open(&medium, 1);
    store.create("a", &of(64)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    for value in 1..3 {
        psync(&mut a, &[(0, &[value; 64])]).unwrap();
    }
    let promised = snapshot(&store).unwrap();
    let lane = store.lanes().unwrap().into_iter().find(|lane| lane.index.is_some()).unwrap();
    let used = a.lane_use();
    let len = used.bytes / used.batches;
    let first = lane.offset + BODY;
    let mut batch = vec![0; len as usize];
    medium.read(first, &mut batch).unwrap();
    medium.write(first + 2 * len, &batch).unwrap();
    std::mem::forget(a);
    judge_medium(&medium.power_cut(Choice::All).medium(), &[promised]).map(drop)
}

pub(super) fn progress_forgotten() -> Verdict {
    let medium = formatted(1 << 20, CONFIG);
    let store = open(&medium, 1);
    store.create("a", &of(5000)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, &[1; 5000])]).unwrap();
    a.checkpoint().unwrap();
    std::mem::forget(a);
    let image = medium.power_cut(Choice::None).medium();
    let store = Store::open(Arc::new(image), process(2)).unwrap();
    let a = store.attach_writer("a", KEY).unwrap();
    if (a.psyncs(), a.published() >= 5000) == (1, true) { Ok(()) } else { Err("progress is lost".into()) }
}

pub(super) fn intent_ignored() -> Verdict {
    crash(
        |store| create(store, "a", 20_000),
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.step(|_| psync(&mut a, &[(0, &[1; 100])]))?;
            run.quiet(|_| a.begin_direct(16_000))?;
            run.quiet(|_| a.write_direct(4096, &[2; 5000]))?;
            run.quiet(|_| a.end_direct())?;
            run.step(|_| psync(&mut a, &[]))
        },
    )
}

pub(super) fn a_direct_write_that_never_ended_is_logged() -> Verdict {
    crash(
        |store| create(store, "a", 20_000),
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.step(|_| psync(&mut a, &[(0, &[1; 100])]))?;
            run.quiet(|_| a.begin_direct(16_000))?;
            let mut promised = run.last();
            a.write_direct(4096, &[2; 5000])?;
            if let Some((_, _, bytes)) = promised.get_mut("a") {
                bytes[4096..9096].fill(2);
            }
            run.step_to(promised, |_| psync(&mut a, &[(4096, &[2; 5000])]))
        },
    )
}
