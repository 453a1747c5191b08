//! Releases of CASTLE: an expired tuple leaves with its cluster, with a published region, after a merge, or suppressed.

use super::castle::{Castle, Cluster, Output};
use super::class_counts::ClassCounts;
use super::cluster::Region;

impl Castle {
    /// A tuple reached its deadline: it leaves with its cluster, with a published region, after a merge, or suppressed.
    pub(super) fn expire(&mut self, position: u64, number: u32, out: &mut Vec<Output>) {
        let tuple = self.pending[number as usize].as_ref();
        let Some(tuple) = tuple.filter(|t| t.position == position) else {
            return;
        };
        let (home, point) = (tuple.cluster, tuple.point.clone());
        let cluster = self.cluster(home);
        if self.satisfies(&cluster.counts) {
            return self.publish(home, out);
        }
        let fit: Vec<usize> = (0..self.published.len())
            .filter(|&i| self.space.contains(&self.published[i], &point))
            .collect();
        if !fit.is_empty() {
            let region = self.published[fit[self.draw.index(fit.len())]].clone();
            self.count_published(&region, self.settings.l, 1);
            return self.release_tuple(number, Some(region), out);
        }
        let size = cluster.members.len();
        let larger = self.live().filter(|(_, c)| c.members.len() > size).count();
        if larger * 2 > self.live().count() || !self.can_merge() {
            return self.release_tuple(number, None, out);
        }
        self.merge(home);
        self.publish(home, out);
    }

    fn can_merge(&self) -> bool {
        let mut counts = ClassCounts::default();
        for tuple in self.pending.iter().flatten() {
            counts.add(tuple.person, tuple.value);
        }
        self.satisfies(&counts)
    }

    fn release_tuple(&mut self, number: u32, region: Option<Region>, out: &mut Vec<Output>) {
        let tuple = self.pending[number as usize]
            .take()
            .expect("a member is pending");
        self.spare.push(number);
        let cluster = self.clusters[tuple.cluster as usize]
            .as_mut()
            .expect("a listed cluster exists");
        cluster.members.retain(|&m| m != number);
        cluster.counts.remove(tuple.person, tuple.value);
        if cluster.members.is_empty() {
            self.clusters[tuple.cluster as usize] = None;
        }
        self.waited += if region.is_some() {
            self.now - tuple.seq
        } else {
            0
        };
        out.push(Output {
            seq: tuple.seq,
            region,
        });
    }

    /// Merges the nearest clusters until there are enough persons and values.
    fn merge(&mut self, home: u32) {
        while !self.satisfies(&self.cluster(home).counts) {
            let region = &self.cluster(home).region;
            let cost = |c: &Cluster| self.space.loss(&self.space.join(region, &c.region));
            let nearest = self
                .live()
                .filter(|&(n, _)| n != home)
                .min_by(|(_, a), (_, b)| cost(a).total_cmp(&cost(b)))
                .map(|(n, _)| n)
                .expect("all pending tuples together are enough");
            let other = self.clusters[nearest as usize]
                .take()
                .expect("a listed cluster exists");
            for number in other.members {
                self.admit(home, number);
            }
        }
    }

    fn publish(&mut self, number: u32, out: &mut Vec<Output>) {
        let whole = self.clusters[number as usize]
            .take()
            .expect("a listed cluster exists");
        for part in self.split(whole) {
            let loss = self.space.loss(&part.region);
            self.losses.push_back(loss);
            if self.losses.len() > self.settings.mu {
                self.losses.pop_front();
            }
            self.count_published(&part.region, part.counts.values(), part.members.len());
            for &member in &part.members {
                let tuple = self.pending[member as usize]
                    .take()
                    .expect("a member is pending");
                self.spare.push(member);
                self.waited += self.now - tuple.seq;
                out.push(Output {
                    seq: tuple.seq,
                    region: Some(part.region.clone()),
                });
            }
            if loss < self.threshold() {
                self.published.push_back(part.region);
                if self.published.len() > self.settings.reuse {
                    self.published.pop_front();
                }
            }
        }
    }

    fn count_published(&mut self, region: &Region, values: usize, tuples: usize) {
        let n = tuples as f64;
        self.published_sums.0 += tuples as u64;
        self.published_sums.1 += n * self.space.loss(region);
        self.published_sums.2 += n * (values - 1) as f64 / values as f64;
    }

    /// Releases or suppresses all pending tuples.
    pub fn flush(&mut self, out: &mut Vec<Output>) {
        self.draw.at(u64::MAX >> 20);
        while let Some((position, number)) = self.order.pop_front() {
            self.expire(position, number, out);
        }
    }
}
