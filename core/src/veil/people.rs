//! The persons of a veil: a known person continues from the stored memory, a new one begins.
//!
//! Memories are contiguous, in the order of first events; an index from keyed hashes of persons finds them. Records of
//! different persons are independent. So all first events of a batch come first, grouped by line, and the later records
//! follow in their order. The result equals processing one record after the other.

use super::canonical;
use super::first_event::Veil;
use super::kernel::Kind;
use super::memory::{self, Memory};
use super::places::Places;
use super::schedule::FirstEvent;

/// Most events that one step may skip: a larger number is a timestamp in place of a count.
pub const MAX_STEPS: u32 = 10_000;

/// The records of a batch, column by column. The caller has checked them.
pub struct Batch<'a> {
    pub persons: &'a [u64],
    /// The keys of the veil: the persons, or their households.
    pub households: &'a [u64],
    /// Strata of the prior, for first events.
    pub strata: &'a [u32],
    pub values: &'a [i32],
    /// The kind of later records.
    pub kind: Kind,
    /// The number of this release, where the releases that a person missed are events too.
    pub now: Option<u32>,
}

impl Batch<'_> {
    fn first_event(&self, veil: &Veil, record: u32) -> FirstEvent {
        let i = record as usize;
        veil.first_event(i, self.households[i], self.strata[i], self.values[i])
    }
}

/// What a batch publishes. Private: whether each true value is a candidate.
pub struct VeiledEvents {
    pub candidates: Vec<u16>,
    pub strata: Vec<u32>,
    pub events: Vec<u32>,
    pub offered: Vec<bool>,
}

impl VeiledEvents {
    /// Starts as if all records were first events.
    fn new(batch: &Batch, l: usize) -> Self {
        let size = batch.persons.len();
        VeiledEvents {
            candidates: vec![0; size * l],
            strata: batch.strata.to_vec(),
            events: vec![0; size],
            offered: vec![false; size],
        }
    }

    /// Writes a first event and its memory.
    fn begin(&mut self, veil: &Veil, first: &FirstEvent, memory: &mut [u8]) {
        let i = first.record as usize;
        let candidates = &mut self.candidates[i * veil.l..(i + 1) * veil.l];
        let true_slot = veil.slots(first, 0, candidates);
        memory::write(memory, first.stratum as u16, 0, true_slot, candidates);
        canonical::sort(candidates);
        self.offered[i] = true_slot.is_some();
    }

    /// Writes a later event.
    fn set(&mut self, i: usize, memory: &Memory) {
        let l = memory.slots.len();
        let candidates = &mut self.candidates[i * l..(i + 1) * l];
        candidates.copy_from_slice(&memory.slots);
        canonical::sort(candidates);
        self.strata[i] = memory.stratum.into();
        self.events[i] = memory.event;
        self.offered[i] = memory.true_slot.is_some();
    }
}

pub struct People {
    size: usize,
    places: Places,
    memories: Vec<u8>,
    /// The last release of each person.
    clocks: Vec<u32>,
}

