//! Hashes: HSET, HGET and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, looks};
use crate::data::{Bytes, Item, Value, assign};
use indelible::collections::PHashMap;

pub(crate) const COMMANDS: &[Command] = &[
    changes("HSET", 4..=MANY, set),
    looks("HGET", 3..=3, get),
    changes("HDEL", 3..=MANY, delete),
    looks("HLEN", 2..=2, |call| {
        let len = found(call)?.map_or(0, PHashMap::len);
        call.reply.count(len);
        Ok(())
    }),
    looks("HGETALL", 2..=2, get_all),
];

type Hash<'h> = PHashMap<'h, Bytes<'h>, Bytes<'h>>;

fn found<'a, 'h>(call: &'a Call<'_, 'h>) -> Result<Option<&'a Hash<'h>>, Refusal> {
    match call.database.get(call.words[1], call.now).map(|item| &item.value) {
        None => Ok(None),
        Some(Value::Hash(hash)) => Ok(Some(hash)),
        Some(_) => Err(Refusal::WrongType),
    }
}

/// `HSET key field value [field value …]`
fn set(call: &mut Call<'_, '_>) -> Done {
    let [_, key, pairs @ ..] = call.words else { return Err(Refusal::Syntax) };
    let (pairs, []) = pairs.as_chunks::<2>() else {
        return Err(Refusal::Other("wrong number of arguments for 'hset' command"));
    };
    if !call.database.is_there(key, call.now) {
        call.database.items.try_insert(*key, Item { expires: 0, value: Value::Hash(PHashMap::new()) })?;
    }
    let added = change(call, |hash| fill(hash, pairs))?.transpose()?;
    call.reply.count(added.unwrap_or(0));
    Ok(())
}

fn fill(hash: &mut Hash<'_>, pairs: &[[&[u8]; 2]]) -> Result<usize, Refusal> {
    let mut added = 0;
    for [field, value] in pairs {
        match hash.update(*field, |text| assign(text, value)) {
            Some(assigned) => assigned?,
            None => {
                hash.try_insert(*field, *value)?;
                added += 1;
            }
        }
    }
    Ok(added)
}

/// Changes a hash, if there is one, and removes it if it is empty then.
fn change<'h, R>(
    call: &mut Call<'_, 'h>,
    change: impl FnOnce(&mut Hash<'h>) -> R,
) -> Result<Option<R>, Refusal> {
    call.change(|value| match value {
        Value::Hash(hash) => Ok((change(hash), hash.is_empty())),
        _ => Err(Refusal::WrongType),
    })
}

fn get(call: &mut Call<'_, '_>) -> Done {
    let value = found(call)?.and_then(|hash| hash.get(call.words[2])).map(|value| value.to_vec());
    call.reply.option(value.as_deref());
    Ok(())
}

fn delete(call: &mut Call<'_, '_>) -> Done {
    let fields = &call.words[2..];
    let removed = change(call, |hash| fields.iter().filter(|field| hash.remove(**field).is_some()).count())?;
    call.reply.count(removed.unwrap_or(0));
    Ok(())
}

fn get_all(call: &mut Call<'_, '_>) -> Done {
    let (words, now) = (call.words, call.now);
    match call.database.get(words[1], now).map(|item| &item.value) {
        None => call.reply.array(0),
        Some(Value::Hash(hash)) => {
            call.reply.array(2 * hash.len());
            for (field, value) in hash {
                call.reply.bulk(field);
                call.reply.bulk(value);
            }
        }
        Some(_) => return Err(Refusal::WrongType),
    }
    Ok(())
}
