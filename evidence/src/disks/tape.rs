//! The ordered record of a disk, and images of power cuts.

use super::pages::Pages;
use crate::workloads::wire::{Said, Spec};
use fastrand::Rng;

pub(crate) const SECTOR: usize = 512;

#[derive(Clone)]
pub(crate) enum Event {
    Write {
        at: u64,
        data: Box<[u8]>,
    },
    Flush,
    /// A program's line about a step, recorded before the program went on.
    Said(Said),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Loss {
    /// In order; the last one may be cut between two sectors.
    Prefix,
    /// Each write arrives with this probability, whole.
    Subset(f64),
    Torn(f64),
}

impl Loss {
    pub(crate) fn any(rng: &mut Rng) -> Loss {
        let likely = [0.1, 0.5, 0.9][rng.usize(..3)];
        match rng.u8(..3) {
            0 => Loss::Prefix,
            1 => Loss::Subset(likely),
            _ => Loss::Torn(likely),
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Loss::Prefix => "prefix",
            Loss::Subset(_) => "subset",
            Loss::Torn(_) => "torn",
        }
    }
}

pub(crate) fn durable(tape: &[Event], at: usize) -> usize {
    tape[..at].iter().rposition(|event| matches!(event, Event::Flush)).map_or(0, |flush| flush + 1)
}

pub(crate) fn write_all(pages: &mut Pages, under: &Pages, tape: &[Event]) {
    for event in tape {
        if let Event::Write { at, data } = event {
            pages.write(under, *at, data);
        }
    }
}

/// `whole`: writes that must not tear.
pub(crate) fn write_some(
    pages: &mut Pages,
    under: &Pages,
    tape: &[Event],
    loss: Loss,
    whole: fn(u64) -> bool,
    rng: &mut Rng,
) {
    let last = tape.iter().rposition(|event| matches!(event, Event::Write { .. }));
    for (index, event) in tape.iter().enumerate() {
        let Event::Write { at, data } = event else { continue };
        match loss {
            Loss::Prefix if Some(index) == last && !whole(*at) => {
                let sectors = rng.usize(..=data.len() / SECTOR);
                pages.write(under, *at, &data[..sectors * SECTOR]);
            }
            Loss::Prefix => pages.write(under, *at, data),
            Loss::Torn(likely) if !whole(*at) => {
                for (sector, bytes) in data.chunks(SECTOR).enumerate() {
                    if rng.f64() < likely {
                        pages.write(under, *at + (sector * SECTOR) as u64, bytes);
                    }
                }
            }
            Loss::Subset(likely) | Loss::Torn(likely) => {
                if rng.f64() < likely {
                    pages.write(under, *at, data);
                }
            }
        }
    }
}

pub(crate) fn hear(specs: &mut [Spec], tape: &[Event]) {
    for event in tape {
        if let Event::Said(said) = event
            && let Some(spec) = specs.iter_mut().find(|spec| Some(spec.workload) == said.workload())
        {
            spec.hear(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape() -> Vec<Event> {
        let write = |at: u64, byte: u8| Event::Write { at, data: vec![byte; 1024].into() };
        vec![
            write(0, 1),
            Event::Flush,
            Event::Said(Said::Done { workload: 0, step: 1 }),
            write(0, 2),
            write(4096, 3),
        ]
    }

    fn image(at: usize, loss: Loss, seed: u64) -> Vec<u8> {
        let (mut pages, none, tape) = (Pages::default(), Pages::default(), tape());
        let from = durable(&tape, at);
        write_all(&mut pages, &none, &tape[..from]);
        write_some(&mut pages, &none, &tape[from..at], loss, |_| false, &mut Rng::with_seed(seed));
        let mut out = vec![0; 8192];
        pages.read(&none, 0, &mut out);
        out
    }

    #[test]
    fn flushed_writes_are_in_every_image_and_others_in_some() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            for loss in [Loss::Prefix, Loss::Subset(0.5), Loss::Torn(0.5)] {
                let image = image(5, loss, seed);
                assert!(image[..1024].iter().all(|byte| *byte != 0), "a flushed write is missing");
                seen.insert((image[0], image[512], image[4096], image[4096 + 512]));
            }
        }
        assert!(seen.contains(&(2, 2, 0, 0)), "the second write is lost");
        assert!(seen.contains(&(1, 1, 3, 3)), "the first is lost, the second not");
        assert!(seen.contains(&(1, 2, 0, 3)), "both are torn");
    }

    #[test]
    fn a_write_that_has_to_stay_whole_is_not_torn() {
        let tape = tape();
        for seed in 0..100 {
            let (mut pages, none) = (Pages::default(), Pages::default());
            let mut rng = Rng::with_seed(seed);
            write_some(&mut pages, &none, &tape, Loss::Torn(0.5), |_| true, &mut rng);
            let mut out = [0; 1024];
            pages.read(&none, 4096, &mut out);
            assert!(out == [0; 1024] || out == [3; 1024]);
        }
    }
}
