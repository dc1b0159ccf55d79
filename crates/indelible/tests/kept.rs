use crate::support;
use indelible::{CreateOptions, ErrorKind, MediumKind, Object, Pool, PoolOptions, Tracking};
use indelible_testing::{Fault, OpKind, Seeded, SimConfig, SimMedium};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const PAGE: usize = 4096;

fn disk() -> (SimMedium, Pool) {
    disk_tracking(Tracking::Auto)
}

fn disk_tracking(how: Tracking) -> (SimMedium, Pool) {
    let medium = SimMedium::new(16 << 20, SimConfig { disk: true, ..SimConfig::default() });
    let pool = PoolOptions::new().tracking(how).on_device(Arc::new(medium.handle()), true).unwrap();
    (medium, pool)
}

fn store(object: &mut Object, pages: impl Iterator<Item = usize>, value: u8) {
    pages.for_each(|page| object.range_mut(page * PAGE..page * PAGE + 10).fill(value));
}

fn holds(object: &Object, pages: impl Iterator<Item = usize>, value: u8) -> bool {
    pages.into_iter().all(|page| object.as_slice()[page * PAGE..page * PAGE + 10] == [value; 10])
}

#[test]
fn hot_pages_are_read_and_written_once() {
    let (medium, pool) = disk();
    pool.create("a", 64 * PAGE as u64).unwrap();
    let mut a = pool.attach("a").unwrap();
    store(&mut a, 0..64, 1);
    a.psync().unwrap();
    store(&mut a, 0..40, 2);
    a.psync().unwrap();
    let (read, stats) = (medium.count(OpKind::Read), a.stats());
    assert_eq!(stats.pages_kept, 64);
    let written = medium.count(OpKind::Write);
    for value in 3..100 {
        store(&mut a, 0..40, value);
        a.psync().unwrap();
    }
    assert_eq!(medium.count(OpKind::Read), read + 97);
    assert_eq!(medium.count(OpKind::Write), written);
    assert_eq!(a.stats().pages_read, stats.pages_read);
    a.checkpoint().unwrap();
    // 64 neighbouring pages in four pieces, a progress line, the second header.
    assert_eq!(medium.count(OpKind::Write), written + 6);
    drop(a);
    assert!(holds(&pool.attach("a").unwrap(), 0..40, 99));
}

#[test]
fn cached_pages_and_read_ones_are_compared_alike() {
    for tracking in [Tracking::Auto, Tracking::Explicit] {
        let (_medium, pool) = disk_tracking(tracking);
        pool.create("a", 100 * PAGE as u64).unwrap();
        let (mut random, mut model) = (Seeded::new(21), vec![0; 100 * PAGE]);
        let found = pool.store().find("a").unwrap();
        let (mut kept, mut read) = (0, 0);
        for round in 0..60 {
            let mut a = pool.attach("a").unwrap();
            for _ in 0..3 {
                for _ in 0..random.usize(1..5) {
                    let first = random.usize(0..100);
                    for page in first..(first + random.usize(1..40)).min(100) {
                        let most = if random.u8(0..4) == 0 { 2000 } else { 96 };
                        let (at, len) = (page * PAGE + random.usize(0..2096), random.usize(0..most));
                        let value = random.u8(0..3);
                        a.range_mut(at..at + len).fill(value);
                        model[at..at + len].fill(value);
                    }
                }
                a.psync().unwrap();
                let mut bytes = vec![9; model.len()];
                pool.store().read_object(&found, 0, &mut bytes).unwrap();
                assert!(bytes == model, "{tracking:?}, round {round}");
            }
            (kept, read) = (kept + a.stats().pages_kept, read + a.stats().pages_read);
        }
        assert!(kept > 1_000 && read > 500, "{tracking:?}: {kept} kept, {read} read");
    }
}

#[test]
fn a_failure_to_apply_loses_nothing() {
    for fault in [Fault::Io, Fault::Short, Fault::NoSpace] {
        for nth in 0..8 {
            for checkpoint in [false, true] {
                let at = format!("{fault:?} of write {nth}, checkpoint {checkpoint}");
                let (medium, pool) = disk();
                pool.create("a", 64 * PAGE as u64).unwrap();
                let mut a = pool.attach("a").unwrap();
                for value in 1..4 {
                    store(&mut a, (0..64).step_by(9), value);
                    a.psync().unwrap();
                }
                medium.fail_at(OpKind::Write, nth, fault);
                let failed = checkpoint && a.checkpoint().is_err();
                if failed {
                    store(&mut a, 0..1, 9);
                    assert_eq!(a.psync().unwrap_err().kind(), ErrorKind::Poisoned, "{at}");
                }
                let _ = a.detach();
                medium.clear_faults();
                let a = pool.attach("a").unwrap_or_else(|error| panic!("{at}: {error}"));
                assert!(holds(&a, (0..64).step_by(9), 3), "{at}");
            }
        }
    }
}

/// Pending lines stay in the lane after a failed detach; another object keeps the lane in use, so
/// it does not count as settled.
#[test]
fn a_detach_without_space_is_recovered_though_its_lane_lives_on() {
    let (medium, pool) = disk();
    pool.create("a", 64 * PAGE as u64).unwrap();
    pool.create("b", PAGE as u64).unwrap();
    let b = pool.attach("b").unwrap();
    let mut a = pool.attach("a").unwrap();
    for value in 1..4 {
        store(&mut a, 0..3, value);
        a.psync().unwrap();
    }
    medium.fail_at(OpKind::Write, 0, Fault::NoSpace);
    a.detach().unwrap_err();
    medium.clear_faults();
    assert_eq!(pool.attach("a").unwrap_err().kind(), ErrorKind::Poisoned);
    drop(b);
    assert!(holds(&pool.attach("a").unwrap(), 0..3, 3));
}

