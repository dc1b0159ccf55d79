//! Containers of other libraries in an object: the programs of `examples/cpp/libraries`, each run several times, so that the
//! program and its libraries are elsewhere each time.

use super::ground::{CPP, folder, have, installed, project, succeed};
use indelible_testing::not_tested;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, if its library's headers are there; what it needs when it is linked is by pkg-config's name, if by any.
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
        let binary = folder.path().join(name);
        let source = project().join("examples/cpp/libraries").join(format!("{name}.cpp"));
        let lib = installed().join("lib");
        let mut command = Command::new("c++");
        command.args(CPP.flags).arg("-I").arg(installed().join("include")).arg("-o").arg(&binary).arg(source);
        command.arg("-L").arg(&lib).arg("-lpmo").arg(format!("-Wl,-rpath,{}", lib.display()));
        if let Some(module) = module {
            let libraries = succeed(Command::new("pkg-config").args(["--libs", module]));
            command.args(libraries.split_whitespace());
        }
        succeed(&mut command);
        Some(Example { folder, binary })
    }

    fn pool(&self) -> PathBuf {
        self.folder.path().join("pool.pmo")
    }

    #[track_caller]
    fn says(&self, arguments: &[&str], expected: &str) {
        let said = succeed(Command::new(&self.binary).arg(self.pool()).args(arguments));
        assert_eq!(said, expected, "{arguments:?}");
    }

    /// Whether every block is in its place, and nothing was left over.
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
