//! `cargo xtask deb`: packages for Debian and its derivatives, of one installation below `/usr`.
//!
//! Each package has the files of its patterns; a file that no package has is an error. The packages
//! are tried in a root of their own: installed, used, removed.

use crate::command::{Result, by_hand, output, target};
use crate::files::{self, copy, folder, read, write};
use crate::plan::Outcome;
use crate::python::{Environment, MATURIN, PACKAGES_FOLDER, ask, succeeds as passes};
use crate::{install, programs, python};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");

const COPYRIGHT: &str = "Indelible: persistent memory objects.
License: MIT or Apache-2.0, at your choice.

@MIT@

The Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0 on Debian systems.
";

/// Of packages that no maintainer publishes; lintian refuses it as an address.
const NO_ADDRESS: &str = "maintainers@localhost";

const PYTHON: &str = "python3-indelible";
/// Where Python of Debian finds packages, below `/usr`.
const DIST_PACKAGES: &str = "lib/python3/dist-packages";

struct Package {
    name: &'static str,
    section: &'static str,
    /// Packages of this list that it needs, in this version.
    needs: &'static [&'static str],
    /// Packages of Debian. That of the C library is needed in this machine's version at least.
    system: &'static [&'static str],
    recommends: &'static str,
    title: &'static str,
    text: &'static str,
    /// Beginnings of the paths of its files below `/usr`; the first package that has one takes it.
    files: &'static [&'static str],
    /// Reports of lintian that this package overrides.
    accepted: &'static [&'static str],
}

/// The files of pkg-config find their folders by their own place.
const RELATIVE: &str = "pkg-config-unavailable-for-cross-compilation";
/// SQLite loads the extension by the name of its file.
const LOADED: &str = "sharedobject-in-library-directory-missing-soname";

/// In the order in which they take their files.
const PACKAGES: [Package; 7] = [
    Package {
        name: "libsqlite3-pmo",
        section: "database",
        needs: &[],
        system: &["libc6", "libgcc-s1"],
        recommends: "",
        title: "SQLite databases in persistent memory objects",
        text: "An extension that SQLite loads: each database is an object of a pool.",
        files: &["lib/libsqlite3-pmo.", "lib/pkgconfig/sqlite3-pmo", "include/sqlite3-pmo.h"],
        accepted: &[RELATIVE, LOADED],
    },
    Package {
        name: PYTHON,
        section: "python",
        needs: &[],
        system: &["libc6", "libgcc-s1", "python3 (>= 3.11)", "python3-numpy (>= 1:1.26)"],
        recommends: "pmo",
        title: "persistent memory objects for Python",
        text: "Numpy arrays and dicts that survive any crash.",
        files: &[DIST_PACKAGES],
        accepted: &[],
    },
    Package {
        name: "pmo-mount",
        section: "admin",
        needs: &["pmo"],
        system: &["libc6", "libgcc-s1"],
        recommends: "fuse3",
        title: "volumes of files in persistent memory objects, mounted",
        text: "The program that pmo mount starts: it serves a volume in a pool by FUSE.",
        files: &["bin/pmo-mount", "share/man/man1/pmo-mount."],
        accepted: &[],
    },
    Package {
        name: "pmo-replicate",
        section: "admin",
        needs: &["pmo"],
        system: &["libc6", "libgcc-s1"],
        recommends: "ca-certificates",
        title: "pools of persistent memory objects in object storage",
        text: "The program that pmo replicate starts: it ships changes and restores pools.",
        files: &["bin/pmo-replicate", "share/man/man1/pmo-replicate."],
        accepted: &[],
    },
    Package {
        name: "pmo",
        section: "admin",
        needs: &[],
        system: &["libc6", "libgcc-s1"],
        recommends: "",
        title: "tool for pools of persistent memory objects",
        text: "Makes pools and objects, checks, repairs, copies, backs up and seals them.",
        files: &[
            "bin/pmo",
            "bin/mkpmo",
            "lib/systemd/",
            "share/man/man1/",
            "share/bash-completion/",
            "share/zsh/",
            "share/fish/",
        ],
        accepted: &[],
    },
    Package {
        name: "libpmo0",
        section: "libs",
        needs: &[],
        system: &["libc6", "libgcc-s1"],
        recommends: "",
        title: "persistent memory objects, shared library",
        text: "Named objects in the address space of a program, durable and atomic by psync.",
        files: &["lib/libpmo.so.", "lib/libpmo-tm.so."],
        accepted: &[],
    },
    Package {
        name: "libpmo-dev",
        section: "libdevel",
        needs: &["libpmo0"],
        system: &["libc6-dev"],
        recommends: "pkg-config, pmo",
        title: "persistent memory objects, development files",
        text: "Headers, static libraries, pkg-config and CMake files, manual pages.",
        files: &["include/", "lib/libpmo", "lib/pkgconfig/", "lib/cmake/", "share/pmo/", "share/man/man3/"],
        accepted: &[RELATIVE],
    },
];

