//! The generalization lattice: attributes, their levels, and nodes (one level per attribute).
//!
//! Attributes with small domains share a *pack*: one column of combined codes. A group-by reads a few packs instead of
//! every attribute.

/// One quasi-identifier: lookup tables from leaf codes to the nodes of each level of its hierarchy.
pub struct Attribute {
    /// `tables[level][leaf]` is the node above the leaf.
    pub tables: Vec<Vec<u32>>,
    /// Number of nodes per level that occur in the data.
    pub widths: Vec<usize>,
    /// `leaves[level][node]`: leaves of the hierarchy below the node, whether in the data or not.
    pub leaves: Vec<Vec<u64>>,
    /// Leaves of the whole hierarchy.
    pub size: u64,
}

impl Attribute {
    /// Checks that every level refines the next one, which pruning and roll-up require.
    pub fn new(tables: Vec<Vec<u32>>, leaves: Vec<Vec<u64>>, size: u64) -> Result<Self, String> {
        let domain = tables.first().map_or(0, Vec::len);
        if tables.len() != leaves.len() || tables.is_empty() {
            return Err("every level needs a table and its leaf counts".into());
        }
        if tables.iter().any(|t| t.len() != domain) {
            return Err("the tables of one attribute differ in length".into());
        }
        let widths: Vec<usize> = leaves.iter().map(Vec::len).collect();
        for (table, &width) in tables.iter().zip(&widths) {
            if table.iter().any(|&node| node as usize >= width) {
                return Err("a table names a node without a leaf count".into());
            }
        }
        if tables.windows(2).any(|pair| !refines(&pair[0], &pair[1])) {
            return Err("a level of a hierarchy does not refine the next".into());
        }
        Ok(Self {
            tables,
            widths,
            leaves,
            size,
        })
    }

    pub fn levels(&self) -> usize {
        self.tables.len()
    }

    pub fn domain(&self) -> usize {
        self.tables[0].len()
    }
}

fn refines(fine: &[u32], coarse: &[u32]) -> bool {
    let mut parent = std::collections::HashMap::new();
    fine.iter()
        .zip(coarse)
        .all(|(f, c)| parent.entry(f).or_insert(c) == &c)
}

/// A few attributes in one column: code = sum of leaf * stride.
pub struct Pack {
    pub members: Vec<(usize, usize)>,
    pub domain: usize,
}

/// Largest combined domain of a pack: its lookup table stays in the first-level cache.
const PACK_DOMAIN: usize = 4096;

pub struct Space {
    pub attributes: Vec<Attribute>,
    pub packs: Vec<Pack>,
    /// Lattice strides: index of a node = sum of level * stride.
    pub strides: Vec<usize>,
    /// Number of nodes, saturating.
    pub nodes: usize,
}

pub type Levels = Vec<u8>;

impl Space {
    pub fn new(attributes: Vec<Attribute>) -> Self {
        let mut strides = vec![1usize; attributes.len()];
        let mut nodes = 1usize;
        for j in (0..attributes.len()).rev() {
            strides[j] = nodes;
            nodes = nodes.saturating_mul(attributes[j].levels());
        }
        let packs = pack(&attributes);
        Self {
            attributes,
            packs,
            strides,
            nodes,
        }
    }

    pub fn top(&self) -> Levels {
        self.attributes
            .iter()
            .map(|a| (a.levels() - 1) as u8)
            .collect()
    }

    pub fn bottom(&self) -> Levels {
        vec![0; self.attributes.len()]
    }

    /// Levels of the node with this index; the order of indices is lexicographic.
    pub fn levels(&self, mut index: usize) -> Levels {
        self.strides
            .iter()
            .map(|&stride| {
                let level = index / stride;
                index %= stride;
                level as u8
            })
            .collect()
    }

    pub fn index(&self, levels: &[u8]) -> usize {
        levels
            .iter()
            .zip(&self.strides)
            .map(|(&v, &s)| v as usize * s)
            .sum()
    }

    /// The leaf of an attribute inside a pack's code.
    pub fn leaf(&self, member: (usize, usize), code: usize) -> usize {
        code / member.1 % self.attributes[member.0].domain().max(1)
    }
}

pub fn covers(coarse: &[u8], fine: &[u8]) -> bool {
    coarse.iter().zip(fine).all(|(c, f)| c >= f)
}

pub fn height(levels: &[u8]) -> u32 {
    levels.iter().map(|&v| u32::from(v)).sum()
}

/// First fit, largest domain first.
fn pack(attributes: &[Attribute]) -> Vec<Pack> {
    let mut order: Vec<usize> = (0..attributes.len()).collect();
    order.sort_by_key(|&j| std::cmp::Reverse(attributes[j].domain()));
    let mut packs: Vec<Pack> = Vec::new();
    for j in order {
        let domain = attributes[j].domain().max(1);
        match packs.iter_mut().find(|p| p.domain * domain <= PACK_DOMAIN) {
            Some(p) => {
                p.members.push((j, p.domain));
                p.domain *= domain;
            }
            None => packs.push(Pack {
                members: vec![(j, 1)],
                domain,
            }),
        }
    }
    packs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(tables: &[&[u32]]) -> Result<Attribute, String> {
        let width = |t: &&[u32]| t.iter().max().map_or(0, |&m| m as usize + 1);
        let leaves = tables.iter().map(|t| vec![1; width(t)]).collect();
        Attribute::new(tables.iter().map(|t| t.to_vec()).collect(), leaves, 4)
    }

    #[test]
    fn a_level_must_refine_the_next() {
        assert!(attribute(&[&[0, 1, 2, 3], &[0, 0, 1, 1], &[0, 0, 0, 0]]).is_ok());
        assert!(attribute(&[&[0, 0, 1, 1], &[0, 1, 0, 1]]).is_err());
        assert!(attribute(&[&[0, 1], &[0]]).is_err());
    }

    #[test]
    fn node_indices_and_levels_convert_both_ways() {
        let attribute = || attribute(&[&[0, 1, 2, 3], &[0, 0, 1, 1], &[0, 0, 0, 0]]).unwrap();
        let space = Space::new(vec![attribute(), attribute()]);
        assert_eq!(space.nodes, 9);
        for index in 0..9 {
            assert_eq!(space.index(&space.levels(index)), index);
        }
        assert_eq!(space.top(), [2, 2]);
    }
}
