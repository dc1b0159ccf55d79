//! Report of this machine's features, with advice on missing ones.

mod mount;
mod secrets;

use crate::dirty::Rung;
use crate::error::{Error, ErrorKind};
use crate::fault;
use crate::media::{self, Access, Media, OpenOptions};
use crate::pool::{MediumKind, identity};
use crate::protection::{self, Means};
use crate::sys::fault_ring::Seen;
use crate::sys::uffd::Reach;
use crate::sys::{Facilities, UffdAccess};
use indelible_store::format::VERSION;
use indelible_store::store::Store;
use std::path::Path;

/// One thing that a machine offers or lacks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Facility {
    /// Name of the facility.
    pub name: &'static str,
    /// Whether it is there; `None`: not applicable.
    pub available: Option<bool>,
    /// Finding.
    pub found: String,
    /// Purpose, or advice if it is missing.
    pub advice: String,
}

/// Report of [`doctor`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Doctor {
    /// Everything found, most important first.
    pub facilities: Vec<Facility>,
    /// The tracking rung that will be used.
    pub tracking: String,
    /// Detected kind of the path's medium.
    pub medium: Option<MediumKind>,
}

/// Examines the machine, and `path` if given: a pool, or a place for one.
#[must_use]
pub fn doctor(path: Option<&Path>) -> Doctor {
    let found = Facilities::gather();
    let mut facilities = vec![
        fact("kernel", &found.kernel, "6.7 or later tracks stores fastest; 5.x works"),
        Facility {
            name: "tracking wp-async",
            available: Some(Rung::WpAsync.available()),
            found: format!(
                "userfaultfd WP_ASYNC {}, PAGEMAP_SCAN {}",
                yes(found.wp_async),
                yes(found.pagemap_scan)
            ),
            advice: if Rung::WpAsync.available() {
                "stores are noticed by the kernel".into()
            } else {
                obstacle(&found).into()
            },
        },
        Facility {
            name: "tracking mprotect",
            available: Some(true),
            found: "always there".into(),
            advice: "system calls that write into an object fail with EFAULT on this rung, and a thread or handler that stores with \
                     SIGSEGV blocked ends the process: leave SIGSEGV out of signal masks"
                .into(),
        },
        fault_log(&found),
        fault_in(&found),
        protection_keys(&found),
        secrets::swap(&crate::sys::swap::readable()),
        secrets::tpm(),
        fact("flush instructions", &found.instructions.join(" "), "used on DAX and memory media"),
        fact("page size", &format!("{} bytes", found.page_size), "4096 is supported"),
        fact("address bits", &found.va_bits.to_string(), "objects live in the upper half"),
        fact(
            "mappings per process",
            &found.max_map_count.to_string(),
            "sysctl vm.max_map_count raises it; each attached object takes one or more",
        ),
        fact(
            "open files",
            &found.open_files.map_or("no limit".to_owned(), |files| files.to_string()),
            "ulimit -n raises it; each attached object takes up to two",
        ),
        fact(
            "pid namespace",
            if found.pid_namespace == 0 { "the machine's first" } else { "one of its own" },
            "processes of other namespaces that have an object are shown by their ID there, without a name",
        ),
    ];
    let medium = path.and_then(|path| examine(path, &mut facilities));
    Doctor { facilities, tracking: Rung::best().to_string(), medium }
}

fn protection_keys(found: &Facilities) -> Facility {
    let means = protection::means();
    Facility {
        name: "protection keys",
        available: Some(means == Means::Keys),
        found: match found.protection_keys {
            Ok(()) => "keys are used".into(),
            Err(lack) => format!("mprotect is used: {}", lack.why()),
        },
        advice: match means {
            Means::Keys => "contexts of threads are a thread's own, without a system call",
            Means::Mprotect => {
                "what a thread's contexts allow is open to the whole process meanwhile, by system calls"
            }
        }
        .into(),
    }
}

fn fault_log(found: &Facilities) -> Facility {
    const NAMED: &str =
        "with tracking by fault-log the cost of psync follows the changes at any size of the object";
    let found = match found.fault_log {
        Ok(Seen::All) => Ok("perf_event_open logs faults, those of system calls as well"),
        Ok(Seen::User) => Ok("perf_event_open logs faults of user code"),
        Err(error) => Err(format!("perf_event_open: {}", std::io::Error::from_raw_os_error(error))),
    };
    let lacks = "psync scans the part of an object that is in memory, about 0.2 ms per GiB: set kernel.perf_event_paranoid to 2 or less, \
                 allow the system call perf_event_open in the seccomp filter (of the container), or raise ulimit -l";
    let (available, found, advice) = match found {
        Ok(found) => (true, found.to_owned(), NAMED),
        Err(found) => (false, found, lacks),
    };
    Facility { name: "fault log", available: Some(available), found, advice: advice.to_owned() }
}

