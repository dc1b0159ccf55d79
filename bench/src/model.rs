//! The record of a run: self-contained tables of figures and goals, as JSON.
//!
//! Invariants:
//! 1. A report shows only contents of this; rendering measures and looks up nothing.
//! 2. A row has one cell per column. Durations are nanoseconds, sizes bytes, rates units per
//!    second.

use crate::stats::Spread;
use serde::{Deserialize, Serialize};

pub const SCHEMA: u32 = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub schema: u32,
    pub machine: Machine,
    pub command: String,
    pub quick: bool,
    pub seconds: f64,
    pub sections: Vec<Section>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory: u64,
    pub kernel: String,
    pub facilities: Vec<(String, String)>,
    pub media: Vec<(String, String)>,
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    pub name: String,
    pub about: String,
    pub tables: Vec<Table>,
    pub plots: Vec<Plot>,
    pub goals: Vec<Goal>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    pub file: String,
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub curves: Vec<Curve>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    pub label: String,
    pub unit: Unit,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    pub name: String,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub head: String,
    pub unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Text,
    Count,
    Bytes,
    Nanoseconds,
    Ratio,
    PerSecond,
    BytesPerSecond,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    Empty,
    Text(String),
    Value(f64),
    Spread(Spread),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    pub what: String,
    pub unit: Unit,
    pub bound: Bound,
    pub limit: f64,
    /// NaN if not measured, `null` in JSON.
    #[serde(deserialize_with = "number")]
    pub value: f64,
}

fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    AtMost,
    AtLeast,
}

impl Goal {
    pub fn at_most(what: impl Into<String>, unit: Unit, limit: f64, value: f64) -> Self {
        Goal { what: what.into(), unit, bound: Bound::AtMost, limit, value }
    }

    pub fn at_least(what: impl Into<String>, unit: Unit, limit: f64, value: f64) -> Self {
        Goal { what: what.into(), unit, bound: Bound::AtLeast, limit, value }
    }

    pub fn is_hit(&self) -> bool {
        match self.bound {
            Bound::AtMost => self.value <= self.limit,
            Bound::AtLeast => self.value >= self.limit,
        }
    }
}

impl Table {
    pub fn new(title: impl Into<String>, columns: &[(&str, Unit)]) -> Self {
        let columns =
            columns.iter().map(|(head, unit)| Column { head: (*head).to_owned(), unit: *unit }).collect();
        Table { title: title.into(), columns, rows: Vec::new() }
    }

    pub fn row(&mut self, mut cells: Vec<Cell>) {
        debug_assert!(cells.len() <= self.columns.len(), "{}: a row too long", self.title);
        cells.resize(self.columns.len(), Cell::Empty);
        self.rows.push(cells);
    }
}

impl Section {
    pub fn new(name: &str, about: &str) -> Self {
        Section {
            name: name.to_owned(),
            about: about.to_owned(),
            tables: Vec::new(),
            plots: Vec::new(),
            goals: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl From<Spread> for Cell {
    fn from(spread: Spread) -> Self {
        Cell::Spread(spread)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_finite() { Cell::Value(value) } else { Cell::Empty }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Cell::Value(value as f64)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_a_number_is_an_empty_cell() {
        assert!(
            matches!(Cell::from(f64::NAN), Cell::Empty) && matches!(Cell::from(f64::INFINITY), Cell::Empty)
        );
        assert!(matches!(Cell::from(0.5), Cell::Value(_)));
    }

    #[test]
    fn a_goal_without_a_figure_is_missed() {
        assert!(Goal::at_most("a", Unit::Ratio, 2.0, 2.0).is_hit());
        assert!(!Goal::at_most("a", Unit::Ratio, 2.0, 2.1).is_hit());
        assert!(Goal::at_least("a", Unit::Ratio, 1.0, 1.5).is_hit());
        assert!(!Goal::at_most("a", Unit::Ratio, 2.0, f64::NAN).is_hit());
        let missed = Goal::at_least("a", Unit::Ratio, 2.0, f64::NAN);
        assert!(!missed.is_hit());
        let read: Goal = serde_json::from_str(&serde_json::to_string(&missed).unwrap()).unwrap();
        assert!(read.value.is_nan() && !read.is_hit());
        let measured = Goal { value: 2.5, ..missed };
        let text = serde_json::to_string(&measured).unwrap();
        assert_eq!(serde_json::from_str::<Goal>(&text).unwrap(), measured);
    }

    #[test]
    fn rows_are_as_wide_as_the_table() {
        let mut table = Table::new("t", &[("a", Unit::Count), ("b", Unit::Ratio)]);
        table.row(vec![1_u64.into()]);
        assert_eq!(table.rows, [[Cell::Value(1.0), Cell::Empty]]);
    }
}
