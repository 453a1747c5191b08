//! The split of CASTLE: a large cluster leaves as several small ones.

use super::castle::{Castle, Cluster};
use super::class_counts::ClassCounts;
use super::cluster::Region;

/// What a neighbor must add; `Any` if few persons have all the values.
#[derive(Clone, Copy)]
enum Want {
    Value,
    Person,
    Any,
}

impl Castle {
    /// Splits a large cluster into valid parts: around a random tuple, its nearest neighbors.
    pub(super) fn split(&mut self, whole: Cluster) -> Vec<Cluster> {
        if whole.counts.persons() < 2 * self.settings.k {
            return vec![whole];
        }
        let mut rest = whole.members.clone();
        let mut counts = whole.counts.clone();
        let mut parts: Vec<Cluster> = Vec::new();
        while self.satisfies(&counts) {
            let seed = rest[self.draw.index(rest.len())];
            let part = self.grow(seed, &rest);
            rest.retain(|m| !part.members.contains(m));
            for &member in &part.members {
                let tuple = self.tuple(member);
                counts.remove(tuple.person, tuple.value);
            }
            parts.push(part);
        }
        for number in rest {
            let point = self.tuple(number).point.clone();
            let growth =
                |c: &Cluster| self.space.loss_with(&c.region, &point) - self.space.loss(&c.region);
            let nearest = (0..parts.len())
                .min_by(|&a, &b| growth(&parts[a]).total_cmp(&growth(&parts[b])))
                .expect("a valid cluster gives at least one part");
            self.put(&mut parts[nearest], number);
        }
        parts
    }

    fn put(&self, part: &mut Cluster, number: u32) {
        let tuple = self.tuple(number);
        self.space.extend(&mut part.region, &tuple.point);
        part.members.push(number);
        part.counts.add(tuple.person, tuple.value);
    }

    /// The smallest valid cluster around a tuple: neighbors that add a new person or a missing value.
    fn grow(&self, seed: u32, rest: &[u32]) -> Cluster {
        let around = Region::around(&self.tuple(seed).point);
        let mut near: Vec<(f64, u32)> = rest
            .iter()
            .filter(|&&m| m != seed)
            .map(|&m| (self.space.loss_with(&around, &self.tuple(m).point), m))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut part = Cluster {
            region: around,
            members: vec![],
            counts: ClassCounts::default(),
        };
        self.put(&mut part, seed);
        for want in [Want::Value, Want::Person, Want::Any] {
            for &(_, number) in &near {
                if self.satisfies(&part.counts) {
                    return part;
                }
                let tuple = self.tuple(number);
                let brings = match want {
                    Want::Value => {
                        part.counts.values() < self.settings.l
                            && !part.counts.has_value(tuple.value)
                    }
                    Want::Person => !part.counts.has_person(tuple.person),
                    Want::Any => true,
                };
                if brings && !part.members.contains(&number) {
                    self.put(&mut part, number);
                }
            }
        }
        part
    }
}
