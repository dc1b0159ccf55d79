//! Commands of the nightly toolchain, for fuzzing and tools only.

use crate::command::Result;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(arguments).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

pub(crate) fn components(names: &[&str]) -> Result {
    let mut command = Command::new("rustup");
    command.args(["toolchain", "install", "nightly", "--profile", "minimal", "--no-self-update"]);
    names.iter().for_each(|name| _ = command.args(["--component", name]));
    let have =
        Command::new("rustup").args(["component", "list", "--toolchain", "nightly", "--installed"]).output();
    let have = have.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if names.iter().all(|name| have.lines().any(|line| line.starts_with(name))) {
        return Ok(());
    }
    println!("== rustup: {}", names.join(", "));
    let status = command.status().map_err(|error| format!("cannot run rustup: {error}"))?;
    if status.success() { Ok(()) } else { Err("the nightly toolchain cannot be installed".into()) }
}

pub(crate) fn watch(mut command: Command, mut look: impl FnMut(&str)) -> Result {
    println!("== {command:?}");
    let (reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
    let other = writer.try_clone().map_err(|error| error.to_string())?;
    command.stdin(Stdio::null()).stdout(writer).stderr(other);
    let mut child = command.spawn().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    drop(command);
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(|error| error.to_string())? > 0 {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        look(text.trim_end());
        line.clear();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("it failed: {status}")) }
}
