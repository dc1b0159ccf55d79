//! Hunts for programs that go wrong; prints each shrunk.
use indelible_testing::oracle::{Program, Step, random, shrink, starts};
use indelible_testing::scenario::{judge_state, media};
use indelible_testing::{Choice, Fault, Limits, OpKind, SimMedium};

fn run_and_cut(medium: &SimMedium, program: &Program, seed: u64) -> Result<bool, String> {
    medium.reseed(seed);
    let promise = program.run(medium).map_err(|wrong| wrong.to_string())?;
    let limits = Limits { exhaustive: 1, singles: 0, random: 1, points: 6, seed };
    for image in medium.power_cut_states(&limits).chain([medium.power_cut(Choice::None)]) {
        judge_state(&image.medium(), &promise.allowed(&image))
            .map_err(|cause| format!("{cause} after {}", image.cut()))?;
    }
    Ok(promise.failures > 0)
}
fn go(medium: &SimMedium, program: &Program, seed: u64) -> Result<bool, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_and_cut(medium, program, seed)))
        .unwrap_or_else(|_| Err("panicked".into()))
}
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let only: Option<u64> = args.get(2).copied();
    let mut wrong = 0;
    for seed in args[0]..args[1] {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (start, m) = (starts()[rng.usize(..4)], only.map_or_else(|| rng.usize(..6), |o| o as usize));
        let pool = start.pool(media()[m]);
        let mut program = random(start, 40, &mut rng);
        if std::env::var("EIO").is_ok() {
            for (_, step) in &mut program.0 {
                match step {
                    Step::WritebackFails { no_space } => *no_space = false,
                    Step::FailIn { kind: OpKind::WriteDurable | OpKind::Barrier, fault, .. }
                        if *fault == Fault::NoSpace =>
                    {
                        *fault = Fault::Io
                    }
                    _ => {}
                }
            }
        }
        let Err(first) = go(&pool.medium(), &program, seed) else { continue };
        wrong += 1;
        let mut last = first;
        let small = shrink(&program, |p| match go(&pool.medium(), p, seed) {
            Err(c) => {
                last = c;
                true
            }
            Ok(_) => false,
        });
        println!("== seed {seed}, {start:?}, media()[{m}]: {last}\n{small:?}");
    }
    println!("{wrong} wrong");
}