/// Makes the packages in `out`, and tries them; says which one this machine cannot make.
pub(crate) fn run(out: Option<&Path>, profile: &str) -> Result {
    make(out, profile).map(|missing| missing.iter().for_each(|missing| println!("{missing}")))
}

/// Returns what was not made or not tested, and why.
fn make(out: Option<&Path>, profile: &str) -> Result<Vec<String>> {
    let work = target().join("deb");
    let out = out.map_or_else(|| work.join("packages"), Path::to_owned);
    let _ = fs::remove_dir_all(&work);
    let stage = work.join("stage");
    install::run(Path::new("/usr"), Some(&stage), profile, &[])?;
    let mut missing = Vec::new();
    let environment = Environment::new("python-deb", &[MATURIN, "numpy>=2"])
        .inspect_err(|why| missing.push(format!("{PYTHON} was not made: {why}")))
        .ok();
    if let Some(environment) = &environment {
        unpack_wheel(environment, &work.join("wheel"), &stage.join("usr").join(DIST_PACKAGES), profile)?;
    }
    let mut left = files::below(&stage.join("usr"))?;
    let out = folder(&out, "")?;
    let mut made = Vec::new();
    for package in PACKAGES.iter().filter(|package| environment.is_some() || package.name != PYTHON) {
        let is_own =
            |file: &PathBuf| package.files.iter().any(|start| file.to_string_lossy().starts_with(start));
        let (own, others): (Vec<PathBuf>, Vec<PathBuf>) = left.into_iter().partition(is_own);
        left = others;
        made.push(package.make(&stage.join("usr"), &own, &work, &out)?);
    }
    if !left.is_empty() {
        return Err(format!("no package has {left:?}"));
    }
    attempt(&work.join("root"), &made, environment.as_ref())?;
    missing.extend(inspected(&made, profile != "dev")?);
    made.iter().for_each(|package| println!("{}", package.display()));
    Ok(missing)
}

/// Puts the files of a new wheel of the Python package into `to`.
fn unpack_wheel(environment: &Environment, wheels: &Path, to: &Path, profile: &str) -> Result {
    let mut build = Command::new(environment.program("maturin"));
    build.args(["build", "--profile", profile, "--compatibility", "linux", "--out"]).arg(wheels);
    if profile == "dev" {
        // As the tests build it.
        build.args(["--features", "unified"]);
    }
    by_hand(&mut build).current_dir(python::folder()).env("PATH", environment.path());
    if !passes("a wheel", &mut build) {
        return Err("the wheel cannot be built".into());
    }
    let wheel = files::below(wheels)?.pop().ok_or("maturin leaves no wheel")?;
    let mut unpack = Command::new(environment.program("python"));
    unpack.args(["-m", "zipfile", "--extract"]).arg(wheels.join(wheel)).arg(folder(to, "")?);
    succeeds(&mut unpack)
}

/// The packages of the tests' build, made and tried where there is dpkg.
pub(crate) fn tried() -> Result<Outcome> {
    if Command::new("dpkg").arg("--version").output().is_err() {
        return Ok(Outcome::NotTested("dpkg is not there".into()));
    }
    make(None, "dev").map(|missing| match missing.is_empty() {
        true => Outcome::Passed,
        false => Outcome::PassedWithout(missing),
    })
}

