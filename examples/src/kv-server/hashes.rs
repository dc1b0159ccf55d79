//! Hashes: HSET, HGET and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, float, integer, looks};
use crate::data::{Hash, Value, assign};
use crate::keys::{parts, scanned};
use indelible::collections::PHashMap;

pub(crate) const COMMANDS: &[Command] = &[
    changes("HSET", 4..=MANY, |call| {
        let added = set(call, "hset")?;
        call.reply.count(added);
        Ok(())
    }),
    changes("HMSET", 4..=MANY, |call| {
        set(call, "hmset")?;
        call.reply.ok();
        Ok(())
    }),
    changes("HSETNX", 4..=4, |call| {
        let absent = found(call)?.is_none_or(|hash| !hash.contains_key(call.words[2]));
        if absent {
            set(call, "hsetnx")?;
        }
        call.reply.integer(absent.into());
        Ok(())
    }),
    looks("HGET", 3..=3, |call| {
        match hash(call.keys.get(call.words[1], call.now).map(|item| &item.value))? {
            Some(hash) => call.reply.option(hash.get(call.words[2]).map(|value| &value[..])),
            None => call.reply.nil(),
        }
        Ok(())
    }),
    looks("HMGET", 3..=MANY, |call| {
        let hash = hash(call.keys.get(call.words[1], call.now).map(|item| &item.value))?;
        call.reply.array(call.words.len() - 2);
        for field in &call.words[2..] {
            let value = hash.and_then(|hash| hash.get(*field));
            call.reply.option(value.map(|value| &value[..]));
        }
        Ok(())
    }),
    changes("HDEL", 3..=MANY, delete),
    looks("HLEN", 2..=2, |call| {
        let len = found(call)?.map_or(0, PHashMap::len);
        call.reply.count(len);
        Ok(())
    }),
    looks("HEXISTS", 3..=3, |call| {
        let there = found(call)?.is_some_and(|hash| hash.contains_key(call.words[2]));
        call.reply.integer(there.into());
        Ok(())
    }),
    looks("HSTRLEN", 3..=3, |call| {
        let len = found(call)?.and_then(|hash| hash.get(call.words[2])).map_or(0, |value| value.len());
        call.reply.count(len);
        Ok(())
    }),
    looks("HGETALL", 2..=2, |call| all(call, true, true)),
    looks("HKEYS", 2..=2, |call| all(call, true, false)),
    looks("HVALS", 2..=2, |call| all(call, false, true)),
    changes("HINCRBY", 4..=4, |call| {
        let by = integer(call.words[3])?;
        let sum = add(call, |text| {
            let before = text.map_or(Ok(0), integer);
            let before = before.map_err(|_| Refusal::Other("hash value is not an integer"))?;
            Ok(before.checked_add(by).ok_or(Refusal::Overflow)?.to_string())
        })?;
        call.reply.integer(integer(sum.as_bytes())?);
        Ok(())
    }),
    changes("HINCRBYFLOAT", 4..=4, |call| {
        let by = float(call.words[3])?;
        if by.is_infinite() {
            return Err(Refusal::Other("value is NaN or Infinity"));
        }
        let sum = add(call, |text| {
            let before = text.map_or(Ok(0.0), float);
            let sum = before.map_err(|_| Refusal::Other("hash value is not a float"))? + by;
            if !sum.is_finite() {
                return Err(Refusal::Other("increment would produce NaN or Infinity"));
            }
            Ok(sum.to_string())
        })?;
        call.reply.bulk(sum.as_bytes());
        Ok(())
    }),
    looks("HSCAN", 3..=MANY, scan),
];

fn hash<'a, 'h>(value: Option<&'a Value<'h>>) -> Result<Option<&'a Hash<'h>>, Refusal> {
    match value {
        None => Ok(None),
        Some(Value::Hash(hash)) => Ok(Some(hash)),
        Some(_) => Err(Refusal::WrongType),
    }
}

fn found<'a, 'h>(call: &'a Call<'_, 'h>) -> Result<Option<&'a Hash<'h>>, Refusal> {
    hash(call.value())
}

/// `HSET key field value [field value …]`; returns the number of new fields.
fn set(call: &mut Call<'_, '_>, name: &'static str) -> Result<usize, Refusal> {
    let (pairs, []) = call.words[2..].as_chunks::<2>() else { return Err(Refusal::Arguments(name)) };
    change_or_create(call, |hash| fill(hash, pairs))?.unwrap_or(Ok(0))
}

fn fill(hash: &mut Hash<'_>, pairs: &[[&[u8]; 2]]) -> Result<usize, Refusal> {
    let mut added = 0;
    for [field, value] in pairs {
        added += usize::from(put(hash, field, value)?);
    }
    Ok(added)
}

fn put(hash: &mut Hash<'_>, field: &[u8], value: &[u8]) -> Result<bool, Refusal> {
    match hash.update(field, |text| assign(text, value)) {
        Some(assigned) => assigned?,
        None => {
            hash.try_insert(field, value)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn change<'h, R>(
    call: &mut Call<'_, 'h>,
    change: impl FnOnce(&mut Hash<'h>) -> R,
) -> Result<Option<R>, Refusal> {
    call.change(|value| match value {
        Value::Hash(hash) => Ok((change(hash), hash.is_empty())),
        _ => Err(Refusal::WrongType),
    })
}

fn change_or_create<'h, R>(
    call: &mut Call<'_, 'h>,
    change: impl FnOnce(&mut Hash<'h>) -> R,
) -> Result<Option<R>, Refusal> {
    call.change_or_create(Some(|| Value::Hash(PHashMap::new())), |value| match value {
        Value::Hash(hash) => Ok((change(hash), hash.is_empty())),
        _ => Err(Refusal::WrongType),
    })
}

fn delete(call: &mut Call<'_, '_>) -> Done {
    let fields = &call.words[2..];
    let removed = change(call, |hash| fields.iter().filter(|field| hash.remove(**field).is_some()).count())?;
    call.reply.count(removed.unwrap_or(0));
    Ok(())
}

fn all(call: &mut Call<'_, '_>, fields: bool, values: bool) -> Done {
    let hash = hash(call.keys.get(call.words[1], call.now).map(|item| &item.value))?;
    let len = hash.map_or(0, PHashMap::len);
    if fields && values {
        call.reply.map(len);
    } else {
        call.reply.array(len);
    }
    for (field, value) in hash.into_iter().flatten() {
        if fields {
            call.reply.bulk(field);
        }
        if values {
            call.reply.bulk(value);
        }
    }
    Ok(())
}

fn add(
    call: &mut Call<'_, '_>,
    sum: impl FnOnce(Option<&[u8]>) -> Result<String, Refusal>,
) -> Result<String, Refusal> {
    let field = call.words[2];
    let added = change_or_create(call, |hash| {
        let sum = sum(hash.get(field).map(|value| &value[..]))?;
        put(hash, field, sum.as_bytes())?;
        Ok(sum)
    })?;
    added.unwrap_or(Err(Refusal::NoSuchKey))
}

fn scan(call: &mut Call<'_, '_>) -> Done {
    let part = parts(&call.words[2..], false)?;
    let mut found = Vec::new();
    let hash = hash(call.keys.get(call.words[1], call.now).map(|item| &item.value))?;
    let next = hash.map_or(0, |hash| {
        hash.scan(part.cursor, part.count, |field, value| {
            if part.fits(field) {
                found.extend([field.to_vec(), value.to_vec()]);
            }
        })
    });
    scanned(call.reply, next, &found);
    Ok(())
}
