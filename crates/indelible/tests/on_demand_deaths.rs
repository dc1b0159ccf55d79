use crate::support::{self, Ground, World};
use indelible::{
    Class, CreateOptions, EpochBounds, Error, ErrorKind, Pool, PoolOptions, Tracking, TxCell, TxObject,
    transaction,
};
use indelible_testing::{Fault, OpKind, Seeded, SimConfig, SimMedium};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

pub type Cells = [TxCell<u64>; 64];

pub fn attach(pool: &Pool, name: &str) -> TxObject<Cells> {
    pool.attach_with_on_demand(name, b"").unwrap()
}

pub fn formatted(world: &World) -> Pool {
    formatted_as(world, Class::OnDemand, false)
}

fn formatted_as(world: &World, class: Class, ecc: bool) -> Pool {
    let pool = world.format();
    for (name, class) in [("a", Class::OnDemand), ("b", class)] {
        pool.create_with(name, &CreateOptions::new(4096).class(class).ecc(ecc)).unwrap();
    }
    pool
}

fn step(a: &TxObject<Cells>, b: &TxObject<Cells>, thread: usize) -> u64 {
    transaction(&[a, b], |tx| {
        tx.update(&a[thread * 8], |value| value + 1)?;
        tx.update(&b[thread * 8], |value| value + 1)?;
        let number = tx.read(&b[0])? + 1;
        tx.write(&b[0], number)?;
        Ok::<_, Error>(number)
    })
    .unwrap()
}

pub fn judge(pool: &Pool) -> u64 {
    let (a, b) = (attach(pool, "a"), attach(pool, "b"));
    for object in [&a, &b].into_iter().filter(|object| pool.stat(object.name()).unwrap().ecc) {
        let found = object.scrub(&mut |_, _| {}).unwrap();
        assert_eq!((found.repaired, found.lost), (0, vec![]), "{}", object.name());
    }
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
    all
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = support::options_of(&std::env::var("WORK_WORLD").unwrap()).open(path).unwrap();
    pool.set_epochs(EpochBounds { every: Duration::from_millis(3), bytes: 1 << 20 });
    let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
    std::thread::scope(|scope| {
        for thread in 1..5 {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                loop {
                    println!("ROUND {}", step(a, b, thread));
                }
            });
        }
    });
}

#[test]
fn s1_09_killed_at_any_moment_nothing_committed_on_demand_is_lost() {
    for (ground, ecc) in [(Ground::Memory, false), (Ground::File, false), (Ground::Memory, true)] {
        let world = World::new(ground, Tracking::Explicit, false);
        drop(formatted_as(&world, Class::OnDemand, ecc));
        let (mut random, mut said) = (Seeded::new(9), 0);
        for _ in 0..15 {
            let last = random.usize(1..400);
            let killed = support::killed_at_work(&world, "on_demand_deaths::work", last);
            said = killed.unwrap_or(said).max(said);
            let all = judge(&world.open());
            assert!(all >= said, "{said} was committed, {all} are there");
        }
        assert!(said > 300, "only {said} transactions");
    }
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn stepped() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let world = std::env::var("WORK_WORLD").unwrap();
    let stop = || {
        // SAFETY: the parent resumes the thread.
        unsafe { libc::raise(libc::SIGSTOP) };
    };
    let traced = || {
        // SAFETY: the parent is to trace this thread.
        let (tid, done) = unsafe { (libc::gettid(), libc::ptrace(libc::PTRACE_TRACEME)) };
        println!("TID {} {}", tid, done);
    };
    let pool = Pool::open(path).unwrap();
    if world == "recovery" {
        traced();
        stop();
        drop(pool.attach_read("a").unwrap());
        stop();
        return;
    }
    if world == "growth" {
        traced();
        return crate::heaps_on_demand::grow_between(&pool, stop);
    }
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 20 });
    let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
    if world != "first" {
        step(&a, &b, 1);
    }
    traced();
    stop();
    step(&a, &b, 1);
    stop();
    std::process::exit(0);
}

