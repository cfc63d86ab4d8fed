//! Real children through the real launcher and its client.

mod ends;
mod kit;
mod output;
mod start;
