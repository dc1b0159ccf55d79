//! One test per found defect, unless only crash enumeration shows it.

use indelible_store::error::StoreError;
use indelible_store::lane::{Batch, BatchSource};
use indelible_store::medium::Medium;
use indelible_store::store::{Store, psync_all};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{check_tiling, contents, process, psync, psync_many, recover_all, snapshot};
use indelible_testing::scenario::{formatted, judge_medium, media};
use indelible_testing::{Choice, Fault, OpKind, SimConfig, SimMedium};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn open(medium: &SimMedium, pid: u32) -> Arc<Store> {
    Store::open(Arc::new(medium.handle()), process(pid)).unwrap()
}

fn pool(len: u64) -> (SimMedium, Arc<Store>) {
    let medium = formatted(len, SimConfig::default());
    let store = open(&medium, 1);
    (medium, store)
}

/// Progress lines belong to writers: neither a new slot page nor a former node's page may log them.
#[test]
fn the_table_never_logs_progress_lines() {
    use indelible_store::format::PAGE;
    use indelible_store::format::entry::PROGRESS;
    use indelible_store::space::TableTransaction;
    let (medium, store) = pool(1 << 20);
    let root = store.info().unwrap().root;
    medium.scribble(root.chunk_next.get()..root.chunk_end.get(), 1);
    let (seed, len) = (store.superblock().seed.get(), store.superblock().length.get());
    let mut table = TableTransaction::begin(&medium, seed, len).unwrap();
    let node = table.take_page().unwrap();
    table.give_page(node).unwrap();
    let objects: Vec<_> =
        (0..12_u8).map(|n| table.create(&format!("{n}"), [n; 16], 0, &of(1)).unwrap()).collect();
    let mut logged = Vec::new();
    table.pages().changed_runs(|offset, bytes| logged.push(offset..offset + bytes.len() as u64));
    for object in objects {
        assert_ne!(object.offset / PAGE * PAGE, node);
        let line = object.offset + PROGRESS;
        assert!(!logged.iter().any(|run| run.contains(&line)), "{:#x}", object.offset);
        assert_eq!(table.progress(&object).unwrap().psyncs.get(), 0);
    }
}

/// Processes beyond an earlier state would take it for the present.
#[test]
fn a_process_that_dies_redoing_the_table_takes_nothing_back() {
    for nth in 0..40 {
        let (medium, store) = pool(1 << 20);
        for n in 0..20 {
            store.create(&format!("{n}"), &of(1)).unwrap();
        }
        let before = snapshot(&store).unwrap();
        let dying = open(&medium, 2);
        medium.fail_at(OpKind::Write, nth, Fault::KillLate);
        let _ = dying.info();
        medium.clear_faults();
        assert_eq!(snapshot(&store).unwrap(), before, "dead in write {nth}");
        check_tiling(&store).unwrap();
    }
}

/// Other lanes' next checkpoint would succeed although their applied lines are lost.
#[test]
fn a_failed_barrier_poisons_every_lane_of_the_process() {
    let (medium, store) = pool(2 << 20);
    for name in ["a", "b", "c"] {
        store.create(name, &of(9000)).unwrap();
    }
    medium.settle();
    let mut writers = ["a", "b"].map(|name| store.attach_writer(name, KEY).unwrap());
    for writer in &mut writers {
        psync(writer, &[(0, &[1; 9000])]).unwrap();
    }
    let promised = snapshot(&store).unwrap();
    medium.fail_at(OpKind::Barrier, 0, Fault::Io);
    writers[0].checkpoint().unwrap_err();
    assert!(matches!(writers[1].checkpoint(), Err(StoreError::Poisoned)));
    for choice in [Choice::None, Choice::All, Choice::Random(1)] {
        judge_medium(&medium.power_cut(choice).medium(), std::slice::from_ref(&promised)).unwrap();
    }
    drop(writers);
    recover_all(&store).unwrap();
    assert_eq!(snapshot(&store).unwrap(), promised);
    judge_medium(&medium.power_cut(Choice::None).medium(), std::slice::from_ref(&promised)).unwrap();
}

/// The lane must not be given up as empty.
#[test]
fn a_detach_that_fails_keeps_the_lane() {
    for kind in [OpKind::Write, OpKind::Barrier, OpKind::WriteDurable] {
        let (medium, store) = pool(1 << 20);
        store.create("a", &of(9000)).unwrap();
        medium.settle();
        let mut a = store.attach_writer("a", KEY).unwrap();
        psync(&mut a, &[(0, &[1; 9000])]).unwrap();
        a.checkpoint().unwrap();
        psync(&mut a, &[(0, &[2; 9000])]).unwrap();
        let promised = snapshot(&store).unwrap();
        medium.fail_at(kind, 0, Fault::Io);
        a.detach().unwrap_err();
        medium.clear_faults();
        judge_medium(&medium.power_cut(Choice::None).medium(), std::slice::from_ref(&promised)).unwrap();
    }
}

