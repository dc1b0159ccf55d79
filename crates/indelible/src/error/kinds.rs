use super::{Cause, ErrorKind};
use crate::backing::BackingError;
use crate::dirty::DirtyError;
use crate::mapping::MappingError;
use crate::media::MediaError;
use crate::memory::MemoryError;
use crate::shadow::ShadowError;
use indelible_store::error::{Holder, SealError, StoreError};
use indelible_store::medium::MediumError;

pub(super) fn store_kind(error: &StoreError) -> ErrorKind {
    match error {
        StoreError::Medium(error) | StoreError::EntryRefused { cause: Some(error), .. } => medium_kind(error),
        StoreError::Failed(MediumError::Gone { .. }) | StoreError::NotApplied(MediumError::Gone { .. }) => {
            ErrorKind::Gone
        }
        StoreError::Failed(_) | StoreError::NotApplied(_) => ErrorKind::Io,
        StoreError::NoSpace => ErrorKind::NoSpace,
        StoreError::LaneRefused { cause, .. } | StoreError::Part { cause, .. } => store_kind(cause),
        StoreError::NotAPool => ErrorKind::NotAPool,
        StoreError::Version { .. }
        | StoreError::Features { .. }
        | StoreError::Upgrading
        | StoreError::ObjectFeature { .. }
        | StoreError::SectionKind { .. } => ErrorKind::Version,
        StoreError::Truncated { .. } => ErrorKind::Gone,
        StoreError::BadLength { .. }
        | StoreError::Length(_)
        | StoreError::BadSize { .. }
        | StoreError::BadRange { .. } => ErrorKind::BadSize,
        StoreError::AlreadyAPool => ErrorKind::PoolExists,
        StoreError::NoRoom { .. } => ErrorKind::NoRoom,
        StoreError::NoAddresses { .. } | StoreError::AddressesTaken { .. } => ErrorKind::NoAddresses,
        StoreError::BadWindow { .. } => ErrorKind::BadWindow,
        StoreError::NotFound | StoreError::NotItsSnapshot { .. } => ErrorKind::NotFound,
        StoreError::Exists => ErrorKind::Exists,
        StoreError::BadName { .. } | StoreError::BadLabel { .. } => ErrorKind::BadName,
        StoreError::WrongKey => ErrorKind::WrongKey,
        StoreError::ObjectReadOnly => ErrorKind::ObjectReadOnly,
        StoreError::Held { .. } => ErrorKind::Held,
        StoreError::MemoryLeft { .. } => ErrorKind::NeedsRecovery,
        StoreError::VolatileGone => ErrorKind::VolatileGone,
        StoreError::TieCycle => ErrorKind::TieCycle,
        StoreError::TieTarget => ErrorKind::ObjectReadOnly,
        StoreError::TooManyTies { .. } => ErrorKind::TooManyTies,
        StoreError::BootUnknown => ErrorKind::Unsupported,
        StoreError::NotSound { .. } => ErrorKind::Damaged,
        StoreError::TableBusy { .. }
        | StoreError::TableInMotion { .. }
        | StoreError::HeldStill { .. }
        | StoreError::Changing { .. }
        | StoreError::NoLane { .. } => ErrorKind::Busy,
        StoreError::NeedsRecovery => ErrorKind::NeedsRecovery,
        StoreError::Poisoned => ErrorKind::Poisoned,
        StoreError::DifferentPools => ErrorKind::DifferentPools,
        StoreError::Class(_) => ErrorKind::ClassMismatch,
        StoreError::Seal(error) => seal_kind(error),
        StoreError::NotAnnounced { .. } | StoreError::OutOfTablePages => ErrorKind::Internal,
        _ => ErrorKind::Damaged,
    }
}

fn medium_kind(error: &MediumError) -> ErrorKind {
    match error {
        MediumError::OutOfBounds { .. } => ErrorKind::Damaged,
        MediumError::Gone { .. } => ErrorKind::Gone,
        MediumError::ReadOnly => ErrorKind::ReadOnly,
        MediumError::NoLocks => ErrorKind::Unsuitable,
        MediumError::Faulted => ErrorKind::Poisoned,
        MediumError::Io(_) => ErrorKind::Io,
    }
}