impl People {
    /// Starts with no persons, for veils of this l.
    pub fn new(l: usize) -> Self {
        People {
            size: Memory::size(l),
            places: Places::default(),
            memories: Vec::new(),
            clocks: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn knows(&self, person: u64) -> bool {
        self.places.find(person).is_some()
    }

    /// Adds the next event of every record's person. An error leaves the state unchanged.
    pub fn add_events(&mut self, veil: &Veil, batch: &Batch) -> Result<VeiledEvents, &'static str> {
        self.check(batch)?;
        let (places, firsts) = self.places(batch);
        let mut veiled = VeiledEvents::new(batch, veil.l);
        veil.for_each_by_line(
            firsts.iter().map(|&i| batch.first_event(veil, i)),
            |first| {
                let place = places[first.record as usize] as usize;
                veiled.begin(veil, first, self.bytes(place));
            },
        );
        let mut memory = Memory::default();
        let mut firsts = firsts.into_iter().peekable();
        for (i, &place) in places.iter().enumerate() {
            if firsts.next_if_eq(&(i as u32)).is_none() {
                let place = place as usize;
                self.recall(veil, place, &mut memory)?;
                let event = memory.event + batch.now.map_or(1, |now| now - self.clocks[place]);
                let (household, value) = (batch.households[i], batch.values[i]);
                veil.step(household, value, batch.kind, event, &mut memory);
                self.keep(place, batch.now, &memory);
                veiled.set(i, &memory);
            }
        }
        Ok(veiled)
    }

    /// A person occurs once per release: two records at one event would share their false candidates and disclose the
    /// true value.
    fn check(&self, batch: &Batch) -> Result<(), &'static str> {
        let Some(now) = batch.now else { return Ok(()) };
        let mut sorted = batch.persons.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("a person occurs twice in a release: send one record per person");
        }
        let missed = |&person: &u64| {
            let place = self.places.find(person)?;
            Some(now.saturating_sub(self.clocks[place]))
        };
        let mut missed = batch.persons.iter().filter_map(missed);
        match missed.all(|steps| (1..=MAX_STEPS).contains(&steps)) {
            true => Ok(()),
            false => Err("release numbers must increase, by at most 10,000 at once"),
        }
    }

    /// The place of every record's person, and the records that are a person's first.
    fn places(&mut self, batch: &Batch) -> (Vec<u32>, Vec<u32>) {
        let mut firsts = Vec::new();
        let mut places = Vec::with_capacity(batch.persons.len());
        for (i, &person) in (0..).zip(batch.persons) {
            let known = self.places.len();
            let place = self.places.place(person);
            if place == known {
                firsts.push(i);
            }
            places.push(place as u32);
        }
        self.memories.resize(self.len() * self.size, 0);
        self.clocks.resize(self.len(), batch.now.unwrap_or(0));
        (places, firsts)
    }

    fn bytes(&mut self, place: usize) -> &mut [u8] {
        &mut self.memories[place * self.size..(place + 1) * self.size]
    }

    fn keep(&mut self, place: usize, now: Option<u32>, memory: &Memory) {
        memory.write(self.bytes(place));
        self.clocks[place] = now.unwrap_or(0);
    }

    fn recall(
        &mut self,
        veil: &Veil,
        place: usize,
        memory: &mut Memory,
    ) -> Result<(), &'static str> {
        match memory.read(self.bytes(place), veil.strata.len(), veil.values) {
            true => Ok(()),
            false => Err("the memory belongs to another parameter set"),
        }
    }

    /// The whole state: the number of persons, persons, clocks, memories.
    pub fn to_bytes(&self) -> Vec<u8> {
        let size = 8 + self.len() * (12 + self.size);
        let mut bytes = Vec::with_capacity(size);
        bytes.extend((self.len() as u64).to_le_bytes());
        bytes.extend(
            self.places
                .keys()
                .iter()
                .flat_map(|person| person.to_le_bytes()),
        );
        bytes.extend(self.clocks.iter().flat_map(|clock| clock.to_le_bytes()));
        bytes.extend(&self.memories);
        bytes
    }

    /// Restores what `to_bytes` wrote, if it belongs to this veil.
    pub fn load(&mut self, veil: &Veil, bytes: &[u8]) -> Option<()> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let size = usize::try_from(u64::from_le_bytes(*head)).ok()?;
        let fits = size.checked_mul(12 + self.size) == Some(rest.len());
        let (persons, rest) = rest.split_at_checked(size.checked_mul(8)?.min(rest.len()))?;
        let (clocks, memories) = rest.split_at_checked((4 * size).min(rest.len()))?;
        if !fits {
            return None;
        }
        let mut memory = Memory::default();
        let valid = memories
            .chunks_exact(self.size)
            .all(|bytes| memory.read(bytes, veil.strata.len(), veil.values));
        let words = persons.chunks_exact(8);
        self.places =
            Places::of(words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))));
        let words = clocks.chunks_exact(4);
        self.clocks = words
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        self.memories = memories.to_vec();
        (valid && self.places.len() == size).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cumulative_line::segments;
    use super::super::kernel::Kernel;
    use super::super::matrix::Matrix;
    use super::super::permutations::random;
    use super::*;

    fn veil() -> Veil {
        let strata = vec![segments(&[9, 1, 2, 4, 2, 3], 3).unwrap()];
        let ring = Matrix::new((0..=6).collect(), vec![1, 2, 3, 4, 5, 0], &[1; 6]);
        Veil::new(
            [3; 32],
            3,
            strata,
            random(6, 8, [4; 32]),
            Kernel::Matrix(ring),
        )
    }

    fn batch<'a>(persons: &'a [u64], strata: &'a [u32], values: &'a [i32]) -> Batch<'a> {
        Batch {
            persons,
            households: persons,
            strata,
            values,
            kind: Kind::Visit,
            now: None,
        }
    }

    #[test]
    fn batch_boundaries_do_not_change_the_result() {
        let veil = veil();
        let persons: Vec<u64> = (0..200).map(|i| i * 7 % 40).collect();
        let (strata, values) = (vec![0; 200], (0..200).map(|i| i % 6).collect::<Vec<i32>>());
        let mut whole = People::new(3);
        let veiled = whole
            .add_events(&veil, &batch(&persons, &strata, &values))
            .unwrap();
        let mut cut = People::new(3);
        for from in (0..200).step_by(13) {
            let span = from..(from + 13).min(200);
            let part = batch(
                &persons[span.clone()],
                &strata[span.clone()],
                &values[span.clone()],
            );
            let part = cut.add_events(&veil, &part).unwrap();
            assert_eq!(
                part.candidates,
                veiled.candidates[3 * span.start..3 * span.end]
            );
            assert_eq!(part.events, veiled.events[span.clone()]);
            assert_eq!(part.offered, veiled.offered[span]);
        }
        assert_eq!(cut.to_bytes(), whole.to_bytes());
        assert_eq!(veiled.events[199], 4);
    }

    #[test]
    fn a_snapshot_survives_a_round_trip_and_corruption_is_rejected() {
        let veil = veil();
        let mut people = People::new(3);
        let persons = [5, 6, 5];
        people
            .add_events(&veil, &batch(&persons, &[0; 3], &[0, 1, 1]))
            .unwrap();
        let bytes = people.to_bytes();
        let mut other = People::new(3);
        assert!(other.load(&veil, &bytes).is_some());
        assert_eq!(other.to_bytes(), bytes);
        assert!(other.knows(5) && !other.knows(7));
        let next = batch(&persons[..1], &[0], &[2]);
        let (a, b) = (
            people.add_events(&veil, &next),
            other.add_events(&veil, &next),
        );
        assert_eq!(a.unwrap().candidates, b.unwrap().candidates);
        for size in [0, 7, 8, 20, bytes.len() - 1] {
            assert!(People::new(3).load(&veil, &bytes[..size]).is_none());
        }
        let mut corrupt = bytes.clone();
        *corrupt.last_mut().unwrap() = 200;
        assert!(People::new(3).load(&veil, &corrupt).is_none());
    }

    #[test]
    fn missed_releases_are_events_and_release_numbers_increase() {
        let veil = veil();
        let mut people = People::new(3);
        let at = |now| Batch {
            now: Some(now),
            ..batch(&[5], &[0], &[0])
        };
        people.add_events(&veil, &at(1)).unwrap();
        assert_eq!(people.add_events(&veil, &at(4)).unwrap().events, [3]);
        assert!(people.add_events(&veil, &at(4)).is_err());
        let twice = Batch {
            now: Some(5),
            ..batch(&[6, 6], &[0, 0], &[0, 0])
        };
        assert!(people.add_events(&veil, &twice).is_err() && !people.knows(6));
    }
}
