//! One request: the command, its arguments, the data it works on.

use crate::data::{Database, Value};
use crate::reply::Reply;
use indelible::collections::HeapRef;
use std::fmt;
use std::ops::RangeInclusive;

/// A command being carried out, with the database locked.
pub(crate) struct Call<'a, 'h> {
    /// The command's name, and its arguments.
    pub(crate) words: &'a [&'a [u8]],
    pub(crate) database: &'a mut Database<'h>,
    pub(crate) heap: HeapRef<'h>,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) reply: &'a mut Reply,
}

impl<'h> Call<'_, 'h> {
    /// Changes the value of the key that is the first argument, if it is there. `change` also says whether the value is empty now; the key is
    /// removed then.
    ///
    /// # Errors
    /// Those of `change`.
    pub(crate) fn change<R>(
        &mut self,
        change: impl FnOnce(&mut Value<'h>) -> Result<(R, bool), Refusal>,
    ) -> Result<Option<R>, Refusal> {
        let key = self.words[1];
        let changed = self.database.update(key, self.now, |item| change(&mut item.value));
        let Some((result, is_empty)) = changed.transpose()? else { return Ok(None) };
        if is_empty {
            self.database.items.remove(key);
        }
        Ok(Some(result))
    }
}

/// Why a command was not carried out.
pub(crate) enum Refusal {
    Syntax,
    NotAnInteger,
    NotAFloat,
    Overflow,
    WrongType,
    Other(&'static str),
    /// Of the heap: it is full.
    Heap(indelible::Error),
}

impl From<indelible::Error> for Refusal {
    fn from(error: indelible::Error) -> Self {
        Refusal::Heap(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Syntax => f.write_str("ERR syntax error"),
            Refusal::NotAnInteger => f.write_str("ERR value is not an integer or out of range"),
            Refusal::NotAFloat => f.write_str("ERR value is not a valid float"),
            Refusal::Overflow => f.write_str("ERR increment or decrement would overflow"),
            Refusal::WrongType => {
                f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Refusal::Other(why) => write!(f, "ERR {why}"),
            Refusal::Heap(error) => write!(f, "OOM {error}"),
        }
    }
}

pub(crate) type Done = Result<(), Refusal>;

/// A command: its name, how many words a request of it has, whether it changes anything, and its code.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) words: RangeInclusive<usize>,
    pub(crate) changes: bool,
    pub(crate) run: fn(&mut Call<'_, '_>) -> Done,
}

/// No limit to the words.
pub(crate) const MANY: usize = usize::MAX;

/// A command that looks.
pub(crate) const fn looks(
    name: &'static str,
    words: RangeInclusive<usize>,
    run: fn(&mut Call<'_, '_>) -> Done,
) -> Command {
    Command { name, words, changes: false, run }
}

/// A command that changes something.
pub(crate) const fn changes(
    name: &'static str,
    words: RangeInclusive<usize>,
    run: fn(&mut Call<'_, '_>) -> Done,
) -> Command {
    Command { name, words, changes: true, run }
}

/// A whole number.
pub(crate) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    let text = std::str::from_utf8(word).ok().filter(|text| !text.starts_with('+'));
    text.and_then(|text| text.parse().ok()).ok_or(Refusal::NotAnInteger)
}
