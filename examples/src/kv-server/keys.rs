//! Keys of any kind: DEL, EXPIRE, SCAN and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, integer, looks};
use crate::data::Value;
use crate::glob::matches;

pub(crate) const COMMANDS: &[Command] = &[
    changes("DEL", 2..=MANY, delete),
    looks("EXISTS", 2..=MANY, |call| {
        let there = call.words[1..].iter().filter(|key| call.database.get(key, call.now).is_some());
        let count = there.count();
        call.reply.count(count);
        Ok(())
    }),
    looks("TYPE", 2..=2, |call| {
        call.reply.simple(match call.database.get(call.words[1], call.now).map(|item| &item.value) {
            None => "none",
            Some(Value::Text(_)) => "string",
            Some(Value::Hash(_)) => "hash",
            Some(Value::Sorted(_)) => "zset",
        });
        Ok(())
    }),
    changes("EXPIRE", 3..=3, |call| expire(call, 1000)),
    changes("PEXPIRE", 3..=3, |call| expire(call, 1)),
    changes("PERSIST", 2..=2, persist),
    looks("TTL", 2..=2, |call| time_left(call, 1000)),
    looks("PTTL", 2..=2, |call| time_left(call, 1)),
    looks("SCAN", 2..=MANY, scan),
    // Keys that are over count until they are removed, as in Redis.
    looks("DBSIZE", 1..=1, |call| {
        call.reply.count(call.database.items.len());
        Ok(())
    }),
    changes("FLUSHALL", 1..=2, |call| {
        call.database.items.clear();
        call.reply.simple("OK");
        Ok(())
    }),
];

/// A moment that lies so many units of so many milliseconds ahead; in the past at the earliest.
pub(crate) fn moment(now: u64, count: i64, unit: i64) -> Result<u64, Refusal> {
    let ahead = count.checked_mul(unit).ok_or(Refusal::NotAnInteger)?;
    let moment = now.checked_add_signed(ahead).filter(|moment| *moment <= i64::MAX as u64);
    match moment {
        // 0 is a key without an end.
        Some(moment) => Ok(moment.max(1)),
        None if count < 0 => Ok(1),
        None => Err(Refusal::NotAnInteger),
    }
}

fn delete(call: &mut Call<'_, '_>) -> Done {
    let mut removed = 0;
    for key in &call.words[1..] {
        if call.database.is_there(key, call.now) {
            call.database.items.remove(*key);
            removed += 1;
        }
    }
    call.reply.count(removed);
    Ok(())
}

fn expire(call: &mut Call<'_, '_>, unit: i64) -> Done {
    let expires = moment(call.now, integer(call.words[2])?, unit)?;
    let key = call.words[1];
    let there = call.database.update(key, call.now, |item| item.expires = expires).is_some();
    if there && expires <= call.now {
        call.database.items.remove(key);
    }
    call.reply.integer(there.into());
    Ok(())
}

fn persist(call: &mut Call<'_, '_>) -> Done {
    let before = call.database.update(call.words[1], call.now, |item| std::mem::take(&mut item.expires));
    call.reply.integer(before.is_some_and(|before| before != 0).into());
    Ok(())
}

/// -2: no such key; -1: it has no end.
fn time_left(call: &mut Call<'_, '_>, unit: u64) -> Done {
    let left = match call.database.get(call.words[1], call.now) {
        None => -2,
        Some(item) if item.expires == 0 => -1,
        Some(item) => i64::try_from((item.expires - call.now).div_ceil(unit)).unwrap_or(i64::MAX),
    };
    call.reply.integer(left);
    Ok(())
}

/// `SCAN cursor [MATCH pattern] [COUNT count]`
fn scan(call: &mut Call<'_, '_>) -> Done {
    let text = std::str::from_utf8(call.words[1]).ok();
    let cursor: u64 = text.and_then(|text| text.parse().ok()).ok_or(Refusal::Other("invalid cursor"))?;
    let (mut pattern, mut count) = (None, 10);
    let (options, []) = call.words[2..].as_chunks::<2>() else { return Err(Refusal::Syntax) };
    for [option, value] in options {
        match option.to_ascii_uppercase().as_slice() {
            b"MATCH" => pattern = Some(*value),
            b"COUNT" => {
                count = usize::try_from(integer(value)?)
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or(Refusal::Syntax)?;
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    let (mut found, now) = (Vec::new(), call.now);
    let next = call.database.items.scan(cursor, count, |key, item| {
        if !item.is_over(now) && pattern.is_none_or(|pattern| matches(pattern, key)) {
            found.push(key.to_vec());
        }
    });
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}
