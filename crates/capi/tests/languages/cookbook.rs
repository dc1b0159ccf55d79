//! The cookbook's pages, followed to the letter: programs are written to files, commands are run, and what
//! they print is compared.

use super::ground::{CPP, disk, have, installed, project, text};
use std::path::Path;
use std::process::Command;

/// Fenced blocks: what follows the fence, and the text.
fn blocks(page: &str) -> Vec<(String, String)> {
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

/// Runs commands in a shell that remembers what earlier ones exported.
fn shell(folder: &Path, commands: &str, exports: &mut String) -> String {
    let script = format!("set -e\n{exports}\n{commands}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder).env("HOME", folder).env_remove("PMO_POOL");
    let output = command.output().expect("sh runs");
    assert!(output.status.success(), "{commands}{}", text(&output.stderr));
    for export in commands.lines().filter(|line| line.starts_with("export ")) {
        *exports += &format!("{export}\n");
    }
    text(&output.stdout)
}

fn follow(page: &str) {
    if !have("pkg-config") || !have("c++") {
        return;
    }
    let page = std::fs::read_to_string(project().join("docs/cookbook").join(page)).unwrap();
    let folder = disk();
    let (mut exports, mut printed, mut compared) = (String::new(), None, 0);
    for (kind, block) in blocks(&page) {
        match kind.as_str() {
            "sh install" => {
                // What the ground did, with another profile and another prefix.
                assert_eq!(block, "cargo xtask install --prefix \"$HOME/.local\"\n");
                std::os::unix::fs::symlink(installed(), folder.path().join(".local")).unwrap();
            }
            "sh" => {
                assert_eq!(printed.take(), None, "nothing is said about what was printed");
                printed = Some(shell(folder.path(), &block, &mut exports));
            }
            "text" => {
                assert_eq!(printed.take().as_deref(), Some(block.as_str()));
                compared += 1;
            }
            "c" | "cpp" => {
                let first = block.lines().next().unwrap();
                let name = first.trim_matches(['/', '*', ' ']);
                assert!(name.ends_with(&format!(".{kind}")) || name.ends_with(".h"), "{first}");
                std::fs::write(folder.path().join(name), &block).unwrap();
            }
            other => panic!("a block of {other:?} is not tested"),
        }
    }
    assert!(compared >= 5, "only {compared} outputs were compared");
}

#[test]
fn the_page_for_c_is_true() {
    follow("c.md");
}

#[test]
fn the_page_for_cpp_is_true() {
    follow("cpp.md");
}

#[test]
fn the_readme_compiles() {
    if !have("c++") {
        return;
    }
    let page = std::fs::read_to_string(project().join("README.md")).unwrap();
    let code = blocks(&page).into_iter().find(|(kind, _)| kind == "cpp").expect("a program in C++").1;
    let code = format!("#include <pmo.hpp>\nint main() {{\n{code}}}\n");
    assert_eq!(CPP.refuses(&code, disk().path()), None);
}