#[test]
fn pending_lines_survive_growth_and_the_end_of_the_process() {
    let (medium, pool) = disk();
    pool.create("a", 8 * PAGE as u64).unwrap();
    pool.create("wall", 1).unwrap();
    let mut a = pool.attach("a").unwrap();
    store(&mut a, 0..8, 1);
    a.psync().unwrap();
    a.grow(16 * PAGE as u64).unwrap();
    assert!(holds(&a, 0..8, 1));
    store(&mut a, 4..16, 2);
    a.psync().unwrap();
    let medium = medium.power_cut(indelible_testing::Choice::None).medium();
    std::mem::forget(a);
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
    let mut bytes = vec![0; 16 * PAGE];
    let found = pool.store().find("a").unwrap();
    drop(pool.store().attach_writer("a", indelible_store::table::Key::default()).unwrap());
    pool.store().read_object(&found, 0, &mut bytes).unwrap();
    assert!((0..4).all(|page| bytes[page * PAGE] == 1) && (4..16).all(|page| bytes[page * PAGE] == 2));
}

#[test]
fn a_renewed_mapping_shows_what_waited_in_memory() {
    let world = support::World::new(support::Ground::Memory, Tracking::WpAsync, false);
    if !Tracking::WpAsync.is_available() {
        indelible_testing::not_tested(format_args!("mappings are renewed on the rung wp-async alone"));
        return;
    }
    const SIZE: u64 = 4 << 30;
    let pool = PoolOptions::new().medium(MediumKind::File).format(world.path(), 8 << 30).unwrap();
    pool.create_with("a", &CreateOptions::new(SIZE).sparse(true)).unwrap();
    let mut a = pool.attach("a").unwrap();
    let spread = |nth: usize| nth * 3001 % (SIZE as usize / PAGE);
    let first = a.as_ptr() as usize / PAGE + spread(0);
    let mut renewed = false;
    for round in 0..300 {
        store(&mut a, [spread(round)].into_iter(), round as u8 | 1);
        a.psync().unwrap();
        renewed |= !is_present(first);
    }
    for round in 0..100_000_usize {
        if renewed {
            break;
        }
        store(&mut a, [7].into_iter(), round as u8);
        a.psync().unwrap();
        renewed = !is_present(first);
    }
    assert!(renewed, "300 page tables and 100,000 psyncs were not worth a renewal");
    for round in (0..300).filter(|round| spread(*round) != 7) {
        assert!(holds(&a, [spread(round)].into_iter(), round as u8 | 1), "round {round}");
    }
}

/// Once a snapshot has the mapped extent, later psynced pages are elsewhere: a renewal would show
/// the snapshot's bytes.
#[test]
fn a_mapping_of_what_became_a_base_is_not_renewed() {
    let world = support::World::new(support::Ground::Memory, Tracking::WpAsync, false);
    if !Tracking::WpAsync.is_available() {
        indelible_testing::not_tested(format_args!("mappings are renewed on the rung wp-async alone"));
        return;
    }
    const SIZE: u64 = 4 << 30;
    let pool = PoolOptions::new().medium(MediumKind::File).format(world.path(), 16 << 30).unwrap();
    pool.create_with("a", &CreateOptions::new(SIZE).sparse(true)).unwrap();
    let mut a = pool.attach("a").unwrap();
    let spread = |nth: usize| nth * 3001 % (SIZE as usize / PAGE);
    let first = a.as_ptr() as usize / PAGE + spread(0);
    let fill = |a: &mut Object, plus: usize| {
        for round in 0..300 {
            store(a, [spread(round)].into_iter(), (round + plus) as u8 | 1);
            a.psync().unwrap();
        }
    };
    fill(&mut a, 0);
    let mut psyncs = 0;
    while is_present(first) {
        store(&mut a, [7].into_iter(), psyncs as u8);
        a.psync().unwrap();
        psyncs += 1;
        assert!(psyncs < 100_000, "300 page tables and 100,000 psyncs were not worth a renewal");
    }
    pool.snapshot("a", "s", b"").unwrap();
    fill(&mut a, 64);
    for round in 0..2 * psyncs + 100 {
        store(&mut a, [7].into_iter(), round as u8);
        a.psync().unwrap();
    }
    for round in (0..300).filter(|round| spread(*round) != 7) {
        assert!(holds(&a, [spread(round)].into_iter(), (round + 64) as u8 | 1), "round {round}");
    }
    a.detach().unwrap();
    let kept = pool.attach_read("s").unwrap();
    for round in (0..300).filter(|round| spread(*round) != 7) {
        assert_eq!(kept.as_slice()[spread(round) * PAGE], round as u8 | 1, "the snapshot, round {round}");
    }
}

fn is_present(page: usize) -> bool {
    let mut entry = [0; 8];
    let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
    pagemap.read_exact_at(&mut entry, page as u64 * 8).unwrap();
    u64::from_le_bytes(entry) >> 63 == 1
}
