//! `pmo guard` as a service, and its related commands.

use crate::common::{PMO, Rig, Run, pmo};
use indelible::{Class, CreateOptions, EpochBounds, Pool, TxCell, TxObject};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Pid, Signal, Uid, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Cells = [TxCell<u64>; 64];

struct Service {
    child: Child,
    socket: PathBuf,
}

impl Service {
    fn start(rig: &Rig, options: &[&str]) -> Service {
        Service::start_by(Command::new(PMO), rig, options)
    }

    fn start_by(mut command: Command, rig: &Rig, options: &[&str]) -> Service {
        let (socket, manager) = (rig.path("guard.sock"), rig.path("notify"));
        let notified = UnixDatagram::bind(&manager).unwrap();
        notified.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        command.args(["guard", "run", "--json", "--socket"]).arg(&socket).args(options);
        command.env("NOTIFY_SOCKET", &manager).stdout(Stdio::null()).stdin(Stdio::null());
        let child = command.spawn().unwrap();
        let mut said = [0; 64];
        let got = notified.recv(&mut said).unwrap();
        assert_eq!(&said[..got], b"READY=1\n");
        std::fs::remove_file(&manager).unwrap();
        Service { child, socket }
    }

    fn ask(&self, what: &str) -> Run {
        Run::of(Command::new(PMO).args(["guard", what, "--json", "--socket"]).arg(&self.socket), b"")
    }

    fn status(&self) -> Value {
        self.ask("status").fine().json()
    }

    fn until(&self, what: &str, done: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let status = self.status();
            if done(&status) {
                return status;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "not in time: {what}: {status}");
        }
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn attach(pool: &Path, socket: &Path) -> (Pool, TxObject<Cells>) {
    if !pool.exists() {
        Pool::format(pool, 16 << 20).unwrap();
    }
    let pool = Pool::open(pool).unwrap();
    pool.set_guard(socket);
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 40 });
    if pool.stat("a").is_err() {
        pool.create_with("a", &CreateOptions::new(4096).class(Class::OnDemand)).unwrap();
    }
    let a = pool.attach_transactional("a").unwrap();
    (pool, a)
}

fn set(a: &TxObject<Cells>, cell: usize, value: u64) {
    a.transaction(|tx| tx.write(&a[cell], value)).unwrap();
}

fn durable(pool: &Pool) -> u64 {
    let seen = pool.attach_snapshot_anywhere("a", b"").unwrap();
    u64::from_le_bytes(seen.as_slice()[..8].try_into().unwrap())
}

#[test]
fn s1_10_a_signal_has_commits_become_durable() {
    let rig = Rig::new();
    let service = Service::start(&rig, &["--signal", "--hold-up", "30"]);
    let (pool, a) = attach(&rig.pool, &service.socket);
    service.until("it registers", |status| status["writers"].as_array().unwrap().len() == 1);
    set(&a, 0, 7);
    assert_eq!(durable(&pool), 0, "nobody asked for it");
    let rehearsal = service.ask("test").fine().json();
    assert_eq!(
        (&rehearsal["durable"], &rehearsal["writers"][0]["outcome"]),
        (&true.into(), &"published".into())
    );
    assert_eq!(durable(&pool), 7);
    set(&a, 0, 8);
    service.signal(Signal::POWER);
    let of_power = |status: &Value| status["last"]["cause"] == "signal SIGPWR";
    let status = service.until("it publishes", of_power);
    assert_eq!((&status["failing"], &status["last"]["durable"]), (&true.into(), &true.into()), "{status}");
    assert_eq!(durable(&pool), 8);
    set(&a, 0, 9);
    assert_eq!(durable(&pool), 9, "durable when it returned");
    let refused = service.ask("test");
    assert!(refused.code == Some(1) && refused.err.contains("the power fails now"), "{refused:?}");
    let text =
        Run::of(Command::new(PMO).args(["guard", "status", "--socket"]).arg(&service.socket), b"").fine().out;
    assert!(
        text.contains("the power fails; ") && text.contains("published") && text.contains("t.pmo"),
        "{text}"
    );
}

