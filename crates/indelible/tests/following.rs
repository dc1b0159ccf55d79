use super::support::{self, Ground, World};
use indelible::{Collected, CreateOptions, ErrorKind, Pool, Tracking};
use indelible_testing::Seeded;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

const PAGE: usize = 4096;
const PAGES: usize = 40;

fn changed(page: usize, last: u64) -> u64 {
    (0..=last)
        .rev()
        .find(|round| page == 0 || (round * 7919 + page as u64 * 13).is_multiple_of(5))
        .unwrap_or(0)
}

fn word(bytes: &[u8], page: usize) -> u64 {
    u64::from_le_bytes(bytes[page * PAGE..page * PAGE + 8].try_into().unwrap())
}

fn round_of(bytes: &[u8]) -> u64 {
    let round = word(bytes, 0);
    for page in 1..PAGES {
        assert_eq!(word(bytes, page), changed(page, round), "page {page} in round {round}");
    }
    round
}

#[test]
#[ignore = "run by the other tests as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("FOLLOWED_POOL") else { return };
    let options = support::options_of(&std::env::var("FOLLOWED_WORLD").unwrap());
    let pool = options.open(path).unwrap();
    let mut object = pool.attach("w").unwrap();
    let mut round = round_of(object.as_slice());
    loop {
        round += 1;
        for page in (0..PAGES).filter(|page| changed(*page, round) == round) {
            object.range_mut(page * PAGE..page * PAGE + 8).copy_from_slice(&round.to_le_bytes());
        }
        if round.is_multiple_of(3) { object.psync_cut() } else { object.psync() }.unwrap();
        println!("ROUND {round}");
        if round.is_multiple_of(40) {
            object.checkpoint().unwrap();
        }
    }
}

#[test]
#[ignore = "run by the other tests as a process of its own"]
fn follow() {
    let Some(path) = std::env::var_os("FOLLOWED_POOL") else { return };
    let options = support::options_of(&std::env::var("FOLLOWED_WORLD").unwrap());
    let pool = options.open(path).unwrap();
    let mut reader = pool.attach_snapshot("w").unwrap();
    let mut seen = 0;
    loop {
        reader.refresh().unwrap();
        let round = round_of(reader.as_slice());
        assert!(round >= seen, "{round} after {seen}");
        seen = round;
        println!("ROUND {round}");
    }
}

#[test]
fn s2_02_readers_go_on_from_the_base_of_one() {
    worlds(|_, pool| {
        let mut object = pool.attach("w").unwrap();
        let mut readers = [(); 2].map(|()| pool.attach_snapshot_anywhere("w", b"").unwrap());
        for round in 1..=20_u64 {
            for (page, lost) in [(round as usize % PAGES, true), (round as usize * 7 % PAGES, false)] {
                object.range_mut(page * PAGE + 8..page * PAGE + 16).copy_from_slice(&round.to_le_bytes());
                object.psync().unwrap();
                if lost && round.is_multiple_of(2) {
                    object.checkpoint().unwrap();
                }
            }
            for reader in &mut readers {
                assert!(reader.refresh().unwrap());
                assert!(reader.as_slice() == object.as_slice(), "round {round}");
            }
        }
        drop(readers);
        object.detach().unwrap();
    });
}

struct Other {
    child: Child,
    said: std::io::Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(world: &World, what: &str) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", what, "--nocapture", "--ignored"])
            .env("FOLLOWED_POOL", world.path())
            .env("FOLLOWED_WORLD", format!("{:?} {:?} false", world.ground, world.tracking))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Other { child, said }
    }

    fn next(&mut self) -> Option<u64> {
        let mut lines = self.said.by_ref().map_while(Result::ok);
        lines.find_map(|line| line.split_once("ROUND ").map(|(_, round)| round.trim().parse().unwrap()))
    }

    fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        let mut last = 0;
        while let Some(round) = self.next() {
            last = round;
        }
        self.child.wait().unwrap();
        last
    }
}

fn worlds(test: impl Fn(&World, &Pool)) {
    for ground in [Ground::Memory, Ground::File] {
        for tracking in [Tracking::WpAsync, Tracking::Mprotect, Tracking::Explicit] {
            if !tracking.is_available() {
                indelible_testing::not_tested(format_args!("this kernel lacks tracking by {tracking:?}"));
                continue;
            }
            let world = World::new(ground, tracking, false);
            eprintln!("world: {ground:?}, {tracking:?}");
            let pool = world.format();
            pool.create("w", (PAGES * PAGE) as u64).unwrap();
            test(&world, &pool);
        }
    }
}

