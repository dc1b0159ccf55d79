//! Typical work of programs on files. Each piece checks its result.

use super::Side;
use crate::Result;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a file in [`durable_files`].
const FILE: usize = 3 << 10;
/// Bytes of the file in [`cached_reads`].
pub const READ_FROM: usize = 8 << 20;
const READ: usize = 4 << 10;

/// Creates and writes files, makes them durable, gives them their names, makes those durable.
pub fn durable_files(dir: &Path, count: usize, round: usize) -> Result<()> {
    let content = [round as u8; FILE];
    let names: Vec<(PathBuf, PathBuf)> = (0..count)
        .map(|file| (dir.join(format!("new{file}")), dir.join(format!("{count}-{file}"))))
        .collect();
    let mut files = Vec::with_capacity(count);
    for (new, _) in &names {
        let mut file = File::create(new)?;
        file.write_all(&content)?;
        files.push(file);
    }
    for file in &files {
        file.sync_all()?;
    }
    for (new, name) in &names {
        fs::rename(new, name)?;
    }
    File::open(dir)?.sync_all()?;
    Ok(())
}

pub fn check_durable_files(dir: &Path, count: usize, round: usize) -> Result<()> {
    for file in 0..count {
        let name = dir.join(format!("{count}-{file}"));
        if fs::read(&name)? != [round as u8; FILE] {
            return Err(format!("{}: wrong bytes", name.display()).into());
        }
    }
    Ok(())
}

/// Reads 4 KiB at `count` places of a file whose pages are cached.
pub fn cached_reads(file: &File, count: usize) -> Result<()> {
    let mut buffer = [0; READ];
    let mut place = 0_usize;
    for _ in 0..count {
        place = (place.wrapping_mul(5) + 1) % (READ_FROM / READ);
        file.read_exact_at(&mut buffer, (place * READ) as u64)?;
        if buffer[READ - 1] != place as u8 {
            return Err("a read has wrong bytes".into());
        }
    }
    Ok(())
}

pub fn file_to_read(dir: &Path) -> Result<File> {
    let path = dir.join("read");
    let bytes: Vec<u8> = (0..READ_FROM).map(|at| (at / READ) as u8).collect();
    fs::write(&path, &bytes)?;
    match fs::read(&path)? == bytes {
        true => Ok(File::open(path)?),
        false => Err("the file has wrong bytes".into()),
    }
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args(["-c", "gc.auto=0", "-c", "user.name=pmo", "-c", "user.email=pmo@localhost"]);
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    git
}

/// A tree of sources, a repository with it, and an archive.
pub struct Sources {
    dir: PathBuf,
    pub files: usize,
    pub bytes: u64,
}

impl Sources {
    pub fn new(dir: PathBuf, files: usize) -> Result<Sources> {
        fs::create_dir(&dir)?;
        let tree = dir.join("tree");
        let mut bytes = 0;
        for file in 0..files {
            let folder = tree.join(format!("folder{:03}", file / 20));
            fs::create_dir_all(&folder)?;
            let line = format!("let file{file} = {file} * {};\n", file % 89);
            let content = line.repeat(1 + file * 37 % 300);
            bytes += content.len() as u64;
            fs::write(folder.join(format!("file{file}.rs")), content)?;
        }
        run(Command::new("tar").arg("-C").arg(&tree).arg("-cf").arg(dir.join("tree.tar")).arg("."))?;
        run(git(&tree).args(["init", "--quiet", "--initial-branch=main"]))?;
        run(git(&tree).args(["add", "--all"]))?;
        run(git(&tree).args(["commit", "--quiet", "--message=sources"]))?;
        Ok(Sources { dir, files, bytes })
    }

    pub fn unpack(&self, side: &Side) -> Result<()> {
        let to = side.dir.join("unpacked");
        fs::create_dir(&to)?;
        run(Command::new("tar").arg("-C").arg(to).arg("-xf").arg(self.dir.join("tree.tar")))?;
        side.sync()
    }

    pub fn check_unpacked(&self, side: &Side) -> Result<()> {
        let to = side.dir.join("unpacked");
        run(Command::new("diff").args(["-r", "--exclude=.git"]).arg(self.dir.join("tree")).arg(&to))?;
        Ok(fs::remove_dir_all(to)?)
    }

    pub fn clone_into(&self, side: &Side) -> Result<()> {
        let mut clone = git(&self.dir);
        clone.args(["clone", "--quiet", "--no-hardlinks"]).arg(self.dir.join("tree"));
        run(clone.arg(side.dir.join("clone"))).map(drop)
    }

    /// `git status` of the clone, which has no changes.
    pub fn status(&self, side: &Side) -> Result<()> {
        match run(git(&side.dir.join("clone")).args(["status", "--porcelain"]))?.as_str() {
            "" => Ok(()),
            changes => Err(format!("the clone differs: {changes}").into()),
        }
    }

    pub fn remove_clone(&self, side: &Side) -> Result<()> {
        Ok(fs::remove_dir_all(side.dir.join("clone"))?)
    }

    pub fn remove(self) -> Result<()> {
        Ok(fs::remove_dir_all(self.dir)?)
    }
}
