//! The operating system's error under a cause.

use super::Cause;
use crate::dirty::DirtyError;
use crate::mapping::MappingError;
use crate::media::MediaError;
use crate::shadow::ShadowError;
use indelible_store::error::StoreError;
use indelible_store::medium::MediumError;
use rustix::io::Errno;
use std::io;

impl Cause {
    pub(super) fn system(&self) -> Option<&io::Error> {
        match self {
            Cause::Store(error) => of_store(error),
            Cause::Media(error) => of_media(error),
            Cause::Anchor(error) => Some(&error.source),
            Cause::Mapping(error) | Cause::Shadow(ShadowError::Mapping(error)) => of_mapping(error),
            Cause::Dirty(error) | Cause::Shadow(ShadowError::Dirty(error)) => of_dirty(error),
            Cause::Shadow(ShadowError::Serve(source) | ShadowError::Protect(source)) => Some(source),
            Cause::Shadow(error @ ShadowError::Page(_)) => error.medium().and_then(of_medium),
            Cause::KeySource(error) => error.system(),
            Cause::Shared(error) => error.system(),
            _ => None,
        }
    }

    pub(super) fn is_of_device(&self) -> bool {
        let error = self.system().and_then(Errno::from_io_error);
        error.is_some_and(|error| {
            matches!(
                error,
                Errno::IO
                    | Errno::NXIO
                    | Errno::NODEV
                    | Errno::REMOTEIO
                    | Errno::BADMSG
                    | Errno::TIMEDOUT
                    | Errno::UCLEAN
            )
        })
    }

    pub(super) fn limit(&self) -> Option<&'static str> {
        match Errno::from_io_error(self.system()?)? {
            Errno::MFILE => {
                Some("raise the limit of open files (ulimit -n): each attached object takes up to two")
            }
            Errno::NFILE => Some("raise the machine's limit of open files (sysctl fs.file-max)"),
            Errno::NOMEM => Some(
                "free memory, or raise the limit of mappings (sysctl vm.max_map_count): each attached object takes some",
            ),
            _ => None,
        }
    }
}

fn of_store(error: &StoreError) -> Option<&io::Error> {
    match error {
        StoreError::Medium(error)
        | StoreError::Failed(error)
        | StoreError::NotApplied(error)
        | StoreError::EntryRefused { cause: Some(error), .. } => of_medium(error),
        StoreError::LaneRefused { cause, .. } => of_store(cause),
        _ => None,
    }
}

fn of_medium(error: &MediumError) -> Option<&io::Error> {
    match error {
        MediumError::Io(error) => Some(error),
        _ => None,
    }
}

fn of_media(error: &MediaError) -> Option<&io::Error> {
    match error {
        MediaError::Io { source, .. } | MediaError::Barrier { source, .. } => Some(source),
        MediaError::Medium { source, .. } => of_medium(source),
        _ => None,
    }
}

fn of_mapping(error: &MappingError) -> Option<&io::Error> {
    match error {
        MappingError::Io { source, .. } => Some(source),
        _ => None,
    }
}

fn of_dirty(error: &DirtyError) -> Option<&io::Error> {
    match error {
        DirtyError::Io { source, .. } | DirtyError::Unavailable { source, .. } => Some(source),
        DirtyError::Restless => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use indelible_store::error::StoreError;
    use indelible_store::medium::MediumError;
    use std::io;

    #[test]
    fn the_kernel_log_is_advice_for_errors_of_devices_alone() {
        let medium = |number| MediumError::Io(io::Error::from_raw_os_error(number));
        for (number, of_device) in
            [(libc::EIO, true), (libc::EUCLEAN, true), (libc::EACCES, false), (libc::ENOLCK, false)]
        {
            for cause in [StoreError::Medium(medium(number)), StoreError::Failed(medium(number))] {
                let error = Error::new("psync", cause);
                assert_eq!(error.remedy().contains("kernel log"), of_device, "{number}: {error}");
            }
        }
    }
}
