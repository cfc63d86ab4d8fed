//! The protocol between a host and `warren-launch`.
//!
//! Both ends share one stream socket, the launcher's standard input. The client sends a [`Header`]
//! together with file descriptors (the working directory, then the program when
//! [`Spec::pinned`], then [`Confinement::writable`] folders), the [`Spec`] as JSON and the bytes of the child's standard input. The launcher
//! answers with frames, [`Frame::Done`] last. When the client's end closes, all that the launcher
//! started is killed.

mod protocol;

pub use protocol::{
    ChildLimits, Confinement, Done, FRAME_HEADER_BYTES, Frame, HEADER_BYTES, Header, Identity,
    LIVE_BYTES_MAX, Outcome, PROXY_ADDRESS, SPEC_BYTES_MAX, STDIN_BYTES_MAX, Spec, Stage,
    TAIL_BYTES_MAX, Totals, WRITABLE_MAX,
};
pub use warren_confine::{Layer, LayerSet, LimitsHit};
