//! Snapshots as little-endian numbers: small, fast, and read back with every length checked.

pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u64(&mut self, x: u64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub fn u32(&mut self, x: u32) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub fn f64(&mut self, x: f64) {
        self.u64(x.to_bits());
    }

    pub fn u64s(&mut self, items: &[u64]) {
        self.u64(items.len() as u64);
        for &x in items {
            self.u64(x);
        }
    }

    pub fn u32s(&mut self, items: &[u32]) {
        self.u64(items.len() as u64);
        for &x in items {
            self.u32(x);
        }
    }
}

pub struct Reader<'a>(pub &'a [u8]);

pub type Read<T> = Result<T, &'static str>;
const SHORT: &str = "the snapshot is cut short";

impl Reader<'_> {
    pub fn u64(&mut self) -> Read<u64> {
        let (head, tail) = self.0.split_first_chunk::<8>().ok_or(SHORT)?;
        self.0 = tail;
        Ok(u64::from_le_bytes(*head))
    }

    pub fn u32(&mut self) -> Read<u32> {
        let (head, tail) = self.0.split_first_chunk::<4>().ok_or(SHORT)?;
        self.0 = tail;
        Ok(u32::from_le_bytes(*head))
    }

    pub fn f64(&mut self) -> Read<f64> {
        self.u64().map(f64::from_bits)
    }

    /// A length that the rest of the snapshot can really have.
    pub fn len(&mut self, width: usize) -> Read<usize> {
        let n = self.u64()? as usize;
        if n > self.0.len() / width.max(1) {
            Err(SHORT)
        } else {
            Ok(n)
        }
    }

    pub fn u64s(&mut self) -> Read<Vec<u64>> {
        (0..self.len(8)?).map(|_| self.u64()).collect()
    }

    pub fn u32s(&mut self) -> Read<Vec<u32>> {
        (0..self.len(4)?).map(|_| self.u32()).collect()
    }

    pub fn end(&self) -> Read<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err("the snapshot is too long")
        }
    }
}