#[test]
fn s2_02_a_reader_follows_a_writer() {
    worlds(|world, pool| {
        let mut random = Seeded::new(5);
        let free = pool.info().unwrap().free;
        let mut seen = 0;
        for _ in 0..4 {
            let mut writer = Other::start(world, "following::work");
            writer.next().unwrap();
            let mut reader = pool.attach_snapshot("w").unwrap();
            for _ in 0..random.usize(1..25) {
                let at_least = writer.next().unwrap();
                reader.refresh().unwrap();
                let round = round_of(reader.as_slice());
                assert!(round >= at_least && round >= seen, "{round} after {at_least} and {seen}");
                seen = round;
            }
            writer.next().unwrap();
            assert_eq!(round_of(reader.as_slice()), seen);
            drop(reader);
            let last = writer.kill();
            let round = round_of(pool.attach_read("w").unwrap().as_slice());
            assert!(round >= last && round >= seen);
        }
        expect_plain(pool, free);
    });
}

fn expect_plain(pool: &Pool, free: u64) {
    pool.collect(&mut |_, _| {}).unwrap();
    let stat = pool.stat("w").unwrap();
    assert!(!stat.shares);
    assert_eq!(pool.info().unwrap().free, free);
    assert_eq!(pool.collect(&mut |_, _| {}).unwrap(), Collected::default());
}

#[test]
fn readers_that_die_or_forget_keep_nobody() {
    worlds(|world, pool| {
        let mut random = Seeded::new(6);
        let free = pool.info().unwrap().free;
        let mut writer = Other::start(world, "following::work");
        writer.next().unwrap();
        let forgotten = pool.attach_snapshot("w").unwrap();
        let round = round_of(forgotten.as_slice());
        for _ in 0..3 {
            let mut readers = [0, 1].map(|_| Other::start(world, "following::follow"));
            for _ in 0..random.usize(1..20) {
                for reader in &mut readers {
                    reader.next().unwrap();
                }
            }
            for reader in readers {
                reader.kill();
            }
            writer.next().unwrap();
        }
        assert_eq!(round_of(forgotten.as_slice()), round);
        let pinned = free - pool.info().unwrap().free;
        assert!(pinned <= 16 * (PAGES * PAGE) as u64, "{pinned} bytes are taken");
        drop(forgotten);
        let last = writer.kill();
        assert!(round_of(pool.attach_read("w").unwrap().as_slice()) >= last);
        expect_plain(pool, free);
    });
}

