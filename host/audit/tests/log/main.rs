//! The log from outside.

mod crash;
mod full;
mod kit;
mod reading;
mod rotation;
mod tamper;
mod writers;
