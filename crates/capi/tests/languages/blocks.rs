//! C and C++ programs whose transactions are blocks that GCC compiles.

use super::c::{kill_repeatedly, killed_transfers_are_whole, run};
use super::ground::{Compiler, dies, disk, folder, have, installed, program, succeed, text};
use indelible_testing::{Seeded, not_tested};
use std::path::Path;
use std::process::Command;

/// GCC with libpmo-tm.
const BLOCKS: Compiler = Compiler {
    command: "gcc",
    flags: &[
        "-O2",
        "-fgnu-tm",
        "-fno-tree-loop-distribute-patterns",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
        "-Wl,--no-as-needed",
        "-lpmo-tm",
    ],
};

/// Whether GCC compiles blocks; says so if not.
fn compiles_blocks(folder: &Path) -> bool {
    let code = "int a; int main(void) { __transaction_atomic { a++; } return a - 1; }\n";
    let there = have("gcc") && BLOCKS.refuses(code, folder).is_none();
    if !there {
        not_tested("persistent objects in blocks: there is no GCC with -fgnu-tm and libitm");
    }
    there
}

/// As [`compiles_blocks`], and C++.
fn compiles_blocks_of_cpp(folder: &Path) -> bool {
    compiles_blocks(folder) && have("g++")
}

/// Runs a program whose objects are transactional, or on demand.
fn run_on(demand: bool, program: &Path, pool: &Path) -> Command {
    let mut command = run(program, pool);
    command.envs(demand.then_some(("ON_DEMAND", "1")));
    command
}

fn blocks_do_what_they_say(demand: bool) {
    let folder = folder();
    if !compiles_blocks(folder.path()) {
        return;
    }
    let (binary, pool) = (folder.path().join("blocks"), folder.path().join("pool.pmo"));
    BLOCKS.build(&program("blocks.c"), &binary);
    let run = || run_on(demand, &binary, &pool);
    assert_eq!(succeed(&mut run()), "done\n");
    for (fault, signal) in [("store outside", 11), ("two pools", 6), ("two classes", 6)] {
        assert_eq!(dies(run().arg(fault)), signal, "{fault}");
    }
    for (fault, why) in
        [("two pools", "different pools"), ("two classes", "a block changes objects of one class")]
    {
        let said = text(&run().arg(fault).output().unwrap().stderr);
        assert!(said.contains("a block changed a persistent object") && said.contains(why), "{said}");
    }
}

#[test]
fn s1_03_blocks_that_gcc_compiles_are_durable_when_they_end() {
    blocks_do_what_they_say(false);
}

#[test]
fn s1_06_blocks_that_gcc_compiles_are_durable_on_demand() {
    blocks_do_what_they_say(true);
}

/// Both libraries in one program have one set of the functions and thread-local variables that are in both.
#[test]
fn s1_03_blocks_of_programs_that_are_linked_statically_do_the_same() {
    let folder = folder();
    if !compiles_blocks_of_cpp(folder.path()) {
        return;
    }
    let archives = ["libpmo.a", "libpmo-tm.a"].map(|archive| installed().join("lib").join(archive));
    for (compiler, name) in [(BLOCKS, "blocks.c"), (BLOCKS_OF_CPP, "tm-containers.cpp")] {
        let binary = folder.path().join(name.replace('.', "-"));
        let mut command = Command::new(compiler.command);
        command.args(compiler.flags.iter().filter(|flag| !flag.starts_with("-l"))).arg("-I");
        command.arg(installed().join("include")).arg("-o").arg(&binary).arg(program(name));
        succeed(command.args(&archives).arg("-lm"));
        for demand in [false, true] {
            let pool = folder.path().join(format!("{name}-{demand}"));
            assert_eq!(succeed(&mut run_on(demand, &binary, &pool)), "done\n", "{name}");
        }
    }
}

fn killed_blocks_are_whole(demand: bool) {
    let folder = disk();
    if compiles_blocks(folder.path()) {
        let binary = folder.path().join("blocks");
        BLOCKS.build(&program("blocks.c"), &binary);
        killed_transfers_are_whole(|| run_on(demand, &binary, &folder.path().join("pool.pmo")));
    }
}

