use super::c::{kill_repeatedly, killed_transfers_are_whole, run};
use super::ground::{Compiler, dies, disk, folder, have, installed, program, succeed, text};
use indelible::Pool;
use indelible_testing::{Seeded, not_tested};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

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

fn compiles_blocks(folder: &Path) -> bool {
    let code = "int a; int main(void) { __transaction_atomic { a++; } return a - 1; }\n";
    let there = have("gcc") && BLOCKS.refuses(code, folder).is_none();
    if !there {
        not_tested("persistent objects in blocks: there is no GCC with -fgnu-tm and libitm");
    }
    there
}

fn compiles_blocks_of_cpp(folder: &Path) -> bool {
    compiles_blocks(folder) && have("g++")
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    /// Otherwise transactional.
    demand: bool,
    ecc: bool,
}

impl Kind {
    fn both(demand: bool) -> [Kind; 2] {
        [false, true].map(|ecc| Kind { demand, ecc })
    }

    fn all() -> impl Iterator<Item = Kind> {
        [false, true].into_iter().flat_map(Kind::both)
    }

    fn name(self) -> String {
        format!("pool-{}-{}.pmo", self.demand, self.ecc)
    }
}

fn run_on(kind: Kind, program: &Path, pool: &Path) -> Command {
    let mut command = run(program, pool);
    command.envs(kind.demand.then_some(("ON_DEMAND", "1"))).envs(kind.ecc.then_some(("CHECK_WORDS", "1")));
    command
}

fn blocks_do_what_they_say(demand: bool) {
    let folder = folder();
    if !compiles_blocks(folder.path()) {
        return;
    }
    let binary = folder.path().join("blocks");
    BLOCKS.build(&program("blocks.c"), &binary);
    for kind in Kind::both(demand) {
        let pool = folder.path().join(kind.name());
        do_what_they_say(|| run_on(kind, &binary, &pool));
    }
}

fn do_what_they_say(run: impl Fn() -> Command) {
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
        for kind in Kind::all() {
            let pool = folder.path().join(format!("{name}-{}", kind.name()));
            assert_eq!(succeed(&mut run_on(kind, &binary, &pool)), "done\n", "{name}");
        }
    }
}

fn damage(pool: &Path, name: &str, bits: impl Fn(usize) -> u128) {
    let at = Pool::open(pool).unwrap().stat(name).unwrap().offset;
    let file = std::fs::File::options().read(true).write(true).open(pool).unwrap();
    let mut bytes = [0; 16 * 32];
    file.read_exact_at(&mut bytes, at).unwrap();
    for (nth, pair) in bytes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        *pair = (u128::from_le_bytes(*pair) ^ bits(nth)).to_le_bytes();
    }
    file.write_all_at(&bytes, at).unwrap();
}

#[test]
fn s1_13_blocks_that_gcc_compiles_repair_damaged_words() {
    let folder = folder();
    if !compiles_blocks(folder.path()) {
        return;
    }
    let binary = folder.path().join("blocks");
    BLOCKS.build(&program("blocks.c"), &binary);
    for kind in [false, true].map(|demand| Kind { demand, ecc: true }) {
        let pool = folder.path().join(kind.name());
        let run = || run_on(kind, &binary, &pool);
        assert_eq!(succeed(&mut run()), "done\n");
        let done = succeed(run().arg("look"));
        damage(&pool, "bank", |nth| (0b10_1001 << (nth % 60)) << (nth % 3 * 32));
        assert_eq!(succeed(run().arg("aloud")), "the sum is 3200\n");
        assert_eq!(succeed(run().arg("look")), done);
        let there = Pool::open(&pool).unwrap();
        let scrubbed = there.scrub("bank", b"", &mut |_, _| {}).unwrap();
        assert_eq!((scrubbed.repaired, scrubbed.lost), (0, vec![]), "the block has repaired them");
        drop(there);
        damage(&pool, "bank", |nth| if nth == 3 { 0x1357_9bdf_0246_8ace_1111_2222_3333_4444 } else { 0 });
        let lost = run().arg("look").output().unwrap();
        assert_eq!(lost.status.signal(), Some(6));
        let said = text(&lost.stderr);
        assert!(said.contains("a word of a persistent object that is damaged"), "{said}");
        assert_eq!(dies(run().arg("aloud")), 11);
        let there = Pool::open(&pool).unwrap();
        assert_eq!(there.scrub("bank", b"", &mut |_, _| {}).unwrap().lost, [24]);
    }
}