struct Traced {
    child: Child,
    tid: i32,
}

impl Traced {
    fn start(world: &World, kind: &str, mutant: Option<&str>) -> Option<Traced> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "on_demand_deaths::stepped", "--nocapture", "--ignored"])
            .env("WORK_POOL", world.path())
            .env("WORK_WORLD", kind)
            .stdout(Stdio::piped());
        if let Some(mutant) = mutant {
            command.env("INDELIBLE_MUTANT", mutant);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find_map(|line| Some(line.split_once("TID ")?.1.to_owned()));
        let line = line.expect("it says who it is");
        let (tid, done) = line.split_once(' ').unwrap();
        let mut traced = Traced { child, tid: tid.parse().unwrap() };
        if done != "0" {
            traced.kill();
            return None;
        }
        std::mem::forget(lines);
        assert!(traced.stopped(), "it stops");
        Some(traced)
    }

    fn stopped(&mut self) -> bool {
        let mut status = 0;
        // SAFETY: a child of this thread's, which traces it.
        let waited = unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL) };
        assert!(waited == self.tid && libc::WIFSTOPPED(status), "{waited} {status:#x}");
        libc::WSTOPSIG(status) == libc::SIGSTOP
    }

    fn step(&mut self, how: libc::c_uint) -> bool {
        // SAFETY: the thread is stopped, and this one traces it.
        let done = unsafe { libc::ptrace(how, self.tid, 0, 0) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        !self.stopped()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        let mut status = 0;
        // SAFETY: a child of this thread's, which traces it; it may be gone already.
        unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL) };
        self.child.wait().unwrap();
    }
}

fn how(kind: &str) -> libc::c_uint {
    if kind == "commit" { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_SYSCALL }
}

pub fn killed_after(world: &World, kind: &str, mutant: Option<&str>, steps: u64) -> Option<(u64, bool)> {
    let mut traced = Traced::start(world, kind, mutant)?;
    for step in 0..steps {
        if !traced.step(how(kind)) {
            traced.kill();
            return Some((step, true));
        }
    }
    traced.kill();
    Some((steps, false))
}

pub fn length(world: &World, kind: &str) -> Option<u64> {
    let found = killed_after(world, kind, None, u64::MAX).map(|(steps, _)| steps);
    if found.is_none() {
        indelible_testing::not_tested("deaths at chosen instructions: ptrace is not allowed here");
    }
    found
}

fn killed_in_commits(class: Class, ecc: bool, mutant: Option<&str>, deaths: u64) {
    let (ground, kind) = match class {
        Class::OnDemand => (Ground::Memory, "commit"),
        _ => (Ground::File, "both"),
    };
    let world = World::new(ground, Tracking::Explicit, false);
    drop(formatted_as(&world, class, ecc));
    let Some(length) = length(&world, kind) else { return };
    eprintln!("{kind}: {length} steps, check words: {ecc}");
    let mut before = judge(&world.open());
    for death in 0..deaths {
        let steps = death * length / deaths;
        let (_, ended) = killed_after(&world, kind, mutant, steps).unwrap();
        let all = judge(&world.open());
        assert!(
            all == before + 1 && !ended || all == before + 2,
            "{before} before, {all} after {steps} steps"
        );
        before = all;
    }
}

#[test]
fn s1_09_killed_at_any_instruction_of_a_commit_it_is_whole_or_absent() {
    killed_in_commits(Class::OnDemand, false, None, 120);
}

#[test]
fn s1_12_killed_at_any_instruction_of_a_commit_words_have_their_check_words() {
    killed_in_commits(Class::OnDemand, true, None, 160);
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn faulting() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = Pool::open(path).unwrap();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 20 });
    let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
    step(&a, &b, 1);
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pages of the second object, which may be loaded from still; and no core is
    // written.
    let done = unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::mprotect(std::ptr::from_ref(b.root()).cast_mut().cast(), 4096, libc::PROT_READ)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    step(&a, &b, 1);
    std::process::exit(0);
}

