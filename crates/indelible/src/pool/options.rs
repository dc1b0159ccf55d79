//! How pools are opened.

use crate::dirty::{Advice, Rung};
use crate::error::Cause;
use crate::fault::{self, PredictionDepth, PredictionParams};
use crate::media::{self, Access, Media, MediaError, MediaKind, MediumChoice, MediumModel};
use crate::sys::PAGE;
use indelible_store::error::{Holder, StoreError};
use indelible_store::format::LANES;
use indelible_store::medium::{LockKey, LockMode, Others};
use indelible_store::store::{FormatOptions, Window};
use std::path::Path;
use std::time::Duration;

/// Least memory of a sealed object whose memory is limited.
const LEAST_MEMORY: u64 = 1 << 20;

/// Kind of medium. `Auto` asks the path; the others force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediumKind {
    /// The kind that the path turns out to be.
    #[default]
    Auto,
    /// A file on a block device: system calls, fdatasync.
    File,
    /// A file treated as persistent memory: stores and fences. Whether anything of it survives a
    /// power failure is the file system's affair.
    Memory,
    /// A file on a DAX file system (`MAP_SYNC`).
    Dax,
    /// A device-DAX character device.
    DevDax,
    /// Something given to [`PoolOptions::on_device`].
    Other,
}

impl MediumKind {
    /// The words of `--medium`.
    pub const WORDS: [(&'static str, MediumKind); 5] = [
        ("auto", MediumKind::Auto),
        ("file", MediumKind::File),
        ("memory", MediumKind::Memory),
        ("dax", MediumKind::Dax),
        ("devdax", MediumKind::DevDax),
    ];

    /// A word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("other", |(word, _)| word)
    }

    fn choice(self) -> MediumChoice {
        match self {
            MediumKind::Auto | MediumKind::Other => MediumChoice::Auto,
            MediumKind::File => MediumChoice::File,
            MediumKind::Memory => MediumChoice::Memory,
            MediumKind::Dax => MediumChoice::Dax,
            MediumKind::DevDax => MediumChoice::DevDax,
        }
    }
}

impl From<MediaKind> for MediumKind {
    fn from(kind: MediaKind) -> Self {
        match kind {
            MediaKind::File => MediumKind::File,
            MediaKind::Memory => MediumKind::Memory,
            MediaKind::Dax => MediumKind::Dax,
            MediaKind::DevDax => MediumKind::DevDax,
            MediaKind::Other => MediumKind::Other,
        }
    }
}

/// How stores to an attached object are noticed: the rungs of the ladder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tracking {
    /// The best rung the kernel offers.
    #[default]
    Auto,
    /// userfaultfd write protection that the kernel lifts by itself, and `PAGEMAP_SCAN` (Linux
    /// 6.7).
    WpAsync,
    /// Memory protection and SIGSEGV; everywhere.
    Mprotect,
    /// The program marks its stores: a psync looks at nothing else, and costs neither page faults
    /// nor a scan. The heap and its [`collections`](crate::collections) mark their own stores and
    /// the references that they hand out (`&mut`, and atomics that are looked at); the program
    /// marks its stores through pointers, also those to blocks of
    /// [`Heap::malloc`](crate::Heap::malloc) ([`Object::mark_dirty`](crate::Object::mark_dirty)).
    /// An unmarked store may be lost.
    Explicit,
}

