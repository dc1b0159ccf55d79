//! Containers of other libraries in an object: `examples/cpp/libraries`, run several times, so that
//! code moves in between.

use super::ground::{CPP, folder, have, installed, project, succeed};
use super::kill::{kill, last};
use indelible_testing::{Seeded, not_tested};
use std::path::{Path, PathBuf};
use std::process::Command;

struct Example {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

impl Example {
    fn build(name: &str, header: &str, package: &str, module: Option<&str>) -> Option<Example> {
        if !have("c++") || !have("pkg-config") {
            return None;
        }
        let folder = folder();
        let probe = format!("#include <{header}>\nint main() {{}}\n");
        if CPP.refuses(&probe, folder.path()).is_some() {
            not_tested(format_args!("{name}.cpp, as {header} is missing; Debian has it in {package}"));
            return None;
        }
        let mut flags = Vec::new();
        if let Some(module) = module {
            let libraries = succeed(Command::new("pkg-config").args(["--libs", module]));
            flags.extend(libraries.split_whitespace().map(str::to_owned));
        }
        Some(Example::linked(name, folder, &flags))
    }

    fn of_header(name: &str, header: &str, package: &str, flags: &[&str]) -> Option<Example> {
        let mut example = Example::build(name, header, package, None)?;
        if !flags.is_empty() {
            let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            example = Example::linked(name, example.folder, &flags);
        }
        Some(example)
    }

    fn linked(name: &str, folder: tempfile::TempDir, flags: &[String]) -> Example {
        let binary = folder.path().join(name);
        let source = project().join("examples/cpp/libraries").join(format!("{name}.cpp"));
        let lib = installed().join("lib");
        let mut command = Command::new("c++");
        command.args(CPP.flags).arg("-I").arg(installed().join("include")).arg("-o").arg(&binary).arg(source);
        command.arg("-L").arg(&lib).arg("-lpmo").arg(format!("-Wl,-rpath,{}", lib.display()));
        succeed(command.args(flags));
        Example { folder, binary }
    }

    fn pool(&self) -> PathBuf {
        self.folder.path().join("pool.pmo")
    }

    #[track_caller]
    fn says(&self, arguments: &[&str], expected: &str) {
        let said = succeed(Command::new(&self.binary).arg(self.pool()).args(arguments));
        assert_eq!(said, expected, "{arguments:?}");
    }

    fn run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(self.pool()).args(arguments);
        command
    }

    fn killed(&self, rounds: usize, there: impl Fn() -> i64) {
        let mut rng = Seeded::new(1);
        println!("INDELIBLE_SEED={}", rng.seed());
        let (mut count, mut kills) = (0, 0);
        for _ in 0..rounds {
            let (lines, spins) = (rng.usize(0..30), rng.u32(0..200_000));
            let (said, killed) = kill(&mut self.run(&["add", "4000"]), lines, spins);
            kills += usize::from(killed);
            let added = last(&said, "added").unwrap_or(count);
            count = there();
            assert!(count == added || count == added + 1, "{added} were added, {count} are there");
        }
        println!("{kills} kills, {count} numbers");
        assert!(kills == rounds && count > rounds as i64, "{kills} kills, {count} numbers");
    }

    fn is_whole(&self, object: &str) {
        let source = format!(
            "#include <pmo.hpp>\n#include <iostream>\nint main(int, char **argv) {{ pmo::pool pool(argv[1]);\n\
             for (const auto &line : pool.heap_read(\"{object}\").check()) std::cout << line << \"\\n\"; }}\n"
        );
        let file = self.folder.path().join("whole.cpp");
        std::fs::write(&file, source).expect("a file");
        let binary = self.folder.path().join("whole");
        CPP.build(&file, &binary);
        assert_eq!(succeed(Command::new(&binary).arg::<&Path>(&self.pool())), "");
    }
}

