//! The data as a function of seed and step.
//!
//! A step, by programs of three versions in turn, is a call on the heap and a psync; after a kill
//! the data are as before or after it.

use super::types::SECONDS;
use crate::workloads::program::mixed;

const ERA: u64 = 10;
const ITEMS: usize = 20;
pub(super) const SERVERS: usize = 8;
pub(super) const CROWD: u64 = 40;
pub(super) const TEXTS: usize = 24;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Data {
    seed: u64,
    pub(super) step: u64,
    pub(super) config: Config,
    pub(super) cache: Cache,
    pub(super) items: Vec<Item>,
    pub(super) crowd: u64,
    pub(super) list: Moving,
    pub(super) map: Moving,
}

/// Converted at open.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Config {
    pub(super) version: u8,
    pub(super) title: String,
    pub(super) servers: Vec<Server>,
    pub(super) seconds: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) port: u32,
    pub(super) weight: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cache {
    pub(super) version: u8,
    pub(super) texts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) sale: Option<Sale>,
    pub(super) more: Option<More>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sale {
    pub(super) price: i64,
    pub(super) sold: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct More {
    pub(super) wide: u128,
    pub(super) gross: i64,
    pub(super) code: [u8; 5],
}

impl Item {
    pub(super) fn sale(&self) -> Sale {
        self.sale.unwrap_or(Sale { price: i64::from(self.count) * 2, sold: false })
    }

    pub(super) fn more(&self) -> More {
        let gross = self.sale().price + 1;
        self.more.unwrap_or(More { wide: u128::from(self.count), gross, code: [0; 5] })
    }

    fn extend(&mut self, version: u8) {
        let (sale, more) = (self.sale(), self.more());
        self.sale = (version > 1).then_some(sale).or(self.sale);
        self.more = (version > 2).then_some(more).or(self.more);
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moving {
    pub(super) texts: Vec<String>,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    Old,
    Both(usize),
    New,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Which {
    List,
    Map,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    ConfigRefused,
    ConverterFails,
    Config {
        title: String,
        server: Server,
    },
    Back,
    Cache {
        text: String,
    },
    Push {
        name: String,
        count: u32,
    },
    Remove {
        at: usize,
    },
    Count {
        at: usize,
        count: u32,
    },
    Copy {
        at: usize,
    },
    Sell {
        at: usize,
        sale: Sale,
    },
    More {
        at: usize,
        more: More,
    },
    Race,
    Crowd,
    MovingRefused(Which),
    Add(Which, String),
    /// Converts at most so many elements; the converter may fail at the last.
    Migrate {
        which: Which,
        most: usize,
        fails: bool,
    },
    Abandon(Which),
    Anew(Which, Vec<String>),
}

impl Action {
    pub(super) fn word(&self, before: &Data) -> &'static str {
        match self {
            Action::ConfigRefused | Action::MovingRefused(_) => "data of a later version refused",
            Action::ConverterFails | Action::Migrate { fails: true, .. } => "converters that failed",
            Action::Config { .. } if before.config.version < before.version() => "roots converted",
            Action::Back => "roots converted",
            Action::Cache { .. } if before.cache.version != before.version() => "roots reset",
            Action::Anew(..) => "roots reset",
            Action::Sell { .. } | Action::More { .. } => "stores to fields of extensions",
            Action::Race | Action::Crowd => "races to extend, beside cuts",
            Action::Copy { .. } => "values with extensions copied",
            Action::Migrate { .. } => "steps of migrations",
            Action::Abandon(_) => "migrations abandoned",
            _ => "stores to other data",
        }
    }
}

fn text(what: &str, step: u64, number: usize) -> String {
    format!("{what} {number} of step {step}, long enough for a block of its own")
}

fn texts(step: u64) -> Vec<String> {
    (0..TEXTS / 2).map(|number| text("text", step, number)).collect()
}

impl Data {
    pub(super) fn new(seed: u64) -> Data {
        let moving = || Moving { texts: texts(0), stage: Stage::Old };
        Data {
            seed,
            step: 0,
            config: Config { version: 1, title: text("title", 0, 0), servers: Vec::new(), seconds: 0 },
            cache: Cache { version: 1, texts: Vec::new() },
            items: Vec::new(),
            crowd: 0,
            list: moving(),
            map: moving(),
        }
    }

    pub(super) fn at(seed: u64, step: u64) -> Data {
        let mut data = Data::new(seed);
        data.advance(step);
        data
    }

    pub(super) fn advance(&mut self, step: u64) {
        while self.step < step {
            let action = self.next();
            self.take(&action);
        }
    }

    pub(super) fn version(&self) -> u8 {
        mixed(self.seed, 1, self.step / ERA).u8(1..=3)
    }

    pub(super) fn era_ends(&self) -> bool {
        self.step.is_multiple_of(ERA)
    }

    pub(super) fn moving(&self, which: Which) -> &Moving {
        match which {
            Which::List => &self.list,
            Which::Map => &self.map,
        }
    }

    pub(super) fn next(&self) -> Action {
        let mut rng = mixed(self.seed, 2, self.step + 1);
        match rng.u8(0..10) {
            0 | 1 => self.next_config(&mut rng),
            2 => Action::Cache { text: text("entry", self.step, 0) },
            3..7 => self.next_item(&mut rng),
            7 | 8 => self.next_moving(&mut rng, Which::List),
            _ => self.next_moving(&mut rng, Which::Map),
        }
    }

    fn next_config(&self, rng: &mut fastrand::Rng) -> Action {
        let (stored, own) = (self.config.version, self.version());
        let server = Server { name: text("server", self.step, 0), port: rng.u32(..), weight: rng.u32(..) };
        match rng.u8(0..4) {
            _ if stored > own => Action::ConfigRefused,
            0 if stored < own => Action::ConverterFails,
            0 | 1 if stored == 3 => Action::Back,
            _ => Action::Config { title: text("title", self.step, 0), server },
        }
    }

    fn next_item(&self, rng: &mut fastrand::Rng) -> Action {
        let (count, version) = (self.items.len(), self.version());
        if count < 3 {
            return Action::Push { name: text("item", self.step, 0), count: rng.u32(..) };
        }
        let at = rng.usize(..count);
        let mut code = [0; 5];
        rng.fill(&mut code);
        match rng.u8(0..12) {
            0 | 1 if count < ITEMS => Action::Push { name: text("item", self.step, 0), count: rng.u32(..) },
            2 | 3 if count < ITEMS => Action::Copy { at },
            4 | 5 => Action::Remove { at },
            6 if version > 1 => Action::Race,
            10 if version > 1 => Action::Crowd,
            7 | 8 if version > 2 => {
                Action::More { at, more: More { wide: rng.u128(..), gross: rng.i64(..), code } }
            }
            7..10 if version > 1 => {
                Action::Sell { at, sale: Sale { price: rng.i64(..i64::MAX), sold: rng.bool() } }
            }
            _ => Action::Count { at, count: rng.u32(..) },
        }
    }

    fn next_moving(&self, rng: &mut fastrand::Rng, which: Which) -> Action {
        let Moving { texts: all, stage } = self.moving(which);
        let add = || Action::Add(which, text("added", self.step, 0));
        let full = all.len() >= TEXTS;
        match (self.version(), *stage) {
            (1, Stage::Old) if !full => add(),
            (1, Stage::Old) => Action::Anew(which, texts(self.step)),
            (1, _) => Action::MovingRefused(which),
            (_, Stage::Both(_)) if rng.u8(0..8) == 0 => Action::Abandon(which),
            (_, Stage::New) if rng.bool() || full => Action::Anew(which, texts(self.step)),
            (_, Stage::New) => add(),
            _ => Action::Migrate { which, most: rng.usize(1..10), fails: rng.u8(0..4) == 0 },
        }
    }

    pub(super) fn take(&mut self, action: &Action) {
        let version = self.version();
        match action.clone() {
            Action::ConfigRefused | Action::ConverterFails | Action::MovingRefused(_) => {}
            Action::Config { title, server } => {
                self.convert(version);
                self.config.title = title;
                if self.config.servers.len() == SERVERS {
                    self.config.servers.clear();
                }
                self.config.servers.push(server);
            }
            Action::Back => (self.config.version, self.config.seconds) = (1, 0),
            Action::Cache { text } => {
                if self.cache.version != version || self.cache.texts.len() == TEXTS {
                    self.cache = Cache { version, texts: Vec::new() };
                }
                self.cache.texts.push(text);
            }
            Action::Push { name, count } => self.items.push(Item { name, count, sale: None, more: None }),
            Action::Remove { at } => drop(self.items.remove(at)),
            Action::Count { at, count } => self.items[at].count = count,
            Action::Copy { at } => self.items.push(self.items[at].clone()),
            Action::Sell { at, sale } => {
                self.items[at].extend(2);
                self.items[at].sale = Some(sale);
            }
            Action::More { at, more } => {
                self.items[at].extend(3);
                self.items[at].more = Some(more);
            }
            Action::Race => self.items.iter_mut().for_each(|item| item.extend(version)),
            Action::Crowd => self.crowd = self.step,
            Action::Add(which, text) => self.moving_mut(which).texts.push(text),
            Action::Migrate { which, most, fails } => self.moving_mut(which).migrate(most, fails),
            Action::Abandon(which) => self.moving_mut(which).stage = Stage::Old,
            Action::Anew(which, texts) => *self.moving_mut(which) = Moving { texts, stage: Stage::Old },
        }
        self.step += 1;
    }

    fn moving_mut(&mut self, which: Which) -> &mut Moving {
        match which {
            Which::List => &mut self.list,
            Which::Map => &mut self.map,
        }
    }

    fn convert(&mut self, version: u8) {
        if self.config.version < 3 && version == 3 {
            self.config.seconds = SECONDS;
        }
        self.config.version = version;
    }
}

impl Moving {
    pub(super) fn done(&self) -> usize {
        match self.stage {
            Stage::Old => 0,
            Stage::Both(done) => done,
            Stage::New => self.texts.len(),
        }
    }

    pub(super) fn comes_to_the_failure(&self, most: usize, fails: bool) -> bool {
        fails && self.texts.len() - self.done() >= most
    }

    fn migrate(&mut self, most: usize, fails: bool) {
        let failed = self.comes_to_the_failure(most, fails);
        let done = (self.done() + most - usize::from(failed)).min(self.texts.len());
        self.stage = if done == self.texts.len() { Stage::New } else { Stage::Both(done) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_program_is_a_function_of_seed_and_step_and_does_everything() {
        assert_eq!(Data::at(7, 300), Data::at(7, 300));
        assert_ne!(Data::at(7, 300).items, Data::at(8, 300).items);
        let mut data = Data::new(1);
        let mut words = BTreeMap::new();
        for _ in 0..4000 {
            let action = data.next();
            *words.entry((action.word(&data), data.version())).or_insert(0) += 1;
            data.take(&action);
        }
        let rare = words.iter().find(|(_, count)| **count < 5);
        assert_eq!(rare, None, "{words:?}");
        for (word, least) in
            [("stores to fields of extensions", 2), ("steps of migrations", 2), ("roots converted", 2)]
        {
            assert!((1..least).all(|version| !words.contains_key(&(word, version))), "{words:?}");
        }
        assert_eq!(words.len(), 23, "{words:?}");
    }
}
