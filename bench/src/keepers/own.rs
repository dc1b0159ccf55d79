//! Indelible: an object for each array, one psync for all of them.

use super::{Keeper, Place, Touched};
use crate::Result;
use indelible::{Object, Pool, PoolOptions, psync_all};

struct Own {
    objects: Vec<Object>,
    _pool: Pool,
}

pub fn open(place: &Place<'_>, lengths: &[usize]) -> Result<Box<dyn Keeper>> {
    let room: usize = lengths.iter().sum();
    let options = PoolOptions::new().medium(place.medium.kind()).force(true);
    let pool = options.format(place.dir.join("pool"), (room as u64 * 2).max(256 << 20) + (512 << 20))?;
    let object = |(number, len): (usize, &usize)| -> Result<Object> {
        let name = format!("array-{number}");
        pool.create(&name, *len as u64)?;
        Ok(pool.attach(&name)?)
    };
    let objects = lengths.iter().enumerate().map(object).collect::<Result<_>>()?;
    Ok(Box::new(Own { objects, _pool: pool }))
}

impl Keeper for Own {
    fn arrays(&mut self) -> Vec<&mut [u8]> {
        self.objects.iter_mut().map(Object::as_mut_slice).collect()
    }

    fn sync(&mut self, _: &mut [Touched]) -> Result<()> {
        let mut all: Vec<&mut Object> = self.objects.iter_mut().collect();
        Ok(psync_all(&mut all)?)
    }
}
