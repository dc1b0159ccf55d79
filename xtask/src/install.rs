//! `cargo xtask install --prefix P`: installs the tool and the C and C++ interfaces.

use crate::command::{Result, cargo, output};
use crate::files::{self, copy, folder, read, write};
use crate::selection::{LIBPMO, LIBPMO_TM, MOUNT, PMO, REPLICATE, SQLITE, Selection};
use crate::{man, programs};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SYSTEM: [&str; 4] = ["-lgcc_s", "-lpthread", "-lm", "-ldl"];

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Headers, libpmo and libpmo-tm for C and C++, with their manual pages
    Libpmo,
    /// The extension of SQLite
    Sqlite,
    /// pmo, mkpmo, pmo-mount and pmo-replicate, with units, manual pages and completions
    Tools,
}

/// Installs for `prefix`, into that folder of `destdir` if there is one; all without `parts`.
pub(crate) fn run(prefix: &Path, destdir: Option<&Path>, profile: &str, parts: &[Part]) -> Result {
    let unit_prefix = prefix;
    let staged = destdir.map(|folder| folder.join(prefix.strip_prefix("/").unwrap_or(prefix)));
    let prefix = staged.as_deref().unwrap_or(prefix);
    let is_wanted = |part| parts.is_empty() || parts.contains(&part);
    if is_wanted(Part::Libpmo) {
        install_libpmo(prefix, profile)?;
    }
    if is_wanted(Part::Sqlite) {
        install_sqlite(prefix, profile)?;
    }
    if is_wanted(Part::Tools) {
        install_tool(prefix, profile)?;
        install_services(prefix, &unit_prefix.join("bin/pmo"))?;
    }
    println!("installed below {}", prefix.display());
    Ok(())
}

fn install_libpmo(prefix: &Path, profile: &str) -> Result {
    let source = programs::project()?.join("crates/capi");
    let archive = built(&LIBPMO, "libpmo.a", profile)?;
    let (include, lib) = (folder(prefix, "include")?, folder(prefix, "lib")?);
    for file in files::below(&source.join("include"))? {
        copy(&source.join("include").join(&file), &include.join(file))?;
    }
    copy(&archive, &lib.join("libpmo.a"))?;
    link("libpmo", &archive, &source.join("pmo.map"), &lib)?;
    write(&folder(&lib, "pkgconfig")?.join("pmo.pc"), &pkg_config())?;
    install_tm(profile, &lib)?;
    let cmake = folder(&lib, "cmake/pmo")?;
    write(&cmake.join("pmo-config.cmake"), CMAKE)?;
    write(
        &cmake.join("pmo-config-version.cmake"),
        &CMAKE_VERSION.replace("@VERSION@", VERSION).replace("@MAJOR@", major()),
    )?;
    write(&folder(prefix, "share/pmo")?.join("leds.mk"), LEDS_MAKE)?;
    let pages = folder(prefix, "share/man/man3")?;
    for (name, page) in man::pages(&headers(&source)?, VERSION)? {
        write(&pages.join(format!("{name}.3")), &page)?;
    }
    Ok(())
}

fn install_sqlite(prefix: &Path, profile: &str) -> Result {
    let (include, lib) = (folder(prefix, "include")?, folder(prefix, "lib")?);
    // SQLite derives the entry point from this name.
    copy(&built(&SQLITE, "libindelible_sqlite.so", profile)?, &lib.join("libsqlite3-pmo.so"))?;
    copy(&built(&SQLITE, "libindelible_sqlite.a", profile)?, &lib.join("libsqlite3-pmo.a"))?;
    copy(&programs::project()?.join("crates/sqlite/include/sqlite3-pmo.h"), &include.join("sqlite3-pmo.h"))?;
    let config = folder(&lib, "pkgconfig")?;
    write(&config.join("sqlite3-pmo.pc"), &pkg_config_sqlite("", "-L${libdir} -lsqlite3-pmo"))?;
    let archive = format!("${{libdir}}/libsqlite3-pmo.a {}", SYSTEM.join(" "));
    write(&config.join("sqlite3-pmo-static.pc"), &pkg_config_sqlite("-static", &archive))
}

