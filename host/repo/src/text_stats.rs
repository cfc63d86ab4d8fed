//! What git looks at to tell text from binary, and one kind of line end from the other.

#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) nul: usize,
    pub(crate) lone_cr: usize,
    pub(crate) lone_lf: usize,
    pub(crate) crlf: usize,
    pub(crate) printable: usize,
    pub(crate) other: usize,
}

impl Stats {
    pub(crate) fn of(data: &[u8]) -> Self {
        let mut stats = Self::default();
        let mut bytes = data.iter().peekable();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\r' if bytes.next_if_eq(&&b'\n').is_some() => stats.crlf += 1,
                b'\r' => stats.lone_cr += 1,
                b'\n' => stats.lone_lf += 1,
                8 | b'\t' | 0x1b | 0x0c => stats.printable += 1,
                0 => {
                    stats.nul += 1;
                    stats.other += 1;
                }
                0x7f | 0..0x20 => stats.other += 1,
                _ => stats.printable += 1,
            }
        }
        // The end-of-file mark of old systems is no sign of a binary.
        if data.last() == Some(&0x1a) {
            stats.other -= 1;
        }
        stats
    }

    pub(crate) fn is_binary(&self) -> bool {
        self.lone_cr > 0 || self.nul > 0 || (self.printable >> 7) < self.other
    }
}
