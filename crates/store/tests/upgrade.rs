//! Pools of format 1, made by release 0.1, are upgraded from any state, with interruptions.

use indelible_store::error::{Part, StoreError};
use indelible_store::format::entry::SIZE;
use indelible_store::format::superblock::SLOTS;
use indelible_store::format::{DATA, TABLE_LANE, VERSION};
use indelible_store::medium::{Device, LockKey, LockMode, Locks};
use indelible_store::store::{Finding, Severity, Store, Upgraded};
use indelible_store::table::Key;
use indelible_testing::hostile::pool::{Pool, old_pool, old_pools};
use indelible_testing::pool::{process, psync};
use indelible_testing::{
    Choice, Fault, Limits, OpKind, Seeded, SimConfig, SimMedium, TearUnit, for_each_crash,
};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

fn medium(pool: &Pool, config: SimConfig) -> SimMedium {
    SimMedium::from_bytes(&pool.image, config)
}

fn device(medium: &SimMedium) -> Arc<dyn Device> {
    Arc::new(medium.handle())
}

fn upgrade(medium: &SimMedium) -> Result<Upgraded, StoreError> {
    Store::upgrade(&device(medium), process(8), false, &mut |_, _| {})
}

fn judge(medium: &SimMedium, pool: &Pool) -> Result<(), String> {
    let text = |error: StoreError| error.to_string();
    let report = Store::check(device(medium), &mut |_, _| {}).map_err(text)?;
    let known = |finding: &&Finding| finding.severity == Severity::Note || finding.part == Part::Superblock;
    let bad = report.findings.iter().find(|finding| !known(finding));
    if let Some(finding) = bad {
        return Err(format!("check: {finding}"));
    }
    let store = Store::open(device(medium), process(9)).map_err(text)?;
    pool.expect_in(&store)?;
    for name in pool.history.keys().take(2) {
        let mut writer = store.attach_writer(name, KEY).map_err(text)?;
        psync(&mut writer, &[(0, &[7])]).map_err(text)?;
        writer.detach().map_err(text)?;
    }
    Ok(())
}

#[test]
fn pools_of_release_0_1_hold_what_they_held() {
    for pool in old_pools() {
        let medium = medium(&pool, SimConfig::default());
        let refused = Store::open(device(&medium), process(1)).err().map(|error| error.to_string());
        let text = format!("the pool has format version 1, this software uses version {VERSION}");
        assert_eq!(refused, Some(text), "{}", pool.name);
        let upgraded = upgrade(&medium).unwrap_or_else(|error| panic!("{}: {error}", pool.name));
        let hidden = u64::from(pool.name == "resizing");
        assert_eq!(
            (upgraded.from, upgraded.objects),
            (1, pool.history.len() as u64 + hidden),
            "{}",
            pool.name
        );
        let dead = match pool.name {
            "waiting" | "torn" => 3,
            "full" => 1,
            _ => 0,
        };
        assert_eq!(upgraded.recovered, dead, "{}", pool.name);
        judge(&medium, &pool).unwrap_or_else(|wrong| panic!("{}: {wrong}", pool.name));
        let again = upgrade(&medium).unwrap();
        assert_eq!((again.from, again.objects), (VERSION, 0), "{}", pool.name);
    }
}

#[test]
fn the_power_may_fail_at_any_time() {
    let (mut old, mut begun, mut done) = (0, 0, 0);
    for (disk, tear_unit) in [(true, TearUnit::Sector), (false, TearUnit::Word)] {
        for pool in old_pools().iter().filter(|pool| pool.name != "many") {
            let config = SimConfig { disk, tear_unit, ..SimConfig::default() };
            let medium = medium(pool, config);
            let limits = Limits { exhaustive: 4, singles: 4, random: 3, points: 60, seed: 3 };
            let record = |medium: &SimMedium| {
                upgrade(medium).unwrap();
            };
            let mut end = |image: &SimMedium| {
                match Store::open(device(image), process(1)) {
                    Err(StoreError::Version { found: 1, .. }) => old += 1,
                    Err(StoreError::Upgrading) => begun += 1,
                    Ok(_) => done += 1,
                    Err(error) => return Err(error.to_string()),
                }
                upgrade(image).map_err(|error| error.to_string())?;
                judge(image, pool)
            };
            for_each_crash(&medium, record, |image| end(&image.medium()), &limits)
                .unwrap_or_else(|failure| panic!("{}, {config:?}: {failure}", pool.name));
        }
    }
    println!("{old} of format 1, {begun} begun, {done} done");
    assert!(old > 100 && begun > 100 && done > 10);
}

