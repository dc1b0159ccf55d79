//! One object.

use super::answer::{Answer, Status};
use super::index::ticks;
use super::look::{Found, Look};
use super::objects::Row;
use super::query::Query;
use crate::commands::stat::ObjectReport;
use crate::text::printable;
use serde::Serialize;
use std::time::Instant;

#[derive(Serialize)]
struct Object {
    /// Seconds, when it was read.
    at: f64,
    meaning: String,
    /// The names of its ties for people.
    shown_ties: Vec<String>,
    #[serde(flatten)]
    row: Row,
}

pub fn answer(look: &Look<'_>, query: &Query) -> Found<Answer> {
    let name = query.text("name").ok_or(Status::BadRequest)?;
    let stat = look.pool.stat(name)?;
    let object = ObjectReport::with_ties(&look.pool, &stat);
    Ok(Answer::json(&Object {
        at: ticks(Instant::now()).as_secs_f64(),
        meaning: object.meaning(stat.state),
        shown_ties: object.ties.iter().map(|name| printable(name)).collect(),
        row: Row { object, ..Row::of(&stat) },
    }))
}
