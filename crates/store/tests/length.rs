use indelible_store::error::StoreError;
use indelible_store::format::root::Root;
use indelible_store::format::superblock::SLOTS;
use indelible_store::format::{MAX_POOL, TABLE_ROOT};
use indelible_store::medium::{Medium, read_struct};
use indelible_store::store::{FormatOptions, RepairOptions, Severity, Store, Window, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{check_tiling, contents, process, psync, snapshot};
use indelible_testing::scenario::{formatted, media};
use indelible_testing::{Choice, Fault, OpKind, SimConfig, SimMedium};
use std::sync::Arc;
use zerocopy::IntoBytes;

const KEY: Key<'static> = Key(&[]);
const MIB: u64 = 1 << 20;

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn open(medium: &SimMedium, pid: u32) -> Arc<Store> {
    Store::open(Arc::new(medium.handle()), process(pid)).unwrap()
}

const LARGE: u64 = MIB / 2;

fn filled(store: &Arc<Store>, name: &str, byte: u8) -> Writer {
    store.create(name, &of(LARGE)).unwrap();
    let mut writer = store.attach_writer(name, KEY).unwrap();
    psync(&mut writer, &[(0, &vec![byte; LARGE as usize])]).unwrap();
    writer
}

fn has(store: &Arc<Store>, name: &str, byte: u8) {
    let found = contents(store, &store.find(name).unwrap()).unwrap();
    assert!(
        found.len() as u64 >= LARGE && found[..LARGE as usize].iter().all(|found| *found == byte),
        "{name}"
    );
}

fn expect_clean(medium: &SimMedium) {
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).unwrap();
    let findings = report.findings.iter().find(|finding| finding.severity > Severity::Note);
    assert!(findings.is_none(), "{findings:?}");
}

#[test]
fn processes_look_at_the_pool_while_another_makes_it_longer() {
    for config in media() {
        let medium = formatted(MIB, config);
        let late = [(); 3].map(|()| Arc::new(medium.handle()));
        open(&medium, 2).lengthen(4 * MIB).unwrap();
        let [opens, checks, repairs] = late;
        assert_eq!(Store::open(opens, process(3)).unwrap().info().unwrap().length, 4 * MIB);
        let report = Store::check(checks, &mut |_, _| ()).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let done = Store::repair(repairs, &RepairOptions::default(), &mut |_, _| ()).unwrap();
        assert!(done.is_empty(), "{done:?}");
    }
}

#[test]
fn processes_that_have_the_pool_open_use_the_new_space() {
    for config in media() {
        let medium = formatted(MIB, config);
        let (one, two, three) = (open(&medium, 2), open(&medium, 3), open(&medium, 4));
        let reading = Store::open(Arc::new(medium.read_only_handle()), process(5)).unwrap();
        two.create("small", &of(5000)).unwrap();
        let mut small = two.attach_writer("small", KEY).unwrap();
        psync(&mut small, &[(0, &[1; 5000])]).unwrap();
        assert!(matches!(two.create("a", &of(LARGE)), Err(StoreError::NoRoom { .. })));
        assert_eq!(one.lengthen(4 * MIB).unwrap(), 4 * MIB);
        let mut a = filled(&two, "a", 7);
        filled(&three, "b", 8).detach().unwrap();
        has(&reading, "b", 8);
        has(&one, "b", 8);
        assert_eq!(three.lengthen(8 * MIB).unwrap(), 8 * MIB);
        a.grow(3 * MIB).unwrap();
        psync(&mut a, &[(3 * MIB - 9, &[9; 9])]).unwrap();
        psync(&mut small, &[(4990, &[2; 10])]).unwrap();
        a.detach().unwrap();
        small.detach().unwrap();
        for store in [&one, &two, &three, &reading] {
            assert_eq!(store.info().unwrap().length, 8 * MIB);
            has(store, "a", 7);
        }
        check_tiling(&one).unwrap();
        expect_clean(&medium);
    }
}

#[test]
fn psyncs_in_the_new_space_are_recovered() {
    for config in media() {
        let medium = formatted(MIB, config);
        let survivor = open(&medium, 2);
        survivor.info().unwrap();
        let dying = Arc::new(medium.handle());
        let store = Store::open(dying.clone(), process(3)).unwrap();
        store.lengthen(4 * MIB).unwrap();
        let writer = filled(&store, "a", 7);
        dying.kill();
        drop((writer, store));
        survivor.attach_writer("a", KEY).unwrap().detach().unwrap();
        has(&survivor, "a", 7);
        expect_clean(&medium);
    }
}