#[test]
fn the_power_may_fail_after_an_operation_that_failed() {
    let pools = old_pools();
    for (name, disk, tear_unit) in [("waiting", true, TearUnit::Sector), ("settled", false, TearUnit::Word)] {
        let pool = pools.iter().find(|pool| pool.name == name).unwrap();
        for kind in [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier] {
            for fault in [Fault::Io, Fault::Short, Fault::After] {
                for nth in 0.. {
                    let medium = medium(pool, SimConfig { disk, tear_unit, ..SimConfig::default() });
                    let over = std::cell::Cell::new(false);
                    let record = |medium: &SimMedium| {
                        medium.fail_at(kind, nth, fault);
                        let failed = upgrade(medium).is_err();
                        over.set(!failed);
                        medium.clear_faults();
                        upgrade(medium).unwrap();
                    };
                    let limits = Limits { exhaustive: 3, singles: 3, random: 1, points: 12, seed: nth };
                    for_each_crash(&medium, record, |image| end(&image.medium(), pool), &limits)
                        .unwrap_or_else(|failure| panic!("{name}, {kind:?} {nth} {fault:?}: {failure}"));
                    if over.get() {
                        break;
                    }
                }
            }
        }
    }
}

const CHANGES: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Reserve];
const FAULTS: [Fault; 5] = [Fault::Io, Fault::Short, Fault::After, Fault::NoSpace, Fault::KillLate];

fn end(medium: &SimMedium, pool: &Pool) -> Result<(), String> {
    upgrade(medium).map_err(|error| error.to_string())?;
    judge(medium, pool)
}

#[test]
fn every_operation_may_fail() {
    let mut failed = 0;
    for pool in old_pools().iter().filter(|pool| ["waiting", "settled", "full"].contains(&pool.name)) {
        for kind in CHANGES {
            for fault in FAULTS {
                for nth in 0.. {
                    let medium = medium(pool, SimConfig::default());
                    medium.fail_at(kind, nth, fault);
                    let result = upgrade(&medium);
                    if medium.faults_met() == 0 {
                        break;
                    }
                    medium.clear_faults();
                    failed += u64::from(result.is_err());
                    let left = medium.power_cut(Choice::Random(nth)).medium();
                    end(&left, pool)
                        .unwrap_or_else(|wrong| panic!("{}: {kind:?} {nth} {fault:?}: {wrong}", pool.name));
                }
            }
        }
    }
    assert!(failed > 50, "{failed}");
}

#[test]
fn upgrades_may_fail_one_after_the_other() {
    let pools = old_pools();
    let (mut once, mut twice) = (0, 0);
    for seed in 0..400 {
        let mut rng = Seeded::new(seed);
        let pool = &pools[[1, 2, 3, 5, 6][rng.usize(..5)]];
        let mut medium = medium(pool, SimConfig { disk: rng.bool(), seed, ..SimConfig::default() });
        let mut failures = 0;
        for _ in 0..2 {
            let (kind, fault) = (CHANGES[rng.usize(..4)], FAULTS[rng.usize(..5)]);
            medium.fail_at(kind, rng.u64(..8), fault);
            failures += u64::from(upgrade(&medium).is_err());
            medium.clear_faults();
            if rng.u8(..3) == 0 {
                medium = medium.power_cut(Choice::Random(rng.u64(..))).medium();
            }
        }
        (once, twice) = (once + u64::from(failures == 1), twice + u64::from(failures == 2));
        let left = medium.power_cut(Choice::Random(seed)).medium();
        end(&left, pool).unwrap_or_else(|wrong| panic!("seed {seed}, {}: {wrong}", pool.name));
    }
    println!("{once} failed once, {twice} twice");
    assert!(once > 50 && twice > 20);
}

