//! Lists: LPUSH, RPOP and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, count, integer, is, looks, span};
use crate::data::{Bytes, List, Value, assign};
use indelible::collections::PVecDeque;
use std::ops::Range;

pub(crate) const COMMANDS: &[Command] = &[
    changes("LPUSH", 3..=MANY, |call| push(call, End::Left, true)),
    changes("RPUSH", 3..=MANY, |call| push(call, End::Right, true)),
    changes("LPUSHX", 3..=MANY, |call| push(call, End::Left, false)),
    changes("RPUSHX", 3..=MANY, |call| push(call, End::Right, false)),
    changes("LPOP", 2..=3, |call| pop(call, End::Left)),
    changes("RPOP", 2..=3, |call| pop(call, End::Right)),
    changes("LMOVE", 5..=5, |call| shift(call, end(call.words[3])?, end(call.words[4])?)),
    changes("RPOPLPUSH", 3..=3, |call| shift(call, End::Right, End::Left)),
    looks("LLEN", 2..=2, |call| {
        let len = list(call.value())?.map_or(0, |list| list.len());
        call.reply.count(len);
        Ok(())
    }),
    looks("LRANGE", 4..=4, |call| {
        let (start, stop) = (integer(call.words[2])?, integer(call.words[3])?);
        let list = list(call.keys.get(call.words[1], call.now).map(|item| &item.value))?;
        let range = span(start, stop, list.map_or(0, |list| list.len()));
        call.reply.array(range.len());
        range.filter_map(|at| list?.get(at)).for_each(|value| call.reply.bulk(value));
        Ok(())
    }),
    looks("LINDEX", 3..=3, |call| {
        let at = integer(call.words[2])?;
        let list = list(call.keys.get(call.words[1], call.now).map(|item| &item.value))?;
        let value = list.and_then(|list| list.get(place(at, list.len())?));
        call.reply.option(value.map(|value| &value[..]));
        Ok(())
    }),
    changes("LSET", 4..=4, set),
    changes("LINSERT", 5..=5, insert),
    changes("LREM", 4..=4, remove),
    changes("LTRIM", 4..=4, trim),
];

#[derive(Clone, Copy)]
enum End {
    Left,
    Right,
}

fn end(word: &[u8]) -> Result<End, Refusal> {
    match word {
        word if is(word, "LEFT") => Ok(End::Left),
        word if is(word, "RIGHT") => Ok(End::Right),
        _ => Err(Refusal::Syntax),
    }
}

fn list<'a, 'h>(value: Option<&'a Value<'h>>) -> Result<Option<&'a List<'h>>, Refusal> {
    match value {
        None => Ok(None),
        Some(Value::List(list)) => Ok(Some(list)),
        Some(_) => Err(Refusal::WrongType),
    }
}

/// Negative places count from the end.
fn place(at: i64, len: usize) -> Option<usize> {
    let range = span(at, at, len);
    (!range.is_empty()).then_some(range.start)
}

fn change<'h, R>(
    call: &mut Call<'_, 'h>,
    change: impl FnOnce(&mut List<'h>) -> R,
) -> Result<Option<R>, Refusal> {
    call.change(|value| match value {
        Value::List(list) => Ok((change(list), list.is_empty())),
        _ => Err(Refusal::WrongType),
    })
}

fn put<'h>(list: &mut List<'h>, at: End, value: Bytes<'h>) -> Result<(), Refusal> {
    match at {
        End::Left => list.try_push_front(value)?,
        End::Right => list.try_push_back(value)?,
    }
    Ok(())
}

fn take<'h>(list: &mut List<'h>, at: End) -> Option<Bytes<'h>> {
    match at {
        End::Left => list.pop_front(),
        End::Right => list.pop_back(),
    }
}

fn push(call: &mut Call<'_, '_>, at: End, creates: bool) -> Done {
    let (values, heap) = (&call.words[2..], call.heap);
    let create = creates.then_some(|| Value::List(PVecDeque::new_in(heap)));
    let len = call.change_or_create(create, |value| match value {
        Value::List(list) => {
            let pushed =
                values.iter().try_for_each(|value| put(list, at, Bytes::try_from_slice_in(value, heap)?));
            Ok((pushed.map(|()| list.len()), list.is_empty()))
        }
        _ => Err(Refusal::WrongType),
    })?;
    call.reply.count(len.unwrap_or(Ok(0))?);
    Ok(())
}

