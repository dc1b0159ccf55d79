//! Tests of libpmo-tm: C and C++ programs, compiled by GCC with `-fgnu-tm`, on this library and on
//! libitm.
//!
//! Both print the same except for the lines below: libitm of GCC 12 keeps some stores of cancelled
//! blocks.

use indelible_testing::not_tested;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

const ACCESSES: &str = "\
changed: 3 3 3 3 3 3 3 3+0i 0+0i 3+1i 3,3,3,3 3,3,3,3
cancelled 10
as before: 3 3 3 3 3 3 3 3+0i 0+0i 3+1i 3,3,3,3 3,3,3,3
copied: 5 5 5 5 5 5 5 5+0i 0+0i 5+2i 5,5,5,5 5,5,5,5
me bysome bytes that are moved|me bysome bytes that are moved|zzz
nested 240 102
after cancels of inner blocks: 3 4 2008 17 3 3 3 3+0i 0+0i 3+1i 3,3,3,3 3,3,3,3
3159 1 abcd 12345678 1122334455672355 1.5 2.5 9
irrevocable 77
79
sum 0, list there
neighbours: 0 lost, 50880
";
const EXCEPTIONS: &str = "\
version 1 0
outside 0
thrown 0 7
counter 108, exceptions under way 0
lists 50
committed
undone first
undone
after a cancel: counter 109
irrevocable 2211, runs 0, counter 200
child 99, counter 220
counter 80381
";
const PLAIN: &str = "\
dead frames: 0
cleared: 0 68
own bytes: 10 has 2
logged late: 1 15
undone: 0 seen, 30000 30000
";
const THROWS: &str = "\
message
relaxed ok
long ok
null ok
pointer ok
double ok
long again ok
null of pointers ok
int * ok
float ok
virtual base 7
";
const DIFFERENT: [&str; 4] = ["after cancels of inner blocks", "after a cancel", "logged late", "undone"];

fn project() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(package)
}

fn program(name: &str) -> PathBuf {
    project().join("tests/programs").join(name)
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{said}{error}", output.status);
    said.into_owned()
}

struct Library {
    folder: TempDir,
    archive: PathBuf,
}

impl Library {
    fn shared(&self) -> PathBuf {
        self.folder.path().join("libpmo-tm.so")
    }
}

/// `None`: no GCC compiles blocks.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY.get_or_init(build).as_ref()
}

fn build() -> Option<Library> {
    let folder = tempfile::tempdir().unwrap();
    let code = "int a; int main(void) { __transaction_atomic { a++; } return a - 1; }\n";
    std::fs::write(folder.path().join("try.c"), code).unwrap();
    let compiled = Command::new("gcc").args(["-fgnu-tm", "try.c", "-o", "try"]).current_dir(&folder).output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        not_tested(format_args!("libpmo-tm: there is no GCC with -fgnu-tm and libitm"));
        return None;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-p", "indelible-tm", "--message-format=json"]).current_dir(project());
    if cfg!(feature = "mutants") {
        cargo.args(["--features", "mutants"]);
    }
    let said = succeed(&mut cargo);
    let end = said.find("libpmo_tm.a\"").expect("cargo says where it is") + "libpmo_tm.a".len();
    let begin = said[..end].rfind('"').expect("a string") + 1;
    let library = Library { archive: said[begin..end].into(), folder };
    let mut link = Command::new("cc");
    link.args(["-shared", "-o"]).arg(library.shared());
    link.arg(format!("-Wl,--version-script,{}", project().join("pmo-tm.map").display()));
    link.args(["-Wl,-Bsymbolic", "-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,--whole-archive"]);
    link.arg(&library.archive).arg("-Wl,--no-whole-archive").args(["-lgcc_s", "-lpthread", "-lm", "-ldl"]);
    succeed(&mut link);
    Some(library)
}

#[track_caller]
fn compile(library: &Library, source: &str, flags: &[&str], link: &[&Path]) -> PathBuf {
    let compiler = if source.ends_with("cpp") { "g++" } else { "gcc" };
    let name = format!("{source}{}{}", flags.concat(), link.len());
    let binary = library.folder.path().join(name);
    let mut command = Command::new(compiler);
    command.args(["-fgnu-tm", "-pthread", "-Wall"]).args(flags).arg(program(source)).arg("-o").arg(&binary);
    command.args(link).args(["-lgcc_s", "-lpthread", "-lm", "-ldl"]);
    succeed(&mut command);
    binary
}

