//! Sealed objects (S3.3, S3.4, S3.8, S3.9): decryption on touch, the part that prediction hides,
//! psyncs.

mod computation;
mod kernels;
mod modes;
mod peers;
mod place;
mod psync;
mod walk;

use crate::Result;
use crate::environment::{Environment, Medium};
use crate::floor::UnsealFloor;
use crate::model::Section;
use indelible::{PredictionDepth, SealKey};
use place::Place;

const DEPTHS: [PredictionDepth; 6] = [
    PredictionDepth::Pages(0),
    PredictionDepth::Pages(1),
    PredictionDepth::Pages(2),
    PredictionDepth::Pages(4),
    PredictionDepth::Pages(8),
    PredictionDepth::Auto,
];

fn word(depth: PredictionDepth) -> String {
    match depth {
        PredictionDepth::Pages(pages) => pages.to_string(),
        PredictionDepth::Auto => "auto".into(),
    }
}

fn key() -> Result<SealKey> {
    Ok(SealKey::file(vec![0x5a; 32])?)
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let pages = if environment.quick { 4096 } else { 1 << 16 };
    let Some(floor) = UnsealFloor::new(pages)? else {
        section.notes.push(
            "Not measured: this process has no userfaultfd, so that objects are decrypted whole.".into(),
        );
        return Ok(());
    };
    let places = match &environment.model {
        Some(model) => vec![Place::modelled(model)],
        None => Medium::ALL.map(Place::real).to_vec(),
    };
    for place in places {
        walk::on(environment, place, &floor, section)?;
        psync::on(environment, place, &floor, section)?;
        kernels::on(environment, place, &floor, section)?;
    }
    if environment.model.is_some() {
        // Goals hold for this machine's media: floors lack a model's time.
        section.goals.clear();
        section
            .notes
            .push("Modelled: what is read and written takes the time that the parameter file says.".into());
    } else {
        modes::on(environment, section)?;
        peers::on(environment, section)?;
    }
    section.notes.push(
        "floor of a touch: a thread reads the fault from userfaultfd, decrypts a page (XChaCha20-Poly1305, as sealed objects have) and puts it in place. Floor of \
         a scan: as many threads as there are cores decrypt all pages and put them in place, without faults."
            .into(),
    );
    section.notes.push(
        "stall: time of going through the object page by page, with some work on each, less the time if all pages are there; hidden: the part of the \
         stall of depth 0 that a depth takes away. The paper has speedups of 1.25 without prediction and 1.81 with it, over its earlier design."
            .into(),
    );
    section.notes.push(
        "kernels: from the attach of objects that were filled and psynced before to the last psync, 4 syncs a second. over plain, to floor: what sealing adds, to the \
         time in which one core decrypts each page once and encrypts those that changed."
            .into(),
    );
    Ok(())
}
