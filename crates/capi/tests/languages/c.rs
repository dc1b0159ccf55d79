use super::ground::{C, CPP, Compiler, dies, disk, folder, have, installed, program, succeed, text};
use super::kill::kill;
use indelible_testing::Seeded;
use std::path::Path;
use std::process::Command;

pub fn run(program: &Path, pool: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(pool).env_remove("PMO_POOL");
    command
}

#[test]
fn every_function_does_what_it_says() {
    let folder = folder();
    let binary = folder.path().join("contract");
    C.build(&program("contract.c"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"))), "done\n");
}

#[test]
fn bad_input_is_an_error_and_changes_nothing() {
    let folder = folder();
    let binary = folder.path().join("bad-input");
    C.build(&program("bad-input.c"), &binary);
    let pool = folder.path().join("pool.pmo");
    assert_eq!(succeed(&mut run(&binary, &pool)), "done\n");
    for fault in ["use after detach", "store while reading"] {
        assert_eq!(dies(run(&binary, &pool).arg(fault)), 11, "{fault}");
    }
}

#[test]
fn s1_03_transactions_in_c_are_whole_and_refuse_what_they_cannot_do() {
    const OPTIMIZED: Compiler = Compiler {
        command: "cc",
        flags: &["-std=c99", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror", "-pthread"],
    };
    for compiler in [C, OPTIMIZED] {
        let folder = folder();
        let binary = folder.path().join("transactions");
        compiler.build(&program("transactions.c"), &binary);
        let pool = folder.path().join("pool.pmo");
        assert_eq!(succeed(&mut run(&binary, &pool)), "done\n");
        let (store, load) = (("a store to", "pmo_tx_write"), ("a load from", "pmo_tx_read"));
        for (fault, (access, call)) in
            [("store outside", store), ("load outside", load), ("store inside", store)]
        {
            assert_eq!(dies(run(&binary, &pool).arg(fault)), 11, "{fault}");
            let said = run(&binary, &pool).arg(fault).env("EXPLAINED", "1").output().unwrap();
            let said = text(&said.stderr);
            assert!(said.contains(access) && said.contains(call), "{fault}: {said}");
        }
    }
}

#[test]
fn s1_03_transactions_in_c_survive_sigkill() {
    let folder = disk();
    let binary = folder.path().join("transactions");
    C.build(&program("transactions.c"), &binary);
    killed_transfers_are_whole(|| run(&binary, &folder.path().join("pool.pmo")));
}

pub fn killed_transfers_are_whole(run: impl Fn() -> Command) {
    let mut rng = Seeded::new(1);
    println!("INDELIBLE_SEED={}", rng.seed());
    kill_repeatedly(run, &mut rng, (15, 40), 1, 0);
}

/// Kills a program, which reports each step, `rounds` times after fewer than `most` steps. At most
/// one more step of each of its `threads` is there. `before`: steps done earlier.
pub fn kill_repeatedly(
    run: impl Fn() -> Command,
    rng: &mut Seeded,
    (rounds, most): (usize, usize),
    threads: usize,
    mut before: usize,
) {
    for _ in 0..rounds {
        let (said, killed) = kill(run().arg("die"), rng.usize(1..most), rng.u32(0..20_000));
        assert!(killed);
        let there: usize = succeed(run().arg("look")).trim().parse().unwrap();
        let said = said.len();
        assert!((said..=said + threads).contains(&(there - before)), "{before}, {said}, {there}");
        before = there;
    }
}

#[test]
fn s1_06_commits_on_demand_in_c_are_durable_when_they_are_asked_for() {
    for folder in [folder(), disk()] {
        let (binary, pool) = (folder.path().join("on-demand"), folder.path().join("pool.pmo"));
        C.build(&program("on-demand.c"), &binary);
        let output = run(&binary, &pool).output().unwrap();
        assert_eq!((text(&output.stdout), text(&output.stderr)), ("done\n".to_owned(), String::new()));
    }
}

#[test]
fn s1_16_objects_of_c_are_readable_outside_of_transactions() {
    use std::os::unix::process::ExitStatusExt;
    let folder = folder();
    let (binary, pool) = (folder.path().join("readable"), folder.path().join("pool.pmo"));
    C.build(&program("readable.c"), &binary);
    assert_eq!(succeed(&mut run(&binary, &pool)), "done\n");
    for name in ["strict", "relaxed"] {
        let output = run(&binary, &pool).args(["store", name]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "loaded 7\n", "{output:?}");
        assert_eq!(output.status.signal(), Some(11), "{name}: {output:?}");
    }
    assert_eq!(succeed(run(&binary, &pool).arg("look")), "7 7\n");
}

#[test]
fn s1_06_commits_on_demand_in_c_survive_sigkill() {
    let folder = disk();
    let (binary, pool) = (folder.path().join("on-demand"), folder.path().join("pool.pmo"));
    C.build(&program("on-demand.c"), &binary);
    let mut rng = Seeded::new(2);
    println!("INDELIBLE_SEED={}", rng.seed());
    let mut before = 0;
    for _ in 0..15 {
        let (said, was_killed) = kill(run(&binary, &pool).arg("die"), rng.usize(1..400), rng.u32(0..20_000));
        assert!(was_killed);
        let last: u64 = said.last().unwrap().parse().unwrap();
        let there: u64 = succeed(run(&binary, &pool).arg("look")).trim().parse().unwrap();
        assert!(last > before && [last, last + 1].contains(&there), "{before}, {last}, {there}");
        before = there;
    }
}

#[test]
fn s1_03_blocks_of_memory_in_transactions_of_c_are_whole_and_their_heap_grows() {
    let folder = folder();
    let binary = folder.path().join("transactional-heap");
    C.build(&program("transactional-heap.c"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"))), "done\n");
    assert_eq!(succeed(run(&binary, &folder.path().join("kept.pmo")).arg("on-demand")), "done\n");
}

#[test]
fn s1_02_statics_of_c_are_found_again_and_made_once() {
    let folder = folder();
    let binary = folder.path().join("statics");
    C.build(&program("statics.c"), &binary);
    let pool = folder.path().join("pool.pmo");
    assert_eq!(succeed(&mut run(&binary, &pool)), "1180 8\n");
    for (nth, name) in ["one.pmo", "two.pmo"].into_iter().enumerate() {
        let pool = folder.path().join(name);
        let from = if nth == 0 { Some(&pool) } else { None };
        if nth == 1 {
            succeed(Command::new(&binary).arg(&pool));
        }
        let start = |_| {
            let mut command = Command::new(&binary);
            command.args(from).env("PMO_POOL", &pool).stdout(std::process::Stdio::piped());
            command.spawn().expect("it runs")
        };
        let running: Vec<_> = (0..3).map(start).collect();
        let ended: Vec<_> = running.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        assert!(ended.iter().all(|output| output.status.success()));
        let mut said: Vec<_> = ended.iter().map(|output| text(&output.stdout)).collect();
        said.sort();
        let expected = |n: usize| format!("{} {}\n", 1000 + 180 * (n + nth), 7 + n + nth);
        assert_eq!(said, [1, 2, 3].map(expected));
    }
}

#[test]
fn s1_02_statics_of_c_cpp_and_rust_are_the_same() {
    use indelible::{ErrorKind, Persistent, Pool};
    static HITS: Persistent<u64> = Persistent::new("hits", 5);
    static RANGE: Persistent<[f64; 2]> = Persistent::new("range", [0.0; 2]);
    let folder = folder();
    let (in_c, in_cpp) = (folder.path().join("in-c"), folder.path().join("in-cpp"));
    C.build(&program("statics.c"), &in_c);
    CPP.build(&program("statics.cpp"), &in_cpp);
    let pool = folder.path().join("pool.pmo");
    assert_eq!(succeed(&mut run(&in_c, &pool)), "1180 8\n");
    assert_eq!(succeed(&mut run(&in_cpp, &pool)), "1360 9\n", "C++ goes on where C ended");
    let opened = Pool::open(&pool).unwrap();
    let statics = opened.statics().unwrap();
    let hits = HITS.of(&statics).unwrap();
    statics.transaction(|tx| tx.update(hits, |hits| hits + 1)).unwrap();
    assert_eq!(RANGE.of(&statics).unwrap_err().kind(), ErrorKind::RootType, "an array is no struct");
    assert_eq!(statics.check().unwrap(), []);
    statics.detach().unwrap();
    drop(opened);
    assert_eq!(succeed(&mut run(&in_c, &pool)), "1541 10\n");
    let pool = folder.path().join("cpp.pmo");
    assert_eq!(succeed(&mut run(&in_cpp, &pool)), "1180 8\n");
    assert_eq!(succeed(&mut run(&in_c, &pool)), "1360 9\n");
}

#[test]
fn a_cut_is_consistent_across_threads_objects_and_heaps() {
    let folder = folder();
    let binary = folder.path().join("cut");
    C.build(&program("cut.c"), &binary);
    let pool = folder.path().join("pool.pmo");
    assert_eq!(dies(run(&binary, &pool).arg("store")), 9);
    let said = succeed(run(&binary, &pool).arg("look"));
    assert!(said.starts_with("whole"), "{said}");
}

#[test]
fn addresses_that_mean_nothing_in_the_next_run_are_found_and_refused() {
    let folder = folder();
    let binary = folder.path().join("audit");
    C.build(&program("audit.c"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"))), "done\n");
}

#[test]
fn heaps_grow_beside_walls_and_copies_of_pools_are_refused() {
    let folder = folder();
    let binary = folder.path().join("growth");
    C.build(&program("growth.c"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"))), "done\n");
}

#[test]
fn sealed_objects_open_by_their_keys() {
    let folder = folder();
    let binary = folder.path().join("sealed");
    C.build(&program("sealed.c"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"))), "done\n");
}

#[test]
fn sealed_objects_are_read_beside_writers_and_get_other_keys_sizes_and_anchors() {
    let folder = folder();
    let binary = folder.path().join("sealed-changes");
    C.build(&program("sealed-changes.c"), &binary);
    let mut command = run(&binary, &folder.path().join("pool.pmo"));
    let state = tempfile::tempdir().unwrap();
    let tpm = indelible_testing::EmulatedTpm::start(state.path(), "anchors in a TPM, from C");
    if let Some(tpm) = &tpm {
        command.arg(tpm.socket());
    }
    assert_eq!(succeed(&mut command), "done\n");
}

#[test]
fn extensions_are_made_copied_and_freed_by_address() {
    let folder = folder();
    let binary = folder.path().join("extensions");
    C.build(&program("extensions.c"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"))), "done\n");
}

#[test]
fn the_static_library_does_the_same() {
    let folder = folder();
    let binary = folder.path().join("contract");
    let lib = installed().join("lib/libpmo.a");
    let mut command = Command::new("cc");
    command.arg("-pthread").arg("-I").arg(installed().join("include")).arg("-o").arg(&binary);
    command.arg(program("contract.c")).arg(lib).args(["-lgcc_s", "-lpthread", "-lm", "-ldl"]);
    succeed(&mut command);
    let linked = succeed(Command::new("ldd").arg(&binary));
    assert!(!linked.contains("libpmo"), "{linked}");
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"))), "done\n");
}

#[test]
fn programs_are_built_with_pkg_config() {
    if !have("pkg-config") {
        return;
    }
    let folder = folder();
    let config = installed().join("lib/pkgconfig");
    let script = format!(
        "cc {} -o contract $(pkg-config --cflags --libs pmo) && pkg-config --modversion pmo",
        program("contract.c").display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder.path()).env("PKG_CONFIG_PATH", config);
    assert_eq!(succeed(&mut shell), "0.1.0\n");
    let mut command = run(&folder.path().join("contract"), &folder.path().join("pool.pmo"));
    assert_eq!(succeed(command.env("LD_LIBRARY_PATH", installed().join("lib"))), "done\n");
}

#[test]
fn programs_are_built_with_cmake() {
    if !have("cmake") || !have("make") {
        return;
    }
    let folder = folder();
    let project = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(contract C)\nfind_package(pmo 0.1 REQUIRED)\n\
         add_executable(shared {0})\ntarget_link_libraries(shared PRIVATE pmo::pmo)\n\
         add_executable(static {0})\ntarget_link_libraries(static PRIVATE pmo::static)\n",
        program("contract.c").display()
    );
    std::fs::write(folder.path().join("CMakeLists.txt"), &project).unwrap();
    let mut configure = Command::new("cmake");
    configure.args(["-G", "Unix Makefiles", "-S", ".", "-B", "build"]).current_dir(folder.path());
    succeed(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", installed().display())));
    succeed(Command::new("cmake").args(["--build", "build"]).current_dir(folder.path()));
    let other = project.replace("find_package(pmo 0.1", "find_package(pmo 1.0");
    std::fs::write(folder.path().join("CMakeLists.txt"), other).unwrap();
    let mut configure = Command::new("cmake");
    configure.args(["-S", ".", "-B", "other"]).current_dir(folder.path());
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", installed().display()));
    assert!(!configure.output().unwrap().status.success(), "a version that is not there is found");
    for kind in ["shared", "static"] {
        let pool = folder.path().join(format!("{kind}.pmo"));
        assert_eq!(succeed(&mut run(&folder.path().join("build").join(kind), &pool)), "done\n");
    }
}

#[test]
fn descriptions_that_are_not_true_do_not_compile() {
    let folder = folder();
    let code = |field: &str| {
        format!(
            "#include <pmo.h>\nstruct in {{ int i; }};\nPMO_TYPE(in, PMO_FIELD(int, i))\n\
             struct out {{ long a; struct in in, two[2]; char c[3]; int *p; }};\nPMO_TYPE(out, {field})\n\
             int main(void) {{ return PMO_TYPEOF(out)->size == 0 || PMO_TYPEOF(in)->size == 0; }}\n"
        )
    };
    let good = ["PMO_FIELD(long, a)", "PMO_NESTED(struct in, in, in)", "PMO_NESTED(struct in[2], two, in)"];
    for field in good.into_iter().chain([
        "PMO_FIELD(char[3], c)",
        "PMO_FIELD(int *, p)",
        "PMO_POINTS_TO(int *, p, in)",
    ]) {
        assert_eq!(C.refuses(&code(field), folder.path()), None, "{field}");
    }
    let bad = [
        "PMO_FIELD(int, a)",
        "PMO_FIELD(struct in, in)",
        "PMO_FIELD(struct in[2], two)",
        "PMO_FIELD(char[4], c)",
    ];
    for field in bad.into_iter().chain([
        "PMO_NESTED(struct in, two, in)",
        "PMO_FIELD(long, b)",
        "PMO_POINTS_TO(long *, p, in)",
    ]) {
        assert!(C.refuses(&code(field), folder.path()).is_some(), "{field}");
    }
}

/// The library is not instrumented. Its allocator takes a sixteenth of the range of windows, so the
/// test may have to make another pool.
#[test]
fn programs_run_under_address_sanitizer() {
    const SANITIZED: Compiler = Compiler { command: "cc", flags: &["-fsanitize=address", "-pthread"] };
    let folder = folder();
    for name in ["contract", "bad-input", "copies", "anywhere"] {
        let binary = folder.path().join(name);
        SANITIZED.build(&program(&format!("{name}.c")), &binary);
        let mut output = None;
        for attempt in 0..8 {
            let mut command = run(&binary, &folder.path().join(format!("{name}-{attempt}.pmo")));
            let ended = command.env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap();
            let taken = text(&ended.stderr).contains("is taken by anonymous memory");
            output = Some(ended);
            if !taken {
                break;
            }
        }
        let output = output.unwrap();
        assert_eq!(text(&output.stdout), "done\n", "{}", text(&output.stderr));
    }
}

#[test]
fn s2_17_transactions_by_records_are_durable_or_taken_back() {
    let folder = folder();
    let (binary, pool) = (folder.path().join("records"), folder.path().join("records.pmo"));
    C.build(&program("records.c"), &binary);
    assert_eq!(succeed(Command::new(&binary).arg(&pool)), "done\n");
}
