//! Safe file work of the host: every step goes through directory handles, never through joined paths.
//!
//! What lies in a workspace is hostile and may change while we look at it. So nothing here follows
//! a symlink, waits on a FIFO, crosses a mount point unasked, or needs memory, stack or descriptors
//! in proportion to the depth of a tree. Linux 5.8 or later, with `/proc`.

pub mod atomic;
pub mod beneath;
pub mod budget;
pub mod copy;
mod descent;
pub mod digest;
pub mod lock;
mod name;
pub mod owner;
pub mod remove;
mod root;
pub mod scratch;
pub mod space;
mod stat;
pub mod text;
pub mod usage;
pub mod walk;

#[cfg(test)]
mod testing;

pub use cap_std::fs::Dir;
pub use root::open_root;
