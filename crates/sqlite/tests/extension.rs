//! The loadable extension in programs as they are: each command of docs/cookbook/sqlite.md prints
//! what stands there.

use indelible_testing::{cargo, not_tested, page};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PAGE: &str = include_str!("../../../docs/cookbook/sqlite.md");
const README: &str = include_str!("../../../README.md");

fn install(folder: &Path) {
    // Cargo builds it beside this program.
    let built = std::env::current_exe().unwrap().with_file_name("libindelible_sqlite.so");
    std::os::unix::fs::symlink(built, folder.join("libsqlite3-pmo.so")).unwrap();
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn run(folder: &Path, program: &str, argument: &str, script: &str) -> String {
    let output = Command::new(program)
        .args([argument, script])
        .current_dir(folder)
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success() && output.stderr.is_empty(), "{script}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn blocks(language: &str) -> Vec<String> {
    page::blocks(PAGE).into_iter().filter(|(of, _)| of == language).map(|(_, block)| block).collect()
}

fn run_commands(folder: &Path, block: &str) -> usize {
    page::console(block, folder, &[("LD_LIBRARY_PATH", folder.as_os_str())])
}

#[test]
fn s2_26_the_page_of_the_cookbook_is_true_in_the_shell_and_in_python() {
    if !runs("sqlite3", &["--version"]) {
        return not_tested("the extension in SQLite's shell: sqlite3 is missing");
    }
    let dir = tempfile::tempdir().unwrap();
    install(dir.path());
    let console = blocks("console");
    let (visits, tickets) = (console[0..2].concat(), &console[2]);
    assert_eq!(run_commands(dir.path(), &visits), 4);
    let loads = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)";
    let python = |also: &str| {
        let script = format!("{loads}{also}");
        ["python3", "/usr/bin/python3"].into_iter().find(|python| runs(python, &["-c", &script]))
    };
    match python("") {
        Some(python) => assert_eq!(run(dir.path(), python, "-c", &blocks("python")[0]), "2\n"),
        None => not_tested("the extension in Python: its sqlite3 loads no extensions"),
    }
    match python("; import sqlalchemy") {
        Some(python) => assert_eq!(run(dir.path(), python, "-c", &blocks("python")[1]), "3\n"),
        None => not_tested("the extension in SQLAlchemy: it is missing"),
    }
    assert_eq!(run_commands(dir.path(), tickets), 1);
}

#[test]
fn s2_26_a_shell_that_is_killed_in_a_transaction_of_a_million_rows_goes_on() {
    if !runs("sqlite3", &["--version"]) {
        return not_tested("SQLite's shell, killed in a transaction: sqlite3 is missing");
    }
    let dir = tempfile::tempdir().unwrap();
    install(dir.path());
    assert_eq!(run_commands(dir.path(), &blocks("console")[3]), 3);
}

#[test]
fn the_extension_sets_the_defaults_of_its_own_connections_alone() {
    if !runs("sqlite3", &["--version"]) {
        return not_tested("the extension's defaults: sqlite3 is missing");
    }
    let dir = tempfile::tempdir().unwrap();
    install(dir.path());
    let ask = |open: &str| {
        let script = format!(
            "sqlite3 :memory: '.load libsqlite3-pmo' '.open {open}' 'PRAGMA journal_mode' 'PRAGMA mmap_size' \\
             'PRAGMA journal_mode=delete' 'PRAGMA journal_mode=wal'"
        );
        run(dir.path(), "bash", "-c", &script)
    };
    let ours = ask("file:app.pmo?vfs=pmo&size=16M");
    let lines: Vec<&str> = ours.lines().collect();
    assert_eq!((lines[0], &lines[2..]), ("memory", &["delete", "delete"][..]));
    assert!(lines[1].parse::<u64>().unwrap() > 1 << 30);
    assert_eq!(ask("plain.db"), "delete\n0\ndelete\nwal\n");
}

/// Runs `cargo xtask install --only sqlite` into `root`; returns the prefix there, and all files.
fn packaged(root: &Path) -> (PathBuf, Vec<String>) {
    let mut command = cargo();
    command.args([
        "xtask",
        "install",
        "--profile",
        "dev",
        "--only",
        "sqlite",
        "--prefix",
        "/usr",
        "--destdir",
    ]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = command.arg(root).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = Command::new("find").args([".", "-type", "f"]).current_dir(root).output().unwrap();
    let mut files: Vec<_> = String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect();
    files.sort_unstable();
    (root.join("usr"), files)
}

/// The README's line for the shell, with an installation's prefix, reads a script.
fn shell(prefix: &Path, folder: &Path, script: &str) -> Output {
    let line = README.split('`').find(|code| code.starts_with("sqlite3 ")).expect("a line for the shell");
    assert!(line.contains("P/lib/"), "{line}");
    let line = line.replace("P/lib/", &format!("{}/lib/", prefix.display()));
    // The shell in the place of bash, so that its end is seen.
    let mut command = Command::new("bash");
    command.args(["-c", &format!("exec {line}")]).current_dir(folder).env_remove("LD_LIBRARY_PATH");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn s2_26_the_installed_extension_is_loaded_by_the_readme_s_line_and_goes_on_after_a_kill() {
    let root = tempfile::tempdir().unwrap();
    let (prefix, files) = packaged(root.path());
    let expected = [
        "./usr/include/sqlite3-pmo.h",
        "./usr/lib/libsqlite3-pmo.a",
        "./usr/lib/libsqlite3-pmo.so",
        "./usr/lib/pkgconfig/sqlite3-pmo-static.pc",
        "./usr/lib/pkgconfig/sqlite3-pmo.pc",
    ];
    assert_eq!(files, expected);
    if runs("pkg-config", &["--version"]) {
        let mut command = Command::new("pkg-config");
        command.args(["--variable=extension", "sqlite3-pmo"]);
        let printed = command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).output().unwrap();
        let path = PathBuf::from(String::from_utf8(printed.stdout).unwrap().trim());
        assert_eq!(
            path.canonicalize().unwrap(),
            prefix.join("lib/libsqlite3-pmo.so").canonicalize().unwrap()
        );
    } else {
        not_tested("where pkg-config finds the extension: it is missing");
    }
    if !runs("sqlite3", &["--version"]) {
        return not_tested("the installed extension: sqlite3 is missing");
    }
    let folder = tempfile::tempdir().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let made = shell(&prefix, folder.path(), "CREATE TABLE n(i); INSERT INTO n VALUES (1), (2);\n");
    assert!(made.status.success() && made.stderr.is_empty(), "{}", text(&made.stderr));
    let killed = "INSERT INTO n VALUES (3); BEGIN; UPDATE n SET i = i + 10; SELECT sum(i) FROM n;\n\
                  .shell kill -9 $PPID\nCOMMIT;\n";
    let output = shell(&prefix, folder.path(), killed);
    assert_eq!((text(&output.stdout), output.status.signal()), ("36\n".into(), Some(9)), "{output:?}");
    let script = "PRAGMA integrity_check; SELECT sum(i) FROM n; INSERT INTO n VALUES (4);\n";
    let after = shell(&prefix, folder.path(), script);
    assert_eq!((text(&after.stdout), text(&after.stderr)), ("ok\n6\n".into(), String::new()));
    let last = shell(&prefix, folder.path(), "SELECT sum(i) FROM n;\n");
    assert_eq!(text(&last.stdout), "10\n");
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["app.pmo"], "no journal, and no plain database");
}