impl Package {
    /// Makes the package of these files of the stage; returns its path.
    fn make(&self, stage: &Path, own: &[PathBuf], work: &Path, out: &Path) -> Result<PathBuf> {
        let root = work.join(self.name);
        for file in own {
            put(&stage.join(file), &root.join("usr").join(file), &file.to_string_lossy())?;
        }
        let doc = folder(&root, &format!("usr/share/doc/{}", self.name))?;
        let project = programs::project()?;
        let licence = read(&project.join("LICENSE-MIT"))?;
        write(&doc.join("copyright"), &COPYRIGHT.replace("@MIT@", &licence))?;
        write(&doc.join("changelog"), &changelog(&project.join("CHANGELOG.md"))?)?;
        compress(&doc.join("changelog"))?;
        if !self.accepted.is_empty() {
            let lines = self.accepted.iter().map(|tag| format!("{}: {tag}\n", self.name));
            write(
                &folder(&root, "usr/share/lintian/overrides")?.join(self.name),
                &lines.collect::<String>(),
            )?;
        }
        let control = folder(&root, "DEBIAN")?;
        let sonames: Vec<_> = own.iter().filter_map(|file| soname(file)).collect();
        if !sonames.is_empty() {
            let line = |name: &String| format!("{name} {} (>= {VERSION})\n", self.name);
            write(&control.join("shlibs"), &sonames.iter().map(line).collect::<String>())?;
            write(&control.join("triggers"), "activate-noawait ldconfig\n")?;
        }
        let is_file = |file: &PathBuf| !file.starts_with("DEBIAN") && !root.join(file).is_symlink();
        let all: Vec<PathBuf> = files::below(&root)?.into_iter().filter(is_file).collect();
        write(&control.join("control"), &self.control(&root, &all)?)?;
        let sums = output(Command::new("md5sum").arg("--").args(all).current_dir(&root))?;
        write(&control.join("md5sums"), &sums)?;
        let package = out.join(format!("{}_{VERSION}_{}.deb", self.name, architecture()?));
        let mut build = Command::new("dpkg-deb");
        succeeds(build.args(["--build", "--root-owner-group"]).arg(&root).arg(&package))?;
        Ok(package)
    }

    /// The description of the package, which has these files.
    fn control(&self, root: &Path, files: &[PathBuf]) -> Result<String> {
        let libc = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
        let libc = libc.trim().trim_start_matches("glibc ");
        let own = self.needs.iter().map(|name| format!("{name} (= {VERSION})"));
        let system = self.system.iter().map(|name| match name.starts_with("libc6") {
            true => format!("{name} (>= {libc})"),
            false => (*name).to_owned(),
        });
        let depends: Vec<String> = own.chain(system).collect();
        let recommends = match self.recommends {
            "" => String::new(),
            names => format!("Recommends: {names}\n"),
        };
        let lengths = files.iter().filter_map(|file| fs::metadata(root.join(file)).ok()).map(|at| at.len());
        Ok(format!(
            "Package: {}\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {}\n\
             Installed-Size: {}\nSection: {}\nPriority: optional\nDepends: {}\n{recommends}\
             Description: {}\n {}\n",
            self.name,
            architecture()?,
            maintainer(),
            lengths.sum::<u64>().div_ceil(1024),
            self.section,
            depends.join(", "),
            self.title,
            self.text
        ))
    }
}

/// Debian's programs take the builder's name from these variables.
fn maintainer() -> String {
    let of = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    format!("{} <{}>", of("DEBFULLNAME", "The maintainers of Indelible"), of("DEBEMAIL", NO_ADDRESS))
}

/// Debian's form, with the date of the project's list of changes.
fn changelog(changes: &Path) -> Result<String> {
    let date = output(Command::new("date").arg("-R").arg("-r").arg(changes).env("LC_ALL", "C"))?;
    Ok(format!(
        "indelible ({VERSION}) unstable; urgency=medium\n\n  * CHANGELOG.md of the project lists the changes.\n\n \
         -- {}  {date}",
        maintainer()
    ))
}

/// `name major` of a shared library with a version: `libpmo 0` of `lib/libpmo.so.0`.
fn soname(file: &Path) -> Option<String> {
    let (name, version) = file.file_name()?.to_str()?.split_once(".so.")?;
    (!version.contains('.')).then(|| format!("{name} {version}"))
}

/// Puts a file of the stage into a package: programs without symbols, compressed manual pages.
fn put(from: &Path, to: &Path, name: &str) -> Result {
    if let Ok(leads) = fs::read_link(from) {
        folder(to.parent().unwrap_or(to), "")?;
        return symlink(leads, to).map_err(|error| format!("cannot link {}: {error}", to.display()));
    }
    copy(from, to)?;
    let is_program = name.starts_with("bin/");
    let mode = fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 });
    fs::set_permissions(to, mode).map_err(|error| format!("{}: {error}", to.display()))?;
    if name.starts_with("share/man/") {
        compress(to)?;
    } else if is_program || name.contains(".so") {
        succeeds(Command::new("strip").arg("--strip-unneeded").arg(to))?;
    }
    Ok(())
}

fn compress(file: &Path) -> Result {
    succeeds(Command::new("gzip").arg("-9n").arg(file))
}

