//! A page of the objects.

use super::answer::Answer;
use super::index::{Index, ticks};
use super::look::{Found, Look};
use super::query::Query;
use crate::commands::ls::held_by;
use crate::commands::stat::ObjectReport;
use crate::text::printable;
use indelible::{ErrorKind, Pool, Stat};
use serde::Serialize;
use std::ops::Range;
use std::time::Instant;

const ROWS: u64 = 200;

#[derive(Serialize)]
struct Page {
    total: usize,
    matching: usize,
    from: usize,
    most: u64,
    /// Seconds, when the rows were read.
    at: f64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
pub struct Row {
    /// The name for people.
    pub shown: String,
    /// The holders for people.
    pub held_by: String,
    #[serde(flatten)]
    pub object: ObjectReport,
}

impl Row {
    pub fn of(stat: &Stat) -> Row {
        Row { shown: printable(&stat.name), held_by: held_by(stat), object: ObjectReport::of(stat) }
    }
}

pub fn answer(look: &Look<'_>, query: &Query) -> Found<Answer> {
    let index = look.index()?;
    let matching = index.beginning(query.text("prefix").unwrap_or_default());
    let from = query.number("from", 0)?;
    let shown = page(&matching, from);
    Ok(Answer::json(&Page {
        total: index.names.len(),
        from: shown.start - matching.start,
        matching: matching.len(),
        most: ROWS,
        at: ticks(Instant::now()).as_secs_f64(),
        rows: stats(&look.pool, &index, shown)?.iter().map(Row::of).collect(),
    }))
}

/// A page from this one on.
pub fn page(of: &Range<usize>, from: u64) -> Range<usize> {
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(of.len());
    of.start + from..of.end.min(of.start + from + ROWS as usize)
}

/// The present state of these objects, without those that are gone or damaged.
pub fn stats(
    pool: &Pool,
    index: &Index,
    of: impl IntoIterator<Item = usize>,
) -> indelible::Result<Vec<Stat>> {
    let mut all = Vec::new();
    for object in of {
        match pool.stat(&index.names[object]) {
            Ok(stat) => all.push(stat),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Damaged) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}
