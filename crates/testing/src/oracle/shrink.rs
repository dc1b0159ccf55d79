//! Smaller programs that fail as well.

use super::{Program, Step};

/// The smallest program found, by leaving out steps, that still fails.
pub fn shrink(program: &Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut piece = best.0.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < best.0.len() {
            let mut smaller = best.clone();
            smaller.0.drain(at..(at + piece).min(best.0.len()));
            if fails(&smaller) {
                best = smaller;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    // Faults in a step are less likely to matter than the step.
    for at in 0..best.0.len() {
        let simpler = |step: Step| {
            let mut program = best.clone();
            program.0[at].1 = step;
            program
        };
        let mut tries = Vec::new();
        match &best.0[at].1 {
            Step::DieIn { step, .. } => tries.push(simpler((**step).clone())),
            Step::FailIn { step, kind, nth, fault, lasts } => {
                tries.push(simpler((**step).clone()));
                let (step, kind, nth, fault) = (step.clone(), *kind, *nth, *fault);
                if *lasts {
                    tries.push(simpler(Step::FailIn { step, kind, nth, fault, lasts: false }));
                }
            }
            _ => {}
        }
        if let Some(found) = tries.into_iter().find(|program| fails(program)) {
            best = found;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_do_not_matter_are_left_out() {
        let program = Program((0..50).map(|n| (n % 3, Step::Attach { object: n % 4 })).collect());
        let needed = [(1, Step::Attach { object: 2 }), (2, Step::Attach { object: 3 })];
        let small = shrink(&program, |program| needed.iter().all(|step| program.0.contains(step)));
        assert_eq!(small.0.len(), 2);
    }
}
