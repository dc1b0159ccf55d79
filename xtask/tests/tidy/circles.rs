//! No circles between modules of one folder.
//!
//! A module is a file or a whole folder. It imports another by a path from `crate` or `super`; a
//! name that the folder's own file imports leads to its original module.

use crate::sources::{root, shipped, sources};
use std::collections::{BTreeMap, BTreeSet};

/// Accepted circles: folder, modules, reason.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (
        "crates/indelible/src/collections",
        &["layout", "persist"],
        "a visitor: a type describes itself to a layout, and a layout has members that describe themselves",
    ),
    (
        "crates/indelible/src/heap",
        &["cache", "span"],
        "a linked structure: a thread's cache has lists of spans, and each span leads to the cache that owns it",
    ),
    (
        "crates/tm/src",
        &[
            "actions",
            "allocations",
            "blocks",
            "entry",
            "exceptions",
            "fork",
            "heaps",
            "log",
            "objects",
            "words",
        ],
        "functions of a binary interface, each beside what it keeps in the thread that runs blocks, which has all of that",
    ),
    (
        "crates/python/src",
        &["attachment", "kept", "unsynced"],
        "a pool's block knows what was opened, and each of that hands its changes to the block when it is dropped",
    ),
    (
        "crates/python/src",
        &["object", "pool"],
        "classes of Python, each with all its methods in one block: a pool attaches objects, an object has its pool",
    ),
    (
        "crates/python/src/shared",
        &["object", "queue"],
        "classes of Python, each with all its methods in one block: a shared object has queues, a queue has its object",
    ),
    (
        "crates/python/src/views",
        &["attached", "object"],
        "classes of Python, each with all its methods in one block: a view gives out its objects' bytes, which keep the view",
    ),
];

type Path = Vec<String>;

struct Tree {
    imports: BTreeMap<Path, Vec<Path>>,
    /// Names of each module's `use` lines, with their paths.
    names: BTreeMap<Path, BTreeMap<String, Path>>,
}

fn pieces(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut pieces) = (0, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                pieces.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&list[from..]);
    pieces
}

fn expand(before: &[&str], tree: &str, out: &mut Vec<(Path, String)>) {
    let tree = tree.trim();
    if let Some((prefix, list)) = tree.split_once('{') {
        let prefix: Vec<&str> = before
            .iter()
            .copied()
            .chain(prefix.split("::").map(str::trim).filter(|word| !word.is_empty()))
            .collect();
        let list = list.rsplit_once('}').map_or(list, |(list, _)| list);
        pieces(list)
            .into_iter()
            .filter(|piece| !piece.trim().is_empty())
            .for_each(|piece| expand(&prefix, piece, out));
        return;
    }
    let (path, name) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name.trim())));
    let mut path: Path =
        before.iter().copied().chain(path.split("::").map(str::trim)).map(str::to_owned).collect();
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = name.map_or_else(|| path.last().cloned().unwrap_or_default(), str::to_owned);
    out.push((path, name));
}

fn paths(code: &str) -> (Vec<(Path, String)>, Vec<Path>) {
    let (mut used, mut others) = (Vec::new(), Vec::new());
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let word =
            rest[..at].chars().next_back().is_none_or(|letter| !letter.is_alphanumeric() && letter != '_');
        others.extend(inline(&rest[..at]));
        rest = &rest[at + 4..];
        if let Some(end) = rest.find(';').filter(|_| word) {
            expand(&[], &rest[..end], &mut used);
            rest = &rest[end..];
        }
    }
    others.extend(inline(rest));
    (used, others)
}

fn inline(code: &str) -> Vec<Path> {
    let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != ':');
    let words = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    words.map(|word| word.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()).collect()
}

impl Tree {
    fn new(files: &BTreeMap<String, String>) -> Tree {
        let mut tree = Tree { imports: BTreeMap::new(), names: BTreeMap::new() };
        for (file, text) in files {
            let module = module(file);
            let (used, others) = paths(&shipped(text));
            let absolute = |path: &Path| resolve(&module, path);
            let names =
                used.iter().filter_map(|(path, name)| Some((name.clone(), absolute(path)?))).collect();
            let all = used.iter().map(|(path, _)| path).chain(&others);
            let imports =
                all.filter(|path| ["crate", "super"].contains(&path[0].as_str())).filter_map(absolute);
            tree.imports.entry(module.clone()).or_default().extend(imports);
            tree.names.insert(module, names);
        }
        tree
    }

    /// The module of a path, through re-imports.
    fn module_of(&self, path: &Path, steps: usize) -> Path {
        let len = (0..=path.len()).rev().find(|len| self.names.contains_key(&path[..*len])).unwrap_or(0);
        let (module, rest) = path.split_at(len);
        let imported = rest.first().and_then(|name| self.names.get(module)?.get(name));
        match imported {
            Some(target) if steps > 0 => {
                let further: Path = target.iter().chain(&rest[1..]).cloned().collect();
                self.module_of(&further, steps - 1)
            }
            _ => module.to_vec(),
        }
    }

