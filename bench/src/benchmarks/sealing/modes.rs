//! The papers' modes (S0.30, S3.7, S3.8): place of the shadow, medium of the objects, sealing part,
//! depth of prediction.

use super::computation::{Computation, Outcome, Way};
use super::place::Place;
use super::{DEPTHS, word};
use crate::Result;
use crate::environment::{Environment, progress};
use crate::kernels::{Convolution, Gauss, Kernel, Lu, Multiply, crew};
use crate::model::{Cell, Section, Table, Unit};
use crate::modelled::Model;
use crate::plot::Plot;
use crate::stats::Spread;
use indelible::PredictionDepth;
use std::collections::BTreeMap;

const COLUMNS: [(&str, Unit); 8] = [
    ("kernel", Unit::Text),
    ("threads", Unit::Count),
    ("mode", Unit::Text),
    ("sealed by", Unit::Text),
    ("depth", Unit::Text),
    ("time", Unit::Nanoseconds),
    ("to O", Unit::Ratio),
    ("runs", Unit::Count),
];

const AVERAGES: [(&str, Unit); 5] = [
    ("mode", Unit::Text),
    ("sealed by", Unit::Text),
    ("depth", Unit::Text),
    ("pages of a window", Unit::Count),
    ("to O, average", Unit::Ratio),
];

const MODES: [(&str, &str, bool); 5] = [
    ("O, Optane", "optane", true),
    ("D, Optane", "optane", false),
    ("L, CXL near", "cxl-near", false),
    ("F, CXL far", "cxl-far", false),
    ("D, CXL with a DRAM cache", "cxl-cached", false),
];

fn kernels(environment: &Environment) -> Vec<Box<dyn Kernel>> {
    if environment.quick {
        return vec![
            Box::new(Convolution::new(1024, 256, 4)),
            Box::new(Gauss::new(384)),
            Box::new(Lu::new(384)),
            Box::new(Multiply::new(384)),
        ];
    }
    vec![
        Box::new(Convolution::new(8192, 256, 20)),
        Box::new(Gauss::new(1024)),
        Box::new(Lu::new(1280)),
        Box::new(Multiply::new(1024)),
    ]
}

struct Bar {
    mode: &'static str,
    model: Model,
    shadow: bool,
    way: Way,
    engine: Engine,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Engine {
    Shipped,
    #[cfg_attr(not(feature = "without-integrity"), allow(dead_code))]
    Portable {
        integrity: bool,
    },
}

impl Engine {
    fn with<R>(self, work: impl FnOnce() -> R) -> R {
        #[cfg(feature = "without-integrity")]
        {
            use indelible::{Engine as Choice, choose_engine};
            choose_engine(match self {
                Engine::Shipped => Choice::Shipped,
                Engine::Portable { integrity: true } => Choice::Portable,
                Engine::Portable { integrity: false } => Choice::WithoutIntegrity,
            });
            let done = work();
            choose_engine(Choice::Shipped);
            done
        }
        #[cfg(not(feature = "without-integrity"))]
        work()
    }
}

impl Bar {
    fn sealed_by(&self) -> &'static str {
        match self.way {
            Way::Plain => "not sealed",
            Way::Hardware => "hardware, 1 %",
            Way::Sealed(_) => match self.engine {
                Engine::Shipped => "software",
                Engine::Portable { integrity: true } => "portable software",
                Engine::Portable { integrity: false } => "portable software, without integrity",
            },
        }
    }

    fn depth(&self) -> String {
        self.way.depth().map_or(String::new(), word)
    }
}

fn bars() -> Result<Vec<Bar>> {
    let mut bars = Vec::new();
    for (mode, medium, shadow) in MODES {
        let model = Model::find(medium)?;
        let sealed = DEPTHS.iter().filter(|depth| !shadow || **depth == PredictionDepth::Pages(0));
        let ways = sealed.map(|depth| Way::Sealed(*depth));
        let ways = ways.chain((!shadow).then_some(Way::Hardware)).chain((!shadow).then_some(Way::Plain));
        bars.extend(ways.map(|way| Bar { mode, model: model.clone(), shadow, way, engine: Engine::Shipped }));
    }
    #[cfg(feature = "without-integrity")]
    for integrity in [true, false] {
        let (mode, medium, shadow) = MODES[1];
        let model = Model::find(medium)?;
        let engine = Engine::Portable { integrity };
        bars.extend(DEPTHS.map(|depth| Bar {
            mode,
            model: model.clone(),
            shadow,
            way: Way::Sealed(depth),
            engine,
        }));
    }
    Ok(bars)
}

