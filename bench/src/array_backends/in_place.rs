//! Mapped files, flushed where touched: no crash consistency (S0.30, NCC).

use super::{ArrayBackend, Opened, PAGE, Place, Touched};
use crate::Result;
use crate::environment::Medium;
use crate::mapped::Mapped;

struct InPlace(Vec<Mapped>);

pub fn open(place: &Place<'_>, lengths: &[usize]) -> Result<Opened> {
    let mapped = |(number, len): (usize, &usize)| {
        Mapped::create(&place.dir.join(format!("array-{number}")), *len, place.medium == Medium::Memory)
    };
    Ok(Opened::Ready(Box::new(InPlace(lengths.iter().enumerate().map(mapped).collect::<Result<_>>()?))))
}

impl ArrayBackend for InPlace {
    fn arrays(&mut self) -> Vec<&mut [u8]> {
        self.0.iter_mut().map(Mapped::bytes).collect()
    }

    fn sync(&mut self, touched: &mut [Touched]) -> Result<()> {
        for (mapped, touched) in self.0.iter().zip(touched.iter_mut()) {
            touched.take(|page| mapped.flush(page * PAGE, PAGE));
        }
        self.0.iter().try_for_each(Mapped::finish)
    }
}
