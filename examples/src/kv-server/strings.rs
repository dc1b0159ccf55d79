//! Texts: SET, GET, INCR and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, float, integer, is, looks, span};
use crate::data::{Bytes, Value, assign};
use crate::decimal::Decimal;
use crate::keys::moment;
use crate::request::number;
use indelible::collections::HeapRef;
use std::borrow::Cow;

pub(crate) const COMMANDS: &[Command] = &[
    looks("GET", 2..=2, |call| reply(call, 1)),
    looks("MGET", 2..=MANY, many),
    changes("SET", 3..=MANY, set),
    changes("SETNX", 3..=3, |call| {
        let absent = !call.keys.is_there(call.words[1], call.now);
        if absent {
            store(call, 1, Some(0))?;
        }
        call.reply.integer(absent.into());
        Ok(())
    }),
    changes("SETEX", 4..=4, |call| set_ending(call, "setex", 1000)),
    changes("PSETEX", 4..=4, |call| set_ending(call, "psetex", 1)),
    changes("GETSET", 3..=3, |call| {
        reply(call, 1)?;
        store(call, 1, Some(0))
    }),
    changes("GETDEL", 2..=2, |call| {
        reply(call, 1)?;
        call.keys.remove(call.words[1]);
        Ok(())
    }),
    changes("GETEX", 2..=4, get_ending),
    changes("MSET", 3..=MANY, |call| {
        pairs(call, "mset")?;
        call.reply.ok();
        Ok(())
    }),
    changes("MSETNX", 3..=MANY, |call| {
        let taken = call.words[1..].iter().step_by(2).any(|key| call.keys.get(key, call.now).is_some());
        if !taken || call.words.len().is_multiple_of(2) {
            pairs(call, "msetnx")?;
        }
        call.reply.integer((!taken).into());
        Ok(())
    }),
    changes("APPEND", 3..=3, append),
    looks("STRLEN", 2..=2, len),
    looks("GETRANGE", 4..=4, part),
    looks("SUBSTR", 4..=4, part),
    changes("SETRANGE", 4..=4, overwrite),
    changes("INCR", 2..=2, |call| add(call, 1)),
    changes("DECR", 2..=2, |call| add(call, -1)),
    changes("INCRBY", 3..=3, |call| add(call, integer(call.words[2])?)),
    changes("DECRBY", 3..=3, |call| {
        let by = integer(call.words[2])?.checked_neg();
        add(call, by.ok_or(Refusal::Other("decrement would overflow"))?)
    }),
    changes("INCRBYFLOAT", 3..=3, add_float),
];

const LONGEST: usize = 512 << 20;

impl<'h> Value<'h> {
    fn text(&self) -> Result<Cow<'_, [u8]>, Refusal> {
        match self {
            Value::Text(text) => Ok(Cow::Borrowed(text)),
            Value::Number(number) => Ok(Cow::Owned(Decimal::from(*number).bytes().to_vec())),
            _ => Err(Refusal::WrongType),
        }
    }

    /// Without room nothing changes.
    fn text_mut(&mut self, heap: HeapRef<'h>) -> Result<&mut Bytes<'h>, Refusal> {
        if let Value::Number(number) = self {
            *self = Value::Text(Bytes::try_from_slice_in(Decimal::from(*number).bytes(), heap)?);
        }
        match self {
            Value::Text(text) => Ok(text),
            _ => Err(Refusal::WrongType),
        }
    }
}

fn len(call: &mut Call<'_, '_>) -> Done {
    let len = call.value().map(Value::text).transpose()?.map_or(0, |text| text.len());
    call.reply.count(len);
    Ok(())
}

fn reply(call: &mut Call<'_, '_>, at: usize) -> Done {
    match call.keys.get(call.words[at], call.now) {
        None => call.reply.nil(),
        Some(item) => call.reply.bulk(&item.value.text()?),
    }
    Ok(())
}

fn many(call: &mut Call<'_, '_>) -> Done {
    call.reply.array(call.words.len() - 1);
    for at in 1..call.words.len() {
        if reply(call, at).is_err() {
            call.reply.nil();
        }
    }
    Ok(())
}

