//! A connection of a gone process whose number another process has.

use crate::support::{Rig, until};
use indelible_guard::{Budget, Note};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn again(test: &str, with: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match with {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command.args(["--exact", test, "--nocapture", "--ignored", "--test-threads=1"]);
    command
}

#[test]
fn a_process_that_has_the_number_of_a_connections_maker_is_not_killed() {
    let alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let can = Command::new(alone[0]).args(&alone[1..]).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        return indelible_testing::not_tested("numbers of processes used again, which takes `unshare`");
    }
    let status = again("identity::numbers_come_round", &alone).status().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
#[ignore = "run by the other tests as a process of its own"]
#[expect(clippy::zombie_processes, reason = "the child outlives this process")]
fn maker() {
    let Some(socket) = std::env::var_os("GUARD_SOCKET") else { return };
    let stream = UnixStream::connect(socket).unwrap();
    Command::new("cat").stdout(OwnedFd::from(stream)).spawn().unwrap();
}

fn process_of(number: u32) -> Option<Child> {
    for _ in 0..100 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).ok()?;
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        if child.id() == number {
            return Some(child);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    None
}

#[test]
#[ignore = "run by the other tests in a namespace of its own"]
fn numbers_come_round() {
    let second = Duration::from_secs(1);
    let rig = Rig::new(Budget { hold_up: 2 * second, safety: second, bandwidth: None });
    let mut maker = again("identity::maker", &[]);
    maker.env("GUARD_SOCKET", &rig.socket).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut maker = maker.spawn().unwrap();
    let (number, mut to_child) = (maker.id(), maker.stdin.take().unwrap());
    assert!(maker.wait().unwrap().success());
    let Some(mut victim) = process_of(number) else {
        return indelible_testing::not_tested(
            "numbers of processes used again, which this kernel does not set",
        );
    };
    let hello = format!("writer 1 {} {} 2f6e6f7768657265\n", "0".repeat(32), "1".repeat(16));
    to_child.write_all(hello.as_bytes()).unwrap();
    let told = |note: &Note| match note {
        Note::Registered { pid, .. } | Note::Lost { pid, .. } | Note::Refused { pid, .. } => {
            pid.unsigned_abs() == number
        }
        _ => false,
    };
    until("the guard takes notice", || rig.notes.lock().unwrap().iter().any(told));
    rig.fail();
    let mut said = String::new();
    let sent = victim.stdin.take().unwrap().write_all(b"alive");
    victim.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let status = victim.wait().unwrap();
    assert!(sent.is_ok() && said == "alive" && status.success(), "{status}, {:?}", rig.notes.lock().unwrap());
    drop(to_child);
}