fn but_for_differences(said: &str) -> Vec<&str> {
    said.lines().filter(|line| !DIFFERENT.iter().any(|start| line.starts_with(start))).collect()
}

fn same_on_both(source: &str, flags: &[&[&str]], expected: &str) {
    let Some(library) = library() else { return };
    for flags in flags {
        let theirs = compile(library, source, flags, &[]);
        assert_eq!(succeed(Command::new(&theirs).env("LD_PRELOAD", library.shared())), expected, "{flags:?}");
        let said = succeed(&mut Command::new(&theirs));
        assert_eq!(but_for_differences(&said), but_for_differences(expected), "libitm, {flags:?}");
    }
    let (archive, shared) = (library.archive.clone(), library.shared());
    let linked = compile(library, source, flags[0], &[&archive]);
    assert_eq!(succeed(&mut Command::new(linked)), expected, "linked with the static library");
    let linked = compile(library, source, flags[0], &[&shared, Path::new("-Wl,--as-needed")]);
    let mut command = Command::new(linked);
    command.env("LD_LIBRARY_PATH", library.folder.path());
    assert_eq!(succeed(&mut command), expected, "linked with the shared library");
}

#[test]
fn s1_04_accesses_of_compiled_blocks_are_as_on_libitm() {
    let avx = std::arch::is_x86_feature_detected!("avx");
    let vectors = if avx { "-mavx" } else { "-msse2" };
    same_on_both("accesses.c", &[&["-O1", vectors], &["-O2", vectors], &["-O3", vectors]], ACCESSES);
}

#[test]
fn s1_04_exceptions_actions_and_forks_of_compiled_blocks_are_as_on_libitm() {
    same_on_both("exceptions.cpp", &[&["-O1"], &["-O2"]], EXCEPTIONS);
}

#[test]
fn s1_04_plain_code_in_compiled_blocks_is_as_on_libitm() {
    same_on_both("plain.c", &[&["-O1"], &["-O2"], &["-O3"]], PLAIN);
}

#[test]
fn s1_04_what_a_compiled_block_throws_is_caught_as_on_libitm() {
    same_on_both("throws.cpp", &[&["-O1"], &["-O2"]], THROWS);
    let Some(library) = library() else { return };
    // libitm writes over freed memory.
    let binary = compile(library, "throws.cpp", &["-O1"], &[]);
    let said = succeed(Command::new(binary).arg("freed").env("LD_PRELOAD", library.shared()));
    assert_eq!(said, format!("{THROWS}freed 0\n"));
}

#[test]
fn a_thread_that_ends_in_a_block_takes_back_what_it_stored_but_to_its_frames() {
    let Some(library) = library() else { return };
    let binary = compile(library, "plain.c", &["-O2"], &[]);
    let said = succeed(Command::new(binary).arg("end").env("LD_PRELOAD", library.shared()));
    assert_eq!(said, format!("{PLAIN}end: 15\n"));
}

#[test]
fn a_thread_that_ends_in_a_block_leaves_it_and_others_go_on() {
    let Some(library) = library() else { return };
    let binary = compile(library, "exceptions.cpp", &["-O1"], &[]);
    let said = succeed(Command::new(binary).arg("end").env("LD_PRELOAD", library.shared()));
    assert!(said.ends_with("after a thread that ended in a block 80383\n"), "{said}");
}

#[test]
fn a_cancelled_inner_block_takes_back_what_it_stored_to_frames_of_the_outer_one() {
    let Some(library) = library() else { return };
    for optimized in ["-O1", "-O2", "-O3"] {
        let binary = compile(library, "accesses.c", &[optimized], &[]);
        let said = succeed(Command::new(binary).arg("frames").env("LD_PRELOAD", library.shared()));
        assert_eq!(said, "frames: 5060 503\n", "{optimized}");
    }
}

