//! Ranges of sorted sets by place and score: ZRANGE, ZRANGEBYSCORE and so on.

use super::{found, sorted};
use crate::call::{Call, Command, Done, MANY, Refusal, integer, is, looks, span};
use crate::data::{Rank, Sorted, ordered, score};
use std::ops::Range;

pub(crate) const COMMANDS: &[Command] = &[
    looks("ZRANGE", 4..=MANY, |call| range(call, Asked { options: true, ..Asked::default() })),
    looks("ZREVRANGE", 4..=MANY, |call| range(call, Asked { reverse: true, ..Asked::default() })),
    looks("ZRANGEBYSCORE", 4..=MANY, |call| range(call, Asked { by_score: true, ..Asked::default() })),
    looks("ZREVRANGEBYSCORE", 4..=MANY, |call| {
        range(call, Asked { by_score: true, reverse: true, ..Asked::default() })
    }),
    looks("ZCOUNT", 4..=4, |call| {
        let range = between(call.words[2], call.words[3])?;
        let count = found(call)?.map_or(0, |set| set.between(&range).count());
        call.reply.count(count);
        Ok(())
    }),
    looks("ZRANK", 3..=3, |call| rank(call, false)),
    looks("ZREVRANK", 3..=3, |call| rank(call, true)),
];

#[derive(Default)]
struct Asked {
    options: bool,
    by_score: bool,
    reverse: bool,
    with_scores: bool,
    /// Omitted members, and most shown ones.
    limit: Option<(i64, i64)>,
}

/// Scores from `least` to `most`, as `ordered` numbers; `(` excludes one.
pub(super) fn between(least: &[u8], most: &[u8]) -> Result<Range<u64>, Refusal> {
    // Successive numbers are successive scores.
    let bound = |word: &[u8], beyond_if_open: bool| {
        let open = word.strip_prefix(b"(");
        let text = std::str::from_utf8(open.unwrap_or(word)).ok();
        let score = text.and_then(|text| text.parse::<f64>().ok()).filter(|score| !score.is_nan());
        let score = score.ok_or(Refusal::Other("min or max is not a float"))?;
        Ok::<u64, Refusal>(ordered(score) + u64::from(open.is_some() == beyond_if_open))
    };
    let (least, end) = (bound(least, true)?, bound(most, false)?);
    Ok(least..end.max(least))
}

impl<'h> Sorted<'h> {
    pub(super) fn between(&self, range: &Range<u64>) -> impl DoubleEndedIterator<Item = &Rank<'h>> {
        self.order.range((range.start, &b""[..])..(range.end, &b""[..]))
    }
}

fn rank(call: &mut Call<'_, '_>, reverse: bool) -> Done {
    let member = call.words[2];
    let place = found(call)?.and_then(|set| {
        let score = *set.scores.get(member)?;
        let place = set.order.range(..(score, member)).count();
        Some(if reverse { set.order.len() - 1 - place } else { place })
    });
    match place {
        Some(place) => call.reply.count(place),
        None => call.reply.nil(),
    }
    Ok(())
}

fn range(call: &mut Call<'_, '_>, mut asked: Asked) -> Done {
    let mut options = &call.words[4..];
    while let [option, rest @ ..] = options {
        options = rest;
        match option {
            word if is(word, "WITHSCORES") => asked.with_scores = true,
            word if is(word, "BYSCORE") && asked.options => asked.by_score = true,
            word if is(word, "REV") && asked.options => asked.reverse = true,
            word if is(word, "LIMIT") => {
                let [offset, count, rest @ ..] = options else { return Err(Refusal::Syntax) };
                asked.limit = Some((integer(offset)?, integer(count)?));
                options = rest;
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    if asked.limit.is_some() && !asked.by_score {
        return Err(if asked.options {
            Refusal::Other(
                "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            )
        } else {
            Refusal::Syntax
        });
    }
    let (first, last) = (call.words[2], call.words[3]);
    let set = sorted(call.keys.get(call.words[1], call.now).map(|item| &item.value));
    let ranks: Vec<&Rank<'_>> = if asked.by_score {
        let range = if asked.reverse { between(last, first)? } else { between(first, last)? };
        let (offset, count) = asked.limit.unwrap_or((0, -1));
        // A negative offset shows nothing, a negative count everything.
        let count = if offset < 0 { 0 } else { usize::try_from(count).unwrap_or(usize::MAX) };
        let offset = usize::try_from(offset).unwrap_or(0);
        let ranks = set?.map(|set| set.between(&range)).into_iter().flatten();
        if asked.reverse {
            ranks.rev().skip(offset).take(count).collect()
        } else {
            ranks.skip(offset).take(count).collect()
        }
    } else {
        let (start, stop) = (integer(first)?, integer(last)?);
        let set = set?;
        let places = span(start, stop, set.map_or(0, |set| set.order.len()));
        let ranks = set.map(|set| set.order.iter()).into_iter().flatten();
        if asked.reverse {
            ranks.rev().skip(places.start).take(places.len()).collect()
        } else {
            ranks.skip(places.start).take(places.len()).collect()
        }
    };
    let nests = asked.with_scores && call.reply.version == 3;
    call.reply.array(if asked.with_scores && !nests { 2 * ranks.len() } else { ranks.len() });
    for rank in ranks {
        if nests {
            call.reply.array(2);
        }
        call.reply.bulk(&rank.member);
        if asked.with_scores {
            call.reply.double(score(rank.score));
        }
    }
    Ok(())
}
