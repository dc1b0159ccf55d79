//! Two processes on one pool: one dies at any of its operations while the other goes on (S0.12,
//! S0.26).

use indelible_store::error::{Result, StoreError};
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Snapshot, check_tiling, process, psync, psync_many, recover_all, snapshot};
use indelible_testing::scenario::{Scenario, formatted, judge_medium, media};
use indelible_testing::{Fault, Limits, OpKind, SimMedium};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn program(run: &mut Scenario) -> Result<()> {
    let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
    let mut b = run.quiet(|store| store.attach_writer("b", KEY))?;
    run.step(|_| psync(&mut a, &[(0, &[1; 3000]), (9000, &[1])]))?;
    run.step(|_| psync_many(&mut [(&mut a, &[(0, &[2; 64])]), (&mut b, &[(0, &[2; 64])])]))?;
    run.step(|store| store.create("c", &of(9000)))?;
    run.step(|_| psync_many(&mut [(&mut a, &[(64, &[3; 200])]), (&mut b, &[(64, &[3; 200])])]))?;
    run.quiet(|_| a.checkpoint())?;
    run.step(|_| psync(&mut b, &[(128, &[4; 300])]))?;
    run.step(|store| store.rename("c", "d", KEY))?;
    run.step(|_| a.grow(20_000))?;
    run.step(|_| psync(&mut a, &[(19_000, &[5; 999])]))?;
    run.quiet(|_| b.detach())?;
    run.step(|store| store.resize("b", KEY, 30_000))?;
    run.step(|store| store.destroy("d", KEY))?;
    run.quiet(|_| a.detach())
}

struct Death {
    medium: SimMedium,
    states: Vec<Snapshot>,
    survivor: Arc<Store>,
    killed: bool,
}

fn die(config: indelible_testing::SimConfig, kind: OpKind, nth: u64, how: Fault) -> Death {
    let medium = formatted(2 << 20, config);
    let survivor = Store::open(Arc::new(medium.handle()), process(3)).unwrap();
    for name in ["a", "wall", "b", "mine"] {
        survivor.create(name, &of(10_000)).unwrap();
    }
    medium.settle();
    let mut run = Scenario::begin(&medium, 2).unwrap();
    medium.fail_at(kind, nth, how);
    let result = program(&mut run);
    medium.clear_faults();
    if let Err(error) = &result {
        assert!(error.to_string().contains("killed"), "{kind:?} {nth}: {error}");
    }
    Death { states: std::mem::take(&mut run.states), medium, survivor, killed: result.is_err() }
}

fn sweep(config: indelible_testing::SimConfig, mut visit: impl FnMut(OpKind, u64, Death)) -> u64 {
    let mut deaths = 0;
    for kind in
        [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero, OpKind::Reserve, OpKind::Discard]
    {
        for nth in 0.. {
            let death = die(config, kind, nth, Fault::Kill);
            let killed = death.killed;
            visit(kind, nth, death);
            if !killed {
                break;
            }
            deaths += 1;
        }
    }
    deaths
}

fn whole(config: indelible_testing::SimConfig) -> Vec<Vec<u8>> {
    let death = die(config, OpKind::Verify, 1 << 60, Fault::Kill);
    death.states.iter().map(digest).collect()
}

fn digest(state: &Snapshot) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, (_, _, bytes)) in state.iter().filter(|(name, _)| *name != "mine") {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    out
}

