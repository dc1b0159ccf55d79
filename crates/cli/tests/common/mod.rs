//! Helpers: a folder, the tool run in it, and processes that hold objects.

#![allow(dead_code)]

use serde_json::Value;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

pub const PMO: &str = env!("CARGO_BIN_EXE_pmo");
pub const MKPMO: &str = env!("CARGO_BIN_EXE_mkpmo");

#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub raw: Vec<u8>,
    pub err: String,
}

impl Run {
    pub fn of(command: &mut Command, input: &[u8]) -> Run {
        let mut child = command
            .env_remove("PMO_KEY")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_owned();
        let feed = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("the tool ends");
        feed.join().expect("fed");
        Run {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            raw: output.stdout,
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn fine(self) -> Run {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self
    }

    /// Fails with `code`, one line that contains `needle`, and one of help.
    #[track_caller]
    pub fn fails(self, code: i32, needle: &str) -> Run {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains(needle), "{needle:?} is not in {self:?}");
        if code != 2 || self.err.starts_with("error: cannot") {
            let lines: Vec<_> = self.err.lines().collect();
            assert!(
                lines.iter().all(|line| line.starts_with("error: ") || line.starts_with("help: ")),
                "{self:?}"
            );
        }
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub struct Rig {
    pub dir: tempfile::TempDir,
    pub pool: PathBuf,
}

impl Rig {
    pub fn empty() -> Rig {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).expect("set");
        let pool = dir.path().join("t.pmo");
        Rig { dir, pool }
    }

    pub fn new() -> Rig {
        let rig = Rig::empty();
        rig.pmo(["format"], ["--size", "16M"]).fine();
        rig
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn command(&self, before: impl IntoIterator<Item = &'static str>) -> Command {
        let mut command = Command::new(PMO);
        command.current_dir(self.dir.path()).args(before).arg(&self.pool);
        command
    }

    pub fn pmo<S: AsRef<OsStr>>(
        &self,
        before: impl IntoIterator<Item = &'static str>,
        after: impl IntoIterator<Item = S>,
    ) -> Run {
        Run::of(self.command(before).args(after), b"")
    }

    pub fn feed<const N: usize>(&self, before: &'static str, after: [&str; N], input: &[u8]) -> Run {
        Run::of(self.command([before]).args(after), input)
    }

    #[track_caller]
    pub fn line(&self, name: &str) -> String {
        let run = self.pmo(["ls"], [name]).fine();
        let line = run.out.lines().nth(1).unwrap_or_else(|| panic!("{name} is not there: {run:?}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Another process attaches an object until this value is dropped or killed.
    pub fn hold(&self, name: &str, write: bool) -> Holder {
        let mut command = self.command(["attach-check"]);
        command.args([name, "--hold"]).args(write.then_some("--write"));
        Holder::start(command, "attached")
    }
}

pub fn pmo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    Run::of(Command::new(PMO).args(arguments), b"")
}

pub struct Holder {
    child: Child,
    input: Option<ChildStdin>,
}

impl Holder {
    /// Waits for the line `sign`.
    pub fn start(mut command: Command, sign: &str) -> Holder {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the holder starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.contains(sign) {
            line.clear();
            assert!(lines.read_line(&mut line).expect("text") > 0, "the holder ended");
        }
        std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
        let input = child.stdin.take();
        Holder { child, input }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    pub fn release(mut self) {
        self.input = None;
        assert!(self.child.wait().expect("ended").success());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Not captured by the test harness.
pub fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Compares a page's commands with their output there; returns their number.
#[track_caller]
pub fn run_page(page: &str) -> usize {
    let rig = Rig::empty();
    let tools = std::path::Path::new(PMO).parent().unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    for block in page.split("```console\n").skip(1) {
        let block = &block[..block.find("```").unwrap()];
        for step in block.split("$ ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            let mut shell = Command::new("sh");
            shell.current_dir(rig.dir.path()).args(["-c", command]).env("PATH", &path).env_remove("PMO_POOL");
            let run = Run::of(&mut shell, b"").fine();
            assert_eq!(run.out, expected, "{command}");
            commands += 1;
        }
    }
    commands
}