#[test]
fn documents_of_nlohmann_json() {
    let Some(example) = Example::build("json", "nlohmann/json.hpp", "nlohmann-json3-dev", None) else {
        return;
    };
    let first = r#"{"list":[1,2.5,"a text of so many letters that it has a block of its own"],"none":null}"#;
    example.says(&["put", "a", first], &format!("{{\"a\":{first}}}\n"));
    example.says(&["put", "b", "[true]"], &format!("{{\"a\":{first},\"b\":[true]}}\n"));
    example.says(&["put", "a", "1"], "{\"a\":1,\"b\":[true]}\n");
    example.says(&["show"], "{\"a\":1,\"b\":[true]}\n");
    example.is_whole("document");
}

#[test]
fn maps_of_sparsehash() {
    let Some(example) = Example::build("sparse-hash", "google/dense_hash_map", "libsparsehash-dev", None)
    else {
        return;
    };
    for (last, expected) in [("1", "1 1\n"), ("500", "500 500\n"), ("20000", "20000 20000\n")] {
        example.says(&["count", last], expected);
    }
    example.says(&["show"], "20000 20000\n");
    example.is_whole("maps");
}

#[test]
fn the_flat_hash_map_of_abseil() {
    let header = "absl/container/flat_hash_map.h";
    let Some(example) = Example::build("flat-hash-map", header, "libabsl-dev", Some("absl_flat_hash_map"))
    else {
        return;
    };
    for (last, expected) in [("0", "0\n"), ("1", "1\n"), ("500", "500\n"), ("20000", "20000\n")] {
        example.says(&["count", last], expected);
    }
    example.says(&["show"], "20000\n");
    example.is_whole("map");
}

#[test]
fn containers_of_boost() {
    let header = "boost/container/flat_map.hpp";
    let Some(example) = Example::build("boost", header, "libboost-dev", None) else { return };
    example.says(&["add", "tree", "bee", "tree"], "bee 1\ntree 2\ntree\nbee\ntree\n");
    example.says(&["add", "bee"], "bee 2\ntree 2\ntree\nbee\ntree\nbee\n");
    example.says(&["show"], "bee 2\ntree 2\ntree\nbee\ntree\nbee\n");
    example.is_whole("words");
}

#[test]
fn maps_of_tsl() {
    const HEADERS: &str = "tsl/hopscotch_map.h>\n#include <tsl/ordered_map.h";
    const PACKAGES: &str = "libtsl-hopscotch-map-dev and libtsl-ordered-map-dev";
    let Some(example) = Example::build("tsl", HEADERS, PACKAGES, None) else { return };
    for (last, expected) in [("0", "0 0\n"), ("1", "1 1\n"), ("500", "500 500\n"), ("20000", "20000 20000\n")]
    {
        example.says(&["count", last], expected);
    }
    example.says(&["show"], "20000 20000\n");
    example.is_whole("maps");
}

const KILLS: usize = 30;

#[test]
fn an_r_tree_of_boost_geometry_survives_sigkill() {
    let header = "boost/geometry/index/rtree.hpp";
    let Some(example) = Example::of_header("geometry", header, "libboost-dev", &[]) else { return };
    example.killed(KILLS, || succeed(&mut example.run(&["check"])).trim().parse().expect("a number"));
    let nearest = succeed(&mut example.run(&["near", "7919", "1"]));
    assert!(nearest.starts_with("1\n"), "{nearest}");
    example.is_whole("places");
}

#[test]
fn an_index_of_hnswlib_survives_sigkill_and_another_build_is_refused() {
    let (header, package) = ("hnswlib/hnswlib.h", "libhnswlib-dev");
    let fixed = ["-no-pie", "-Wl,--build-id"];
    let Some(example) = Example::of_header("hnsw", header, package, &fixed) else { return };
    example.killed(KILLS, || {
        let said = succeed(&mut example.run(&["check"]));
        let mut numbers = said.split_whitespace().map(|word| word.parse::<i64>().expect("a number"));
        let (count, found) = (numbers.next().expect("a count"), numbers.next().expect("another"));
        assert!(found * 20 >= count * 19, "{found} of {count} were found");
        count
    });
    example.is_whole("index");
    let pool = example.pool();
    let other = Example::linked("hnsw", example.folder, &[fixed[0], fixed[1], "-g"].map(str::to_owned));
    let output = Command::new(&other.binary).arg(pool).arg("check").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("another build of the program made it"), "{said}");
}
