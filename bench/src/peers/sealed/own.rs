use super::{Opened, Page, Place, SealedPeer, forget};
use crate::Result;
use crate::pattern::PAGE;
use indelible::{CreateOptions, MediumKind, Object, Pool, PoolOptions, SealKey};

struct Own {
    pool: Pool,
    sealed: bool,
    object: Option<Object>,
}

pub fn plain(place: &Place<'_>) -> Result<Opened> {
    open(place, false)
}

pub fn sealed(place: &Place<'_>) -> Result<Opened> {
    open(place, true)
}

fn key() -> Result<SealKey> {
    Ok(SealKey::file(vec![0x5a; 32])?)
}

fn open(place: &Place<'_>, sealed: bool) -> Result<Opened> {
    let size = (place.pages * PAGE) as u64;
    let pool =
        PoolOptions::new().medium(MediumKind::File).format(place.dir.join("pool"), size * 2 + (256 << 20))?;
    let create = CreateOptions::new(size);
    let create = if sealed { create.sealed(&key()?, "benchmark") } else { create };
    pool.create_with("pages", &create)?;
    let mut own = Own { pool, sealed, object: None };
    let object = own.attached()?;
    object.as_mut_slice().chunks_exact_mut(PAGE).for_each(|page| page[PAGE - 1] = 1);
    object.psync()?;
    Ok(Opened::Ready(Box::new(own)))
}

impl Own {
    fn attached(&mut self) -> Result<&mut Object> {
        let object = match self.object.take() {
            Some(object) => object,
            None if self.sealed => self.pool.attach_sealed("pages", b"", &key()?)?,
            None => self.pool.attach("pages")?,
        };
        Ok(self.object.insert(object))
    }
}

impl SealedPeer for Own {
    fn write(&mut self, page: usize, bytes: &Page) -> Result<()> {
        let object = self.attached()?;
        object.range_mut(page * PAGE..(page + 1) * PAGE).copy_from_slice(bytes);
        Ok(object.psync()?)
    }

    fn cool(&mut self) -> Result<()> {
        self.object.take().map_or(Ok(()), Object::detach)?;
        forget(self.pool.path())
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.attached()?.as_slice().chunks_exact(PAGE).for_each(see);
        Ok(())
    }
}
