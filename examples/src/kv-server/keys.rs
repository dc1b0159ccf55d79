//! Keys of any kind: DEL, EXPIRE, SCAN and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, integer, is, looks};
use crate::data::{Bytes, Value};
use crate::glob::matches;
use crate::reply::Reply;
use crate::session::unknown;

pub(crate) const COMMANDS: &[Command] = &[
    changes("DEL", 2..=MANY, delete),
    changes("UNLINK", 2..=MANY, delete),
    looks("EXISTS", 2..=MANY, exist),
    looks("TOUCH", 2..=MANY, exist),
    looks("TYPE", 2..=2, |call| {
        let name = call.value().map_or("none", kind);
        call.reply.simple(name);
        Ok(())
    }),
    changes("EXPIRE", 3..=MANY, |call| expire(call, "expire", call.now, 1000)),
    changes("PEXPIRE", 3..=MANY, |call| expire(call, "pexpire", call.now, 1)),
    changes("EXPIREAT", 3..=MANY, |call| expire(call, "expireat", 0, 1000)),
    changes("PEXPIREAT", 3..=MANY, |call| expire(call, "pexpireat", 0, 1)),
    changes("PERSIST", 2..=2, persist),
    looks("TTL", 2..=2, |call| time(call, |expires, now| (expires - now + 500) / 1000)),
    looks("PTTL", 2..=2, |call| time(call, |expires, now| expires - now)),
    looks("EXPIRETIME", 2..=2, |call| time(call, |expires, _| (expires + 500) / 1000)),
    looks("PEXPIRETIME", 2..=2, |call| time(call, |expires, _| expires)),
    changes("RENAME", 3..=3, |call| {
        rename(call)?;
        call.reply.ok();
        Ok(())
    }),
    changes("RENAMENX", 3..=3, |call| {
        let free = call.keys.get(call.words[2], call.now).is_none();
        if free {
            rename(call)?;
        } else if call.value().is_none() {
            return Err(Refusal::NoSuchKey);
        }
        call.reply.integer(free.into());
        Ok(())
    }),
    looks("SCAN", 2..=MANY, scan),
    looks("KEYS", 2..=2, keys),
    looks("DBSIZE", 1..=1, |call| {
        let (keys, _) = call.keys.counts();
        call.reply.count(keys);
        Ok(())
    }),
    looks("MEMORY", 2..=MANY, memory),
    changes("FLUSHALL", 1..=2, flush),
    changes("FLUSHDB", 1..=2, flush),
];

fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::Text(_) | Value::Number(_) => "string",
        Value::Hash(_) => "hash",
        Value::Sorted(_) => "zset",
        Value::List(_) => "list",
    }
}

/// `MEMORY USAGE key [SAMPLES count]`: bytes of the key and its value, without those of the heap.
fn memory(call: &mut Call<'_, '_>) -> Done {
    let key = match call.words[1..] {
        [word, key] | [word, key, _, _] if is(word, "USAGE") => key,
        [word, ..] => return Err(unknown(word, "MEMORY")),
        [] => return Err(Refusal::Syntax),
    };
    match call.keys.get(key, call.now) {
        Some(item) => {
            let bytes = size_of_val(item) + key.len() + bytes(&item.value);
            call.reply.count(bytes);
        }
        None => call.reply.nil(),
    }
    Ok(())
}

fn bytes(value: &Value<'_>) -> usize {
    let of = |text: &Bytes<'_>| size_of_val(text) + text.len();
    match value {
        Value::Text(text) => text.len(),
        Value::Number(_) => 0,
        Value::Hash(hash) => hash.iter().map(|(field, value)| of(field) + of(value)).sum(),
        // The member is in both.
        Value::Sorted(set) => {
            set.order.iter().map(|rank| 2 * (size_of_val(&rank.score) + of(&rank.member))).sum()
        }
        Value::List(list) => list.iter().map(of).sum(),
    }
}

pub(crate) fn moment(from: u64, count: i64, unit: i64, name: &'static str) -> Result<u64, Refusal> {
    let ahead = count.checked_mul(unit).ok_or(Refusal::Expiry(name))?;
    let moment = i64::try_from(from).ok().and_then(|from| from.checked_add(ahead));
    moment.map(|moment| u64::try_from(moment).unwrap_or(1).max(1)).ok_or(Refusal::Expiry(name))
}

fn delete(call: &mut Call<'_, '_>) -> Done {
    let (keys, now) = (&mut call.keys, call.now);
    let removed = call.words[1..].iter().filter(|key| keys.is_there(key, now) && keys.remove(key).is_some());
    let removed = removed.count();
    call.reply.count(removed);
    Ok(())
}

fn exist(call: &mut Call<'_, '_>) -> Done {
    let there = call.words[1..].iter().filter(|key| call.keys.get(key, call.now).is_some());
    let count = there.count();
    call.reply.count(count);
    Ok(())
}

