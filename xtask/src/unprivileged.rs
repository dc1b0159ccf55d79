//! Repeats tests as an unprivileged user, where this one is root.

use crate::command::Result;
use crate::programs::{self, Program};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const NOBODY: &str = "65534";

/// Packages whose tests depend on user rights, with arguments that choose these. Others run on
/// simulated media, or compile programs, for which this user may lack the compiler.
const PACKAGES: [(&str, &[&str]); 4] = [
    ("indelible", &["--skip=same_code::", "--skip=power_cut"]),
    ("indelible-cli", &[]),
    ("indelible-examples", &[]),
    ("indelible-capi", &["c::", "boundary::"]),
];

pub(crate) struct Nobody {
    scratch: PathBuf,
    project: PathBuf,
}

impl Nobody {
    /// `None` if this user is unprivileged already.
    pub(crate) fn new() -> Result<Option<Nobody>> {
        if !fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0) {
            return Ok(None);
        }
        let scratch = scratch();
        let failed = |error: std::io::Error| format!("cannot prepare {}: {error}", scratch.display());
        fs::create_dir_all(&scratch).map_err(failed)?;
        fs::set_permissions(&scratch, fs::Permissions::from_mode(0o1777)).map_err(failed)?;
        let mut project = programs::project()?.to_owned();
        if !reachable(&project) {
            let copy = scratch.join("project");
            let _ = fs::remove_dir_all(&copy);
            copy_tree(&project, &copy).map_err(failed)?;
            project = copy;
        }
        Ok(Some(Nobody { scratch, project }))
    }

    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs"]);
        command.arg(program).current_dir(&self.scratch);
        command.env("HOME", &self.scratch).env("TMPDIR", &self.scratch);
        command
    }

    fn succeeds(command: &mut Command) -> Result<bool> {
        let status = command.status();
        Ok(status.map_err(|error| format!("cannot run setpriv (package util-linux): {error}"))?.success())
    }
}

fn scratch() -> PathBuf {
    PathBuf::from("/var/tmp/indelible-unprivileged")
}

/// `folder`, or, if only root may enter it, one of the same name for all users.
pub(crate) fn shared(folder: PathBuf) -> PathBuf {
    let root = fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    match folder.file_name() {
        Some(name) if root && !folder.parent().is_some_and(reachable) => scratch().join(name),
        _ => folder,
    }
}

pub(crate) fn run() -> Result {
    let Some(nobody) = Nobody::new()? else {
        println!("\n== unprivileged: this user is unprivileged already");
        return Ok(());
    };
    // The user must reach the binaries: outside of a reachable project they are built in a readable
    // folder.
    let target = if reachable(&std::env::current_dir().unwrap_or_default()) {
        None
    } else {
        Some(nobody.scratch.join("target"))
    };
    println!("\n== unprivileged: tests as user {NOBODY}");
    let prefix = nobody.scratch.join("pmo");
    let _ = fs::remove_dir_all(&prefix);
    crate::install::run(&prefix, None, "dev", &[])?;
    // All of them, as the tests before were built: a selection would be built anew, with fewer
    // features.
    let mut arguments: Vec<OsString> = vec!["--workspace".into()];
    arguments
        .extend(target.iter().flat_map(|target| ["--target-dir".into(), target.clone().into_os_string()]));
    for Program { path, folder, package, .. } in programs::build(&arguments)? {
        let Some((_, tests)) = PACKAGES.iter().find(|(name, _)| *name == package) else { continue };
        println!("-- {}", path.display());
        let mut test = nobody.command(&path);
        test.args(*tests);
        // As cargo sets them: a readable project, and the library's place.
        test.env("CARGO_MANIFEST_DIR", nobody.project.join(folder)).env("INDELIBLE_PREFIX", &prefix);
        if !Nobody::succeeds(&mut test)? {
            return Err(format!("failed as an unprivileged user: {}", path.display()));
        }
    }
    Ok(())
}

/// Whether all users may enter the folder, or run the file, and enter those above it.
pub(crate) fn reachable(folder: &Path) -> bool {
    folder.ancestors().all(|folder| fs::metadata(folder).is_ok_and(|meta| meta.mode() & 0o001 != 0))
}

/// Copies a folder, readable for all users, without hidden files and build output.
fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let to = to.join(&name);
        if name.to_string_lossy().starts_with('.') || name == "target" {
            continue;
        }
        if kind.is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o644))?;
        }
    }
    Ok(())
}
