//! Attaching an object with a dict, and its version.

use super::table::{PythonDict, ROOT, VERSION_1};
use crate::held::Held;
use crate::keys::Keys;
use indelible::collections::RootTypes;
use indelible::{Error, ErrorKind, Heap, ReadHeap, TypeInfo};

/// Least bytes of an object with a dict.
const LEAST: u64 = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    /// The state of the last psync, beside a writer.
    Beside,
    /// The object, locked against writers.
    Locked,
}

impl Access {
    pub(super) const WORDS: [(&str, Access); 3] =
        [("r+", Access::Write), ("r", Access::Beside), ("lock", Access::Locked)];
}

/// Attaches the object with its heap, which is made in a blank object.
pub(super) fn attach(
    pool: &indelible::Pool,
    name: &str,
    access: Access,
    keys: Keys<'_>,
) -> Result<Held, Error> {
    let for_reading = match access {
        Access::Write => None,
        Access::Beside => Some(keys.attach_beside(pool, name)?),
        Access::Locked => Some(keys.attach_locked(pool, name)?),
    };
    if let Some(object) = for_reading {
        return ReadHeap::open(object).map(Held::ReadHeap);
    }
    let mut object = keys.attach(pool, name)?;
    if (object.len() as u64) < LEAST
        && object.psyncs() == 0
        && object.as_slice().iter().all(|byte| *byte == 0)
    {
        object.grow(LEAST)?;
    }
    let mut heap = Heap::open_or_format(object)?;
    // Python or C had the object's bytes. The caller refuses a dict of the first format.
    if !heap.is_trusted() && !heap.root_any(ROOT).is_ok_and(|root| root.type_name == VERSION_1) {
        let records = heap.records()?;
        let mut types = RootTypes::new().root::<PythonDict<'_>>(ROOT);
        for record in &records {
            types =
                types.described_root(&record.name, TypeInfo::described(&record.type_name, &record.layout));
        }
        heap.verify(&types)?;
    }
    if heap.root_any(ROOT).is_err_and(|error| error.kind() == ErrorKind::RootMissing) {
        // Durable now: a new object is a dict, even after a crash.
        heap.root_or_default::<PythonDict<'_>>(ROOT)?;
        heap.psync()?;
    }
    Ok(Held::Heap(Box::new(heap)))
}

/// Version of the dict: 1 of the first format; `None`: there is none.
pub(super) fn version(held: &Held) -> Result<Option<u64>, Error> {
    let root = match held {
        Held::Heap(heap) => heap.root_any(ROOT),
        Held::ReadHeap(heap) => heap.root_any(ROOT),
        Held::Writer(_) | Held::Reader(_) => return Ok(None),
    };
    match (root, held) {
        (Err(error), _) if error.kind() == ErrorKind::RootMissing => Ok(None),
        (Err(error), _) => Err(error),
        (Ok(root), _) if root.type_name == VERSION_1 => Ok(Some(1)),
        (Ok(_), Held::Heap(heap)) => Ok(Some(heap.root_ref::<PythonDict<'_>>(ROOT)?.version())),
        (Ok(_), Held::ReadHeap(heap)) => Ok(Some(heap.root_ref::<PythonDict<'_>>(ROOT)?.version())),
        _ => Ok(None),
    }
}