fn flush(call: &mut Call<'_, '_>) -> Done {
    if call.words.get(1).is_some_and(|word| !is(word, "SYNC") && !is(word, "ASYNC")) {
        return Err(Refusal::Syntax);
    }
    call.keys.clear();
    call.reply.ok();
    Ok(())
}

fn expire(call: &mut Call<'_, '_>, name: &'static str, from: u64, unit: i64) -> Done {
    let expires = moment(from, integer(call.words[2])?, unit, name)?;
    let options = &call.words[3..];
    let has = |option| options.iter().any(|word| is(word, option));
    if let Some(word) = options.iter().find(|word| !["NX", "XX", "GT", "LT"].iter().any(|of| is(word, of))) {
        let word = String::from_utf8_lossy(word);
        call.reply.error(&format!("ERR Unsupported option {word}"));
        return Ok(());
    }
    if has("NX") && (has("XX") || has("GT") || has("LT")) {
        return Err(Refusal::Other("NX and XX, GT or LT options at the same time are not compatible"));
    }
    if has("GT") && has("LT") {
        return Err(Refusal::Other("GT and LT options at the same time are not compatible"));
    }
    let before = call.keys.get(call.words[1], call.now).map(|item| item.expires);
    // A key without expiry is the latest.
    let refuses = |before: u64| {
        (has("NX") && before != 0)
            || (has("XX") && before == 0)
            || (has("GT") && (before == 0 || expires <= before))
            || (has("LT") && before != 0 && expires >= before)
    };
    let done = before.is_some_and(|before| !refuses(before));
    if done && expires <= call.now {
        call.keys.remove(call.words[1]);
    } else if done {
        call.keys.expire(call.words[1], expires)?;
    }
    call.reply.integer(done.into());
    Ok(())
}

fn persist(call: &mut Call<'_, '_>) -> Done {
    let ends = call.keys.get(call.words[1], call.now).is_some_and(|item| item.expires != 0);
    if ends {
        call.keys.expire(call.words[1], 0)?;
    }
    call.reply.integer(ends.into());
    Ok(())
}

/// -2: no such key; -1: no expiry.
fn time(call: &mut Call<'_, '_>, shown: fn(u64, u64) -> u64) -> Done {
    let time = match call.keys.get(call.words[1], call.now) {
        None => -2,
        Some(item) if item.expires == 0 => -1,
        Some(item) => i64::try_from(shown(item.expires, call.now)).unwrap_or(i64::MAX),
    };
    call.reply.integer(time);
    Ok(())
}

fn rename(call: &mut Call<'_, '_>) -> Done {
    let (from, to) = (call.words[1], call.words[2]);
    if !call.keys.is_there(from, call.now) {
        return Err(Refusal::NoSuchKey);
    }
    if from != to {
        call.keys.rename(from, to, call.heap)?;
    }
    Ok(())
}

pub(crate) struct Part<'a> {
    pub(crate) cursor: u64,
    pub(crate) count: usize,
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

impl Part<'_> {
    pub(crate) fn fits(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| matches(pattern, name))
    }
}

pub(crate) fn parts<'a>(words: &[&'a [u8]], typed: bool) -> Result<Part<'a>, Refusal> {
    let text = std::str::from_utf8(words[0]).ok();
    let cursor = text.and_then(|text| text.parse().ok()).ok_or(Refusal::Other("invalid cursor"))?;
    let mut part = Part { cursor, count: 10, pattern: None, kind: None };
    let (options, []) = words[1..].as_chunks::<2>() else { return Err(Refusal::Syntax) };
    for [option, value] in options {
        match option {
            option if is(option, "MATCH") => part.pattern = Some(value),
            option if is(option, "TYPE") && typed => part.kind = Some(value),
            option if is(option, "COUNT") => {
                let count = usize::try_from(integer(value)?).ok().filter(|count| *count > 0);
                part.count = count.ok_or(Refusal::Syntax)?;
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    Ok(part)
}

pub(crate) fn scanned(reply: &mut Reply, next: u64, found: &[Vec<u8>]) {
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    reply.array(found.len());
    found.iter().for_each(|text| reply.bulk(text));
}

fn scan(call: &mut Call<'_, '_>) -> Done {
    let part = parts(&call.words[1..], true)?;
    let mut found = Vec::new();
    let next = call.keys.scan(part.cursor, part.count, call.now, |key, value| {
        if part.fits(key) && part.kind.is_none_or(|wanted| is(wanted, kind(value))) {
            found.push(key.to_vec());
        }
    });
    scanned(call.reply, next, &found);
    Ok(())
}

fn keys(call: &mut Call<'_, '_>) -> Done {
    let (mut found, pattern, mut cursor) = (Vec::new(), call.words[1], 0);
    loop {
        cursor = call.keys.scan(cursor, usize::MAX, call.now, |key, _| {
            if matches(pattern, key) {
                found.push(key.to_vec());
            }
        });
        if cursor == 0 {
            break;
        }
    }
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}