fn die_between_lines(world: &World, mutant: Option<&str>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "on_demand_deaths::faulting", "--nocapture", "--ignored"])
        .env("WORK_POOL", world.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(mutant) = mutant {
        command.env("INDELIBLE_MUTANT", mutant);
    }
    let status = command.status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
}

fn died_between_lines(mutant: Option<&str>) {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    drop(formatted(&world));
    for round in 1..=3 {
        die_between_lines(&world, mutant);
        assert_eq!(judge(&world.open()), 2 * round, "round {round}");
    }
}

#[test]
fn s1_09_a_process_that_dies_between_the_lines_of_a_commit_has_made_it() {
    died_between_lines(None);
}

#[test]
fn s1_09_killed_at_any_system_call_of_a_commit_over_both_classes_it_is_whole_or_absent() {
    killed_in_commits(Class::Transactional, false, None, 60);
    killed_in_commits(Class::Transactional, true, None, 40);
}

#[test]
fn s1_09_a_recovery_may_die_at_any_system_call() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted(&world));
    let Some(commit) = length(&world, "commit") else { return };
    let Some(recovery) = length(&world, "recovery") else { return };
    eprintln!("a recovery has {recovery} beginnings and ends of system calls");
    assert!(recovery > 50, "it makes system calls");
    let mut before = judge(&world.open());
    let mut random = Seeded::new(3);
    for steps in (0..recovery).step_by(recovery.div_ceil(80) as usize) {
        killed_after(&world, "commit", None, random.u64(0..commit)).unwrap();
        for steps in [steps, random.u64(0..recovery)] {
            killed_after(&world, "recovery", None, steps).unwrap();
        }
        let all = judge(&world.open());
        assert!((1..=2).contains(&(all - before)), "{before} before, {all} after {steps} steps");
        before = all;
    }
}

#[test]
fn s1_09_nothing_stays_in_memory_once_the_pool_has_it() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = formatted(&world);
    let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
    step(&a, &b, 1);
    assert_eq!(support::memory_of(&pool).len(), 4, "two objects, a log and the head");
    drop((a, b));
    assert_eq!(support::memory_of(&pool).len(), 0);
    support::killed_at_work(&world, "on_demand_deaths::work", 100);
    let left = support::memory_of(&pool);
    assert!(left.len() >= 4);
    pool.collect(&mut |_, _| {}).unwrap();
    assert_eq!(support::memory_of(&pool), left, "they have what is nowhere else");
    let name = left[0].file_name().unwrap().to_str().unwrap();
    let boot = name.rsplit_once('-').unwrap().1;
    let id: String = pool.id().iter().map(|byte| format!("{byte:02x}")).collect();
    let stray = std::path::Path::new("/dev/shm").join(format!("indelible-{id}-{:032x}-{:016x}-{boot}", 0, 5));
    std::fs::copy(&left[0], &stray).unwrap();
    std::fs::set_permissions(&stray, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    judge(&pool);
    assert_eq!(support::memory_of(&pool), [stray]);
    assert!(pool.collect(&mut |_, _| {}).unwrap().removed > 0);
    assert_eq!(support::memory_of(&pool).len(), 0);
}

#[test]
fn s1_09_a_log_that_was_being_made_does_not_stay() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = formatted(&world);
    let Some(first) = length(&world, "first") else { return };
    assert!(first > 10, "it makes system calls");
    judge(&pool);
    for steps in 0..first {
        killed_after(&world, "first", None, steps).unwrap();
        judge(&pool);
        assert_eq!(support::memory_of(&pool), [] as [std::path::PathBuf; 0], "{steps} of {first} steps");
    }
}

