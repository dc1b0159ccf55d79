//! The program of docs/cookbook/files.md prints what the page says.

use crate::support::OWN;
use indelible_posix::{ROOT, Volume};
use std::process::Command;

mod program {
    include!("page/program.rs");

    #[test]
    #[ignore = "run by the other test as a process of its own"]
    fn runs() {
        if std::env::var_os("WORK").is_some() {
            main().unwrap();
        }
    }
}

#[test]
fn the_program_of_the_cookbook_runs() {
    let page = include_str!("../../../docs/cookbook/files.md");
    assert!(page.contains(include_str!("page/program.rs")), "the page has another program");
    let folder = tempfile::tempdir().unwrap();
    let pool = indelible::Pool::format(folder.path().join("files.pmo"), 64 << 20).unwrap();
    let mut volume = Volume::create(&pool, "files", &OWN).unwrap();
    let notes = volume.create_directory(ROOT, b"notes", &OWN).unwrap();
    let garden = volume.create_directory(notes, b"garden", &OWN).unwrap();
    volume.create_file(garden, b"today", &OWN).unwrap();
    volume.sync().unwrap();
    drop((volume, pool));
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "page::program::runs", "--nocapture", "--ignored"]);
    let run = program.current_dir(folder.path()).env("WORK", "yes").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("cut the hedge\n"), "{run:?}");
    let volume =
        Volume::open_read(&indelible::Pool::open(folder.path().join("files.pmo")).unwrap(), "files").unwrap();
    let target = volume.read_link(volume.find(b"now").unwrap()).unwrap();
    assert_eq!(volume.read(volume.find(&target).unwrap(), 0, 99).unwrap(), b"cut the hedge\n");
}
