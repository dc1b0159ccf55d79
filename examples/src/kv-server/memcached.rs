//! memcached's text protocol: requests and commands.

use crate::data::{Bytes, Cached, assign};
use crate::protocol::{Protocol, Step};
use crate::reply::Reply;
use crate::service::Access;
use indelible::Result;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a value, of a key, and of a line: one that names many keys may be longer.
const LONGEST: usize = 1 << 20;
const KEY: usize = 250;
const LINE: usize = 64 << 10;
const KEYS: usize = 1 << 20;
/// Longest relative time in seconds; greater ones count from 1970.
const MONTH: i64 = 60 * 60 * 24 * 30;
/// The largest size that memcached reads.
const SIZE: usize = i32::MAX as usize - 2;

const FORMAT: &str = "CLIENT_ERROR bad command line format";
const FULL: &str = "SERVER_ERROR out of memory storing object";

#[derive(Default)]
pub(crate) struct Memcached {
    /// Bytes to skip, of a refused value.
    skips: usize,
}

const SILENT: [&[u8]; 12] = [
    b"set",
    b"add",
    b"replace",
    b"append",
    b"prepend",
    b"cas",
    b"incr",
    b"decr",
    b"touch",
    b"delete",
    b"flush_all",
    b"verbosity",
];

struct Store<'i> {
    kind: &'i [u8],
    key: &'i [u8],
    flags: u32,
    time: i64,
    unique: Option<u64>,
}

/// A reply's line, or nothing if the reply is appended already.
type Answer = std::result::Result<(), &'static str>;

