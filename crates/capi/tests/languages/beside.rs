use super::ground::{C, CPP, disk, folder, have, program, succeed};
use super::kill::last;
use indelible_testing::Seeded;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const ROUNDS: usize = 12;

#[test]
fn s2_02_snapshots_copies_and_readers_beside_a_writer() {
    let folder = folder();
    let binary = folder.path().join("copies");
    C.build(&program("copies.c"), &binary);
    assert_eq!(succeed(Command::new(&binary).arg(folder.path().join("pool.pmo"))), "done\n");
}

#[test]
fn states_of_an_object_are_attached_anywhere_beside_the_object_itself() {
    let folder = folder();
    let (binary, pool) = (folder.path().join("anywhere"), folder.path().join("pool.pmo"));
    C.build(&program("anywhere.c"), &binary);
    assert_eq!(succeed(Command::new(&binary).arg(&pool)), "done\n");
    for fault in ["beside", "alone"] {
        let output = Command::new(&binary).arg(&pool).arg(fault).output().expect("the program runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "loaded\n", "{output:?}");
        assert_eq!(output.status.signal(), Some(11), "{fault}: {output:?}");
    }
}

struct Process {
    child: Child,
    said: std::io::Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(binary: &Path, pool: &Path, what: &str) -> Process {
        let mut command = Command::new(binary);
        command.arg(pool).arg(what).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Process { child, said }
    }

    fn next(&mut self, word: &str) -> i64 {
        let line = self.said.next().expect("the process goes on").expect("a line");
        let number = line.strip_prefix(word).and_then(|rest| rest.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{word} in {line:?}"))
    }

    fn look(&mut self) -> i64 {
        writeln!(self.child.stdin.as_mut().expect("a pipe"), "look").expect("the follower reads");
        self.next("seen")
    }

    fn kill(mut self, word: &str) -> Option<i64> {
        self.child.kill().expect("it was started");
        let said: Vec<_> = self.said.by_ref().map_while(Result::ok).collect();
        assert_eq!(self.child.wait().expect("it was started").signal(), Some(9), "{said:?}");
        last(&said, word)
    }
}

fn maps_are_followed(folder: &tempfile::TempDir) {
    if !have("c++") {
        return;
    }
    let mut random = Seeded::new(1);
    println!("INDELIBLE_SEED={}", random.seed());
    let (binary, pool) = (folder.path().join("beside"), folder.path().join("pool.pmo"));
    CPP.build(&program("beside.cpp"), &binary);
    let mut writer = Process::start(&binary, &pool, "write");
    let mut psynced = writer.next("psynced");
    let mut follower = Process::start(&binary, &pool, "follow");
    let mut seen = follower.next("seen");
    for round in 0..ROUNDS {
        let mut other = Process::start(&binary, &pool, "follow");
        for _ in 0..random.usize(1..30) {
            psynced = writer.next("psynced");
            let now = follower.look();
            assert!(now >= psynced && now >= seen, "{now} steps are seen after {psynced} and {seen}");
            seen = now;
        }
        if round.is_multiple_of(2) {
            other.next("seen");
            let _ = writeln!(other.child.stdin.as_mut().expect("a pipe"), "look");
        }
        other.kill("none");
        psynced = writer.kill("psynced ").unwrap_or(psynced).max(psynced);
        seen = follower.look();
        assert!(seen == psynced || seen == psynced + 1, "{seen} steps are seen after {psynced} and a kill");
        assert_eq!(follower.look(), seen);
        writer = Process::start(&binary, &pool, "write");
    }
    psynced = writer.kill("psynced ").unwrap_or(seen);
    seen = follower.look();
    drop(follower.child.stdin.take());
    assert!(follower.child.wait().unwrap().success());
    assert_eq!(succeed(Command::new(&binary).arg(&pool).arg("once")), format!("seen {seen}\n"));
    assert!(seen > 30 && seen >= psynced, "{seen} steps");
}

#[test]
fn s2_02_a_map_is_followed_in_memory() {
    maps_are_followed(&folder());
}

#[test]
fn s2_02_a_map_is_followed_on_disk() {
    maps_are_followed(&disk());
}
