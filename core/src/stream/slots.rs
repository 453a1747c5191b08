//! Open groups and their free slots: finds a group for a tuple in constant time.
//!
//! A group is a row of cells. A cell waits for one value and is in the list of that value while it is free. Joining
//! picks a uniformly random entry of one list whose group does not have the tuple's quasi-identifiers yet. Groups leave
//! memory when they are full or too old.

use std::collections::VecDeque;

use super::bytes::{Read, Reader, Writer};
use super::draw::Draw;

/// Random tries before all entries are scanned.
const TRIES: usize = 16;
/// Longest list that is scanned; on longer ones a tuple gives up after this many tries and opens a group.
const SCAN: usize = 1024;
const GONE: u32 = u32::MAX;
const BAD: &str = "the snapshot contradicts itself";

#[derive(Clone, Copy, Default)]
struct Cell {
    list: u32,
    at: u32,
    left: u32,
}

/// The numbers of a group; its cells and members lie in the shared arrays, `stride` entries per group.
#[derive(Clone, Copy, Default)]
struct Group {
    id: u64,
    free: u32,
    cells: u32,
    members: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    group: u32,
    cell: u32,
}

#[derive(Default)]
pub struct Slots {
    stride: usize,
    groups: Vec<Group>,
    cells: Vec<Cell>,
    members: Vec<u64>,
    spare: Vec<u32>,
    lists: Vec<Vec<Entry>>,
    ages: VecDeque<(u64, u32, u64)>,
    open: u64,
}

impl Slots {
    pub fn new(stride: usize) -> Self {
        Slots {
            stride,
            ..Slots::default()
        }
    }

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

    fn members(&self, group: u32) -> &[u64] {
        let first = group as usize * self.stride;
        &self.members[first..first + self.groups[group as usize].members as usize]
    }

    fn cell(&mut self, entry: Entry) -> &mut Cell {
        &mut self.cells[entry.group as usize * self.stride + entry.cell as usize]
    }

    /// Joins a random group that has a free cell of this list and lacks these quasi-identifiers; returns its id.
    pub fn join(&mut self, list: u32, quasi: u64, draw: &mut Draw) -> Option<u64> {
        let entries = &self.lists[list as usize];
        let entry = self.pick(entries, quasi, draw)?;
        Some(self.fill(entry, quasi))
    }

