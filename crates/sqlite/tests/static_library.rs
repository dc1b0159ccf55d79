//! C programs that are linked with Debian's SQLite and the static library.

use crate::support::memory_of;
use indelible::Pool;
use indelible_testing::{not_tested, page};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PAGE: &str = include_str!("../../../docs/cookbook/sqlite.md");

/// Compiles a program; `None`: the compiler, SQLite's header or the sanitizer is missing.
fn build(source: &Path, folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let archive = std::env::current_exe().unwrap().with_file_name("libindelible_sqlite.a");
    let compile = |source: &Path, target: &Path, rest: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"]).args(flags).arg("-I").arg(&include);
        command.arg(source).arg("-o").arg(target);
        if !rest.is_empty() {
            command.arg(&archive).args(rest);
        }
        command.output()
    };
    let system = ["-lsqlite3", "-lgcc_s", "-lpthread", "-lm", "-ldl"];
    let probe = folder.join("probe.c");
    std::fs::write(&probe, "#include <sqlite3.h>\nint main(void) { return !sqlite3_libversion(); }\n")
        .unwrap();
    let is_there = compile(&probe, &folder.join("probe"), &["-lsqlite3"]).is_ok_and(|o| o.status.success());
    if !is_there {
        not_tested(format!("C programs with SQLite: cc {flags:?} or libsqlite3-dev is missing"));
        return None;
    }
    let binary = folder.join("program");
    let output = compile(source, &binary, &system).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(binary)
}

fn run(binary: &Path, argument: &str, folder: &Path) -> Output {
    let mut command = Command::new(binary);
    command.arg(argument).current_dir(folder).env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap()
}

fn printed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned() + &said
}

/// The address sanitizer takes a part of the range of windows, so the program may need another
/// pool.
#[test]
fn a_c_program_does_everything_under_the_address_sanitizer() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/everything.c");
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-pthread"][..], &["-pthread", "-g", "-fsanitize=address,undefined"]] {
        let Some(binary) = build(&source, folder.path(), flags) else { return };
        let path = |nth: usize| format!("{}-{nth}.pmo", flags.len());
        let mut ran = (0..8).map(|nth| (nth, run(&binary, &path(nth), folder.path())));
        let is_taken = |output: &Output| {
            String::from_utf8_lossy(&output.stderr).contains("is taken by anonymous memory")
        };
        let (last, output) = ran.find(|(_, output)| !is_taken(output)).expect("one of eight pools");
        assert_eq!(printed(&output), "done\n", "{flags:?}");
        for nth in 0..=last {
            let pool = Pool::open(folder.path().join(path(nth))).unwrap();
            // A program without its addresses ends with open databases.
            for name in ["main.db.lease", "copy.db.lease"].iter().filter(|_| nth < last) {
                let _ = pool.forget_shared(name, b"");
            }
            assert_eq!(memory_of(&pool), 0, "{flags:?}, {nth} of {last}");
        }
    }
}

#[test]
fn the_c_program_of_the_page_runs() {
    let blocks = page::blocks(PAGE);
    let (_, program) = blocks.iter().find(|(language, _)| language == "c").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("visits.c");
    std::fs::write(&source, program).unwrap();
    let Some(binary) = build(&source, folder.path(), &[]) else { return };
    assert_eq!(printed(&run(&binary, "", folder.path())), "1 visit\n");
    assert_eq!(printed(&run(&binary, "", folder.path())), "2 visits\n");
}