pub(super) fn media_kind(error: &MediaError) -> ErrorKind {
    match error {
        MediaError::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NoPool,
            std::io::ErrorKind::AlreadyExists => ErrorKind::PoolExists,
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                ErrorKind::ReadOnly
            }
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        },
        MediaError::Barrier { .. } => ErrorKind::Io,
        MediaError::Kind { .. }
        | MediaError::Remote { .. }
        | MediaError::Unreachable { .. }
        | MediaError::Unsuitable { .. } => ErrorKind::Unsuitable,
        MediaError::InUse { .. } => ErrorKind::Busy,
        MediaError::Empty { .. } => ErrorKind::NotAPool,
        MediaError::Medium { source, .. } => medium_kind(source),
    }
}

pub(super) fn mapping_kind(error: &MappingError) -> ErrorKind {
    match error {
        MappingError::Occupied { .. } => ErrorKind::AddressTaken,
        MappingError::Range { .. } => ErrorKind::NoAddresses,
        MappingError::Io { .. } => ErrorKind::Io,
    }
}

pub(super) fn memory_kind(error: &MemoryError) -> ErrorKind {
    match error {
        MemoryError::Store(error) => store_kind(error),
        MemoryError::Lost { .. } => ErrorKind::Gone,
        MemoryError::Damaged { .. } => ErrorKind::Damaged,
        MemoryError::Backing(error) => backing_kind(error),
    }
}

pub(super) fn backing_kind(error: &BackingError) -> ErrorKind {
    match error {
        BackingError::NoBoot => ErrorKind::Unsupported,
        BackingError::InUse { .. } => ErrorKind::Held,
        BackingError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            ErrorKind::NoSpace
        }
        BackingError::Exists { .. } | BackingError::Foreign { .. } | BackingError::Io { .. } => ErrorKind::Io,
        BackingError::Damaged { .. } => ErrorKind::Damaged,
        BackingError::OfOriginal { .. } => ErrorKind::Gone,
        BackingError::Version { .. } => ErrorKind::Version,
        BackingError::NoRoom { .. } => ErrorKind::NoSpace,
        BackingError::Mapping(error) => mapping_kind(error),
    }
}

pub(super) fn memory_remedy(error: &MemoryError) -> Option<&'static str> {
    match error {
        MemoryError::Lost { .. } => Some(
            "attach it where the memory is, if the process that died had another /dev/shm, as in a container; `Pool::give_memory_up` and \
             `pmo set --give-memory-up` go on without these commits",
        ),
        MemoryError::Damaged { .. } | MemoryError::Backing(BackingError::Damaged { .. }) => Some(
            "keep a copy of the file if you want to look into it; `Pool::give_memory_up` and `pmo set --give-memory-up` go on without the \
             commits that it has",
        ),
        MemoryError::Backing(BackingError::OfOriginal { .. }) => Some(
            "`pmo recover` brings the commits to the original, and `pmo clone` copies it with them; `Pool::give_memory_up` and \
             `pmo set --give-memory-up` go on with the copy as it is; if this is the original, move it back to that path",
        ),
        MemoryError::Backing(BackingError::Foreign { .. }) => Some(
            "if another user's process died with commits in it, have that user attach the object; else see who made it",
        ),
        MemoryError::Backing(BackingError::Version { .. }) => Some(
            "attach the object once with the release that the program had which died: that brings its commits to the pool; `Pool::give_memory_up` and \
             `pmo set --give-memory-up` go on without them",
        ),
        MemoryError::Backing(BackingError::InUse { holder: Holder::Own { .. }, .. }) => Some(
            "an attach of this process failed, and its commits stay there as long as it has other objects on demand of the pool: detach these, \
             and attach again",
        ),
        MemoryError::Backing(BackingError::InUse { .. }) => {
            Some("wait until that process has ended, or recovered the objects")
        }
        MemoryError::Backing(BackingError::NoRoom { .. }) => {
            Some("free memory in /dev/shm, or space beside the pool")
        }
        _ => None,
    }
}

