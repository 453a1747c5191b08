//! Open groups and their free slots: what a tuple may join, found in constant time.
//!
//! A group is a row of cells; a cell waits for one kind of tuple and is listed, as long as it is free, in the list of
//! that kind. Joining picks a uniformly random entry of one list whose group does not hold the tuple's
//! quasi-identifiers yet. Groups leave memory when they are full or too old.

use std::collections::VecDeque;

use super::bytes::{Read, Reader, Writer};
use super::draw::Draw;

/// Random tries before all entries are looked at.
const TRIES: usize = 16;
/// Longest list that is looked at entry by entry; beyond it a tuple gives up after as many tries and opens a group.
const SCAN: usize = 1024;
const GONE: u32 = u32::MAX;

#[derive(Clone)]
struct Cell {
    list: u32,
    at: u32,
    left: u32,
}

#[derive(Default)]
struct Group {
    id: u64,
    free: u32,
    cells: Vec<Cell>,
    members: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Entry {
    group: u32,
    cell: u32,
}

#[derive(Default)]
pub struct Slots {
    groups: Vec<Group>,
    spare: Vec<u32>,
    lists: Vec<Vec<Entry>>,
    ages: VecDeque<(u64, u32, u64)>,
    open: u64,
}

impl Slots {
    pub fn open_groups(&self) -> u64 {
        self.open
    }

    pub fn lists(&self) -> usize {
        self.lists.len()
    }

    pub fn grow(&mut self, lists: usize) {
        if lists > self.lists.len() {
            self.lists.resize_with(lists, Vec::new);
        }
    }

    /// Joins a random group that has a free cell of this list and lacks these quasi-identifiers; gives its id.
    pub fn join(&mut self, list: u32, qi: u64, draw: &mut Draw) -> Option<u64> {
        let entries = &self.lists[list as usize];
        let entry = self.pick(entries, qi, draw)?;
        Some(self.fill(entry, qi))
    }

    fn pick(&self, entries: &[Entry], qi: u64, draw: &mut Draw) -> Option<Entry> {
        if entries.is_empty() {
            return None;
        }
        let lacks = |e: &Entry| !self.groups[e.group as usize].members.contains(&qi);
        let tries = if entries.len() > SCAN { SCAN } else { TRIES };
        for _ in 0..tries {
            let entry = entries[draw.index(entries.len())];
            if lacks(&entry) {
                return Some(entry);
            }
        }
        if entries.len() > SCAN {
            return None;
        }
        let fit: Vec<Entry> = entries.iter().filter(|e| lacks(e)).copied().collect();
        if fit.is_empty() {
            None
        } else {
            Some(fit[draw.index(fit.len())])
        }
    }

    fn fill(&mut self, entry: Entry, qi: u64) -> u64 {
        let group = &mut self.groups[entry.group as usize];
        group.members.push(qi);
        group.free -= 1;
        let (id, full) = (group.id, group.free == 0);
        let cell = &mut group.cells[entry.cell as usize];
        cell.left -= 1;
        if cell.left == 0 {
            self.unlist(entry);
        }
        if full {
            self.drop_group(entry.group);
        }
        id
    }

    fn unlist(&mut self, entry: Entry) {
        let cell = &mut self.groups[entry.group as usize].cells[entry.cell as usize];
        let (list, at) = (cell.list as usize, std::mem::replace(&mut cell.at, GONE));
        self.lists[list].swap_remove(at as usize);
        if let Some(moved) = self.lists[list].get(at as usize) {
            self.groups[moved.group as usize].cells[moved.cell as usize].at = at;
        }
    }

    fn drop_group(&mut self, number: u32) {
        let group = &mut self.groups[number as usize];
        group.cells.clear();
        group.members.clear();
        group.free = 0;
        self.spare.push(number);
        self.open -= 1;
    }

