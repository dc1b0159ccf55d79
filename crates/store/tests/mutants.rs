//! Rules of the protocol, broken on purpose, are noticed by crash tests made for them; unbroken, they pass.
//! The whole list against all layers of evidence is `pmo-evidence mutants`.

use indelible_store::error::Result;
use indelible_store::medium::Medium;
use indelible_store::store::{FormatOptions, Store};
use indelible_store::table::{CreateOptions, Key};
use indelible_store::{Mutant, with_mutant};
use indelible_testing::pool::{check_tiling, process, psync, psync_many, recover_all, snapshot};
use indelible_testing::scenario::{Scenario, crash_everywhere, formatted, judge_medium};
use indelible_testing::{BeforeRead, Fault, Hooked, Limits, OpKind, SimConfig, SimMedium, for_each_crash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);
const CONFIG: SimConfig = SimConfig {
    tear_unit: indelible_testing::TearUnit::Line,
    group_commit: true,
    discard: indelible_testing::Discard::Keep,
    seed: 0,
};
const LIMITS: Limits = Limits { exhaustive: 64, singles: 6, random: 8, points: u64::MAX, seed: 1 };

type Verdict = std::result::Result<(), String>;

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn create(store: &Arc<Store>, name: &str, how: &CreateOptions<'_>) {
    store.create(name, how).unwrap();
}

/// The check finds nothing wrong with the rule kept, and something with it broken.
fn caught(mutant: Mutant, check: impl Fn() -> Verdict) {
    check().unwrap_or_else(|error| panic!("without {mutant:?}: {error}"));
    let verdict = with_mutant(mutant, || catch_unwind(AssertUnwindSafe(&check)));
    match verdict {
        Ok(Ok(())) => panic!("{mutant:?} goes unnoticed"),
        Ok(Err(error)) => println!("{mutant:?}: {}", error.lines().next().unwrap_or_default()),
        Err(_) => println!("{mutant:?}: a check panicked"),
    }
}

fn crash(prepare: impl Fn(&Arc<Store>), program: impl Fn(&mut Scenario) -> Result<()>) -> Verdict {
    crash_on(CONFIG, prepare, program)
}

fn crash_on(
    config: SimConfig,
    prepare: impl Fn(&Arc<Store>),
    program: impl Fn(&mut Scenario) -> Result<()>,
) -> Verdict {
    let medium = formatted(2 << 20, config);
    prepare(&Scenario::begin(&medium, 1).unwrap().store);
    medium.settle();
    crash_everywhere(&medium, &LIMITS, program).map(drop).map_err(|failure| failure.to_string())
}

fn psyncs() -> Verdict {
    psyncs_on(CONFIG)
}

/// On a medium that takes batches in pieces.
fn psyncs_in_pieces() -> Verdict {
    psyncs_on(SimConfig { group_commit: false, ..CONFIG })
}

