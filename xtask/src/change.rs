//! Files that changed since the last complete run of the tests, but for their comments.

use crate::programs;
use std::path::Path;
use std::process::Command;

/// Names the commit of that run; `cargo xtask test --all` says how to update it.
pub(crate) const RECORD: &str = ".ci/complete";

/// Whether code below one of the folders differs from the recorded commit. `true` if git cannot
/// tell: a step that may be needed runs.
pub(crate) fn touches(folders: &[&str]) -> bool {
    let Ok(project) = programs::project() else { return true };
    let Ok(commit) = std::fs::read_to_string(project.join(RECORD)) else { return true };
    differs(project, commit.trim(), folders)
}

fn differs(project: &Path, commit: &str, folders: &[&str]) -> bool {
    let mut diff = Command::new("git");
    // Its exit code knows nothing of ignored lines; its output has the others.
    diff.args(["diff", "-I^[[:space:]]*//", "-I^[[:space:]]+$", commit, "--"]);
    let output = diff.args(folders).current_dir(project).output();
    !output.is_ok_and(|output| output.status.success() && output.stdout.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};

    #[test]
    fn code_counts_as_changed_and_comments_do_not() {
        let folder = std::env::temp_dir().join(format!("indelible-change-{}", std::process::id()));
        create_dir_all(folder.join("a")).unwrap();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
            let done =
                Command::new("git").args(identity).args(arguments).current_dir(&folder).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        let file = |text: &str| write(folder.join("a/a.rs"), text).unwrap();
        file("// one\nlet a = 1;\n");
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "one"]);
        file("    // two\n\n/// three\nlet a = 1;\n");
        assert!(!differs(&folder, "HEAD", &["a"]));
        file("// one\nlet a = 2;\n");
        assert!(differs(&folder, "HEAD", &["a"]) && !differs(&folder, "HEAD", &["b"]));
        assert!(differs(&folder, "none", &["a"]), "git cannot tell");
        remove_dir_all(folder).unwrap();
    }
}
