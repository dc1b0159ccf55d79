//! A wheel of the Python package for other machines: for each Python from the oldest on, and each
//! distribution with a C library of `PLATFORM` or newer.
//!
//! zig links against the symbols of that version, also for another architecture. The wheel is then
//! inspected. One for this machine's architecture is installed into an environment without the
//! project, where its programs run.

use crate::command::{Result, output, target};
use crate::python::{Environment, MATURIN, folder, succeeds};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest supported C library: version 2.28, of 2018.
const PLATFORM: &str = "manylinux_2_28";

const PACKAGES: [&str; 3] = [MATURIN, "ziglang>=0.13", "auditwheel>=6"];

const MEMBERS: [&str; 7] = [
    "indelible/__init__.py",
    "indelible/_indelible.abi3.so",
    "indelible/_indelible.pyi",
    "indelible/py.typed",
    ".dist-info/entry_points.txt",
    ".dist-info/licenses/LICENSE-APACHE",
    ".dist-info/licenses/LICENSE-MIT",
];

const STRIPPED: &str = "
import sys, zipfile
native = zipfile.ZipFile(sys.argv[1]).read('indelible/_indelible.abi3.so')
assert b'.symtab' not in native, 'the native half is not stripped'
";

const TRIAL: &str = "
import sys, indelible
pool = indelible.open(sys.argv[1], 64 << 20)
w = pool.array('w', (1000, 100), 'f8')
w += 1
with pool.dict('run') as run:
    run['step'] = 1
    indelible.psync(w, run)
del w
assert pool.array('w', mode='r').sum() == 100_000 and pool.dict('run', 'r')['step'] == 1
with open(indelible._indelible.__file__, 'rb') as native:
    assert b'.symtab' not in native.read(), 'the native half is not stripped'
";

/// `architecture`: as Rust names it, such as aarch64; its target has to be installed by rustup.
pub(crate) fn run(out: Option<&Path>, architecture: Option<&str>) -> Result {
    let out = out.map_or_else(|| target().join("wheels"), Path::to_owned);
    // maturin runs in another folder.
    let out = std::path::absolute(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let environment = Environment::new("python-wheel", &PACKAGES)?;
    let mut build = Command::new(environment.program("maturin"));
    build.args(["build", "--release", "--zig", "--compatibility", PLATFORM, "--out"]).arg(&out);
    if let Some(architecture) = architecture {
        build.arg("--target").arg(format!("{architecture}-unknown-linux-gnu"));
    }
    build.current_dir(folder()).env("PATH", environment.path());
    if !succeeds("a wheel", &mut build) {
        return Err("the wheel cannot be built".into());
    }
    let wheel = newest(&out, "whl").ok_or_else(|| format!("there is no wheel in {}", out.display()))?;
    let architecture = architecture.unwrap_or(std::env::consts::ARCH);
    look_into(&environment, &wheel, architecture)?;
    if architecture == std::env::consts::ARCH {
        attempt(&wheel)?;
    } else {
        println!("\nnot installed: this machine is no {architecture}");
    }
    println!("\n{}", wheel.display());
    Ok(())
}

/// The newest file in a folder whose name ends so.
pub(crate) fn newest(folder: &Path, end: &str) -> Option<PathBuf> {
    let all = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let fitting = all.filter(|path| path.extension().is_some_and(|extension| extension == end));
    fitting.max_by_key(|path| path.metadata().and_then(|found| found.modified()).ok())
}

fn look_into(environment: &Environment, wheel: &Path, architecture: &str) -> Result {
    let listed =
        output(Command::new(environment.program("python")).args(["-m", "zipfile", "--list"]).arg(wheel))?;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let lacks = |member: &&&str| !names.iter().any(|name| name.ends_with(**member));
    if let Some(member) = MEMBERS.iter().find(lacks) {
        return Err(format!("{} has no {member}", wheel.display()));
    }
    let mut stripped = Command::new(environment.program("python"));
    if !succeeds("is it stripped", stripped.args(["-I", "-c", STRIPPED]).arg(wheel)) {
        return Err(format!("{} is not stripped", wheel.display()));
    }
    let shown = output(Command::new(environment.program("auditwheel")).arg("show").arg(wheel))?;
    match expects(&shown, architecture) {
        true => Ok(()),
        false => Err(format!("{} is not for {PLATFORM}_{architecture}:\n{shown}", wheel.display())),
    }
}

/// Whether auditwheel confirms `PLATFORM`. It breaks its lines anywhere.
fn expects(shown: &str, architecture: &str) -> bool {
    let words: Vec<&str> = shown.split_whitespace().collect();
    let tag = format!("is consistent with the following platform tag: \"{PLATFORM}_{architecture}\"");
    words.join(" ").contains(&tag)
}

fn attempt(wheel: &Path) -> Result {
    let environment = Environment::new("python-wheel-trial", &["numpy>=2"])?;
    let mut install = environment.pip(&["install", "--force-reinstall", "--no-deps"]);
    if !succeeds("the wheel", install.arg(wheel)) {
        return Err("the wheel cannot be installed".into());
    }
    works(&environment)
}

/// Runs a program and the command `pmo` of the package that is installed in the environment.
pub(crate) fn works(environment: &Environment) -> Result {
    let pool = environment.program("trial.pmo");
    let _ = std::fs::remove_file(&pool);
    let mut program = Command::new(environment.program("python"));
    program.args(["-I", "-W", "error", "-c", TRIAL]).arg(&pool);
    let mut check = Command::new(environment.program("pmo"));
    check.arg("check").arg(&pool);
    let used = succeeds("a program", &mut program) && succeeds("its command", &mut check);
    let _ = std::fs::remove_file(&pool);
    if used { Ok(()) } else { Err("the package was installed, and does not work".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_that_needs_a_newer_c_library_is_refused() {
        let shown = |tag: &str| {
            format!(
                "\nindelible-0.1.0-cp311-abi3-x.whl is consistent\nwith the following platform tag: \"{tag}\".\n\nThe wheel …"
            )
        };
        assert!(expects(&shown("manylinux_2_28_x86_64"), "x86_64"));
        assert!(expects(&shown("manylinux_2_28_aarch64"), "aarch64"));
        for tag in ["manylinux_2_34_x86_64", "linux_x86_64", "manylinux_2_28_aarch64"] {
            assert!(!expects(&shown(tag), "x86_64"), "{tag}");
        }
    }
}
