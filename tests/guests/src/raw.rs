//! Handles that are not ours any more, and requests that nobody could meet.

#![expect(unsafe_code, reason = "handles are made up, which is what is tested")]

use serde_json::{Value, json};
use wasip2::clocks::monotonic_clock;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, OpenFlags, PathFlags};
use wasip2::io::poll::Pollable;
use wasip2::io::streams::{InputStream, OutputStream};

pub(crate) fn random() -> usize {
    wasip2::random::random::get_random_bytes(4 << 30).len()
}

/// As much as may be had at a time, kept until there is no more.
pub(crate) fn random_list() -> usize {
    let kept: Vec<_> = (0..1_000_000)
        .map(|_| wasip2::random::random::get_random_bytes(64 * 1024))
        .collect();
    kept.iter().map(Vec::len).sum()
}

fn root() -> Descriptor {
    let (root, _) = get_directories().remove(0);
    root
}

fn file() -> Descriptor {
    let rights = DescriptorFlags::READ | DescriptorFlags::WRITE;
    match root().open_at(PathFlags::empty(), "raw", OpenFlags::CREATE, rights) {
        Ok(file) => file,
        Err(error) => panic!("no file: {error}"),
    }
}

fn stale<T>(resource: T, handle: impl Fn(&T) -> u32, again: impl Fn(u32) -> T) -> T {
    let number = handle(&resource);
    drop(resource);
    again(number)
}

pub(crate) fn play(name: &str) -> Value {
    // SAFETY: none of these is safe: the host must end the call for each.
    let said = unsafe {
        match name {
            "raw-made-up" => Descriptor::from_handle(123_456).stat().is_ok(),
            "raw-zero" => Descriptor::from_handle(0).stat().is_ok(),
            "raw-largest" => Descriptor::from_handle(u32::MAX - 1).stat().is_ok(),
            "raw-closed" => stale(file(), Descriptor::handle, |n| Descriptor::from_handle(n))
                .write(b"x", 0)
                .is_ok(),
            "raw-closed-base" => stale(root(), Descriptor::handle, |n| Descriptor::from_handle(n))
                .create_directory_at("raw-dir")
                .is_ok(),
            "raw-dropped-twice" => {
                drop(stale(file(), Descriptor::handle, |n| {
                    Descriptor::from_handle(n)
                }));
                true
            }
            "raw-other-kind" => OutputStream::from_handle(root().take_handle())
                .write(b"x")
                .is_ok(),
            "raw-file-as-stream" => InputStream::from_handle(file().take_handle())
                .read(10)
                .is_ok(),
            "raw-closed-stream" => {
                let stream = file().write_via_stream(0).expect("a stream");
                stale(stream, OutputStream::handle, |n| {
                    OutputStream::from_handle(n)
                })
                .blocking_write_and_flush(b"x")
                .is_ok()
            }
            "raw-closed-pollable" => {
                let timer = monotonic_clock::subscribe_duration(0);
                stale(timer, Pollable::handle, |n| Pollable::from_handle(n)).ready()
            }
            "raw-empty-poll" => wasip2::io::poll::poll(&[]).is_empty(),
            "raw-parent-first" => {
                // A pollable whose stream is closed before it.
                let stream = file().read_via_stream(0).expect("a stream");
                let pollable = stream.subscribe();
                drop(stream);
                pollable.ready()
            }
            "raw-zeroes" => {
                let stream = file().write_via_stream(0).expect("a stream");
                stream.write_zeroes(u64::MAX).is_ok()
            }
            "raw-read-all" => file().read(u64::MAX, u64::MAX).is_ok(),
            "raw-write-far" => file().write(b"x", u64::MAX).is_ok(),
            "raw-size" => file().set_size(u64::MAX).is_ok(),
            "raw-splice-far" => {
                let file = file();
                let from = file.read_via_stream(u64::MAX).expect("a stream");
                let to = file.write_via_stream(u64::MAX).expect("a stream");
                to.blocking_splice(&from, u64::MAX).is_ok()
            }
            "raw-timer" => {
                monotonic_clock::subscribe_duration(u64::MAX);
                monotonic_clock::subscribe_instant(u64::MAX).ready()
            }
            _ => false,
        }
    };
    json!({ "ok": said })
}
