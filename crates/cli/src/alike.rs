//! Names that look alike: text in another Unicode form.

use crate::failure::{Failure, object};
use crate::terminal::note;
use indelible::{Error, ErrorKind, Pool};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// ASCII names need no search.
fn look_alike(pool: &Pool, name: &str) -> Option<String> {
    if name.is_ascii() {
        return None;
    }
    let own = name.to_owned();
    let same = move |other: &str| other != own && other.nfc().eq(own.nfc());
    pool.list().named(same).find_map(|stat| Some(stat.ok()?.name))
}

fn spelled(name: &str) -> String {
    let points: Vec<_> =
        name.chars().filter(|c| !c.is_ascii()).map(|c| format!("U+{:04X}", c as u32)).collect();
    points.join(" ")
}

/// Notes that a new name looks like another.
pub fn warn(pool: &Pool, name: &str) {
    if let Some(other) = look_alike(pool, name) {
        let which = if is_nfc(name) { "another has it" } else { "it is" };
        note(&format!(
            "two objects are now named {}: one name has {}, the other {} ({which} in decomposed form)",
            object(name),
            spelled(name),
            spelled(&other)
        ));
    }
}

/// A failure to find an object, with the name that looks alike.
pub fn explain(pool: &Pool, name: &str, error: Error) -> Failure {
    let missing = error.kind() == ErrorKind::NotFound;
    let failure = Failure::from(error);
    match look_alike(pool, name).filter(|_| missing) {
        Some(other) => failure.with_help(format!(
            "there is one that looks the same, but its name has {} for {}: `pmo ls --json` shows its bytes",
            spelled(&other),
            spelled(name)
        )),
        None => failure,
    }
}
