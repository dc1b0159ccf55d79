//! Texts: SET, GET, INCR and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, integer, looks};
use crate::data::{Bytes, Item, Value, assign};
use crate::keys::moment;

pub(crate) const COMMANDS: &[Command] = &[
    looks("GET", 2..=2, get),
    changes("SET", 3..=MANY, set),
    changes("INCR", 2..=2, |call| add(call, 1)),
    changes("DECR", 2..=2, |call| add(call, -1)),
    changes("INCRBY", 3..=3, |call| add(call, integer(call.words[2])?)),
];

fn get(call: &mut Call<'_, '_>) -> Done {
    match call.database.get(call.words[1], call.now).map(|item| &item.value) {
        None => call.reply.nil(),
        Some(Value::Text(text)) => call.reply.bulk(text),
        Some(_) => return Err(Refusal::WrongType),
    }
    Ok(())
}

/// `SET key value [NX | XX] [EX seconds | PX milliseconds | KEEPTTL]`
fn set(call: &mut Call<'_, '_>) -> Done {
    let (key, value) = (call.words[1], call.words[2]);
    let (mut expires, mut keeps, mut only_if) = (0, false, None);
    let mut options = call.words[3..].iter();
    while let Some(option) = options.next() {
        match option.to_ascii_uppercase().as_slice() {
            b"NX" if only_if.is_none() => only_if = Some(false),
            b"XX" if only_if.is_none() => only_if = Some(true),
            b"KEEPTTL" if expires == 0 => keeps = true,
            unit @ (b"EX" | b"PX") if expires == 0 && !keeps => {
                let count = integer(options.next().ok_or(Refusal::Syntax)?)?;
                if count <= 0 {
                    return Err(Refusal::Other("invalid expire time in 'set' command"));
                }
                expires = moment(call.now, count, if unit == b"EX" { 1000 } else { 1 })?;
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    let there = call.database.is_there(key, call.now);
    if only_if.is_some_and(|wanted| wanted != there) {
        call.reply.nil();
        return Ok(());
    }
    let heap = call.heap;
    let replaced = call.database.items.update(key, |item| {
        match &mut item.value {
            Value::Text(text) => assign(text, value)?,
            other => *other = Value::Text(Bytes::try_from_slice_in(value, heap)?),
        }
        if !keeps {
            item.expires = expires;
        }
        Ok::<(), Refusal>(())
    });
    match replaced {
        Some(replaced) => replaced?,
        None => {
            let text = Bytes::try_from_slice_in(value, heap)?;
            call.database.items.try_insert(key, Item { expires, value: Value::Text(text) })?;
        }
    }
    call.reply.simple("OK");
    Ok(())
}

fn add(call: &mut Call<'_, '_>, by: i64) -> Done {
    let key = call.words[1];
    let sum = call.database.update(key, call.now, |item| match &mut item.value {
        Value::Text(text) => {
            let sum = integer(text)?.checked_add(by).ok_or(Refusal::Overflow)?;
            assign(text, sum.to_string().as_bytes())?;
            Ok(sum)
        }
        _ => Err(Refusal::WrongType),
    });
    let sum = match sum {
        Some(sum) => sum?,
        None => {
            let text = Bytes::try_from_slice_in(by.to_string().as_bytes(), call.heap)?;
            call.database.items.try_insert(key, Item { expires: 0, value: Value::Text(text) })?;
            by
        }
    };
    call.reply.integer(sum);
    Ok(())
}
