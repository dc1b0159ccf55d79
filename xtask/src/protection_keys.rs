//! Tests of protection keys in an emulated machine.

use crate::command::Result;
use crate::plan::Outcome;
use crate::programs::{self, Program};
use std::path::PathBuf;
use std::process::Command;

/// Runs them under the newest installed kernel of the rig.
pub(crate) fn run() -> Result<Outcome> {
    let project = programs::project()?;
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.join("target"), PathBuf::from);
    let lacking = |what: &str| Ok(Outcome::NotTested(format!("{what}; `cargo xtask power-cut` installs it")));
    let kernels = ["6.12", "6.1"].map(|version| folder.join("rig/kernels").join(version).join("vmlinux"));
    let Some(kernel) = kernels.iter().find(|kernel| kernel.is_file()) else {
        return lacking("there is no kernel for the emulator");
    };
    if ["qemu-system-x86_64", "busybox", "cpio"].iter().any(|program| !is_there(program)) {
        return lacking("there is no emulator");
    }
    // Built as the tests before, so that nothing is rebuilt.
    let built = programs::build(&["--workspace".into()])?;
    let unit_tests = |program: &&Program| program.package == "indelible" && program.target == ["--lib"];
    let views = |program: &&Program| program.package == "indelible" && program.target == ["--test", "views"];
    let (Some(tests), Some(views)) = (built.iter().find(unit_tests), built.iter().find(views)) else {
        return Err("no program of these tests was built".into());
    };
    let mut rig = Command::new(project.join("rig/protection-keys.sh"));
    let status = rig.arg(kernel).args([&tests.path, &views.path]).status();
    match status.map_err(|error| format!("cannot run rig/protection-keys.sh: {error}"))?.success() {
        true => Ok(Outcome::Passed),
        false => Err("protection keys do not do what they promise".into()),
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
