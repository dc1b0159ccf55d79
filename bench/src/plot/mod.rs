mod draw;
mod slope;

use crate::model::{Axis, Cell, Curve, Point, Table};

pub use crate::model::Plot;

pub use draw::svg;

impl Plot {
    /// Draws column `y` over column `x`: a curve for each text in the columns `by`.
    ///
    /// # Panics
    /// The table has no such column.
    pub fn of(table: &Table, file: &str, x: &str, y: &str, by: &[&str]) -> Plot {
        let (x, y) = (column(table, x), column(table, y));
        let by: Vec<usize> = by.iter().map(|head| column(table, head)).collect();
        let mut curves: Vec<Curve> = Vec::new();
        for row in &table.rows {
            let (Some(at), Some(point)) = (number(&row[x]), point(&row[y])) else { continue };
            let words: Vec<String> =
                by.iter().map(|at| crate::render::show(&row[*at], table.columns[*at].unit)).collect();
            let name = words.join(", ");
            let index = curves.iter().position(|curve| curve.name == name).unwrap_or_else(|| {
                curves.push(Curve { name, points: Vec::new() });
                curves.len() - 1
            });
            curves[index].points.push(Point { x: at, ..point });
        }
        Plot {
            file: file.to_owned(),
            title: table.title.clone(),
            x: axis(table, x),
            y: axis(table, y),
            curves,
        }
    }

    /// Draws several columns of one unit over column `x`: a curve for each.
    ///
    /// # Panics
    /// As [`of`](Plot::of).
    pub fn of_columns(table: &Table, file: &str, x: &str, label: &str, columns: &[&str]) -> Plot {
        let mut plot = Plot::of(table, file, x, columns[0], &[]);
        plot.y.label = label.to_owned();
        plot.curves.clear();
        for head in columns {
            for mut curve in Plot::of(table, file, x, head, &[]).curves {
                curve.name = (*head).to_owned();
                plot.curves.push(curve);
            }
        }
        plot
    }

    pub fn only(mut self, keep: impl Fn(&str) -> bool) -> Plot {
        self.curves.retain(|curve| keep(&curve.name));
        self
    }

    pub fn titled(mut self, title: impl Into<String>) -> Plot {
        self.title = title.into();
        self
    }
}

fn column(table: &Table, head: &str) -> usize {
    let found = table.columns.iter().position(|column| column.head == head);
    found.unwrap_or_else(|| panic!("{}: no column {head}", table.title))
}

fn axis(table: &Table, at: usize) -> Axis {
    Axis { label: table.columns[at].head.clone(), unit: table.columns[at].unit }
}

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Value(value) => Some(*value),
        Cell::Spread(spread) => Some(spread.median),
        Cell::Empty | Cell::Text(_) => None,
    }
}

fn point(cell: &Cell) -> Option<Point> {
    let y = number(cell).filter(|y| y.is_finite() && *y > 0.0)?;
    let (low, high) = match cell {
        Cell::Spread(spread) if spread.p25 > 0.0 => (spread.p25, spread.p75),
        _ => (y, y),
    };
    Some(Point { x: 0.0, y, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Unit;
    use crate::stats::Spread;

    #[test]
    fn curves_come_from_columns() {
        let columns = [("pages", Unit::Count), ("who", Unit::Text), ("time", Unit::Nanoseconds)];
        let mut table = Table::new("t", &columns);
        for (pages, who, time) in [(1_u64, "a", 10.0), (1, "b", 20.0), (10, "a", 100.0), (10, "b", 0.0)] {
            let spread = Spread { median: time, p25: time / 2.0, p75: time * 2.0, count: 3 };
            table.row(vec![pages.into(), who.into(), spread.into()]);
        }
        let plot = Plot::of(&table, "f", "pages", "time", &["who"]);
        assert_eq!(plot.curves.len(), 2);
        assert_eq!(plot.curves[0].points[1], Point { x: 10.0, y: 100.0, low: 50.0, high: 200.0 });
        assert_eq!(plot.curves[1].points.len(), 1);
        assert_eq!(plot.only(|name| name == "b").curves.len(), 1);
    }
}
