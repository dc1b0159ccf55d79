//! A clone on a mount whose process group, the server and git, is killed in the midst of commits.

use crate::support::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Hooks of `git commit` in their order, and the reference's state where the hook has several.
const PLACES: [(&str, &str); 6] = [
    ("pre-commit", ""),
    ("prepare-commit-msg", ""),
    ("commit-msg", ""),
    ("reference-transaction", "prepared"),
    ("reference-transaction", "committed"),
    ("post-commit", ""),
];

struct Repository {
    dir: PathBuf,
    hooks: PathBuf,
}

impl Repository {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.dir).args(["-c", "core.fsync=all", "-c", "gc.auto=0", "-c"]);
        git.arg(format!("core.hooksPath={}", self.hooks.display()));
        git.args(["-c", "user.name=pmo", "-c", "user.email=pmo@localhost", "-c", "commit.gpgSign=false"]);
        git.args(arguments).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
            git.env_remove(name);
        }
        git
    }

    #[track_caller]
    fn git(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        assert!(status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap().trim_end().to_owned()
    }

    fn write(&self, name: &str, round: usize) {
        let line = format!("{name} of round {round}\n");
        fs::write(self.dir.join(name), line.repeat(round * 300 + 1)).unwrap();
    }
}

fn source(folder: &Path) -> Repository {
    let source = Repository { dir: folder.join("source"), hooks: folder.join("none") };
    fs::create_dir(&source.dir).unwrap();
    source.git(&["init", "--quiet", "--initial-branch=main"]);
    for round in 0..3 {
        for file in 0..60 {
            source.write(&format!("file{file}"), round);
        }
        source.git(&["add", "--all"]);
        source.git(&["commit", "--quiet", "--message", "a round"]);
    }
    source
}

/// Kills the hook's process group at one place of a commit.
fn arm(hooks: &Path, (hook, state): (&str, &str)) {
    fs::create_dir_all(hooks).unwrap();
    let path = hooks.join(hook);
    fs::write(&path, format!("#!/bin/sh\n[ -z '{state}' ] || [ \"$1\" = '{state}' ] || exit 0\nkill -9 0\n"))
        .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn s2_22_a_clone_is_sound_after_the_machine_dies_in_a_commit() {
    let Some(place) = Place::new(64 << 20) else { return };
    if Command::new("git").arg("--version").output().is_err() {
        return indelible_testing::not_tested("a clone on a mount: it takes git");
    }
    let Some(mut mounted) = place.mount() else { return };
    let source = source(place.folder.path());
    let clone = Repository { dir: place.path("clone"), hooks: place.folder.path().join("hooks") };
    source.git(&["clone", "--quiet", "--no-hardlinks", ".", clone.dir.to_str().unwrap()]);
    for (round, at) in PLACES.into_iter().enumerate() {
        // A commit that fsync promised.
        clone.write("file1", round + 10);
        clone.write(&format!("new{round}"), 0);
        clone.git(&["add", "--all"]);
        clone.git(&["commit", "--quiet", "--message", "promised"]);
        fs::File::open(&place.dir).unwrap().sync_all().unwrap();
        let promised = clone.git(&["rev-parse", "HEAD"]);

        clone.write("file2", round + 20);
        arm(&clone.hooks, at);
        let mut dies = clone.command(&["commit", "--quiet", "--all", "--message", "dies"]);
        let died = dies.process_group(mounted.id().cast_signed()).output().unwrap();
        assert_eq!(died.status.signal(), Some(libc::SIGKILL), "{at:?}: {died:?}");
        mounted.kill();
        drop(mounted);
        fs::remove_dir_all(&clone.hooks).unwrap();

        mounted = place.mount().unwrap();
        assert_eq!(clone.git(&["fsck", "--full", "--strict", "--no-dangling"]), "", "{at:?}");
        let head = clone.git(&["rev-parse", "HEAD"]);
        if head != promised {
            assert!(["committed", ""].contains(&at.1) && round > 3, "{at:?}");
            assert_eq!(clone.git(&["rev-parse", "HEAD^"]), promised, "{at:?}");
        }
        // Git left its locks, as on any file system.
        for lock in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
            let _ = fs::remove_file(clone.dir.join(".git").join(lock));
        }
        let changed = clone.git(&["status", "--porcelain"]);
        assert!(["", "file2"].contains(&changed.trim_matches(['M', ' '])), "{at:?}: {changed}");
        clone.git(&["reset", "--hard", "--quiet"]);
    }
    mounted.end();
    let pool = indelible::Pool::open(&place.pool).unwrap();
    assert_eq!(indelible_posix::Volume::open(&pool, "files").unwrap().check(), [""; 0]);
}
