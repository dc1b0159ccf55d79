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
    if call.database.get_mut(key, call.now).is_none() {
        call.database.items.try_insert(*key, Item { expires: 0, value: Value::Hash(PHashMap::new()) })?;
    }
    let added = match call.database.get_mut(key, call.now).map(|item| &mut item.value) {
        Some(Value::Hash(hash)) => fill(hash, pairs),
        _ => return Err(Refusal::WrongType),
    };
    if added.is_err() {
        drop_empty(call);
    }
    call.reply.count(added?);
    Ok(())
}

fn fill(hash: &mut Hash<'_>, pairs: &[[&[u8]; 2]]) -> Result<usize, Refusal> {
    let mut added = 0;
    for [field, value] in pairs {
        match hash.get_mut(*field) {
            Some(text) => assign(text, value)?,
            None => {
                hash.try_insert(*field, *value)?;
                added += 1;
            }
        }
    }
    Ok(added)
}

/// There is no empty hash.
fn drop_empty(call: &mut Call<'_, '_>) {
    let key = call.words[1];
    if let Some(Value::Hash(hash)) = call.database.items.get(key).map(|item| &item.value)
        && hash.is_empty()
    {
        call.database.items.remove(key);
    }
}

fn get(call: &mut Call<'_, '_>) -> Done {
    let value = found(call)?.and_then(|hash| hash.get(call.words[2])).map(|value| value.to_vec());
    call.reply.option(value.as_deref());
    Ok(())
}

fn delete(call: &mut Call<'_, '_>) -> Done {
    let mut removed = 0;
    match call.database.get_mut(call.words[1], call.now).map(|item| &mut item.value) {
        None => {}
        Some(Value::Hash(hash)) => {
            removed = call.words[2..].iter().filter(|field| hash.remove(**field).is_some()).count();
        }
        Some(_) => return Err(Refusal::WrongType),
    }
    drop_empty(call);
    call.reply.count(removed);
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
