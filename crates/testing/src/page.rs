//! Follows pages of documentation: writes programs to files, runs commands, compares output.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// The fenced blocks of a page: info string and text.
#[must_use]
pub fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block does not end");
    blocks
}

/// Number of paragraphs of code in the page's Rust blocks that are parts of `program`.
#[must_use]
pub fn parts_of(page: &str, program: &str) -> usize {
    let mut parts = 0;
    for (_, block) in blocks(page).iter().filter(|(kind, _)| kind == "rust") {
        let of_program = |part: &&str| program.contains(&format!("{}\n", part.trim_end()));
        let (own, other): (Vec<_>, Vec<_>) = block.split("\n\n").partition(of_program);
        assert!(own.is_empty() || other.is_empty(), "not in the program:\n{}", other.join("\n\n"));
        parts += own.len();
    }
    parts
}

#[must_use]
pub fn tables(page: &str, head: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let (mut all, mut heading, mut inside) = (BTreeMap::<String, Vec<_>>::new(), String::new(), false);
    for line in page.lines() {
        let cells: Vec<String> =
            line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().trim_matches('`').to_owned();
        } else if !line.starts_with('|') {
            inside = false;
        } else if cells[1] == head {
            inside = true;
        } else if inside && !line.starts_with("|---") {
            all.entry(heading.clone()).or_default().push(cells[1..cells.len() - 1].to_vec());
        }
    }
    all
}

/// Follows a page in an empty folder. Blocks of `languages` are files, named in their first line;
/// `install` handles `sh install`. Returns the number of compared outputs.
pub fn follow(page: &str, folder: &Path, languages: &[&str], install: &dyn Fn(&str)) -> usize {
    let (mut exports, mut printed, mut compared) = (String::new(), None, 0);
    for (kind, block) in blocks(page) {
        match kind.as_str() {
            "sh install" => install(&block),
            "sh" => {
                assert_eq!(printed.take(), None, "nothing is said about what was printed");
                printed = Some(shell(folder, &block, &mut exports));
            }
            "text" => {
                assert_eq!(printed.take().as_deref(), Some(block.as_str()));
                compared += 1;
            }
            kind if languages.contains(&kind) => {
                let first = block.lines().next().expect("a first line");
                let name = first.trim_matches(['/', '*', ' ', '#']);
                assert!(name.contains('.'), "no name of a file: {first}");
                let path = folder.join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, &block).expect("a file");
            }
            other => panic!("a block of {other:?} is not tested"),
        }
    }
    compared
}

/// Runs the commands of a `console` block by bash, with these variables: a command follows `$`, and
/// goes on after `>`. Returns the number of commands.
pub fn console(block: &str, folder: &Path, variables: &[(&str, &OsStr)]) -> usize {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push((command.to_owned(), String::new()));
            continue;
        }
        let (command, expected) = commands.last_mut().expect("a command");
        match line.strip_prefix("> ") {
            Some(more) => *command += &format!("\n{more}"),
            None => *expected += &format!("{line}\n"),
        }
    }
    for (command, expected) in &commands {
        let mut bash = Command::new("bash");
        bash.args(["-c", command]).current_dir(folder).envs(variables.iter().copied());
        let output = bash.env_remove("PMO_POOL").output().expect("bash runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{command}: {said}");
        assert_eq!(&String::from_utf8_lossy(&output.stdout), expected, "{command}");
    }
    commands.len()
}

fn shell(folder: &Path, commands: &str, exports: &mut String) -> String {
    let script = format!("set -e\n{exports}\n{commands}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder).env("HOME", folder).env_remove("PMO_POOL");
    let output = command.output().expect("sh runs");
    assert!(output.status.success(), "{commands}{}", String::from_utf8_lossy(&output.stderr));
    for export in commands.lines().filter(|line| line.starts_with("export ")) {
        *exports += &format!("{export}\n");
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}
