//! Times the hot loops on synthetic codes: `cargo bench --no-default-features`. Reports the best of a few runs.

use std::hint::black_box;
use std::time::Instant;

use _core::evolving::method::Evolving;
use _core::random::permutation;
use _core::stream::delay_free::{DelayFree, Settings};
use _core::stream::pools::Kind;
use _core::stream::sip::Sip;
use _core::table::anatomy;
use _core::table::cancellation::CancellationToken;
use _core::table::collapse::collapse;
use _core::table::loss::{Kind as Loss, Scorer};
use _core::table::model::Model;
use _core::table::optimal::{Task, search};
use _core::table::space::{Attribute, Space};
use _core::veil::SLOT_LENGTH;
use _core::veil::cumulative_line::segments;
use _core::veil::first_event::Veil;
use _core::veil::kernel::{Kernel, Kind as Event};
use _core::veil::people::{Batch, People};
use _core::veil::permutations::random;
use _core::veil::shares::Shares;

const RUNS: usize = 5;

/// Prints nanoseconds per item; the setup is not timed.
fn time<S, T>(
    name: &str,
    items: usize,
    mut setup: impl FnMut() -> S,
    mut work: impl FnMut(S) -> T,
) {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let state = setup();
        let start = Instant::now();
        black_box(work(state));
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:<40} {:>10.1} ns per item", best * 1e9 / items as f64);
}

fn delay_free() -> DelayFree {
    let settings = Settings {
        key: [1; 32],
        shard: 0,
        l: 5,
        pool: Kind::Uniform,
        weights: vec![1; 200],
        rank: (0..200).collect(),
        retire_after: 0,
        literal: 0,
    };
    DelayFree::new(settings).expect("a stream")
}

fn stream() {
    let n = 200_000;
    let seqs: Vec<u64> = (0..n as u64).collect();
    let codes: Vec<i32> = seqs.iter().map(|i| (i * 7919 % 200) as i32).collect();
    time("delay-free: push", n, delay_free, |mut stream| {
        stream.push(&seqs, &seqs, &codes)
    });
    let sip = Sip::new(&[1; 32]);
    let sum = |()| {
        seqs.iter()
            .fold(0, |sum, _| sum ^ sip.bytes(black_box(b"twelve bytes")))
    };
    time("siphash: 12 bytes", n, || (), sum);
}

fn evolving() {
    let (n, gone) = (50_000usize, 500);
    let rows: Vec<u32> = (0..n as u32).collect();
    let values: Vec<i32> = rows.iter().map(|r| (r % 20) as i32).collect();
    let order = permutation(n, [2; 32]);
    let leaving: Vec<u32> = order.iter().take(gone).map(|&r| r as u32).collect();
    for method in ["indexed", "enc", "encc"] {
        let build = || {
            let mut table = Evolving::new(method, 10, vec![0.0]).expect("a method");
            table.insert(&rows, &values, &values, [1; 32]);
            table
        };
        let name = format!("{method}: delete one by one");
        time(&name, gone, build, |mut table| {
            table.delete(&leaving, [1; 32], true)
        });
    }
}

fn tables() {
    let n = 100_000;
    let codes = |step: i64| -> Vec<i32> { (0..n).map(|i| (i * step % 64) as i32).collect() };
    let values = codes(7);
    let group = |()| anatomy::group(&values, 64, 8, [1; 32]);
    time("anatomy", n as usize, || (), group);
    let hierarchy = || {
        let table = |level: u32| (0..64).map(|leaf: u32| leaf >> (2 * level)).collect();
        let leaves = |level: u32| vec![1u64 << (2 * level); 64 >> (2 * level)];
        Attribute::new(
            (0..4).map(table).collect(),
            (0..4).map(leaves).collect(),
            64,
        )
        .expect("a hierarchy")
    };
    let columns = [codes(1), codes(11), codes(29), codes(45)];
    let slices: Vec<&[i32]> = columns.iter().map(Vec::as_slice).collect();
    let optimum = |()| {
        let space = Space::new((0..4).map(|_| hierarchy()).collect());
        let table = collapse(space, &slices, vec![], None).table;
        let model = Model {
            k: 50,
            diversity: None,
            closeness: None,
            persons: None,
        };
        let scorer = Scorer::new(Loss::Loss, &table.space, &table.base, &[1.0; 4]);
        search(&Task {
            table: &table,
            model: &model,
            scorer: &scorer,
            limit: 1000,
            cancellation: &CancellationToken::default(),
        })
        .checked
    };
    time("optimal: collapse and search", n as usize, || (), optimum);
}

fn veil_of(values: usize, strata: usize, l: usize) -> Veil {
    let counts = |stratum: usize| -> Vec<u64> {
        (0..values)
            .map(|value| 1 + ((stratum * values + value) as u64 * 7919) % 999)
            .collect()
    };
    let strata: Vec<Vec<u64>> = (0..strata)
        .map(|stratum| segments(&counts(stratum), l).expect("counts"))
        .collect();
    let parents = (0..values as u32).map(|value| value / 8).collect();
    let kernel = Shares::new(
        vec![SLOT_LENGTH * 6 / 10; values],
        SLOT_LENGTH / 2,
        parents,
        &strata,
    );
    let permutations = random(values, 64, [4; 32]);
    Veil::new([3; 32], l, strata, permutations, Kernel::Shares(kernel))
}

fn veil() {
    let n = 200_000;
    let sip = Sip::new(&[1; 32]);
    let hash = |i: usize| sip.words([i as u64, 0, 0]);
    let persons: Vec<u64> = (0..n).map(hash).collect();
    for (values, strata) in [(139, 64), (1673, 21)] {
        let veil = veil_of(values, strata, 10);
        let pick = |i: usize, top: usize| (hash(n + i) >> 16) as usize % top;
        let (stratum, value): (Vec<u32>, Vec<i32>) = (0..n)
            .map(|i| (pick(i, strata) as u32, pick(n + i, values) as i32))
            .unzip();
        let batch = || Batch {
            persons: &persons,
            households: &persons,
            strata: &stratum,
            values: &value,
            kind: Event::Visit,
            now: None,
        };
        let take = |mut people: People| {
            people.add_events(&veil, &batch()).expect("records");
            people
        };
        let name = |what| format!("veil: {what}, {values} values");
        time(&name("first events"), n, || People::new(10), take);
        time(&name("visits"), n, || take(People::new(10)), take);
    }
}

fn main() {
    veil();
    stream();
    evolving();
    tables();
}