// S0.11 S0.12 S0.26
#[test]
fn the_survivor_recovers_what_the_dead_one_had() {
    for config in media() {
        let states = whole(config);
        let deaths = sweep(config, |kind, nth, death| {
            let at = format!("{config:?}, {kind:?} {nth}");
            let done = death.states.len() - 1;
            let mut mine = death.survivor.attach_writer("mine", KEY).unwrap_or_else(|e| panic!("{at}: {e}"));
            psync(&mut mine, &[(0, &[1; 5000])]).unwrap();
            recover_all_but(&death.survivor, "mine").unwrap_or_else(|e| panic!("{at}: {e}"));
            psync(&mut mine, &[(0, &[2; 5000])]).unwrap();
            let found = snapshot(&death.survivor).unwrap();
            assert!(found["mine"].2[..5000].iter().all(|byte| *byte == 2), "{at}");
            let allowed = &states[done..(done + 2).min(states.len())];
            assert!(allowed.contains(&digest(&found)), "{at}: not in step {done} or the next");
            check_tiling(&death.survivor).unwrap_or_else(|e| panic!("{at}: {e}"));
            death.survivor.create("new", &of(100)).unwrap();
            let promised = snapshot(&death.survivor).unwrap();
            let images = [indelible_testing::Choice::None, indelible_testing::Choice::Random(nth)];
            for choice in images {
                let image = death.medium.power_cut(choice.clone());
                judge_medium(&image.medium(), std::slice::from_ref(&promised))
                    .unwrap_or_else(|e| panic!("{at}, {choice:?}: {e}"));
            }
        });
        println!("deaths, {config:?}: {deaths}");
    }
}

fn recover_all_but(store: &Arc<Store>, name: &str) -> Result<()> {
    for object in indelible_testing::pool::objects(store)? {
        if object.entry.name() != name {
            store.attach_writer(&object.entry.name(), KEY)?.detach()?;
        }
    }
    Ok(())
}

#[test]
fn visible_changes_are_made_durable_before_others_build_on_them() {
    let limits = Limits { exhaustive: 8, singles: 3, random: 3, points: 24, seed: 11 };
    for config in media() {
        let states = whole(config);
        let mut images = 0;
        for nth in 0.. {
            let death = die(config, OpKind::WriteDurable, nth, Fault::KillLate);
            if !death.killed {
                break;
            }
            let done = death.states.len() - 1;
            let allowed = &states[done..(done + 2).min(states.len())];
            let medium = death.medium.handle();
            let survivor = death.survivor.clone();
            // `forget_log` keeps pending writes undecided.
            let report = indelible_testing::for_each_crash(
                &medium,
                |medium| {
                    recover_all(&survivor).unwrap();
                    survivor.create("new", &of(100)).unwrap();
                    medium.mark(1);
                },
                |image| {
                    let store =
                        Store::open(Arc::new(image.medium()), process(4)).map_err(|e| e.to_string())?;
                    recover_all(&store).map_err(|e| e.to_string())?;
                    let mut found = snapshot(&store).map_err(|e| e.to_string())?;
                    let new = found.remove("new");
                    if image.last_mark() == Some(1) && new.is_none() {
                        return Err("what the survivor created is gone".into());
                    }
                    if !allowed.contains(&digest(&found)) {
                        return Err(format!("neither step {done} nor the next"));
                    }
                    check_tiling(&store)
                },
                &limits,
            )
            .unwrap_or_else(|failure| panic!("{config:?}, durable write {nth}: {failure}"));
            images += report.distinct;
        }
        println!("visible, {config:?}: {images} images");
    }
}

/// S0.11
#[test]
fn a_live_writer_is_never_recovered() {
    let medium = formatted(2 << 20, media()[0]);
    let one = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
    let two = Store::open(Arc::new(medium.handle()), process(2)).unwrap();
    one.create("a", &of(100)).unwrap();
    one.create("b", &of(100)).unwrap();
    let mut a = one.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, b"alive")]).unwrap();
    let mut b = two.attach_writer("b", KEY).unwrap();
    psync(&mut b, &[(0, b"alive")]).unwrap();
    assert!(matches!(two.attach_writer("a", KEY), Err(StoreError::Held { .. })));
    assert!(matches!(two.attach_reader("a", KEY), Err(StoreError::Held { .. })));
    assert!(matches!(two.destroy("a", KEY), Err(StoreError::Held { .. })));
    assert!(matches!(two.rename("a", "c", KEY), Err(StoreError::Held { .. })));
    assert!(matches!(two.resize("a", KEY, 5), Err(StoreError::Held { .. })));
    psync(&mut a, &[(5, b"!")]).unwrap();
    a.detach().unwrap();
    assert_eq!(&snapshot(&two).unwrap()["a"].2[..6], b"alive!");
}
