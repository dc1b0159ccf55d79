//! The lanes that recovery reads, and the batches that count.

use super::errors::recovered;
use super::{CONFIG, KEY, LIMITS, Verdict, crash, crash_on, create, of, open};
use crate::for_each_crash;
use crate::pool::{psync, psync_many, recover_all, snapshot};
use crate::scenario::{formatted, judge_medium};
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium, TearUnit};
use indelible_store::error::StoreError;

pub(super) fn lane_forgotten() -> Verdict {
    // With one lane the next writer would take, and recover, just that one.
    let medium = formatted(2 << 20, SimConfig { disk: false, ..CONFIG });
    let store = open(&medium, 1);
    let names = ["a", "b", "c"];
    names.iter().for_each(|name| create(&store, name, 9000));
    let writers = names.map(|name| {
        let mut writer = store.attach_writer(name, KEY).unwrap();
        psync(&mut writer, &[(0, &[1; 9000])]).unwrap();
        writer
    });
    let promised = snapshot(&store).unwrap();
    std::mem::forget(writers);
    judge_medium(&medium.power_cut(Choice::None).medium(), &[promised]).map(drop)
}

pub(super) fn binding_ignored() -> Verdict {
    crash(
        |store| ["keeps the lane", "a"].iter().for_each(|name| create(store, name, 5000)),
        |run| {
            let keeper = run.quiet(|store| store.attach_writer("keeps the lane", KEY))?;
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.step(|_| psync(&mut a, &[(0, &[1; 5000])]))?;
            run.quiet(|_| a.detach())?;
            run.step(|store| store.destroy("a", KEY))?;
            run.step(|store| store.create("b", &of(5000)))?;
            let b = run.quiet(|store| store.attach_writer("b", KEY))?;
            run.quiet(|_| b.detach())?;
            run.quiet(|_| keeper.detach())
        },
    )
}

pub(super) fn visible_taken_for_durable() -> Verdict {
    let medium = formatted(1 << 20, CONFIG);
    let survivor = open(&medium, 2);
    survivor.create("a", &of(5000)).unwrap();
    survivor.create("b", &of(5000)).unwrap();
    medium.settle();
    let store = open(&medium, 1);
    let (mut a, mut b) = (store.attach_writer("a", KEY).unwrap(), store.attach_writer("b", KEY).unwrap());
    let mut states = vec![snapshot(&store).unwrap()];
    medium.fail_at(OpKind::WriteDurable, 0, Fault::KillLate);
    let _ = psync_many(&mut [(&mut a, &[(0, &[1; 5000])]), (&mut b, &[(0, &[1; 5000])])]);
    medium.clear_faults();
    let mut after = states[0].clone();
    after.values_mut().for_each(|(_, _, bytes)| bytes.fill(1));
    states.push(after);
    let record = |_: &SimMedium| recover_all(&survivor).unwrap();
    for_each_crash(&medium, record, |image| judge_medium(&image.medium(), &states).map(drop), &LIMITS)
        .map(drop)
        .map_err(|failure| failure.to_string())
}

pub(super) fn each_process_has_a_lane_of_its_own() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let stores = [1, 2].map(|pid| open(&medium, pid));
    let names = ["a", "b"];
    names.iter().for_each(|name| create(&stores[0], name, 5000));
    let text = |error: StoreError| error.to_string();
    let mut writers = Vec::new();
    for (store, name) in stores.iter().zip(names) {
        let mut writer = store.attach_writer(name, KEY).map_err(text)?;
        psync(&mut writer, &[(0, &[1; 300])]).map_err(text)?;
        writers.push(writer);
    }
    for (value, writer) in (2..).zip(&mut writers) {
        psync(writer, &[(64, &[value; 300])]).map_err(text)?;
    }
    let mut promised = snapshot(&stores[0]).map_err(text)?;
    for (value, name) in (2..).zip(names) {
        let bytes = &mut promised.get_mut(name).ok_or("an object is gone")?.2;
        bytes[..300].fill(1);
        bytes[64..364].fill(value);
    }
    std::mem::forget(writers);
    judge_medium(&medium.power_cut(Choice::None).medium(), &[promised]).map(drop)
}

