//! Addresses for new pools to avoid: of the pools open in this process, and of those that a file in
//! the user's state folder lists. The file is advice.

use super::registry;
use indelible_store::store::{Window, likely_use};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const MOST: usize = 4096;
const LONGEST: u64 = 256 << 10;

pub(super) fn known() -> Vec<Window> {
    let mut known: Vec<Window> = registry::open_pools()
        .iter()
        .map(|pool| {
            let superblock = pool.store.superblock();
            Window { start: superblock.window.get(), len: likely_use(superblock.length.get()) }
        })
        .collect();
    if let Some(file) = file() {
        // Newest lines first.
        known.extend(read(&file).into_iter().rev());
    }
    known
}

pub(super) fn remember(window: Window, pool_len: u64) {
    if let Some(file) = file() {
        let _ = append(&file, Window { len: likely_use(pool_len), ..window });
    }
}

fn append(file: &Path, window: Window) -> std::io::Result<()> {
    let line = |window: Window| format!("{:x} {:x}\n", window.start, window.len);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut known = read(file);
    if known.len() >= MOST {
        // Another process may do the same: the last one wins, and lines in between are lost.
        known.drain(..MOST / 2);
        let fresh = file.with_extension(format!("{}", std::process::id()));
        fs::write(&fresh, known.into_iter().map(line).collect::<String>())?;
        fs::rename(&fresh, file)?;
    }
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line(window).as_bytes())
}

fn read(file: &Path) -> Vec<Window> {
    let mut text = String::new();
    let Ok(opened) = fs::File::open(file) else { return Vec::new() };
    if opened.take(LONGEST).read_to_string(&mut text).is_err() {
        return Vec::new();
    }
    let number = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
    let parse = |line: &str| {
        let mut words = line.split(' ');
        Some(Window { start: number(words.next())?, len: number(words.next())? })
    };
    text.lines().filter_map(parse).collect()
}

/// `$XDG_STATE_HOME/indelible/windows`, or below `~/.local/state`.
fn file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("indelible/windows"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_windows_are_read_back_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/windows");
        assert_eq!(read(&file), []);
        for n in 0..MOST as u64 + 10 {
            append(&file, Window { start: n << 21, len: 1 << 30 }).unwrap();
        }
        let found = read(&file);
        assert_eq!(found.len(), MOST / 2 + 10);
        assert_eq!(found.last(), Some(&Window { start: (MOST as u64 + 9) << 21, len: 1 << 30 }));
    }

    #[test]
    fn nonsense_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("windows");
        fs::write(&file, "hello\n400000000000 40000000\n-1 2\nffffffffffffffff ffffffffffffffff\n5").unwrap();
        let found = read(&file);
        assert_eq!(found[0], Window { start: 0x4000_0000_0000, len: 1 << 30 });
        assert_eq!(found.len(), 2);
        assert!(Window::choose(7, 1 << 30, &found).start >= 0x4000_0000_0000);
    }
}
