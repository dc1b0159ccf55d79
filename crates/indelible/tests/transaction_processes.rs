use crate::support::{self, Ground, World};
use indelible::{Class, CreateOptions, Error, ErrorKind, Pool, Tracking, TxCell, TxObject, transaction};
use indelible_testing::Seeded;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

type Cells = [TxCell<u64>; 64];

fn attach(pool: &Pool, name: &str) -> TxObject<Cells> {
    pool.attach_transactional(name).unwrap()
}

fn formatted(world: &World) -> Pool {
    let pool = world.format();
    for name in ["a", "b"] {
        pool.create_with(name, &CreateOptions::new(4096).class(Class::Transactional)).unwrap();
    }
    pool
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = support::options_of(&std::env::var("WORK_WORLD").unwrap()).open(path).unwrap();
    let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
    std::thread::scope(|scope| {
        for thread in 1..5 {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                loop {
                    let number = transaction(&[a, b], |tx| {
                        tx.update(&a[thread * 8], |value| value + 1)?;
                        tx.update(&b[thread * 8], |value| value + 1)?;
                        let number = tx.read(&b[0])? + 1;
                        tx.write(&b[0], number)?;
                        Ok::<_, Error>(number)
                    });
                    println!("ROUND {}", number.unwrap());
                }
            });
        }
    });
}

#[test]
fn s1_03_killed_at_any_moment_transactions_are_whole_and_none_is_lost() {
    for ground in [Ground::Memory, Ground::File] {
        let world = World::new(ground, Tracking::Explicit, false);
        drop(formatted(&world));
        let (mut random, mut said) = (Seeded::new(7), 0);
        for _ in 0..15 {
            let last = random.usize(1..200);
            let killed = support::killed_at_work(&world, "transaction_processes::work", last);
            said = killed.unwrap_or(said).max(said);
            let pool = world.open();
            let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
            let (pairs, all) = transaction(&[&a, &b], |tx| {
                let mut pairs = Vec::new();
                for thread in 1..5 {
                    pairs.push((tx.read(&a[thread * 8])?, tx.read(&b[thread * 8])?));
                }
                Ok::<_, Error>((pairs, tx.read(&b[0])?))
            })
            .unwrap();
            assert!(pairs.iter().all(|(a, b)| a == b), "half a transaction: {pairs:?}");
            assert_eq!(pairs.iter().map(|(a, _)| a).sum::<u64>(), all, "{pairs:?}");
            assert!(all >= said, "{said} was acknowledged, {all} are there");
        }
        assert!(said > 300, "only {said} transactions");
    }
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn stray() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = Pool::open(path).unwrap();
    let address = pool.stat("a").unwrap().address as usize;
    let a = attach(&pool, "a");
    let touch = || {
        let pointer = std::ptr::with_exposed_provenance_mut::<u64>(address);
        match std::env::var("WORK_WORLD").unwrap().as_str() {
            "load" => {
                // SAFETY: none is needed for a process that dies of it; otherwise no other code
                // uses the word.
                std::hint::black_box(unsafe { pointer.read_volatile() });
            }
            // SAFETY: as above.
            _ => unsafe { pointer.write_volatile(7) },
        }
    };
    println!("attached");
    if std::env::var_os("WORK_INSIDE").is_some() {
        a.transaction(|tx| {
            tx.write(&a[0], 1)?;
            std::thread::scope(|scope| scope.spawn(touch).join().unwrap());
            tx.write(&a[1], 1)
        })
        .unwrap();
    } else {
        touch();
    }
    println!("alive");
}

fn stray_process(world: &World, kind: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "transaction_processes::stray", "--nocapture", "--ignored"])
        .env("WORK_POOL", world.path())
        .env("WORK_WORLD", kind)
        .env_remove("PMO_EXPLAIN_FAULTS");
    command
}

