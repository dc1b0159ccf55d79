//! Sealed objects that are decrypted page by page, on touch and ahead (S3.3, S3.4).

use super::support::{Ground, World, everywhere, faults_in, seal_key as key};
use indelible::{CreateOptions, ErrorKind, Object, Pool, PredictionDepth, PredictionStats, Tracking};
use indelible_store::format::seal::Shape;
use indelible_testing::Seeded;
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;
const PAGES: usize = 600;

fn byte(page: usize) -> u8 {
    (page % 251) as u8 + 1
}

fn filled(world: &World) -> Pool {
    let pool = world.format();
    fill(&pool);
    pool
}

fn fill(pool: &Pool) {
    pool.create_with("a", &CreateOptions::new((PAGES * PAGE) as u64).sealed(&key(), "test")).unwrap();
    let mut a = attach(pool);
    for page in 0..PAGES - 1 {
        a.range_mut(page * PAGE..(page + 1) * PAGE).fill(byte(page));
    }
    a.psync().unwrap();
    a.detach().unwrap();
}

fn attach(pool: &Pool) -> Object {
    pool.attach_sealed("a", b"", &key()).unwrap()
}

fn flip(world: &World, pool: &Pool, page: usize) {
    let place = Shape::of(PAGES as u64).unwrap().content_page(page as u64) * PAGE as u64;
    let at = pool.store().find("a").unwrap().entry.primary_offset() + place + 100;
    if let Some(sim) = world.sim() {
        return sim.flip(at, 3);
    }
    let file = std::fs::File::options().read(true).write(true).open(world.path()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 8], at).unwrap();
}

#[test]
fn pages_are_decrypted_when_they_are_touched_and_stores_to_them_are_found() {
    everywhere(|world| {
        let pool = filled(world);
        let mut rng = Seeded::new(0x5eed);
        let mut expected: Vec<u8> = (0..PAGES * PAGE).map(|at| byte(at / PAGE)).collect();
        expected[(PAGES - 1) * PAGE..].fill(0);
        for round in 0..4 {
            let mut a = attach(&pool);
            for step in 0..12 {
                let at = rng.usize(..PAGES * PAGE - 3 * PAGE);
                assert_eq!(a.as_slice()[at], expected[at], "round {round}, step {step}");
                let at = rng.usize(..PAGES * PAGE - 3 * PAGE);
                let len = [1, 64, 2 * PAGE][rng.usize(..3)];
                a.range_mut(at..at + len).fill(step as u8);
                expected[at..at + len].fill(step as u8);
                if step % 3 == 2 {
                    a.psync().unwrap();
                }
            }
            assert!(a.as_slice() == expected, "round {round}");
            a.range_mut(0..8).fill(0xee);
            a.revert().unwrap();
            assert!(a.as_slice() == expected && !a.is_unsynced().unwrap(), "round {round}");
            a.detach().unwrap();
        }
        let reader = pool.attach_read_sealed("a", b"", &key()).unwrap();
        assert!(reader.as_slice() == expected);
    });
}

// S3.3, S3.5
#[test]
fn a_changed_page_is_an_error_where_it_is_touched_and_the_others_are_read() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    for ground in [Ground::File, Ground::Memory, Ground::Simulated] {
        let world = World::new(ground, Tracking::Auto, false);
        let pool = filled(&world);
        flip(&world, &pool, 300);
        let named = |error: &indelible::Error| {
            let text = error.to_string();
            assert!(text.contains("\"a\"") && text.contains("page 300"), "{text}");
            assert_eq!(error.kind(), ErrorKind::Damaged, "{text}");
        };
        let mut a = attach(&pool);
        assert_eq!((a.as_slice()[299 * PAGE], a.as_slice()[301 * PAGE]), (byte(299), byte(301)));
        named(&a.prefault(0..PAGES * PAGE).unwrap_err());
        a.range_mut(5 * PAGE..5 * PAGE + 8).fill(9);
        a.psync().unwrap();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&a.as_slice()[300 * PAGE..301 * PAGE], 0).unwrap_err();
        if a.prefault(0..1).is_err() {
            named(&a.psync().unwrap_err());
        } else {
            indelible_testing::not_tested(format_args!("a changed page that a system call touches"));
        }
        drop(a);
        flip(&world, &pool, 300);
        let reader = pool.attach_read_sealed("a", b"", &key()).unwrap();
        assert_eq!(reader.prefault(0..PAGES * PAGE).unwrap(), PAGES * PAGE);
        assert_eq!((reader.as_slice()[5 * PAGE], reader.as_slice()[300 * PAGE]), (9, byte(300)));
        assert_eq!(reader.as_slice()[(PAGES - 1) * PAGE], 0);
    }
}

