use super::slope::slope;
use crate::Result;
use crate::model::{Axis, Curve, Plot, Unit};
use crate::render::value;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (710, 560);
const LEGEND: usize = 250;
const LETTER: usize = 8;
const LINE: i32 = 22;
/// Distinguishable with few colours seen (Okabe and Ito); the last, a brown, is one more.
const COLOURS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(120, 120, 120),
    RGBColor(0, 0, 0),
    RGBColor(120, 70, 20),
];

pub fn svg(plot: &Plot) -> Result<String> {
    let mut out = String::new();
    {
        let entries = entries(plot);
        let longest = entries.iter().map(|entry| entry.chars().count()).max().unwrap_or(0);
        let width = SIZE.0 + LEGEND.max(40 + LETTER * longest) as u32;
        let area = SVGBackend::with_string(&mut out, (width, SIZE.1)).into_drawing_area();
        area.fill(&WHITE)?;
        let (curves, legend) = area.split_horizontally(SIZE.0);
        draw_curves(plot, &curves)?;
        draw_legend(plot, &entries, &legend)?;
        area.present()?;
    }
    Ok(out)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_curves(plot: &Plot, area: &Area<'_>) -> Result<()> {
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let x = Decades::around(points().map(|point| point.x), &plot.x);
    let y = Decades::around(points().flat_map(|point| [point.low, point.high]), &plot.y);
    let mut chart = ChartBuilder::on(area)
        .caption(&plot.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(48)
        .y_label_area_size(84)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(&plot.x.label)
        .y_desc(&plot.y.label)
        .axis_desc_style(("sans-serif", 16))
        .label_style(("sans-serif", 14))
        .draw()?;
    for (curve, colour) in plot.curves.iter().zip(COLOURS.iter().cycle()) {
        let line = curve.points.iter().map(|point| (point.x.log10(), point.y.log10()));
        chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
        chart.draw_series(curve.points.iter().map(|point| {
            let x = point.x.log10();
            PathElement::new(
                vec![(x, point.low.log10()), (x, point.high.log10())],
                colour.mix(0.5).stroke_width(4),
            )
        }))?;
        chart.draw_series(
            curve
                .points
                .iter()
                .map(|point| Circle::new((point.x.log10(), point.y.log10()), 3, colour.filled())),
        )?;
    }
    Ok(())
}

fn entries(plot: &Plot) -> Vec<String> {
    let growth = |curve: &Curve| slope(&curve.points).filter(|_| plot.y.unit != Unit::Ratio);
    let entry = |curve: &Curve| match growth(curve) {
        Some(slope) => format!("{}  ∝ x^{slope:.2}", curve.name),
        None => curve.name.clone(),
    };
    plot.curves.iter().map(entry).collect()
}

fn draw_legend(plot: &Plot, entries: &[String], area: &Area<'_>) -> Result<()> {
    for (number, (entry, colour)) in entries.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let y = 48 + LINE * number as i32;
        area.draw(&PathElement::new(vec![(0, y), (22, y)], colour.stroke_width(3)))?;
        let style = ("sans-serif", 14).into_text_style(area);
        area.draw_text(entry, &style, (28, y - 8))?;
    }
    if plot.curves.iter().flat_map(|curve| &curve.points).any(|point| point.low < point.high) {
        let y = 60 + LINE * entries.len() as i32;
        let style = ("sans-serif", 12).into_text_style(area).color(&RGBColor(110, 110, 110));
        area.draw_text("bars: the middle half of the samples", &style, (0, y))?;
    }
    Ok(())
}

/// Numbers with a line in each decade, sparse and dense.
const LINES: [&[f64]; 4] = [
    &[1.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
    &[
        1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0,
        8.0, 9.0, 9.5, 9.8,
    ],
];

const FEW: usize = 7;

/// A logarithmic axis: a line per power of ten, or of 16 for bytes; more if too few. A few measured
/// places get the lines instead.
struct Decades {
    range: Range<f64>,
    unit: Unit,
    places: Vec<f64>,
}

impl Decades {
    fn around(values: impl Iterator<Item = f64>, axis: &Axis) -> Decades {
        let mut places: Vec<f64> = values.map(f64::log10).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (low, high) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(1.0));
        if axis.unit != Unit::Count || places.len() > FEW {
            places.clear();
        }
        // A flat curve looks flat.
        let least = match axis.unit {
            Unit::Ratio => 0.2,
            Unit::Count => 0.5,
            _ => 1.0,
        };
        let room = ((high - low) * 0.06).max((least - (high - low)) / 2.0);
        Decades { range: low - room..high + room, unit: axis.unit, places }
    }

    fn lines(&self, base: f64, numbers: &[f64]) -> Vec<f64> {
        let step = base.log10();
        let powers = (self.range.start / step).floor() as i32..=(self.range.end / step).floor() as i32;
        let lines = powers.flat_map(|power| numbers.iter().map(move |n| f64::from(power) * step + n.log10()));
        let is_whole = |number: f64| number > 0.5 && (number - number.round()).abs() < number * 1e-9;
        let whole = |line: f64| self.unit != Unit::Count || is_whole(10_f64.powf(line));
        lines.filter(|line| self.range.contains(line) && whole(*line)).collect()
    }
}

impl Ranged for Decades {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        limit.0 + (share * f64::from(limit.1 - limit.0)) as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        if !self.places.is_empty() {
            return self.places.clone();
        }
        let choices: Vec<Vec<f64>> = if self.unit == Unit::Bytes {
            [16.0, 4.0, 2.0].iter().map(|base| self.lines(*base, &[1.0])).collect()
        } else {
            LINES.iter().map(|numbers| self.lines(10.0, numbers)).collect()
        };
        let enough = choices.iter().position(|lines| lines.len() >= 3).unwrap_or(choices.len() - 1);
        choices.into_iter().nth(enough).unwrap_or_default()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Decades {
    fn format_ext(&self, logarithm: &f64) -> String {
        value(self.unit, 10_f64.powf(*logarithm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;

    #[test]
    fn a_picture_names_its_axes_and_curves() {
        let points = [1.0, 100.0, 10_000.0].map(|x| Point { x, y: x * 5.0, low: x * 4.0, high: x * 6.0 });
        let plot = Plot {
            file: "f".into(),
            title: "psync on memory".into(),
            x: Axis { label: "pages".into(), unit: Unit::Count },
            y: Axis { label: "psync".into(), unit: Unit::Nanoseconds },
            curves: vec![Curve { name: "hot".into(), points: points.to_vec() }],
        };
        let picture = svg(&plot).unwrap();
        for word in ["psync on memory", "pages", "hot  ∝ x^1.00", "1.00 µs", "10,000"] {
            assert!(picture.contains(word), "{word}");
        }
    }

    #[test]
    fn an_axis_of_things_has_its_lines_where_they_were_counted() {
        let axis = Axis { label: "threads".into(), unit: Unit::Count };
        let lines = |values: &[f64]| -> Vec<f64> {
            let axis = Decades::around(values.iter().copied(), &axis);
            let lines = axis.key_points(plotters::coord::ranged1d::BoldPoints(9));
            lines.iter().map(|line| (10_f64.powf(*line) * 1e6).round() / 1e6).collect()
        };
        assert_eq!(lines(&[4.0, 1.0, 2.0, 2.0, 8.0]), [1.0, 2.0, 4.0, 8.0]);
        let many: Vec<f64> = (1..50).map(f64::from).collect();
        assert!(lines(&many).len() >= 2 && lines(&many).iter().all(|number| number.fract() == 0.0));
    }

    #[test]
    fn the_longest_name_has_room_and_a_ratio_no_exponent() {
        let points = [1.0, 2.0, 4.0].map(|x| Point { x, y: x, low: x, high: x });
        let name = "a name that is very long, 2 threads, hot, of everything there is".to_owned();
        let mut plot = Plot {
            file: "f".into(),
            title: "t".into(),
            x: Axis { label: "threads".into(), unit: Unit::Count },
            y: Axis { label: "to in place".into(), unit: Unit::Ratio },
            curves: vec![Curve { name, points: points.to_vec() }],
        };
        let width = |plot: &Plot| -> u32 {
            let picture = svg(plot).unwrap();
            assert!(!picture.contains('∝') && !picture.contains("bars"));
            picture.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!(width(&plot) > 710 + 64 * 7);
        plot.curves[0].name = "short".into();
        assert_eq!(width(&plot), 960);
    }
}