impl Protocol for Memcached {
    fn step(&mut self, access: &mut Access<'_, '_>, input: &[u8], reply: &mut Reply) -> Step {
        let unanswered = |len| Step::Done { len, answered: false, ends: false };
        if input.is_empty() {
            return Step::Incomplete;
        }
        if self.skips > 0 {
            let len = self.skips.min(input.len());
            self.skips -= len;
            return unanswered(len);
        }
        let longest = if input.starts_with(b"get") { KEYS } else { LINE };
        let Some(end) = input.iter().take(longest).position(|byte| *byte == b'\n') else {
            if input.len() < longest {
                return Step::Incomplete;
            }
            reply.raw(b"CLIENT_ERROR line too long\r\n");
            return Step::Done { len: input.len(), answered: true, ends: true };
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        let mut words: Vec<&[u8]> =
            line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
        let silent = words.last() == Some(&&b"noreply"[..]) && SILENT.contains(&words[0]);
        if silent {
            words.pop();
        }
        let (before, mut len) = (reply.len(), end + 1);
        let answer = match words.first().copied().unwrap_or_default() {
            b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => match Store::read(&words) {
                Err(answer) => Err(answer),
                Ok((store, size)) if size > LONGEST => {
                    self.skips = size + 2;
                    if store.kind == b"set" {
                        // No client reads the former value from here on.
                        access.changes();
                        access.database.cache.remove(store.key);
                    }
                    Err("SERVER_ERROR object too large for cache")
                }
                Ok((store, size)) => {
                    let Some(data) = input.get(len..len + size + 2) else { return Step::Incomplete };
                    len += size + 2;
                    match data.strip_suffix(b"\r\n") {
                        Some(data) => store.run(access, data),
                        None => Err("CLIENT_ERROR bad data chunk"),
                    }
                }
            },
            b"quit" => return Step::Done { len, answered: false, ends: true },
            _ if words.len() > 1 && words[words.len() - 1].starts_with(b"HTTP/") => {
                return Step::Done { len, answered: false, ends: true };
            }
            _ => run(access, &words, reply),
        };
        match answer {
            Ok(()) if reply.overflows() => {
                reply.truncate(before);
                reply.raw(b"SERVER_ERROR out of memory writing get response\r\n");
            }
            Ok(()) => {}
            Err(line) => {
                reply.truncate(before);
                reply.raw(line.as_bytes());
                reply.raw(b"\r\n");
            }
        }
        if silent {
            reply.truncate(before);
        }
        Step::Done { len, answered: !silent, ends: false }
    }

    fn refuse(&self, why: &str, reply: &mut Reply) {
        reply.raw(format!("SERVER_ERROR {}\r\n", why.replace(['\r', '\n'], " ")).as_bytes());
    }
}

fn run(access: &mut Access<'_, '_>, words: &[&[u8]], reply: &mut Reply) -> Answer {
    match words {
        [command @ (b"get" | b"gets"), keys @ ..] => {
            if keys.is_empty() {
                return Err("ERROR");
            }
            checked(keys)?;
            keys.iter().for_each(|key| show(access, key, *command == b"gets", reply));
            reply.raw(b"END\r\n");
            Ok(())
        }
        [command @ (b"gat" | b"gats"), time, keys @ ..] => {
            let time = number(time).ok_or("CLIENT_ERROR invalid exptime argument")?;
            checked(keys)?;
            for key in keys {
                // Shown before its end, which may be in the past.
                show(access, key, *command == b"gats", reply);
                touch(access, key, time)?;
            }
            reply.raw(b"END\r\n");
            Ok(())
        }
        [command @ (b"incr" | b"decr"), key, by] => {
            checked(&[key])?;
            let by = unsigned(by).ok_or("CLIENT_ERROR invalid numeric delta argument")?;
            count(access, key, *command == b"incr", by, reply)
        }
        [b"touch", key, time] => {
            checked(&[key])?;
            let time = number(time).ok_or("CLIENT_ERROR invalid exptime argument")?;
            Err(if touch(access, key, time)? { "TOUCHED" } else { "NOT_FOUND" })
        }
        [b"delete", key] | [b"delete", key, b"0"] => {
            checked(&[key])?;
            access.changes();
            let (cache, now) = (&mut access.database.cache, access.now);
            let deleted = cache.is_there(key, now) && cache.remove(key).is_some();
            Err(if deleted { "DELETED" } else { "NOT_FOUND" })
        }
        [b"delete", _, ..] => Err("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"),
        [b"flush_all", delay @ ..] => {
            let delay = delay.first().map_or(Some(0), |word| number(word));
            if delay.ok_or("CLIENT_ERROR invalid exptime argument")? > 0 {
                return Err("SERVER_ERROR this server flushes without a delay");
            }
            access.changes();
            access.database.cache.clear();
            Err("OK")
        }
        [b"stats"] => {
            stats(access, reply);
            Ok(())
        }
        [b"stats", b"reset"] => Err("RESET"),
        [b"version", ..] => Err("VERSION 1.6.0"),
        [b"verbosity", level] => Err(if number(level).is_some() { "OK" } else { FORMAT }),
        _ => Err("ERROR"),
    }
}

fn checked(keys: &[&[u8]]) -> Answer {
    if keys.iter().any(|key| key.len() > KEY) { Err(FORMAT) } else { Ok(()) }
}

fn show(access: &Access<'_, '_>, key: &[u8], unique: bool, reply: &mut Reply) {
    let Some(item) = access.database.cache.get(key, access.now) else { return };
    let Cached { flags, unique: number, bytes } = &item.value;
    reply.raw(b"VALUE ");
    reply.raw(key);
    reply.raw(format!(" {flags} {}", bytes.len()).as_bytes());
    if unique {
        reply.raw(format!(" {number}").as_bytes());
    }
    reply.raw(b"\r\n");
    reply.raw(bytes);
    reply.raw(b"\r\n");
}

fn end(now: u64, time: i64) -> u64 {
    let seconds = |time: i64| u64::try_from(time).unwrap_or(0).saturating_mul(1000);
    match time {
        0 => 0,
        time if time < 0 => 1,
        time if time <= MONTH => now.saturating_add(seconds(time)),
        time => seconds(time),
    }
}

fn touch(access: &mut Access<'_, '_>, key: &[u8], time: i64) -> std::result::Result<bool, &'static str> {
    access.changes();
    let (cache, now) = (&mut access.database.cache, access.now);
    let there = cache.is_there(key, now);
    if there {
        cache.expire(key, end(now, time)).map_err(|_| FULL)?;
    }
    Ok(there)
}

fn count(access: &mut Access<'_, '_>, key: &[u8], up: bool, by: u64, reply: &mut Reply) -> Answer {
    access.changes();
    let Access { database, now, .. } = access;
    let unique = database.unique + 1;
    let counted = database.cache.update(key, *now, |cached| {
        let before =
            unsigned(&cached.bytes).ok_or("CLIENT_ERROR cannot increment or decrement non-numeric value")?;
        let after = if up { before.wrapping_add(by) } else { before.saturating_sub(by) };
        let text = after.to_string();
        assign(&mut cached.bytes, text.as_bytes()).map_err(|_| FULL)?;
        cached.unique = unique;
        Ok(text)
    });
    database.unique = unique;
    let text = counted.ok_or("NOT_FOUND")??;
    reply.raw(text.as_bytes());
    reply.raw(b"\r\n");
    Ok(())
}