pub(super) fn an_object_moves_once_its_primary_is_durable() -> Verdict {
    crash_on(
        SimConfig { disk: false, ..CONFIG },
        |store| ["a", "b"].iter().for_each(|name| create(store, name, 5000)),
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            let mut b = run.quiet(|store| store.attach_writer("b", KEY))?;
            run.step(|_| psync(&mut b, &[(0, &[1; 300])]))?;
            run.step(|_| psync_many(&mut [(&mut a, &[(0, &[2; 64])]), (&mut b, &[(4096, &[2; 64])])]))
        },
    )
}

pub(super) fn a_checkpoint_that_failed_leaves_the_generation_known() -> Verdict {
    after_a_failed_checkpoint(false)
}

pub(super) fn a_lane_that_nobody_could_take_over_leaves_the_generation_known() -> Verdict {
    after_a_failed_checkpoint(true)
}

fn after_a_failed_checkpoint(fails_again: bool) -> Verdict {
    let config = SimConfig { tear_unit: TearUnit::Word, ..CONFIG };
    for fault in [Fault::Io, Fault::After, Fault::Short] {
        for seed in 0..12 {
            let medium = formatted(1 << 20, SimConfig { seed, ..config });
            let store = open(&medium, 1);
            create(&store, "a", 5000);
            let mut a = store.attach_writer("a", KEY).unwrap();
            for round in 1..3 {
                psync(&mut a, &[(0, &[round; 5000])]).unwrap();
                a.checkpoint().unwrap();
            }
            // The second copy of the header is lost.
            medium.fail_writeback(false);
            psync(&mut a, &[(0, &[9; 100])]).unwrap_err();
            drop(a);
            let mut a = store.attach_writer("a", KEY).unwrap();
            psync(&mut a, &[(0, &[3; 5000])]).unwrap();
            medium.fail_at(OpKind::WriteDurable, 0, fault);
            a.checkpoint().unwrap_err();
            medium.clear_faults();
            drop((a, store));
            let store = open(&medium, 2);
            if fails_again {
                medium.fail_at(OpKind::WriteDurable, seed % 4, fault);
            }
            let attached = store.attach_writer("a", KEY);
            medium.clear_faults();
            let a = attached.or_else(|_| store.attach_writer("a", KEY)).unwrap();
            for cut in 0..8 {
                let found = recovered(&medium.power_cut(Choice::Random(cut)).medium())?;
                if found["a"] != [3; 5000] {
                    return Err(format!("{fault:?}, seed {seed}, cut {cut}: the psync is lost"));
                }
            }
            drop(a);
        }
    }
    Ok(())
}

/// No batch tells the lane's generation, a checkpoint fails in the header, and the power is cut
/// during the take-over.
fn take_over_fails(checkpoint: Fault, take_over: Fault, nth: u64) -> Verdict {
    let medium = formatted(1 << 20, SimConfig { tear_unit: TearUnit::Word, ..CONFIG });
    let store = open(&medium, 1);
    create(&store, "a", 5000);
    let mut a = store.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, &[1; 5000])]).unwrap();
    let promised = snapshot(&store).unwrap();
    std::mem::forget(a);
    let image = medium.power_cut(Choice::None).medium();
    let store = open(&image, 2);
    let a = store.attach_writer("a", KEY).unwrap();
    image.fail_at(OpKind::WriteDurable, 0, checkpoint);
    a.checkpoint().unwrap_err();
    image.clear_faults();
    drop(a);
    let next = if checkpoint == Fault::KillLate { open(&image, 3) } else { store };
    image.fail_at(OpKind::WriteDurable, nth, take_over);
    let _ = next.attach_writer("a", KEY);
    for cut in 0..64 {
        let left = image.power_cut(Choice::Random(cut)).medium();
        judge_medium(&left, std::slice::from_ref(&promised))
            .map_err(|error| format!("{take_over:?} {nth}, cut {cut}: {error}"))?;
    }
    Ok(())
}

pub(super) fn an_empty_lane_whose_checkpoint_failed_is_taken_over() -> Verdict {
    for fault in [Fault::Io, Fault::After, Fault::Short] {
        (0..4).try_for_each(|nth| take_over_fails(fault, fault, nth))?;
    }
    Ok(())
}

pub(super) fn an_empty_lane_whose_holders_died_is_taken_over() -> Verdict {
    for fault in [Fault::Kill, Fault::KillLate] {
        (0..4).try_for_each(|nth| take_over_fails(Fault::KillLate, fault, nth))?;
    }
    Ok(())
}
