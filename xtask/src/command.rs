//! Running cargo.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

pub(crate) type Result<T = ()> = std::result::Result<T, String>;

pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    by_hand(&mut command).args(arguments);
    command
}

pub(crate) fn by_hand(command: &mut Command) -> &mut Command {
    let told = |name: &str| name.starts_with("CARGO_MANIFEST") || name.starts_with("CARGO_PKG_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        command.env_remove(name);
    }
    command
}

pub(crate) fn step(name: &str, arguments: &[&str]) -> Result {
    step_with(name, arguments, &[])
}

pub(crate) fn step_with(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result {
    let status = timed(name, arguments, environment)?;
    if status.success() { Ok(()) } else { Err(format!("cargo {} failed", arguments.join(" "))) }
}

pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        return Err(format!("{command:?}: {}\n{}", output.status, said.concat()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{command:?}: {error}"))
}

pub(crate) fn timed(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<ExitStatus> {
    println!("\n== {name}: cargo {}", arguments.join(" "));
    let begin = Instant::now();
    let status = cargo(arguments)
        .envs(environment.iter().copied())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    println!("== {name}: {:.0} s", begin.elapsed().as_secs_f64());
    Ok(status)
}

pub(crate) fn target() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").into_os_string();
    let given = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(default));
    std::path::absolute(&given).unwrap_or(given)
}
