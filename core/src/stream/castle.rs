//! CASTLE (Cao, Carminati, Ferrari and Tan, 2011): clusters of pending tuples, released within a delay of delta.

use std::collections::VecDeque;

use super::class_counts::ClassCounts;
use super::cluster::{Hierarchy, Point, Region, Space};
use super::draw::Draw;

#[derive(Clone)]
pub struct PendingTuple {
    pub seq: u64,
    pub person: u64,
    pub value: u32,
    pub point: Point,
    pub cluster: u32,
    /// The number of tuples that arrived before.
    pub position: u64,
}

#[derive(Clone)]
pub struct Cluster {
    pub region: Region,
    pub members: Vec<u32>,
    pub counts: ClassCounts,
}

/// The parameters: k persons and l values per cluster, delay, live clusters, window of the loss threshold.
pub struct Settings {
    pub k: usize,
    pub l: usize,
    pub delta: usize,
    pub beta: usize,
    pub mu: usize,
    pub reuse: usize,
}

/// A tuple that leaves; without a region it is suppressed.
pub struct Output {
    pub seq: u64,
    pub region: Option<Region>,
}

pub struct Castle {
    pub settings: Settings,
    pub space: Space,
    pub pending: Vec<Option<PendingTuple>>,
    pub spare: Vec<u32>,
    /// Positions and numbers of tuples in order of arrival. Entries of released tuples are skipped; their numbers may
    /// have been reused.
    pub order: VecDeque<(u64, u32)>,
    pub clusters: Vec<Option<Cluster>>,
    /// Published regions that later tuples may reuse.
    pub published: VecDeque<Region>,
    pub losses: VecDeque<f64>,
    pub arrived: u64,
    /// Sums over published tuples: their number, loss of the quasi-identifiers, spread of the sensitive value.
    pub published_sums: (u64, f64, f64),
    /// The current position, and the total wait of published tuples in positions.
    pub now: u64,
    pub waited: u64,
    pub draw: Draw,
}

/// A batch as columns: `leaves` and `numbers` row by row, one per attribute of the space.
pub struct Batch<'a> {
    pub seqs: &'a [u64],
    pub persons: &'a [u64],
    pub values: &'a [u32],
    pub leaves: &'a [u32],
    pub numbers: &'a [f64],
}

impl Castle {
    pub fn new(settings: Settings, categories: usize, numbers: usize, draw: Draw) -> Self {
        Castle {
            settings,
            space: Space {
                hierarchies: vec![Hierarchy::default(); categories],
                low: vec![f64::INFINITY; numbers],
                high: vec![f64::NEG_INFINITY; numbers],
            },
            pending: Vec::new(),
            spare: Vec::new(),
            order: VecDeque::new(),
            clusters: Vec::new(),
            published: VecDeque::new(),
            losses: VecDeque::new(),
            arrived: 0,
            published_sums: (0, 0.0, 0.0),
            now: 0,
            waited: 0,
            draw,
        }
    }

