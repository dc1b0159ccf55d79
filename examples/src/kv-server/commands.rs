//! The table of all commands, and the way from a request to its reply.

use crate::call::{Call, Command, MANY, Refusal, looks};
use crate::data::Database;
use crate::reply::Reply;
use crate::{hashes, keys, sorted, strings};
use indelible::Heap;
use indelible::collections::PMutex;
use std::time::{SystemTime, UNIX_EPOCH};

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