#[test]
#[ignore = "run by the other tests as a process of its own"]
fn writer() {
    let (Some(pool), Some(socket)) = (std::env::var_os("GUARD_POOL"), std::env::var_os("GUARD_SOCKET"))
    else {
        return;
    };
    let (_pool, a) = attach(Path::new(&pool), Path::new(&socket));
    for value in 1.. {
        set(&a, 0, value);
        println!("ROUND {value}");
    }
}

fn killed(pool: &Path, service: &Service, user: Option<u32>) -> Option<u64> {
    killed_after(pool, service, user, || ())
}

fn killed_after(pool: &Path, service: &Service, user: Option<u32>, before: impl FnOnce()) -> Option<u64> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "guard::writer", "--nocapture", "--ignored"]);
    command.env("GUARD_POOL", pool).env("GUARD_SOCKET", &service.socket).stdout(Stdio::piped());
    if let Some(user) = user {
        command.uid(user).gid(user).current_dir("/");
    }
    let mut child = command.spawn().ok()?;
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut values = lines.filter_map(|line| line.split_once("ROUND ")?.1.parse::<u64>().ok());
    let first = values.next();
    if first.is_some() {
        service.until("it registers", |status| !status["writers"].as_array().unwrap().is_empty());
        values.by_ref().take(50).for_each(drop);
    }
    before();
    child.kill().unwrap();
    let last = values.last().or(first);
    child.wait().unwrap();
    last
}