fn store(call: &mut Call<'_, '_>, at: usize, expires: Option<u64>) -> Done {
    let (key, value) = (call.words[at], call.words[at + 1]);
    let heap = call.heap;
    let replaced: Option<Done> = call.keys.replace(key, call.now, expires, |stored| match stored {
        Value::Text(text) => Ok(assign(text, value)?),
        other => {
            *other = match number(value) {
                Some(number) if matches!(other, Value::Number(_)) => Value::Number(number),
                _ => Value::Text(Bytes::try_from_slice_in(value, heap)?),
            };
            Ok(())
        }
    });
    replaced.unwrap_or_else(|| {
        let text = Value::Text(Bytes::try_from_slice_in(value, heap)?);
        Ok(call.keys.insert(key, text, expires.unwrap_or(0))?)
    })
}

fn pairs(call: &mut Call<'_, '_>, name: &'static str) -> Done {
    if call.words.len().is_multiple_of(2) {
        return Err(Refusal::Arguments(name));
    }
    (1..call.words.len()).step_by(2).try_for_each(|at| store(call, at, Some(0)))
}

fn is_end(word: &[u8]) -> bool {
    ["EX", "PX", "EXAT", "PXAT"].iter().any(|name| is(word, name))
}

fn ending(call: &Call<'_, '_>, option: &[u8], number: &[u8], name: &'static str) -> Result<u64, Refusal> {
    let (unit, from) = match option.to_ascii_uppercase().as_slice() {
        b"EX" => (1000, call.now),
        b"PX" => (1, call.now),
        b"EXAT" => (1000, 0),
        b"PXAT" => (1, 0),
        _ => return Err(Refusal::Syntax),
    };
    let number = integer(number)?;
    if number <= 0 {
        return Err(Refusal::Expiry(name));
    }
    moment(from, number, unit, name)
}