impl Tracking {
    /// The words of `--tracking`.
    pub const WORDS: [(&'static str, Tracking); 4] = [
        ("auto", Tracking::Auto),
        ("wp-async", Tracking::WpAsync),
        ("mprotect", Tracking::Mprotect),
        ("explicit", Tracking::Explicit),
    ];

    pub(crate) fn rung(self) -> Option<Rung> {
        match self {
            Tracking::Auto => None,
            Tracking::WpAsync => Some(Rung::WpAsync),
            Tracking::Mprotect => Some(Rung::Mprotect),
            Tracking::Explicit => Some(Rung::Explicit),
        }
    }

    pub(crate) fn of(rung: Rung) -> Tracking {
        match rung {
            Rung::WpAsync => Tracking::WpAsync,
            Rung::Mprotect => Tracking::Mprotect,
            Rung::Explicit => Tracking::Explicit,
        }
    }

    /// Refuses a rung that this machine does not offer.
    pub(crate) fn check(self) -> Result<(), Cause> {
        if self.is_available() {
            return Ok(());
        }
        Err(Cause::Unsupported(format!("this kernel does not offer tracking by {self:?}")))
    }

    /// Whether this machine offers the rung.
    #[must_use]
    pub fn is_available(self) -> bool {
        self.rung().is_none_or(Rung::available)
    }
}

/// How to open or format a pool.
#[derive(Clone, Debug, Default)]
pub struct PoolOptions {
    pub(super) medium: MediumKind,
    pub(super) tracking: Tracking,
    pub(super) read_only: bool,
    pub(crate) allow_remote: bool,
    pub(super) fault_in: bool,
    pub(super) label: String,
    pub(super) force: bool,
    pub(super) window: Option<Window>,
    pub(super) untrusted: bool,
    pub(super) inherit_reads: bool,
    pub(super) ahead_limit: Option<u64>,
    pub(super) model: Option<MediumModel>,
    pub(super) prediction: PredictionDepth,
    pub(super) measure_prediction: bool,
    pub(super) memory_limit: Option<u64>,
    pub(crate) advice: Advice,
    pub(crate) wait: Option<Duration>,
}

/// The options that matter after opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) rung: Option<Rung>,
    pub(super) advice: Advice,
    pub(super) fault_in: bool,
    pub(super) untrusted: bool,
    pub(super) inherit_reads: bool,
    /// Pages of an object that may be filled before they are touched.
    pub(super) ahead_limit: usize,
    pub(super) model: Option<MediumModel>,
    pub(super) prediction: PredictionParams,
    /// Pages of a sealed object that may be in memory.
    pub(super) memory_limit: Option<usize>,
}

impl Settings {
    /// Whether objects are filled where they could be mapped.
    pub(super) fn fills(&self) -> bool {
        self.fault_in || self.model.is_some()
    }
}

impl PoolOptions {
    /// The defaults: right for most.
    #[must_use]
    pub fn new() -> Self {
        PoolOptions::default()
    }

    /// Forces the kind of medium.
    #[must_use]
    pub fn medium(mut self, medium: MediumKind) -> Self {
        self.medium = medium;
        self
    }