type Call = (&'static str, fn(&Pool));

#[test]
fn s1_09_every_call_that_needs_the_bytes_recovers_them() {
    let calls: [Call; 4] = [
        ("read", |pool| drop(pool.attach_read("b").unwrap())),
        ("snapshot", |pool| pool.snapshot("b", "then", b"").unwrap()),
        ("resize", |pool| pool.resize("b", 8192, b"").unwrap()),
        ("class", |pool| pool.set_class("b", b"", Class::Psync).unwrap()),
    ];
    for (name, call) in calls {
        let world = World::new(Ground::File, Tracking::Explicit, false);
        drop(formatted(&world));
        let said = support::killed_at_work(&world, "on_demand_deaths::work", 50).unwrap();
        let pool = world.open();
        call(&pool);
        let b = pool.attach_read("b").unwrap();
        let all = u64::from_le_bytes(b.as_slice()[..8].try_into().unwrap());
        assert!(all >= said, "{name}: {said} was committed, {all} are there");
        drop(b);
        pool.set_class("b", b"", Class::OnDemand).unwrap();
        assert_eq!(judge(&pool), all, "{name}: the other object was recovered with it");
    }
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn fails_and_dies() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let how: u64 = std::env::var("WORK_WORLD").unwrap().parse().unwrap();
    let sim = SimMedium::from_bytes(&std::fs::read(&path).unwrap(), SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(sim.handle()), false).unwrap();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 30 });
    let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
    let mut all = step(&a, &b, 1);
    a.tx_sync().unwrap();
    (0..5).for_each(|_| all = step(&a, &b, 2));
    let fault = if how & 1 == 0 { Fault::Io } else { Fault::After };
    sim.fail_at(OpKind::WriteDurable, 0, fault);
    assert_eq!(a.tx_sync().unwrap_err().kind(), ErrorKind::Io);
    sim.clear_faults();
    assert!(a.transaction(|tx| tx.read(&a[0])).is_err() && a.psync().is_err() && b.tx_sync().is_err());
    let _ = pool.create("another", 4096);
    if how & 2 != 0 {
        a.detach().unwrap_err();
        let attached = pool.attach_with_on_demand::<Cells>("a", b"").map(drop);
        assert_eq!(attached.unwrap_err().kind(), ErrorKind::Poisoned);
        std::mem::forget(b);
    } else if how & 4 != 0 {
        drop((a, b));
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        all = step(&a, &b, 3);
        sim.fail_at(OpKind::WriteDurable, 0, fault);
        a.psync().unwrap_err();
        sim.clear_faults();
        std::mem::forget((a, b));
    } else {
        std::mem::forget((a, b));
    }
    std::fs::write(&path, sim.to_bytes()).unwrap();
    println!("ROUND {all}");
    std::process::abort();
}

#[test]
fn s1_09_an_epoch_fails_calls_go_on_and_the_process_dies() {
    for (how, ecc) in (0..6).flat_map(|how| [(how, false), (how, true)]) {
        let world = World::new(Ground::File, Tracking::Explicit, false);
        drop(formatted_as(&world, Class::OnDemand, ecc));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "on_demand_deaths::fails_and_dies", "--nocapture", "--ignored"]);
        let command = command.env("WORK_POOL", world.path()).env("WORK_WORLD", how.to_string());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let all = text.split_once("ROUND ").unwrap_or_else(|| panic!("{how}: {output:?}")).1;
        let pool = world.open();
        assert_eq!(judge(&pool).to_string(), all.lines().next().unwrap(), "{how}");
        assert!(support::memory_of(&pool).is_empty(), "{how}");
    }
}

