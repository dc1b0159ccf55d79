//! Directories: prefixes of names that end with "/". A directory exists while an object's name
//! begins with it.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::text::quoted;

/// The whole pool.
const ROOT: &str = "/";

/// A directory, with "/" at its end.
#[derive(Clone, Debug)]
pub struct Directory(String);

impl Directory {
    pub fn of(argument: &str) -> Option<Directory> {
        match argument {
            ROOT => Some(Directory(String::new())),
            name => name.ends_with('/').then(|| Directory(name.to_owned())),
        }
    }

    /// The prefix of its objects' names.
    pub fn prefix(&self) -> &str {
        &self.0
    }

    /// The name in this directory of another directory's object.
    pub fn name_of(&self, name: &str) -> String {
        let last = name.rsplit('/').next().unwrap_or(name);
        format!("{}{last}", self.0)
    }

    pub fn has(&self, name: &str) -> bool {
        name.starts_with(&self.0)
    }

    /// The directory one level below that has the object.
    pub fn child<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix(&self.0)?;
        let end = rest.find('/')? + 1;
        // A name that ends with "/" is an object's here.
        (end < rest.len()).then(|| &name[..self.0.len() + end])
    }

    pub fn shown(&self) -> String {
        if self.0.is_empty() { "the pool".to_owned() } else { format!("directory {}", quoted(&self.0)) }
    }

    pub fn missing(&self) -> Failure {
        let help = "`pmo ls POOL /` shows the directories of a pool; one is there as long as it has objects";
        Failure::new(Exit::NotFound, format!("there is no {}", self.shown()), help)
    }
}

#[cfg(test)]
mod tests {
    use super::Directory;

    #[test]
    fn names_lie_in_directories() {
        assert!(Directory::of("a").is_none() && Directory::of("").is_none());
        let (a, root) = (Directory::of("a/").unwrap(), Directory::of("/").unwrap());
        assert!(a.has("a/b") && a.has("a/") && !a.has("ab") && !a.has("a") && root.has("x"));
        for (directory, name, child) in [
            (&a, "a/b", None),
            (&a, "a/b/c", Some("a/b/")),
            (&a, "a/b/c/d", Some("a/b/")),
            (&a, "a/b/", None),
            (&a, "a//b", Some("a//")),
            (&a, "b/c", None),
            (&root, "a/b", Some("a/")),
            (&root, "/a", Some("/")),
            (&root, "a", None),
        ] {
            assert_eq!(directory.child(name), child, "{name}");
        }
    }
}
