//! `cargo xtask deb`: packages for Debian and its derivatives, of one installation below `/usr`.
//!
//! Each package has the files of its patterns; a file that no package has is an error. The packages
//! are tried in a root of their own: installed, used, removed.

use crate::command::{Result, target};
use crate::plan::Outcome;
use crate::{install, programs};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const MAINTAINER: &str = "The maintainers of Indelible <maintainers@localhost>";

struct Package {
    name: &'static str,
    section: &'static str,
    /// Packages of this list that it needs, in this version.
    needs: &'static [&'static str],
    /// Other packages, as Debian writes them.
    depends: &'static str,
    /// The package of the C library, which is needed in the version of this machine at least.
    libc: &'static str,
    recommends: &'static str,
    title: &'static str,
    text: &'static str,
    /// Beginnings of the paths of its files below `/usr`; the first package that has one takes it.
    files: &'static [&'static str],
}

/// In the order in which they take their files.
const PACKAGES: [Package; 5] = [
    Package {
        name: "libsqlite3-pmo",
        section: "database",
        needs: &[],
        depends: "libgcc-s1",
        libc: "libc6",
        recommends: "",
        title: "SQLite databases in persistent memory objects",
        text: "An extension that SQLite loads: a database is an object of a pool, and each commit is one step.",
        files: &["lib/libsqlite3-pmo.so", "lib/pkgconfig/sqlite3-pmo.pc"],
    },
    Package {
        name: "pmo-mount",
        section: "admin",
        needs: &["pmo"],
        depends: "libgcc-s1",
        libc: "libc6",
        recommends: "fuse3",
        title: "volumes of files in persistent memory objects, mounted",
        text: "The program that pmo mount starts: it serves a volume in a pool by FUSE.",
        files: &["bin/pmo-mount"],
    },
    Package {
        name: "pmo",
        section: "admin",
        needs: &[],
        depends: "libgcc-s1",
        libc: "libc6",
        recommends: "",
        title: "tool for pools of persistent memory objects",
        text: "Makes pools and objects, checks, repairs, copies, backs up and seals them.",
        files: &[
            "bin/pmo",
            "lib/systemd/",
            "share/man/man1/",
            "share/bash-completion/",
            "share/zsh/",
            "share/fish/",
        ],
    },
    Package {
        name: "libpmo0",
        section: "libs",
        needs: &[],
        depends: "libgcc-s1",
        libc: "libc6",
        recommends: "",
        title: "persistent memory objects, shared library",
        text: "Named objects in the address space of a program, durable and atomic by psync.",
        files: &["lib/libpmo.so.", "lib/libpmo-tm.so."],
    },
    Package {
        name: "libpmo-dev",
        section: "libdevel",
        needs: &["libpmo0"],
        depends: "",
        libc: "libc6-dev",
        recommends: "pkg-config, pmo",
        title: "persistent memory objects, development files",
        text: "Headers for C and C++, static libraries, pkg-config and CMake files, manual pages.",
        files: &["include/", "lib/libpmo", "lib/pkgconfig/", "lib/cmake/", "share/pmo/", "share/man/man3/"],
    },
];

/// Makes the packages in `out`, and tries them.
pub(crate) fn run(out: Option<&Path>, profile: &str) -> Result {
    let work = target().join("deb");
    let out = out.map_or_else(|| work.join("packages"), Path::to_owned);
    let _ = fs::remove_dir_all(&work);
    let stage = work.join("stage");
    install::run(Path::new("/usr"), Some(&stage), profile)?;
    let mut left: BTreeSet<PathBuf> = files(&stage.join("usr"))?.into_iter().collect();
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut made = Vec::new();
    for package in &PACKAGES {
        let is_own =
            |file: &&PathBuf| package.files.iter().any(|start| file.to_string_lossy().starts_with(start));
        let own: Vec<PathBuf> = left.iter().filter(is_own).cloned().collect();
        left.retain(|file| !own.contains(file));
        made.push(package.make(&stage.join("usr"), &own, &work, &out)?);
    }
    if !left.is_empty() {
        return Err(format!("no package has {left:?}"));
    }
    attempt(&work.join("root"), &made)?;
    made.iter().for_each(|package| println!("{}", package.display()));
    Ok(())
}

/// The packages of the tests' build, made and tried where there is dpkg.
pub(crate) fn tried() -> Result<Outcome> {
    if Command::new("dpkg").arg("--version").output().is_err() {
        return Ok(Outcome::NotTested("dpkg is not there".into()));
    }
    run(None, "dev").map(|()| Outcome::Passed)
}

