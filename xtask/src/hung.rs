//! Ends programs that run too long: a hanging run fails by name.

use rustix::process::{Pid, Signal, kill_process};
use std::sync::mpsc;
use std::time::Duration;

/// Does `work`; after `limit` kills process `pid` with all descendants (of this process only
/// those), so that `work` fails. Returns its result, and whether the limit was reached.
pub(crate) fn within<T>(limit: Duration, pid: u32, work: impl FnOnce() -> T) -> (T, bool) {
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let mut reached = false;
            let mut wait = limit;
            // Repeatedly: a program may start another one meanwhile.
            while ended.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
                reached = true;
                wait = Duration::from_millis(200);
                kill(pid);
            }
            reached
        });
        let result = work();
        drop(done);
        (result, watch.join().unwrap_or(false))
    })
}

fn kill(pid: u32) {
    children(pid).into_iter().for_each(kill);
    let other = i32::try_from(pid).ok().filter(|_| pid != std::process::id()).and_then(Pid::from_raw);
    if let Some(other) = other {
        let _ = kill_process(other, Signal::KILL);
    }
}

fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn programs_that_hang_are_killed_with_those_that_they_started() {
        // The pipe stays open until both sleeps have ended.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 3600 & sleep 3600"]).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        let (output, reached) = within(Duration::from_millis(100), child.id(), || child.wait_with_output());
        assert!(reached && !output.unwrap().status.success());
        assert_eq!(within(Duration::from_secs(3600), 0, || 1), (1, false));
    }
}
