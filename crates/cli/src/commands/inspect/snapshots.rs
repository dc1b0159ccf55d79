//! A page of the snapshots, the newest first.

use super::answer::Answer;
use super::look::{Found, Look};
use super::objects::{Row, page, stats};
use super::query::Query;
use serde::Serialize;

#[derive(Serialize)]
struct Snapshots {
    matching: usize,
    from: usize,
    rows: Vec<Row>,
}

pub fn answer(look: &Look<'_>, query: &Query) -> Found<Answer> {
    let index = look.index()?;
    let names = index.beginning(query.text("prefix").unwrap_or_default());
    let all = index.snapshots.iter().map(|(_, object)| *object).filter(|object| names.contains(object));
    let all: Vec<usize> = all.collect();
    let shown = page(&(0..all.len()), query.number("from", 0)?);
    Ok(Answer::json(&Snapshots {
        matching: all.len(),
        from: shown.start,
        rows: stats(&look.pool, &index, all[shown].iter().copied())?.iter().map(Row::of).collect(),
    }))
}