#[test]
fn no_space_at_a_barrier_is_no_invitation_to_try_again() {
    let (medium, store) = pool(1 << 20);
    store.create("a", &of(100)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, &[1])]).unwrap();
    medium.fail_at(OpKind::Barrier, 0, Fault::NoSpace);
    let error = a.checkpoint().unwrap_err();
    assert!(!error.to_string().contains("no space left on the medium"), "{error}");
    assert!(matches!(psync(&mut a, &[(0, &[2])]), Err(StoreError::Poisoned)));
}

#[test]
fn direct_writes_outlive_a_change_of_lane_and_a_growth() {
    let (_medium, store) = pool(2 << 20);
    for name in ["b", "a", "wall"] {
        store.create(name, &of(20_000)).unwrap();
    }
    let (mut b, mut a) = (store.attach_writer("b", KEY).unwrap(), store.attach_writer("a", KEY).unwrap());
    psync(&mut a, &[(0, &[1])]).unwrap();
    a.begin_direct(8000).unwrap();
    a.write_direct(4096, &[2; 100]).unwrap();
    a.end_direct().unwrap();
    psync_many(&mut [(&mut b, &[(0, &[1])]), (&mut a, &[])]).unwrap();
    a.begin_direct(16_000).unwrap();
    a.write_direct(12_000, &[3; 100]).unwrap();
    a.end_direct().unwrap();
    assert!(a.grow(60_000).unwrap());
    psync(&mut a, &[]).unwrap();
    a.detach().unwrap();
    let bytes = contents(&store, &store.find("a").unwrap()).unwrap();
    assert_eq!((&bytes[4096..4196], &bytes[12_000..12_100]), (&[2; 100][..], &[3; 100][..]));
}

#[test]
fn a_lane_that_was_never_entered_leaves_zeros() {
    for config in media() {
        for nth in 0..4 {
            let medium = formatted(1 << 20, config);
            let store = open(&medium, 1);
            store.create("a", &of(100)).unwrap();
            let dying = open(&medium, 2);
            dying.info().unwrap();
            medium.fail_at(OpKind::WriteDurable, nth, Fault::Kill);
            let dead = dying.attach_writer("a", KEY).is_err();
            medium.clear_faults();
            if dead && nth == 0 {
                let object = store.create("b", &of(200_000)).unwrap();
                assert!(contents(&store, &object).unwrap().iter().all(|byte| *byte == 0), "{config:?}");
            }
        }
    }
}

#[test]
fn an_attach_falls_back_on_another_lane_only_if_nothing_failed() {
    let (medium, store) = pool(1 << 20);
    for name in ["a", "b"] {
        store.create(name, &of(100)).unwrap();
    }
    let _a = store.attach_writer("a", KEY).unwrap();
    medium.fail_at(OpKind::Reserve, 0, Fault::NoSpace);
    assert!(store.attach_writer("b", KEY).is_err());
    check_tiling(&store).unwrap();
    let _b = store.attach_writer("b", KEY).unwrap();
    check_tiling(&store).unwrap();
}

#[test]
fn a_sparse_object_that_moved_claims_its_space() {
    let (medium, store) = pool(2 << 20);
    store.create("a", &CreateOptions { sparse: true, ..of(4096) }).unwrap();
    store.create("wall", &of(1)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, &[1])]).unwrap();
    psync(&mut a, &[(0, &[0])]).unwrap();
    assert!(a.grow(100_000).unwrap());
    let before = medium.count(OpKind::Reserve);
    psync(&mut a, &[(0, &[2])]).unwrap();
    assert_eq!(medium.count(OpKind::Reserve), before + 1);
}

#[test]
fn a_growth_that_fails_leaves_no_copy_behind() {
    let (medium, store) = pool(2 << 20);
    for name in ["a", "wall"] {
        store.create(name, &of(100_000)).unwrap();
    }
    let mut a = store.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, &[1; 100_000])]).unwrap();
    let objects = store.info().unwrap().objects;
    for nth in 0..3 {
        medium.fail_at(OpKind::Reserve, nth, Fault::NoSpace);
        if a.grow(300_000).is_ok() {
            break;
        }
        assert_eq!(store.info().unwrap().objects, objects, "{nth}");
        medium.clear_faults();
    }
}