    fn siblings(&self) -> BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> {
        let mut all: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, imports) in &self.imports {
            for import in imports {
                let to = self.module_of(import, 8);
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if common < from.len() && common < to.len() {
                    let folder = all.entry(from[..common].to_vec()).or_default();
                    folder.entry(from[common].clone()).or_default().insert(to[common].clone());
                }
            }
        }
        all
    }

    fn circles(&self) -> BTreeSet<(Path, Vec<String>)> {
        let mut circles = BTreeSet::new();
        for (folder, edges) in self.siblings() {
            let reach: BTreeMap<_, _> = edges.keys().map(|from| (from, reachable(&edges, from))).collect();
            for (from, to) in &reach {
                let circle: Vec<String> = to
                    .iter()
                    .filter(|other| reach.get(other).is_some_and(|back| back.contains(*from)))
                    .cloned()
                    .collect();
                if circle.len() > 1 {
                    circles.insert((folder.clone(), circle));
                }
            }
        }
        circles
    }
}

fn reachable(edges: &BTreeMap<String, BTreeSet<String>>, from: &String) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in edges.get(module).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

fn module(file: &str) -> Path {
    let mut path: Path = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
        path.pop();
    }
    path
}

/// A path from the crate's root, as `module` writes it. `None`: another crate.
fn resolve(module: &Path, path: &Path) -> Option<Path> {
    let above = path.iter().take_while(|word| *word == "super").count();
    let base = match path[0].as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "super" => &module[..module.len().checked_sub(above)?],
        "self" => return Some(module.iter().chain(&path[1..]).cloned().collect()),
        // An own name, such as a child; other crates lead nowhere.
        _ => &module[..],
    };
    Some(base.iter().chain(&path[above..]).cloned().collect())
}

fn roots() -> Vec<String> {
    let mut roots = BTreeSet::new();
    for folder in ["crates", "bench", "evidence", "examples", "rig", "xtask"] {
        for file in sources(folder).keys().filter(|file| file.contains("/src/")) {
            if let Some(root) = file.strip_suffix("/lib.rs").or_else(|| file.strip_suffix("/main.rs")) {
                roots.insert(root.to_owned());
            }
        }
    }
    roots.into_iter().collect()
}

fn tree(root: &str, roots: &[String]) -> Tree {
    let of_another = |file: &str| {
        roots.iter().any(|other| other.len() > root.len() && file.starts_with(&format!("{other}/")))
    };
    let files = sources(root).into_iter().filter(|(file, _)| !of_another(file));
    // Tests in separate files import anything.
    let files = files.filter(|(file, _)| !file.contains("/tests"));
    Tree::new(&files.map(|(file, text)| (file[root.len() + 1..].to_owned(), text)).collect())
}

#[test]
fn modules_import_each_other_in_no_circle_without_a_reason() {
    let roots = roots();
    assert!(roots.len() > 12 && root().join(&roots[0]).exists(), "{roots:?}");
    let mut found = Vec::new();
    for root in &roots {
        for (folder, modules) in tree(root, &roots).circles() {
            let folder = std::iter::once(root.clone()).chain(folder).collect::<Vec<_>>().join("/");
            found.push((folder, modules));
        }
    }
    assert!(KNOWN.iter().all(|(_, _, why)| !why.is_empty()));
    let known: Vec<(String, Vec<String>)> = KNOWN
        .iter()
        .map(|(folder, modules, _)| ((*folder).to_owned(), modules.iter().map(|m| (*m).to_owned()).collect()))
        .collect();
    let new: Vec<_> = found.iter().filter(|circle| !known.contains(circle)).collect();
    let gone: Vec<_> = known.iter().filter(|circle| !found.contains(circle)).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "circles that are not listed: {new:#?}\nlisted and not there: {gone:#?}"
    );
}

fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
    Tree::new(&files).circles().into_iter().map(|(_, modules)| modules).collect()
}

#[test]
fn a_circle_would_be_noticed() {
    let both = vec![vec!["a".to_owned(), "b".to_owned()]];
    let b = ("b.rs", "fn f() -> crate::a::A {}");
    assert_eq!(circles_of(&[("a.rs", "use crate::b::{self, f};"), b]), both);
    assert_eq!(circles_of(&[("a.rs", "use crate::{x, b::f as g};"), b]), both);
    assert_eq!(circles_of(&[("a/mod.rs", ""), ("a/c.rs", "fn f() { super::super::b::f() }"), b]), both);
    assert_eq!(circles_of(&[("lib.rs", "pub use b::{f};"), ("a.rs", "use super::f;"), b]), both);
    let three = [("a.rs", "use crate::c;"), ("c.rs", "use crate::b;"), b];
    assert_eq!(circles_of(&three), [["a", "b", "c"]]);
    let behind = "#[cfg(test)]\nmod tests {\n use crate::c; }\n#[cfg(test)]\nuse c::{d};\nuse crate::b;";
    assert_eq!(circles_of(&[("a.rs", behind), b]), both);
    let folder = [("x/mod.rs", "pub use a::A;"), ("x/a.rs", "use super::b;"), ("x/b.rs", "use super::A;")];
    assert_eq!(circles_of(&folder), both);
}

#[test]
fn no_circle_is_seen_where_there_is_none() {
    let b = ("b.rs", "use crate::a::A;");
    let none: Vec<Vec<String>> = Vec::new();
    assert_eq!(circles_of(&[("a.rs", "// crate::b\n#[cfg(test)]\nuse crate::b;"), b]), none);
    assert_eq!(circles_of(&[("a/mod.rs", "use c::C; mod c;"), ("a/c.rs", "use super::A;"), b]), none);
    assert_eq!(circles_of(&[("a.rs", "use std::b::f; fn f() { because ::b }"), b]), none);
}
