//! The heap of an object: roots with their types, and other objects that its far pointers lead to.

use super::answer::{Answer, Status};
use super::look::{Found, Look};
use super::query::Query;
use crate::commands::types::Root;
use crate::target::Target;
use crate::text::printable;
use indelible::{FarEntry, FarTarget, Pool, Rights};
use serde::Serialize;

#[derive(Serialize)]
struct Heap {
    /// Why it cannot be shown.
    why: Option<String>,
    roots: Vec<Rooted>,
    others: Vec<Other>,
}

#[derive(Serialize)]
struct Rooted {
    /// Bytes from the start of the object.
    offset: u64,
    #[serde(flatten)]
    root: Root,
}

/// The target of an entry.
#[derive(Serialize)]
pub struct Other {
    number: u32,
    rights: &'static str,
    /// Its name in this pool, if it is there.
    pub name: Option<String>,
    pub shown: String,
}

impl Other {
    pub fn of(pool: &Pool, (number, entry): &(u32, FarEntry)) -> Other {
        let name = match &entry.target {
            FarTarget::Object(id) => Target::of(pool, id).name().map(str::to_owned),
            _ => None,
        };
        let shown = printable(name.as_ref().unwrap_or(&entry.target.to_string()));
        let rights = if entry.rights.has(Rights::WRITE) { "rw" } else { "r" };
        Other { number: *number, rights, name, shown }
    }
}

pub fn answer(look: &Look<'_>, query: &Query) -> Found<Answer> {
    let name = query.text("name").ok_or(Status::BadRequest)?;
    let stat = look.pool.stat(name)?;
    Ok(Answer::json(&match look.pool.glance(name) {
        Err(error) => Heap { why: Some(error.to_string()), roots: Vec::new(), others: Vec::new() },
        Ok(found) => {
            let rooted = |root: &indelible::Root| Rooted {
                offset: (root.address as u64).wrapping_sub(stat.address),
                root: Root::of(root),
            };
            Heap {
                why: None,
                roots: found.roots.iter().map(rooted).collect(),
                others: found.far.iter().map(|entry| Other::of(&look.pool, entry)).collect(),
            }
        }
    }))
}