#[test]
fn a_lane_given_up_is_not_taken_from_the_next() {
    let medium = formatted(4 << 20, SimConfig { disk: true, ..SimConfig::default() });
    let handle = Arc::new(medium.handle());
    let store = Store::open(handle.clone(), process(1)).unwrap();
    let names = ["a", "b", "c"];
    for name in names {
        store.create(name, &of(100)).unwrap();
    }
    std::thread::scope(|scope| {
        for name in names {
            let (store, handle) = (&store, &handle);
            scope.spawn(move || {
                for round in 0..200 {
                    let mut writer = store.attach_writer(name, KEY).unwrap();
                    let lane = writer.object().entry.lane.get();
                    let key = indelible_store::medium::LockKey::Lane(lane);
                    assert!(handle.locks_held().iter().any(|(held, _)| *held == key), "round {round}");
                    psync(&mut writer, &[(0, &[round as u8])]).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_batch_of_megabytes_is_recovered() {
    let (medium, store) = pool(32 << 20);
    store.create("a", &of(3 << 20)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    let bytes: Vec<u8> = (0..3_u32 << 20).map(|n| (n / 61) as u8 | 1).collect();
    psync(&mut a, &[(0, &bytes)]).unwrap();
    psync(&mut a, &[(5, &[0; 100])]).unwrap();
    let promised = snapshot(&store).unwrap();
    std::mem::forget(a);
    judge_medium(&medium.power_cut(Choice::None).medium(), &[promised]).unwrap();
    assert!(medium.len() == 32 << 20);
}

/// One wrong bit in a progress line's ID made an object look unpsynced, so undoing a direct write
/// could zero psynced bytes.
#[test]
fn a_wrong_bit_in_a_progress_line_is_not_taken_for_a_new_object() {
    let (medium, store) = pool(2 << 20);
    store.create("a", &of(5000)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, &[7; 5000])]).unwrap();
    let slot = a.object().offset;
    a.detach().unwrap();
    medium.flip(slot + indelible_store::format::entry::PROGRESS + 3, 5);
    let Err(error) = store.attach_writer("a", KEY) else { panic!("the object was attached") };
    let part = indelible_store::error::Part::Progress;
    assert!(matches!(error, StoreError::Damaged { part: found, .. } if found == part), "{error}");
}

fn three_batches() -> (SimMedium, u64, usize) {
    let (medium, store) = pool(2 << 20);
    store.create("a", &of(5000)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    let lane = a.object().entry.lane.get();
    for round in 1..4 {
        psync(&mut a, &[(0, &[round; 64]), (u64::from(round) * 640, &[round; 64])]).unwrap();
    }
    let lane = store.lanes().unwrap().into_iter().find(|found| found.index == Some(lane)).unwrap();
    std::mem::forget(a);
    drop(store);
    medium.kill();
    let batch = 64 + 2 * 64 + 128;
    (medium, lane.offset + indelible_store::format::lane::BODY + batch, batch as usize)
}

fn is_refused(image: SimMedium) {
    let store = Store::open(Arc::new(image), process(2)).unwrap();
    let Err(error) = store.attach_writer("a", KEY) else { panic!("the object was attached") };
    assert!(matches!(error, StoreError::LaneRefused { .. }), "{error}");
}

/// The primary had later batches in place: the result would be no psync's state.
#[test]
fn a_lane_with_a_damaged_batch_is_not_redone_up_to_it() {
    let (medium, second, _) = three_batches();
    medium.scribble(second + 80..second + 90, 1);
    is_refused(medium.power_cut(Choice::All).medium());
}

/// Nothing shows that the erased batch was begun.
#[test]
fn a_lane_with_an_erased_batch_is_not_redone_up_to_it() {
    let (medium, second, len) = three_batches();
    let image = medium.power_cut(Choice::All).medium();
    image.write(second, &vec![0; len]).unwrap();
    is_refused(image);
}

/// A batch counts its lines in 32 bits.
#[test]
fn a_psync_of_more_lines_than_a_batch_counts_is_refused() {
    struct Zeros;
    impl BatchSource for Zeros {
        fn copy(&self, _target: u64, out: &mut [u8]) {
            out.fill(0);
        }
    }
    let medium = formatted(1 << 20, SimConfig { disk: false, ..SimConfig::default() });
    let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
    store.create("a", &of(5000)).unwrap();
    let mut a = store.attach_writer("a", Key::default()).unwrap();
    let mut changes = |start: u64, batch: &mut Batch| {
        batch.borrow_lines(start, 1 << 32);
        Ok(1 << 38)
    };
    let refused = psync_all(&mut [(&mut a, &mut changes)], Some(&Zeros));
    assert!(matches!(refused, Err(StoreError::BadSize { size, .. }) if size == 1 << 38), "{refused:?}");
    psync(&mut a, &[(0, &[3; 5000])]).unwrap();
    assert_eq!(contents(&store, a.object()).unwrap(), [3; 5000]);
}