#[test]
fn a_pool_in_use_is_left_alone() {
    let pool = &old_pool("waiting");
    let medium = medium(pool, SimConfig::default());
    let before = medium.to_bytes();
    let entry =
        before.chunks(SIZE as usize).position(|slot| slot.starts_with(b"PMOE")).unwrap() as u64 * SIZE;
    for key in [LockKey::Lane(0), LockKey::Object(entry)] {
        let user = medium.handle();
        assert!(user.try_lock(key, LockMode::Shared).unwrap());
        assert!(matches!(upgrade(&medium), Err(StoreError::Held { .. })), "{key:?}");
        user.unlock(key);
    }
    assert!(medium.to_bytes() == before);
    upgrade(&medium).unwrap();
}

#[test]
fn a_try_changes_nothing() {
    let mut begun = 0;
    for pool in old_pools() {
        for writes in 0..12 {
            let medium = medium(&pool, SimConfig::default());
            medium.fail_at(OpKind::WriteDurable, writes, Fault::KillLate);
            let _ = upgrade(&medium);
            let left = medium.power_cut(Choice::All).medium();
            begun += u32::from(matches!(Store::open(device(&left), process(1)), Err(StoreError::Upgrading)));
            let before = left.to_bytes();
            Store::upgrade(&device(&left), process(8), true, &mut |_, _| {})
                .unwrap_or_else(|error| panic!("{}, after {writes}: {error}", pool.name));
            assert!(left.to_bytes() == before, "{}, after {writes}", pool.name);
        }
        let medium = medium(&pool, SimConfig::default());
        let tried = Store::upgrade(&device(&medium), process(8), true, &mut |_, _| {}).unwrap();
        assert!(tried.objects >= pool.history.len() as u64);
        assert!(medium.to_bytes()[..] == pool.image[..], "{}", pool.name);
    }
    assert!(begun > 5, "{begun}");
}

#[test]
fn a_full_medium_is_said_to_be_full() {
    let mut full = 0;
    for pool in old_pools() {
        for nth in 0.. {
            let medium = medium(&pool, SimConfig::default());
            medium.fail_at(OpKind::Reserve, nth, Fault::NoSpace);
            match upgrade(&medium) {
                Ok(_) => break,
                Err(StoreError::NoSpace) => full += 1,
                Err(error) => panic!("{}: {error}", pool.name),
            }
            medium.clear_faults();
            end(&medium, &pool).unwrap_or_else(|wrong| panic!("{}: {wrong}", pool.name));
        }
    }
    assert!(full > 20, "{full}");
}

#[test]
fn damage_is_refused_and_a_wrong_bit_put_right() {
    let pool = &old_pool("waiting");
    let sound = medium(pool, SimConfig::default()).to_bytes();
    let batches = |from: u64| -> Vec<u64> {
        let lines = (from..sound.len() as u64).step_by(64);
        lines.filter(|at| sound[*at as usize..].starts_with(b"BTCH")).collect()
    };
    let (table, writers) = (batches(TABLE_LANE), batches(DATA));
    assert!(table.len() > writers.len() + 2 && writers.len() > 4);
    for ranges in [vec![table[0] + 70], vec![writers[0] + 70], vec![SLOTS[0] + 40, SLOTS[1] + 40]] {
        let damaged = medium(pool, SimConfig::default());
        ranges.iter().for_each(|at| damaged.scribble(*at..at + 8, 3));
        let before = damaged.to_bytes();
        let error = upgrade(&damaged).unwrap_err();
        let (sound, whole) =
            (matches!(error, StoreError::NotSound { .. }), matches!(error, StoreError::Damaged { .. }));
        assert!(sound || whole || matches!(error, StoreError::BatchDamaged { .. }), "{ranges:?}: {error}");
        assert!(damaged.to_bytes() == before, "{ranges:?}");
    }
    let one = medium(pool, SimConfig::default());
    one.scribble(SLOTS[0] + 40..SLOTS[0] + 48, 3);
    upgrade(&one).unwrap();
    judge(&one, pool).unwrap();
    for (nth, at) in writers.iter().enumerate() {
        for byte in [0, 9, 17, 33, 53, 57, 64, 70] {
            let damaged = medium(pool, SimConfig::default());
            damaged.flip(at + byte, nth as u32 % 8);
            upgrade(&damaged).unwrap_or_else(|error| panic!("batch {nth}, byte {byte}: {error}"));
            judge(&damaged, pool).unwrap_or_else(|wrong| panic!("batch {nth}, byte {byte}: {wrong}"));
        }
    }
}
