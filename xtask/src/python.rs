//! The Python package: built, installed into its own environment, and tested there.

use crate::beside::Beside;
use crate::command::{Result, by_hand, target};
use crate::plan::Outcome;
use crate::unprivileged::{self, Nobody, reachable};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Builds the package.
pub(crate) const MATURIN: &str = "maturin>=1.9.4,<2";

const PACKAGES: [&str; 6] =
    [MATURIN, "numpy>=2", "pytest>=8", "hypothesis>=6", "mypy>=1.18", "ml_dtypes>=0.5"];

/// Supported libraries: tests report missing ones.
const OPTIONAL: [&str; 9] = [
    "dask>=2025",
    "fsspec>=2025",
    "ipython>=8",
    "joblib>=1.4",
    "pandas>=2.2",
    "polars>=1",
    "pyarrow>=18",
    "tqdm>=4",
    "zarr>=3",
];

/// The oldest version whose stable interface has buffers.
const OLDEST: (u32, u32) = (3, 11);

/// Builds, installs, tests; `arguments` go to pytest. Missing tools are reported, not failures.
pub(crate) fn run(arguments: &[String]) -> Result<Outcome> {
    let environment = match Environment::new("python-tests", &PACKAGES) {
        Ok(environment) => environment,
        Err(why) => return not_tested(&why),
    };
    let own = environment.program("python");
    succeeds("libraries that may be missing", environment.pip(&["install"]).args(OPTIONAL));
    let mut package = environment.pip(&["install", "--no-build-isolation", "--no-deps", "--force-reinstall"]);
    by_hand(&mut package)
        .arg(folder())
        .env("MATURIN_PEP517_ARGS", "--profile dev --features unified")
        .env("PATH", environment.path());
    if !succeeds("the package", &mut package) {
        return Err("the Python package does not build".into());
    }
    let step = |name: &str, arguments: &[&str]| {
        if succeeds(name, Command::new(&own).args(arguments).current_dir(folder())) {
            return Ok(());
        }
        Err(format!("step failed: {name}"))
    };
    if arguments.is_empty() {
        step(
            "types",
            &[
                "-m",
                "mypy",
                "--strict",
                "python/indelible",
                "bench/dicts.py",
                "bench/cuts.py",
                "bench/checkpoints.py",
                "bench/changes.py",
                "../../examples/python/training.py",
                "../../examples/python/simulation.py",
                "../../examples/python/jobs.py",
                "../../examples/python/cache.py",
            ],
        )?;
        step(
            "stubs",
            &[
                "-m",
                "mypy.stubtest",
                "--concise",
                "--allowlist",
                "tests/stubtest.txt",
                "--ignore-unused-allowlist",
                "indelible._indelible",
            ],
        )?;
    }
    let mut tests = vec!["-m", "pytest", "-q", "-p", "no:cacheprovider"];
    tests.extend(arguments.iter().map(String::as_str));
    if !arguments.is_empty() {
        step("tests", &tests)?;
        return Ok(Outcome::Passed);
    }
    let Some(nobody) = Nobody::new()? else {
        step("tests", &tests)?;
        return Ok(Outcome::Passed);
    };
    let (Some(python), Some(packages)) = (for_everybody(&own), ask(&own, PACKAGES_FOLDER)) else {
        step("tests", &tests)?;
        return not_tested("as an unprivileged user: no python3 of this version that everybody may run");
    };
    let mut command = nobody.command(&python);
    let package = nobody.project().join("crates/python");
    command.args(&tests).arg("--rootdir").arg(&package).arg(package.join("tests"));
    command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    // Tests mostly wait for processes: both runs together take little longer than one.
    let beside = Beside::start("tests of Python as an unprivileged user", &mut command)?;
    let own = step("tests", &tests);
    let other = beside.wait()?;
    own?;
    match other.succeeded {
        true => Ok(Outcome::Passed),
        false => Err("step failed: tests of Python as an unprivileged user".into()),
    }
}

pub(crate) const PACKAGES_FOLDER: &str = "import sysconfig; print(sysconfig.get_path('purelib'))";

/// An interpreter of the version of `own` that all users may run: itself, or one of the system's.
fn for_everybody(own: &Path) -> Option<PathBuf> {
    const VERSION: &str = "import sys; print(sys.version_info[:2])";
    let version = ask(own, VERSION)?;
    let system = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    std::iter::once(own.to_owned()).chain(system).find(|python| {
        python.canonicalize().is_ok_and(|real| reachable(&real))
            && ask(python, VERSION).as_ref() == Some(&version)
    })
}

pub(crate) struct Environment(PathBuf);

impl Environment {
    /// One with these packages of Python's registry; the error tells why not.
    pub(crate) fn new(name: &str, packages: &[&str]) -> Result<Environment> {
        let python = interpreter()
            .ok_or_else(|| format!("no python3 of version {}.{} or later", OLDEST.0, OLDEST.1))?;
        let environment = Environment(unprivileged::shared(target().join(name)));
        let own = environment.program("python");
        let make =
            || succeeds("an environment", Command::new(&python).args(["-m", "venv"]).arg(&environment.0));
        if !own.exists() && !make() {
            return Err("python3 -m venv fails (package python3-venv)".into());
        }
        if !succeeds("packages", environment.pip(&["install"]).args(packages)) {
            return Err(format!("pip cannot install {}: no network?", packages.join(", ")));
        }
        Ok(environment)
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }

    pub(crate) fn pip(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program("python"));
        command.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]).args(arguments);
        command
    }

    pub(crate) fn path(&self) -> OsString {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.0.join("bin")).chain(std::env::split_paths(&old));
        std::env::join_paths(all).unwrap_or(old)
    }
}

pub(crate) fn ask(python: &Path, code: &str) -> Option<String> {
    let output = Command::new(python).args(["-c", code]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    output.status.success().then_some(text)
}

fn interpreter() -> Option<PathBuf> {
    let given = std::env::var_os("PYTHON").map(PathBuf::from);
    let names = ["python3", "python3.14", "python3.13", "python3.12", "python3.11"];
    given.into_iter().chain(names.map(PathBuf::from)).find(|python| {
        let check = format!("import sys; sys.exit(sys.version_info < {OLDEST:?})");
        Command::new(python).args(["-c", &check]).output().is_ok_and(|output| output.status.success())
    })
}

fn not_tested(why: &str) -> Result<Outcome> {
    Ok(Outcome::NotTested(why.to_owned()))
}

pub(crate) fn succeeds(name: &str, command: &mut Command) -> bool {
    println!("\n== python, {name}: {command:?}");
    let begin = Instant::now();
    let status = command.status();
    println!("== python, {name}: {:.0} s", begin.elapsed().as_secs_f64());
    status.is_ok_and(|status| status.success())
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates").join("python")
}