pub fn on(environment: &Environment, section: &mut Section) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = [1, 2, 4, 8, 16].into_iter().filter(|count| *count <= cores.max(2)).max().unwrap_or(1);
    let crew = crew(threads)?;
    let repeats = if environment.quick { 1 } else { 2 };
    let kernels = kernels(environment);
    let kernels = environment.some(&kernels, 1);
    let bars = bars()?;
    let bar = progress(kernels.len() * bars.len() * repeats, "sealed kernels, modes");
    let mut table = Table::new("Kernels on modelled media, by mode", &COLUMNS);
    let mut ratios: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for kernel in kernels {
        let mut outcomes: Vec<Outcome> = bars.iter().map(|_| Outcome::default()).collect();
        for _ in 0..repeats {
            for (one, outcome) in bars.iter().zip(&mut outcomes) {
                let place = Place::modelled(&one.model);
                let path = place.path(environment, "sealing-modes");
                let computation = Computation {
                    path: &path,
                    options: place.options(one.way.depth().unwrap_or_default()),
                    way: one.way,
                    shadow: one.shadow.then_some(one.model.speed),
                    kernel: &**kernel,
                    crew: &crew,
                };
                one.engine.with(|| computation.run(outcome))?;
                bar.inc(1);
            }
        }
        if let Some(wrong) = outcomes.iter().position(|outcome| outcome.result != outcomes[0].result) {
            return Err(format!("{}: {} computed otherwise", kernel.name(), bars[wrong].mode).into());
        }
        let original = outcomes[0].time.median();
        for (number, (one, outcome)) in bars.iter().zip(&outcomes).enumerate() {
            let ratio = outcome.time.median() / original;
            ratios.entry(number).or_default().push(ratio);
            table.row(vec![
                kernel.name().as_str().into(),
                (threads as u64).into(),
                one.mode.into(),
                one.sealed_by().into(),
                one.depth().as_str().into(),
                outcome.time.spread().map_or(Cell::Empty, Spread::into),
                ratio.into(),
                (outcome.time.len() as u64).into(),
            ]);
        }
    }
    bar.finish_and_clear();
    section.tables.push(table);
    averages(&bars, &ratios, section);
    section.notes.push(NOTE.into());
    section.notes.push(if cfg!(feature = "without-integrity") { WITHOUT } else { NOT_WITHOUT }.into());
    Ok(())
}

const NOTE: &str = "modes: O has shadow and primary on Optane, as the paper's earlier design; a step takes as long at least as Optane needs to read and to write the bytes that the step changes, \
    which is less than what really moves. D, Optane: the shadow in DRAM. L, F and D of CXL: the shadow in DRAM, the primary on CXL memory that is near, far, or has a DRAM cache. The \
    paper does not say which of its letters stands for which of its three hierarchies; these are the readings that fit their names. Hardware: objects that are not sealed, whose attaches and \
    psyncs take 1 % longer, as the paper takes enhanced memory functions to cost. The paper has 21 % less time than O on average, 1.25 of speedup without prediction, 1.81 with it, and up to 3 on CXL.";

const WITHOUT: &str = "without integrity: XChaCha20 alone; no tag is made or checked, while versions and nonces are kept as ever. It is compared with the same cipher with integrity by the same portable code (chacha20poly1305): the code \
    that is shipped has both in one pass, in less time than the portable code takes without integrity. No program can ask for this: only a build of the benchmarks has it.";
const NOT_WITHOUT: &str = "Not measured: sealing without integrity. A build with the feature `without-integrity` has it, as `cargo xtask bench` makes.";

fn averages(bars: &[Bar], ratios: &BTreeMap<usize, Vec<f64>>, section: &mut Section) {
    let mut table = Table::new("Modes, average of the kernels", &AVERAGES);
    for (number, one) in bars.iter().enumerate() {
        let ratios = &ratios[&number];
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let window = match one.way {
            Way::Sealed(PredictionDepth::Pages(pages)) => (u64::from(pages) + 1).into(),
            _ => Cell::Empty,
        };
        table.row(vec![
            one.mode.into(),
            one.sealed_by().into(),
            one.depth().as_str().into(),
            window,
            mean.into(),
        ]);
    }
    section.plots.push(Plot::of(
        &table,
        "sealing-modes",
        "pages of a window",
        "to O, average",
        &["mode", "sealed by"],
    ));
    section.tables.push(table);
}
