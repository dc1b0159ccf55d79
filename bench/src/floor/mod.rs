//! Floors: the least that the kernel and the hardware demand for a benchmark's work, as a plain C
//! prototype would do it. Nothing here uses the library.

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
