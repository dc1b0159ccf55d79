//! Sorted sets: ZADD, ZREM and so on.

mod ranges;

use crate::call::{Call, Command, Done, MANY, Refusal, changes, count, float, integer, is, looks, span};
use crate::data::{Sorted, Value, ordered, score};
use crate::keys::{parts, scanned};
use crate::reply::shown;
pub(crate) use ranges::COMMANDS as RANGES;
use ranges::between;

pub(crate) const COMMANDS: &[Command] = &[
    changes("ZADD", 4..=MANY, add),
    changes("ZINCRBY", 4..=4, |call| {
        let by = float(call.words[2])?;
        let member = call.words[3];
        match raise(call, &Rule::default(), by, member)? {
            Some(sum) => call.reply.double(sum),
            None => call.reply.nil(),
        }
        Ok(())
    }),
    changes("ZREM", 3..=MANY, remove),
    changes("ZREMRANGEBYRANK", 4..=4, |call| {
        let (start, stop) = (integer(call.words[2])?, integer(call.words[3])?);
        remove_all(call, |set| {
            let range = span(start, stop, set.order.len());
            set.order.iter().skip(range.start).take(range.len()).map(|rank| rank.member.to_vec()).collect()
        })
    }),
    changes("ZREMRANGEBYSCORE", 4..=4, |call| {
        let range = between(call.words[2], call.words[3])?;
        remove_all(call, |set| set.between(&range).map(|rank| rank.member.to_vec()).collect())
    }),
    changes("ZPOPMIN", 2..=3, |call| pop(call, false)),
    changes("ZPOPMAX", 2..=3, |call| pop(call, true)),
    looks("ZSCORE", 3..=3, |call| {
        let found = found(call)?.and_then(|set| set.scores.get(call.words[2]).copied());
        match found {
            Some(found) => call.reply.double(score(found)),
            None => call.reply.nil(),
        }
        Ok(())
    }),
    looks("ZMSCORE", 3..=MANY, |call| {
        let set = sorted(call.keys.get(call.words[1], call.now).map(|item| &item.value))?;
        call.reply.array(call.words.len() - 2);
        for member in &call.words[2..] {
            match set.and_then(|set| set.scores.get(*member)) {
                Some(found) => call.reply.double(score(*found)),
                None => call.reply.nil(),
            }
        }
        Ok(())
    }),
    looks("ZCARD", 2..=2, |call| {
        let len = found(call)?.map_or(0, |set| set.scores.len());
        call.reply.count(len);
        Ok(())
    }),
    looks("ZSCAN", 3..=MANY, scan),
];

fn sorted<'a, 'h>(value: Option<&'a Value<'h>>) -> Result<Option<&'a Sorted<'h>>, Refusal> {
    match value {
        None => Ok(None),
        Some(Value::Sorted(set)) => Ok(Some(set)),
        Some(_) => Err(Refusal::WrongType),
    }
}

fn found<'a, 'h>(call: &'a Call<'_, 'h>) -> Result<Option<&'a Sorted<'h>>, Refusal> {
    sorted(call.value())
}

#[derive(Default)]
struct Rule {
    only_new: bool,
    only_there: bool,
    only_greater: bool,
    only_less: bool,
}

impl Rule {
    fn admits(&self, before: Option<u64>, after: u64) -> bool {
        match before {
            None => !self.only_there,
            Some(before) => {
                let refuses = self.only_new
                    || (self.only_greater && after <= before)
                    || (self.only_less && after >= before);
                !refuses
            }
        }
    }
}

fn add(call: &mut Call<'_, '_>) -> Done {
    let (mut rule, mut counts_changes, mut raises) = (Rule::default(), false, false);
    let mut words = &call.words[2..];
    while let [option, rest @ ..] = words {
        match option {
            word if is(word, "NX") => rule.only_new = true,
            word if is(word, "XX") => rule.only_there = true,
            word if is(word, "GT") => rule.only_greater = true,
            word if is(word, "LT") => rule.only_less = true,
            word if is(word, "CH") => counts_changes = true,
            word if is(word, "INCR") => raises = true,
            _ => break,
        }
        words = rest;
    }
    let (pairs, []) = words.as_chunks::<2>() else { return Err(Refusal::Syntax) };
    if pairs.is_empty() {
        return Err(Refusal::Syntax);
    }
    if rule.only_new && rule.only_there {
        return Err(Refusal::Other("XX and NX options at the same time are not compatible"));
    }
    if rule.only_greater && rule.only_less || rule.only_new && (rule.only_greater || rule.only_less) {
        return Err(Refusal::Other("GT, LT, and/or NX options at the same time are not compatible"));
    }
    if raises && pairs.len() > 1 {
        return Err(Refusal::Other("INCR option supports a single increment-element pair"));
    }
    let scores = pairs.iter().map(|[score, _]| float(score)).collect::<Result<Vec<f64>, _>>()?;
    if raises {
        match raise(call, &rule, scores[0], pairs[0][1])? {
            Some(sum) => call.reply.double(sum),
            None => call.reply.nil(),
        }
        return Ok(());
    }
    let counts = change_or_create(call, &rule, |set| {
        let (mut added, mut changed) = (0, 0);
        for (score, [_, member]) in scores.iter().zip(pairs) {
            let after = ordered(*score);
            let put = set.put(member, |before| Ok(rule.admits(before, after).then_some(after)))?;
            if let Put { before, after: Some(after) } = put {
                added += usize::from(before.is_none());
                changed += usize::from(before != Some(after));
            }
        }
        Ok::<_, Refusal>(if counts_changes { changed } else { added })
    })?;
    call.reply.count(counts.unwrap_or(Ok(0))?);
    Ok(())
}

