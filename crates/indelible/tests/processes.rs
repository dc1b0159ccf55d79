//! Several processes: permitted attaches (S0.11), the parts that die with a process (S0.12), forks.
//!
//! A child is this program again, running one hidden test over pipes: no sleeps.

use crate::support::{self, Ground, World, everywhere};
use indelible::{CreateOptions, ErrorKind, MediumKind, Object, Pool, PoolOptions, State, Tracking, raw};
use indelible_store::table::Key;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Other {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Other {
    fn start(world: &World) -> Other {
        Other::start_after(world, || Ok(()))
    }

    fn start_after(
        world: &World,
        setup: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Other {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // SAFETY: the tests make one system call there.
        unsafe { command.pre_exec(setup) };
        let mut child = command
            .args(["--exact", "processes::obey", "--nocapture", "--ignored"])
            .env("OTHER_POOL", world.path())
            .env("OTHER_WORLD", format!("{:?} {:?} {}", world.ground, world.tracking, world.fault_in))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut other = Other { child, stdin, stdout };
        other.answer();
        other
    }

    fn say(&mut self, line: &str) -> String {
        writeln!(self.stdin, "{line}").unwrap();
        self.answer()
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the other process is gone");
            if let Some((_, answer)) = line.split_once("ANSWER ") {
                return answer.trim().to_owned();
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_process_uses_the_space_of_a_pool_that_another_one_made_longer() {
    for ground in [Ground::File, Ground::Memory] {
        let world = World::new(ground, Tracking::Mprotect, false);
        let pool = world.format();
        pool.create("a", 10_000).unwrap();
        let mut other = Other::start(&world);
        assert_eq!(other.say("write a"), "ok");
        let free = pool.info().unwrap().largest_free;
        pool.create_with("filling", &CreateOptions::new(free).sparse(true)).unwrap();
        pool.grow(3 * support::POOL).unwrap();
        pool.create("large", support::POOL).unwrap();
        assert_eq!(other.say("write large"), "ok");
        assert_eq!(other.say("count 3"), "ok");
        other.kill();
        let large = pool.attach("large").unwrap();
        for at in [0, 8000] {
            assert_eq!(large.as_slice()[at..at + 8], 3_u64.to_le_bytes(), "{ground:?}");
        }
        assert_eq!(world.open().info().unwrap().length, 3 * support::POOL);
    }
}

#[test]
#[ignore = "run by the other tests as a process of its own"]
fn obey() {
    let Some(path) = std::env::var_os("OTHER_POOL") else { return };
    let path = Path::new(&path);
    let world = std::env::var("OTHER_WORLD").unwrap();
    let options = support::options_of(&world);
    let pool = options.open(path).unwrap();
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    println!("ANSWER ready");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["write", name] => match pool.attach(name) {
                Ok(object) => {
                    writers.push(object);
                    "ok".into()
                }
                Err(error) => format!("{:?}", error.kind()),
            },
            ["read", name] => match pool.attach_read(name) {
                Ok(object) => {
                    readers.push(object);
                    "ok".into()
                }
                Err(error) => format!("{:?}", error.kind()),
            },
            ["store", value] => {
                *writers.last_mut().unwrap().root_mut::<u64>().unwrap() = value.parse().unwrap();
                "ok".into()
            }
            ["look"] => {
                let object = readers.last().unwrap();
                let [here, there] = object.root::<[u64; 2]>().unwrap();
                let followed = object.as_slice()[(there - object.as_ptr().addr() as u64) as usize];
                format!("{:x} {here:x} {followed}", object.as_ptr().addr())
            }
            ["count", to] => {
                let object = writers.last_mut().unwrap();
                for number in 1..=to.parse::<u64>().unwrap() {
                    for at in [0, 8000] {
                        object.range_mut(at..at + 8).copy_from_slice(&number.to_le_bytes());
                    }
                    object.psync().unwrap();
                }
                "ok".into()
            }
            ["psync"] => format!("{:?}", writers.last_mut().unwrap().psync().map_err(|e| e.kind())),
            ["detach"] => {
                drop(writers.pop());
                drop(readers.pop());
                "ok".into()
            }
            _ => "what?".into(),
        };
        println!("ANSWER {answer}");
    }
}

fn shared(test: impl Fn(&World)) {
    everywhere(|world| {
        if world.ground != Ground::Simulated {
            test(world);
        }
    });
}

fn kind<T>(result: indelible::Result<T>) -> ErrorKind {
    result.err().expect("this had to fail").kind()
}

/// The kernel may place mappings from the top down or from the bottom up, at random or not.
#[test]
fn a_process_with_another_address_layout_finds_an_object_at_its_address() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    pool.create("a", 8192).unwrap();
    let mut a = pool.attach("a").unwrap();
    let address = a.as_ptr().addr();
    *a.root_mut::<[u64; 2]>().unwrap() = [address as u64, address as u64 + 5000];
    a.range_mut(5000..5001)[0] = 7;
    a.psync().unwrap();
    a.detach().unwrap();
    let personality = |bits: libc::c_int| {
        // SAFETY: a flag of the process; what it maps from now on lies elsewhere.
        move || match unsafe { libc::personality(bits as libc::c_ulong) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    let no_limit = || {
        let old = rustix::process::getrlimit(rustix::process::Resource::Stack);
        let limit = rustix::process::Rlimit { current: old.maximum, maximum: old.maximum };
        Ok(rustix::process::setrlimit(rustix::process::Resource::Stack, limit)?)
    };
    let others = [
        Other::start(&world),
        Other::start_after(&world, personality(libc::ADDR_NO_RANDOMIZE)),
        Other::start_after(&world, personality(libc::ADDR_COMPAT_LAYOUT)),
        Other::start_after(&world, personality(libc::ADDR_COMPAT_LAYOUT | libc::ADDR_NO_RANDOMIZE)),
        Other::start_after(&world, no_limit),
    ];
    for mut other in others {
        assert_eq!(other.say("read a"), "ok");
        assert_eq!(other.say("look"), format!("{address:x} {address:x} 7"));
        other.kill();
    }
}

#[test]
fn an_object_is_held_still_beside_the_process_that_writes_it() {
    const PSYNCS: u64 = 100;
    shared(|world| {
        let pool = world.format();
        pool.create("a", 10_000).unwrap();
        let mut other = Other::start(world);
        assert_eq!(other.say("write a"), "ok");
        writeln!(other.stdin, "count {PSYNCS}").unwrap();
        let mut last = 0;
        while last < PSYNCS {
            let still = pool.store().hold_still("a", Key(&[])).unwrap().expect("it has a writer");
            let found = [0, 8000, 0].map(|offset| {
                let mut word = [0; 8];
                still.read(offset, &mut word).unwrap();
                u64::from_le_bytes(word)
            });
            assert!(found == [found[0]; 3] && found[0] >= last, "{found:?} after {last}");
            last = found[0];
        }
        assert_eq!(other.answer(), "ok");
        let still = pool.store().hold_still("a", Key(&[])).unwrap();
        other.kill();
        pool.store().set_patience(std::time::Duration::ZERO);
        assert_eq!(kind(pool.attach("a")), ErrorKind::Busy);
        drop(still);
        let object = pool.attach("a").unwrap();
        assert_eq!(object.as_slice()[..8], PSYNCS.to_le_bytes());
    });
}

// S0.11, every case of Fig. 2.
#[test]
fn s0_11_many_readers_or_one_writer() {
    shared(|world| {
        let pool = world.format();
        pool.create_with("A", &indelible::CreateOptions::new(100).read_only(true)).unwrap();
        pool.create("B", 100).unwrap();
        pool.create("C", 100).unwrap();
        let (mut p2, mut p3) = (Other::start(world), Other::start(world));
        assert_eq!(kind(pool.attach("A")), ErrorKind::ObjectReadOnly, "P1 attaches A for writing");
        assert_eq!(p2.say("read B"), "ok");
        assert_eq!(p3.say("read B"), "ok");
        assert_eq!(p3.say("write C"), "ok");
        assert_eq!(p2.say("write C"), "Held");
        assert_eq!(kind(pool.attach_read("C")), ErrorKind::Held);
        let error = pool.attach("C").unwrap_err().to_string();
        assert!(error.contains(&format!("process {} as writer", p3.child.id())), "{error}");
        assert_eq!(pool.stat("C").unwrap().state, State::Writing);
        assert_eq!(pool.stat("C").unwrap().holder, Some(p3.child.id()));
        assert_eq!(pool.stat("B").unwrap().state, State::Reading);
        assert_eq!(kind(pool.attach("B")), ErrorKind::Held);
        assert_eq!(kind(pool.destroy("B")), ErrorKind::Held);
        assert_eq!(p3.say("detach"), "ok");
        assert_eq!(p2.say("write C"), "ok");
        p2.kill();
        p3.kill();
        assert_eq!(pool.stat("B").unwrap().state, State::Detached);
        pool.attach("B").unwrap();
    });
}

// S0.12, S0.18, S0.26: the writer is killed; its psynced stores are there, its other ones are not.
#[test]
fn s0_12_the_object_of_a_killed_writer_is_recovered() {
    shared(|world| {
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        for round in 0..5_u64 {
            let mut other = Other::start(world);
            assert_eq!(other.say("write a"), "ok");
            for value in 1..=3 {
                other.say(&format!("store {}", round * 10 + value));
                assert_eq!(other.say("psync"), "Ok(())");
            }
            other.say("store 999");
            other.kill();
            let stat = pool.stat("a").unwrap();
            assert!(stat.needs_recovery && stat.state == State::Copying, "{stat:?}");
            if round % 2 == 0 {
                let a = pool.attach("a").unwrap();
                assert!(a.recovered_bytes() > 0);
                assert_eq!((*a.root::<u64>().unwrap(), a.psyncs()), (round * 10 + 3, 3 * (round + 1)));
            } else {
                assert_eq!(*pool.attach_read("a").unwrap().root::<u64>().unwrap(), round * 10 + 3);
            }
            assert_eq!(pool.stat("a").unwrap().state, State::Detached);
        }
    });
}

// DESIGN §2: a forked child does not inherit attachments, and does not keep their locks alive.
#[test]
fn a_fork_inherits_neither_memory_nor_locks() {
    shared(|world| {
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        let mut a = pool.attach("a").unwrap();
        *a.root_mut::<u64>().unwrap() = 5;
        let status = in_fork(|| {
            if kind(a.psync()) != ErrorKind::Forked {
                return 1;
            }
            if kind(pool.attach("a")) != ErrorKind::Forked {
                return 2;
            }
            if kind(pool.stat("a")) != ErrorKind::Forked || kind(pool.info()) != ErrorKind::Forked {
                return 3;
            }
            0
        });
        assert_eq!(status.code(), Some(0));
        let status = in_fork(|| i32::from(a.as_slice()[0]));
        assert_eq!(status.signal(), Some(11), "the range is absent in the child: {status:?}");
        a.psync().unwrap();
        drop(a);
        assert_eq!(*pool.attach("a").unwrap().root::<u64>().unwrap(), 5);
    });
}

#[test]
fn a_fork_has_no_heap_by_address() {
    let world = World::new(Ground::Memory, indelible::Tracking::Auto, false);
    let pool = world.format();
    pool.create("a", 1 << 20).unwrap();
    let a = raw::attach(&pool, "a", raw::Permission::Write, b"").unwrap().as_ptr();
    // SAFETY: this thread alone has the object.
    unsafe { raw::format_heap(a, indelible::HeapOptions::new()).unwrap() };
    // SAFETY: as above. The thread remembers the heap from here on.
    let block = unsafe { raw::malloc(a, 8).unwrap() };
    let status = in_fork(|| {
        // SAFETY: refused.
        let results =
            unsafe { [kind(raw::malloc(a, 8)), kind(raw::free(block.as_ptr())), kind(raw::psync(a))] };
        i32::from(results != [ErrorKind::Forked; 3])
    });
    assert_eq!(status.code(), Some(0), "{status:?}");
    // SAFETY: as above.
    unsafe { raw::free(block.as_ptr()).unwrap() };
    raw::detach(a).unwrap();
}

/// Committed lines wait in memory where the medium is slow (docs/decisions/0009): a child's copy
/// may be older than the primary.
#[test]
fn lines_that_wait_in_memory_are_not_for_a_fork_to_write() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = PoolOptions::new().medium(MediumKind::File).format(world.path(), 16 << 20).unwrap();
    pool.create("a", 16 * 4096).unwrap();
    let mut held = Some(pool.attach("a").unwrap());
    let psync = |held: &mut Option<Object>, value: u8| {
        let a = held.as_mut().unwrap();
        (0..16).for_each(|page| a.range_mut(page * 4096..page * 4096 + 64).fill(value));
        a.psync().unwrap();
    };
    (1..4).for_each(|value| psync(&mut held, value));
    assert_eq!(held.as_ref().unwrap().stats().pages_kept, 16);
    let before = std::fs::read(world.path()).unwrap();
    let status = in_fork(|| {
        if kind(held.as_mut().unwrap().checkpoint()) != ErrorKind::Forked {
            return 1;
        }
        i32::from(kind(held.take().unwrap().detach()) != ErrorKind::Forked) * 2
    });
    assert_eq!(status.code(), Some(0));
    assert!(std::fs::read(world.path()).unwrap() == before, "the child wrote to the pool");
    psync(&mut held, 4);
    held.take().unwrap().detach().unwrap();
    assert_ne!(std::fs::read(world.path()).unwrap(), before);
    let a = pool.attach("a").unwrap();
    assert!((0..16).all(|page| a.as_slice()[page * 4096..page * 4096 + 64] == [4; 64]));
}

#[test]
fn s0_15_access_after_detach_is_a_fault() {
    shared(|world| {
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        let a = raw::attach(&pool, "a", raw::Permission::Write, b"").unwrap();
        raw::detach(a.as_ptr()).unwrap();
        // SAFETY: none: the child shall die of it.
        let status = in_fork(|| i32::from(unsafe { a.as_ptr().read_volatile() }));
        assert_eq!(status.signal(), Some(11), "{status:?}");
        let a = raw::attach(&pool, "a", raw::Permission::Read, b"").unwrap();
        raw::detach(a.as_ptr()).unwrap();
    });
}

fn in_fork(child: impl FnOnce() -> i32) -> std::process::ExitStatus {
    ended(fork(child))
}

fn fork(child: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the child calls only `child` and `_exit`. Allocating in it is safe with this libc,
    // whose fork handlers take the allocator's locks.
    match unsafe { libc::fork() } {
        0 => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(99);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        pid => pid,
    }
}

fn ended(pid: libc::pid_t) -> std::process::ExitStatus {
    assert!(pid > 0);
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    std::process::ExitStatus::from_raw(status)
}

#[test]
fn forks_keep_what_is_attached_for_reading() {
    shared(|world| {
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        let mut a = pool.attach("a").unwrap();
        a.as_mut_slice().fill(7);
        a.psync().unwrap();
        drop((a, pool));
        let options = world.options().inherit_reads(true);
        let pool = options.open(world.path()).unwrap();
        let reader = pool.attach_read("a").unwrap();
        assert_eq!(reader.is_inherited(), !world.fault_in, "{:?}", world.ground);
        if world.fault_in {
            return;
        }
        let (mut heard, mut said) = std::io::pipe().unwrap();
        let (mut answers, mut answer) = std::io::pipe().unwrap();
        let mut held = Some(reader);
        let child = fork(|| {
            // SAFETY: no memory is involved. If the test fails, nothing else ends the child.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let reader = held.take().unwrap();
            heard.read_exact(&mut [0]).unwrap();
            let whole = reader.as_slice().iter().all(|byte| *byte == 7);
            let forked =
                kind(reader.stat()) == ErrorKind::Forked && kind(pool.attach("a")) == ErrorKind::Forked;
            drop(reader);
            let again = options.open(world.path()).unwrap().attach_read("a").map(|a| a.as_slice()[0]);
            answer.write_all(&[u8::from(whole && forked && again.is_ok_and(|byte| byte == 7))]).unwrap();
            heard.read_exact(&mut [0]).unwrap();
            0
        });
        drop(held);
        assert_eq!(kind(pool.attach("a")), ErrorKind::Held, "the child reads it still");
        said.write_all(b"1").unwrap();
        let mut right = [0];
        answers.read_exact(&mut right).unwrap();
        assert_eq!(right, [1]);
        pool.attach("a").unwrap();
        said.write_all(b"1").unwrap();
        assert_eq!(ended(child).code(), Some(0));
    });
}

#[test]
fn forks_keep_what_is_read_beside_a_writer() {
    const PAGE: usize = 4096;
    shared(|world| {
        if world.fault_in {
            return;
        }
        world.format().create("a", 100 * PAGE as u64).unwrap();
        let pool = world.options().inherit_reads(true).open(world.path()).unwrap();
        let mut a = pool.attach("a").unwrap();
        let mut states = Vec::new();
        for round in 1..=8_usize {
            for page in 0..round * 10 {
                a.range_mut(page * PAGE..page * PAGE + 100).fill(round as u8);
            }
            a.psync().unwrap();
            let state = pool.attach_snapshot_anywhere("a", b"").unwrap();
            assert!(state.is_inherited(), "{:?}: state {round}", world.ground);
            states.push(state);
        }
        a.as_mut_slice().fill(9);
        a.psync().unwrap();
        let is_right = |(round, state): (usize, &indelible::ReadObject)| {
            let filled = |page: &[u8], byte| page[..100].iter().all(|found| *found == byte);
            let mut pages = state.as_slice().chunks(PAGE).enumerate();
            pages.all(|(page, bytes)| filled(bytes, if page < round * 10 { round as u8 } else { 0 }))
        };
        assert!((1..).zip(&states).all(is_right));
        let child = fork(|| i32::from(!(1..).zip(&states).all(is_right)));
        assert_eq!(ended(child).code(), Some(0));
        drop((a, states));
    });
}

#[test]
fn one_pool_by_two_paths_is_one_pool() {
    let world = World::new(Ground::File, indelible::Tracking::Auto, false);
    let pool = world.format();
    pool.create("a", 100).unwrap();
    let link = world.dir().join("link.pmo");
    std::os::unix::fs::symlink(world.path(), &link).unwrap();
    let again = world.options().open(&link).unwrap();
    let (x, y) = (pool.attach_read("a").unwrap(), again.attach_read("a").unwrap());
    assert_eq!(x.as_ptr(), y.as_ptr());
    let other = Pool::open(&link).unwrap();
    assert_eq!(other.id(), pool.id());
}
