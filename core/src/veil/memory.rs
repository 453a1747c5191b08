//! What the store remembers of a person: 8 + 2 l bytes, little endian.
//!
//! stratum u16 | event u32 | true slot u8 (255: omitted) | format u8 | l slots of u16
//!
//! The slots are in the order of the line; what is published is sorted. The memory is private, because it holds
//! the true slot.

const FORMAT: u8 = 1;
const OMITTED: u8 = u8::MAX;
pub const HEAD: usize = 8;

#[derive(Default)]
pub struct Memory {
    pub stratum: u16,
    /// Number of the last event.
    pub event: u32,
    /// The slot that follows the person; none once the true value is omitted, for good.
    pub true_slot: Option<u8>,
    pub slots: Vec<u16>,
}

impl Memory {
    /// Bytes of a memory with l slots.
    pub fn size(l: usize) -> usize {
        HEAD + 2 * l
    }

    /// Reads a memory; false if the bytes belong to another parameter set: another l, strata or domain.
    pub fn read(&mut self, bytes: &[u8], strata: usize, values: usize) -> bool {
        self.stratum = u16::from_le_bytes([bytes[0], bytes[1]]);
        self.event = u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
        self.true_slot = (bytes[6] != OMITTED).then_some(bytes[6]);
        self.slots.clear();
        let pairs = bytes[HEAD..].chunks_exact(2);
        self.slots
            .extend(pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])));
        bytes[7] == FORMAT
            && usize::from(self.stratum) < strata
            && self
                .true_slot
                .is_none_or(|slot| usize::from(slot) < self.slots.len())
            && self.slots.iter().all(|&value| usize::from(value) < values)
    }

    pub fn write(&self, bytes: &mut [u8]) {
        write(bytes, self.stratum, self.event, self.true_slot, &self.slots);
    }
}

/// Writes a memory from its parts.
pub fn write(bytes: &mut [u8], stratum: u16, event: u32, true_slot: Option<u8>, slots: &[u16]) {
    bytes[..2].copy_from_slice(&stratum.to_le_bytes());
    bytes[2..6].copy_from_slice(&event.to_le_bytes());
    bytes[6] = true_slot.unwrap_or(OMITTED);
    bytes[7] = FORMAT;
    for (pair, value) in bytes[HEAD..].chunks_exact_mut(2).zip(slots) {
        pair.copy_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_survives_a_round_trip() {
        for true_slot in [None, Some(0), Some(2)] {
            let memory = Memory {
                stratum: 300,
                event: 70_000,
                true_slot,
                slots: vec![5, 65_000, 7],
            };
            let mut bytes = vec![0; Memory::size(3)];
            memory.write(&mut bytes);
            let mut other = Memory::default();
            assert!(other.read(&bytes, 301, 65_001));
            assert_eq!(
                (other.stratum, other.event, other.true_slot),
                (300, 70_000, true_slot)
            );
            assert_eq!(other.slots, memory.slots);
        }
    }

    #[test]
    fn a_memory_of_another_parameter_set_is_rejected() {
        let memory = Memory {
            stratum: 3,
            event: 0,
            true_slot: Some(1),
            slots: vec![5, 6],
        };
        let mut bytes = vec![0; Memory::size(2)];
        memory.write(&mut bytes);
        let mut other = Memory::default();
        assert!(!other.read(&bytes, 3, 10) && !other.read(&bytes, 4, 6));
        bytes[6] = 2;
        assert!(!other.read(&bytes, 4, 10));
        bytes[6] = 1;
        bytes[7] = 0;
        assert!(!other.read(&bytes, 4, 10));
    }
}
