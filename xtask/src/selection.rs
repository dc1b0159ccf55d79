//! Packages built apart from the workspace, alone or with features that its tests lack.
//!
//! cargo unifies features over selected packages: a single package would rebuild most dependencies
//! and their dependents. So `xtask-unified`, which asks for the workspace's features, is selected
//! beside it.

pub(crate) struct Selection(&'static [&'static str]);

const BESIDE: [&str; 2] = ["-p", "xtask-unified"];

pub(crate) const LIBPMO: Selection = Selection(&["-p", "indelible-capi"]);
pub(crate) const SQLITE: Selection = Selection(&["-p", "indelible-sqlite"]);
pub(crate) const PMO: Selection = Selection(&["-p", "indelible-cli"]);
pub(crate) const MOUNT: Selection = Selection(&["-p", "indelible-mount"]);
pub(crate) const REPLICATE: Selection = Selection(&["-p", "indelible-replicate"]);
pub(crate) const LIBPMO_TM: Selection = Selection(&["-p", "indelible-tm"]);

impl Selection {
    /// As for users, without what only tests need.
    pub(crate) fn alone<'a>(&self, command: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        [&[command], self.0, rest].concat()
    }

    /// The arguments between a `command` of cargo and the `rest`.
    pub(crate) fn of<'a>(&self, command: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        [&[command], self.0, &BESIDE, rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::cargo;
    use std::collections::BTreeSet;

    fn packages(selected: &[&str]) -> BTreeSet<String> {
        let mut tree = cargo(&["tree", "--offline", "--prefix", "none", "--format", "{p} {f}"]);
        let output = tree.args(selected).current_dir("..").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| line.trim_end_matches(" (*)").trim_end().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn no_selection_has_dependencies_built_a_second_time() {
        let workspace = packages(&["--workspace"]);
        assert!(workspace.len() > 100, "{workspace:?}");
        let python = Selection(&["-p", "indelible-python", "--features", "indelible-python/unified"]);
        for selection in [PMO, LIBPMO, LIBPMO_TM, SQLITE, python] {
            let mut others = packages(&selection.of("--edges=normal,build,dev", &[]));
            others.retain(|line| !workspace.contains(line));
            others.retain(|line| !line.starts_with("indelible-python "));
            assert!(
                others.is_empty(),
                "{:?} has features of dependencies that the workspace has not; xtask/unified/Cargo.toml says what it has: {others:?}",
                selection.0
            );
        }
        assert!(!packages(&["-p", "indelible-capi"]).is_subset(&workspace));
    }
}
