use crate::support::{Ground, World};
use indelible::{Class, CreateOptions, EpochBounds, Pending, Pool, Tracking, TxCell, TxObject, transaction};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

type Cells = [TxCell<u64>; 512];

struct Fake {
    listener: UnixListener,
}

struct Connected {
    lines: BufReader<UnixStream>,
}

impl Fake {
    fn listen(world: &World) -> Fake {
        Fake { listener: UnixListener::bind(world.dir().join("guard.sock")).unwrap() }
    }

    fn accept(&self) -> Connected {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Connected { lines: BufReader::new(stream) }
    }
}

impl Connected {
    fn say(&mut self, text: &str) {
        self.lines.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn hear(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the process is gone");
            if line.starts_with(word) {
                return line.trim_end().to_owned();
            }
        }
    }

    fn publish(&mut self, token: u64) -> String {
        self.say(&format!("publish {token}\n"));
        self.hear(&format!("published {token} "))
    }

    /// Waits until everything sent was processed: an ignored line has no answer, so one with an
    /// answer follows.
    fn heard(&mut self, budget: &str) {
        self.publish(99);
        self.say(&format!("budget {budget}\n"));
        self.say("nothing 1\n");
    }
}

fn pool(world: &World) -> (Pool, TxObject<Cells>) {
    let pool = world.format();
    pool.set_guard(world.dir().join("guard.sock"));
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 40 });
    pool.create_with("a", &CreateOptions::new(4096).class(Class::OnDemand)).unwrap();
    let a = pool.attach_transactional("a").unwrap();
    (pool, a)
}

fn world() -> World {
    World::new(Ground::File, Tracking::Explicit, false)
}

fn set(a: &TxObject<Cells>, cell: usize, value: u64) {
    a.transaction(|tx| tx.write(&a[cell], value)).unwrap();
}

fn durable(pool: &Pool, cell: usize) -> u64 {
    let seen = pool.attach_snapshot_anywhere("a", b"").unwrap();
    u64::from_le_bytes(seen.as_slice()[8 * cell..8 * cell + 8].try_into().unwrap())
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn s1_07_a_process_registers_and_publishes_when_the_guard_asks() {
    let world = world();
    let fake = Fake::listen(&world);
    let (pool, a) = pool(&world);
    let mut guard = fake.accept();
    let hello = guard.hear("writer 1 ");
    let id: String = pool.id().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(hello.contains(&id), "{hello}");
    set(&a, 0, 7);
    set(&a, 8, 8);
    assert_eq!((durable(&pool, 0), a.pending().bytes), (0, 128), "the guard did not ask");
    let answer = guard.publish(3);
    assert!(answer.starts_with("published 3 128 "), "{answer}");
    assert_eq!((durable(&pool, 0), durable(&pool, 8), a.pending()), (7, 8, Pending::default()));
    for value in 0..20 {
        set(&a, 16, value);
        assert_eq!(durable(&pool, 16), value);
    }
    assert!(pool.pending("a").unwrap().unwrap().at_once >= 20);
    guard.say("budget 4096\n");
    until("the budget is back", || {
        set(&a, 24, 1);
        a.pending().bytes > 0
    });
    let measured = guard.hear("measured ");
    assert!(measured.split(' ').nth(1).unwrap().parse::<u64>().unwrap() > 0, "{measured}");
    a.detach().unwrap();
    assert_eq!(guard.hear("bye"), "bye");
}

#[test]
fn s1_07_nothing_is_acknowledged_before_it_is_durable() {
    let world = world();
    let fake = Fake::listen(&world);
    let (pool, a) = pool(&world);
    let mut guard = fake.accept();
    set(&a, 0, 1);
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let a = &a;
        scope.spawn(move || {
            a.transaction(|tx| {
                let value = tx.read(&a[1])?;
                let _ = entered.send(());
                let _ = may_leave.recv();
                tx.write(&a[1], value + 1)
            })
            .unwrap();
        });
        has_entered.recv().unwrap();
        guard.say("publish 5\n");
        guard.lines.get_mut().set_read_timeout(Some(Duration::from_millis(700))).unwrap();
        let early = loop {
            let mut line = String::new();
            match guard.lines.read_line(&mut line) {
                Ok(_) if line.starts_with("published") => break Some(line),
                Ok(got) => assert!(got > 0),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break None;
                }
            }
        };
        let before = durable(&pool, 0);
        drop(leave);
        assert_eq!((early, before), (None, 0), "acknowledged while a transaction kept the epoch away");
        guard.lines.get_mut().set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        guard.hear("published 5 ");
    });
    assert_eq!(durable(&pool, 0), 1);
}

#[test]
fn s1_10_a_commit_that_the_bound_has_no_room_for_is_durable_at_once() {
    let world = world();
    let fake = Fake::listen(&world);
    let (pool, a) = pool(&world);
    let mut guard = fake.accept();
    guard.heard("256");
    until("four lines have room", || {
        (0..3).for_each(|nth| set(&a, 8 * nth, 1));
        a.pending().bytes == 192
    });
    let at_once = || pool.pending("a").unwrap().unwrap().at_once;
    let before = at_once();
    set(&a, 24, 2);
    assert_eq!((a.pending().bytes, at_once()), (256, before), "it fits");
    set(&a, 32, 3);
    assert_eq!((a.pending(), at_once()), (Pending::default(), before + 1));
    assert_eq!((durable(&pool, 24), durable(&pool, 32)), (2, 3));
    a.transaction(|tx| (0..10).try_for_each(|nth| tx.write(&a[8 * nth], 9))).unwrap();
    assert_eq!((durable(&pool, 72), at_once()), (9, before + 2));
}

