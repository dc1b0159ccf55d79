//! The cookbook's page for Rust, literally.

use indelible_testing::page::{blocks, follow, parts_of};
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
    // The tested versions; cargo and rustup live in the real home.
    std::fs::copy(project.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    let of_home =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| format!("{home}/{default}"));
    let bin = folder.path().join("bin");
    let page = format!(
        "```sh\nexport CARGO_HOME={} RUSTUP_HOME={} CARGO_TARGET_DIR={} CARGO_PROFILE_DEV_DEBUG=false\n\
         export PATH=\"{}:$PATH\"\n```\n```text\n```\n{page}",
        of_home("CARGO_HOME", ".cargo"),
        of_home("RUSTUP_HOME", ".rustup"),
        scratch.display(),
        bin.display(),
    );
    let compared = follow(&page, folder.path(), &["toml", "rust"], &|block| {
        assert_eq!(block, "cargo install --path indelible/crates/cli\n");
        install_tool(project, &bin);
    });
    assert_eq!(compared, 7);
}

#[test]
fn the_page_on_sealed_objects_is_true_for_rust() {
    let page = include_str!("../../docs/cookbook/sealed.md");
    let programs: Vec<_> = blocks(page).into_iter().filter(|(kind, _)| kind == "rust").collect();
    let ours = [include_str!("../src/diary.rs"), include_str!("../src/ledger.rs")];
    assert_eq!(programs, ours.map(|program| ("rust".to_owned(), program.to_owned())));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("diary.key"), [7; 32]).unwrap();
    for entries in ["1 entries\n", "2 entries\n"] {
        let diary =
            std::process::Command::new(env!("CARGO_BIN_EXE_diary")).current_dir(folder.path()).output();
        let diary = diary.unwrap();
        assert_eq!(
            (String::from_utf8_lossy(&diary.stdout), diary.stderr.as_slice()),
            (entries.into(), &b""[..])
        );
    }
    for entries in ["2 written, 2 read\n", "4 written, 4 read\n"] {
        let ledger =
            std::process::Command::new(env!("CARGO_BIN_EXE_ledger")).current_dir(folder.path()).output();
        let ledger = ledger.unwrap();
        assert_eq!(
            (String::from_utf8_lossy(&ledger.stdout), ledger.stderr.as_slice()),
            (entries.into(), &b""[..])
        );
    }
    assert!(folder.path().join("elsewhere.anchor").exists());
    std::fs::write(folder.path().join("diary.key"), [8; 32]).unwrap();
    let diary = std::process::Command::new(env!("CARGO_BIN_EXE_diary")).current_dir(folder.path()).output();
    let diary = diary.unwrap();
    assert!(
        !diary.status.success() && String::from_utf8_lossy(&diary.stderr).contains("WrongKey"),
        "{diary:?}"
    );
}

#[test]
fn the_page_on_transactions_is_true_for_rust() {
    let page = include_str!("../../docs/cookbook/transactions.md");
    assert_eq!(parts_of(page, include_str!("../src/bank.rs")), 2);
    assert_eq!(parts_of(page, include_str!("../src/orders.rs")), 2);
    let folder = tempfile::tempdir().unwrap();
    for run in 1..=2 {
        let bank = std::process::Command::new(env!("CARGO_BIN_EXE_bank")).current_dir(folder.path()).output();
        let bank = bank.unwrap();
        let text = String::from_utf8_lossy(&bank.stdout).into_owned();
        assert!(bank.status.success() && bank.stderr.is_empty(), "{bank:?}");
        let made = 100 * run;
        let last = format!("200000 in all; transfers [{}]", vec![made.to_string(); 8].join(", "));
        assert_eq!(text.lines().last(), Some(&*last));
        assert_eq!(text.lines().count(), 801);
    }
    for run in 1..=2 {
        let shop =
            std::process::Command::new(env!("CARGO_BIN_EXE_orders")).current_dir(folder.path()).output();
        let shop = shop.unwrap();
        let text = String::from_utf8_lossy(&shop.stdout).into_owned();
        assert!(shop.status.success() && shop.stderr.is_empty(), "{shop:?}");
        let [last, orders] = [text.lines().last().unwrap(), &format!("order {}: ", run * 100)];
        assert!(last.starts_with(&format!("{} left, ", 20_000 - 100 * run)), "{last}");
        assert!(last.ends_with(" packed: 20000 in all") && text.contains(orders), "{text}");
    }
}

#[test]
fn the_page_on_far_pointers_is_true() {
    let page = include_str!("../../docs/cookbook/far.md");
    assert_eq!(parts_of(page, include_str!("../src/links.rs")), 3);
    let cargo = std::process::Command::new("cargo").arg("--version").output();
    if !cargo.is_ok_and(|output| output.status.success()) {
        indelible_testing::not_tested("the cookbook's page on far pointers: this user cannot run cargo here");
        return;
    }
    let (folder, bin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bin = bin.path().join("bin");
    install_tool(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap(), &bin);
    for (program, path) in [("links", env!("CARGO_BIN_EXE_links")), ("kv", env!("CARGO_BIN_EXE_kv"))] {
        std::os::unix::fs::symlink(path, bin.join(program)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    for (_, block) in blocks(page).into_iter().filter(|(kind, _)| kind == "console") {
        for step in block.split("$ ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            let mut shell = std::process::Command::new("sh");
            shell.current_dir(folder.path()).args(["-c", command]).env("PATH", &path);
            let output = shell.env_remove("PMO_POOL").output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(
                (String::from_utf8_lossy(&output.stdout).into_owned(), said),
                (expected.to_owned(), String::new()),
                "{command}"
            );
            commands += 1;
        }
    }
    assert!(commands > 10, "{commands}");
}

fn install_tool(project: &Path, bin: &Path) {
    let mut build = indelible_testing::cargo();
    build.args(["build", "--workspace", "--bin", "pmo", "--message-format=json"]).current_dir(project);
    let output = build.stderr(std::process::Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the tool does not build");
    let messages = String::from_utf8(output.stdout).unwrap();
    let path = messages.split("\"executable\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    std::fs::create_dir(bin).unwrap();
    std::os::unix::fs::symlink(path, bin.join("pmo")).unwrap();
}
