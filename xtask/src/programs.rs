//! Test programs, as built by cargo.

use crate::command::{Result, cargo};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Unit tests of a library or binary, or a target of `tests/`.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) package: String,
    /// Its package's folder, relative to the project.
    pub(crate) folder: PathBuf,
    pub(crate) target: Vec<String>,
}

pub(crate) fn project() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or_else(|| "the workspace is not there".into())
}

pub(crate) fn build(arguments: &[OsString]) -> Result<Vec<Program>> {
    let mut all: Vec<OsString> =
        ["test", "--no-run", "--message-format=json-render-diagnostics"].map(Into::into).into();
    all.extend_from_slice(arguments);
    let output = cargo(&all).stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("the tests do not build".into());
    }
    let root = project()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok(messages.filter_map(|message| program(root, &message)).collect())
}

fn program(root: &Path, message: &serde_json::Value) -> Option<Program> {
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.strip_prefix(root).ok()?;
    let (kind, name) = (message["target"]["kind"][0].as_str()?, message["target"]["name"].as_str()?);
    let target = match kind {
        "test" | "bin" => vec![format!("--{kind}"), name.to_owned()],
        _ => vec!["--lib".to_owned()],
    };
    // "path+file:///a/folder#name@version", or without a name if the folder has it.
    let id = message["package_id"].as_str()?;
    let package = id.rsplit_once('#').map_or(id, |(_, package)| package);
    let package =
        package.split_once('@').map_or_else(|| folder.file_name()?.to_str(), |(name, _)| Some(name))?;
    Some(Program {
        path: message["executable"].as_str()?.into(),
        package: package.to_owned(),
        folder: folder.to_owned(),
        target,
    })
}

impl Program {
    pub(crate) fn tests(&self) -> Result<Vec<String>> {
        let ignored = self.list(&["--ignored"])?;
        let mut tests = self.list(&[])?;
        tests.retain(|test| !ignored.contains(test));
        Ok(tests)
    }

    fn list(&self, which: &[&str]) -> Result<Vec<String>> {
        let output = Command::new(&self.path).args(["--list", "--format", "terse"]).args(which).output();
        let output = output.map_err(|error| format!("cannot run {}: {error}", self.path.display()))?;
        if !output.status.success() {
            return Err(format!("{} does not list its tests: {}", self.path.display(), output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    pub(crate) fn command(&self, test: &str) -> Result<Command> {
        let folder = project()?.join(&self.folder);
        let mut command = Command::new(&self.path);
        command.args(["--exact", test]).current_dir(&folder).stdin(Stdio::null());
        command.env("CARGO_MANIFEST_DIR", &folder).env("CARGO_PKG_NAME", &self.package);
        Ok(command)
    }

    pub(crate) fn again(&self, test: &str) -> String {
        format!("cargo test -p {} {} -- --exact {test}", self.package, self.target.join(" "))
    }
}