#[test]
fn s1_04_rules_of_compiled_blocks_hold() {
    let Some(library) = library() else { return };
    for optimized in ["-O1", "-O2"] {
        let binary = compile(library, "rules.c", &[optimized], &[]);
        let said = succeed(Command::new(&binary).env("LD_PRELOAD", library.shared()));
        assert_eq!(said, "all rules hold\n", "{optimized}");
        let said = succeed(Command::new(&binary).arg("retry").env("LD_PRELOAD", library.shared()));
        assert_eq!(said, "sum 43255, 10 blocks\n", "{optimized}");
    }
}

/// At least two programs.
#[cfg(feature = "mutants")]
#[test]
fn two_programs_notice_each_broken_rule() {
    const MUTANTS: [&str; 6] = [
        "UndoActionsForgotten",
        "RegistersNotRestored",
        "DeadFramesWritten",
        "CheckpointIgnored",
        "PlainStoresKept",
        "WholeWordsStored",
    ];
    let Some(library) = library() else { return };
    let vectors = if std::arch::is_x86_feature_detected!("avx") { "-mavx" } else { "-msse2" };
    let programs = [
        ("rules", compile(library, "rules.c", &["-O2", "-g"], &[]), None, "all rules hold\n"),
        ("retry", compile(library, "rules.c", &["-O1", "-g"], &[]), Some("retry"), "sum 43255, 10 blocks\n"),
        ("accesses", compile(library, "accesses.c", &["-O2", "-g", vectors], &[]), None, ACCESSES),
        ("frames", compile(library, "accesses.c", &["-O2", "-g"], &[]), Some("frames"), "frames: 5060 503\n"),
        ("plain", compile(library, "plain.c", &["-O2", "-g"], &[]), None, PLAIN),
        ("plain at -O1", compile(library, "plain.c", &["-O1", "-g"], &[]), None, PLAIN),
        ("exceptions", compile(library, "exceptions.cpp", &["-O2", "-g"], &[]), None, EXCEPTIONS),
    ];
    let mut unnoticed = Vec::new();
    for mutant in std::iter::once(None).chain(MUTANTS.map(Some)) {
        let notices = |program: &&(&str, PathBuf, Option<&str>, &str)| {
            let (_, binary, argument, expected) = program;
            // An endless program has noticed it, too.
            let mut command = Command::new("timeout");
            command.arg("60").arg(binary).args(argument).env("LD_PRELOAD", library.shared());
            command.envs(mutant.map(|mutant| ("INDELIBLE_TM_MUTANT", mutant)));
            let output = command.output().expect("coreutils");
            !output.status.success() || String::from_utf8_lossy(&output.stdout) != **expected
        };
        let names: Vec<_> = programs.iter().filter(notices).map(|program| program.0).collect();
        println!("{mutant:?}: {names:?}");
        match mutant {
            Some(mutant) if names.len() < 2 => unnoticed.push(mutant),
            Some(_) => {}
            None => assert_eq!(names, [""; 0], "they notice what is not there"),
        }
    }
    assert_eq!(unnoticed, [""; 0], "noticed by fewer than two programs");
}

#[test]
fn it_exports_what_libitm_does() {
    let Some(library) = library() else { return };
    let symbols = |path: &Path| -> Vec<String> {
        let listed = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(path));
        let names = listed.lines().filter_map(|line| line.split(' ').nth(2));
        let mut names: Vec<_> = names.map(|name| name.split('@').next().unwrap_or(name).to_owned()).collect();
        names.retain(|name| name.starts_with("_ITM_") || name.starts_with("_ZGTt"));
        names.sort();
        names.dedup();
        names
    };
    let loaded = succeed(Command::new("ldd").arg(library.folder.path().join("try")));
    let libitm = loaded.lines().find_map(|line| line.trim().strip_prefix("libitm.so.1 => ")).unwrap();
    let (ours, theirs) = (symbols(&library.shared()), symbols(libitm.split(' ').next().unwrap().as_ref()));
    let missing: Vec<_> = theirs.iter().filter(|name| !ours.contains(name)).collect();
    assert!(theirs.len() > 150 && missing.is_empty(), "{missing:?}");
}
