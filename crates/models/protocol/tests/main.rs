//! Models of the protocols in docs/protocol.md: all states of small scopes are explored. No intact
//! model loses anything; each broken rule shows a loss.
//!
//! Models are of the rules, not of the code: a step is the code between two moments at which a
//! process may die or another may act. `cargo xtask tools protocol` runs larger scopes, too.

mod demand;
mod epochs;
mod guard;
mod lanes;

use stateright::{Checker, HasDiscoveries, Model};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Instant;

const THREADS: usize = 2;

/// Returns the first loss as its steps, the last one with its state.
fn loss<M>(name: &str, model: M) -> Option<Vec<String>>
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let begin = Instant::now();
    let checker =
        model.checker().threads(THREADS).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let states = checker.unique_state_count();
    let seconds = begin.elapsed().as_secs_f64();
    println!("{states:>8} states in {seconds:>5.1} s, {} steps deep: {name}", checker.max_depth());
    let path = checker.discovery(NO_LOSS);
    // A model without interesting states would prove nothing.
    let missed = checker.model().properties().into_iter().map(|property| property.name);
    let missed: Vec<_> =
        missed.filter(|other| *other != NO_LOSS && checker.discovery(other).is_none()).collect();
    assert!(path.is_some() || missed.is_empty(), "{name}: never {missed:?}");
    let path = path?;
    let state = path.last_state().clone();
    let mut steps: Vec<_> = path.into_actions().iter().map(|step| format!("{step:?}")).collect();
    steps.push(format!("{state:?}"));
    Some(steps)
}

const NO_LOSS: &str = "nothing acknowledged is lost";

fn holds<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    if let Some(steps) = loss(name, model) {
        panic!("{name}:\n  {}", steps.join("\n  "));
    }
}

fn fails<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let steps = loss(name, model);
    let steps = steps.unwrap_or_else(|| panic!("{name}: no state shows that the rule is broken"));
    println!("         after {} steps", steps.len() - 1);
    if std::env::var_os("INDELIBLE_STEPS").is_some() {
        println!("  {}", steps.join("\n  "));
    }
}
