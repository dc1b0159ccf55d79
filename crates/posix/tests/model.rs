//! Random programs with crashes against a model of a tree.

use crate::support::{Dump, OWN, Seen, check, dump, fresh};
use indelible::Pool;
use indelible_posix::{Allocate, Existing, New, ROOT, Rename, Set, Volume};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;

/// Paths are numbers of [`path`].
#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Directory(usize),
    Symlink(usize),
    Unnamed,
    Link(usize, usize),
    LinkOpen(usize, usize),
    Unlink(usize),
    RemoveDirectory(usize),
    Rename(usize, usize, u8),
    Write(usize, usize, usize, u8),
    WriteOpen(usize, usize, usize, u8),
    Truncate(usize, usize),
    Allocate(usize, usize, usize, u8),
    Attribute(usize, u8, usize),
    RemoveAttribute(usize, u8),
    Mode(usize, u32),
    Open(usize),
    Close(usize),
    Sync,
    Crash,
}

/// One of 39 paths: three names, at most three deep.
fn path(number: usize) -> Vec<u8> {
    let number = number % 39;
    let names = [b"a", b"b", b"c"];
    match number {
        0..3 => names[number].to_vec(),
        3..12 => [names[(number - 3) / 3].as_slice(), b"/", names[number % 3]].concat(),
        _ => {
            let number = number - 12;
            [names[number / 9].as_slice(), b"/", names[number / 3 % 3], b"/", names[number % 3]].concat()
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let place = || prop_oneof![0_usize..3, 0_usize..12, 0_usize..39];
    let offset = || prop_oneof![0_usize..100, 0_usize..70_000, 0_usize..300_000];
    prop_oneof![
        6 => place().prop_map(Step::Create),
        6 => place().prop_map(Step::Directory),
        1 => place().prop_map(Step::Symlink),
        1 => Just(Step::Unnamed),
        2 => (place(), place()).prop_map(|(a, b)| Step::Link(a, b)),
        1 => (0_usize..4, place()).prop_map(|(a, b)| Step::LinkOpen(a, b)),
        3 => place().prop_map(Step::Unlink),
        2 => place().prop_map(Step::RemoveDirectory),
        5 => (place(), place(), 0_u8..3).prop_map(|(a, b, how)| Step::Rename(a, b, how)),
        8 => (place(), offset(), offset(), any::<u8>()).prop_map(|(a, b, c, d)| Step::Write(a, b, c, d)),
        2 => (0_usize..4, offset(), offset(), any::<u8>()).prop_map(|(a, b, c, d)| Step::WriteOpen(a, b, c, d)),
        3 => (place(), offset()).prop_map(|(a, b)| Step::Truncate(a, b)),
        3 => (place(), offset(), offset(), 0_u8..5).prop_map(|(a, b, c, d)| Step::Allocate(a, b, c, d)),
        2 => (place(), 0_u8..3, 0_usize..2000).prop_map(|(a, b, c)| Step::Attribute(a, b, c)),
        1 => (place(), 0_u8..3).prop_map(|(a, b)| Step::RemoveAttribute(a, b)),
        1 => (place(), 0_u32..0o10000).prop_map(|(a, b)| Step::Mode(a, b)),
        2 => place().prop_map(Step::Open),
        2 => (0_usize..4).prop_map(Step::Close),
        2 => Just(Step::Sync),
        1 => Just(Step::Crash),
    ]
}

#[derive(Clone, Debug)]
enum Body {
    File(Vec<u8>),
    Directory(BTreeMap<Vec<u8>, u64>),
    Symlink(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Node {
    mode: u32,
    body: Body,
    linkable: bool,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Model {
    nodes: BTreeMap<u64, Node>,
    last: u64,
}

type Did<T = ()> = Result<T, i32>;

impl Model {
    fn new() -> Model {
        let mut model = Model { nodes: BTreeMap::new(), last: 0 };
        model.make(libc::S_IFDIR | 0o755, Body::Directory(BTreeMap::new()));
        model
    }

    fn make(&mut self, mode: u32, body: Body) -> u64 {
        self.last += 1;
        self.nodes.insert(self.last, Node { mode, body, linkable: false, attributes: BTreeMap::new() });
        self.last
    }

    fn names(&mut self, number: u64) -> Did<&mut BTreeMap<Vec<u8>, u64>> {
        match &mut self.nodes.get_mut(&number).unwrap().body {
            Body::Directory(names) => Ok(names),
            _ => Err(libc::ENOTDIR),
        }
    }

    fn bytes(&mut self, number: u64) -> Did<&mut Vec<u8>> {
        match &mut self.nodes.get_mut(&number).unwrap().body {
            Body::File(bytes) => Ok(bytes),
            Body::Directory(_) => Err(libc::EISDIR),
            Body::Symlink(_) => Err(libc::EINVAL),
        }
    }

    fn is_directory(&self, number: u64) -> bool {
        matches!(self.nodes[&number].body, Body::Directory(_))
    }

    fn find(&mut self, path: &[u8]) -> Did<u64> {
        let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.try_fold(1, |number, name| self.names(number)?.get(name).copied().ok_or(libc::ENOENT))
    }

    fn parent<'p>(&mut self, path: &'p [u8]) -> Did<(u64, &'p [u8])> {
        let slash = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        Ok((self.find(&path[..slash])?, &path[slash..]))
    }

    fn links(&self, number: u64) -> usize {
        let named = |node: &Node| match &node.body {
            Body::Directory(names) => names.values().filter(|named| **named == number).count(),
            _ => 0,
        };
        self.nodes.values().map(named).sum()
    }

    fn free(&mut self, path: &[u8]) -> Did<(u64, Vec<u8>)> {
        let (directory, name) = self.parent(path)?;
        match self.names(directory)?.contains_key(name) {
            true => Err(libc::EEXIST),
            false => Ok((directory, name.to_vec())),
        }
    }

    fn create(&mut self, path: &[u8], mode: u32, body: Body) -> Did<u64> {
        let (directory, name) = self.free(path)?;
        let number = self.make(mode, body);
        self.names(directory)?.insert(name, number);
        Ok(number)
    }

    fn link(&mut self, number: u64, path: &[u8]) -> Did {
        if self.is_directory(number) {
            return Err(libc::EPERM);
        }
        let linkable = self.nodes[&number].linkable;
        if self.links(number) == 0 && !linkable {
            return Err(libc::ENOENT);
        }
        let (directory, name) = self.free(path)?;
        self.names(directory)?.insert(name, number);
        self.nodes.get_mut(&number).unwrap().linkable = false;
        Ok(())
    }

    fn remove(&mut self, path: &[u8], wants_directory: bool) -> Did {
        let (directory, name) = self.parent(path)?;
        let number = *self.names(directory)?.get(name).ok_or(libc::ENOENT)?;
        match (wants_directory, self.is_directory(number)) {
            (true, false) => return Err(libc::ENOTDIR),
            (false, true) => return Err(libc::EISDIR),
            (true, true) if !self.names(number)?.is_empty() => return Err(libc::ENOTEMPTY),
            _ => {}
        }
        self.names(directory)?.remove(name);
        Ok(())
    }

    fn lies_in(&mut self, directory: u64, above: u64) -> bool {
        directory == above
            || self.is_directory(above)
                && self
                    .names(above)
                    .unwrap()
                    .clone()
                    .into_values()
                    .any(|below| self.lies_in(directory, below))
    }

    fn rename(&mut self, from: &[u8], to: &[u8], how: Rename) -> Did {
        let (source, old) = self.parent(from)?;
        let (target, new) = self.parent(to)?;
        let moved = *self.names(source)?.get(old).ok_or(libc::ENOENT)?;
        let there = self.names(target)?.get(new).copied();
        if self.is_directory(moved) && source != target && self.lies_in(target, moved) {
            return Err(libc::EINVAL);
        }
        match (how, there) {
            (Rename::Keep, Some(_)) => return Err(libc::EEXIST),
            (Rename::Exchange, None) => return Err(libc::ENOENT),
            (_, Some(there)) if there == moved => return Ok(()),
            (Rename::Exchange, Some(there)) => {
                if self.is_directory(there) && source != target && self.lies_in(source, there) {
                    return Err(libc::EINVAL);
                }
                self.names(target)?.insert(new.to_vec(), moved);
                self.names(source)?.insert(old.to_vec(), there);
                return Ok(());
            }
            (_, Some(there)) => match (self.is_directory(moved), self.is_directory(there)) {
                (true, false) => return Err(libc::ENOTDIR),
                (false, true) => return Err(libc::EISDIR),
                (true, true) if !self.names(there)?.is_empty() => return Err(libc::ENOTEMPTY),
                _ => {}
            },
            _ => {}
        }
        self.names(target)?.insert(new.to_vec(), moved);
        self.names(source)?.remove(old);
        Ok(())
    }

    fn write(&mut self, number: u64, offset: usize, bytes: &[u8]) -> Did {
        let file = self.bytes(number)?;
        if !bytes.is_empty() {
            let end = offset + bytes.len();
            file.resize(file.len().max(end), 0);
            file[offset..end].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn allocate(&mut self, number: u64, offset: usize, length: usize, how: Allocate) -> Did {
        if length == 0 {
            return Err(libc::EINVAL);
        }
        let file = self.bytes(number)?;
        let end = offset + length;
        if matches!(how, Allocate::Grow | Allocate::Zero) {
            file.resize(file.len().max(end), 0);
        }
        if matches!(how, Allocate::Punch | Allocate::Zero | Allocate::ZeroKeep) {
            let size = file.len();
            file[offset.min(size)..end.min(size)].fill(0);
        }
        Ok(())
    }

    fn dump(&self) -> Dump {
        let mut all = Dump::new();
        let mut open = vec![(Vec::new(), 1)];
        while let Some((path, number)) = open.pop() {
            let node = &self.nodes[&number];
            let (links, content) = match &node.body {
                Body::File(bytes) | Body::Symlink(bytes) => (self.links(number), bytes.clone()),
                Body::Directory(names) => {
                    open.extend(names.iter().map(|(name, below)| ([&path[..], b"/", name].concat(), *below)));
                    (2 + names.values().filter(|below| self.is_directory(**below)).count(), Vec::new())
                }
            };
            let attributes = node.attributes.clone();
            all.insert(path, Seen { mode: node.mode, links: links as u32, content, attributes });
        }
        all
    }
}

struct Run {
    pool: Pool,
    volume: Option<Volume>,
    model: Model,
    synced: Model,
    open: Vec<(u64, u64)>,
}

const HOW: [Rename; 3] = [Rename::Replace, Rename::Keep, Rename::Exchange];
const ALLOCATE: [Allocate; 5] =
    [Allocate::Grow, Allocate::Keep, Allocate::Punch, Allocate::Zero, Allocate::ZeroKeep];

fn bytes(length: usize, fill: u8) -> Vec<u8> {
    (0..length).map(|at| fill.wrapping_add((at / 7) as u8)).collect()
}

impl Run {
    fn take(&mut self, step: &Step) {
        let Run { volume, model, open, .. } = self;
        let files = volume.as_mut().unwrap();
        let find = |files: &Volume, at: usize| files.find(&path(at));
        let parent = |files: &Volume, at: usize| {
            let path = path(at);
            files.find_parent(&path).map(|(directory, name)| (directory, name.to_vec()))
        };
        let (done, expected): (indelible_posix::Result<()>, Did) = match *step {
            Step::Create(at) => (
                parent(files, at).and_then(|(in_, name)| files.create_file(in_, &name, &OWN)).map(drop),
                model.create(&path(at), libc::S_IFREG | 0o755, Body::File(Vec::new())).map(drop),
            ),
            Step::Directory(at) => (
                parent(files, at).and_then(|(in_, name)| files.create_directory(in_, &name, &OWN)).map(drop),
                model.create(&path(at), libc::S_IFDIR | 0o755, Body::Directory(BTreeMap::new())).map(drop),
            ),
            Step::Symlink(at) => {
                let target = path(at + 1);
                let new = New { target: &target, ..OWN };
                (
                    parent(files, at).and_then(|(in_, name)| files.create_link(in_, &name, &new)).map(drop),
                    model.create(&path(at), libc::S_IFLNK | 0o777, Body::Symlink(target.clone())).map(drop),
                )
            }
            Step::Unnamed => {
                let inode = files.create_unnamed(ROOT, &OWN, true).unwrap();
                let number = model.make(libc::S_IFREG | 0o755, Body::File(Vec::new()));
                model.nodes.get_mut(&number).unwrap().linkable = true;
                open.push((inode, number));
                (Ok(()), Ok(()))
            }
            Step::Link(from, to) => (
                find(files, from).and_then(|inode| {
                    parent(files, to).and_then(|(in_, name)| files.link(inode, in_, &name))
                }),
                model.find(&path(from)).and_then(|number| {
                    model.parent(&path(to)).map(drop).and_then(|()| model.link(number, &path(to)))
                }),
            ),
            Step::LinkOpen(which, to) => match open.get(which) {
                None => return,
                Some((inode, number)) => (
                    parent(files, to).and_then(|(in_, name)| files.link(*inode, in_, &name)),
                    model.parent(&path(to)).map(drop).and_then(|()| model.link(*number, &path(to))),
                ),
            },
            Step::Unlink(at) => (
                parent(files, at).and_then(|(in_, name)| files.unlink(in_, &name)),
                model.remove(&path(at), false),
            ),
            Step::RemoveDirectory(at) => (
                parent(files, at).and_then(|(in_, name)| files.remove_directory(in_, &name)),
                model.remove(&path(at), true),
            ),
            Step::Rename(from, to, how) => {
                let how = HOW[usize::from(how)];
                let renamed = parent(files, from).and_then(|(source, old)| {
                    let (target, new) = parent(files, to)?;
                    files.rename((source, &old), (target, &new), how)
                });
                (renamed, model.rename(&path(from), &path(to), how))
            }
            Step::Write(at, offset, length, fill) => {
                let bytes = bytes(length, fill);
                (
                    find(files, at).and_then(|inode| files.write(inode, offset as u64, &bytes)),
                    model.find(&path(at)).and_then(|number| model.write(number, offset, &bytes)),
                )
            }
            Step::WriteOpen(which, offset, length, fill) => match open.get(which) {
                None => return,
                Some((inode, number)) => {
                    let bytes = bytes(length, fill);
                    let written = files.write(*inode, offset as u64, &bytes);
                    let expected = model.write(*number, offset, &bytes);
                    if let Ok(content) = model.bytes(*number) {
                        assert_eq!(files.read(*inode, 0, usize::MAX).unwrap(), *content);
                    }
                    (written, expected)
                }
            },
            Step::Truncate(at, size) => (
                find(files, at)
                    .and_then(|inode| files.set(inode, &Set { size: Some(size as u64), ..Set::default() })),
                model.find(&path(at)).and_then(|number| model.bytes(number).map(|file| file.resize(size, 0))),
            ),
            Step::Allocate(at, offset, length, how) => {
                let how = ALLOCATE[usize::from(how)];
                let range = offset as u64..(offset + length) as u64;
                (
                    find(files, at).and_then(|inode| files.allocate(inode, range, how)),
                    model.find(&path(at)).and_then(|number| model.allocate(number, offset, length, how)),
                )
            }
            Step::Attribute(at, name, length) => {
                let value = bytes(length, name);
                let name = [b'x', b'a' + name];
                let set = find(files, at);
                (
                    set.and_then(|inode| files.set_attribute(inode, &name, &value, Existing::Any)),
                    model.find(&path(at)).map(|number| {
                        model.nodes.get_mut(&number).unwrap().attributes.insert(name.to_vec(), value.clone());
                    }),
                )
            }
            Step::RemoveAttribute(at, name) => (
                find(files, at).and_then(|inode| files.remove_attribute(inode, &[b'x', b'a' + name])),
                model.find(&path(at)).and_then(|number| {
                    let node = model.nodes.get_mut(&number).unwrap();
                    node.attributes.remove(&[b'x', b'a' + name][..]).map(drop).ok_or(libc::ENODATA)
                }),
            ),
            Step::Mode(at, mode) => (
                find(files, at)
                    .and_then(|inode| files.set(inode, &Set { mode: Some(mode & 0o1777), ..Set::default() })),
                model.find(&path(at)).map(|number| {
                    let node = model.nodes.get_mut(&number).unwrap();
                    node.mode = node.mode & libc::S_IFMT | mode & 0o1777;
                }),
            ),
            Step::Open(at) => match (find(files, at), model.find(&path(at))) {
                (Ok(inode), Ok(number)) if !model.is_directory(number) => {
                    files.hold(inode).unwrap();
                    open.push((inode, number));
                    return;
                }
                (found, expected) => (found.map(drop), expected.map(drop)),
            },
            Step::Close(which) => {
                if which < open.len() {
                    files.release(open.swap_remove(which).0, 1).unwrap();
                }
                return;
            }
            Step::Sync => {
                files.sync().unwrap();
                self.synced = model.clone();
                return;
            }
            Step::Crash => return self.crash(),
        };
        assert_eq!(done.map_err(|error| error.errno()), expected, "{step:?}");
    }

    fn crash(&mut self) {
        self.volume = None;
        self.open.clear();
        self.model = self.synced.clone();
        self.volume = Some(Volume::open(&self.pool, "files").unwrap());
        self.verify();
        let volume = self.volume.as_mut().unwrap();
        check(volume);
    }

    fn verify(&self) {
        let (found, expected) = (dump(self.volume.as_ref().unwrap()), self.model.dump());
        for (path, seen) in &expected {
            let path_text = String::from_utf8_lossy(path);
            let there = found.get(path).unwrap_or_else(|| panic!("{path_text} is missing"));
            assert_eq!(there.content.len(), seen.content.len(), "length of {path_text}");
            let differs = (0..seen.content.len()).find(|at| seen.content[*at] != there.content[*at]);
            assert_eq!(differs, None, "first wrong byte of {path_text}");
            assert_eq!((there.mode, there.links), (seen.mode, seen.links), "{path_text}");
            assert!(there.attributes == seen.attributes, "attributes of {path_text}");
        }
        assert_eq!(found.len(), expected.len());
    }
}

#[test]
fn s2_22_random_programs_agree_with_a_model_of_a_tree() {
    let programs = std::env::var("PROGRAMS").map_or(60, |text| text.parse().unwrap());
    let seed = std::env::var("INDELIBLE_SEED").map_or(56_u64, |text| text.parse().unwrap());
    let config =
        Config { cases: programs, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let run = |steps: Vec<Step>| {
        let (_folder, pool, mut volume) = fresh(256 << 20);
        volume.sync().unwrap();
        let model = Model::new();
        let mut run = Run { pool, volume: Some(volume), synced: model.clone(), model, open: Vec::new() };
        for (number, step) in steps.iter().enumerate() {
            run.take(step);
            if number % 16 == 15 {
                run.verify();
            }
        }
        run.verify();
        check(run.volume.as_mut().unwrap());
        run.crash();
        Ok(())
    };
    if let Err(error) = runner.run(&prop::collection::vec(step(), 1..160), run) {
        panic!("seed {seed}: {error}");
    }
}