    /// Opens a group whose cells are (list, count); `member` is the cell taken at once and by whom.
    pub fn open(
        &mut self,
        id: u64,
        seq: u64,
        cells: &[(u32, u32)],
        member: Option<(usize, u64)>,
        aging: bool,
    ) {
        let number = self.spare.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            (self.groups.len() - 1) as u32
        });
        let group = &mut self.groups[number as usize];
        group.id = id;
        for (i, &(list, left)) in cells.iter().enumerate() {
            let entries = &mut self.lists[list as usize];
            group.cells.push(Cell {
                list,
                at: entries.len() as u32,
                left,
            });
            group.free += left;
            entries.push(Entry {
                group: number,
                cell: i as u32,
            });
        }
        self.open += 1;
        if aging {
            self.ages.push_back((seq, number, id));
        }
        if let Some((cell, qi)) = member {
            self.fill(
                Entry {
                    group: number,
                    cell: cell as u32,
                },
                qi,
            );
        }
    }

    /// Retires the groups opened before `seq`: nobody joins them any more.
    pub fn retire(&mut self, seq: u64) -> u64 {
        let mut retired = 0;
        while let Some(&(opened, number, id)) = self.ages.front() {
            if opened >= seq {
                break;
            }
            self.ages.pop_front();
            let group = &self.groups[number as usize];
            if group.id != id || group.cells.is_empty() {
                continue;
            }
            for cell in 0..group.cells.len() as u32 {
                if self.groups[number as usize].cells[cell as usize].at != GONE {
                    self.unlist(Entry {
                        group: number,
                        cell,
                    });
                }
            }
            self.drop_group(number);
            retired += 1;
        }
        retired
    }

    pub fn write(&self, out: &mut Writer) {
        out.u64(self.groups.len() as u64);
        for group in &self.groups {
            out.u64(group.id);
            out.u64(group.cells.len() as u64);
            for cell in &group.cells {
                out.u32(cell.list);
                out.u32(cell.at);
                out.u32(cell.left);
            }
            out.u64s(&group.members);
        }
        out.u32s(&self.spare);
        out.u64(self.lists.len() as u64);
        for list in &self.lists {
            out.u64(list.len() as u64);
            for entry in list {
                out.u32(entry.group);
                out.u32(entry.cell);
            }
        }
        out.u64(self.ages.len() as u64);
        for &(seq, number, id) in &self.ages {
            out.u64(seq);
            out.u32(number);
            out.u64(id);
        }
    }

    pub fn read(input: &mut Reader) -> Read<Self> {
        let mut slots = Slots::default();
        for _ in 0..input.len(16)? {
            let id = input.u64()?;
            let mut group = Group {
                id,
                ..Group::default()
            };
            for _ in 0..input.len(12)? {
                let cell = Cell {
                    list: input.u32()?,
                    at: input.u32()?,
                    left: input.u32()?,
                };
                group.free += cell.left;
                group.cells.push(cell);
            }
            group.members = input.u64s()?;
            slots.open += u64::from(!group.cells.is_empty());
            slots.groups.push(group);
        }
        slots.spare = input.u32s()?;
        for _ in 0..input.len(8)? {
            let entries = (0..input.len(8)?).map(|_| {
                Ok(Entry {
                    group: input.u32()?,
                    cell: input.u32()?,
                })
            });
            slots.lists.push(entries.collect::<Read<Vec<Entry>>>()?);
        }
        for _ in 0..input.len(20)? {
            slots
                .ages
                .push_back((input.u64()?, input.u32()?, input.u64()?));
        }
        slots.check()?;
        Ok(slots)
    }

    /// Every reference points at something and back: a damaged snapshot is refused before it can panic later.
    fn check(&self) -> Read<()> {
        const BAD: &str = "the snapshot contradicts itself";
        let known = |g: u32| (g as usize) < self.groups.len();
        if !self.spare.iter().all(|&g| known(g)) || !self.ages.iter().all(|&(_, g, _)| known(g)) {
            return Err(BAD);
        }
        for (number, list) in self.lists.iter().enumerate() {
            for (at, entry) in list.iter().enumerate() {
                let cell = self
                    .groups
                    .get(entry.group as usize)
                    .and_then(|g| g.cells.get(entry.cell as usize));
                if !cell
                    .is_some_and(|c| c.list as usize == number && c.at as usize == at && c.left > 0)
                {
                    return Err(BAD);
                }
            }
        }
        let listed: usize = self.lists.iter().map(Vec::len).sum();
        let free = self
            .groups
            .iter()
            .flat_map(|g| &g.cells)
            .filter(|c| c.at != GONE)
            .count();
        if listed == free { Ok(()) } else { Err(BAD) }
    }
}