#[test]
fn s1_09_the_service_recovers_a_process_that_was_killed() {
    let rig = Rig::new();
    let service = Service::start(&rig, &[]);
    let last = killed(&rig.pool, &service, None).unwrap();
    let status = service.until("it recovers", |status| status["recovered"] == 1);
    assert_eq!((&status["lost"], status["writers"].as_array().unwrap().len()), (&0.into(), 0));
    let pool = Pool::open(&rig.pool).unwrap();
    assert!(durable(&pool) >= last && last > 50 && pool.pending("a").unwrap().is_none());
    if !rustix::process::geteuid().is_root() {
        return indelible_testing::not_tested("a guard of root with processes of other users");
    }
    let dir = tempfile::TempDir::new_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::set_permissions(rig.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = dir.path().join("theirs.pmo");
    let Some(last) = killed(&path, &service, Some(65534)) else {
        return indelible_testing::not_tested(
            "processes of other users, which cannot run this program from here",
        );
    };
    let status = service.until("it ends", |status| status["recovered"] == 2 || status["lost"] == 1);
    if status["lost"] == 1 {
        return indelible_testing::not_tested(
            "recoveries of other users, which cannot run the tool from here",
        );
    }
    let pool = Pool::open(&path).unwrap();
    assert!(durable(&pool) >= last);
}

#[test]
fn a_service_of_a_parent_that_ignored_ends_of_children_recovers() {
    let rig = Rig::new();
    let mut command = Command::new("env");
    command.args(["--ignore-signal=CHLD", PMO]);
    let service = Service::start_by(command, &rig, &[]);
    let last = killed(&rig.pool, &service, None).unwrap();
    let ended = |status: &Value| status["recovered"] == 1 || status["lost"] == 1;
    let status = service.until("it recovers", ended);
    assert_eq!(status["lost"], 0, "{status}");
    assert!(durable(&Pool::open(&rig.pool).unwrap()) >= last);
}

#[test]
fn a_service_that_is_told_to_end_recovers_dead_processes_first() {
    let rig = Rig::new();
    let mut service = Service::start(&rig, &[]);
    let last = killed_after(&rig.pool, &service, None, || service.signal(Signal::STOP)).unwrap();
    service.signal(Signal::TERM);
    service.signal(Signal::CONT);
    let status = service.child.wait().unwrap();
    assert!(status.success() && !service.socket.exists(), "{status}");
    let pool = Pool::open(&rig.pool).unwrap();
    assert!(pool.pending("a").unwrap().is_none(), "it is for the next attach");
    assert!(durable(&pool) >= last && last > 50);
}

fn hello(pool: &Path) -> String {
    let path: String = pool.to_str().unwrap().bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("writer 1 {} {} {path}\n", "0".repeat(32), "1".repeat(16))
}

#[test]
fn a_recovery_that_is_stopped_is_killed_when_its_time_is_over() {
    let rig = Rig::new();
    let locked = rig.path("locked.pmo");
    Pool::format(&locked, 1 << 20).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&locked).unwrap();
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let service = Service::start(&rig, &["--recovery", "4"]);
    for _ in 0..4 {
        let mut writer = UnixStream::connect(&service.socket).unwrap();
        writer.write_all(hello(&locked).as_bytes()).unwrap();
    }
    let threads = format!("/proc/{}/task", service.child.id());
    let (begin, mut stopped) = (Instant::now(), std::collections::BTreeSet::new());
    while stopped.len() < 4 {
        for thread in std::fs::read_dir(&threads).unwrap() {
            let children = std::fs::read_to_string(thread.unwrap().path().join("children"));
            for child in children.unwrap_or_default().split_whitespace().map(|id| id.parse().unwrap()) {
                // The child changes its user only once its program runs.
                let words = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                if words.split(|byte| *byte == 0).nth(1) == Some(b"recover") {
                    let _ = kill_process(Pid::from_raw(child).unwrap(), Signal::STOP);
                    stopped.insert(child);
                }
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no recoveries: {}", service.status());
    }
    let last = killed(&rig.pool, &service, None).unwrap();
    let status = service.until("it recovers", |status| status["recovered"] == 1 && status["lost"] == 4);
    assert_eq!(status["writers"].as_array().unwrap().len(), 0);
    assert!(durable(&Pool::open(&rig.pool).unwrap()) >= last);
    drop(file);
}

/// Connections of another user; `None`: impossible here.
fn as_user(user: u32, socket: &Path, count: usize, says: &str) -> Option<Vec<UnixStream>> {
    let (socket, says) = (socket.to_owned(), says.to_owned());
    let connect = move || {
        let user = Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user).ok()?;
        let connect = |_| UnixStream::connect(&socket).ok();
        let made: Option<Vec<UnixStream>> = (0..count).map(connect).collect();
        made.inspect(|made| made.iter().for_each(|mut stream| drop(stream.write_all(says.as_bytes()))))
    };
    std::thread::spawn(connect).join().unwrap()
}

#[test]
fn users_take_budget_and_connections_from_themselves_alone() {
    let rig = Rig::new();
    std::fs::set_permissions(rig.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let service = Service::start(&rig, &["--hold-up", "5", "--safety", "1", "--bandwidth", "1M"]);
    let (_pool, _a) = attach(&rig.pool, &service.socket);
    let of_root = |status: &Value| {
        let writers = status["writers"].as_array().unwrap().iter();
        writers.filter(|writer| writer["uid"] == 0).map(|writer| writer["budget"].clone()).collect::<Vec<_>>()
    };
    let writers = |status: &Value| status["writers"].as_array().unwrap().len();
    let status = service.until("it registers", |status| writers(status) == 1);
    assert_eq!(status["writers"][0]["budget"], 4 << 20);
    if !rustix::process::geteuid().is_root() {
        return indelible_testing::not_tested("a guard of root with connections of other users");
    }
    let hello = hello(Path::new("/nowhere"));
    let Some(fakes) = as_user(60001, &service.socket, 90, &hello) else {
        return indelible_testing::not_tested("other users, who cannot connect from here");
    };
    let status = service.until("all register", |status| writers(status) == 91);
    assert_eq!(of_root(&status), [2 << 20], "a user takes a half, however many writers it has");
    let more: Vec<_> =
        (60002..60006).map(|user| as_user(user, &service.socket, 90, &hello).unwrap()).collect();
    service.status();
    let late = as_user(60009, &service.socket, 1, &hello).unwrap();
    let of_user = |status: &Value, user: u32| {
        status["writers"].as_array().unwrap().iter().filter(|writer| writer["uid"] == user).count()
    };
    let status = service.until("it registers", |status| of_user(status, 60009) == 1);
    assert!(of_user(&status, 60001) < 90 && of_user(&status, 60001) > 60, "{status}");
    let (_other, _b) = attach(&rig.path("other.pmo"), &service.socket);
    service.until("it registers", |status| of_user(status, 0) == 2);
    drop((fakes, more, late));
}

#[test]
fn a_guard_says_why_it_cannot_be_or_answer() {
    let rig = Rig::new();
    let service = Service::start(&rig, &["--signal"]);
    let socket = service.socket.to_str().unwrap().to_owned();
    let run = |more: &[&str]| pmo(["guard", "run", "--socket", &socket].iter().chain(more));
    run(&["--signal"]).fails(4, "another guard has the socket");
    run(&["--nut", "ups"]).fails(2, "UPS@HOST");
    run(&["--line", "/dev/null:cd"]).fails(2, "cannot watch /dev/null:cd");
    run(&["--line", "/nowhere/ttyS0:cd"]).fails(2, "cannot watch /nowhere/ttyS0:cd");
    run(&["--signal", "--hold-up", "0"]).fails(2, "from 0.001 seconds to a day");
    let absent = rig.path("absent.sock");
    pmo(["guard", "status", "--socket", absent.to_str().unwrap()]).fails(5, "no guard listens at");
    pmo(["guard", "test", "--socket", absent.to_str().unwrap()]).fails(5, "no guard listens at");
    let power = rig.path("power");
    let dry =
        ["guard", "run", "--dry-run", "--hold-up", "1.05", "--safety", "0.5", "--bandwidth", "1M", "--file"];
    let dry = || dry.iter().map(PathBuf::from).chain([power.clone()]);
    let report = pmo(dry().chain(["--json".into()])).fine().json();
    assert_eq!((&report["time_ms"], &report["budget"]), (&500.into(), &(512 << 10).into()));
    assert_eq!(report["detectors"][0]["condition"], "fine");
    std::fs::write(&power, "failing").unwrap();
    assert!(pmo(dry()).fine().out.contains("is failing, and tells within 50 ms"));
    service.signal(Signal::STOP);
    let silent = pmo(["guard", "status", "--socket", &socket, "--patience", "0.1"]);
    silent.fails(1, "does not answer: not in time");
    service.signal(Signal::CONT);
    assert_eq!(service.status()["failing"], false);
}

#[test]
fn commits_that_are_not_durable_are_shown_and_recovered() {
    let rig = Rig::new();
    let (pool, a) = attach(&rig.pool, &rig.path("no.sock"));
    let pending = || rig.pmo(["stat"], ["a", "--json"]).fine().json()["pending"].clone();
    assert_eq!((&pending()["transactions"], &pending()["bytes"]), (&0.into(), &0.into()));
    (0..3).for_each(|cell| set(&a, 8 * cell, 1));
    assert_eq!((&pending()["transactions"], &pending()["bytes"]), (&3.into(), &192.into()));
    assert!(pending()["age_seconds"].as_f64().unwrap() > 0.0);
    let text = rig.pmo(["stat"], ["a"]).fine().out;
    assert!(text.contains("3 transactions of the process, 192 B of the object"), "{text}");
    let rows = rig.pmo(["top"], ["--once", "--json", "--interval", "0.01"]).fine().json();
    assert_eq!(rows[0]["pending"]["bytes"], 192);
    let metrics = rig.pmo(["metrics"], [""; 0]).fine().out;
    for figure in
        ["pmo_object_pending_bytes{", "pmo_object_pending_transactions{", "pmo_object_commits_at_once_total{"]
    {
        assert!(metrics.lines().any(|line| line.starts_with(figure)), "{figure}: {metrics}");
    }
    assert_eq!(rig.pmo(["recover"], [""; 0]).fine().out, "0 objects recovered\n", "its process lives");
    assert_eq!(rig.pmo(["gc"], ["--deleted"]).fine().out, "0 memory files removed\n", "the pool is there");
    a.psync().unwrap();
    assert_eq!(pending()["bytes"], 0);
    drop((a, pool));
    assert!(pending().is_null());
}

#[test]
fn on_demand_in_a_pool_in_memory_is_noted() {
    let rig = Rig::new();
    let of_class = |name: &'static str, class: &'static str| {
        rig.pmo(["--medium", "memory", "create"], [name, "4K", "--class", class])
    };
    let noted = of_class("a", "on-demand");
    assert!(noted.code == Some(0) && noted.err.starts_with("note: the pool is in memory"), "{noted:?}");
    of_class("b", "transactional").fine();
    let noted = rig.pmo(["--medium", "memory", "set"], ["b", "--class", "on-demand"]);
    assert!(noted.code == Some(0) && noted.err.starts_with("note: the pool is in memory"), "{noted:?}");
    rig.pmo(["--medium", "file", "create"], ["c", "4K", "--class", "on-demand"]).fine();
}