#[test]
fn lengths_that_cannot_be_are_refused_and_nothing_changes() {
    let medium = SimMedium::new(2 * MIB, SimConfig::default());
    let how = FormatOptions {
        zeroed: true,
        window: Some(Window { start: 0x5900_0000_0000, len: 4 * MIB }),
        ..FormatOptions::default()
    };
    let store = Store::format(Arc::new(medium.handle()), process(1), &how).unwrap();
    let told = |len| store.lengthen(len).unwrap_err().to_string();
    assert_eq!(
        told(MIB),
        "the pool has 2097152 bytes already, more than 1048576: a pool becomes longer, not shorter"
    );
    assert_eq!(
        told(5 * MIB),
        "5242880 bytes are more than the pool can have: its address window has 4194304"
    );
    assert_eq!(
        told(u64::MAX),
        format!(
            "{} bytes are more than the pool can have: no pool has more than {MAX_POOL}",
            u64::MAX / 4096 * 4096
        )
    );
    assert_eq!(store.lengthen(2 * MIB + 4095).unwrap(), 2 * MIB);
    let before = medium.digest();
    medium.fail_at(OpKind::Extend, 0, Fault::NoSpace);
    assert!(matches!(store.lengthen(3 * MIB), Err(StoreError::NoSpace)));
    assert_eq!(medium.digest(), before);
    assert_eq!(store.lengthen(3 * MIB).unwrap(), 3 * MIB);
    let reading = Store::open(Arc::new(medium.read_only_handle()), process(2)).unwrap();
    assert!(matches!(reading.lengthen(4 * MIB), Err(StoreError::Medium(_))), "read-only");
    check_tiling(&store).unwrap();
}

#[test]
fn a_growth_that_fails_leaves_the_old_length_or_the_new_one() {
    let [memory, .., disk] = &media()[..] else { panic!("media of several kinds") };
    for config in [*memory, *disk] {
        for kind in OpKind::ALL {
            for fault in [Fault::Io, Fault::NoSpace, Fault::Kill] {
                for nth in 0.. {
                    let medium = formatted(MIB, config);
                    let store = open(&medium, 2);
                    filled_small(&store);
                    let expected = snapshot(&store).unwrap();
                    medium.fail_at(kind, nth, fault);
                    let done = store.lengthen(3 * MIB);
                    let met = medium.faults_met() > 0;
                    medium.clear_faults();
                    let image = medium.power_cut(Choice::Random(nth)).medium();
                    let store = open(&image, 3);
                    assert_eq!(snapshot(&store).unwrap(), expected, "{config:?} {kind:?} {nth} {fault:?}");
                    let len = store.info().unwrap().length;
                    assert!(len == 3 * MIB || len == MIB && done.is_err(), "{len} after {done:?}");
                    check_tiling(&store).unwrap();
                    assert_eq!(store.lengthen(4 * MIB).unwrap(), 4 * MIB);
                    filled(&store, "b", 1).detach().unwrap();
                    has(&store, "b", 1);
                    expect_clean(&image);
                    if !met {
                        break;
                    }
                }
            }
        }
    }
}

fn filled_small(store: &Arc<Store>) {
    store.create("a", &of(5000)).unwrap();
    let mut writer = store.attach_writer("a", KEY).unwrap();
    psync(&mut writer, &[(0, &[3; 5000])]).unwrap();
    writer.detach().unwrap();
}

#[test]
fn a_repair_knows_the_length() {
    for broken in [SLOTS[0], SLOTS[1], TABLE_ROOT] {
        let medium = formatted(MIB, SimConfig::default());
        let store = open(&medium, 2);
        store.lengthen(4 * MIB).unwrap();
        filled(&store, "a", 7).detach().unwrap();
        drop(store);
        medium.settle();
        medium.scribble(broken..broken + 256, 1);
        let repair = |dry_run| {
            let options = RepairOptions { dry_run, drop_damaged: false };
            Store::repair(Arc::new(medium.handle()), &options, &mut |_, _| {}).unwrap()
        };
        repair(true);
        let lost: Vec<_> = repair(false).into_iter().filter(|action| action.lost.is_some()).collect();
        assert_eq!(format!("{lost:?}"), "[]", "{broken}");
        let store = open(&medium, 3);
        has(&store, "a", 7);
        assert_eq!(store.info().unwrap().length, 4 * MIB);
        check_tiling(&store).unwrap();
        expect_clean(&medium);
        assert_eq!(store.lengthen(5 * MIB).unwrap(), 5 * MIB);
    }
}

#[test]
fn a_pool_without_a_length_in_its_root_becomes_longer() {
    for cut in [false, true] {
        let medium = formatted(MIB, SimConfig::default());
        let seed = open(&medium, 1).superblock().seed.get();
        let root: Root = read_struct(&medium, TABLE_ROOT).unwrap();
        assert_eq!(root.length.get(), MIB);
        let old = Root { length: 0.into(), ..root }.sealed(seed);
        medium.write_durable(TABLE_ROOT, old.as_bytes()).unwrap();
        medium.settle();
        expect_clean(&medium);
        let store = open(&medium, 2);
        assert_eq!(store.info().unwrap().length, MIB);
        if cut {
            // Killed after the superblocks, before the table's batch: durable writes are two
            // batches around two slots.
            medium.fail_at(OpKind::WriteDurable, 3, Fault::Kill);
            store.lengthen(9 * MIB).unwrap_err();
            let store = open(&medium, 3);
            assert_eq!(store.superblock().length.get(), 9 * MIB);
            assert_eq!(store.info().unwrap().length, MIB);
            check_tiling(&store).unwrap();
            expect_clean(&medium);
        }
        let store = open(&medium, 4);
        assert_eq!(store.lengthen(8 * MIB).unwrap(), 8 * MIB);
        assert_eq!(open(&medium, 5).superblock().length.get(), 8 * MIB);
        filled(&store, "a", 1).detach().unwrap();
        has(&store, "a", 1);
        expect_clean(&medium);
    }
}
