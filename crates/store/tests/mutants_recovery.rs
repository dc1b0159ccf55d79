//! How often random damage to a dead lane goes unnoticed, and how much recovery's rules help.

use indelible_store::format::lane::BODY;
use indelible_store::store::Writer;
use indelible_store::{Mutant, with_mutant};
use indelible_testing::rules::{dead, found, psync_both};
use indelible_testing::{Choice, Fault, OpKind, SimMedium};

fn undone(rounds: u64) -> (u64, u64, u64) {
    let (mut whole, mut refused, mut undone) = (0, 0, 0);
    for seed in 0..rounds {
        let mut state = seed;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let work = |medium: &SimMedium, writers: &mut [Writer; 2]| {
            let dies = seed % 4;
            psync_both(medium, writers);
            if dies == 1 {
                writers[0].checkpoint().unwrap();
                psync_both(medium, writers);
            } else if dies == 2 {
                medium.fail_at(OpKind::Barrier, 0, Fault::Kill);
                writers[0].checkpoint().unwrap_err();
            } else if dies == 3 {
                medium.fail_at(OpKind::WriteDurable, 0, Fault::Kill);
                writers[0].checkpoint().unwrap_err();
            }
        };
        let choice = [Choice::None, Choice::All, Choice::Random(seed)][(seed / 4 % 3) as usize].clone();
        let (medium, promised, lane) = dead(choice, work);
        let used: u64 = lane.batches.iter().map(|batch| 192 + 64 * batch.lines).sum();
        if used == 0 {
            continue;
        }
        let at = lane.offset + BODY + random(used);
        match random(3) {
            0 => medium.flip(at, random(8) as u32),
            1 => medium.scribble(at..at + 8, seed),
            _ => medium.scribble(at / 512 * 512..at / 512 * 512 + 512, seed),
        }
        match found(&medium, &promised) {
            Ok(()) => whole += 1,
            Err(error) if error == "a psync is lost" => undone += 1,
            Err(_) => refused += 1,
        }
    }
    (whole, refused, undone)
}

#[test]
fn damaged_last_batches_that_are_undone_are_counted() {
    let rounds = 1200;
    let applied = with_mutant(Mutant::AppliedIgnored, || undone(rounds));
    let bits = with_mutant(Mutant::BitIgnored, || undone(rounds));
    let all = undone(rounds);
    println!("(whole, refused, undone) of {rounds} damages: {all:?}");
    println!("progress lines not asked: {applied:?}; bits not put right: {bits:?}");
    assert!(all.2 < applied.2 && all.2 < bits.2, "{all:?} {applied:?} {bits:?}");
}