fn killed_blocks_are_whole(demand: bool) {
    let folder = disk();
    if compiles_blocks(folder.path()) {
        let binary = folder.path().join("blocks");
        BLOCKS.build(&program("blocks.c"), &binary);
        for kind in Kind::both(demand) {
            let pool = folder.path().join(kind.name());
            killed_transfers_are_whole(|| run_on(kind, &binary, &pool));
        }
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

#[test]
fn s1_03_containers_in_blocks_of_cpp_agree_with_models() {
    let folder = folder();
    if compiles_blocks_of_cpp(folder.path()) {
        let binary = folder.path().join("tm-containers");
        BLOCKS_OF_CPP.build(&program("tm-containers.cpp"), &binary);
        for kind in Kind::all() {
            let pool = folder.path().join(kind.name());
            assert_eq!(succeed(&mut run_on(kind, &binary, &pool)), "done\n", "{kind:?}");
        }
    }
}

fn killed_containers_are_whole(demand: bool) {
    let folder = disk();
    if !compiles_blocks_of_cpp(folder.path()) {
        return;
    }
    let binary = folder.path().join("tm-containers");
    BLOCKS_OF_CPP.build(&program("tm-containers.cpp"), &binary);
    let mut rng = Seeded::new(1);
    println!("INDELIBLE_SEED={}", rng.seed());
    for kind in Kind::both(demand) {
        let pool = folder.path().join(kind.name());
        kill_repeatedly(|| run_on(kind, &binary, &pool), &mut rng, (10, 200), 4, 0);
    }
}

#[test]
fn s1_03_containers_in_blocks_of_cpp_survive_sigkill() {
    killed_containers_are_whole(false);
}

#[test]
fn s1_06_containers_on_demand_in_blocks_of_cpp_survive_sigkill() {
    killed_containers_are_whole(true);
}

#[test]
fn s1_03_containers_whose_heap_is_full_are_whole_after_more_blocks_and_a_death() {
    let folder = folder();
    if !compiles_blocks_of_cpp(folder.path()) {
        return;
    }
    let binary = folder.path().join("tm-full");
    BLOCKS_OF_CPP.build(&program("tm-full.cpp"), &binary);
    let mut rng = Seeded::new(2);
    println!("INDELIBLE_SEED={}", rng.seed());
    for (kind, wall) in Kind::all().flat_map(|kind| [(kind, false), (kind, true)]) {
        let pool = folder.path().join(format!("{wall}-{}", kind.name()));
        let run = || {
            let mut command = run_on(kind, &binary, &pool);
            command.envs(wall.then_some(("WALL", "1")));
            command
        };
        let full = succeed(&mut run());
        assert!(full.split_whitespace().all(|times| times.parse::<u32>().unwrap() > 0), "{full}");
        let before = succeed(run().arg("look")).trim().parse().unwrap();
        kill_repeatedly(run, &mut rng, (3, 6_000), 1, before);
    }
}

/// A block at the limit of mappings still touches all pages.
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

#[test]
fn programs_with_blocks_are_built_with_cmake() {
    let folder = folder();
    if !have("cmake") || !have("make") || !compiles_blocks(folder.path()) {
        return;
    }
    let project = format!(
        "cmake_minimum_required(VERSION 3.13)\nproject(blocks C)\nset(CMAKE_C_FLAGS -O2)\n\
         find_package(pmo 0.1 REQUIRED)\nadd_executable(blocks {})\ntarget_link_libraries(blocks PRIVATE pmo::tm)\n",
        program("blocks.c").display()
    );
    std::fs::write(folder.path().join("CMakeLists.txt"), &project).unwrap();
    let mut configure = Command::new("cmake");
    configure.args(["-G", "Unix Makefiles", "-S", ".", "-B", "build", "-DCMAKE_C_COMPILER=gcc"]);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", installed().display()));
    succeed(configure.current_dir(folder.path()));
    succeed(Command::new("cmake").args(["--build", "build"]).current_dir(folder.path()));
    let (binary, pool) = (folder.path().join("build/blocks"), folder.path().join("pool.pmo"));
    assert!(succeed(&mut run(&binary, &pool)).ends_with("done\n"));
}

#[test]
fn the_package_of_blocks_says_where_its_headers_are() {
    let folder = folder();
    if !have("pkg-config") || !compiles_blocks(folder.path()) {
        return;
    }
    let source = folder.path().join("block.c");
    std::fs::write(&source, "#include <pmo/blocks.h>\nint main(void) { return pmo_tm_runtime() == 0; }\n")
        .unwrap();
    let flags = "gcc block.c -o block $(pkg-config --cflags pmo-tm) $(pkg-config --libs pmo-tm pmo)";
    let mut shell = Command::new("sh");
    shell.args(["-c", flags]).current_dir(folder.path());
    succeed(shell.env("PKG_CONFIG_PATH", installed().join("lib/pkgconfig")));
}
