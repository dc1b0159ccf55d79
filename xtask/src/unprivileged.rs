//! The tests once more as an unprivileged user, where this one is root.

use crate::steps::{Result, cargo};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user and group nobody.
const NOBODY: &str = "65534";

/// Packages whose tests concern what users run; the others read the project's files.
const PACKAGES: [&str; 4] = ["indelible", "indelible-cli", "indelible-examples", "indelible-testing"];

pub(crate) fn run() -> Result {
    let root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    if !root {
        println!("\n== unprivileged: this user is unprivileged already");
        return Ok(());
    }
    let scratch = Path::new("/var/tmp/indelible-unprivileged");
    std::fs::create_dir_all(scratch)
        .map_err(|error| format!("cannot create {}: {error}", scratch.display()))?;
    open_up(scratch)?;
    // nobody has to reach the binaries: built where everybody may look if the project is not.
    let target = if reachable(&std::env::current_dir().unwrap_or_default()) {
        None
    } else {
        Some(scratch.join("target"))
    };
    println!("\n== unprivileged: tests as user {NOBODY}");
    for binary in binaries(target.as_deref())? {
        println!("-- {}", binary.display());
        let status = Command::new("setpriv")
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs"])
            .arg(&binary)
            .current_dir(scratch)
            .env("HOME", scratch)
            .env("TMPDIR", scratch)
            .env("INDELIBLE_SECOND_RUN", "1")
            .status()
            .map_err(|error| format!("cannot run setpriv (package util-linux): {error}"))?;
        if !status.success() {
            return Err(format!("failed as an unprivileged user: {}", binary.display()));
        }
    }
    Ok(())
}

fn open_up(scratch: &Path) -> Result {
    std::fs::set_permissions(scratch, std::fs::Permissions::from_mode(0o1777))
        .map_err(|error| format!("cannot open up {}: {error}", scratch.display()))
}

/// Whether everybody may look into the folder and those above it.
fn reachable(folder: &Path) -> bool {
    folder.ancestors().all(|folder| std::fs::metadata(folder).is_ok_and(|meta| meta.mode() & 0o001 != 0))
}

/// Builds the test binaries and returns their paths.
fn binaries(target: Option<&Path>) -> Result<Vec<PathBuf>> {
    let mut arguments = vec!["test".into(), "--no-run".into(), "--message-format=json".into()];
    for package in PACKAGES {
        arguments.extend(["-p".into(), package.into()]);
    }
    if let Some(target) = target {
        arguments.extend(["--target-dir".into(), target.as_os_str().to_owned()]);
    }
    let output =
        cargo(&arguments).stderr(std::process::Stdio::inherit()).output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err("the tests do not build".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let tests = messages.filter(|message| message["profile"]["test"] == true);
    Ok(tests.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect())
}