#[test]
fn s1_13_words_that_are_damaged_in_the_memory_of_the_dead_are_repaired() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted_as(&world, Class::OnDemand, true));
    let said = support::killed_at_work(&world, "on_demand_deaths::work", 50).unwrap();
    let pool = world.open();
    let mut random = Seeded::new(13);
    for name in ["a", "b"] {
        let id: String = pool.stat(name).unwrap().id.iter().map(|byte| format!("{byte:02x}")).collect();
        let memory = support::memory_of(&pool);
        let own = memory.iter().find(|path| path.to_string_lossy().contains(&id)).unwrap();
        let mut bytes = std::fs::read(own).unwrap();
        for pair in bytes[8192..].as_chunks_mut::<16>().0 {
            (0..6).for_each(|_| pair[random.usize(..16)] ^= 1 << random.u32(..8));
        }
        std::fs::write(own, bytes).unwrap();
    }
    for name in ["a", "b"] {
        let object = attach(&pool, name);
        let found = object.scrub(&mut |_, _| {}).unwrap();
        assert!(found.repaired > 450 && found.lost.is_empty(), "{name}: {found:?}");
    }
    assert!(judge(&pool) >= said);
}

#[test]
fn memory_of_another_release_is_refused_by_its_version() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted(&world));
    die_between_lines(&world, None);
    let pool = world.open();
    let left = support::memory_of(&pool);
    assert_eq!(left.len(), 4, "two objects, a log and the head");
    for path in &left {
        let whole = std::fs::read(path).unwrap();
        let mut other = whole.clone();
        other[16] += 1;
        std::fs::write(path, other).unwrap();
        let refused = pool.attach_with_on_demand::<Cells>("a", b"").map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Version, "{refused}");
        assert!(refused.to_string().contains("another release"), "{refused}");
        std::fs::write(path, whole).unwrap();
    }
    assert_eq!(support::memory_of(&pool), left);
    assert_eq!(judge(&pool), 2, "the release that made it has it all");
}

#[test]
fn memory_of_a_deleted_pool_is_removed_by_its_path() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted(&world));
    support::killed_at_work(&world, "on_demand_deaths::work", 50).unwrap();
    let pool = world.open();
    let left = support::memory_of(&pool);
    assert!(left.len() >= 4);
    let none = indelible::remove_leftovers(world.path()).unwrap();
    assert_eq!(
        (none.removed, none.in_use, support::memory_of(&pool)),
        (0, 0, left.clone()),
        "the pool is there"
    );
    let elsewhere = world.dir().join("elsewhere");
    assert_eq!(indelible::remove_leftovers(&elsewhere).unwrap().removed, 0);
    std::fs::write(&elsewhere, "no pool").unwrap();
    indelible::remove_leftovers(&elsewhere).unwrap_err();
    std::fs::remove_file(world.path()).unwrap();
    drop(Pool::format(world.path(), 16 << 20).unwrap());
    let removed = indelible::remove_leftovers(world.path()).unwrap();
    assert_eq!((removed.removed, removed.in_use), (left.len() as u64, 0));
    assert!(support::memory_of(&pool).is_empty());
    let living = World::new(Ground::File, Tracking::Explicit, false);
    let living_pool = formatted(&living);
    let (a, b) = (attach(&living_pool, "a"), attach(&living_pool, "b"));
    step(&a, &b, 1);
    std::fs::remove_file(living.path()).unwrap();
    let kept = indelible::remove_leftovers(living.path()).unwrap();
    assert_eq!((kept.removed, kept.in_use), (0, 4), "a process has it");
}

#[test]
fn s1_09_commits_of_the_dead_are_recovered_when_somebody_asks() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = formatted(&world);
    assert_eq!(pool.recover().unwrap(), 0);
    support::killed_at_work(&world, "on_demand_deaths::work", 50).unwrap();
    pool.create_with("c", &CreateOptions::new(4096).class(Class::OnDemand)).unwrap();
    let c = attach(&pool, "c");
    c.transaction(|tx| tx.write(&c[0], 1)).unwrap();
    assert_eq!(pool.recover().unwrap(), 2, "two objects; the third one's process lives");
    assert_eq!(pool.recover().unwrap(), 0);
    pool.collect(&mut |_, _| {}).unwrap();
    assert_eq!(support::memory_of(&pool).len(), 3, "an object, a log and the head");
    judge(&pool);
}

