//! The file of released layouts (`indelible::retention::LayoutLock`).

use crate::extendible::Struct;
use crate::layout::Words;
use crate::problem::Problem;
use crate::program::Program;
use crate::tree::Unit;
use indelible::retention::{LayoutError, LayoutLock};
use std::path::{Path, PathBuf};

/// A file of layouts.
#[derive(Clone, Debug)]
pub struct Lock {
    /// Its path.
    pub path: PathBuf,
    /// Adds missing structs and extensions.
    pub update: bool,
}

/// Compares the lowered source's structs with the file.
pub(crate) fn check(lock: &Lock, unit: &Unit, structs: &[Struct]) -> Result<(), Vec<Problem>> {
    let program = Program::new(unit, &[], &[], false);
    let mut layouts = LayoutLock::new(&lock.path).with_others();
    for of in structs {
        let names = std::iter::once(of.tag.clone())
            .chain((1..=of.extensions.len()).map(|number| format!("{}Extension{number}", of.tag)));
        let all = names.map(|name| words(&program, &name)).collect();
        layouts = layouts.with_described(&of.tag, all);
    }
    let result = if lock.update { layouts.update() } else { layouts.check() };
    result.map_err(|error| vec![problem(&lock.path, &error)])
}

fn words(program: &Program<'_>, tag: &str) -> String {
    let found = program.unit.records.iter().find(|(_, record)| record.tag == tag && !record.is_inner);
    found.map(|(place, _)| Words::of(program, *place)).unwrap_or_default()
}

fn problem(path: &Path, error: &LayoutError) -> Problem {
    let text = match error {
        LayoutError::New { ty, what, .. } => {
            format!(
                "{what} of struct {ty} is not in it yet: run `pmo leds` with --update-lock, and commit the file"
            )
        }
        LayoutError::Io { error, .. } => format!("cannot be read or written: {error}"),
        other => other.to_string(),
    };
    Problem { file: path.to_owned(), line: 0, column: 0, text }
}
