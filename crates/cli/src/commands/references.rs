//! Dangling far pointers, for `pmo check --references`.

use crate::context::Context;
use crate::failure::{Result, object};
use crate::out::Out;
use crate::text::printable;
use indelible::{Dangling, ErrorKind, Space};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
pub struct References {
    /// Names of skipped objects: processes write them, or they are sealed or have a key.
    left_out: Vec<String>,
    pub dangling: Vec<Reference>,
}

#[derive(Serialize)]
pub struct Reference {
    object: String,
    entry: Option<u32>,
    target: Option<String>,
    path: Option<String>,
    what: String,
}

impl References {
    pub fn find(context: &Context, path: &Path, with: &[PathBuf]) -> Result<References> {
        let pool = context.open_to_read(path)?;
        let mut space = Space::new();
        space.add(&pool);
        for with in with {
            space.add(&context.open_to_read(with)?);
        }
        let mut found = References { left_out: Vec::new(), dangling: Vec::new() };
        // Listing an unreadable object is a finding already.
        for stat in pool.list().flatten() {
            match space.dangling(&stat.id) {
                Ok(all) => found.dangling.extend(all.into_iter().map(|one| Reference::of(&stat.name, one))),
                Err(error) if is_kept_away(error.kind()) => found.left_out.push(stat.name),
                Err(error) => found.dangling.push(Reference {
                    object: stat.name,
                    entry: None,
                    target: None,
                    path: None,
                    what: error.to_string(),
                }),
            }
            drop(space.remove(&stat.id));
        }
        Ok(found)
    }

    pub fn text(&self, out: &mut Out) -> Result {
        for Reference { object: name, path, what, .. } in &self.dangling {
            let place = path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
            out.line(&format!("error: {}: {}", object(name), printable(&format!("{place}{what}"))))?;
        }
        for name in &self.left_out {
            out.line(&format!("note: {} was left out: nobody else can read it now", object(name)))?;
        }
        Ok(())
    }
}

fn is_kept_away(kind: ErrorKind) -> bool {
    use ErrorKind::{AddressTaken, Busy, ClassMismatch, Held, NeedsRecovery, Sealed, VolatileGone, WrongKey};
    matches!(
        kind,
        AddressTaken | Busy | ClassMismatch | Held | NeedsRecovery | Sealed | VolatileGone | WrongKey
    )
}

impl Reference {
    fn of(object: &str, one: Dangling) -> Self {
        Reference {
            object: object.to_owned(),
            entry: one.entry.as_ref().map(|(index, _)| *index),
            target: one.entry.map(|(_, entry)| entry.target.to_string()),
            path: one.pointer.map(|pointer| pointer.path),
            what: one.what,
        }
    }
}