fn fault_in(found: &Facilities) -> Facility {
    let (available, found, advice) = match (fault::reach(), found.uffd) {
        (Some(Reach::Full), _) => {
            (true, "userfaultfd sees faults of system calls", "large objects on device-DAX attach at once")
        }
        (Some(Reach::UserMode), _) => (
            false,
            "userfaultfd sees faults of user code only",
            "large objects on device-DAX attach at once, and system calls on pages that were not touched fail with EFAULT: prefault \
             them (Object::prefault, pmo_prefault); sysctl vm.unprivileged_userfaultfd=1 changes that",
        ),
        (None, UffdAccess::None) => (
            false,
            "no userfaultfd",
            "objects on device-DAX are copied whole at attach; allow the system call userfaultfd in the seccomp filter (of the \
             container), if that is what refuses it",
        ),
        (None, _) => (
            false,
            "userfaultfd cannot report pages that cannot be read",
            "objects on device-DAX are copied whole at attach; Linux 6.6 or later fills them on demand",
        ),
    };
    let (found, advice) = (found.to_owned(), advice.to_owned());
    Facility { name: "fault-in", available: Some(available), found, advice }
}

fn obstacle(found: &Facilities) -> &'static str {
    if !found.proc {
        return "mount /proc; until then stores are noticed by page protection";
    }
    if found.version() < (6, 7) {
        return "use Linux 6.7 or later; until then stores are noticed by page protection";
    }
    match found.refusal {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            "this kernel may have it, but refuses the system call userfaultfd: allow it in the seccomp filter (of the container)"
        }
        _ => "this kernel was built without it; stores are noticed by page protection",
    }
}

fn fact(name: &'static str, found: &str, advice: &str) -> Facility {
    Facility { name, available: None, found: found.to_owned(), advice: advice.to_owned() }
}

fn yes(there: bool) -> &'static str {
    if there { "yes" } else { "no" }
}

fn examine(path: &Path, facilities: &mut Vec<Facility>) -> Option<MediumKind> {
    let opened = if path.is_dir() {
        let probe = path.join(format!(".pmo-doctor-{}", std::process::id()));
        let made = media::create(&probe, 1 << 20, &media::CreateOptions::default());
        let _ = std::fs::remove_file(&probe);
        made
    } else {
        media::open(path, &OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() })
    };
    match opened {
        Ok(media) => {
            let kind = MediumKind::from(media.kind());
            facilities.push(Facility {
                name: "medium",
                available: Some(true),
                found: match path.is_dir() {
                    true => format!("a pool in {} would be taken for {}", path.display(), kind.word()),
                    false => format!("{} is taken for {}", path.display(), kind.word()),
                },
                advice: match kind {
                    MediumKind::File => "one durable write per psync; group commit across threads".into(),
                    MediumKind::Memory => "survives the process, not the power".into(),
                    _ => "stores and fences, no system calls".into(),
                },
            });
            if kind == MediumKind::File {
                facilities.extend(mount::facts(path));
            }
            if let Some(exclusion) = media.exclusion().filter(|_| !path.is_dir()) {
                facilities.push(Facility {
                    name: "one writer",
                    available: Some(exclusion.safe),
                    found: exclusion.found.into(),
                    advice: exclusion.advice.into(),
                });
            }
            facilities.push(pool(&media, path));
            Some(kind)
        }
        Err(error) => {
            facilities.push(Facility {
                name: "medium",
                available: Some(false),
                found: error.to_string(),
                advice: match &error {
                    media::MediaError::Empty { .. } => {
                        "`pmo format --force` makes a pool of it, if you say how large it is to be"
                    }
                    _ if path
                        .parent()
                        .is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.exists()) =>
                    {
                        "make the folder first, or check the path"
                    }
                    _ => "choose a regular file on a local file system, a block device or a DAX device",
                }
                .into(),
            });
            None
        }
    }
}

fn pool(media: &Media, path: &Path) -> Facility {
    let found = Store::open(media.device().clone(), identity());
    match found.map_err(|cause| Error::new("open", cause).pool(path)) {
        Ok(store) => {
            let release = store.superblock().release();
            let found = format!("a pool of format {VERSION}, made or upgraded by release {release}");
            Facility { name: "pool", available: Some(true), found, advice: "this software can use it".into() }
        }
        Err(error) if error.kind() == ErrorKind::NotAPool => fact("pool", "none", "`pmo format` makes one"),
        Err(error) => Facility {
            name: "pool",
            available: Some(false),
            found: error.to_string(),
            advice: error.remedy().into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_obstacle() {
        let mut found = Facilities::gather();
        found.proc = true;
        for (kernel, refusal, word) in [
            ("6.1.0-18-amd64", Some(libc::EPERM), "use Linux 6.7"),
            ("6.18.1", Some(libc::EPERM), "seccomp"),
            ("7.0-rc1", Some(libc::ENOSYS), "seccomp"),
            ("6.18.1", Some(libc::EINVAL), "built without"),
            ("6.18.1", None, "built without"),
            ("5", None, "use Linux 6.7"),
        ] {
            (found.kernel, found.refusal) = (kernel.to_owned(), refusal);
            assert!(obstacle(&found).contains(word), "{kernel}: {}", obstacle(&found));
        }
        found.proc = false;
        assert!(obstacle(&found).contains("mount /proc"));
    }
}