    /// Forces how stores are noticed.
    #[must_use]
    pub fn tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = tracking;
        self
    }

    /// Opens the pool's file for reading only. Such a pool blocks no other user: it takes no locks,
    /// and attaching copies the object, at a cost that depends on its size, so that reads see no
    /// later change. The copy is the object as some psync left it; an object that a writer has is
    /// [`Held`](crate::ErrorKind::Held).
    ///
    /// Nothing is written, so that this works without permission to write and, where every store
    /// needs new space, on a full copy-on-write file system: a pool that is opened for writing
    /// makes durable what it sees first. A read-only pool may show something newer than is durable,
    /// if the process that wrote it died just then.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Accepts network and user-space file systems, whose locks may not exclude other machines.
    #[must_use]
    pub fn allow_remote(mut self, allow: bool) -> Self {
        self.allow_remote = allow;
        self
    }

    /// Fills objects' pages on demand by a thread even where the file could be mapped; by default
    /// sparse objects on tmpfs alone, if [`doctor`](crate::doctor()) says that userfaultfd sees
    /// faults of the kernel, too. A store to such an object on a full file system is an error of
    /// psync, instead of a SIGBUS at the store; psyncs of it cost several times as much. With
    /// userfaultfd for user code only, system calls on pages that were not touched fail with
    /// `EFAULT`: [`prefault`](crate::Object::prefault) them.
    #[must_use]
    pub fn fault_in(mut self, fault_in: bool) -> Self {
        self.fault_in = fault_in;
        self
    }

    /// How many bytes of an attached object may be filled before their first touch, by reading
    /// ahead of faults and by [`prefault`](crate::Object::prefault), in all until it is detached.
    /// By default any number. Only for objects whose pages are filled on demand; those of mapped
    /// files are the kernel's.
    #[must_use]
    pub fn ahead_limit(mut self, bytes: u64) -> Self {
        self.ahead_limit = Some(bytes);
        self
    }

    /// How many pages of a sealed object are decrypted before they are touched, where the program
    /// goes through it page by page, or at equal distances. By default more, the longer the
    /// sequence. Only for objects whose pages are decrypted on demand.
    #[must_use]
    pub fn prediction(mut self, depth: PredictionDepth) -> Self {
        self.prediction = depth;
        self
    }

    /// How much memory the pages of a sealed object may take, each time it is attached: at least 1
    /// MiB. So an object may be larger than memory. Beyond it, pages that were decrypted first are
    /// dropped, and decrypted again when they are touched: of a reader at any time, of a writer by
    /// each psync, and none that was stored to since. A program that only reads an object that it
    /// has for writing psyncs it now and then. Not of objects with marked pages
    /// ([`Object::mark_dirty`](crate::Object::mark_dirty)), which devices may have pinned, and not
    /// in a pool that is opened for reading only. System calls on dropped pages are those on pages
    /// that were never touched: [`prefault`](crate::Object::prefault).
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Measures the prediction ([`Object::prediction`](crate::Object::prediction)): pages that are
    /// predicted are decrypted, and thrown away. For choosing a depth, as everything becomes slower
    /// by it.
    #[must_use]
    pub fn measure_prediction(mut self, measure: bool) -> Self {
        self.measure_prediction = measure;
        self
    }

    /// Models another medium, or a slower one: all reads and writes take the model's time, and all
    /// objects are filled. For measurements; not part of the stable interface.
    #[doc(hidden)]
    #[must_use]
    pub fn modelled(mut self, model: MediumModel) -> Self {
        self.model = Some(model);
        self
    }

    /// The medium, modelled if that is asked for.
    pub(super) fn model(&self, media: Media) -> Media {
        match self.model {
            Some(model) => media.modelled(model),
            None => media,
        }
    }

    /// Treats the pool's file as one that any program may have written: heaps are read-only, or
    /// verified ([`Heap::verify`](crate::Heap::verify)) before data in them are found by type. For
    /// a file that came from elsewhere.
    #[must_use]
    pub fn untrusted(mut self, untrusted: bool) -> Self {
        self.untrusted = untrusted;
        self
    }

    /// Leaves objects that are attached for reading to forked children: their bytes stay readable
    /// there. No writer can have such an object before the last child has dropped its handle, or is
    /// gone. All other calls of a child fail with [`Forked`](crate::ErrorKind::Forked).
    /// [`ReadObject::is_inherited`](crate::ReadObject::is_inherited) says whether it worked: not
    /// where pages are filled on demand, and not for a mapped file that cannot be opened again by
    /// way of /proc.
    #[must_use]
    pub fn inherit_reads(mut self, inherit: bool) -> Self {
        self.inherit_reads = inherit;
        self
    }

    /// How long to wait for locks of others: for an object that another process has attached and
    /// for a device that another process has, by default not at all; for the table while another
    /// process has it, by default 20 s; for locks of an object that a consistent cut needs, by
    /// default 20 s. See [`Pool::set_wait`](crate::Pool::set_wait).
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// A name for a new pool, at most 128 bytes.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// Formats over an existing pool or file. Everything in it is lost.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Addresses for the objects of a new pool: `len` bytes from `start`, both multiples of 2 MiB.
    /// By default a place is chosen that is far from those of the other pools of this host.
    #[must_use]
    pub fn window(mut self, start: u64, len: u64) -> Self {
        self.window = Some(Window { start, len });
        self
    }

    pub(super) fn settings(&self) -> Result<Settings, Cause> {
        let rung = self.tracking.rung();
        self.tracking.check()?;
        if self.fault_in && fault::reach().is_none() {
            let why = "pages are filled on demand only with userfaultfd (Linux 6.6), which this process does not have";
            return Err(Cause::Unsupported(why.into()));
        }
        if let Some(bytes) = self.memory_limit {
            if bytes < LEAST_MEMORY {
                let why = format!(
                    "a sealed object takes at least {LEAST_MEMORY} bytes of memory: the limit of {bytes} is too low"
                );
                return Err(Cause::Unsupported(why));
            }
            if fault::reach().is_none() {
                let why = "the memory of sealed objects is limited only with userfaultfd (Linux 6.6), which this process does not have";
                return Err(Cause::Unsupported(why.into()));
            }
        }
        Ok(Settings {
            rung,
            advice: self.advice,
            fault_in: self.fault_in,
            untrusted: self.untrusted,
            inherit_reads: self.inherit_reads,
            ahead_limit: self.ahead_limit.map_or(usize::MAX, |bytes| bytes as usize / PAGE),
            model: self.model,
            memory_limit: self.memory_limit.map(|bytes| bytes as usize / PAGE),
            prediction: PredictionParams { depth: self.prediction, measured: self.measure_prediction },
        })
    }

    pub(crate) fn as_media(&self, access: Access) -> media::OpenOptions {
        media::OpenOptions { choice: self.medium.choice(), access, allow_remote: self.allow_remote }
    }

    /// `known`: finds the windows to keep away from, unless one was asked for.
    pub(super) fn as_format(
        &self,
        (zeroed, spare): (bool, bool),
        known: impl FnOnce() -> Vec<Window>,
    ) -> FormatOptions {
        let known = if self.window.is_none() { known() } else { Vec::new() };
        FormatOptions {
            label: self.label.clone(),
            force: self.force,
            zeroed,
            spare,
            window: self.window,
            known,
        }
    }

    /// Makes, or takes over, the medium of a new pool.
    pub(super) fn create_media(&self, path: &Path, len: u64) -> Result<Media, Cause> {
        let exists = path.exists();
        if exists && self.force {
            self.refuse_in_use(path)?;
        }
        // A device is there already, and is its own length.
        let replace = exists && (self.force || !path.is_file());
        let options =
            media::CreateOptions { choice: self.medium.choice(), replace, allow_remote: self.allow_remote };
        // A page more, for the copy of the superblock.
        Ok(media::create(path, len.saturating_add(PAGE as u64), &options)?)
    }

    /// A pool that processes have open is not pulled from under them.
    fn refuse_in_use(&self, path: &Path) -> Result<(), Cause> {
        let media = match media::open(path, &self.as_media(Access::ReadWrite)) {
            // As mktemp makes it.
            Err(MediaError::Empty { .. }) => return Ok(()),
            opened => opened?,
        };
        let device = media.device();
        let is_free = device.try_lock(LockKey::Table, LockMode::Exclusive).map_err(StoreError::from)?;
        let mut held = (!is_free).then_some(LockKey::Table);
        for lane in (0..LANES).map(LockKey::Lane) {
            if device.probe(lane).map_err(StoreError::from)?.is_some() {
                held = Some(lane);
            }
        }
        let Some(key) = held else { return Ok(()) };
        let process = device.holder(key).map(|process| Holder::Process { process, writer: true });
        let holder = process.unwrap_or(Holder::Unknown);
        Err(StoreError::Held { holder, others: Others::default(), passing: false }.into())
    }
}

/// A device that is not blank has data of another use: every file system, partition table and
/// volume manager shows in the first MiB or in the last.
pub(super) fn refuse_data(path: &Path, media: &Media) -> Result<(), Cause> {
    let device = media.device();
    let mut bytes = vec![0; device.len().min(1 << 20) as usize];
    let mut blank = true;
    // Some keep a copy of their first bytes, or all of their data, at the end.
    for at in [0, device.len() - bytes.len() as u64] {
        device.read(at, &mut bytes).map_err(StoreError::from)?;
        blank &= bytes.iter().all(|byte| *byte == 0);
    }
    if blank {
        return Ok(());
    }
    let (path, choice) = (path.to_owned(), "a new pool");
    Err(media::MediaError::Unsuitable {
        path,
        choice,
        why: "it is not blank; format with force to overwrite it",
    }
    .into())
}
