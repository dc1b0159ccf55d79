//! Other encrypted stores: pages made durable one by one, and read cold.

mod files;
mod own;
mod sqlcipher;

use crate::Result;
use crate::pattern::PAGE;
use std::fs::File;
use std::path::{Path, PathBuf};

pub type Page = [u8; PAGE];

pub trait SealedPeer {
    fn write(&mut self, page: usize, bytes: &Page) -> Result<()>;

    fn cool(&mut self) -> Result<()>;

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()>;
}

pub enum Opened {
    Ready(Box<dyn SealedPeer>),
    Missing(String),
}

pub struct Place<'a> {
    pub dir: &'a Path,
    pub pages: usize,
    pub luks: Option<&'a Path>,
}

pub struct Contestant {
    pub name: &'static str,
    pub integrity: &'static str,
    pub open: fn(&Place<'_>) -> Result<Opened>,
}

pub const ALL: &[Contestant] = &[
    Contestant { name: "plain file", integrity: "none", open: files::plain },
    Contestant { name: "indelible, plain", integrity: "none", open: own::plain },
    Contestant { name: "indelible, sealed", integrity: "every page, whole object", open: own::sealed },
    Contestant { name: "LUKS (dm-crypt)", integrity: "none", open: files::luks },
    Contestant { name: "gocryptfs", integrity: "every block of a file", open: files::gocryptfs },
    Contestant { name: "SQLCipher", integrity: "every page", open: sqlcipher::open },
];

fn forget(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(files_below(&path)?) } else { files.push(path) }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_reads_what_was_written_and_those_who_encrypt_keep_it_out_of_the_file() {
        let dir = std::env::temp_dir().join(format!("sealed-peers-{}", std::process::id()));
        let word = b"a secret that is in no file";
        for contestant in ALL {
            std::fs::create_dir_all(&dir).unwrap();
            let place = Place { dir: &dir, pages: 300, luks: None };
            let mut peer = match (contestant.open)(&place).unwrap() {
                Opened::Ready(peer) => peer,
                Opened::Missing(why) => {
                    eprintln!("NOT TESTED: {}: {why}", contestant.name);
                    std::fs::remove_dir_all(&dir).unwrap();
                    continue;
                }
            };
            let mut bytes = [7; PAGE];
            bytes[100..100 + word.len()].copy_from_slice(word);
            peer.write(299, &bytes).unwrap();
            bytes[0] = 9;
            peer.write(0, &bytes).unwrap();
            peer.cool().unwrap();
            let mut firsts = Vec::new();
            peer.scan(&mut |page| firsts.push((page.len(), page[0], page[100]))).unwrap();
            assert_eq!((firsts.len(), firsts[0], firsts[299]), (300, (PAGE, 9, b'a'), (PAGE, 7, b'a')));
            assert!(firsts[1..299].iter().all(|first| *first == (PAGE, 0, 0)), "{}", contestant.name);
            // Omits the mounted view.
            let at_rest = |path: &PathBuf| !path.starts_with(dir.join("mounted"));
            let all = files_below(&dir).unwrap().into_iter().filter(at_rest);
            let found = all
                .map(|path| std::fs::read(path).unwrap())
                .any(|file| file.windows(word.len()).any(|bytes| bytes == word));
            let plain = ["plain file", "indelible, plain"].contains(&contestant.name);
            assert_eq!(found, plain, "{}", contestant.name);
            drop(peer);
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
}