impl Package {
    /// Makes the package of these files of the stage; returns its path.
    fn make(&self, stage: &Path, own: &[PathBuf], work: &Path, out: &Path) -> Result<PathBuf> {
        let root = work.join(self.name);
        for file in own {
            let (from, to) = (stage.join(file), root.join("usr").join(file));
            make_folder(to.parent())?;
            match fs::read_link(&from) {
                Ok(leads) => symlink(leads, &to).map_err(|error| format!("{}: {error}", to.display()))?,
                Err(_) => copy(&from, &to)?,
            }
            let name = file.to_string_lossy();
            if name.starts_with("share/man/") {
                succeeds(Command::new("gzip").args(["-9n"]).arg(&to))?;
            } else if name.starts_with("bin/") || name.contains(".so") && fs::read_link(&to).is_err() {
                succeeds(Command::new("strip").arg("--strip-unneeded").arg(&to))?;
            }
        }
        let doc = root.join("usr/share/doc").join(self.name);
        make_folder(Some(&doc))?;
        let project = programs::project()?;
        let licence = |name: &str| fs::read_to_string(project.join(name)).unwrap_or_default();
        let copyright = format!(
            "Indelible: persistent memory objects.\nLicense: MIT or Apache-2.0, at your choice.\n\n{}\n\n\
             The Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0 on Debian systems.\n",
            licence("LICENSE-MIT")
        );
        write(&doc.join("copyright"), &copyright)?;
        let news = doc.join("changelog.gz");
        copy(&project.join("CHANGELOG.md"), &news.with_extension(""))?;
        succeeds(Command::new("gzip").args(["-9n"]).arg(news.with_extension("")))?;
        write(&make_folder(Some(&root.join("DEBIAN")))?.join("control"), &self.control(&root)?)?;
        let is_summed = |file: &PathBuf| !file.starts_with("DEBIAN") && !root.join(file).is_symlink();
        let sums = files(&root)?.into_iter().filter(is_summed);
        let sums = output(Command::new("md5sum").arg("--").args(sums).current_dir(&root))?;
        write(&root.join("DEBIAN/md5sums"), &sums)?;
        let package = out.join(format!("{}_{VERSION}_{}.deb", self.name, architecture()?));
        succeeds(Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).arg(&root).arg(&package))?;
        Ok(package)
    }

    fn control(&self, root: &Path) -> Result<String> {
        let version = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
        let libc = format!("{} (>= {})", self.libc, version.trim().trim_start_matches("glibc "));
        let own = self.needs.iter().map(|name| format!("{name} (= {VERSION})"));
        let mut depends: Vec<String> = own.chain([libc, self.depends.to_owned()]).collect();
        depends.retain(|package| !package.is_empty());
        let recommends = if self.recommends.is_empty() {
            String::new()
        } else {
            format!("Recommends: {}\n", self.recommends)
        };
        let bytes: u64 = files(root)?
            .iter()
            .filter_map(|file| fs::metadata(root.join(file)).ok())
            .map(|at| at.len())
            .sum();
        Ok(format!(
            "Package: {}\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\n\
             Section: {}\nPriority: optional\nDepends: {}\n{recommends}Description: {}\n {}\n",
            self.name,
            architecture()?,
            bytes.div_ceil(1024),
            self.section,
            depends.join(", "),
            self.title,
            self.text
        ))
    }
}

/// A program in C that is compiled against the installed packages.
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

/// Installs the packages in a root of their own, uses and removes them; nothing is left.
fn attempt(root: &Path, packages: &[PathBuf]) -> Result {
    make_folder(Some(&root.join("var/lib/dpkg/info")))?;
    make_folder(Some(&root.join("var/lib/dpkg/updates")))?;
    ["status", "available"].iter().try_for_each(|name| write(&root.join("var/lib/dpkg").join(name), ""))?;
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
    let used = root.join("used");
    write(&make_folder(Some(&used))?.join("program.c"), PROGRAM)?;
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
    if said != "from a package\n" || !listed.contains('o') {
        return Err(format!("the installed packages do not work: {said:?}, {listed:?}"));
    }
    fs::remove_dir_all(&used).map_err(|error| format!("{}: {error}", used.display()))?;
    succeeds(dpkg("--purge").args(PACKAGES.iter().map(|package| package.name)))?;
    let left: Vec<PathBuf> =
        files(root)?.into_iter().filter(|file| !file.starts_with("var/lib/dpkg")).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("removed packages leave {left:?}")) }
}

/// Debian's name of the processor.
fn architecture() -> Result<String> {
    output(Command::new("dpkg").arg("--print-architecture")).map(|name| name.trim().to_owned())
}

/// Files and links below a folder, from there.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(inner) = folders.pop() {
        let entries = fs::read_dir(&inner).map_err(|error| format!("{}: {error}", inner.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap_or(&path).to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn make_folder(path: Option<&Path>) -> Result<&Path> {
    let path = path.unwrap_or(Path::new("."));
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file; programs may be run, all may be read.
fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    let mode = if from.parent().is_some_and(|folder| folder.ends_with("bin")) { 0o755 } else { 0o644 };
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
        .map_err(|error| format!("{}: {error}", to.display()))
}

fn succeeds(command: &mut Command) -> Result {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(said),
        false => {
            Err(format!("{command:?}: {}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr)))
        }
    }
}
