//! Everything that a machine needs: found, or installed and built.

use crate::kind::Kernel;
use anyhow::{Context, Result, bail};
use indelible_record::build_folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [(&str, &str); 8] = [
    ("qemu-system-x86_64", "qemu-system-x86, 9 or later"),
    ("busybox", "busybox-static"),
    ("cc", "gcc"),
    ("cpio", "cpio"),
    ("mke2fs", "e2fsprogs"),
    ("ndctl", "ndctl"),
    ("strip", "binutils"),
    ("xz", "xz-utils"),
];

/// Prefix of scratch folders; the process number follows.
const SCRATCH: &str = "indelible-rig-";

const MUSL: &str = "x86_64-unknown-linux-musl";
const GNU: &str = "x86_64-unknown-linux-gnu";

pub(crate) struct Environment {
    sources: PathBuf,
    folder: PathBuf,
}

impl Environment {
    /// Finds the required tools; installs missing ones as root.
    ///
    /// # Errors
    /// A tool cannot be installed: the error names it and the cause.
    pub(crate) fn find(kernels: &[Kernel]) -> Result<Environment> {
        let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let workspace = sources.parent().context("the rig lies in the workspace")?;
        let environment = Environment { folder: workspace.join(build_folder()).join("rig"), sources };
        fs::create_dir_all(&environment.folder)?;
        if !environment.missing(kernels).is_empty() {
            environment.install(kernels)?;
        }
        Ok(environment)
    }

    /// Builds the contents of the machines.
    ///
    /// # Errors
    /// Something does not build.
    pub(crate) fn build(&self, kernels: &[Kernel]) -> Result<()> {
        self.plugin_built()?;
        let guest = self.guest("guest", "guest")?;
        let mutant = self.guest("mutant", "mutants")?;
        for kernel in kernels {
            let initramfs = self.initramfs(kernel.word());
            script(
                &self.sources.join("initramfs.sh"),
                &[&self.kernel(kernel.word()), &guest, &mutant, &initramfs],
            )?;
        }
        Ok(())
    }

    pub(crate) fn kernel(&self, version: &str) -> PathBuf {
        self.folder.join("kernels").join(version)
    }

    pub(crate) fn initramfs(&self, version: &str) -> PathBuf {
        self.folder.join(format!("initramfs-{version}.cpio"))
    }

    pub(crate) fn plugin(&self) -> PathBuf {
        self.folder.join("power.so")
    }

    pub(crate) fn violations(&self) -> PathBuf {
        self.folder.join("violations")
    }

    /// A folder for machines' memories, which are written all the time: in memory if there is room.
    pub(crate) fn scratch(&self, bytes: u64) -> Result<PathBuf> {
        let memory = Path::new("/dev/shm");
        let folder = if room(memory) > 2 * bytes { memory } else { &self.folder };
        if room(folder) < bytes {
            bail!("{} has less than {} MiB left", folder.display(), bytes >> 20);
        }
        remove_left_over(folder);
        let scratch = folder.join(format!("{SCRATCH}{}", std::process::id()));
        fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
        Ok(scratch)
    }

    fn missing(&self, kernels: &[Kernel]) -> Vec<String> {
        let found = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let sbin = [PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")];
            std::env::split_paths(&path).chain(sbin).any(|folder| folder.join(name).is_file())
        };
        let programs =
            PROGRAMS.iter().filter(|(name, _)| !found(name) || (*name == PROGRAMS[0].0 && !recent()));
        let kernels = kernels.iter().filter(|kernel| !self.kernel(kernel.word()).join("vmlinux").is_file());
        programs
            .map(|(name, package)| format!("{name} (package {package})"))
            .chain(kernels.map(|kernel| format!("Debian's kernel {}", kernel.word())))
            .collect()
    }

    fn install(&self, kernels: &[Kernel]) -> Result<()> {
        let missing = self.missing(kernels).join(", ");
        eprintln!("installing what the rig needs and is not there: {missing}");
        let folder = self.folder.join("kernels");
        script(&self.sources.join("install.sh"), &[&folder]).with_context(|| {
            format!("missing: {missing}; run as root: rig/install.sh {}", folder.display())
        })?;
        let missing = self.missing(kernels).join(", ");
        if missing.is_empty() { Ok(()) } else { bail!("installed, and still missing: {missing}") }
    }

    fn plugin_built(&self) -> Result<()> {
        let sources = self.sources.join("plugin");
        let mut command = Command::new("cc");
        command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", "-o"]);
        command.arg(self.plugin());
        command.args(["power.c", "cache.c", "insn.c", "supply.c"].map(|name| sources.join(name)));
        succeeds(&mut command)
    }

    fn guest(&self, name: &str, features: &str) -> Result<PathBuf> {
        let folder = self.folder.join("build");
        let target = if has_target(MUSL) { MUSL } else { GNU };
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args([
                "build",
                "--release",
                "--quiet",
                "-p",
                "indelible-rig",
                "--bin",
                "rig-guest",
                "--no-default-features",
                "--features",
                features,
            ])
            .args(["--target", target, "--target-dir"])
            .arg(&folder)
            .current_dir(&self.sources)
            .env("RUSTFLAGS", "-C target-feature=+crt-static");
        succeeds(&mut command)?;
        let (built, kept) = (folder.join(target).join("release/rig-guest"), self.folder.join(name));
        fs::copy(&built, &kept).with_context(|| format!("cannot copy {}", built.display()))?;
        Ok(kept)
    }
}

fn remove_left_over(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(SCRATCH).and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether QEMU boots a 6.12 kernel reliably and has the plugin's interface.
fn recent() -> bool {
    let output = Command::new(PROGRAMS[0].0).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let version = text.split_whitespace().find_map(|word| word.split_once('.')?.0.parse::<u32>().ok());
    version.is_some_and(|major| major >= 9)
}

fn has_target(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    sysroot.is_ok_and(|sysroot| Path::new(&sysroot).join("lib/rustlib").join(target).join("lib").is_dir())
}

fn room(folder: &Path) -> u64 {
    let output = Command::new("df").args(["-B1", "--output=avail"]).arg(folder).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().nth(1).and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}

fn script(path: &Path, arguments: &[&PathBuf]) -> Result<()> {
    succeeds(Command::new(path).args(arguments))
}

fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    if !output.status.success() {
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        bail!("{:?} failed: {}", command.get_program(), said.trim_end());
    }
    Ok(())
}
