//! Packages as dependents get them: complete, and compiled from their content alone by the oldest
//! declared compiler.

use crate::command::{Result, by_hand, cargo};
use crate::plan::Outcome;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

const FILES: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
const FIELDS: [&str; 7] =
    ["description", "license", "readme", "keywords", "categories", "rust_version", "edition"];
/// Public features, with their package. All others begin with `__`
/// (docs/decisions/0065-private-features.md).
const FEATURES: [(&str, &str); 3] =
    [("indelible", "allocator-api2"), ("indelible", "serde"), ("indelible", "tracing")];

struct Published(Vec<Value>);

impl Published {
    fn list() -> Result<Published> {
        let metadata = output(&["metadata", "--no-deps", "--format-version", "1", "--offline"])?;
        let metadata: Value =
            serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
        let all = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
        let published: Vec<_> = all.iter().filter(|package| package["publish"].is_null()).cloned().collect();
        if published.is_empty() {
            Err("no package may be published".into())
        } else {
            Ok(Published(published))
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|package| package["name"].as_str())
    }

    fn compile(&self, command: &[&str]) -> Result<Outcome> {
        let mut arguments = command.to_vec();
        self.names().for_each(|name| arguments.extend(["-p", name]));
        let version = self.0[0]["rust_version"].as_str().unwrap_or_default();
        let Some(toolchain) = toolchain(version) else {
            compile(&mut cargo(&arguments), &arguments)?;
            if is_in_use(version) {
                return Ok(Outcome::Passed);
            }
            return Ok(Outcome::PassedWithout(vec![format!(
                "whether the packages compile with Rust {version}, which they declare: \
                 rustup toolchain install {version}"
            )]));
        };
        let mut oldest = Command::new("rustup");
        oldest.args(["run", &toolchain, "cargo"]).args(&arguments);
        compile(&mut oldest, &arguments)?;
        Ok(Outcome::Passed)
    }
}

pub(crate) fn complete() -> Result<Outcome> {
    let published = Published::list()?;
    let all: Vec<&Value> = published.0.iter().collect();
    let mut wrong = Vec::new();
    for (package, name) in all.iter().zip(published.names()) {
        let files = output(&["package", "--list", "--allow-dirty", "--offline", "-p", name])?;
        wrong.extend(lacks(package, &files, &all).into_iter().map(|what| format!("{name}: {what}")));
    }
    if !wrong.is_empty() {
        return Err(format!("packages that cannot be published:\n{}", wrong.join("\n")));
    }
    println!("== complete: {} packages", all.len());
    Ok(Outcome::Passed)
}

pub(crate) fn check() -> Result<Outcome> {
    Published::list()?.compile(&["check", "--offline"])
}

pub(crate) fn unpacked() -> Result<Outcome> {
    let published = Published::list()?;
    forget_unpacked(&published.0.iter().collect::<Vec<_>>())
        .map_err(|error| format!("cannot remove packages of an earlier run: {error}"))?;
    published.compile(&["package", "--offline", "--allow-dirty"])
}

pub(crate) fn dependencies() -> Result<Outcome> {
    if !cargo(&["deny", "--version"]).output().is_ok_and(|output| output.status.success()) {
        let why =
            "licences, sources and known defects of dependencies: cargo install --locked --debug cargo-deny";
        return Ok(Outcome::NotTested(why.into()));
    }
    crate::command::step("dependencies", &["deny", "check", "licenses", "bans", "sources"])?;
    // The list of known defects comes from a network.
    if !cargo(&["deny", "fetch", "db"]).status().is_ok_and(|status| status.success()) {
        let parts = vec!["known defects of dependencies: their list could not be fetched".into()];
        return Ok(Outcome::PassedWithout(parts));
    }
    let advisories = ["deny", "check", "advisories"];
    crate::command::step("known defects of dependencies", &advisories).map(|()| Outcome::Passed)
}

/// Removes unpacked packages of an earlier run: cargo unpacks once per workspace path and version,
/// and would compile against old content.
fn forget_unpacked(published: &[&Value]) -> std::io::Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let Some(Ok(registries)) = home.map(|home| home.join("registry/src").read_dir()) else { return Ok(()) };
    for registry in registries {
        let registry = registry?;
        // Names of others begin with their host; this one is a folder.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for package in published {
            let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
            let unpacked = registry.path().join(format!("{}-{}", text("name"), text("version")));
            if unpacked.is_dir() {
                std::fs::remove_dir_all(unpacked)?;
            }
        }
    }
    Ok(())
}