#[test]
fn s1_06_a_guard_that_is_slow_keeps_nobody_waiting() {
    let world = world();
    let fake = Fake::listen(&world);
    let (pool, a) = pool(&world);
    let mut guard = fake.accept();
    for half in ["", "publish 1"] {
        guard.say(half);
        let value = 1 + half.len() as u64;
        set(&a, 0, value);
        assert!(a.pending().bytes > 0 && durable(&pool, 0) < value, "the guard has not asked yet");
        a.tx_sync().unwrap();
        assert_eq!((durable(&pool, 0), a.pending()), (value, Pending::default()));
    }
    set(&a, 0, 77);
    a.detach().unwrap();
    assert_eq!(durable(&pool, 0), 77);
}

#[test]
fn s1_06_a_guard_that_lies_takes_nothing_away() {
    let world = world();
    let fake = Fake::listen(&world);
    let (pool, a) = pool(&world);
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 128 });
    let mut guard = fake.accept();
    guard.heard("18446744073709551615");
    until("its bound is used", || {
        set(&a, 0, 1);
        a.pending().bytes > 0
    });
    (1..4).for_each(|nth| set(&a, 8 * nth, 1));
    assert!(a.pending().bytes <= 128, "the program's own bound stays");
    for garbage in
        ["budget -1\n", "budget 99999999999999999999\n", "budget \n", &"x".repeat(5000), "\u{1}\u{2}\n"]
    {
        guard.say(garbage);
        if garbage.starts_with('\u{1}') {
            guard.publish(7);
            continue;
        }
        let mut line = String::new();
        while guard.lines.read_line(&mut line).unwrap_or(0) > 0 {
            line.clear();
        }
        guard = fake.accept();
        guard.hear("writer 1 ");
    }
    drop(guard);
    drop(fake);
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 40 });
    until("the guard is forgotten", || {
        set(&a, 40, 4);
        a.pending().bytes > 0
    });
    a.tx_sync().unwrap();
    assert_eq!(durable(&pool, 40), 4);
}

#[test]
fn s1_07_objects_of_both_classes_are_published() {
    let world = world();
    let fake = Fake::listen(&world);
    let (pool, a) = pool(&world);
    pool.create_with("b", &CreateOptions::new(4096).class(Class::Transactional)).unwrap();
    let b = pool.attach_with_on_demand::<Cells>("b", b"").unwrap();
    let mut guard = fake.accept();
    set(&a, 0, 1);
    transaction(&[&a, &b], |tx| {
        tx.write(&a[8], 2)?;
        tx.write(&b[8], 2)
    })
    .unwrap();
    set(&a, 16, 3);
    guard.publish(1);
    assert_eq!((durable(&pool, 8), durable(&pool, 16)), (2, 3));
}

#[test]
fn figures_of_pending_commits_are_those_of_each_object() {
    let world = world();
    let (pool, a) = pool(&world);
    pool.create_with("b", &CreateOptions::new(4096).class(Class::OnDemand)).unwrap();
    pool.create("plain", 4096).unwrap();
    let b = pool.attach_transactional::<Cells>("b").unwrap();
    let pending = |name: &str| pool.pending(name).unwrap();
    assert_eq!(pending("plain"), None);
    let none = pending("a").unwrap();
    assert_eq!((none.transactions, none.bytes, none.age), (0, 0, Duration::ZERO));
    (0..3).for_each(|nth| set(&a, 8 * nth, 1));
    transaction(&[&a, &b], |tx| {
        tx.write(&a[0], 2)?;
        tx.write(&b[0], 2)
    })
    .unwrap();
    let (of_a, of_b) = (pending("a").unwrap(), pending("b").unwrap());
    assert_eq!((of_a.transactions, of_a.bytes, of_b.transactions, of_b.bytes), (4, 192, 4, 64));
    assert!(of_a.age > Duration::ZERO);
    a.tx_sync().unwrap();
    assert_eq!((pending("a"), pending("b")), (Some(none), Some(none)));
    set(&b, 8, 1);
    assert_eq!((pending("a").unwrap().bytes, pending("b").unwrap().bytes), (0, 64));
    drop((a, b));
    assert_eq!((pending("a"), pending("b")), (None, None));
}

#[test]
fn s1_07_no_process_says_farewell_with_commits_that_the_pool_lacks() {
    let world = world();
    let fake = Fake::listen(&world);
    let (pool, a) = pool(&world);
    let mut guard = fake.accept();
    guard.hear("writer 1 ");
    set(&a, 0, 7);
    std::fs::File::options().write(true).open(world.path()).unwrap().set_len(0).unwrap();
    a.tx_sync().unwrap_err();
    a.detach().unwrap_err();
    let mut rest = String::new();
    guard.lines.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("bye"), "{rest}");
    let left = crate::support::memory_of(&pool);
    assert!(!left.is_empty(), "the commits are nowhere");
    left.iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

/// A mutant affects a test's thread and the library threads that it starts.
#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type Test = fn();
    const WATCHES: &[(Mutant, &[Test])] = &[
        (Mutant::AcknowledgedUnflushed, &[super::s1_07_nothing_is_acknowledged_before_it_is_durable]),
        (
            Mutant::BudgetIgnored,
            &[
                super::s1_10_a_commit_that_the_bound_has_no_room_for_is_durable_at_once,
                super::s1_07_a_process_registers_and_publishes_when_the_guard_asks,
            ],
        ),
    ];

    #[test]
    fn every_broken_rule_is_noticed() {
        for (mutant, tests) in WATCHES {
            for (nth, test) in tests.iter().enumerate() {
                let run = AssertUnwindSafe(*test);
                let noticed = with_mutant(*mutant, || catch_unwind(run)).is_err();
                assert!(noticed, "{mutant:?} goes unnoticed by {nth}");
            }
        }
    }
}