fn wait(a: &Object, done: impl Fn(&PredictionStats) -> bool) {
    let begin = std::time::Instant::now();
    loop {
        let stats = a.prediction().unwrap();
        if done(&stats) {
            return;
        }
        assert!(begin.elapsed().as_secs() < 60, "{stats:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_program_that_goes_page_by_page_has_few_faults() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    drop(filled(&world));
    let open = |depth, measure| {
        let options = world.options().prediction(depth).measure_prediction(measure);
        options.on_device(std::sync::Arc::new(world.sim().unwrap().handle()), false).unwrap()
    };
    let sum = |bytes: &[u8]| bytes.iter().step_by(PAGE).map(|byte| u64::from(*byte)).sum::<u64>();
    let expected: u64 = (0..PAGES - 1).map(|page| u64::from(byte(page))).sum();
    {
        let pool = open(PredictionDepth::Pages(0), false);
        let reader = pool.attach_read_sealed("a", b"", &key()).unwrap();
        assert_eq!(sum(reader.as_slice()), expected);
        let stats = reader.prediction().unwrap();
        assert_eq!((stats.faults, stats.filled), (PAGES as u64, 0));
    }
    let mut a = {
        let pool = open(PredictionDepth::Auto, false);
        let a = attach(&pool);
        // Fill threads may be too late for a fast program. These two touches predict unneeded
        // pages.
        assert_eq!(sum(&a.as_slice()[..2 * PAGE]), u64::from(byte(0)) + u64::from(byte(1)));
        wait(&a, |stats| stats.filled > 0);
        assert_eq!(sum(a.as_slice()), expected);
        wait(&a, |stats| stats.filled + stats.faults - stats.late >= PAGES as u64);
        a
    };
    assert!(!a.is_unsynced().unwrap());
    drop(a);
    let pool = open(PredictionDepth::Auto, true);
    let reader = pool.attach_read_sealed("a", b"", &key()).unwrap();
    assert_eq!(sum(reader.as_slice()), expected);
    let stats = reader.prediction().unwrap();
    assert_eq!(stats.touched, PAGES as u64);
    assert!(stats.accuracy() >= Some(0.9) && stats.coverage() >= Some(0.9), "{stats:?}");
    let plain = pool.create_attached("plain", 9000).unwrap();
    assert_eq!(plain.prediction(), None);
}

// S3.1
#[test]
fn pages_that_were_filled_are_in_no_core_dump_and_in_no_swap() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = filled(&world);
    let a = attach(&pool);
    assert_eq!(a.as_slice()[7 * PAGE], byte(7));
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let from = maps.find(&format!("{:x}-", a.as_ptr() as usize)).expect("it is mapped");
    let flags = maps[from..].lines().find(|line| line.starts_with("VmFlags:")).unwrap();
    assert!(flags.contains(" dd"), "{flags}");
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the limit.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) }, 0);
    // SAFETY: asks for a number.
    let enough = if unsafe { libc::geteuid() } == 0 { PAGES * PAGE } else { 64 << 20 };
    if limit.rlim_cur < enough as u64 {
        return indelible_testing::not_tested(format_args!("locked memory: ulimit -l is {}", limit.rlim_cur));
    }
    assert!(flags.contains(" lo"), "{flags}");
}
