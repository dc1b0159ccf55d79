//! The source distribution of the Python package, built and installed by `pip` in an environment
//! without the project, offline, where its programs run.
//!
//! The build profile is the one of the tests: the install is tested, not its speed.

use crate::command::{Result, by_hand, target};
use crate::plan::Outcome;
use crate::python::{Environment, MATURIN, folder, succeeds};
use crate::wheel::{newest, works};
use std::process::Command;

pub(crate) fn tried() -> Result<Outcome> {
    let maker = match Environment::new("python-sdist", &[MATURIN]) {
        Ok(environment) => environment,
        Err(why) => return Ok(Outcome::NotTested(why)),
    };
    let out = target().join("sdist");
    let mut make = Command::new(maker.program("maturin"));
    make.arg("sdist").arg("--out").arg(&out).current_dir(folder()).env("PATH", maker.path());
    if !succeeds("a source distribution", &mut make) {
        return Err("the source distribution cannot be made".into());
    }
    let source = newest(&out, "gz").ok_or_else(|| format!("{} is empty", out.display()))?;
    // A fresh one: what an earlier run installed must not help.
    let _ = std::fs::remove_dir_all(target().join("python-sdist-trial"));
    let trial = match Environment::new("python-sdist-trial", &[MATURIN, "numpy>=2"]) {
        Ok(environment) => environment,
        Err(why) => return Ok(Outcome::NotTested(why)),
    };
    let mut install = trial.pip(&["install", "--no-index", "--no-build-isolation"]);
    by_hand(&mut install)
        .arg(&source)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TARGET_DIR", target().join("sdist-build"))
        .env("MATURIN_PEP517_ARGS", "--profile dev")
        .env("PATH", trial.path());
    if !succeeds("the source distribution", &mut install) {
        return Err("pip cannot install the source distribution".into());
    }
    works(&trial).map(|()| Outcome::Passed)
}
