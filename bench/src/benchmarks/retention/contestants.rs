use crate::Result;
use crate::environment::Environment;
use crate::model::Section;
use crate::retention::{Bytes, Own, PmemSpace, Programs, Script, Steps, Times};
use crate::stats::Samples;
use indelible::Tracking;

const ROOM: u64 = 64 << 20;
const PAPER_ROOM: u64 = 512 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    Change,
    Add,
}

impl Layout {
    pub const ALL: [Layout; 2] = [Layout::Change, Layout::Add];

    pub fn word(self) -> &'static str {
        match self {
            Layout::Change => "LAYOUT-CHANGE: a key of 32 bits becomes one of 64",
            Layout::Add => "LAYOUT-ADD: a name of 32 bytes, which no operation uses",
        }
    }
}

#[derive(Default)]
pub struct Found {
    pub retain: Samples,
    pub manual: Samples,
    pub automatic: Samples,
    /// With keys computed until they are stored.
    pub lazy: Samples,
}

impl Found {
    pub fn push(&mut self, times: Times) {
        self.retain.push(times.retain);
        self.manual.push(times.manual);
        self.automatic.push(times.auto);
        times.computed.into_iter().for_each(|computed| self.lazy.push(computed));
    }

    /// Equation 1.
    pub fn of_manual(&self) -> f64 {
        self.retain.median() / self.manual.median()
    }

    pub fn more(samples: &Samples, manual: &Samples) -> f64 {
        samples.median() - manual.median()
    }

    /// Equation 2.
    pub fn of_automatic(&self) -> f64 {
        Found::more(&self.automatic, &self.manual) / self.manual.median()
    }
}

type All<S> = [Programs<S>; MAPS];
pub const MAPS: usize = 5;

pub struct Contestants {
    own: (All<Own>, Own),
    explicit: (All<Own>, Own),
    pmem: Option<(All<PmemSpace>, PmemSpace)>,
}

pub const NAMES: [&str; 3] = ["indelible", "indelible, explicit", "libpmemobj, lowered by hand"];

impl Contestants {
    pub fn new(environment: &Environment, section: &mut Section) -> Result<Contestants> {
        let room = if environment.quick { ROOM } else { PAPER_ROOM };
        let own = |name, tracking| Own::new(environment, name, tracking, room);
        Ok(Contestants {
            own: (Programs::all(), own("retention", Tracking::Auto)?),
            explicit: (Programs::all(), own("retention-explicit", Tracking::Explicit)?),
            pmem: match PmemSpace::new(environment, room)? {
                Ok(pmem) => Some((Programs::all(), pmem)),
                Err(why) => {
                    section.notes.push(format!("{}: not measured. {why}", NAMES[2]));
                    None
                }
            },
        })
    }

    pub fn map_names(&self) -> [&'static str; MAPS] {
        self.own.0.each_ref().map(|programs| programs.name)
    }

    pub fn round(
        &mut self,
        environment: &Environment,
        map: usize,
        script: &Script,
        layout: Layout,
        found: &mut [Found; 3],
    ) -> Result<()> {
        let layout = layout as usize;
        let own = [&mut self.own, &mut self.explicit];
        for (found, (programs, space)) in found.iter_mut().zip(own) {
            found.push((programs[map].rounds[layout])(environment, script, space)?);
        }
        if let Some((programs, space)) = &mut self.pmem {
            found[2].push((programs[map].rounds[layout])(environment, script, space)?);
        }
        Ok(())
    }

    pub fn has_pmem(&self) -> bool {
        self.pmem.is_some()
    }

    pub fn bytes(&mut self, map: usize, script: &Script) -> Result<Bytes> {
        let (programs, space) = &mut self.own;
        (programs[map].bytes)(script, space)
    }

    pub fn steps(&mut self, environment: &Environment, map: usize, script: &Script) -> Result<Vec<Steps>> {
        let mut all = Vec::with_capacity(NAMES.len());
        for (programs, space) in [&mut self.own, &mut self.explicit] {
            all.push((programs[map].steps)(environment, script, space)?);
        }
        if let Some((programs, space)) = &mut self.pmem {
            all.push((programs[map].steps)(environment, script, space)?);
        }
        Ok(all)
    }
}