pub(super) fn dirty_kind(error: &DirtyError) -> ErrorKind {
    match error {
        DirtyError::Unavailable { .. } => ErrorKind::Unsupported,
        DirtyError::Io { .. } => ErrorKind::Io,
        DirtyError::Restless => ErrorKind::Busy,
    }
}

pub(super) fn shadow_kind(error: &ShadowError) -> ErrorKind {
    match error {
        ShadowError::Mapping(error) => mapping_kind(error),
        ShadowError::Dirty(error) => dirty_kind(error),
        ShadowError::Unlimited => ErrorKind::Unsupported,
        error => match (error.store(), error.medium()) {
            (Some(error), _) => store_kind(error),
            (None, Some(error)) => medium_kind(error),
            (None, None) if error.is_of_lost_word() => ErrorKind::Damaged,
            (None, None) => ErrorKind::Io,
        },
    }
}

fn seal_kind(error: &SealError) -> ErrorKind {
    match error {
        SealError::WrongKey { .. } => ErrorKind::WrongKey,
        SealError::Broken { .. } | SealError::NotSigned | SealError::BadSignature => ErrorKind::Damaged,
        SealError::Unknown { .. } => ErrorKind::Version,
        SealError::PoolBehind { .. } => ErrorKind::PoolBehind,
        SealError::AnchorBehind { .. } | SealError::RecordBehind { .. } => ErrorKind::AnchorBehind,
        _ => ErrorKind::Sealed,
    }
}

pub(super) const LOST_WORD: &str = "store the whole word anew in a transaction, or restore the object from a backup; `pmo scrub` lists all such words";

pub(super) fn seal_remedy(cause: &Cause) -> Option<&'static str> {
    let error = match cause {
        Cause::Store(error) => Some(error),
        Cause::Shadow(error) if error.is_of_lost_word() => return Some(LOST_WORD),
        Cause::Shadow(error) => error.store(),
        _ => None,
    };
    match error {
        Some(StoreError::Seal(SealError::Broken { .. })) => Some(
            "restore the pool's file as a whole from a copy; `pmo repair` has no key, and cannot mend it",
        ),
        Some(StoreError::Seal(SealError::WrongKey { .. })) => {
            Some("give the seal key of one of its key slots; `pmo key list` shows them")
        }
        Some(StoreError::Seal(SealError::NotSigned | SealError::BadSignature)) => Some(
            "if the verify key is right, another program changed the pool, or this object in it: go back to a backup or a snapshot that the key verifies",
        ),
        Some(StoreError::Seal(SealError::AnotherIdentity)) => Some(
            "if it is meant, say the name under which it was sealed, by `SealKey::sealed_as` or --sealed-as; `Pool::bind_name` and `pmo key bind` seal it under its own",
        ),
        Some(StoreError::Seal(SealError::NoIdentity)) => {
            Some("`Pool::bind_name` and `pmo key bind` seal it under its name")
        }
        Some(StoreError::Seal(SealError::NameSealed)) => {
            Some("`Pool::rename_sealed` renames it, and `pmo mv` with --seal-key-file say")
        }
        Some(StoreError::Seal(SealError::VerifyKeyNeeded)) => {
            Some("`SealKey::verified_by` has the key that verifies, --verify-key-file names it for `pmo`")
        }
        Some(StoreError::Seal(SealError::SignKeyNeeded)) => {
            Some("`SealKey::signed_by` has the key that signs, --sign-key-file names it for `pmo`")
        }
        Some(StoreError::Seal(SealError::KeyNeeded)) => Some(
            "`Pool::attach_sealed` attaches it by a seal key, and commands of `pmo` take one, by --seal-key-file say",
        ),
        Some(StoreError::Seal(SealError::Device { .. })) => {
            Some("give the key of another slot; `pmo key list` shows them")
        }
        Some(StoreError::Seal(SealError::NotSealed)) => Some("`pmo create --sealed` makes a sealed one"),
        Some(StoreError::Seal(SealError::BadKey { .. })) => Some("`pmo key --help` shows how keys are made"),
        _ => None,
    }
}
