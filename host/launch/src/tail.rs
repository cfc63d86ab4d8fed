//! The last bytes of a stream.

use std::collections::VecDeque;

/// Keeps the last bytes that were pushed, and counts all.
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    bytes_max: usize,
    total_bytes: u64,
}

impl Tail {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            bytes_max,
            total_bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.total_bytes += chunk.len() as u64;
        let chunk = &chunk[chunk.len().saturating_sub(self.bytes_max)..];
        let excess = (self.bytes.len() + chunk.len()).saturating_sub(self.bytes_max);
        self.bytes.drain(..excess);
        self.bytes.extend(chunk);
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub(crate) fn contiguous(&mut self) -> &[u8] {
        self.bytes.make_contiguous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_stay_however_they_come() {
        let mut tail = Tail::new(4);
        for chunk in ["ab", "c", "", "de"] {
            tail.push(chunk.as_bytes());
        }
        assert_eq!(tail.contiguous(), b"bcde");
        tail.push(b"0123456789");
        assert_eq!(tail.contiguous(), b"6789");
        tail.push(b"x");
        assert_eq!(tail.contiguous(), b"789x");
        assert_eq!(tail.total_bytes(), 16);

        let mut none = Tail::new(0);
        none.push(b"abc");
        assert_eq!(none.contiguous(), b"");
        assert_eq!(none.total_bytes(), 3);
    }
}