fn psyncs_on(config: SimConfig) -> Verdict {
    crash_on(
        config,
        |store| create(store, "a", &of(9000)),
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

/// In a table lane without batches: those that are there would repair what the mutant does.
fn first_table_change() -> Verdict {
    crash(|_| {}, |run| run.step(|store| store.create("a", &of(9000))).map(drop))
}

#[test]
fn apply_before_the_batch_is_durable() {
    caught(Mutant::ApplyFirst, psyncs);
}

#[test]
fn apply_before_the_batch_in_pieces_is_durable() {
    caught(Mutant::ApplyPiecesFirst, psyncs_in_pieces);
}

#[test]
fn batch_in_pieces_without_its_barrier() {
    caught(Mutant::PiecesNotDurable, psyncs_in_pieces);
}

#[test]
fn checksum_without_the_data() {
    caught(Mutant::ShortChecksum, psyncs);
}

#[test]
fn batch_of_an_earlier_lap() {
    caught(Mutant::AnyGeneration, psyncs);
}

#[test]
fn checkpoint_before_the_apply_is_durable() {
    caught(Mutant::EarlyCheckpoint, psyncs);
}

#[test]
fn what_waits_in_memory_forgotten_by_the_checkpoint() {
    caught(Mutant::ApplyForgotten, psyncs);
}

#[test]
fn what_waits_in_memory_forgotten_by_the_detach() {
    caught(Mutant::ApplyForgotten, || {
        crash(
            |store| create(store, "a", &of(9000)),
            |run| {
                let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
                run.step(|_| psync(&mut a, &[(0, &[1; 200])]))?;
                run.quiet(|_| a.detach())
            },
        )
    });
}

#[test]
fn lane_forgotten() {
    // With one lane the next writer would take, and so recover, just that one.
    caught(Mutant::LaneForgotten, || {
        let medium = formatted(2 << 20, SimConfig { group_commit: false, ..CONFIG });
        let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
        let names = ["a", "b", "c"];
        names.iter().for_each(|name| create(&store, name, &of(9000)));
        let writers = names.map(|name| {
            let mut writer = store.attach_writer(name, KEY).unwrap();
            psync(&mut writer, &[(0, &[1; 9000])]).unwrap();
            writer
        });
        let promised = snapshot(&store).unwrap();
        std::mem::forget(writers);
        judge_medium(&medium.power_cut(indelible_testing::Choice::None).medium(), &[promised]).map(drop)
    });
}

#[test]
fn table_applied_before_it_is_published() {
    caught(Mutant::TableFirst, first_table_change);
}

#[test]
fn recovery_voids_before_its_replay_is_durable() {
    caught(Mutant::EarlyVoid, || {
        let medium = formatted(1 << 20, CONFIG);
        let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
        store.create("a", &of(9000)).unwrap();
        let mut a = store.attach_writer("a", KEY).unwrap();
        psync(&mut a, &[(0, &[1; 9000])]).unwrap();
        let promised = snapshot(&store).unwrap();
        std::mem::forget(a);
        let image = medium.power_cut(indelible_testing::Choice::None).medium();
        let recover = |medium: &SimMedium| {
            let store = Store::open(Arc::new(medium.handle()), process(2)).unwrap();
            recover_all(&store).unwrap();
        };
        for_each_crash(
            &image,
            recover,
            |image| judge_medium(&image.medium(), std::slice::from_ref(&promised)).map(drop),
            &LIMITS,
        )
        .map(drop)
        .map_err(|failure| failure.to_string())
    });
}

#[test]
fn intent_ignored() {
    caught(Mutant::IntentIgnored, || {
        crash(
            |store| create(store, "a", &of(20_000)),
            |run| {
                let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
                run.step(|_| psync(&mut a, &[(0, &[1; 100])]))?;
                run.quiet(|_| a.begin_direct(16_000))?;
                run.quiet(|_| a.write_direct(4096, &[2; 5000]))?;
                run.quiet(|_| a.end_direct())?;
                run.step(|_| psync(&mut a, &[]))
            },
        )
    });
}

#[test]
fn binding_ignored() {
    caught(Mutant::BindingIgnored, || {
        crash(
            |store| ["keeps the lane", "a"].iter().for_each(|name| create(store, name, &of(5000))),
            |run| {
                let keeper = run.quiet(|store| store.attach_writer("keeps the lane", KEY))?;
                let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
                run.step(|_| psync(&mut a, &[(0, &[1; 5000])]))?;
                run.quiet(|_| a.detach())?;
                run.step(|store| store.destroy("a", KEY))?;
                // The same slot, the same space, the same lane.
                run.step(|store| store.create("b", &of(5000)))?;
                let b = run.quiet(|store| store.attach_writer("b", KEY))?;
                run.quiet(|_| b.detach())?;
                run.quiet(|_| keeper.detach())
            },
        )
    });
}

/// No write the protocol makes can put a batch where another one belongs; a misdirected one can.
#[test]
fn sequence_ignored() {
    caught(Mutant::AnySequence, || {
        let medium = formatted(1 << 20, CONFIG);
        let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
        store.create("a", &of(64)).unwrap();
        let mut a = store.attach_writer("a", KEY).unwrap();
        for value in 1..3 {
            psync(&mut a, &[(0, &[value; 64])]).unwrap();
        }
        let promised = snapshot(&store).unwrap();
        let lane = store.lanes().unwrap().into_iter().find(|lane| lane.index.is_some()).unwrap();
        let used = a.lane_use();
        let len = used.bytes / used.batches;
        let first = lane.offset + indelible_store::format::lane::BODY;
        let mut batch = vec![0; len as usize];
        medium.read(first, &mut batch).unwrap();
        medium.write(first + 2 * len, &batch).unwrap();
        std::mem::forget(a);
        judge_medium(&medium.power_cut(indelible_testing::Choice::All).medium(), &[promised]).map(drop)
    });
}

#[test]
fn superblock_before_the_table() {
    caught(Mutant::SuperblockFirst, || {
        let medium = SimMedium::new(1 << 20, CONFIG);
        let how = FormatOptions { zeroed: true, ..FormatOptions::default() };
        let format =
            |medium: &SimMedium| drop(Store::format(Arc::new(medium.handle()), process(1), &how).unwrap());
        let judge =
            |image: &indelible_testing::CrashImage| match Store::open(Arc::new(image.medium()), process(2)) {
                Ok(store) => check_tiling(&store),
                Err(_) => Ok(()),
            };
        for_each_crash(&medium, format, judge, &LIMITS).map(drop).map_err(|failure| failure.to_string())
    });
}

#[test]
fn destroyed_space_not_zeroed() {
    caught(Mutant::NoZeroing, || {
        crash(
            |store| create(store, "a", &of(9000)),
            |run| {
                let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
                run.step(|_| psync(&mut a, &[(0, &[1; 9000])]))?;
                run.quiet(|_| a.detach())?;
                run.step(|store| store.destroy("a", KEY))
            },
        )
    });
}

#[test]
fn visible_taken_for_durable() {
    caught(Mutant::VisibleIsDurable, || {
        let medium = formatted(1 << 20, CONFIG);
        let survivor = Store::open(Arc::new(medium.handle()), process(2)).unwrap();
        survivor.create("a", &of(5000)).unwrap();
        survivor.create("b", &of(5000)).unwrap();
        medium.settle();
        let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
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
    });
}

#[test]
fn progress_forgotten() {
    caught(Mutant::ProgressForgotten, || {
        let medium = formatted(1 << 20, CONFIG);
        let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
        store.create("a", &of(5000)).unwrap();
        let mut a = store.attach_writer("a", KEY).unwrap();
        psync(&mut a, &[(0, &[1; 5000])]).unwrap();
        a.checkpoint().unwrap();
        std::mem::forget(a);
        let image = medium.power_cut(indelible_testing::Choice::None).medium();
        let store = Store::open(Arc::new(image), process(2)).unwrap();
        let a = store.attach_writer("a", KEY).unwrap();
        if (a.psyncs(), a.published() >= 5000) == (1, true) { Ok(()) } else { Err("progress is lost".into()) }
    });
}

#[test]
fn nodes_kept_although_another_process_changed_them() {
    caught(Mutant::NodesKept, || {
        let medium = formatted(8 << 20, CONFIG);
        let stores = [1, 2].map(|pid| Store::open(Arc::new(medium.handle()), process(pid)).unwrap());
        let mut names: Vec<String> = Vec::new();
        for round in 0..600_usize {
            let (own, other) = (&stores[round % 2], &stores[(round + 1) % 2]);
            let name = format!("object {round}");
            own.create(&name, &of(1)).map_err(|error| error.to_string())?;
            names.push(name);
            if round % 3 == 2 {
                let gone = names.swap_remove(round % names.len());
                other.destroy(&gone, KEY).map_err(|error| error.to_string())?;
                if own.find(&gone).is_ok() {
                    return Err(format!("{gone} is destroyed, and found"));
                }
            }
            for name in names.iter().rev().take(5) {
                other.find(name).map_err(|error| format!("{name}: {error}"))?;
            }
        }
        let store = Store::open(Arc::new(medium.handle()), process(3)).unwrap();
        check_tiling(&store)
    });
}

/// Before each of its reads another process changes the table.
#[test]
fn read_unchecked() {
    caught(Mutant::ReadUnchecked, || {
        for point in 0.. {
            let medium = formatted(2 << 20, CONFIG);
            let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
            create(&store, "a", &of(1));
            let hooked = Hooked::new(Arc::new(medium.read_only_handle()), BeforeRead::default());
            let reader = Store::open(hooked.clone(), process(2)).unwrap();
            hooked.plan(point, move || {
                store.destroy("a", KEY).unwrap();
                create(&store, "b", &of(300_000));
            });
            let found = reader.list((0, 0), 10).map_err(|error| format!("before read {point}: {error}"))?;
            if found.objects.len() != 1 {
                return Err(format!("before read {point}: {} objects", found.objects.len()));
            }
            if hooked.is_due() {
                break;
            }
        }
        Ok(())
    });
}

/// A copy that was made without a lock is no psync's state once a writer had the object.
#[test]
fn read_unchecked_object() {
    caught(Mutant::ReadUnchecked, || {
        let medium = formatted(2 << 20, CONFIG);
        let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
        create(&store, "a", &of(10_000));
        let reader = Store::open(Arc::new(medium.read_only_handle()), process(2)).unwrap();
        let reading = reader.attach_reader("a", KEY).unwrap();
        let mut writer = store.attach_writer("a", KEY).unwrap();
        psync(&mut writer, &[(0, b"new"), (9000, b"new")]).unwrap();
        writer.detach().unwrap();
        match reading.is_current() {
            Ok(false) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}