fn set(call: &mut Call<'_, '_>) -> Done {
    let key = call.words[1];
    let (mut ends, mut keeps, mut only_if, mut shows) = (None, false, None, false);
    let mut options = call.words[3..].iter();
    while let Some(option) = options.next() {
        match option {
            word if is(word, "NX") && only_if != Some(true) => only_if = Some(false),
            word if is(word, "XX") && only_if != Some(false) => only_if = Some(true),
            word if is(word, "GET") => shows = true,
            word if is(word, "KEEPTTL") && ends.is_none() => keeps = true,
            word if ends.is_none() && !keeps => {
                ends = Some((word, options.next().ok_or(Refusal::Syntax)?));
                if !is_end(word) {
                    return Err(Refusal::Syntax);
                }
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    let expires = ends.map(|(option, number)| ending(call, option, number, "set")).transpose()?;
    if shows {
        reply(call, 1)?;
    }
    if only_if.is_some_and(|wanted| wanted != call.keys.is_there(key, call.now)) {
        if !shows {
            call.reply.nil();
        }
        return Ok(());
    }
    store(call, 1, if keeps { None } else { Some(expires.unwrap_or(0)) })?;
    if expires.is_some_and(|expires| expires <= call.now) {
        call.keys.remove(key);
    }
    if !shows {
        call.reply.ok();
    }
    Ok(())
}

fn set_ending(call: &mut Call<'_, '_>, name: &'static str, unit: i64) -> Done {
    let number = integer(call.words[2])?;
    if number <= 0 {
        return Err(Refusal::Expiry(name));
    }
    let expires = moment(call.now, number, unit, name)?;
    let words = [call.words[1], call.words[3]];
    let Call { keys, heap, now, reply, client, service, .. } = call;
    let (heap, now) = (*heap, *now);
    store(&mut Call { words: &words, keys, heap, now, reply, client, service }, 0, Some(expires))?;
    call.reply.ok();
    Ok(())
}

fn get_ending(call: &mut Call<'_, '_>) -> Done {
    let key = call.words[1];
    match &call.words[2..] {
        [] => return reply(call, 1),
        [option] if is(option, "PERSIST") => {}
        [option, _] if is_end(option) => {}
        _ => return Err(Refusal::Syntax),
    }
    reply(call, 1)?;
    if call.keys.is_there(key, call.now) {
        let expires = match &call.words[2..] {
            [option, number] => ending(call, option, number, "getex")?,
            _ => 0,
        };
        call.keys.expire(key, expires)?;
        call.keys.is_there(key, call.now);
    }
    Ok(())
}

/// Changes a key's text, or inserts one from `change`, which learns whether the key exists; an
/// empty text is not inserted.
fn edit<R>(
    call: &mut Call<'_, '_>,
    change: impl FnOnce(&mut Bytes<'_>, bool) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    let (key, heap) = (call.words[1], call.heap);
    let mut change = Some(change);
    let changed = call.keys.update(key, call.now, |value| {
        let text = value.text_mut(heap)?;
        change.take().map_or(Err(Refusal::NoSuchKey), |change| change(text, true))
    });
    if let Some(changed) = changed {
        return changed;
    }
    let Some(change) = change else { return Err(Refusal::NoSuchKey) };
    let mut text = Bytes::new_in(heap);
    let result = change(&mut text, false)?;
    if !text.is_empty() {
        call.keys.insert(key, Value::Text(text), 0)?;
    }
    Ok(result)
}

fn append(call: &mut Call<'_, '_>) -> Done {
    let more = call.words[2];
    let len = edit(call, |text, _| {
        if text.len() + more.len() > LONGEST {
            return Err(TOO_LONG);
        }
        text.try_extend_from_slice(more)?;
        Ok(text.len())
    })?;
    if !call.keys.is_there(call.words[1], call.now) {
        // Redis inserts the empty text.
        store(call, 1, Some(0))?;
    }
    call.reply.count(len);
    Ok(())
}

const TOO_LONG: Refusal = Refusal::Other("string exceeds maximum allowed size (proto-max-bulk-len)");

fn part(call: &mut Call<'_, '_>) -> Done {
    let (start, stop) = (integer(call.words[2])?, integer(call.words[3])?);
    match call.keys.get(call.words[1], call.now) {
        None => call.reply.bulk(b""),
        Some(item) => {
            let text = item.value.text()?;
            let none = start < 0 && stop < 0 && start > stop;
            // For Redis a last place before the first is the first.
            let stop = stop.max(-i64::try_from(text.len()).unwrap_or(i64::MAX));
            let range = if none { 0..0 } else { span(start, stop, text.len()) };
            call.reply.bulk(&text[range]);
        }
    }
    Ok(())
}

fn overwrite(call: &mut Call<'_, '_>) -> Done {
    let from = usize::try_from(integer(call.words[2])?);
    let from = from.map_err(|_| Refusal::Other("offset is out of range"))?;
    let bytes = call.words[3];
    if bytes.is_empty() {
        return len(call);
    }
    let end = from.checked_add(bytes.len()).filter(|end| *end <= LONGEST).ok_or(TOO_LONG)?;
    let len = edit(call, |text, _| {
        if text.len() < end {
            text.try_resize(end, 0)?;
        }
        text[from..end].copy_from_slice(bytes);
        Ok(text.len())
    })?;
    call.reply.count(len);
    Ok(())
}

fn add(call: &mut Call<'_, '_>, by: i64) -> Done {
    let key = call.words[1];
    let sum = call.keys.update(key, call.now, |value| {
        let before = match value {
            Value::Text(text) => integer(text)?,
            Value::Number(number) => *number,
            _ => return Err(Refusal::WrongType),
        };
        let sum = before.checked_add(by).ok_or(Refusal::Overflow)?;
        *value = Value::Number(sum);
        Ok(sum)
    });
    let sum = match sum {
        Some(sum) => sum?,
        None => {
            call.keys.insert(key, Value::Number(by), 0)?;
            by
        }
    };
    call.reply.integer(sum);
    Ok(())
}

fn add_float(call: &mut Call<'_, '_>) -> Done {
    let by = float(call.words[2])?;
    let sum = edit(call, |text, was_there| {
        let before = if was_there { float(text)? } else { 0.0 };
        let sum = before + by;
        if !sum.is_finite() {
            return Err(Refusal::Other("increment would produce NaN or Infinity"));
        }
        let sum = sum.to_string();
        assign(text, sum.as_bytes())?;
        Ok(sum)
    })?;
    call.reply.bulk(sum.as_bytes());
    Ok(())
}
