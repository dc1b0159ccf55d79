use indelible_store::medium::MediumError;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    Read,
    Write,
    WriteDurable,
    Barrier,
    Zero,
    Reserve,
    /// `extend`: a failed one happened wholly or not at all.
    Extend,
    /// `discard`, which cannot fail: only [`Fault::Kill`] has an effect.
    Discard,
    Verify,
    Lock,
}

impl OpKind {
    pub const ALL: [OpKind; 10] = [
        OpKind::Read,
        OpKind::Write,
        OpKind::WriteDurable,
        OpKind::Barrier,
        OpKind::Zero,
        OpKind::Reserve,
        OpKind::Extend,
        OpKind::Discard,
        OpKind::Verify,
        OpKind::Lock,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `EIO`. A plain write has no effect; a durable write is visible whole, its durability
    /// undefined, as that of everything pending after a barrier.
    Io,
    /// `EIO` after a part of the bytes, by the seed, became visible; otherwise [`Fault::Io`].
    Short,
    /// `EIO` after all bytes are visible: done, and reported as failed.
    After,
    /// `ENOSPC`. A reservation, a plain write and `zero` have no effect. A part of a durable write,
    /// none or all is visible, by the seed; its durability is undefined.
    NoSpace,
    /// The file is gone, with the cause ("truncated", "deleted"). Effects of [`Fault::Io`].
    Gone(&'static str),
    /// The process dies in the call, a part of its bytes visible: its locks are released and its
    /// later operations fail.
    Kill,
    /// As [`Fault::Kill`], with all bytes visible and not durable.
    KillLate,
}

impl Fault {
    pub(super) fn error(self) -> MediumError {
        match self {
            Fault::Io | Fault::Short | Fault::After => eio(),
            Fault::NoSpace => enospc(),
            Fault::Gone(what) => MediumError::Gone { what },
            Fault::Kill | Fault::KillLate => killed(),
        }
    }
}

pub(super) fn eio() -> MediumError {
    const EIO: i32 = 5;
    MediumError::Io(io::Error::from_raw_os_error(EIO))
}

pub(super) fn enospc() -> MediumError {
    MediumError::Io(io::ErrorKind::StorageFull.into())
}

pub(super) fn killed() -> MediumError {
    MediumError::Io(io::Error::other("the simulated process was killed"))
}

struct Planned {
    kind: OpKind,
    at: u64,
    repeats: bool,
    fault: Fault,
}

#[derive(Default)]
pub(super) struct Faults {
    counts: [u64; OpKind::ALL.len()],
    met: u64,
    planned: Vec<Planned>,
}

impl Faults {
    pub(super) fn plan(&mut self, kind: OpKind, nth: u64, repeats: bool, fault: Fault) {
        let at = self.count(kind) + nth;
        self.planned.push(Planned { kind, at, repeats, fault });
    }

    pub(super) fn clear(&mut self) {
        self.planned.clear();
    }

    pub(super) fn count(&self, kind: OpKind) -> u64 {
        self.counts[kind as usize]
    }

    pub(super) fn met(&self) -> u64 {
        self.met
    }

    pub(super) fn next(&mut self, kind: OpKind) -> Option<Fault> {
        let now = self.count(kind);
        self.counts[kind as usize] += 1;
        let hits = |p: &&Planned| p.kind == kind && (p.at == now || p.repeats && p.at < now);
        let fault = self.planned.iter().rev().find(hits).map(|p| p.fault);
        self.met += u64::from(fault.is_some());
        fault
    }
}
