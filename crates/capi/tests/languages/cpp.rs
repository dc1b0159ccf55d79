//! C++ programs.

use super::ground::{CPP, dies, disk, folder, have, program, succeed};
use super::kill::{kill, last};
use indelible_testing::Seeded;
use std::path::Path;
use std::process::Command;

/// Rounds of SIGKILL on each kind of medium.
const ROUNDS: usize = 40;

fn run(program: &Path, pool: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg(pool).args(arguments);
    command
}

#[test]
fn containers_nested_in_each_other_survive_sigkill_in_memory() {
    containers(folder());
}

#[test]
fn containers_nested_in_each_other_survive_sigkill_on_disk() {
    containers(disk());
}

fn containers(folder: tempfile::TempDir) {
    if !have("c++") {
        return;
    }
    let mut rng = Seeded::new(fastrand::u64(..));
    println!("INDELIBLE_SEED={}", rng.seed());
    let (binary, pool) = (folder.path().join("containers"), folder.path().join("pool.pmo"));
    CPP.build(&program("containers.cpp"), &binary);
    let check = || succeed(&mut run(&binary, &pool, &["check"])).trim().parse::<i64>().expect("a number");
    succeed(&mut run(&binary, &pool, &["grow", "3"]));
    let (mut steps, mut kills, mut between) = (check(), 0, 0);
    assert_eq!(steps, 3);
    for _ in 0..ROUNDS {
        let (lines, spins) = (rng.usize(0..60), rng.u32(0..200_000));
        let (said, killed) = kill(&mut run(&binary, &pool, &["grow", "100000"]), lines, spins);
        kills += usize::from(killed);
        if let Some(found) = last(&said, "found") {
            assert_eq!(found, steps, "what was there after the kill before");
        }
        let psynced = last(&said, "psynced").unwrap_or(steps);
        steps = check();
        assert!(
            steps == psynced || steps == psynced + 1,
            "{psynced} steps were psynced and {steps} are there"
        );
        between += usize::from(steps > psynced);
    }
    println!("{kills} kills, {between} between a psync and its message; {steps} steps");
    assert!(kills == ROUNDS && steps > 100);
    assert_eq!(succeed(&mut run(&binary, &pool, &["clear"])), "0 blocks\n");
}

#[test]
fn errors_are_exceptions_and_change_nothing() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let (binary, pool) = (folder.path().join("errors"), folder.path().join("pool.pmo"));
    CPP.build(&program("errors.cpp"), &binary);
    assert_eq!(succeed(&mut run(&binary, &pool, &[])), "done\n");
    for (which, signal) in
        [("double free", 6), ("foreign pointer", 6), ("use after detach", 11), ("store while reading", 11)]
    {
        assert_eq!(dies(&mut run(&binary, &pool, &[which])), signal, "{which}");
    }
}

#[test]
fn what_cannot_be_a_root_does_not_compile() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let code = |before: &str, root: &str| {
        format!(
            "#include <pmo.hpp>\nstruct plain {{ int i; }};\nPMO_DESCRIBE(plain, PMO_MEMBER(i))\n{before}\n\
             int main() {{ pmo::pool pool(\"p\"); pmo::heap heap = pool.heap(\"h\", 1);\n\
             heap.root<{root}>(\"r\"); }}\n"
        )
    };
    for good in
        ["plain", "pmo::map<pmo::string, pmo::vector<plain>>", "plain[3]", "int *", "std::pair<int, double>"]
    {
        let good = if good == "plain[3]" { "pmo::vector<std::array<plain, 3>>" } else { good };
        assert_eq!(CPP.refuses(&code("", good), folder.path()), None, "{good}");
    }
    let bad = [
        ("struct unknown { int i; };", "unknown", "type_of"),
        ("", "std::string", "type_of"),
        ("", "std::vector<int>", "type_of"),
        ("", "std::unique_ptr<int>", "type_of"),
        ("struct v { virtual ~v(); }; PMO_DESCRIBE(v, )", "v", "virtual functions"),
    ];
    for (before, root, words) in bad {
        let said = CPP.refuses(&code(before, root), folder.path());
        assert!(said.as_ref().is_some_and(|said| said.contains(words)), "{root}: {said:?}");
    }
}
