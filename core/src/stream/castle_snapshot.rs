//! Writes and reads the state of CASTLE.

use super::bytes::{Read, Reader, Writer};
use super::castle::{Castle, Cluster, PendingTuple};
use super::class_counts::ClassCounts;
use super::cluster::{Point, Region};

const BAD: &str = "the snapshot contradicts itself";

fn write_region(out: &mut Writer, region: &Region) {
    out.u32s(&region.leaves);
    out.u32s(&region.levels);
    out.u64s(&region.low.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    out.u64s(&region.high.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
}

fn read_region(input: &mut Reader) -> Read<Region> {
    let bits = |xs: Vec<u64>| xs.into_iter().map(f64::from_bits).collect();
    Ok(Region {
        leaves: input.u32s()?,
        levels: input.u32s()?,
        low: bits(input.u64s()?),
        high: bits(input.u64s()?),
    })
}

pub fn write(core: &Castle, out: &mut Writer) {
    out.u64(core.arrived);
    let (tuples, loss, spread) = core.published_sums;
    out.u64(tuples);
    out.f64(loss);
    out.f64(spread);
    out.u64(core.now);
    out.u64(core.waited);
    for &x in core.space.low.iter().chain(&core.space.high) {
        out.f64(x);
    }
    out.u64(core.pending.len() as u64);
    for pending in &core.pending {
        let Some(t) = pending else {
            out.u32(0);
            continue;
        };
        out.u32(1);
        out.u64(t.seq);
        out.u64(t.person);
        out.u32(t.value);
        out.u32(t.cluster);
        out.u32s(&t.point.leaves);
        out.u64s(
            &t.point
                .numbers
                .iter()
                .map(|x| x.to_bits())
                .collect::<Vec<_>>(),
        );
    }
    out.u32s(&core.spare);
    out.u64(core.order.len() as u64);
    for &(position, number) in &core.order {
        out.u64(position);
        out.u32(number);
    }
    out.u64(core.clusters.len() as u64);
    for cluster in &core.clusters {
        let members = cluster.as_ref().map_or(&[][..], |c| &c.members);
        out.u32s(members);
        if let Some(c) = cluster {
            write_region(out, &c.region);
        }
    }
    out.u64(core.published.len() as u64);
    for region in &core.published {
        write_region(out, region);
    }
    out.u64(core.losses.len() as u64);
    for &loss in &core.losses {
        out.f64(loss);
    }
}

/// Restores the state of an engine with the same settings and hierarchies.
pub fn read(core: &mut Castle, input: &mut Reader) -> Read<()> {
    core.arrived = input.u64()?;
    core.published_sums = (input.u64()?, input.f64()?, input.f64()?);
    (core.now, core.waited) = (input.u64()?, input.u64()?);
    for x in core.space.low.iter_mut().chain(&mut core.space.high) {
        *x = input.f64()?;
    }
    core.pending.clear();
    for _ in 0..input.len(4)? {
        let pending = if input.u32()? == 0 {
            None
        } else {
            Some(read_pending(input)?)
        };
        core.pending.push(pending);
    }
    core.spare = input.u32s()?;
    core.order = (0..input.len(12)?)
        .map(|_| Ok((input.u64()?, input.u32()?)))
        .collect::<Read<_>>()?;
    place(core)?;
    core.clusters.clear();
    for _ in 0..input.len(8)? {
        let members = input.u32s()?;
        let cluster = if members.is_empty() {
            None
        } else {
            Some(rebuild(core, members, read_region(input)?)?)
        };
        core.clusters.push(cluster);
    }
    core.published = (0..input.len(32)?)
        .map(|_| read_region(input))
        .collect::<Read<_>>()?;
    core.losses = (0..input.len(8)?)
        .map(|_| input.f64())
        .collect::<Read<_>>()?;
    input.end()
}

/// Gives every pending tuple its position: that of the last arrival with its number.
fn place(core: &mut Castle) -> Read<()> {
    for &(position, number) in &core.order {
        let pending = core.pending.get_mut(number as usize).ok_or(BAD)?;
        pending.iter_mut().for_each(|t| t.position = position);
    }
    let waits = |t: &PendingTuple| t.position != u64::MAX;
    if core.pending.iter().flatten().all(waits) {
        Ok(())
    } else {
        Err(BAD)
    }
}

fn read_pending(input: &mut Reader) -> Read<PendingTuple> {
    let (seq, person, value, cluster) = (input.u64()?, input.u64()?, input.u32()?, input.u32()?);
    let (leaves, numbers) = (
        input.u32s()?,
        input.u64s()?.into_iter().map(f64::from_bits).collect(),
    );
    Ok(PendingTuple {
        seq,
        person,
        value,
        cluster,
        point: Point { leaves, numbers },
        position: u64::MAX,
    })
}

fn rebuild(core: &Castle, members: Vec<u32>, region: Region) -> Read<Cluster> {
    let mut counts = ClassCounts::default();
    for &member in &members {
        let pending = core.pending.get(member as usize).and_then(Option::as_ref);
        let pending = pending.ok_or(BAD)?;
        counts.add(pending.person, pending.value);
    }
    Ok(Cluster {
        region,
        members,
        counts,
    })
}
