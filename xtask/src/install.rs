//! `cargo xtask install --prefix P`: what `make install` does for the C and C++ interfaces.

use crate::command::{Result, cargo};
use crate::{man, programs};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// System libraries that Rust's standard library needs.
const SYSTEM: [&str; 4] = ["-lgcc_s", "-lpthread", "-lm", "-ldl"];

pub(crate) fn run(prefix: &Path, profile: &str) -> Result {
    let source = programs::project()?.join("crates/capi");
    let archive = archive(profile)?;
    let (include, lib) = (folder(prefix, "include")?, folder(prefix, "lib")?);
    copy_all(&source.join("include"), &include)?;
    copy(&archive, &lib.join("libpmo.a"))?;
    link(&archive, &source.join("pmo.map"), &lib)?;
    write(&folder(&lib, "pkgconfig")?.join("pmo.pc"), &pkg_config())?;
    let cmake = folder(&lib, "cmake/pmo")?;
    write(&cmake.join("pmo-config.cmake"), CMAKE)?;
    write(
        &cmake.join("pmo-config-version.cmake"),
        &CMAKE_VERSION.replace("@VERSION@", VERSION).replace("@MAJOR@", major()),
    )?;
    let header = read(&source.join("include/pmo.h"))?;
    let pages = folder(prefix, "share/man/man3")?;
    for (name, page) in man::pages(&header, VERSION)? {
        write(&pages.join(format!("{name}.3")), &page)?;
    }
    println!("installed below {}", prefix.display());
    Ok(())
}

/// Builds the static library and returns its path.
fn archive(profile: &str) -> Result<PathBuf> {
    let arguments = ["build", "-p", "indelible-capi", "--profile", profile, "--message-format=json"];
    let output = cargo(&arguments).stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("the library does not build".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files = messages.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let mut files = files.filter_map(|file| file.as_str().map(PathBuf::from));
    files.find(|file| file.ends_with("libpmo.a")).ok_or_else(|| "cargo made no libpmo.a".into())
}

/// Links the shared library: all of the static one that the exported functions need.
fn link(archive: &Path, map: &Path, lib: &Path) -> Result {
    let (file, soname) = (format!("libpmo.so.{VERSION}"), format!("libpmo.so.{}", major()));
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&cc);
    command.arg("-shared").arg("-o").arg(lib.join(&file));
    command.arg(format!("-Wl,-soname,{soname}")).arg(format!("-Wl,--version-script,{}", map.display()));
    // Neither calls between its own functions nor what a program defines under the same names go astray.
    command.args(["-Wl,-Bsymbolic", "-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,--whole-archive"]);
    command.arg(archive).arg("-Wl,--no-whole-archive").args(SYSTEM);
    let status = command.status().map_err(|error| format!("cannot run {cc}: {error}"))?;
    if !status.success() {
        return Err("the shared library does not link".into());
    }
    for link in [soname.as_str(), "libpmo.so"] {
        let _ = fs::remove_file(lib.join(link));
        symlink(&file, lib.join(link)).map_err(|error| format!("cannot link {link}: {error}"))?;
    }
    Ok(())
}

fn major() -> &'static str {
    VERSION.split('.').next().unwrap_or("0")
}

fn pkg_config() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: pmo\nDescription: Persistent memory objects\nVersion: {VERSION}\n\
         Libs: -L${{libdir}} -lpmo\nLibs.private: {}\nCflags: -I${{includedir}}\n",
        SYSTEM.join(" ")
    )
}

const CMAKE: &str = "\
# Targets: pmo::pmo (shared), pmo::static.
get_filename_component(_pmo_prefix \"${CMAKE_CURRENT_LIST_DIR}/../../..\" ABSOLUTE)
if(NOT TARGET pmo::pmo)
  add_library(pmo::pmo SHARED IMPORTED)
  set_target_properties(pmo::pmo PROPERTIES
    IMPORTED_LOCATION \"${_pmo_prefix}/lib/libpmo.so\"
    INTERFACE_INCLUDE_DIRECTORIES \"${_pmo_prefix}/include\")
  add_library(pmo::static STATIC IMPORTED)
  set_target_properties(pmo::static PROPERTIES
    IMPORTED_LOCATION \"${_pmo_prefix}/lib/libpmo.a\"
    INTERFACE_INCLUDE_DIRECTORIES \"${_pmo_prefix}/include\"
    INTERFACE_LINK_LIBRARIES \"gcc_s;pthread;m;dl\")
endif()
unset(_pmo_prefix)
";

const CMAKE_VERSION: &str = "\
set(PACKAGE_VERSION \"@VERSION@\")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION OR NOT PACKAGE_FIND_VERSION_MAJOR STREQUAL \"@MAJOR@\")
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION STREQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
";

fn folder(base: &Path, inner: &str) -> Result<PathBuf> {
    let path = base.join(inner);
    fs::create_dir_all(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    Ok(path)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Copies the files of a folder, and those of the folders in it.
fn copy_all(from: &Path, to: &Path) -> Result {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", from.display());
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let into = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            fs::create_dir_all(&into)
                .map_err(|error| format!("cannot create {}: {error}", into.display()))?;
            copy_all(&path, &into)?;
        } else {
            copy(&path, &into)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result {
    let copied = fs::copy(from, to);
    copied.map(drop).map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))
}
