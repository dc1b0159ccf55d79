//! Sorted sets: ZADD, ZRANGE and so on.

use crate::call::{Call, Command, Done, MANY, Refusal, changes, integer, looks};
use crate::data::{Item, Sorted, Value, ordered, score};

pub(crate) const COMMANDS: &[Command] = &[
    changes("ZADD", 4..=MANY, add),
    changes("ZREM", 3..=MANY, remove),
    looks("ZSCORE", 3..=3, |call| {
        let found = found(call)?.and_then(|set| set.scores.get(call.words[2]).copied());
        let text = found.map(|found| shown(score(found)));
        call.reply.option(text.as_ref().map(String::as_bytes));
        Ok(())
    }),
    looks("ZCARD", 2..=2, |call| {
        let len = found(call)?.map_or(0, |set| set.scores.len());
        call.reply.count(len);
        Ok(())
    }),
    looks("ZRANGE", 4..=5, range),
];

fn found<'a, 'h>(call: &'a Call<'_, 'h>) -> Result<Option<&'a Sorted<'h>>, Refusal> {
    match call.database.get(call.words[1], call.now).map(|item| &item.value) {
        None => Ok(None),
        Some(Value::Sorted(set)) => Ok(Some(set)),
        Some(_) => Err(Refusal::WrongType),
    }
}

fn shown(score: f64) -> String {
    match score {
        f64::INFINITY => "inf".into(),
        f64::NEG_INFINITY => "-inf".into(),
        finite => finite.to_string(),
    }
}

fn float(word: &[u8]) -> Result<f64, Refusal> {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
    number.filter(|number| !number.is_nan()).ok_or(Refusal::NotAFloat)
}

/// `ZADD key score member [score member …]`
fn add(call: &mut Call<'_, '_>) -> Done {
    let [_, key, pairs @ ..] = call.words else { return Err(Refusal::Syntax) };
    let (pairs, []) = pairs.as_chunks::<2>() else { return Err(Refusal::Syntax) };
    // Nothing changes before all of them are known to be scores.
    let scores = pairs.iter().map(|[score, _]| float(score)).collect::<Result<Vec<f64>, _>>()?;
    if !call.database.is_there(key, call.now) {
        call.database.items.try_insert(*key, Item { expires: 0, value: Value::Sorted(Sorted::default()) })?;
    }
    let added = change(call, |set| {
        let members = pairs.iter().map(|[_, member]| *member);
        scores.iter().zip(members).try_fold(0, |added, (score, member)| {
            Ok::<usize, Refusal>(added + usize::from(set.put(ordered(*score), member)?))
        })
    })?;
    call.reply.count(added.transpose()?.unwrap_or(0));
    Ok(())
}

impl Sorted<'_> {
    /// Gives a member a score; whether it is new. Without room nothing changes.
    fn put(&mut self, score: u64, member: &[u8]) -> Result<bool, Refusal> {
        let before = self.scores.get(member).copied();
        if before == Some(score) {
            return Ok(false);
        }
        self.order.try_insert((score, member))?;
        if let Err(error) = self.scores.try_insert(member, score) {
            self.order.remove(&(score, member));
            return Err(error.into());
        }
        if let Some(before) = before {
            self.order.remove(&(before, member));
        }
        Ok(before.is_none())
    }
}

/// Changes a set, if there is one, and removes it if it is empty then.
fn change<'h, R>(
    call: &mut Call<'_, 'h>,
    change: impl FnOnce(&mut Sorted<'h>) -> R,
) -> Result<Option<R>, Refusal> {
    call.change(|value| match value {
        Value::Sorted(set) => Ok((change(set), set.scores.is_empty())),
        _ => Err(Refusal::WrongType),
    })
}

fn remove(call: &mut Call<'_, '_>) -> Done {
    let members = &call.words[2..];
    let removed = change(call, |set| {
        let removes = members.iter().filter(|member| match set.scores.remove(**member) {
            Some(score) => set.order.remove(&(score, **member)),
            None => false,
        });
        removes.count()
    })?;
    call.reply.count(removed.unwrap_or(0));
    Ok(())
}

/// `ZRANGE key start stop [WITHSCORES]`, by place; a negative one counts from the end.
fn range(call: &mut Call<'_, '_>) -> Done {
    let with_scores = match call.words.get(4) {
        None => false,
        Some(word) if word.eq_ignore_ascii_case(b"WITHSCORES") => true,
        Some(_) => return Err(Refusal::Syntax),
    };
    let (start, stop) = (integer(call.words[2])?, integer(call.words[3])?);
    let (words, now) = (call.words, call.now);
    let set = match call.database.get(words[1], now).map(|item| &item.value) {
        None => {
            call.reply.array(0);
            return Ok(());
        }
        Some(Value::Sorted(set)) => set,
        Some(_) => return Err(Refusal::WrongType),
    };
    let len = set.order.len();
    let place = |at: i64| match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => len.checked_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let first = place(start).unwrap_or(0);
    let end = place(stop).map_or(0, |stop| stop.saturating_add(1)).min(len);
    let count = end.saturating_sub(first);
    call.reply.array(if with_scores { 2 * count } else { count });
    for rank in set.order.iter().skip(first).take(count) {
        call.reply.bulk(&rank.member);
        if with_scores {
            call.reply.bulk(shown(score(rank.score)).as_bytes());
        }
    }
    Ok(())
}
