//! Files that have their names once they are whole and durable.

mod leftovers;
mod partial;

pub use leftovers::{left_beside, remove_left_beside, unfinished_name};
pub use partial::{Partial, expect_free, sync_folder_of};

use rustix::fs::OFlags;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Flags that open a name where other users may have put something: follow no link, wait for no
/// pipe.
pub const DIRECT: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits() as i32;

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != "").unwrap_or(Path::new("."))
}

fn is_at(file: &File, path: &Path) -> bool {
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    let (here, there) = (file.metadata().map(place), fs::symlink_metadata(path).map(place));
    here.is_ok_and(|here| there.is_ok_and(|there| here == there))
}
