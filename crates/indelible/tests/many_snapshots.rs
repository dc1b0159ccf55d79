use super::support::{Ground, World, everywhere};
use indelible::{CreateOptions, ErrorKind, Pool, Tracking};
use std::time::Instant;

const PAGE: usize = 4096;

#[track_caller]
fn holds(pool: &Pool, name: &str, expected: &[u8]) {
    let object = pool.attach_read(name).unwrap();
    assert!(object.as_slice() == expected, "{name}");
}

fn sound(world: &World) {
    if world.sim().is_none() {
        let report = indelible::check(world.path(), &world.options(), &mut |_, _| {}).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

fn tell_times(pool: &Pool, layers: usize) {
    let median = |mut attach: Box<dyn FnMut() -> u8 + '_>| {
        let mut times: Vec<_> = (0..21)
            .map(|_| {
                let begin = Instant::now();
                std::hint::black_box(attach());
                begin.elapsed()
            })
            .collect();
        times.sort();
        times[10]
    };
    let reading = median(Box::new(|| pool.attach_read("a").unwrap().as_slice()[0]));
    let writing = median(Box::new(|| pool.attach("a").unwrap().as_slice()[0]));
    eprintln!(
        "{layers} layers: attached for reading, looked at and detached in {reading:?}, for writing in {writing:?}"
    );
}

#[test]
fn s2_02_a_chain_of_a_thousand_snapshots_is_used_as_any() {
    const COUNT: usize = 1000;
    let world = World::new(Ground::Memory, Tracking::Mprotect, false);
    let pool = world.format();
    pool.create("a", 4 * PAGE as u64).unwrap();
    let mut bytes = vec![0; 4 * PAGE];
    let clock = Instant::now();
    let told = |what: &str| eprintln!("{what}: {:.1} s since the begin", clock.elapsed().as_secs_f64());
    for round in 0..COUNT {
        let mut a = pool.attach("a").unwrap();
        let at = round % 4 * PAGE + round;
        a.range_mut(at..at + 1).fill(round as u8);
        bytes[at] = round as u8;
        a.psync().unwrap();
        a.detach().unwrap();
        pool.snapshot("a", &format!("s{round}"), b"").unwrap();
        if [1, 10, 100, COUNT].contains(&(round + 1)) {
            tell_times(&pool, round + 1);
        }
    }
    told("made");
    holds(&pool, "a", &bytes);
    let mut then = vec![0; 4 * PAGE];
    for round in 0..COUNT {
        then[round % 4 * PAGE + round] = round as u8;
        if round % 100 == 7 {
            holds(&pool, &format!("s{round}"), &then);
            let found = pool.diff(&format!("s{round}"), &format!("s{}", round + 1), b"").unwrap();
            assert_eq!(found.count(), 1);
        }
    }
    pool.create_from("a", "copy", b"", &CreateOptions::new(0)).unwrap();
    told("read");
    sound(&world);
    told("checked");
    pool.rollback("a", "s7", b"").unwrap();
    holds(&pool, "copy", &bytes);
    for round in 0..COUNT {
        pool.destroy(&format!("s{round}")).unwrap();
    }
    told("destroyed");
    pool.collect(&mut |_, _| {}).unwrap();
    told("merged");
    holds(&pool, "copy", &bytes);
    assert!(pool.info().unwrap().objects <= 2 + 8, "{:?}", pool.info().unwrap());
    pool.destroy("copy").unwrap();
    pool.collect(&mut |_, _| {}).unwrap();
    let a = pool.stat("a").unwrap();
    assert_eq!((a.shares, pool.info().unwrap().objects), (false, 1));
    drop(pool);
    sound(&world);
}

#[test]
fn s2_02_a_base_below_thousands_is_merged_once_there_are_fewer() {
    const COUNT: usize = 1800;
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let pool = world.format();
    let mut a = pool.create_attached("a", PAGE as u64).unwrap();
    for round in 0..COUNT {
        a.range_mut(0..8).copy_from_slice(&(round as u64).to_le_bytes());
        a.psync().unwrap();
        pool.snapshot("a", &format!("s{round}"), b"").unwrap();
    }
    a.detach().unwrap();
    let has = |name: &str, round: usize| {
        assert_eq!(pool.attach_read(name).unwrap().as_slice()[..8], (round as u64).to_le_bytes(), "{name}");
    };
    pool.destroy("s1").unwrap();
    pool.destroy(&format!("s{}", COUNT - 100)).unwrap();
    pool.collect(&mut |_, _| {}).unwrap();
    assert_eq!(pool.info().unwrap().objects as usize, COUNT);
    for round in [0, 2, COUNT - 99, COUNT - 1] {
        has(&format!("s{round}"), round);
    }
    for round in 1000..COUNT - 1 {
        if round != COUNT - 100 {
            pool.destroy(&format!("s{round}")).unwrap();
        }
    }
    pool.collect(&mut |_, _| {}).unwrap();
    assert_eq!(pool.info().unwrap().objects, 1 + 999 + 1);
    for (name, round) in [("s0", 0), ("s2", 2), ("s999", 999), ("a", COUNT - 1)] {
        has(name, round);
    }
    drop(pool);
    sound(&world);
}

#[test]
fn s2_02_copies_outlive_what_they_were_made_from() {
    everywhere(|world| {
        let pool = world.format();
        let mut a = pool.create_attached("a", 5 * PAGE as u64).unwrap();
        a.as_mut_slice().fill(1);
        a.psync().unwrap();
        a.detach().unwrap();
        let mut expected = vec![1; 5 * PAGE];
        for (from, to, at) in [("a", "b", 0), ("b", "c", PAGE), ("c", "d", 2 * PAGE)] {
            pool.create_from(from, to, b"", &CreateOptions::new(0)).unwrap();
            let mut object = pool.attach(to).unwrap();
            object.range_mut(at..at + 8).fill(2);
            expected[at..at + 8].fill(2);
            object.psync().unwrap();
            object.detach().unwrap();
            pool.destroy(from).unwrap();
        }
        holds(&pool, "d", &expected);
        pool.collect(&mut |_, _| {}).unwrap();
        holds(&pool, "d", &expected);
        assert_eq!(pool.info().unwrap().objects, 1);
        drop(pool);
        holds(&world.open(), "d", &expected);
        sound(world);
    });
}

#[test]
fn s2_02_a_full_pool_refuses_snapshots_and_loses_nothing() {
    everywhere(|world| {
        let pool = world.format();
        let mut a = pool.create_attached("a", 20 * PAGE as u64).unwrap();
        a.as_mut_slice().fill(1);
        a.psync().unwrap();
        loop {
            let largest = pool.info().unwrap().largest_free;
            if largest < 20 * PAGE as u64 {
                break;
            }
            let name = format!("filler {largest}");
            pool.create_with(&name, &CreateOptions::new(largest).sparse(true)).unwrap();
        }
        let made = [
            pool.snapshot("a", "s", b"").unwrap_err(),
            pool.create_from("a", "b", b"", &CreateOptions::new(0)).unwrap_err(),
        ];
        for error in made {
            assert_eq!(error.kind(), ErrorKind::NoRoom, "{error}");
        }
        a.range_mut(PAGE..2 * PAGE).fill(2);
        a.psync().unwrap();
        a.detach().unwrap();
        let mut expected = vec![1; 20 * PAGE];
        expected[PAGE..2 * PAGE].fill(2);
        holds(&pool, "a", &expected);
        assert!(!pool.stat("a").unwrap().shares && pool.stat("s").is_err() && pool.stat("b").is_err());
        drop(pool);
        holds(&world.open(), "a", &expected);
        sound(world);
    });
}

#[test]
fn copies_of_merged_snapshots_have_numbers_of_their_own() {
    everywhere(|world| {
        let pool = world.format();
        let mut a = pool.create_attached("a", 5 * PAGE as u64).unwrap();
        let mut expected = vec![0; 5 * PAGE];
        for (page, snapshot) in [(0, "lower"), (1, "upper")] {
            a.range_mut(page * PAGE..page * PAGE + 8).fill(1);
            expected[page * PAGE..page * PAGE + 8].fill(1);
            a.psync().unwrap();
            pool.snapshot("a", snapshot, b"").unwrap();
        }
        a.detach().unwrap();
        pool.destroy("lower").unwrap();
        assert!(pool.collect(&mut |_, _| {}).unwrap().copied > 0, "nothing was merged");
        pool.create_from("upper", "copy", b"", &CreateOptions::new(0)).unwrap();
        holds(&pool, "copy", &expected);
        drop(pool);
        sound(world);
    });
}
