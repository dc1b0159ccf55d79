//! The loadable extension in programs as they are: each command of docs/cookbook/sqlite.md prints
//! what stands there.

use indelible_testing::{not_tested, page};
use std::path::Path;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../docs/cookbook/sqlite.md");

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
