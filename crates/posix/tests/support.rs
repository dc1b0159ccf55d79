//! Pools with a volume, and a volume's contents as a value.

use indelible::Pool;
use indelible_posix::{Kind, New, ROOT, Result, Volume};
use std::collections::BTreeMap;

pub const OWN: New<'static> = New::of(0o755, 1000, 100);

pub fn fresh(size: u64) -> (tempfile::TempDir, Pool, Volume) {
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::format(folder.path().join("pool.pmo"), size).unwrap();
    let volume = Volume::create(&pool, "files", &OWN).unwrap();
    (folder, pool, volume)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub mode: u32,
    pub links: u32,
    pub content: Vec<u8>,
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

pub type Dump = BTreeMap<Vec<u8>, Seen>;

pub fn dump(volume: &Volume) -> Dump {
    let mut all = Dump::new();
    let mut open = vec![(Vec::new(), ROOT)];
    while let Some((path, inode)) = open.pop() {
        let attributes = volume.attributes(inode).unwrap();
        let content = match attributes.kind {
            Kind::File => volume.read(inode, 0, usize::MAX).unwrap(),
            Kind::Symlink => volume.read_link(inode).unwrap(),
            _ => Vec::new(),
        };
        if attributes.kind == Kind::Directory {
            for entry in volume.entries(inode, None, usize::MAX).unwrap() {
                open.push(([&path[..], b"/", &entry.name].concat(), entry.inode));
            }
        } else {
            assert_eq!(attributes.size, content.len() as u64);
        }
        let names = volume.attribute_names(inode).unwrap().into_iter();
        let extended = names.map(|name| (name.clone(), volume.attribute(inode, &name).unwrap())).collect();
        let seen = Seen { mode: attributes.mode, links: attributes.links, content, attributes: extended };
        all.insert(path, seen);
    }
    all
}

pub fn check(volume: &mut Volume) {
    assert_eq!(volume.check(), [""; 0]);
}

#[track_caller]
pub fn errno<T: std::fmt::Debug>(result: Result<T>) -> i32 {
    result.unwrap_err().errno()
}
