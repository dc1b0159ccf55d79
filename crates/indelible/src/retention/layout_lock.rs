//! Released layouts of extendible structs, in a file committed with the program: a line per struct
//! and per extension. Further extensions may be appended, but lines never change.

use crate::collections::{Describing, Extendible};
use crate::types::Description;
use std::fmt::Write;
use std::path::PathBuf;
use std::{fs, io};

/// A program's extendible structs, compared with a file of their layouts, in a test:
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("layouts.lock");
/// use indelible::Persist;
/// use indelible::retention::{LayoutLock, extendible};
///
/// #[extendible]
/// #[derive(Persist)]
/// #[repr(C)]
/// struct Item<'h> {
///     count: u32,
///     #[extension(1)]
///     price: i64,
/// }
///
/// let lock = LayoutLock::new(&path).with::<Item>();
/// assert!(lock.check().is_err()); // a new extension must be added:
/// lock.update()?;
/// lock.check()?;
/// # Ok::<(), indelible::retention::LayoutError>(())
/// ```
///
/// A moved, changed or removed field or extension fails both, by name.
#[derive(Debug)]
pub struct LayoutLock {
    path: PathBuf,
    types: Vec<Layers>,
    others: bool,
}

#[derive(Debug, Default)]
struct Layers {
    name: String,
    all: Vec<String>,
}

/// Why a program's layouts differ from the file's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The file could not be read or written.
    #[error("the file of layouts {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A line that `update` did not write.
    #[error("{}, line {line}: {what}; go back to the file as it was committed", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The reason.
        what: String,
    },
    /// The program differs from the release: data would be misread.
    #[error("{ty} is not as it was released: {what}; restore it, and add what is new as the last extension")]
    Changed {
        /// Name of the struct.
        ty: String,
        /// The first difference; "here" is the file, "there" the program.
        what: String,
    },
    /// The program has more than the file.
    #[error("{what} of {ty} is not in {} yet: call `LayoutLock::update`, and commit the file", .path.display())]
    New {
        /// The file.
        path: PathBuf,
        /// Name of the struct.
        ty: String,
        /// The struct itself, or the extension, by its number.
        what: String,
    },
}

impl LayoutLock {
    /// A file, without structs.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        LayoutLock { path: path.into(), types: Vec::new(), others: false }
    }

    /// Adds a struct.
    #[must_use]
    pub fn with<'h, T: Extendible<'h>>(mut self) -> Self {
        let base = Describing::of::<T>().describe();
        let name = base.info().name.to_owned();
        let extensions = T::extension_types().into_iter().map(|ty| ty.describe().info().layout.to_owned());
        let all = std::iter::once(base.info().layout.to_owned()).chain(extensions).collect();
        self.types.push(Layers { name, all });
        self
    }

    /// Adds a struct by its own and its extensions' descriptions, for tools without the types.
    #[must_use]
    pub fn with_described(mut self, name: &str, descriptions: Vec<String>) -> Self {
        self.types.push(Layers { name: name.to_owned(), all: descriptions });
        self
    }

    /// Accepts other structs in the file, which belong to another part of the program.
    #[must_use]
    pub fn with_others(mut self) -> Self {
        self.others = true;
        self
    }

    /// Fails unless the file has exactly these structs, as the program defines them.
    ///
    /// # Errors
    /// The first difference, by name; an unreadable or invalid file.
    pub fn check(&self) -> Result<(), LayoutError> {
        let locked = self.read(&self.text()?)?;
        self.compare(&locked)?;
        for Layers { name, all } in &self.types {
            let known = find(&locked, name).map_or(0, |locked| locked.all.len());
            if all.len() > known {
                let (path, ty) = (self.path.clone(), name.clone());
                return Err(LayoutError::New { path, ty, what: layer(known) });
            }
        }
        Ok(())
    }

    /// Adds new types to the file, created if absent.
    ///
    /// # Errors
    /// As for [`check`](LayoutLock::check), except `New`; the file is unchanged.
    pub fn update(&self) -> Result<(), LayoutError> {
        let text = match self.text() {
            Err(LayoutError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let locked = self.read(&text)?;
        self.compare(&locked)?;
        let mut out =
            "# Layouts of extendible structs, as released. Lines are only added, by LayoutLock::update.\n"
                .to_owned();
        // In file order, so that parts of a program do not undo each other's changes.
        let known = locked.iter().map(|of| find(&self.types, &of.name).unwrap_or(of));
        let new = self.types.iter().filter(|of| find(&locked, &of.name).is_none());
        for Layers { name, all } in known.chain(new) {
            for (number, description) in all.iter().enumerate() {
                let _ = writeln!(out, "{name} {number}: {}", description.trim_end());
            }
        }
        fs::write(&self.path, out).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> LayoutError {
        LayoutError::Io { path: self.path.clone(), error }
    }

    fn text(&self) -> Result<String, LayoutError> {
        fs::read_to_string(&self.path).map_err(|error| self.failed(error))
    }

    fn read(&self, text: &str) -> Result<Vec<Layers>, LayoutError> {
        let mut types: Vec<Layers> = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let wrong = |what: String| LayoutError::Malformed { path: self.path.clone(), line, what };
            let parts =
                content.split_once(": ").and_then(|(head, text)| Some((head.rsplit_once(' ')?, text)));
            let Some(((name, number), description)) = parts else {
                return Err(wrong("it is not `name number: description`".to_owned()));
            };
            Description::parse(description).map_err(|error| wrong(error.to_string()))?;
            if number == "0" && find(&types, name).is_none() {
                types.push(Layers { name: name.to_owned(), all: Vec::new() });
            }
            match types.last_mut() {
                Some(last) if last.name == name && last.all.len().to_string() == number => {
                    last.all.push(description.to_owned());
                }
                _ => return Err(wrong(format!("{name} {number} does not follow the line before"))),
            }
        }
        Ok(types)
    }

    fn compare(&self, locked: &[Layers]) -> Result<(), LayoutError> {
        for (index, Layers { name, .. }) in self.types.iter().enumerate() {
            if find(&self.types[..index], name).is_some() {
                return Err(changed(name, "two structs have the name".to_owned()));
            }
        }
        for Layers { name, all } in locked {
            let Some(own) = find(&self.types, name) else {
                if self.others {
                    continue;
                }
                return Err(changed(name, "the program does not have it any more".to_owned()));
            };
            for (number, released) in all.iter().enumerate() {
                let Some(description) = own.all.get(number) else {
                    return Err(changed(name, format!("{} is missing", layer(number))));
                };
                if description.trim_end() != released.trim_end() {
                    let what = difference(released, description);
                    return Err(changed(name, format!("{}: {what}", layer(number))));
                }
            }
        }
        Ok(())
    }
}

fn find<'t>(types: &'t [Layers], name: &str) -> Option<&'t Layers> {
    types.iter().find(|ty| ty.name == name)
}

fn changed(ty: &str, what: String) -> LayoutError {
    LayoutError::Changed { ty: ty.to_owned(), what }
}

fn layer(number: usize) -> String {
    if number == 0 { "the struct itself".to_owned() } else { format!("extension {number}") }
}

fn difference(here: &str, there: &str) -> String {
    let named = match (Description::parse(here), Description::parse(there)) {
        (Ok(here), Ok(there)) => here.difference(&there),
        _ => None,
    };
    named.unwrap_or_else(|| format!("{here} here, {there} there"))
}