#[test]
fn some_objects_cannot_be_followed() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    assert_eq!(pool.attach_snapshot("w").unwrap_err().kind(), ErrorKind::NotFound);
    pool.create_with("w", &CreateOptions::new(PAGE as u64).read_key(b"read").write_key(b"write")).unwrap();
    assert_eq!(pool.attach_snapshot("w").unwrap_err().kind(), ErrorKind::WrongKey);
    let mut reader = pool.attach_snapshot_with_key("w", b"read").unwrap();
    assert!(!reader.refresh().unwrap());
    pool.destroy_with_key("w", b"write").unwrap();
    assert_eq!(reader.refresh().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(reader.newer().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(reader.as_slice(), [0; PAGE]);
    pool.create_with("w", &CreateOptions::new(PAGE as u64).key(b"read")).unwrap();
    let other = reader.newer().unwrap().unwrap();
    assert!(other.newer().unwrap().is_none());
    drop(other);
    // A process cannot map the same addresses twice.
    drop(reader);
    let object = pool.create_attached("x", PAGE as u64).unwrap();
    assert_eq!(pool.attach_snapshot("x").unwrap_err().kind(), ErrorKind::AddressTaken);
    drop(object);
    pool.snapshot("x", "kept", b"").unwrap();
    let mut kept = pool.attach_snapshot("kept").unwrap();
    assert!(!kept.refresh().unwrap());
}

#[test]
fn states_are_had_side_by_side_where_pointers_do_not_matter() {
    worlds(|world, pool| {
        let mut object = pool.attach("w").unwrap();
        let free = pool.info().unwrap().free;
        let mut states = vec![pool.attach_snapshot_anywhere("w", b"").unwrap()];
        assert!(states[0].newer().unwrap().is_none());
        for round in 1..20 {
            for page in (0..PAGES).filter(|page| changed(*page, round) == round) {
                object.range_mut(page * PAGE..page * PAGE + 8).copy_from_slice(&round.to_le_bytes());
            }
            assert!(states.last().unwrap().newer().unwrap().is_none(), "before the psync");
            object.psync().unwrap();
            let newer = states.last().unwrap().newer().unwrap().unwrap();
            states.push(newer);
            assert!(states.last().unwrap().newer().unwrap().is_none());
        }
        for (round, state) in (0..).zip(&states) {
            assert_eq!(round_of(state.as_slice()), round);
            assert_ne!(state.as_ptr(), object.as_ptr());
        }
        drop(object);
        let (mut kept, first) = (pool.attach_snapshot_anywhere("w", b"").unwrap(), &states[0]);
        assert!(!kept.refresh().unwrap() && kept.newer().unwrap().is_none());
        let mut object = pool.attach("w").unwrap();
        object.range_mut(8..16).fill(7);
        object.psync().unwrap();
        drop(object);
        assert_eq!(kept.newer().unwrap().unwrap().as_slice()[8..16], [7; 8]);
        assert!(
            kept.refresh().unwrap() && kept.as_slice()[8..16] == [7; 8] && first.as_slice()[8..16] == [0; 8]
        );
        drop(kept);
        let mut first = states.swap_remove(0);
        assert!(first.refresh().unwrap());
        assert_eq!(round_of(first.as_slice()), 19);
        drop((first, states));
        expect_plain(pool, free);
        let writer = Other::start(world, "following::work");
        let state = pool.attach_snapshot_anywhere("w", b"").unwrap();
        let last = writer.kill();
        let newest =
            state.newer().unwrap().map_or(round_of(state.as_slice()), |newer| round_of(newer.as_slice()));
        assert!(newest >= last, "{newest} after {last}");
        drop(state);
    });
}

#[test]
fn readers_that_come_and_go_keep_nobody_away() {
    worlds(|world, pool| {
        drop(pool.attach("w").unwrap());
        let free = pool.info().unwrap().free;
        let mut readers = [0, 1].map(|_| Other::start(world, "following::follow"));
        for reader in &mut readers {
            reader.next().unwrap();
        }
        std::thread::scope(|threads| {
            let come_and_go = || {
                for _ in 0..40 {
                    round_of(pool.attach_snapshot_anywhere("w", b"").unwrap().as_slice());
                }
            };
            threads.spawn(come_and_go);
            threads.spawn(come_and_go);
            for round in 1..30 {
                let mut object = pool.attach("w").unwrap();
                for page in (0..PAGES).filter(|page| changed(*page, round) == round) {
                    object.range_mut(page * PAGE..page * PAGE + 8).copy_from_slice(&round.to_le_bytes());
                }
                object.psync().unwrap();
            }
        });
        for mut reader in readers {
            while reader.next().unwrap() < 29 {}
            reader.kill();
        }
        drop(pool.attach("w").unwrap());
        pool.collect(&mut |_, _| {}).unwrap();
        let table = free - pool.info().unwrap().free;
        assert!(table <= 4 * 64 * PAGE as u64 && table.is_multiple_of(64 * PAGE as u64), "{table} bytes");
        expect_plain(pool, free - table);
    });
}

fn mappings_of(bytes: &[u8]) -> (usize, bool) {
    let (start, end) = (bytes.as_ptr() as usize, bytes.as_ptr() as usize + bytes.len());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let overlapping = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let place = |text| usize::from_str_radix(text, 16).unwrap();
        (place(from) < end && place(to) > start).then(|| rest.starts_with("rw"))
    });
    overlapping.fold((0, false), |(count, is_writable), one| (count + 1, is_writable || one))
}

#[test]
fn s2_02_scattered_lines_are_shown_and_the_pages_stay_read_only() {
    const LINES: usize = 600;
    const APART: usize = 130 * PAGE;
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("pool.pmo"), 1 << 30).unwrap();
    pool.create("w", (LINES * APART) as u64).unwrap();
    let mut object = pool.attach("w").unwrap();
    object.range_mut(0..1)[0] = 1;
    object.psync().unwrap();
    let mut reader = pool.attach_snapshot_anywhere("w", b"").unwrap();
    let (before, _) = mappings_of(reader.as_slice());
    let mut rng = Seeded::new(2);
    for round in 1..=40_u8 {
        let lines = if round.is_multiple_of(10) { LINES } else { rng.usize(1..5) };
        let first = rng.usize(0..=LINES - lines);
        for line in first..first + lines {
            object.range_mut(line * APART..line * APART + 1)[0] = round;
        }
        object.psync().unwrap();
        assert!(reader.refresh().unwrap());
        for line in 0..LINES {
            assert_eq!(reader.as_slice()[line * APART], object.as_slice()[line * APART], "{round}, {line}");
        }
        let (now, is_writable) = mappings_of(reader.as_slice());
        assert!(!is_writable && now <= before + 2, "{round}: {before} mappings, now {now}");
    }
}