const PROGRAM: &str = "
#include <pmo.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
    pmo_pool *pool = argc > 1 ? pmo_open_or_format(argv[1], 16 << 20, 0) : NULL;
    if (pool == NULL || pmo_create(pool, \"o\", 4096) != 0) return 1;
    char *o = pmo_attach(pool, \"o\", PMO_WRITE, NULL, 0);
    if (o == NULL) return 2;
    strcpy(o, \"from a package\");
    if (pmo_psync(o) != 0) return 3;
    puts(o);
    return 0;
}
";

const PYTHON_PROGRAM: &str = "
import sys, indelible
assert indelible.__file__.startswith(sys.argv[1]), indelible.__file__
pool = indelible.open('python.pmo', 64 << 20)
w = pool.array('w', (10,), 'f8')
w += 1
indelible.psync(w)
del w
print(pool.array('w', mode='r').sum())
";

/// Installs the packages in a root of their own, uses and removes them; nothing is left.
/// `environment` has numpy, if the Python package is among them.
fn attempt(root: &Path, packages: &[PathBuf], environment: Option<&Environment>) -> Result {
    let state = folder(root, "var/lib/dpkg")?;
    ["info", "updates"].iter().try_for_each(|name| folder(&state, name).map(drop))?;
    ["status", "available"].iter().try_for_each(|name| write(&state.join(name), ""))?;
    // The root has no other packages, so that those of Debian are missing there.
    let dpkg = |action: &str| {
        let mut command = Command::new("dpkg");
        command
            .args(["--force-depends", "--force-not-root", "--log=/dev/null", "--root"])
            .arg(root)
            .arg(action);
        command
    };
    succeeds(dpkg("--install").args(packages))?;
    let usr = root.join("usr");
    let used = folder(root, "used")?;
    write(&used.join("program.c"), PROGRAM)?;
    let mut cc = Command::new("cc");
    cc.args(["-o", "program", "program.c", "-I"]).arg(usr.join("include")).arg("-L").arg(usr.join("lib"));
    succeeds(cc.arg("-lpmo").current_dir(&used))?;
    let run = |program: PathBuf, arguments: &[&str]| {
        output(
            Command::new(program).args(arguments).current_dir(&used).env("LD_LIBRARY_PATH", usr.join("lib")),
        )
    };
    let said = run(used.join("program"), &["a.pmo"])?;
    let listed = run(usr.join("bin/pmo"), &["ls", "a.pmo"])?;
    let formatted = run(usr.join("bin/mkpmo"), &["b.pmo", "--size", "16M"])?;
    if said != "from a package\n" || !listed.contains('o') || !formatted.contains("b.pmo") {
        return Err(format!("the installed packages do not work: {said:?}, {listed:?}, {formatted:?}"));
    }
    if let Some(environment) = environment {
        let own = usr.join(DIST_PACKAGES);
        let python = environment.program("python");
        let numpy = ask(&python, PACKAGES_FOLDER).ok_or("Python does not tell where its packages are")?;
        let path =
            std::env::join_paths([own.as_path(), Path::new(&numpy)]).map_err(|error| error.to_string())?;
        let mut program = Command::new(python);
        // No bytecode beside the package's files.
        program.args(["-B", "-W", "error", "-c", PYTHON_PROGRAM]).arg(&own);
        let said = output(program.env("PYTHONPATH", path).current_dir(&used))?;
        if said != "10.0\n" {
            return Err(format!("the installed {PYTHON} does not work: {said:?}"));
        }
    }
    fs::remove_dir_all(&used).map_err(|error| format!("{}: {error}", used.display()))?;
    let names = PACKAGES.iter().map(|package| package.name);
    succeeds(dpkg("--purge").args(names.filter(|name| environment.is_some() || *name != PYTHON)))?;
    let left: Vec<PathBuf> =
        files::below(root)?.into_iter().filter(|file| !file.starts_with("var/lib/dpkg")).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("removed packages leave {left:?}")) }
}

/// Has lintian look into the packages: a report is an error. Returns what it did not look into.
/// Unless `all`, it leaves out those with static libraries, which take it minutes.
fn inspected(packages: &[PathBuf], all: bool) -> Result<Option<String>> {
    let is_quick = |package: &Path| fs::metadata(package).is_ok_and(|file| file.len() < 8 << 20);
    let (chosen, left): (Vec<_>, Vec<_>) = packages.iter().partition(|package| all || is_quick(package));
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    if std::env::var_os("DEBEMAIL").is_none() {
        lintian.args(["--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog"]);
    }
    match lintian.args(chosen).output() {
        Ok(found) if found.status.success() => {
            Ok((!left.is_empty()).then(|| "the policy of Debian for packages with static libraries".into()))
        }
        Ok(found) => Err(format!("lintian:\n{}", String::from_utf8_lossy(&found.stdout))),
        Err(_) => Ok(Some("the policy of Debian, as lintian is not there".into())),
    }
}

/// Debian's name of the processor.
fn architecture() -> Result<String> {
    output(Command::new("dpkg").arg("--print-architecture")).map(|name| name.trim().to_owned())
}

fn succeeds(command: &mut Command) -> Result {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
