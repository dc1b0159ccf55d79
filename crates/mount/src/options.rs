//! The volume to mount, the place, and the options.

use indelible::{ErrorKind, Pool, PoolOptions};
use indelible_posix::Volume;
use std::ffi::OsString;
use std::path::PathBuf;

const VOLUME: &str = "files";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) pool: PathBuf,
    pub(crate) folder: PathBuf,
    volume: String,
    snapshot: Option<String>,
    read_only: bool,
    pub(crate) allow_other: bool,
}

impl Options {
    pub(crate) fn of(arguments: &[OsString]) -> Result<Options, String> {
        let ([pool, folder] | [pool, folder, _]) = arguments else {
            return Err("usage: pmo-mount POOL DIR [OPTION,…]".into());
        };
        let mut options = Options {
            pool: pool.into(),
            folder: folder.into(),
            volume: VOLUME.into(),
            snapshot: None,
            read_only: false,
            allow_other: false,
        };
        let list = arguments.get(2).map(|list| list.to_string_lossy().into_owned()).unwrap_or_default();
        for option in list.split(',').filter(|option| !option.is_empty()) {
            match option.split_once('=').unwrap_or((option, "")) {
                ("volume", name) => options.volume = name.into(),
                ("snapshot", name) => options.snapshot = Some(name.into()),
                ("ro", "") => options.read_only = true,
                ("allow_other", "") => options.allow_other = true,
                ("rw" | "default_permissions", "") => {}
                _ => {
                    return Err(format!(
                        "unknown option {option:?}; there are volume=NAME, snapshot=NAME, ro, allow_other"
                    ));
                }
            }
        }
        Ok(options)
    }

    pub(crate) fn open(&self) -> Result<Volume, String> {
        let pool = match Pool::open(&self.pool) {
            Err(error) if error.kind() == ErrorKind::ReadOnly => {
                PoolOptions::new().read_only(true).open(&self.pool)
            }
            opened => opened,
        };
        let pool = pool.map_err(|error| error.to_string())?;
        let volume = match &self.snapshot {
            Some(snapshot) => Volume::open_read(&pool, snapshot),
            None if self.read_only => Volume::open_read(&pool, &self.volume),
            None => Volume::open(&pool, &self.volume),
        };
        volume.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_a_list() {
        let of = |list: &str| Options::of(&["pool".into(), "dir".into(), list.into()]);
        let options = of("snapshot=monday,allow_other,rw").unwrap();
        assert_eq!((options.snapshot.as_deref(), options.allow_other), (Some("monday"), true));
        assert_eq!(of("").unwrap(), Options::of(&["pool".into(), "dir".into()]).unwrap());
        assert!(of("writeback").unwrap_err().contains("writeback"));
    }
}
