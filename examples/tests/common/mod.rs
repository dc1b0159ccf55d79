//! Shared helpers: folders, text, processes.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub const WORD_INDEX: &str = env!("CARGO_BIN_EXE_word-index");
pub const COLLECTIONS: &str = env!("CARGO_BIN_EXE_word-index-collections");
pub const THEFT: &str = env!("CARGO_BIN_EXE_theft");
pub const LINKED_LIST: &str = env!("CARGO_BIN_EXE_linked-list");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    Disk,
    Memory,
}

impl Ground {
    pub fn folder(self) -> tempfile::TempDir {
        match self {
            // Not every user may write below the build folder.
            Ground::Disk => {
                tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).or_else(|_| tempfile::tempdir())
            }
            Ground::Memory => tempfile::tempdir_in("/dev/shm"),
        }
        .expect("a folder for the test")
    }
}

/// Text of this project, in the binary as not every user may read the project.
const TEXT: [&str; 8] = [
    include_str!("../../src/linked-list.rs"),
    include_str!("../../src/word-index/arena.rs"),
    include_str!("../../src/commands/build.rs"),
    include_str!("../../src/word-index/writer.rs"),
    include_str!("../../src/word-index/layout.rs"),
    include_str!("../../src/word-index/reader.rs"),
    include_str!("../../src/word-index/check.rs"),
    include_str!("../kill.rs"),
];

/// Text files of pieces of `TEXT`, some packed, one empty, one binary.
pub fn corpus(folder: &Path, files: usize) -> PathBuf {
    let lines: Vec<&str> = TEXT.iter().flat_map(|text| text.lines()).collect();
    let corpus = folder.join("corpus");
    for at in 0..files {
        let part = corpus.join(format!("part-{}", at % 5));
        fs::create_dir_all(&part).unwrap();
        let from = at * 97 % lines.len();
        let piece = lines
            .iter()
            .cycle()
            .skip(from)
            .take(60 + at % 90)
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        if at % 10 == 9 {
            let file = fs::File::create(part.join(format!("{at}.txt.gz"))).unwrap();
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            packed.write_all(piece.as_bytes()).unwrap();
            packed.finish().unwrap();
        } else {
            fs::write(part.join(format!("{at}.txt")), piece).unwrap();
        }
    }
    fs::write(corpus.join("empty"), b"").unwrap();
    fs::write(corpus.join("data.bin"), [7, 0, 7]).unwrap();
    corpus
}

/// Splits `args` into words.
pub fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
pub fn succeed(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    assert!(status.success(), "{command:?}: {status}\n{}{}", text(&stdout), text(&stderr));
    text(&stdout)
}

#[track_caller]
pub fn fail(mut command: Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    assert!(!status.success(), "{command:?} succeeded:\n{}", text(&stdout));
    let code = status.code().unwrap_or_else(|| panic!("{command:?} died: {status}\n{}", text(&stderr)));
    (code, text(&stderr))
}