#[test]
fn s1_09_memory_that_is_gone_is_an_error_until_it_is_given_up() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted(&world));
    support::killed_at_work(&world, "on_demand_deaths::work", 50).unwrap();
    let pool = world.open();
    let hidden = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let moved: Vec<_> = support::memory_of(&pool)
        .into_iter()
        .map(|path| {
            let to = hidden.path().join(path.file_name().unwrap());
            std::fs::rename(&path, &to).unwrap();
            (path, to)
        })
        .collect();
    for _ in 0..2 {
        let lost = pool.attach_with_on_demand::<Cells>("a", b"").map(drop).unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Gone, "{lost}");
        assert!(lost.to_string().contains("pmo set --give-memory-up"), "{lost}");
        assert_eq!(pool.attach_read("b").map(drop).unwrap_err().kind(), ErrorKind::Gone);
    }
    for (path, to) in &moved {
        std::fs::rename(to, path).unwrap();
    }
    let id = pool.list().map(Result::unwrap).find(|stat| stat.name == "a").unwrap().id;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let own =
        support::memory_of(&pool).into_iter().find(|path| path.to_string_lossy().contains(&id)).unwrap();
    std::fs::write(&own, b"something else").unwrap();
    let damaged = pool.attach_with_on_demand::<Cells>("a", b"").map(drop).unwrap_err();
    assert_eq!(damaged.kind(), ErrorKind::Damaged, "{damaged}");
    assert!(pool.give_memory_up("a", b"").unwrap());
    drop(attach(&pool, "a"));
    drop(attach(&pool, "b"));
}

#[test]
fn s1_09_a_damaged_log_is_refused() {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    drop(formatted(&world));
    support::killed_at_work(&world, "on_demand_deaths::work", 50).unwrap();
    let pool = world.open();
    let log = support::memory_of(&pool)
        .into_iter()
        .find(|path| path.to_string_lossy().contains(&format!("-{:032x}-", 1)))
        .unwrap();
    let whole = std::fs::read(&log).unwrap();
    for (at, word) in [(8, u64::MAX), (32, u64::MAX), (32, 1)] {
        let mut bytes = whole.clone();
        let stat = pool.store().find("a").unwrap();
        let entry = [9, 1, 9, stat.offset, 0, 0];
        for (nth, value) in entry.iter().enumerate() {
            bytes[4096 + 8 * nth..4104 + 8 * nth].copy_from_slice(&u64::to_le_bytes(*value));
        }
        bytes[4096 + at..4104 + at].copy_from_slice(&word.to_le_bytes());
        std::fs::write(&log, bytes).unwrap();
        let damaged = pool.attach_with_on_demand::<Cells>("a", b"").map(drop).unwrap_err();
        assert_eq!(damaged.kind(), ErrorKind::Damaged, "{damaged}");
    }
    std::fs::write(&log, whole).unwrap();
    judge(&pool);
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn every_broken_rule_is_noticed() {
        let fails = |mutant: Mutant, run: &dyn Fn()| {
            let failed = with_mutant(mutant, || catch_unwind(AssertUnwindSafe(run)));
            assert!(failed.is_err(), "{mutant:?} goes unnoticed");
        };
        for mutant in [Mutant::LogUnvalidated, Mutant::LogClearedEarly] {
            fails(mutant, &|| {
                super::killed_in_commits(super::Class::OnDemand, false, Some(&format!("{mutant:?}")), 300)
            });
            fails(mutant, &|| super::died_between_lines(Some(&format!("{mutant:?}"))));
        }
        fails(Mutant::CheckWordApart, &|| {
            super::killed_in_commits(super::Class::OnDemand, true, Some("CheckWordApart"), 300)
        });
        fails(Mutant::LogForgotten, &|| super::died_between_lines(None));
        fails(Mutant::LogForgotten, &|| super::killed_in_commits(super::Class::OnDemand, false, None, 300));
        fails(
            Mutant::MemoryForgotten,
            &super::s1_09_killed_at_any_moment_nothing_committed_on_demand_is_lost,
        );
    }
}
