//! Volumes as programs see them: through the kernel, with the process that serves them.

mod kills;
mod mounted;
mod support;
