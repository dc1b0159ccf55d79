//! Bounded waits, errors that name the holder, and readers that block no writer.
//!
//! Stopped processes, and those of another pid namespace, are this test itself, run again.

use indelible::collections::PMutex;
use indelible::{ErrorKind, Heap, MediumKind, Pool, PoolOptions, State};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

struct Other {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    fn start(command: &[&str], what: &str, pool: &Path) -> Option<Other> {
        let mut words = command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        words.push(std::env::current_exe().unwrap().to_str().unwrap().to_owned());
        let mut child = Command::new(&words[0]);
        child.args(&words[1..]).args([
            "--exact",
            "waits::obey",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ]);
        child.env("OBEY", what).env("OBEY_POOL", pool).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut other = Other { child, stdin, lines };
        other.answer().map(|answer| {
            assert_eq!(answer, "ready");
            other
        })
    }

    fn answer(&mut self) -> Option<String> {
        let answers = self.lines.by_ref().map_while(Result::ok);
        answers.filter_map(|line| Some(line.split_once("ANSWER ")?.1.trim().to_owned())).next()
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn stop(&self) {
        let pid = self.pid() as libc::pid_t;
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        unsafe {
            assert_eq!(libc::kill(pid, libc::SIGSTOP), 0);
            assert_eq!(libc::waitpid(pid, &mut status, libc::WUNTRACED), pid);
        }
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.stdin.write_all(b"end\n");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "run by the other tests as a process of its own"]
fn obey() {
    let (Ok(what), Some(path)) = (std::env::var("OBEY"), std::env::var_os("OBEY_POOL")) else { return };
    let mut writers = Vec::new();
    let mut files = Vec::new();
    match what.as_str() {
        "write" => writers.push(Pool::open(&path).unwrap().attach("a").unwrap()),
        "lock the table" => {
            let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
            lock(&file, libc::F_WRLCK);
            files.push(file);
        }
        "lock the table for reading" => {
            let file = std::fs::File::open(&path).unwrap();
            lock(&file, libc::F_RDLCK);
            files.push(file);
        }
        "look" => {
            let stat = Pool::open(&path).unwrap().stat("a").unwrap();
            println!("ANSWER ready");
            println!("ANSWER {:?} {:?}", stat.holder, stat.holder_elsewhere);
        }
        _ => panic!("{what}"),
    }
    println!("ANSWER ready");
    let _ = std::io::stdin().lines().next();
}

fn lock(file: &std::fs::File, kind: libc::c_int) {
    use std::os::fd::AsRawFd;
    let mut lock = libc::flock { l_type: kind as i16, l_whence: 0, l_start: 1 << 62, l_len: 1, l_pid: 0 };
    // SAFETY: an open file and a valid `struct flock`.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) }, 0);
}

fn pool() -> (tempfile::TempDir, Pool) {
    let folder = tempfile::tempdir().unwrap();
    let pool =
        PoolOptions::new().medium(MediumKind::File).format(folder.path().join("pool"), 8 << 20).unwrap();
    pool.create("a", 10_000).unwrap();
    (folder, pool)
}

#[test]
fn a_stopped_process_that_has_the_table_is_named() {
    let (_folder, pool) = pool();
    let other = Other::start(&[], "lock the table", pool.path()).unwrap();
    other.stop();
    pool.set_wait(Duration::ZERO);
    let error = pool.create("b", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let text = error.to_string();
    assert!(text.contains(&format!("locked by process {} as writer (", other.pid())), "{text}");
    assert!(text.contains("which is stopped"), "{text}");
    let reader = PoolOptions::new().read_only(true).open(pool.path()).unwrap();
    assert_eq!(reader.stat("a").unwrap().state, State::Detached);
    assert_eq!(reader.list().count(), 1);
    indelible::check(pool.path(), &PoolOptions::new(), &mut |_, _| {}).unwrap();
    drop(other);
    pool.create("b", 1).unwrap();
}

#[test]
fn a_program_that_only_reads_and_locks_is_named_too() {
    let (_folder, pool) = pool();
    let other = Other::start(&[], "lock the table for reading", pool.path()).unwrap();
    pool.set_wait(Duration::ZERO);
    let text = pool.create("b", 1).unwrap_err().to_string();
    assert!(text.contains(&format!("locked by process {} as reader (", other.pid())), "{text}");
}

#[test]
fn a_stopped_writer_is_named() {
    let (_folder, pool) = pool();
    let other = Other::start(&[], "write", pool.path()).unwrap();
    let text = pool.attach("a").unwrap_err().to_string();
    assert!(
        text.contains(&format!("process {} as writer (", other.pid())) && !text.contains("stopped"),
        "{text}"
    );
    other.stop();
    let error = pool.attach("a").unwrap_err();
    assert!(error.kind() == ErrorKind::Held && error.to_string().contains("which is stopped"), "{error}");
}

#[test]
fn an_object_is_waited_for_where_that_was_asked_for() {
    let (_folder, pool) = pool();
    let waiting = PoolOptions::new().medium(MediumKind::File).wait(Duration::from_secs(60)).open(pool.path());
    let waiting = waiting.unwrap();
    let held = pool.attach("a").unwrap();
    let (begins, began) = mpsc::channel();
    let attached = std::thread::spawn(move || {
        begins.send(()).unwrap();
        let object = waiting.attach("a")?;
        drop(object);
        waiting.destroy("a")
    });
    began.recv().unwrap();
    drop(held);
    attached.join().unwrap().unwrap();
    pool.create("b", 1).unwrap();
    pool.set_wait(Duration::from_millis(1));
    let _held = pool.attach("b").unwrap();
    assert_eq!(pool.attach("b").unwrap_err().kind(), ErrorKind::Held);
    assert_eq!(pool.destroy("b").unwrap_err().kind(), ErrorKind::Held);
}

#[test]
fn a_user_who_may_only_read_blocks_no_writer() {
    let (_folder, pool) = pool();
    let mut object = pool.attach("a").unwrap();
    object.range_mut(0..10_000).fill(1);
    object.psync().unwrap();
    object.detach().unwrap();
    let reader = PoolOptions::new().read_only(true).open(pool.path()).unwrap();
    let copy = reader.attach_read("a").unwrap();
    let again = reader.attach_read("a").unwrap();
    assert_eq!(copy.as_ptr(), again.as_ptr());
    drop(copy);
    let other = Other::start(&[], "write", pool.path()).unwrap();
    assert_eq!(reader.stat("a").unwrap().holder, Some(other.pid()));
    let state = pool.stat("a").unwrap().state;
    assert_eq!((state, again.as_slice()), (State::Writing, &[1; 10_000][..]));
    assert_eq!(pool.attach_read("a").unwrap_err().kind(), ErrorKind::Held);
    drop(other);
    pool.destroy("a").unwrap();
    assert_eq!(again.as_slice(), &[1; 10_000]);
}

/// A forgotten guard keeps its lock while the object is attached.
#[test]
fn a_forgotten_guard_fails_a_cut_and_nothing_else() {
    let (_folder, pool) = pool();
    pool.create("heap", 1 << 20).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    heap.root_or_insert_with::<PMutex<'_, u64>, _>("m", |heap| PMutex::new_in(0, heap)).unwrap();
    pool.set_wait(Duration::from_millis(1));
    std::thread::scope(|scope| {
        let forgets = scope.spawn(|| std::mem::forget(heap.root_ref::<PMutex<'_, u64>>("m").unwrap().lock()));
        forgets.join().unwrap();
    });
    for _ in 0..2 {
        let error = heap.psync_cut().unwrap_err();
        assert!(error.kind() == ErrorKind::Busy && error.to_string().contains("forgot the guard"), "{error}");
    }
    std::thread::scope(|scope| {
        assert!(scope.spawn(|| heap.check()).join().unwrap().is_empty());
    });
    heap.psync().unwrap();
}

#[test]
fn more_objects_than_4095_are_attached_at_once() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    const COUNT: usize = 4200;
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    if limit.current.is_some_and(|files| files < 3 * COUNT as u64) {
        return eprintln!("not tested: {limit:?} open files are not enough");
    }
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let pool = Pool::format(folder.path().join("pool"), 64 << 20).unwrap();
    let mut held = Vec::new();
    for index in 0..COUNT {
        held.push(
            pool.create_attached(&index.to_string(), 4096).unwrap_or_else(|error| panic!("{index}: {error}")),
        );
    }
    *held.last_mut().unwrap().root_mut::<u64>().unwrap() = 1;
    held.last_mut().unwrap().psync().unwrap();
}

#[test]
fn a_process_of_another_pid_namespace_is_recognised() {
    let (_folder, pool) = pool();
    let inside = ["unshare", "--pid", "--fork", "--kill-child"];
    let alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let can = Command::new("unshare").args(&alone[1..]).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        return eprintln!("not tested: this user cannot make pid namespaces");
    }
    let other = Other::start(&inside, "write", pool.path()).unwrap();
    let stat = pool.stat("a").unwrap();
    let holder = stat.holder.expect("the holder is to be seen from the namespace above it");
    let parent = std::fs::read_to_string(format!("/proc/{holder}/stat")).unwrap();
    let parent: u32 = parent.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!((parent, stat.holder_elsewhere), (other.pid(), None));
    drop(other);
    pool.set_wait(Duration::from_secs(60));
    let _held = pool.attach("a").unwrap();
    let mut other = Other::start(&alone, "look", pool.path()).unwrap();
    assert_eq!(other.answer().unwrap(), format!("None Some({})", std::process::id()));
}
