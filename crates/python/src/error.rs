//! Errors of Rust as exceptions of Python, whose classes are in `python/indelible/_errors.py`.

use indelible::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Advice with names of Rust functions or commands, and its words in Python. Advice for errors that
/// Python cannot have is left out.
const WORDS: [(&str, &str); 32] = [
    ("create it with `pmo format` or Pool::format", "give `indelible.open` a size, and it makes one"),
    ("`pmo ls` lists", "`Pool.list` lists"),
    ("`pmo ls` shows who it is", "`Pool.stat` says who it is"),
    ("destroy objects", "remove objects"),
    ("(`pmo grow`, Pool::grow)", "(`Pool.grow`)"),
    ("(`PoolOptions::wait`, `pmo --wait`)", "(`wait` of `indelible.open`)"),
    ("remove it with `pmo rm`", "remove it (`Pool.remove`)"),
    ("attach for reading", "use mode \"r\""),
    (
        "`Pool::attach_sealed` attaches it by a seal key",
        "`seal` is the keyword for the key of a sealed object",
    ),
    ("`SealKey::sealed_as` or --sealed-as", "`SealKey.sealed_as`"),
    ("`Pool::bind_name` and `pmo key bind` seal", "`Pool.bind_name` seals"),
    (
        "`Pool::rename_sealed` renames it, and `pmo mv` with --seal-key-file say",
        "`Pool.rename` has `seal` for it",
    ),
    ("`View::create`", "`Pool.view`"),
    ("`SecurityContext::create`", "`Pool.context`"),
    ("`pmo context allow`", "`SecurityContext.allow`"),
    ("`pmo view set`", "`View.set`"),
    ("`AttachedView::attach_in`", "`Pool.attach_view`"),
    ("mark stores in the program (`Tracking::Explicit`), or use", "use"),
    ("ask `Far::is_null` first", "compare it with 0 first"),
    (", or change the entry (`Heap::retarget`)", ""),
    (
        ", or the resolver, that knows the name (`Space::add`, `Space::add_resolver`)",
        " that has it (`Space.add`)",
    ),
    ("`CreateOptions::position_independent`, and roots without addresses", "`position_independent`"),
    ("`Space::", "`Space."),
    ("`Heap::check` lists", "`pmo heap check` lists"),
    ("`Heap::roots` lists", "`pmo heap roots` lists"),
    ("; `Heap::format` makes a heap of a new object", ""),
    ("verify the heap with `Heap::verify`, or attach the object for reading", "use mode \"r\""),
    ("`Pool::set_reach`, `pmo set --reach`", "`pmo set --reach`"),
    ("or --force", "or `replace=True`"),
    ("(`--rebase`)", "(`rebase=True`)"),
    ("name the objects without one", "give `objects` without it"),
    ("`Pool::attach_with_on_demand`", "`Pool.transactional(…, with_on_demand=True)`"),
];

const HELD_HERE: &str = "close it here first: `close()` of a dict or object, `del` of all arrays of it";

fn in_python(remedy: &str) -> String {
    WORDS.iter().fold(remedy.to_owned(), |remedy, (rust, python)| remedy.replace(rust, python))
}

/// The variables that keep an object attached, as the end of an error.
fn holders(py: Python<'_>, name: &str) -> String {
    let of = || py.import("indelible._holders")?.getattr("of")?.call1((name,))?.extract();
    of().unwrap_or_default()
}

/// Advice if an object attached by this process has the addresses.
fn copied(py: Python<'_>, message: &str) -> Option<String> {
    let at = || py.import("indelible._holders")?.getattr("at")?.call1((message,))?.extract();
    at().unwrap_or_default()
}

