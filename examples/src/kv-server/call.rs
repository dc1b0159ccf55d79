//! One request: the command, its arguments, the data it works on.

use crate::data::Database;
use crate::reply::Reply;
use crate::{hashes, keys, sorted, strings};
use indelible::Heap;
use indelible::collections::{HeapRef, PMutex};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

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

const SERVER: &[Command] = &[
    looks("PING", 1..=2, |call| {
        match call.words.get(1) {
            Some(text) => call.reply.bulk(text),
            None => call.reply.simple("PONG"),
        }
        Ok(())
    }),
    looks("ECHO", 2..=2, |call| {
        call.reply.bulk(call.words[1]);
        Ok(())
    }),
    looks("SELECT", 2..=2, |call| match call.words[1] {
        b"0" => {
            call.reply.simple("OK");
            Ok(())
        }
        _ => Err(Refusal::Other("DB index is out of range")),
    }),
    // Clients ask for what there is, and do without.
    looks("COMMAND", 1..=MANY, |call| {
        call.reply.array(0);
        Ok(())
    }),
    looks("CONFIG", 2..=MANY, |call| {
        call.reply.array(0);
        Ok(())
    }),
    looks("QUIT", 1..=1, |call| {
        call.reply.simple("OK");
        Ok(())
    }),
];

fn find(name: &str) -> Option<&'static Command> {
    let all = [strings::COMMANDS, hashes::COMMANDS, sorted::COMMANDS, keys::COMMANDS, SERVER];
    all.into_iter().flatten().find(|command| command.name.eq_ignore_ascii_case(name))
}

/// The outcome of a request, beside its reply.
pub(crate) struct Performed {
    /// Whether something may have changed.
    pub(crate) changed: bool,
    /// Whether the client wants to go.
    pub(crate) ends: bool,
}

/// Carries a request out, and appends the reply.
pub(crate) fn perform<'h>(
    heap: &'h Heap,
    database: &PMutex<'h, Database<'h>>,
    words: &[&[u8]],
    reply: &mut Reply,
) -> Performed {
    let name = String::from_utf8_lossy(words[0]);
    let Some(command) = find(&name) else {
        reply.error(&format!("ERR unknown command '{}'", name.chars().take(64).collect::<String>()));
        return Performed { changed: false, ends: false };
    };
    let before = reply.len();
    let done = if command.words.contains(&words.len()) {
        match heap.heap_ref() {
            Ok(heap) => {
                let mut database = database.lock();
                let now = now();
                (command.run)(&mut Call { words, database: &mut database, heap, now, reply })
            }
            Err(error) => Err(error.into()),
        }
    } else {
        reply.error(&format!(
            "ERR wrong number of arguments for '{}' command",
            command.name.to_ascii_lowercase()
        ));
        return Performed { changed: false, ends: false };
    };
    if let Err(refusal) = done {
        reply.truncate(before);
        reply.error(&refusal.to_string());
    }
    Performed { changed: command.changes, ends: command.name == "QUIT" }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A whole number.
pub(crate) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    let text = std::str::from_utf8(word).ok().filter(|text| !text.starts_with('+'));
    text.and_then(|text| text.parse().ok()).ok_or(Refusal::NotAnInteger)
}