/// The header and its parts for C, by include names: the sources of the manual pages.
fn headers(source: &Path) -> Result<Vec<(&'static str, String)>> {
    let names =
        ["pmo.h", "pmo/transaction.h", "pmo/blocks.h", "pmo/static.h", "pmo/resume.h", "pmo/same_program.h"];
    names.into_iter().map(|name| Ok((name, read(&source.join("include").join(name))?))).collect()
}

/// The tool, which the units of systemd run, completions for shells, and its manual pages.
fn install_tool(prefix: &Path, profile: &str) -> Result {
    let bin = folder(prefix, "bin")?;
    let pmo = bin.join("pmo");
    let programs = [(&PMO, "pmo"), (&PMO, "mkpmo"), (&MOUNT, "pmo-mount"), (&REPLICATE, "pmo-replicate")];
    for (package, name) in programs {
        // A guard may run the old one, or a volume be mounted by it.
        let _ = fs::remove_file(bin.join(name));
        copy(&built(package, name, profile)?, &bin.join(name))?;
    }
    for (shell, file) in [
        ("bash", "share/bash-completion/completions/pmo"),
        ("bash", "share/bash-completion/completions/mkpmo"),
        ("zsh", "share/zsh/vendor-completions/_pmo"),
        ("fish", "share/fish/vendor_completions.d/pmo.fish"),
        ("fish", "share/fish/vendor_completions.d/mkpmo.fish"),
    ] {
        let (path, name) = file.rsplit_once('/').unwrap_or(("", file));
        let printed = output(Command::new(&pmo).args(["completions", shell]))?;
        write(&folder(prefix, path)?.join(name), &printed)?;
    }
    let written = Command::new(&pmo).arg("man").arg(folder(prefix, "share/man/man1")?).status();
    match written {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} writes no manual pages: {status}", pmo.display())),
        Err(error) => Err(format!("cannot run {}: {error}", pmo.display())),
    }
}

fn install_services(prefix: &Path, pmo: &Path) -> Result {
    for (folder_name, unit) in [("system", guard_unit(pmo, true)), ("user", guard_unit(pmo, false))] {
        write(&folder(prefix, &format!("lib/systemd/{folder_name}"))?.join("pmo-guard.service"), &unit)?;
    }
    Ok(())
}

/// The machine's guard may kill processes and act for their users; it writes only its socket, as
/// recoveries are processes of the pools' users. Services and sessions begin after `basic.target`
/// and end before it: a guard that begins before it recovers what they leave at shutdown. Only the
/// guard itself is told to end; recoveries go on.
fn guard_unit(pmo: &Path, machine: bool) -> String {
    let (of, early, more, target) = match machine {
        true => (
            "the machine",
            "Requires=sysinit.target\nAfter=sysinit.target\n",
            "OOMScoreAdjust=-900\nRuntimeDirectory=pmo\nCapabilityBoundingSet=CAP_KILL CAP_SETUID CAP_SETGID CAP_DAC_OVERRIDE\n\
             ProtectKernelTunables=yes\nProtectKernelModules=yes\nProtectControlGroups=yes\n",
            "multi-user.target",
        ),
        false => ("a user", "", "", "default.target"),
    };
    format!(
        "# What tells of a power failure, and how long the machine goes on then: `pmo help guard run`.\n[Unit]\n\
         Description=Guard of commits on demand of {of}\nDocumentation=man:pmo(1)\nDefaultDependencies=no\n{early}\
         Before=basic.target shutdown.target\nConflicts=shutdown.target\n\n[Service]\nType=notify\n\
         Environment=PMO_GUARD_OPTIONS=--signal\nEnvironmentFile=-/etc/default/pmo-guard\n\
         ExecStart={} guard run $PMO_GUARD_OPTIONS\nRestart=always\nRestartPreventExitStatus=2\nKillMode=mixed\n{more}\
         NoNewPrivileges=yes\nRestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\nLockPersonality=yes\n\
         MemoryDenyWriteExecute=yes\nRestrictRealtime=yes\nSystemCallArchitectures=native\n\n[Install]\nWantedBy={target}\n",
        pmo.display()
    )
}

