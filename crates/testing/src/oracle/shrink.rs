use super::{Program, Step};

pub trait Shrinks: Clone {
    /// Simpler steps, the simplest first.
    fn simpler(&self) -> Vec<Self>;
}

impl Shrinks for Step {
    fn simpler(&self) -> Vec<Step> {
        match self {
            Step::DieIn { step, .. } => vec![(**step).clone()],
            Step::FailIn { step, lasts, kind, nth, fault } => {
                let mut tries = vec![(**step).clone()];
                if *lasts {
                    let (step, kind, nth, fault) = (step.clone(), *kind, *nth, *fault);
                    tries.push(Step::FailIn { step, kind, nth, fault, lasts: false });
                }
                tries
            }
            _ => Vec::new(),
        }
    }
}

/// The smallest failing program found by dropping steps.
pub fn shrink<S: Shrinks>(program: &Program<S>, mut fails: impl FnMut(&Program<S>) -> bool) -> Program<S> {
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
    for at in 0..best.0.len() {
        loop {
            let simpler = |step: S| {
                let mut program = best.clone();
                program.0[at].1 = step;
                program
            };
            let found = best.0[at].1.simpler().into_iter().map(simpler).find(|program| fails(program));
            let Some(found) = found else { break };
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