/// The exception for an error: the class of its kind, with text and fields.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let path = error.pool_path().map(|path| path.to_string_lossy().into_owned());
    let (kind, code) = (format!("{:?}", error.kind()), error.kind() as i32);
    let by_this =
        matches!(error.kind(), ErrorKind::Held) && error.to_string().contains("held by this process");
    let text = match (by_this, error.object_name()) {
        (true, name) => HELD_HERE.to_owned() + &holders(py, name.unwrap_or_default()),
        (false, _) if error.kind() == ErrorKind::AddressTaken => {
            copied(py, &error.to_string()).unwrap_or_else(|| in_python(error.remedy()))
        }
        (false, _) => in_python(error.remedy()),
    };
    let text = match error.to_string().strip_suffix(&format!("({})", error.remedy())) {
        Some(before) => format!("{before}({text})"),
        None => error.to_string(),
    };
    raise(py, &kind, code, &text, error.operation(), path, error.object_name())
}

/// An operation on a closed pool or object.
pub(crate) fn closed(py: Python<'_>, operation: &str, what: &str) -> PyErr {
    let message = format!("cannot {operation} {what}: it is closed (open or attach it again)");
    raise(py, "Closed", 0, &message, operation, None, None)
}

/// A use of a transaction outside of its function.
pub(crate) fn over(py: Python<'_>) -> PyErr {
    let message = "cannot use a transaction: it is over (its function has returned)";
    raise(py, "Closed", 0, message, "use", None, None)
}

/// An operation in a fork of the process that attached or opened.
pub(crate) fn forked(py: Python<'_>, operation: &str, what: &str) -> PyErr {
    let message = format!(
        "cannot {operation} {what}: it was opened by another process, of which this one is a fork \
         (open the pool again in this process)"
    );
    raise(py, "Forked", ErrorKind::Forked as i32, &message, operation, None, None)
}

/// A change of something that may only be read.
pub(crate) fn read_only(py: Python<'_>, operation: &str, what: &str) -> PyErr {
    let message =
        format!("cannot {operation} {what}: it is attached for reading (attach it with mode \"r+\")");
    raise(py, "ReadOnly", ErrorKind::ReadOnly as i32, &message, operation, None, None)
}

/// Refuses to give up memory that views can reach.
pub(crate) fn in_use(operation: &str, what: &str, views: usize) -> PyErr {
    // It is quoted.
    let held = Python::attach(|py| holders(py, what.split('"').nth(1).unwrap_or_default()));
    let message = format!(
        "cannot {operation} {what}: arrays or memoryviews of it are still in use: {views} (delete them first{held})"
    );
    pyo3::exceptions::PyBufferError::new_err(message)
}

/// A panic of the library: the bytes that it read are damaged.
pub(crate) fn panicked(py: Python<'_>, operation: &str, what: &str, panic: &str) -> PyErr {
    let message = format!("cannot {operation} {what}: {panic}");
    raise(py, "Damaged", ErrorKind::Damaged as i32, &message, operation, None, None)
}

/// An error of a backup, with its advice.
pub(crate) fn advised(py: Python<'_>, kind: &str, operation: &str, error: &str, remedy: &str) -> PyErr {
    let message = format!("cannot {operation}: {error} ({})", in_python(remedy));
    raise(py, kind, 0, &message, operation, None, None)
}

/// An error that the package's own Python code found.
pub(crate) fn own(py: Python<'_>, kind: ErrorKind, operation: &str, message: &str, name: &str) -> PyErr {
    raise(py, &format!("{kind:?}"), kind as i32, message, operation, None, Some(name))
}

fn raise(
    py: Python<'_>,
    kind: &str,
    code: i32,
    message: &str,
    operation: &str,
    pool: Option<String>,
    object: Option<&str>,
) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let fields = PyDict::new(py);
        fields.set_item("operation", operation)?;
        fields.set_item("pool", pool)?;
        fields.set_item("object", object)?;
        fields.set_item("code", code)?;
        let make = py.import("indelible._errors")?.getattr("of_kind")?;
        Ok(PyErr::from_value(make.call((kind, message), Some(&fields))?))
    };
    make().unwrap_or_else(|error| error)
}