    fn pick(&self, entries: &[Entry], quasi: u64, draw: &mut Draw) -> Option<Entry> {
        if entries.is_empty() {
            return None;
        }
        let lacks = |e: &Entry| !self.members(e.group).contains(&quasi);
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

    fn fill(&mut self, entry: Entry, quasi: u64) -> u64 {
        let group = &mut self.groups[entry.group as usize];
        self.members[entry.group as usize * self.stride + group.members as usize] = quasi;
        group.members += 1;
        group.free -= 1;
        let (id, full) = (group.id, group.free == 0);
        let cell = self.cell(entry);
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
        let cell = self.cell(entry);
        let (list, at) = (cell.list as usize, std::mem::replace(&mut cell.at, GONE));
        self.lists[list].swap_remove(at as usize);
        if let Some(&moved) = self.lists[list].get(at as usize) {
            self.cell(moved).at = at;
        }
    }

    fn drop_group(&mut self, number: u32) {
        self.groups[number as usize] = Group::default();
        self.spare.push(number);
        self.open -= 1;
    }

    /// Opens a group whose cells are (list, count); `member` is the cell that is taken at once and its
    /// quasi-identifiers.
    pub fn open(
        &mut self,
        id: u64,
        seq: u64,
        cells: &[(u32, u32)],
        member: Option<(usize, u64)>,
        aging: bool,
    ) {
        let free = cells.iter().map(|&(_, left)| left).sum::<u32>();
        self.widen(free as usize);
        let number = self.spare.pop().unwrap_or_else(|| self.add());
        self.groups[number as usize] = Group {
            id,
            free,
            cells: cells.len() as u32,
            members: 0,
        };
        for (i, &(list, left)) in cells.iter().enumerate() {
            let entry = Entry {
                group: number,
                cell: i as u32,
            };
            let at = self.lists[list as usize].len() as u32;
            *self.cell(entry) = Cell { list, at, left };
            self.lists[list as usize].push(entry);
        }
        self.open += 1;
        if aging {
            self.note_age(seq, number, id);
        }
        if let Some((cell, quasi)) = member {
            self.fill(
                Entry {
                    group: number,
                    cell: cell as u32,
                },
                quasi,
            );
        }
    }

    fn add(&mut self) -> u32 {
        self.groups.push(Group::default());
        self.cells
            .resize(self.groups.len() * self.stride, Cell::default());
        self.members.resize(self.groups.len() * self.stride, 0);
        (self.groups.len() - 1) as u32
    }

    /// Makes room for groups of `size` slots; only the paper's literal generation needs more than at first.
    fn widen(&mut self, size: usize) {
        if size <= self.stride {
            return;
        }
        let (old, new) = (self.stride, size.next_power_of_two());
        let mut cells = vec![Cell::default(); self.groups.len() * new];
        let mut members = vec![0; self.groups.len() * new];
        for g in 0..self.groups.len() {
            cells[g * new..g * new + old].copy_from_slice(&self.cells[g * old..(g + 1) * old]);
            members[g * new..g * new + old].copy_from_slice(&self.members[g * old..(g + 1) * old]);
        }
        (self.stride, self.cells, self.members) = (new, cells, members);
    }

    /// Queues a group for retirement; entries of full groups are removed when they are the majority.
    fn note_age(&mut self, seq: u64, number: u32, id: u64) {
        if self.ages.len() as u64 > 2 * self.open + 1024 {
            let groups = &self.groups;
            self.ages
                .retain(|&(_, g, id)| groups[g as usize].cells > 0 && groups[g as usize].id == id);
        }
        self.ages.push_back((seq, number, id));
    }

    /// Retires the groups opened before `seq`: no tuple joins them any more.
    pub fn retire(&mut self, seq: u64) -> u64 {
        let mut retired = 0;
        while let Some(&(opened, number, id)) = self.ages.front() {
            if opened >= seq {
                break;
            }
            self.ages.pop_front();
            let group = self.groups[number as usize];
            if group.id != id || group.cells == 0 {
                continue;
            }
            for cell in 0..group.cells {
                let entry = Entry {
                    group: number,
                    cell,
                };
                if self.cell(entry).at != GONE {
                    self.unlist(entry);
                }
            }
            self.drop_group(number);
            retired += 1;
        }
        retired
    }

    pub fn write(&self, out: &mut Writer) {
        out.u64(self.stride as u64);
        out.u64(self.groups.len() as u64);
        for (number, group) in self.groups.iter().enumerate() {
            out.u64(group.id);
            out.u64(u64::from(group.cells));
            for cell in &self.cells[number * self.stride..][..group.cells as usize] {
                out.u32(cell.list);
                out.u32(cell.at);
                out.u32(cell.left);
            }
            out.u64s(self.members(number as u32));
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
        let stride = input.u64()? as usize;
        let count = input.len(24)?;
        if count.checked_mul(stride).is_none_or(|n| n > 1 << 28) {
            return Err(BAD);
        }
        let mut slots = Slots::new(stride);
        for number in 0..count {
            slots.add();
            let id = input.u64()?;
            let cells = input.len(12)?;
            let mut group = Group {
                id,
                cells: cells as u32,
                ..Group::default()
            };
            for cell in 0..cells.min(stride) {
                let read = Cell {
                    list: input.u32()?,
                    at: input.u32()?,
                    left: input.u32()?,
                };
                group.free += read.left;
                slots.cells[number * stride + cell] = read;
            }
            let members = input.u64s()?;
            if cells > stride || members.len() + group.free as usize > stride {
                return Err(BAD);
            }
            group.members = members.len() as u32;
            slots.members[number * stride..][..members.len()].copy_from_slice(&members);
            slots.open += u64::from(cells > 0);
            slots.groups[number] = group;
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

    /// Checks that all references match: a corrupt snapshot is rejected here and cannot panic later.
    fn check(&self) -> Read<()> {
        let known = |g: u32| (g as usize) < self.groups.len();
        if !self.spare.iter().all(|&g| known(g)) || !self.ages.iter().all(|&(_, g, _)| known(g)) {
            return Err(BAD);
        }
        for (number, list) in self.lists.iter().enumerate() {
            for (at, entry) in list.iter().enumerate() {
                if !known(entry.group) || entry.cell >= self.groups[entry.group as usize].cells {
                    return Err(BAD);
                }
                let cell = self.cells[entry.group as usize * self.stride + entry.cell as usize];
                if cell.list as usize != number || cell.at as usize != at || cell.left == 0 {
                    return Err(BAD);
                }
            }
        }
        let listed: usize = self.lists.iter().map(Vec::len).sum();
        let in_use = |g: usize| &self.cells[g * self.stride..][..self.groups[g].cells as usize];
        let free = (0..self.groups.len())
            .flat_map(in_use)
            .filter(|c| c.at != GONE)
            .count();
        if listed == free { Ok(()) } else { Err(BAD) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seq: u64) -> Draw {
        let mut draw = Draw::new([1; 32], 0);
        draw.at(seq);
        draw
    }

    #[test]
    fn a_group_takes_each_quasi_identifier_and_each_cell_once() {
        let mut slots = Slots::new(3);
        slots.grow(3);
        slots.open(77, 0, &[(0, 1), (1, 1), (2, 1)], Some((0, 5)), false);
        assert_eq!(slots.join(0, 6, &mut draw(1)), None, "the cell is taken");
        assert_eq!(slots.join(1, 5, &mut draw(1)), None, "the member is there");
        assert_eq!(slots.join(1, 6, &mut draw(1)), Some(77));
        assert_eq!(slots.join(2, 7, &mut draw(2)), Some(77));
        assert_eq!(slots.open_groups(), 0, "a full group is forgotten");
    }

    #[test]
    fn old_groups_retire_and_a_restored_snapshot_continues_identically() {
        let mut slots = Slots::new(2);
        slots.grow(2);
        slots.open(1, 10, &[(0, 1), (1, 1)], Some((0, 5)), true);
        slots.open(2, 20, &[(0, 1), (1, 1)], Some((0, 6)), true);
        let mut out = Writer(Vec::new());
        slots.write(&mut out);
        let mut again = Slots::read(&mut Reader(&out.0)).unwrap();
        for slots in [&mut slots, &mut again] {
            assert_eq!(slots.retire(15), 1);
            assert_eq!(slots.join(1, 9, &mut draw(30)), Some(2));
        }
        assert!(Slots::read(&mut Reader(&out.0[..out.0.len() - 1])).is_err());
    }
}
