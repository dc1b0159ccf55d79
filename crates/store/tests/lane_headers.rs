//! Both copies of a lane's header through every short history of holders (checkpoint, fail, die,
//! give back, take over): at each power cut a copy is whole.

use indelible_store::format::PAGE;
use indelible_store::lane::LaneLog;
use indelible_store::medium::Medium;
use indelible_testing::{Fault, Limits, OpKind, SimConfig, SimMedium, TearUnit};

const SEED: u64 = 5;
const LANE: u64 = 4 * PAGE;
const LONGEST: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Checkpoint,
    FailedCheckpoint(Fault),
    Retire,
    Die,
    TakeOver,
    FailedTakeOver(Fault),
}

struct World {
    medium: SimMedium,
    directory: u64,
    log: Option<LaneLog>,
    checkpoints: u64,
}

impl World {
    fn begin(config: SimConfig) -> World {
        let medium = SimMedium::new(LANE, config);
        World { medium, directory: 1, log: Some(LaneLog::at_start(0, LANE, 1)), checkpoints: 0 }
    }

    fn next(&self) -> Vec<Action> {
        let faults = [Fault::Io, Fault::Short, Fault::After];
        if self.log.is_none() {
            let failed = faults.map(Action::FailedTakeOver);
            return [vec![Action::TakeOver], failed.to_vec()].concat();
        }
        let mut all = vec![Action::Checkpoint, Action::Die];
        all.extend(faults.map(Action::FailedCheckpoint));
        if self.checkpoints > 0 {
            all.push(Action::Retire);
        }
        all
    }

    /// The barrier fails after an unreported failure.
    fn checkpoint(&mut self) {
        let medium = &self.medium;
        let mut log = self.log.take().unwrap();
        if medium.barrier().is_ok() && log.next_generation(medium, SEED).is_ok() {
            self.log = Some(log);
            self.checkpoints += 1;
        }
    }

    fn take_over(&mut self) {
        let medium = &self.medium;
        let found = LaneLog::read(medium, SEED, 0, LANE, self.directory).unwrap();
        if let Ok(log) = found.take_over(medium, SEED) {
            medium.mark(log.generation);
            self.directory = log.generation;
            (self.log, self.checkpoints) = (Some(log), 0);
        }
    }

    fn act(&mut self, action: Action) {
        let failing = match action {
            Action::FailedCheckpoint(fault) | Action::FailedTakeOver(fault) => Some(fault),
            _ => None,
        };
        if let Some(fault) = failing {
            self.medium.fail_at(OpKind::WriteDurable, 0, fault);
        }
        match action {
            Action::Checkpoint | Action::FailedCheckpoint(_) => self.checkpoint(),
            Action::Retire => self.log.take().unwrap().retire(&self.medium, SEED).unwrap(),
            Action::Die => self.log = None,
            Action::TakeOver | Action::FailedTakeOver(_) => self.take_over(),
        }
        self.medium.clear_faults();
    }
}

fn judge(config: SimConfig, history: &[Action]) -> (World, u64) {
    let mut world = World::begin(config);
    for action in history {
        world.act(*action);
    }
    let limits = Limits { exhaustive: 64, singles: 8, random: 8, points: 1000, seed: 1 };
    let mut images = 0;
    for image in world.medium.power_cut_states(&limits) {
        images += 1;
        let at_least = image.last_mark().unwrap_or(1);
        let found = LaneLog::read(&image.medium(), SEED, 0, LANE, at_least);
        let log = found.unwrap_or_else(|error| panic!("{config:?}, {history:?}, {}: {error}", image.cut()));
        assert!(log.generation >= at_least, "{history:?}, {}: {log:?}", image.cut());
    }
    (world, images)
}

#[test]
fn a_copy_is_whole_whoever_fails_when_the_power_is_cut() {
    let mut images = 0;
    for (disk, tear_unit) in [(true, TearUnit::Word), (false, TearUnit::Word), (true, TearUnit::Sector)] {
        let config = SimConfig { disk, tear_unit, ..SimConfig::default() };
        let mut histories: Vec<Vec<Action>> = vec![Vec::new()];
        for len in 0..=LONGEST {
            let mut longer = Vec::new();
            for history in histories {
                let (world, found) = judge(config, &history);
                images += found;
                if len < LONGEST {
                    longer.extend(world.next().into_iter().map(|action| [&history[..], &[action]].concat()));
                }
            }
            histories = longer;
        }
    }
    println!("{images} images");
    assert!(images > 10_000);
}
