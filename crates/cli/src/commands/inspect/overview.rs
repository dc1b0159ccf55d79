//! The pool as a whole.

use super::answer::Answer;
use super::index::Totals;
use super::look::{Found, Look};
use super::query::Query;
use crate::commands::stat::PoolReport;
use crate::text::printable;
use serde::Serialize;

#[derive(Serialize)]
struct Overview {
    /// For people.
    shown: String,
    #[serde(flatten)]
    pool: PoolReport,
    totals: Totals,
    /// Seconds, when the totals were counted.
    at: f64,
}

pub fn answer(look: &Look<'_>, _: &Query) -> Found<Answer> {
    let (pool, index) = (PoolReport::of(&look.pool)?, look.index()?);
    let (totals, at) = (index.totals.clone(), index.at().as_secs_f64());
    Ok(Answer::json(&Overview { shown: printable(&pool.path), pool, totals, at }))
}
