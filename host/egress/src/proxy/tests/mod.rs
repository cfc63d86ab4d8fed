//! Against real servers on loopback.

mod hostile;
mod kit;
mod limits;
mod reach;