    /// Sets the hierarchy of one category. It may only grow, because published regions refer to its nodes.
    pub fn set_hierarchy(
        &mut self,
        attribute: usize,
        hierarchy: Hierarchy,
    ) -> Result<(), &'static str> {
        let known = self.space.hierarchies.get_mut(attribute);
        let known = known.ok_or("the stream has no such attribute")?;
        let grows = known.leaves() <= hierarchy.leaves();
        let deep = known.tables.is_empty() || known.tables.len() == hierarchy.tables.len();
        if !hierarchy.is_complete() || !grows || !deep {
            return Err("the hierarchy does not fit: it must be complete and may only grow");
        }
        *known = hierarchy;
        Ok(())
    }

    /// Whether all columns are there and every leaf and number is valid.
    pub fn fits(&self, batch: &Batch) -> bool {
        let (rows, hierarchies) = (batch.seqs.len(), &self.space.hierarchies);
        let bounds: Vec<usize> = hierarchies.iter().map(Hierarchy::leaves).collect();
        batch.persons.len() == rows
            && batch.values.len() == rows
            && batch.leaves.len() == rows * hierarchies.len()
            && batch.numbers.len() == rows * self.space.low.len()
            && batch.numbers.iter().all(|x| x.is_finite())
            && batch
                .leaves
                .iter()
                .enumerate()
                .all(|(i, &leaf)| (leaf as usize) < bounds[i % hierarchies.len()])
    }

    /// Adds the tuples of a batch; returns those that left, published or suppressed.
    pub fn push(&mut self, batch: &Batch) -> Vec<Output> {
        let (c, n) = (self.space.hierarchies.len(), self.space.low.len());
        let mut out = Vec::new();
        for (i, &seq) in batch.seqs.iter().enumerate() {
            let point = Point {
                leaves: batch.leaves[i * c..(i + 1) * c].to_vec(),
                numbers: batch.numbers[i * n..(i + 1) * n].to_vec(),
            };
            self.arrive(seq, batch.persons[i], batch.values[i], point, &mut out);
        }
        out
    }

    /// The number of pending tuples.
    pub fn pending_count(&self) -> usize {
        self.pending.len() - self.spare.len()
    }

    pub(super) fn satisfies(&self, counts: &ClassCounts) -> bool {
        counts.satisfies(self.settings.k, self.settings.l)
    }

    pub(super) fn tuple(&self, number: u32) -> &PendingTuple {
        self.pending[number as usize]
            .as_ref()
            .expect("a member is pending")
    }

    pub(super) fn cluster(&self, number: u32) -> &Cluster {
        self.clusters[number as usize]
            .as_ref()
            .expect("a listed cluster exists")
    }

    pub fn live(&self) -> impl Iterator<Item = (u32, &Cluster)> {
        self.clusters
            .iter()
            .enumerate()
            .filter_map(|(i, c)| c.as_ref().map(|c| (i as u32, c)))
    }

    /// The average loss of the last published clusters: the most that a cluster may cost to be extended or reused.
    pub(super) fn threshold(&self) -> f64 {
        if self.losses.is_empty() {
            0.0
        } else {
            self.losses.iter().sum::<f64>() / self.losses.len() as f64
        }
    }

    fn arrive(&mut self, seq: u64, person: u64, value: u32, point: Point, out: &mut Vec<Output>) {
        self.draw.at(seq);
        self.now = seq;
        self.space.see(&point);
        let chosen = self.select(&point);
        let number = self.spare.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() as u32 - 1
        });
        let cluster = match chosen {
            Some(c) => c,
            None => self.create(&point),
        };
        self.pending[number as usize] = Some(PendingTuple {
            seq,
            person,
            value,
            point,
            cluster,
            position: self.arrived,
        });
        self.admit(cluster, number);
        self.order.push_back((self.arrived, number));
        self.arrived += 1;
        while let Some(&(position, number)) = self.order.front() {
            if position + self.settings.delta as u64 > self.arrived - 1 {
                break;
            }
            self.order.pop_front();
            self.expire(position, number, out);
        }
    }

    fn create(&mut self, point: &Point) -> u32 {
        let fresh = Cluster {
            region: Region::around(point),
            members: Vec::new(),
            counts: ClassCounts::default(),
        };
        self.keep(fresh)
    }

    fn keep(&mut self, cluster: Cluster) -> u32 {
        let free = self.clusters.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.clusters.push(None);
            self.clusters.len() - 1
        });
        self.clusters[number] = Some(cluster);
        number as u32
    }

    pub(super) fn admit(&mut self, cluster: u32, number: u32) {
        let tuple = self.pending[number as usize]
            .as_mut()
            .expect("a member is pending");
        tuple.cluster = cluster;
        let into = self.clusters[cluster as usize]
            .as_mut()
            .expect("a listed cluster exists");
        self.space.extend(&mut into.region, &tuple.point);
        into.members.push(number);
        into.counts.add(tuple.person, tuple.value);
    }

    /// The smallest of the clusters that a tuple enlarges least, if it may grow; `None`: start a new one.
    fn select(&self, point: &Point) -> Option<u32> {
        let threshold = self.threshold();
        let (mut least, mut best, mut best_fit) = (f64::INFINITY, None, None);
        let mut live = 0;
        for (number, cluster) in self.live() {
            live += 1;
            let after = self.space.loss_with(&cluster.region, point);
            let growth = after - self.space.loss(&cluster.region);
            let size = cluster.members.len();
            if growth < least {
                (least, best, best_fit) = (growth, None, None);
            }
            if growth <= least {
                best = smaller(best, (size, number));
                if after <= threshold {
                    best_fit = smaller(best_fit, (size, number));
                }
            }
        }
        match best_fit {
            Some((_, number)) => Some(number),
            None if live >= self.settings.beta => best.map(|(_, number)| number),
            None => None,
        }
    }
}

