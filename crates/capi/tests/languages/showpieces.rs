use super::ground::{disk, folder, have, installed, program, project, succeed};
use super::kill::{kill, last};
use indelible_testing::{Seeded, not_tested};
use std::path::{Path, PathBuf};
use std::process::Command;

const KILLS: usize = 50;

/// Statically linked, at a fixed address.
fn linked(source: &Path, into: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wl,--build-id", "-static", "-no-pie"]);
    command.arg("-I").arg(installed().join("include")).arg("-o").arg(into).arg(source);
    command.args(flags).arg(installed().join("lib/libpmo.a"));
    command.args(["-lgcc_eh", "-lpthread", "-lm", "-ldl"]);
    command
}

fn build(name: &str, folder: &Path, header: &str, flags: &[&str], package: &str) -> Option<PathBuf> {
    let probe = folder.join("probe.c");
    std::fs::write(&probe, format!("#include <{header}>\nint main(void) {{ return 0; }}\n")).expect("a file");
    let probed = linked(&probe, &folder.join("probe"), flags).output().expect("the compiler runs");
    if !probed.status.success() {
        not_tested(format_args!(
            "{name}.c, as {header} or a static library is missing; Debian has them in {package}"
        ));
        return None;
    }
    let binary = folder.join(name);
    let source = project().join("examples/c").join(format!("{name}.c"));
    succeed(&mut linked(&source, &binary, flags));
    Some(binary)
}

const LUA: [&str; 2] = ["-I/usr/include/lua5.4", "-llua5.4"];
const SQLITE: [&str; 1] = ["-lsqlite3"];

fn lua(binary: &Path, pool: &Path) -> Command {
    let mut command = Command::new(binary);
    command.arg(pool).arg(project().join("examples/c/tower.lua"));
    command
}

#[test]
fn a_lua_interpreter_goes_on_in_the_middle_of_its_coroutines() {
    let folder = disk();
    let Some(binary) = build("lua", folder.path(), "lua.h", &LUA, "liblua5.4-dev") else { return };
    let expected = succeed(&mut lua(&binary, &folder.path().join("at-once.pmo")));
    let expected: Vec<_> = expected.lines().collect();
    assert_eq!(expected.len(), 1024, "1,023 moves and the end");
    let mut rng = Seeded::new(1);
    println!("INDELIBLE_SEED={}", rng.seed());
    let (mut kills, mut runs) = (0, 0);
    while kills < KILLS {
        let pool = folder.path().join(format!("killed-{runs}.pmo"));
        runs += 1;
        kills +=
            continued(&expected, || kill(&mut lua(&binary, &pool), rng.usize(0..30), rng.u32(0..200_000)));
    }
    println!("{kills} kills in {runs} runs");
}

fn continued(expected: &[&str], mut run: impl FnMut() -> (Vec<String>, bool)) -> usize {
    let (mut done, mut kills) = (0, 0);
    let mut silent = 0;
    loop {
        let (said, killed) = run();
        for (index, line) in said.iter().enumerate() {
            let at = expected.iter().position(|expected| expected == line);
            let at = at.unwrap_or_else(|| panic!("{line:?} is never said by a run at once"));
            let unsaid = if index == 0 { 1 + silent } else { 0 };
            let again = index == 0 && done == expected.len() && at + 1 == done;
            assert!(
                again || (done..=done + unsaid).contains(&at),
                "{line:?} after {done} lines and {silent} silent runs"
            );
            done = at + 1;
            silent = 0;
        }
        silent += usize::from(said.is_empty());
        if !killed {
            assert_eq!(done, expected.len());
            return kills;
        }
        kills += 1;
    }
}

#[test]
fn a_run_that_is_killed_behind_its_end_says_the_end_again() {
    let runs = [(vec!["1"], true), (vec!["2", "ended"], true), (vec!["ended"], false)];
    let mut runs =
        runs.map(|(said, killed)| (said.into_iter().map(str::to_owned).collect(), killed)).into_iter();
    assert_eq!(continued(&["1", "2", "ended"], || runs.next().expect("the third run ends")), 2);
}

#[test]
#[should_panic(expected = "after 2 lines")]
fn a_run_that_repeats_a_yield_is_caught() {
    let mut runs = [(vec!["1".to_owned(), "2".to_owned()], true), (vec!["2".to_owned()], true)].into_iter();
    continued(&["1", "2", "ended"], || runs.next().expect("the second run is refused"));
}

#[test]
fn a_database_of_sqlite_in_memory_outlives_its_processes() {
    let folder = disk();
    let Some(binary) = build("sqlite", folder.path(), "sqlite3.h", &SQLITE, "libsqlite3-dev") else { return };
    let pool = folder.path().join("pool.pmo");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command.arg(&pool).args(arguments);
        command
    };
    let mut rng = Seeded::new(2);
    println!("INDELIBLE_SEED={}", rng.seed());
    let (mut rows, mut kills) = (0, 0);
    for _ in 0..KILLS {
        let (said, killed) = kill(&mut run(&["insert", "1000000"]), rng.usize(0..30), rng.u32(0..200_000));
        kills += usize::from(killed);
        let inserted = last(&said, "inserted").unwrap_or(rows);
        let shown = succeed(&mut run(&["show"]));
        let there: i64 =
            shown.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number");
        assert!(
            there == inserted || there == inserted + 1,
            "{inserted} rows were psynced, {there} are there"
        );
        let sum: i64 = (1..=there).map(|number| number * number).sum();
        assert_eq!(shown, format!("{there} rows, sum {sum}\n"));
        rows = there;
    }
    println!("{kills} kills, {rows} rows");
    assert!(kills == KILLS && rows > 200, "{kills} kills, {rows} rows");
}

fn asks(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let (binary, lib) = (folder.join(name), installed().join("lib"));
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wl,--build-id"]).args(flags);
    command.arg("-I").arg(installed().join("include"));
    command.arg("-o").arg(&binary).arg(program("same-program.c"));
    command.arg("-L").arg(&lib).arg("-lpmo").arg(format!("-Wl,-rpath,{}", lib.display()));
    succeed(&mut command);
    binary
}

#[test]
fn an_object_of_a_program_that_was_rebuilt_or_moved_is_refused() {
    if !have("cc") {
        return;
    }
    let folder = folder();
    let says = |binary: &Path, pool: &str| succeed(Command::new(binary).arg(folder.path().join(pool)));
    let fixed = asks(folder.path(), "fixed", &["-no-pie"]);
    for _ in 0..3 {
        assert_eq!(says(&fixed, "fixed.pmo"), "the same\n");
    }
    let rebuilt = asks(folder.path(), "rebuilt", &["-no-pie", "-O2"]);
    let said = says(&rebuilt, "fixed.pmo");
    assert!(said.starts_with("another build of the program made it"), "{said}");
    assert_eq!(says(&fixed, "fixed.pmo"), "the same\n", "a refusal changes nothing");
    let unnamed = asks(folder.path(), "unnamed", &["-no-pie", "-Wl,--build-id=none"]);
    assert!(says(&unnamed, "unnamed.pmo").starts_with("this program has no build ID"));
    let moving = asks(folder.path(), "moving", &["-fPIE", "-pie"]);
    let said = says(&moving, "moving.pmo");
    assert!(said.starts_with("this program is loaded elsewhere in each run"), "{said}");
    assert!(said.contains("link it with -no-pie"), "{said}");
}
