use crate::model::{Bound, Cell, Goal, Report, Section, Table, Unit};
use crate::stats::Spread;
use std::fmt::Write;

pub fn text(section: &Section) -> String {
    let mut out = format!("\n{}: {}\n", section.name, section.about);
    for table in &section.tables {
        let _ = write!(out, "\n{}\n\n", table.title);
        out.push_str(&grid(table, &|cells, widths| aligned(cells, widths, &right_aligned(table)), ""));
    }
    notes(section, &mut out);
    if !section.goals.is_empty() {
        out.push_str("\nGoals\n\n");
        for goal in &section.goals {
            let verdict = if goal.is_hit() { "hit " } else { "MISS" };
            let _ = writeln!(
                out,
                "  {verdict}  {}: {} (goal {})",
                goal.what,
                value(goal.unit, goal.value),
                limit(goal)
            );
        }
    }
    out
}

const REMARKS: &str = "\n## Remarks\n\n";

/// The remarks of a rendered page, written by hand.
pub fn remarks(page: &str) -> &str {
    let behind = page.split_once(REMARKS).map_or("", |(_, behind)| behind);
    behind.split("\n## ").next().unwrap_or_default().trim_end()
}

pub fn markdown(report: &Report, remarks: &str) -> String {
    let mut out = String::from("# Benchmarks\n\n");
    let _ =
        writeln!(out, "Rendered from one run of `{}`, which took {:.0} s.", report.command, report.seconds);
    if report.quick {
        out.push_str("It was a quick run: few repetitions, small sizes. It shows that everything runs, not how fast.\n");
    }
    out.push_str(
        "Figures are medians, with the middle half of the samples in brackets. Floors were measured in\n\
         the same run, turn by turn with the compared rows.\n\n",
    );
    machine(report, &mut out);
    summary(report, &mut out);
    if !remarks.is_empty() {
        let _ = writeln!(out, "{REMARKS}{remarks}");
    }
    for section in &report.sections {
        let _ = write!(out, "\n## {}\n\n{}\n", section.name, capital(&section.about));
        for plot in &section.plots {
            let _ = write!(out, "\n![{}]({}.svg)\n", plot.title, plot.file);
        }
        for table in &section.tables {
            let _ = write!(out, "\n**{}**\n\n", table.title);
            out.push_str(&grid(table, &|cells, widths| piped(cells, widths), &rule(table)));
        }
        if !section.goals.is_empty() {
            out.push_str("\n**Goals**\n\n");
            goals(section.goals.iter(), &mut out);
        }
        notes(section, &mut out);
    }
    out
}

fn summary(report: &Report, out: &mut String) {
    let sections = || report.sections.iter().filter(|section| !section.goals.is_empty());
    let hits = |section: &Section| section.goals.iter().filter(|goal| goal.is_hit()).count();
    if sections().next().is_none() {
        return;
    }
    let (hit, all) =
        sections().fold((0, 0), |(hit, all), section| (hit + hits(section), all + section.goals.len()));
    let _ = write!(out, "\n## Goals\n\n{hit} of {all} reached.\n\n");
    out.push_str("| | reached | of |\n|---|--:|--:|\n");
    for section in sections() {
        let _ = writeln!(
            out,
            "| [{}](#{}) | {} | {} |",
            section.name,
            section.name,
            hits(section),
            section.goals.len()
        );
    }
    if hit < all {
        out.push_str("\nMissed:\n\n");
        goals(sections().flat_map(|section| &section.goals).filter(|goal| !goal.is_hit()), out);
    }
}

fn goals<'g>(goals: impl Iterator<Item = &'g Goal>, out: &mut String) {
    out.push_str("| goal | limit | measured | |\n|---|--:|--:|---|\n");
    for goal in goals {
        let verdict = if goal.is_hit() { "hit" } else { "**miss**" };
        let (limit, value) = (limit(goal), value(goal.unit, goal.value));
        let _ = writeln!(out, "| {} | {limit} | {value} | {verdict} |", goal.what);
    }
}