impl<'i> Store<'i> {
    fn read(words: &[&'i [u8]]) -> std::result::Result<(Store<'i>, usize), &'static str> {
        let (kind, key, flags, time, bytes, unique) = match words {
            [b"cas", key, flags, time, bytes, unique] => (&b"cas"[..], key, flags, time, bytes, Some(unique)),
            [b"cas", ..] => return Err("ERROR"),
            [kind, key, flags, time, bytes] => (*kind, key, flags, time, bytes, None),
            _ => return Err("ERROR"),
        };
        let flags = unsigned(flags).and_then(|flags| u32::try_from(flags).ok());
        let unique = unique.map(|unique| unsigned(unique).ok_or(FORMAT)).transpose()?;
        let size = number(bytes).ok_or(FORMAT)?;
        let (Some(flags), Some(time)) = (flags, number(time)) else { return Err(FORMAT) };
        checked(&[key])?;
        let size = usize::try_from(size).ok().filter(|size| *size <= SIZE).ok_or(FORMAT)?;
        Ok((Store { kind, key, flags, time, unique }, size))
    }

    fn run(&self, access: &mut Access<'_, '_>, data: &[u8]) -> Answer {
        access.changes();
        let now = access.now;
        let there = access.database.cache.is_there(self.key, now);
        match self.kind {
            b"add" if there => return Err("NOT_STORED"),
            b"replace" | b"append" | b"prepend" if !there => return Err("NOT_STORED"),
            b"cas" => {
                let found = access.database.cache.get(self.key, now).map(|item| item.value.unique);
                match found {
                    None => return Err("NOT_FOUND"),
                    found if found != self.unique => return Err("EXISTS"),
                    Some(_) => {}
                }
            }
            _ => {}
        }
        match self.store(access, data) {
            Ok(()) => Err("STORED"),
            Err(_) => Err(FULL),
        }
    }

    fn store(&self, Access { database, heap, now, .. }: &mut Access<'_, '_>, data: &[u8]) -> Result<()> {
        database.unique += 1;
        let (unique, flags) = (database.unique, u64::from(self.flags));
        let cache = &mut database.cache;
        let keeps = matches!(self.kind, b"append" | b"prepend");
        let stored = cache.update(self.key, *now, |cached| {
            match self.kind {
                b"append" => cached.bytes.try_extend_from_slice(data)?,
                b"prepend" => {
                    let joined = [data, &cached.bytes].concat();
                    assign(&mut cached.bytes, &joined)?;
                }
                _ => {
                    assign(&mut cached.bytes, data)?;
                    cached.flags = flags;
                }
            }
            cached.unique = unique;
            Ok(())
        });
        let expires = end(*now, self.time);
        match stored {
            Some(stored) => {
                stored?;
                if !keeps {
                    cache.expire(self.key, expires)?;
                }
                Ok(())
            }
            None => {
                let bytes = Bytes::try_from_slice_in(data, *heap)?;
                cache.insert(self.key, Cached { flags, unique, bytes }, expires)
            }
        }
    }
}

fn stats(access: &Access<'_, '_>, reply: &mut Reply) {
    let figures = &access.service.figures;
    let (keys, _) = access.database.cache.counts();
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    for (name, value) in [
        ("pid", u64::from(std::process::id())),
        ("uptime", figures.started.elapsed().as_secs()),
        ("time", seconds.as_secs()),
        ("pointer_size", 64),
        ("curr_connections", figures.clients.load(Relaxed) as u64),
        ("total_connections", figures.connections.load(Relaxed)),
        ("total_requests", figures.requests.load(Relaxed)),
        ("expired_keys", figures.expired.load(Relaxed)),
        ("curr_items", keys as u64),
        ("bytes", access.service.size() as u64),
    ] {
        reply.raw(format!("STAT {name} {value}\r\n").as_bytes());
    }
    reply.raw(b"STAT version 1.6.0\r\nEND\r\n");
}

fn number(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn unsigned(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    text.parse().ok().filter(|_| !text.starts_with('+'))
}