fn install_tm(profile: &str, lib: &Path) -> Result {
    let archive = built(&LIBPMO_TM, "libpmo_tm.a", profile)?;
    copy(&archive, &lib.join("libpmo-tm.a"))?;
    link("libpmo-tm", &archive, &programs::project()?.join("crates/tm/pmo-tm.map"), lib)?;
    write(&lib.join("pkgconfig/pmo-tm.pc"), &pkg_config_tm())
}

fn built(package: &Selection, name: &str, profile: &str) -> Result<PathBuf> {
    let rest = ["--profile", profile, "--message-format=json"];
    let arguments = match profile {
        "dev" => package.of("build", &rest),
        _ => package.alone("build", &rest),
    };
    let output = cargo(&arguments).stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{name} does not build"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files = messages.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let mut files = files.filter_map(|file| file.as_str().map(PathBuf::from));
    files.find(|file| file.ends_with(name)).ok_or_else(|| format!("cargo made no {name}"))
}

/// Only the parts of the static library that exported functions need.
fn link(name: &str, archive: &Path, map: &Path, lib: &Path) -> Result {
    let (file, soname) = (format!("{name}.so.{VERSION}"), format!("{name}.so.{}", major()));
    let plain = format!("{name}.so");
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&cc);
    command.arg("-shared").arg("-o").arg(lib.join(&file));
    command.arg(format!("-Wl,-soname,{soname}")).arg(format!("-Wl,--version-script,{}", map.display()));
    // Calls between own functions must not reach a program's functions of the same names.
    command.args(["-Wl,-Bsymbolic", "-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,--whole-archive"]);
    command.arg(archive).arg("-Wl,--no-whole-archive").args(SYSTEM);
    let status = command.status().map_err(|error| format!("cannot run {cc}: {error}"))?;
    if !status.success() {
        return Err("the shared library does not link".into());
    }
    for link in [soname.as_str(), plain.as_str()] {
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
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\nleds=${{prefix}}/share/pmo/leds.mk\n\n\
         Name: pmo\nDescription: Persistent memory objects\nVersion: {VERSION}\n\
         Libs: -L${{libdir}} -lpmo\nLibs.private: {}\nCflags: -I${{includedir}}\n",
        SYSTEM.join(" ")
    )
}

/// GCC turns loops that clear or copy memory into calls outside of transactions, unless told not
/// to. Linked before libitm, which GCC names last: common symbols come from here.
fn pkg_config_tm() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: pmo-tm\nDescription: Transactions of GCC's -fgnu-tm on Indelible\nVersion: {VERSION}\n\
         Libs: -L${{libdir}} -lpmo-tm\nLibs.private: {}\nCflags: -I${{includedir}} -fgnu-tm -fno-tree-loop-distribute-patterns\n",
        SYSTEM.join(" ")
    )
}

fn pkg_config_sqlite(kind: &str, libs: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\
         extension=${{libdir}}/libsqlite3-pmo.so\n\n\
         Name: sqlite3-pmo{kind}\nDescription: SQLite databases in persistent memory objects\nVersion: {VERSION}\n\
         Libs: {libs} -lsqlite3\nCflags: -I${{includedir}}\n"
    )
}

