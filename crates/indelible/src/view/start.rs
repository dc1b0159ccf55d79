//! Programs that `pmo run` starts in a view, and restarts after their death (S2.18).

use super::attached::AttachedView;
use super::{View, name_of};
use crate::error::{Cause, Error, Result, ViewError};
use crate::pool::Pool;
use std::env;

/// Set by `pmo run`: the pool's path, the view's name, the contexts' names, one per line, and,
/// after a death, its description.
const POOL: &str = "PMO_POOL";
const VIEW: &str = "PMO_VIEW";
const CONTEXT: &str = "PMO_CONTEXT";
const RESUME: &str = "PMO_RESUME";

const START: &str = "start in a view";

/// An object affected by a program's death.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Left {
    /// Its slot in the view.
    pub slot: usize,
    /// Its name.
    pub name: String,
    /// Psyncs over its life; it has the state of the last one.
    pub psyncs: u64,
    /// Whether the process had it for stores at its death.
    pub in_use: bool,
    /// Whether it is volatile and the machine was restarted.
    pub gone: bool,
}

/// Why a program runs again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resumed {
    /// Restarts by the present `pmo run`; 0: a new one found the death.
    pub restarts: u32,
    /// ID of the dead process, if known.
    pub process: Option<u32>,
    /// The signal that ended it, if known.
    pub signal: Option<i32>,
    /// The view's objects that it had, or that are gone.
    pub objects: Vec<Left>,
}

/// Runs `start` in the view of `pmo run --view`, or `resume`, with the losses, if an earlier
/// process in the view died: by a signal, a crash, or with the power. Objects are recovered on use.
///
/// Programs for `pmo run` should begin with it: before, nothing is attached.
///
/// ```no_run
/// fn main() -> indelible::Result<()> {
///     indelible::resume(
///         |mut view| { /* … */ view.psync() },
///         |mut view, death| {
///             for object in death.objects.iter().filter(|object| object.in_use) {
///                 eprintln!("{} is as psync {} left it", object.name, object.psyncs);
///             }
///             view.psync()
///         },
///     )?
/// }
/// ```
///
/// # Errors
/// `Unsuitable`: the program was not started by `pmo run`. As for [`Pool::open`] and
/// [`AttachedView::attach`]. Neither function ran.
pub fn resume<R>(
    start: impl FnOnce(AttachedView) -> R,
    resume: impl FnOnce(AttachedView, Resumed) -> R,
) -> Result<R> {
    let Some((view, resumed)) = AttachedView::from_environment()? else {
        return Err(variable(VIEW, String::new(), "it is not set"));
    };
    Ok(match resumed {
        Some(resumed) => resume(view, resumed),
        None => start(view),
    })
}

impl AttachedView {
    /// The view in which `pmo run` started this program, and why it runs again; `None`: started
    /// otherwise.
    ///
    /// # Errors
    /// As for [`resume`](crate::resume).
    pub fn from_environment() -> Result<Option<(AttachedView, Option<Resumed>)>> {
        let Some(name) = env::var_os(VIEW) else { return Ok(None) };
        let Some(name) = name.to_str() else {
            return Err(variable(VIEW, name.to_string_lossy().into_owned(), "it is no name"));
        };
        let path = env::var_os(POOL).ok_or_else(|| variable(POOL, String::new(), "it is not set"))?;
        let contexts = match env::var(CONTEXT) {
            Ok(names) => names.lines().map(str::to_owned).collect(),
            Err(env::VarError::NotPresent) => Vec::new(),
            // Without it the program would have too many rights.
            Err(env::VarError::NotUnicode(names)) => {
                return Err(variable(CONTEXT, names.to_string_lossy().into_owned(), "it has no names"));
            }
        };
        let told = env::var(RESUME).ok().map(|told| parse(&told)).transpose()?;
        let pool = Pool::open(path)?;
        let objects = left(&pool, name)?;
        let view = AttachedView::attach_in(&pool, name, &contexts)?;
        let resumed = match told {
            Some((restarts, process, signal)) => {
                Some(Resumed { restarts, process: Some(process), signal: Some(signal), objects })
            }
            None if objects.iter().any(|object| object.in_use) => {
                Some(Resumed { restarts: 0, process: None, signal: None, objects })
            }
            None => None,
        };
        Ok(Some((view, resumed)))
    }
}

fn left(pool: &Pool, view: &str) -> Result<Vec<Left>> {
    let mut objects = Vec::new();
    for slot in View::read(pool, view)? {
        let Ok(stat) = pool.stat(&name_of(&slot.target)) else { continue };
        if stat.needs_recovery || stat.gone {
            let (psyncs, in_use, gone) = (stat.psyncs, stat.needs_recovery, stat.gone);
            objects.push(Left { slot: slot.slot, name: stat.name, psyncs, in_use, gone });
        }
    }
    Ok(objects)
}

fn parse(told: &str) -> Result<(u32, u32, i32)> {
    let mut numbers = told.split(' ');
    let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    match (next(), next(), next().and_then(|signal| i32::try_from(signal).ok()), numbers.next()) {
        (Some(restarts), Some(process), Some(signal), None) => Ok((restarts, process, signal)),
        _ => Err(variable(RESUME, told.to_owned(), "it is not three numbers")),
    }
}

fn variable(name: &'static str, value: String, why: &'static str) -> Error {
    Error::new(START, Cause::View(ViewError::Environment { name, value, why }))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_variable_is_three_numbers() {
        assert_eq!(parse("3 4711 9").unwrap(), (3, 4711, 9));
        for wrong in ["", "3", "3 4711", "3 4711 9 1", "x 4711 9", "3  9", "-1 2 3", "3 4711 4294967295"] {
            let error = parse(wrong).unwrap_err();
            assert!(error.to_string().contains("PMO_RESUME"), "{error}");
        }
    }
}
