//! Power cuts in recovery, and in the recovery after that (S0.26).

use indelible_store::error::Result;
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Snapshot, process, psync, psync_many, recover_all, snapshot};
use indelible_testing::scenario::{Scenario, allowed, formatted, judge_medium, media};
use indelible_testing::{CrashImage, Limits, SimMedium, for_each_crash};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

fn program(run: &mut Scenario) -> Result<()> {
    let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
    let mut b = run.quiet(|store| store.attach_writer("b", KEY))?;
    let mut c = run.quiet(|store| store.attach_writer("c", KEY))?;
    run.step(|_| psync(&mut a, &[(0, &[1; 5000])]))?;
    run.step(|_| psync(&mut c, &[(100, &[1; 300])]))?;
    run.step(|_| psync_many(&mut [(&mut a, &[(64, &[2; 64])]), (&mut b, &[(0, &[2; 5000])])]))?;
    run.quiet(|_| b.begin_direct(20_000))?;
    run.quiet(|_| b.write_direct(8192, &[3; 6000]))?;
    run.step(|_| psync(&mut a, &[(0, &[3; 5000])]))?;
    run.step(|store| store.create("d", &CreateOptions { size: 100, ..CreateOptions::default() }))?;
    run.step(|_| psync_many(&mut [(&mut a, &[(64, &[4; 64])]), (&mut c, &[(0, &[4; 5000])])]))?;
    for state in &mut run.states {
        if let Some((_, _, bytes)) = state.get_mut("b") {
            bytes[8192..].fill(0);
        }
    }
    std::mem::forget((a, b, c));
    Ok(())
}

fn recover(image: &CrashImage, states: &[Snapshot], depth: u32, judged: &Cell<u64>) -> Result<(), String> {
    let limits = match depth {
        2 => Limits { exhaustive: 2, singles: 1, random: 2, points: 5, seed: 5 },
        _ => Limits { exhaustive: 2, singles: 0, random: 1, points: 3, seed: 6 },
    };
    let medium = image.medium();
    let decided = RefCell::new(None);
    let report = for_each_crash(
        &medium,
        |medium| {
            let store = Store::open(Arc::new(medium.handle()), process(3)).unwrap();
            recover_all(&store).unwrap();
            decided.replace(Some(snapshot(&store).unwrap()));
            medium.mark(1);
        },
        |inner| {
            judged.set(judged.get() + 1);
            let decided = decided.borrow();
            let states = if inner.marks().is_empty() { states } else { decided.as_slice() };
            judge_medium(&inner.medium(), states)?;
            if depth > 1 { recover(inner, states, depth - 1, judged) } else { Ok(()) }
        },
        &limits,
    );
    report.map(drop).map_err(|failure| format!("{} deep: {failure}", 3 - depth))
}

#[test]
fn recovery_and_its_recovery() {
    for config in [media()[0], media()[3], media()[4]] {
        let medium: SimMedium = formatted(2 << 20, config);
        {
            let run = Scenario::begin(&medium, 1).unwrap();
            for name in ["a", "b", "c"] {
                run.store.create(name, &CreateOptions { size: 24_000, ..CreateOptions::default() }).unwrap();
            }
        }
        medium.settle();
        let states = RefCell::new(Vec::new());
        let judged = Cell::new(0);
        let limits = Limits { exhaustive: 2, singles: 0, random: 1, points: 6, seed: 4 }.sparse(3);
        for_each_crash(
            &medium,
            |medium| {
                let mut run = Scenario::begin(medium, 2).unwrap();
                program(&mut run).unwrap();
                states.replace(std::mem::take(&mut run.states));
            },
            |image| recover(image, allowed(image, &states.borrow()), 2, &judged),
            &limits,
        )
        .unwrap_or_else(|failure| panic!("{config:?}: {failure}"));
        println!("recovery, {config:?}: {} images", judged.get());
    }
}