fn pop(call: &mut Call<'_, '_>, at: End) -> Done {
    let most = call.words.get(2).map(|word| count(word)).transpose()?;
    let taken = change(call, |list| {
        let most = most.unwrap_or(1).min(list.len());
        (0..most).filter_map(|_| take(list, at)).collect::<Vec<_>>()
    })?;
    match (most, taken) {
        (None, taken) => {
            let value = taken.as_ref().and_then(|taken| taken.first());
            call.reply.option(value.map(|value| &value[..]));
        }
        (Some(_), None) => call.reply.nil_array(),
        (Some(_), Some(taken)) => {
            call.reply.array(taken.len());
            taken.iter().for_each(|value| call.reply.bulk(value));
        }
    }
    Ok(())
}

fn shift(call: &mut Call<'_, '_>, from: End, to: End) -> Done {
    let (target, heap) = (call.words[2], call.heap);
    if list(call.value())?.is_none() {
        call.reply.nil();
        return Ok(());
    }
    // Room first: a removed value must have a place.
    let reserved = call.keys.update(target, call.now, |value| match value {
        Value::List(list) => Ok(list.try_reserve(1)?),
        _ => Err(Refusal::WrongType),
    });
    match reserved {
        Some(reserved) => reserved?,
        None => {
            let mut list = PVecDeque::new_in(heap);
            list.try_reserve(1)?;
            call.keys.insert(target, Value::List(list), 0)?;
        }
    }
    // The list may be the target as well: it is not removed before the value is back.
    let value = call.keys.update(call.words[1], call.now, |value| match value {
        Value::List(list) => take(list, from),
        _ => None,
    });
    let Some(value) = value.flatten() else { return Err(Refusal::NoSuchKey) };
    call.reply.bulk(&value);
    let put = call.keys.update(target, call.now, |list| match list {
        Value::List(list) => put(list, to, value),
        _ => Err(Refusal::WrongType),
    });
    put.unwrap_or(Err(Refusal::NoSuchKey))?;
    change(call, |_| ())?;
    Ok(())
}

fn set(call: &mut Call<'_, '_>) -> Done {
    let (at, value) = (integer(call.words[2])?, call.words[3]);
    let set = change(call, |list| {
        let at = place(at, list.len()).ok_or(Refusal::Other("index out of range"))?;
        match list.get_mut(at) {
            Some(text) => Ok(assign(text, value)?),
            None => Err(Refusal::NoSuchKey),
        }
    })?;
    set.ok_or(Refusal::NoSuchKey)??;
    call.reply.ok();
    Ok(())
}

fn insert(call: &mut Call<'_, '_>) -> Done {
    let behind = match call.words[2] {
        word if is(word, "BEFORE") => 0,
        word if is(word, "AFTER") => 1,
        _ => return Err(Refusal::Syntax),
    };
    let (pivot, value, heap) = (call.words[3], call.words[4], call.heap);
    let len = change(call, |list| {
        let Some(at) = list.iter().position(|found| &found[..] == pivot) else { return Ok(-1) };
        list.try_insert(at + behind, Bytes::try_from_slice_in(value, heap)?)?;
        Ok::<_, Refusal>(i64::try_from(list.len()).unwrap_or(i64::MAX))
    })?;
    call.reply.integer(len.unwrap_or(Ok(0))?);
    Ok(())
}

/// `LREM key count value`: the first ones, all (0), or the last ones (negative).
fn remove(call: &mut Call<'_, '_>) -> Done {
    let (count, value) = (integer(call.words[2])?, call.words[3]);
    let most = match usize::try_from(count.unsigned_abs()) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(most) => most,
    };
    let removed = change(call, |list| {
        let there = list.iter().filter(|found| &found[..] == value).count();
        let removed = there.min(most);
        let spared = if count < 0 { there - removed } else { 0 };
        let (mut met, range) = (0, spared..spared + removed);
        if removed > 0 {
            list.retain(|found| {
                let fits = &found[..] == value;
                met += usize::from(fits);
                !(fits && range.contains(&(met - 1)))
            });
        }
        removed
    })?;
    call.reply.count(removed.unwrap_or(0));
    Ok(())
}

fn trim(call: &mut Call<'_, '_>) -> Done {
    let (start, stop) = (integer(call.words[2])?, integer(call.words[3])?);
    change(call, |list| {
        let Range { start, end } = span(start, stop, list.len());
        list.truncate(end);
        (0..start.min(end)).for_each(|_| drop(list.pop_front()));
    })?;
    call.reply.ok();
    Ok(())
}