fn smaller(a: Option<(usize, u32)>, b: (usize, u32)) -> Option<(usize, u32)> {
    Some(a.map_or(b, |a| a.min(b)))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::super::bytes::{Reader, Writer};
    use super::super::castle_snapshot;
    use super::*;

    const DELTA: usize = 20;

    fn castle() -> Castle {
        let settings = Settings {
            k: 4,
            l: 2,
            delta: DELTA,
            beta: 3,
            mu: 5,
            reuse: 10,
        };
        Castle::new(settings, 0, 1, Draw::new([1; 32], 0))
    }

    /// Person, value and number of the i-th tuple.
    fn tuple(i: u64) -> (u64, u32, f64) {
        (i % 23, (i % 5) as u32, (i * i % 97) as f64)
    }

    fn push(castle: &mut Castle, from: u64, to: u64) -> Vec<Output> {
        let rows: Vec<_> = (from..to).map(tuple).collect();
        let numbers: Vec<f64> = rows.iter().map(|r| r.2).collect();
        let batch = Batch {
            seqs: &(from..to).collect::<Vec<_>>(),
            persons: &rows.iter().map(|r| r.0).collect::<Vec<_>>(),
            values: &rows.iter().map(|r| r.1).collect::<Vec<_>>(),
            leaves: &[],
            numbers: &numbers,
        };
        assert!(castle.fits(&batch));
        castle.push(&batch)
    }

    #[test]
    fn a_region_is_first_published_with_k_persons_and_l_values() {
        let mut castle = castle();
        for i in 0..500 {
            let mut parts = HashMap::<Vec<u64>, Vec<u64>>::new();
            for out in push(&mut castle, i, i + 1) {
                let Some(region) = out.region else { continue };
                assert!(region.low[0] <= tuple(out.seq).2 && tuple(out.seq).2 <= region.high[0]);
                let bounds = vec![region.low[0].to_bits(), region.high[0].to_bits()];
                parts.entry(bounds).or_default().push(out.seq);
            }
            for seqs in parts.into_values().filter(|seqs| seqs.len() > 1) {
                let persons: HashSet<u64> = seqs.iter().map(|&s| tuple(s).0).collect();
                let values: HashSet<u32> = seqs.iter().map(|&s| tuple(s).1).collect();
                assert!(persons.len() >= 4 && values.len() >= 2, "{seqs:?}");
            }
        }
    }

    #[test]
    fn every_tuple_leaves_once_within_the_delay() {
        let (mut castle, mut left) = (castle(), HashSet::new());
        for i in 0..500 {
            let gone = push(&mut castle, i, i + 1);
            assert!(gone.iter().all(|out| left.insert(out.seq)));
            let late = i.saturating_sub(DELTA as u64);
            assert!((0..late).all(|seq| left.contains(&seq)));
        }
        let mut rest = Vec::new();
        castle.flush(&mut rest);
        assert!(rest.iter().all(|out| left.insert(out.seq)));
        assert_eq!((left.len(), castle.pending_count()), (500, 0));
    }

    #[test]
    fn a_restored_snapshot_continues_identically() {
        let (mut whole, mut half) = (castle(), castle());
        push(&mut whole, 0, 100);
        push(&mut half, 0, 100);
        let mut out = Writer(Vec::new());
        castle_snapshot::write(&half, &mut out);
        let mut again = castle();
        castle_snapshot::read(&mut again, &mut Reader(&out.0)).unwrap();
        let seqs = |outs: Vec<Output>| outs.iter().map(|o| o.seq).collect::<Vec<_>>();
        let left = seqs(push(&mut whole, 100, 300));
        assert_eq!(seqs(push(&mut again, 100, 300)), left);
    }

    #[test]
    fn no_tuple_is_suppressed_before_its_deadline() {
        let mut castle = castle();
        for i in 0..2000 {
            for out in push(&mut castle, i, i + 1) {
                assert!(
                    out.region.is_some() || i - out.seq >= DELTA as u64,
                    "{} at {i}",
                    out.seq
                );
            }
        }
    }
}