/// In its own folder: another compiler would rebuild everything.
fn compile(command: &mut Command, arguments: &[&str]) -> Result {
    println!("\n== packages: cargo {}", arguments.join(" "));
    let begin = Instant::now();
    let status = by_hand(command)
        .env("CARGO_TARGET_DIR", "target/packages")
        // Their debug information is unused.
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .status()
        .map_err(|error| format!("cannot compile the packages: {error}"))?;
    println!("== packages: {:.0} s", begin.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err("the packages do not compile from their content".into()) }
}

/// Reasons not to publish a package with these files.
fn lacks(package: &Value, files: &str, published: &[&Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in FILES {
        if !files.lines().any(|line| line == file) {
            wrong.push(format!("has no {file}"));
        }
    }
    for field in FIELDS {
        let value = &package[field];
        if value.is_null() || value.as_array().is_some_and(Vec::is_empty) {
            wrong.push(format!("states no {field}"));
        }
    }
    let name = package["name"].as_str().unwrap_or_default();
    for feature in package["features"].as_object().into_iter().flat_map(|features| features.keys()) {
        if !feature.starts_with("__") && !FEATURES.contains(&(name, feature)) {
            wrong.push(format!(
                "has the public feature {feature}: begin its name with `__` if only the project's own tests ask for it, otherwise list it here"
            ));
        }
    }
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let name = dependency["name"].as_str().unwrap_or_default();
        // Dev-dependencies without a version are not published.
        if dependency["path"].is_null() || dependency["kind"] == "dev" && dependency["req"] == "*" {
            continue;
        }
        if dependency["req"] == "*" {
            wrong.push(format!("depends on {name} by its path only"));
        }
        if !published.iter().any(|other| other["name"] == dependency["name"]) {
            wrong.push(format!("depends on {name}, which is not published"));
        }
    }
    wrong
}

fn toolchain(version: &str) -> Option<String> {
    let list = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    let list = String::from_utf8(list.stdout).ok()?;
    let is = |name: &&str| {
        let of = name.split('-').next().unwrap_or_default();
        of == version || of.strip_prefix(version).is_some_and(|patch| patch.starts_with('.'))
    };
    list.lines().filter_map(|line| line.split_whitespace().next()).find(is).map(str::to_owned)
}

fn is_in_use(version: &str) -> bool {
    let output = cargo(&["--version"]).output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    output.is_some_and(|said| said.starts_with(&format!("cargo {version}.")))
}

fn output(arguments: &[&str]) -> Result<String> {
    let output = cargo(arguments).output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo {}: {error}", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packages_that_lack_something_are_named() {
        let whole = json!({
            "name": "whole", "description": "d", "license": "MIT", "readme": "README.md", "keywords": ["k"],
            "categories": ["c"], "rust_version": "1.95", "edition": "2024", "dependencies": [
                { "name": "whole", "path": "/p", "req": "^0.1.0", "kind": null },
                { "name": "tests", "path": "/t", "req": "*", "kind": "dev" },
                { "name": "libc", "path": null, "req": "^0.2", "kind": null },
            ]
        });
        let files = FILES.join("\n");
        assert_eq!(lacks(&whole, &files, &[&whole]), [""; 0]);
        assert_eq!(lacks(&whole, &files, &[]), ["depends on whole, which is not published"]);
        assert_eq!(lacks(&whole, "Cargo.toml\nREADME.md", &[&whole]).len(), 2);
        let mut open = whole.clone();
        open["features"] = json!({ "__mutants": [], "mutants": [], "serde": [] });
        let named = |what: &&String| what.starts_with("has the public feature");
        assert_eq!(lacks(&open, &files, &[&whole]).iter().filter(named).count(), 2);
        open["name"] = json!("indelible");
        assert_eq!(lacks(&open, &files, &[&whole]).iter().filter(named).count(), 1);
        let mut bare = whole.clone();
        (bare["keywords"], bare["readme"]) = (json!([]), Value::Null);
        bare["dependencies"][0]["req"] = json!("*");
        let wrong = lacks(&bare, &files, &[&whole]);
        assert_eq!(wrong, ["states no readme", "states no keywords", "depends on whole by its path only"]);
    }
}
