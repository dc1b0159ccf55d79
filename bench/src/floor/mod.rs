//! Floors: the least work for the kernel and hardware, as in a plain C prototype, without the
//! library.

mod cold;
mod map;
mod page;
pub mod rounds;
mod scan;
mod unseal;
mod write;

pub use cold::ColdFloor;
pub use map::{MapFloor, open_floor};
pub use page::PageFloor;
pub use scan::ScanFloor;
pub use unseal::UnsealFloor;
pub use write::WriteFloor;