fn raise(call: &mut Call<'_, '_>, rule: &Rule, by: f64, member: &[u8]) -> Result<Option<f64>, Refusal> {
    let raised = change_or_create(call, rule, |set| {
        let put = set.put(member, |before| {
            let sum = before.map_or(0.0, score) + by;
            if sum.is_nan() {
                return Err(Refusal::Other("resulting score is not a number (NaN)"));
            }
            let after = ordered(sum);
            Ok(rule.admits(before, after).then_some(after))
        })?;
        Ok(put.after.map(score))
    })?;
    raised.unwrap_or(Ok(None))
}

/// Scores of a member.
struct Put {
    before: Option<u64>,
    /// `None`: the rule refused one.
    after: Option<u64>,
}

impl Sorted<'_> {
    /// Gives a member the score that `choose` makes of its former one. Without room nothing
    /// changes.
    fn put(
        &mut self,
        member: &[u8],
        choose: impl Fn(Option<u64>) -> Result<Option<u64>, Refusal>,
    ) -> Result<Put, Refusal> {
        let Sorted { scores, order } = self;
        let put = scores.update(member, |stored| {
            let (before, after) = (*stored, choose(Some(*stored))?);
            if let Some(after) = after.filter(|after| *after != before) {
                if !order.move_within(&(before, member), &(after, member), |rank| rank.score = after) {
                    order.try_insert((after, member))?;
                    order.remove(&(before, member));
                }
                *stored = after;
            }
            Ok(Put { before: Some(before), after })
        });
        put.unwrap_or_else(|| {
            let after = choose(None)?;
            if let Some(score) = after {
                order.try_insert((score, member))?;
                if let Err(error) = scores.try_insert(member, score) {
                    order.remove(&(score, member));
                    return Err(error.into());
                }
            }
            Ok(Put { before: None, after })
        })
    }

    fn take(&mut self, member: &[u8]) -> bool {
        match self.scores.remove(member) {
            Some(score) => self.order.remove(&(score, member)),
            None => false,
        }
    }
}

fn change<'h, R>(
    call: &mut Call<'_, 'h>,
    change: impl FnOnce(&mut Sorted<'h>) -> R,
) -> Result<Option<R>, Refusal> {
    call.change(|value| match value {
        Value::Sorted(set) => Ok((change(set), set.scores.is_empty())),
        _ => Err(Refusal::WrongType),
    })
}

fn change_or_create<'h, R>(
    call: &mut Call<'_, 'h>,
    rule: &Rule,
    change: impl FnOnce(&mut Sorted<'h>) -> R,
) -> Result<Option<R>, Refusal> {
    let create = (!rule.only_there).then_some(|| Value::Sorted(Sorted::default()));
    call.change_or_create(create, |value| match value {
        Value::Sorted(set) => Ok((change(set), set.scores.is_empty())),
        _ => Err(Refusal::WrongType),
    })
}

fn remove(call: &mut Call<'_, '_>) -> Done {
    let members = &call.words[2..];
    let removed = change(call, |set| members.iter().filter(|member| set.take(member)).count())?;
    call.reply.count(removed.unwrap_or(0));
    Ok(())
}

fn remove_all(call: &mut Call<'_, '_>, which: impl FnOnce(&Sorted<'_>) -> Vec<Vec<u8>>) -> Done {
    let removed = change(call, |set| which(set).iter().filter(|member| set.take(member)).count())?;
    call.reply.count(removed.unwrap_or(0));
    Ok(())
}

fn pop(call: &mut Call<'_, '_>, highest: bool) -> Done {
    let most = call.words.get(2).map(|word| count(word)).transpose()?;
    let taken = change(call, |set| {
        let most = most.unwrap_or(1).min(set.order.len());
        let mut taken = Vec::new();
        for _ in 0..most {
            let rank = if highest { set.order.pop_last() } else { set.order.pop_first() };
            let Some(rank) = rank else { break };
            set.scores.remove(&rank.member[..]);
            taken.push(rank);
        }
        taken
    })?;
    let taken = taken.unwrap_or_default();
    let nests = most.is_some() && call.reply.version == 3;
    call.reply.array(if nests { taken.len() } else { 2 * taken.len() });
    for rank in &taken {
        if nests {
            call.reply.array(2);
        }
        call.reply.bulk(&rank.member);
        call.reply.double(score(rank.score));
    }
    Ok(())
}

fn scan(call: &mut Call<'_, '_>) -> Done {
    let part = parts(&call.words[2..], false)?;
    let mut members = Vec::new();
    let set = sorted(call.keys.get(call.words[1], call.now).map(|item| &item.value))?;
    let next = set.map_or(0, |set| {
        set.scores.scan(part.cursor, part.count, |member, found| {
            if part.fits(member) {
                members.extend([member.to_vec(), shown(score(*found)).into_bytes()]);
            }
        })
    });
    scanned(call.reply, next, &members);
    Ok(())
}
