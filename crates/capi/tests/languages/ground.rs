use indelible_testing::not_tested;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

pub fn source() -> &'static Path {
    static SOURCE: OnceLock<PathBuf> = OnceLock::new();
    SOURCE.get_or_init(|| {
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into()
    })
}

pub fn project() -> PathBuf {
    source().join("../..").canonicalize().expect("the workspace")
}

/// The prefix of `cargo xtask install`, or of `INDELIBLE_PREFIX` if it is filled.
pub fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        if let Some(prefix) = std::env::var_os("INDELIBLE_PREFIX") {
            return prefix.into();
        }
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pmo");
        let _ = std::fs::remove_dir_all(&prefix);
        let mut command = indelible_testing::cargo();
        command.args(["xtask", "install", "--profile", "dev", "--prefix"]).arg(&prefix);
        succeed(command.current_dir(project()));
        prefix
    })
}

pub fn have(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        not_tested(format_args!("what needs {tool}, which is not installed"));
    }
    there
}

/// Compiles `tests/programs`, or a path, against the installed library.
pub struct Compiler {
    pub command: &'static str,
    pub flags: &'static [&'static str],
}

pub const C: Compiler =
    Compiler { command: "cc", flags: &["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"] };
pub const CPP: Compiler =
    Compiler { command: "c++", flags: &["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread"] };

impl Compiler {
    pub fn compile(&self, program: &Path, into: &Path) -> Output {
        let prefix = installed();
        let lib = prefix.join("lib");
        let mut command = Command::new(self.command);
        command.args(self.flags).arg("-g").arg("-I").arg(prefix.join("include")).arg("-o").arg(into);
        command.arg(program).arg("-L").arg(&lib).arg("-lpmo").arg(format!("-Wl,-rpath,{}", lib.display()));
        command.env("LC_ALL", "C.UTF-8").output().expect("the compiler runs")
    }

    #[track_caller]
    pub fn build(&self, program: &Path, into: &Path) {
        let output = self.compile(program, into);
        assert!(output.status.success(), "{}: {}", program.display(), text(&output.stderr));
    }

    pub fn refuses(&self, code: &str, folder: &Path) -> Option<String> {
        let file = folder.join(if self.command == "cc" { "refused.c" } else { "refused.cpp" });
        std::fs::write(&file, code).expect("a file");
        let output = self.compile(&file, &folder.join("refused"));
        (!output.status.success()).then(|| text(&output.stderr))
    }
}

pub fn program(name: &str) -> PathBuf {
    source().join("tests/programs").join(name)
}

#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = text(&output.stdout);
    assert!(output.status.success(), "{command:?}: {}\n{said}{}", output.status, text(&output.stderr));
    said
}

#[track_caller]
pub fn dies(command: &mut Command) -> i32 {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (status, said) = (output.status, text(&output.stderr));
    status.signal().unwrap_or_else(|| panic!("{command:?}: {status}: {said}"))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn folder() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("indelible-capi")
        .tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder")
}

pub fn disk() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("indelible-capi").tempdir_in("/var/tmp").expect("a folder")
}