fn machine(report: &Report, out: &mut String) {
    let machine = &report.machine;
    let _ = writeln!(out, "| | |\n|---|---|");
    let _ = writeln!(out, "| CPU | {}, {} cores |", machine.cpu, machine.cores);
    let _ = writeln!(out, "| memory | {} |", value(Unit::Bytes, machine.memory as f64));
    let _ = writeln!(out, "| kernel | {} |", machine.kernel);
    for (name, what) in machine.media.iter().chain(&machine.facilities) {
        let _ = writeln!(out, "| {name} | {what} |");
    }
    let _ = writeln!(out, "| version | {} |", machine.version);
}

fn notes(section: &Section, out: &mut String) {
    if !section.notes.is_empty() {
        out.push('\n');
    }
    for note in &section.notes {
        let _ = writeln!(out, "- {note}");
    }
}

fn grid(table: &Table, line: &dyn Fn(&[String], &[usize]) -> String, rule: &str) -> String {
    let heads: Vec<String> = table.columns.iter().map(|column| column.head.clone()).collect();
    let mut rows: Vec<Vec<String>> = Vec::with_capacity(table.rows.len());
    for row in &table.rows {
        rows.push(row.iter().zip(&table.columns).map(|(cell, column)| show(cell, column.unit)).collect());
    }
    let mut widths: Vec<usize> = heads.iter().map(|head| head.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = line(&heads, &widths);
    out.push_str(rule);
    for row in &rows {
        out.push_str(&line(row, &widths));
    }
    out
}

fn right_aligned(table: &Table) -> Vec<bool> {
    table.columns.iter().map(|column| column.unit != Unit::Text).collect()
}

fn aligned(cells: &[String], widths: &[usize], right: &[bool]) -> String {
    let mut out = String::new();
    for ((cell, width), right) in cells.iter().zip(widths).zip(right) {
        let pad = " ".repeat(width - cell.chars().count());
        let _ = if *right { write!(out, "  {pad}{cell}") } else { write!(out, "  {cell}{pad}") };
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn piped(cells: &[String], _widths: &[usize]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn rule(table: &Table) -> String {
    let marks: Vec<&str> =
        right_aligned(table).iter().map(|right| if *right { "--:" } else { "---" }).collect();
    format!("|{}|\n", marks.join("|"))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

fn limit(goal: &Goal) -> String {
    let sign = match goal.bound {
        Bound::AtMost => '≤',
        Bound::AtLeast => '≥',
    };
    format!("{sign} {}", value(goal.unit, goal.limit))
}

pub fn show(cell: &Cell, unit: Unit) -> String {
    match cell {
        Cell::Empty => "–".into(),
        Cell::Text(text) => text.clone(),
        Cell::Value(number) => value(unit, *number),
        Cell::Spread(Spread { median, p25, p75, .. }) => {
            let (size, name) = scale(unit, *median);
            let number = |n: f64| three(n / size);
            format!("{}{name} ({}–{})", number(*median), number(*p25), number(*p75))
        }
    }
}

pub fn value(unit: Unit, number: f64) -> String {
    if !number.is_finite() {
        return "not measured".into();
    }
    let (size, name) = scale(unit, number);
    match unit {
        Unit::Count => grouped(number),
        Unit::Bytes => format!("{}{name}", trimmed(number / size)),
        _ => format!("{}{name}", three(number / size)),
    }
}

fn scale(unit: Unit, number: f64) -> (f64, &'static str) {
    let pick = |steps: &[(f64, &'static str)]| {
        *steps.iter().rev().find(|(size, _)| number.abs() >= *size).unwrap_or(&steps[0])
    };
    let (k, m, g) = (1024.0, 1024.0 * 1024.0, 1024.0 * 1024.0 * 1024.0);
    match unit {
        Unit::Text | Unit::Count => (1.0, ""),
        Unit::Ratio => (1.0, "×"),
        Unit::Bytes => pick(&[(1.0, " B"), (k, " KiB"), (m, " MiB"), (g, " GiB")]),
        Unit::Nanoseconds => pick(&[(1.0, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s")]),
        Unit::PerSecond => pick(&[(1.0, "/s"), (1e3, " k/s"), (1e6, " M/s")]),
        Unit::BytesPerSecond => pick(&[(1.0, " B/s"), (1e6, " MB/s"), (1e9, " GB/s")]),
    }
}

fn three(number: f64) -> String {
    let places = match number.abs() {
        n if n >= 99.95 || n == 0.0 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.places$}")
}

fn trimmed(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Machine, SCHEMA};

    fn report() -> Report {
        let mut table = Table::new(
            "On memory",
            &[("object", Unit::Bytes), ("psync", Unit::Nanoseconds), ("of", Unit::Text)],
        );
        let spread = Spread { median: 2700.0, p25: 2600.0, p75: 12_800.0, count: 9 };
        table.row(vec![(1_u64 << 20).into(), spread.into(), "x".into()]);
        let mut section = Section::new("psync", "how long it takes");
        section.tables.push(table);
        section.goals.push(Goal::at_most("a page", Unit::Ratio, 2.0, 2.15));
        section.notes.push("A note.".into());
        Report {
            schema: SCHEMA,
            machine: Machine { cpu: "C".into(), cores: 2, memory: 8 << 30, ..Machine::default() },
            command: "pmo-bench run psync".into(),
            quick: true,
            seconds: 1.5,
            sections: vec![section],
        }
    }

    #[test]
    fn numbers_carry_the_unit_that_fits() {
        assert_eq!(value(Unit::Nanoseconds, 812.0), "812 ns");
        assert_eq!(value(Unit::Nanoseconds, 2_710.0), "2.71 µs");
        assert_eq!(value(Unit::Nanoseconds, 30_000_000.0), "30.0 ms");
        assert_eq!(value(Unit::Nanoseconds, 99_990.0), "100 µs");
        assert_eq!(value(Unit::Bytes, 4096.0), "4 KiB");
        assert_eq!(value(Unit::Bytes, 64.0 * 1024.0 * 1024.0 * 1024.0), "64 GiB");
        assert_eq!(value(Unit::Count, 1_000_000.0), "1,000,000");
        assert_eq!(value(Unit::Ratio, 1.204), "1.20×");
        assert_eq!(value(Unit::BytesPerSecond, 1.53e9), "1.53 GB/s");
        assert_eq!(value(Unit::PerSecond, 12_345.0), "12.3 k/s");
        assert_eq!(value(Unit::Ratio, f64::NAN), "not measured");
    }

    #[test]
    fn a_spread_is_shown_in_one_unit() {
        let spread = Spread { median: 2700.0, p25: 950.0, p75: 12_800.0, count: 9 };
        assert_eq!(show(&spread.into(), Unit::Nanoseconds), "2.70 µs (0.95–12.8)");
        assert_eq!(show(&Cell::Empty, Unit::Ratio), "–");
    }

    #[test]
    fn tables_are_aligned_in_the_terminal() {
        let text = text(&report().sections[0]);
        assert!(text.contains("  object                psync  of\n"), "{text}");
        assert!(text.contains("   1 MiB  2.70 µs (2.60–12.8)  x\n"), "{text}");
        assert!(text.contains("  MISS  a page: 2.15× (goal ≤ 2.00×)"), "{text}");
    }

    #[test]
    fn markdown_needs_nothing_but_the_json() {
        let json = serde_json::to_string(&report()).unwrap();
        let again: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(again, report());
        let text = markdown(&again, "");
        assert!(
            text.contains("| object | psync | of |\n|--:|--:|---|\n| 1 MiB | 2.70 µs (2.60–12.8) | x |\n"),
            "{text}"
        );
        assert!(text.contains("| a page | ≤ 2.00× | 2.15× | **miss** |"), "{text}");
        assert!(
            text.contains("quick run") && text.contains("How long it takes.") && text.contains("- A note."),
            "{text}"
        );
    }

    #[test]
    fn remarks_stay_when_a_page_is_rendered_again() {
        assert_eq!(remarks(&markdown(&report(), "")), "");
        let page = markdown(&report(), "Why:\n\n- A row.");
        assert_eq!(remarks(&page), "Why:\n\n- A row.");
        assert_eq!(markdown(&report(), remarks(&page)), page);
    }
}
