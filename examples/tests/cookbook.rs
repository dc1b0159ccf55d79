//! The cookbook's page for Rust, followed to the letter.

use indelible_testing::page::follow;
use std::path::Path;

#[test]
fn the_page_for_rust_is_true() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(project.join("docs/cookbook/rust.md")).unwrap();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cookbook");
    let writable = std::fs::create_dir_all(&scratch).is_ok() && tempfile::tempfile_in(&scratch).is_ok();
    let cargo = std::process::Command::new("cargo").arg("--version").output();
    if !writable || !cargo.is_ok_and(|output| output.status.success()) {
        indelible_testing::not_tested("the cookbook's page for Rust: this user cannot run cargo here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(project, folder.path().join("indelible")).unwrap();
    // The versions that the project was tested with; cargo and rustup live in the real home.
    std::fs::copy(project.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    let of_home =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| format!("{home}/{default}"));
    let page = format!(
        "```sh\nexport CARGO_HOME={} RUSTUP_HOME={} CARGO_TARGET_DIR={}\n```\n```text\n```\n{page}",
        of_home("CARGO_HOME", ".cargo"),
        of_home("RUSTUP_HOME", ".rustup"),
        scratch.display(),
    );
    let compared = follow(&page, folder.path(), &["toml", "rust"], &|_| unreachable!("nothing to install"));
    assert_eq!(compared, 5);
}