fn stray_signal(world: &World, kind: &str, inside: bool, mutant: Option<&str>) -> (Option<i32>, String) {
    let mut command = stray_process(world, kind);
    if inside {
        command.env("WORK_INSIDE", "1");
    }
    if let Some(mutant) = mutant {
        command.env("INDELIBLE_MUTANT", mutant);
    }
    let output = command.output().unwrap();
    (output.status.signal(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn s1_16_a_stray_access_is_explained_where_that_is_asked_for() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted(&world));
    let died = |kind: &str, asked: Option<&str>| {
        let mut command = stray_process(&world, kind);
        if let Some(asked) = asked {
            command.env("PMO_EXPLAIN_FAULTS", asked);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{kind}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (kind, words, by) in [
        ("load", "a load from 0x", "load from it, by tx.read"),
        ("store", "a store to 0x", "store to it, by tx.write"),
    ] {
        let said = died(kind, Some("1"));
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("indelible: ")).collect();
        assert_eq!(lines.len(), 1, "{said}");
        let about = [words, ", offset 0x0 of object \"a\"", "outside of a transaction", by];
        assert!(about.iter().all(|about| lines[0].contains(about)), "{said}");
        for asked in [None, Some("0")] {
            assert!(!died(kind, asked).contains("of object"), "{kind}: no explanation was asked for");
        }
    }
}

#[test]
fn s1_16_a_stray_pointer_into_the_object_is_a_sigsegv() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted(&world));
    const ACCESSES: [(&str, bool); 4] = [("load", false), ("store", false), ("load", true), ("store", true)];
    for (kind, inside) in ACCESSES {
        let (signal, said) = stray_signal(&world, kind, inside, None);
        assert_eq!(signal, Some(rustix::process::Signal::SEGV.as_raw()), "{kind}, inside {inside}: {said}");
        assert!(said.contains("attached") && !said.contains("alive"), "{said}");
    }
    let pool = world.open();
    let a = attach(&pool, "a");
    let found = a.transaction(|tx| Ok::<_, Error>([tx.read(&a[0])?, tx.read(&a[1])?])).unwrap();
    assert_eq!(found, [0, 0], "a transaction whose process died left {found:?}");
    drop((a, pool));
    #[cfg(feature = "__mutants")]
    for (kind, inside) in ACCESSES {
        let (signal, said) = stray_signal(&world, kind, inside, Some("AddressOpen"));
        assert!(signal.is_none() && said.contains("alive"), "an open address goes unnoticed: {said}");
    }
}

#[test]
fn a_fork_in_a_transaction_has_no_part_in_it() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = formatted(&world);
    let a = attach(&pool, "a");
    let mut children = Vec::new();
    a.transaction(|tx| {
        tx.write(&a[0], 1)?;
        // SAFETY: the child makes calls that are errors there, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let read = tx.read(&a[0]).map(drop);
            let written = tx.write(&a[1], 1);
            let other = pool.attach_transactional::<Cells>("b").map(drop);
            // SAFETY: the parent's own value stays where it is; this is the child's copy of it.
            let detached = unsafe { std::ptr::read(&raw const a) }.detach();
            let all = [read, written, other, detached];
            let right = all.iter().filter(|result| {
                matches!(result, Err(error) if [ErrorKind::Forked, ErrorKind::InTransaction].contains(&error.kind()))
            });
            // SAFETY: ends the child without any of its parent's cleanup.
            unsafe { libc::_exit(right.count() as i32) };
        }
        children.push(child);
        tx.write(&a[2], 3)
    })
    .unwrap();
    for child in children {
        let mut status = 0;
        // SAFETY: a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 4, "{status:#x}");
    }
    drop(a);
    let a = attach(&pool, "a");
    let found = a.transaction(|tx| Ok::<_, Error>([tx.read(&a[0])?, tx.read(&a[1])?, tx.read(&a[2])?]));
    assert_eq!(found.unwrap(), [1, 0, 3]);
}
