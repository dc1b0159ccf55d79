use super::raw::HeapOptions;
use super::writer::Heap;
use crate::error::{ErrorKind, Result};
use crate::object::{Attach, Finding, Object};
use crate::pool::{CreateOptions, Pool};

impl Heap {
    /// Opens the heap of an object, or makes one if the object is blank.
    ///
    /// # Errors
    /// As for [`open`](Heap::open) and [`format`](Heap::format).
    pub fn open_or_format(object: Object) -> Result<Heap> {
        Heap::open_or_format_with(object, HeapOptions::new())
    }

    /// As [`open_or_format`](Heap::open_or_format), with options.
    pub fn open_or_format_with(object: Object, options: HeapOptions) -> Result<Heap> {
        match object.as_slice().iter().take(4096).all(|byte| *byte == 0) {
            true => Heap::format_with(object, options),
            false => Heap::open_with(object, options),
        }
    }

    /// Returns the object, with unpsynced stores.
    #[must_use]
    pub fn into_object(self) -> Object {
        self.give_addresses();
        let Heap { raw, object, .. } = self;
        drop(raw);
        object
    }
}

impl Pool {
    /// The heap of the object `name`, attached for writing; a missing object is created with `size`
    /// bytes. A full heap grows as far as the pool allows ([`HeapOptions::grow`]).
    ///
    /// Collections mark their stores ([`Tracking::Explicit`](crate::Tracking::Explicit), unless the
    /// pool's options say otherwise). The first call that hands out an address
    /// ([`malloc`](Heap::malloc), [`root`](Heap::root) and others) switches to
    /// [`Tracking::Auto`](crate::Tracking::Auto). A program that stores by addresses kept as plain
    /// numbers must choose a tracking.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("words.pmo");
    /// use indelible::Pool;
    /// use indelible::collections::PVec;
    ///
    /// let mut heap = Pool::open_or_format(&path, 64 << 20)?.heap("words", 1 << 20)?;
    /// heap.root_or_default::<PVec<u64>>("numbers")?.extend(0..1_000_000); // more than 1 MiB
    /// heap.psync()?;
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`create`](Pool::create), [`attach`](Pool::attach) and [`Heap::open_or_format`].
    pub fn heap(&self, name: &str, size: u64) -> Result<Heap> {
        self.heap_with(name, size, HeapOptions::new().grow(true))
    }

    /// As [`heap`](Pool::heap), with options, which decide whether it grows.
    pub fn heap_with(&self, name: &str, size: u64, options: HeapOptions) -> Result<Heap> {
        let attach = || self.attach_as(name, &Attach { finding: Finding::Typed, ..Attach::with_key(b"") });
        let object = match attach() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match self.create_attached_as(name, &CreateOptions::new(size), Finding::Typed) {
                    Err(error) if error.kind() == ErrorKind::Exists => attach()?,
                    created => created?,
                }
            }
            attached => attached?,
        };
        Heap::open_or_format_with(object, options)
    }
}
