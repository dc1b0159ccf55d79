//! A file on the disk, on LUKS, and on gocryptfs.

use super::{Opened, Page, Place, SealedPeer, files_below, forget};
use crate::Result;
use crate::pattern::PAGE;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PIECE: usize = 128 << 10;

struct Pages {
    path: PathBuf,
    file: File,
    pages: usize,
    beneath: Option<PathBuf>,
    _mounted: Option<Mounted>,
}

impl Pages {
    fn create(dir: &Path, pages: usize) -> Result<Pages> {
        let path = dir.join("pages");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        for page in 0..pages {
            file.write_all_at(&[0; PAGE], (page * PAGE) as u64)?;
        }
        file.sync_all()?;
        Ok(Pages { path, file, pages, beneath: None, _mounted: None })
    }
}

pub fn plain(place: &Place<'_>) -> Result<Opened> {
    Ok(Opened::Ready(Box::new(Pages::create(place.dir, place.pages)?)))
}

pub fn luks(place: &Place<'_>) -> Result<Opened> {
    let Some(dir) = place.luks else {
        let why = if Path::new("/dev/mapper/control").exists() {
            "name a folder on LUKS by --dir-luks: cryptsetup luksFormat, cryptsetup open, mkfs.ext4 and mount make one"
        } else {
            "this kernel has no device mapper, which LUKS needs; elsewhere name a folder on LUKS by --dir-luks"
        };
        return Ok(Opened::Missing(why.into()));
    };
    let own = dir.join(format!("pmo-bench-{}", std::process::id()));
    std::fs::create_dir(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    let mut pages = Pages::create(&own, place.pages)?;
    pages._mounted = Some(Mounted::Folder(own));
    Ok(Opened::Ready(Box::new(pages)))
}

enum Mounted {
    Folder(PathBuf),
    FileSystem(PathBuf),
}

impl Drop for Mounted {
    fn drop(&mut self) {
        match self {
            Mounted::Folder(path) => drop(std::fs::remove_dir_all(path)),
            Mounted::FileSystem(path) => {
                drop(run(
                    Command::new("fusermount").args(["-u", "-z"]).arg(&*path),
                    &path.with_extension("said"),
                ));
            }
        }
    }
}

/// Runs a command that may leave a background process: its output is no pipe, which would not end.
fn run(command: &mut Command, said: &Path) -> std::result::Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error| format!("{name}: {error}");
    let output = File::create(said).map_err(failed)?;
    let errors = output.try_clone().map_err(failed)?;
    let status = command.stdin(Stdio::null()).stdout(output).stderr(errors).status().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let said = std::fs::read_to_string(said).unwrap_or_default();
    Err(format!("{name}: {}", said.lines().next().unwrap_or("it failed, and said nothing")))
}

pub fn gocryptfs(place: &Place<'_>) -> Result<Opened> {
    let [cipher, mounted, key, said] = ["cipher", "mounted", "key", "said"].map(|name| place.dir.join(name));
    for dir in [&cipher, &mounted] {
        std::fs::create_dir(dir)?;
    }
    std::fs::write(&key, "benchmark\n")?;
    let gocryptfs = |arguments: &[&str]| {
        let mut command = Command::new("gocryptfs");
        command.args(["-q", "-nosyslog", "-passfile"]).arg(&key).args(arguments).arg(&cipher);
        command
    };
    // The cheapest key derivation, which is not measured.
    let made = run(&mut gocryptfs(&["-init", "-scryptn", "10"]), &said);
    let made = made.and_then(|()| run(gocryptfs(&[]).arg(&mounted), &said));
    if let Err(why) = made {
        return Ok(Opened::Missing(format!("{why}: bench/install.sh, and a system with FUSE")));
    }
    let unmount = Mounted::FileSystem(mounted.clone());
    let mut pages = Pages::create(&mounted, place.pages)?;
    (pages.beneath, pages._mounted) = (Some(cipher), Some(unmount));
    Ok(Opened::Ready(Box::new(pages)))
}

impl SealedPeer for Pages {
    fn write(&mut self, page: usize, bytes: &Page) -> Result<()> {
        self.file.write_all_at(bytes, (page * PAGE) as u64)?;
        Ok(self.file.sync_data()?)
    }

    fn cool(&mut self) -> Result<()> {
        forget(&self.path)?;
        let beneath = self.beneath.as_deref().map(files_below).transpose()?;
        beneath.unwrap_or_default().iter().try_for_each(|path| forget(path))
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let (mut at, end, mut bytes) = (0, self.pages * PAGE, vec![0; PIECE]);
        while at < end {
            let piece = &mut bytes[..PIECE.min(end - at)];
            self.file.read_exact_at(piece, at as u64)?;
            piece.chunks_exact(PAGE).for_each(&mut *see);
            at += piece.len();
        }
        Ok(())
    }
}
