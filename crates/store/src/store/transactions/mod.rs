mod commits;
mod queue;

pub use commits::Commits;
pub use queue::ChangedLine;
