//! Real children through the real launcher and its client.

mod confined;
mod ends;
mod kit;
mod limits;
mod missing;
mod output;
mod python;
mod start;
