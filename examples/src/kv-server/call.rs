//! A request: command, arguments, and data.

use crate::data::{Keys, Value};
use crate::reply::Reply;
use crate::request::number;
use crate::service::Service;
use indelible::collections::HeapRef;
use std::fmt;
use std::ops::{Range, RangeInclusive};

pub(crate) struct Call<'a, 'h> {
    pub(crate) words: &'a [&'a [u8]],
    pub(crate) keys: &'a mut Keys<'h, Value<'h>>,
    pub(crate) heap: HeapRef<'h>,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) reply: &'a mut Reply,
    pub(crate) client: &'a mut Client,
    pub(crate) service: &'a Service<'h>,
}

pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) ends: bool,
}

impl<'h> Call<'_, 'h> {
    pub(crate) fn value(&self) -> Option<&Value<'h>> {
        self.keys.get(self.words[1], self.now).map(|item| &item.value)
    }

    /// Changes the value of an existing key, the first argument. `change` also returns whether the
    /// value is empty now; then the key is removed.
    pub(crate) fn change<R>(
        &mut self,
        change: impl FnOnce(&mut Value<'h>) -> Result<(R, bool), Refusal>,
    ) -> Result<Option<R>, Refusal> {
        let key = self.words[1];
        let Some((result, is_empty)) = self.keys.update(key, self.now, change).transpose()? else {
            return Ok(None);
        };
        if is_empty {
            self.keys.remove(key);
        }
        Ok(Some(result))
    }

    /// As `change`, of an existing key or of a new one with the value of `create`.
    pub(crate) fn change_or_create<R>(
        &mut self,
        create: Option<impl FnOnce() -> Value<'h>>,
        change: impl FnOnce(&mut Value<'h>) -> Result<(R, bool), Refusal>,
    ) -> Result<Option<R>, Refusal> {
        let mut change = Some(change);
        let changed = self.change(|value| change.take().ok_or(Refusal::NoSuchKey)?(value))?;
        if changed.is_some() {
            return Ok(changed);
        }
        let (Some(change), Some(create)) = (change, create) else { return Ok(None) };
        self.keys.insert(self.words[1], create(), 0)?;
        self.change(change)
    }
}

pub(crate) enum Refusal {
    Syntax,
    NotAnInteger,
    NotAFloat,
    Overflow,
    WrongType,
    NoSuchKey,
    Arguments(&'static str),
    Expiry(&'static str),
    Other(&'static str),
    /// Of a command.
    Subcommand(String, &'static str),
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
            Refusal::NoSuchKey => f.write_str("ERR no such key"),
            Refusal::Arguments(name) => write!(f, "ERR wrong number of arguments for '{name}' command"),
            Refusal::Expiry(name) => write!(f, "ERR invalid expire time in '{name}' command"),
            Refusal::Other(why) => write!(f, "ERR {why}"),
            Refusal::Subcommand(word, command) => {
                write!(f, "ERR unknown subcommand '{word}'. Try {command} HELP.")
            }
            Refusal::Heap(error) => write!(f, "OOM {error}"),
        }
    }
}

pub(crate) type Done = Result<(), Refusal>;

pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) words: RangeInclusive<usize>,
    pub(crate) changes: bool,
    pub(crate) run: fn(&mut Call<'_, '_>) -> Done,
}

pub(crate) const MANY: usize = usize::MAX;

pub(crate) const fn looks(
    name: &'static str,
    words: RangeInclusive<usize>,
    run: fn(&mut Call<'_, '_>) -> Done,
) -> Command {
    Command { name, words, changes: false, run }
}

pub(crate) const fn changes(
    name: &'static str,
    words: RangeInclusive<usize>,
    run: fn(&mut Call<'_, '_>) -> Done,
) -> Command {
    Command { name, words, changes: true, run }
}

pub(crate) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    number(word).ok_or(Refusal::NotAnInteger)
}

pub(crate) fn count(word: &[u8]) -> Result<usize, Refusal> {
    let count = number(word).and_then(|count| usize::try_from(count).ok());
    count.ok_or(Refusal::Other("value is out of range, must be positive"))
}

pub(crate) fn float(word: &[u8]) -> Result<f64, Refusal> {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
    number.filter(|number| !number.is_nan()).ok_or(Refusal::NotAFloat)
}

/// Places from `start` to `stop` of `len`; negative ones count from the end.
pub(crate) fn span(start: i64, stop: i64, len: usize) -> Range<usize> {
    let place = |at: i64| match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => len.checked_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let first = place(start).unwrap_or(0).min(len);
    let end = place(stop).map_or(0, |stop| stop.saturating_add(1)).min(len);
    first..end.max(first)
}

/// Ignores case.
pub(crate) fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}