#[test]
fn s1_03_blocks_that_gcc_compiles_survive_sigkill() {
    killed_blocks_are_whole(false);
}

#[test]
fn s1_06_blocks_on_demand_that_gcc_compiles_survive_sigkill() {
    killed_blocks_are_whole(true);
}

/// GCC warns of variables that a block restores by itself.
const BLOCKS_OF_CPP: Compiler = Compiler {
    command: "g++",
    flags: &[
        "-O2",
        "-fgnu-tm",
        "-fno-tree-loop-distribute-patterns",
        "-Wall",
        "-Wextra",
        "-Wno-clobbered",
        "-Werror",
        "-pthread",
        "-Wl,--no-as-needed",
        "-lpmo-tm",
    ],
};

/// Eight threads, each against a model, and what all of them share; a heap that grows.
#[test]
fn s1_03_containers_in_blocks_of_cpp_agree_with_models() {
    let folder = folder();
    if compiles_blocks_of_cpp(folder.path()) {
        let binary = folder.path().join("tm-containers");
        BLOCKS_OF_CPP.build(&program("tm-containers.cpp"), &binary);
        for demand in [false, true] {
            let pool = folder.path().join(format!("pool-{demand}.pmo"));
            assert_eq!(succeed(&mut run_on(demand, &binary, &pool)), "done\n");
        }
    }
}

/// Every step that was said is there, and no block of memory besides those that containers have.
fn killed_containers_are_whole(demand: bool) {
    let folder = disk();
    if !compiles_blocks_of_cpp(folder.path()) {
        return;
    }
    let (binary, pool) = (folder.path().join("tm-containers"), folder.path().join("pool.pmo"));
    BLOCKS_OF_CPP.build(&program("tm-containers.cpp"), &binary);
    let mut rng = Seeded::new(fastrand::u64(..));
    println!("INDELIBLE_SEED={}", rng.seed());
    kill_repeatedly(|| run_on(demand, &binary, &pool), &mut rng, (10, 200), 4, 0);
}

#[test]
fn s1_03_containers_in_blocks_of_cpp_survive_sigkill() {
    killed_containers_are_whole(false);
}

#[test]
fn s1_06_containers_on_demand_in_blocks_of_cpp_survive_sigkill() {
    killed_containers_are_whole(true);
}

/// A step without room keeps what it did until then, or handles the error and goes on. More steps follow, with room and without, until a death.
#[test]
fn s1_03_containers_whose_heap_is_full_are_whole_after_more_blocks_and_a_death() {
    let folder = folder();
    if !compiles_blocks_of_cpp(folder.path()) {
        return;
    }
    let binary = folder.path().join("tm-full");
    BLOCKS_OF_CPP.build(&program("tm-full.cpp"), &binary);
    let mut rng = Seeded::new(fastrand::u64(..));
    println!("INDELIBLE_SEED={}", rng.seed());
    for (demand, wall) in [(false, false), (false, true), (true, false), (true, true)] {
        let pool = folder.path().join(format!("pool-{demand}-{wall}.pmo"));
        let run = || {
            let mut command = run_on(demand, &binary, &pool);
            command.envs(wall.then_some(("WALL", "1")));
            command
        };
        let full = succeed(&mut run());
        assert!(full.split_whitespace().all(|times| times.parse::<u32>().unwrap() > 0), "{full}");
        let before = succeed(run().arg("look")).trim().parse().unwrap();
        kill_repeatedly(run, &mut rng, (3, 6_000), 1, before);
    }
}

/// Scattered pages are mappings of their own while a block has them, and not after that. A block at the limit of mappings still touches all pages.
#[test]
fn blocks_that_cannot_be_undone_touch_more_pages_than_there_can_be_mappings() {
    let folder = folder();
    if !compiles_blocks(folder.path()) {
        return;
    }
    let (binary, pool) = (folder.path().join("mappings"), folder.path().join("pool.pmo"));
    BLOCKS.build(&program("mappings.c"), &binary);
    match &*succeed(&mut run(&binary, &pool)) {
        "done\n" => {}
        said => not_tested(format_args!(
            "blocks where there can be no more mappings: this machine allows any number ({said})"
        )),
    }
}
