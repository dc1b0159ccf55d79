//! `pmo-mount POOL DIR [OPTION,…]`: the process behind `pmo mount`. Prints `mounted` once programs
//! see the volume, or `error: …`; ends with the unmount.
//!
//! SIGTERM, SIGINT and SIGHUP unmount the volume, which makes all of it durable.

#![forbid(unsafe_code)]

mod attributes;
mod group;
mod options;
mod server;
mod state;

use fuser::{Config, MountOption, Session, SessionACL};
use nix::sys::signal::{SigSet, Signal};
use options::Options;
use server::Server;
use state::Shared;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

fn main() -> ExitCode {
    // Before mounts and unmounts run programs.
    indelible::keep_statuses();
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let done = Options::of(&arguments).and_then(|options| serve(&options));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stdout(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(options: &Options) -> Result<(), String> {
    // Before there are threads, which inherit the mask.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    signals.thread_block().map_err(|error| format!("cannot block signals: {error}"))?;
    detach_dead(&options.folder);
    let volume = options.open()?;
    let read_only = volume.is_read_only();
    let shared = Shared::new(volume).map_err(|error| format!("no eventfd: {error}"))?;
    let shared = Arc::new(shared);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(options.pool.display().to_string()),
        MountOption::Subtype("pmo".into()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
    ];
    if read_only {
        config.mount_options.push(MountOption::RO);
    }
    if options.allow_other {
        config.acl = SessionACL::All;
    }
    let session = Session::new(Server(Arc::clone(&shared)), &options.folder, &config);
    let mut session = session.map_err(|error| {
        format!(
            "cannot mount at {}: {error}; it takes /dev/fuse, and root or fusermount3",
            options.folder.display()
        )
    })?;
    let mut unmounter = session.unmount_callable();
    let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new()
            .name(name.into())
            .spawn(work)
            .map_err(|error| format!("no thread: {error}"))
    };
    let (ending, folder) = (Arc::clone(&shared), options.folder.clone());
    start(
        "signals",
        Box::new(move || {
            if signals.wait().is_err() {
                return;
            }
            // Open files keep it busy: their programs get ENOTCONN from here on.
            if unmounter.unmount().is_err() {
                detach(&folder);
            }
            std::process::exit(i32::from(ending.close().is_err()));
        }),
    )?;
    let periodic = Arc::clone(&shared);
    start("psync", Box::new(move || periodic.run()))?;
    let _ = writeln!(std::io::stdout(), "mounted");
    let ran = session.run().map_err(|error| format!("the session failed: {error}"));
    // Also without a FUSE destroy.
    shared.close()?;
    ran
}

/// Removes a dead process's mount, whose accesses are ENOTCONN. The mount that follows reports a
/// failure.
fn detach_dead(folder: &Path) {
    if std::fs::metadata(folder).is_err_and(|error| error.raw_os_error() == Some(libc::ENOTCONN)) {
        detach(folder);
    }
}

fn detach(folder: &Path) {
    for (program, options) in [("umount", &["-l"][..]), ("fusermount3", &["-u", "-z"])] {
        let ran = Command::new(program).args(options).arg(folder).stderr(Stdio::null()).status();
        if ran.is_ok_and(|status| status.success()) {
            return;
        }
    }
}