const CMAKE: &str = "\
# Targets: pmo::pmo (shared), pmo::static, and pmo::tm, for blocks that GCC compiles with -fgnu-tm, which brings pmo::pmo.
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
  add_library(pmo::tm SHARED IMPORTED)
  set_target_properties(pmo::tm PROPERTIES
    IMPORTED_LOCATION \"${_pmo_prefix}/lib/libpmo-tm.so\"
    INTERFACE_INCLUDE_DIRECTORIES \"${_pmo_prefix}/include\"
    INTERFACE_COMPILE_OPTIONS \"-fgnu-tm;-fno-tree-loop-distribute-patterns\"
    INTERFACE_LINK_OPTIONS \"-fgnu-tm\"
    INTERFACE_LINK_LIBRARIES pmo::pmo)
endif()
set(PMO_BIN \"${_pmo_prefix}/bin\")
unset(_pmo_prefix)

# pmo_leds(target source... [LOCK file] [FLAGS flag...]): sources with extendible structs, lowered by `pmo leds` with the include
# folders and definitions of the target, become sources of it.
function(pmo_leds target)
  cmake_parse_arguments(PARSE_ARGV 1 leds \"\" LOCK FLAGS)
  find_program(PMO_TOOL pmo HINTS \"${PMO_BIN}\")
  if(NOT PMO_TOOL)
    message(FATAL_ERROR \"pmo_leds needs the tool pmo: add its folder to PATH, or set PMO_TOOL\")
  endif()
  set(includes \"$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>\")
  set(definitions \"$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>\")
  foreach(source IN LISTS leds_UNPARSED_ARGUMENTS)
    get_filename_component(path \"${source}\" ABSOLUTE)
    get_filename_component(folder \"${path}\" DIRECTORY)
    get_filename_component(name \"${path}\" NAME)
    set(output \"${CMAKE_CURRENT_BINARY_DIR}/${target}.leds/${name}\")
    file(MAKE_DIRECTORY \"${CMAKE_CURRENT_BINARY_DIR}/${target}.leds\")
    set(lock)
    if(leds_LOCK)
      get_filename_component(lock_path \"${leds_LOCK}\" ABSOLUTE)
      set(lock --lock \"${lock_path}\")
    endif()
    set(depfile)
    if(NOT CMAKE_VERSION VERSION_LESS 3.20)
      set(depfile DEPFILE \"${output}.d\")
    endif()
    add_custom_command(OUTPUT \"${output}\" DEPENDS \"${path}\" ${lock_path} ${depfile} VERBATIM COMMAND_EXPAND_LISTS
      COMMAND \"${PMO_TOOL}\" leds \"${path}\" -o \"${output}\" ${lock} --depfile \"${output}.d\" -- ${leds_FLAGS}
        \"$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>\"
        \"$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>\")
    target_sources(${target} PRIVATE \"${output}\")
    target_include_directories(${target} PRIVATE \"${folder}\")
  endforeach()
endfunction()
";

const LEDS_MAKE: &str = "\
# Sources with extendible structs: name.c becomes name.leds.c, and that name.leds.o, by
#     include $(shell pkg-config --variable=leds pmo)
# PMO is the tool, PMO_LEDS_LOCK the file of released layouts, if there is one; CPPFLAGS and CFLAGS are the compiler's.
PMO ?= pmo
.PRECIOUS: %.leds.c %.leds.cpp
%.leds.c: %.c $(PMO_LEDS_LOCK)
\t$(PMO) leds $< -o $@ --depfile $@.d $(if $(PMO_LEDS_LOCK),--lock $(PMO_LEDS_LOCK)) -- $(CPPFLAGS) $(CFLAGS)
%.leds.cpp: %.cpp $(PMO_LEDS_LOCK)
\t$(PMO) leds $< -o $@ --depfile $@.d $(if $(PMO_LEDS_LOCK),--lock $(PMO_LEDS_LOCK)) -- $(CPPFLAGS) $(CXXFLAGS)
# The first rule of the Makefile stays the default.
pmo_leds_goal := $(.DEFAULT_GOAL)
-include $(wildcard *.leds.c.d *.leds.cpp.d)
.DEFAULT_GOAL := $(pmo_leds_goal)
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
