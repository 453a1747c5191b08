//! Edge coloring of a bipartite multigraph (König): splits a balanced bucket into delta groups in polynomial time.

/// Gives each edge (left, right) a color below `delta`; no two edges of one color share an end.
///
/// Every degree must be at most `delta`.
pub fn color(edges: &[(usize, usize)], left: usize, right: usize, delta: usize) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut at_left = vec![NONE; left * delta];
    let mut at_right = vec![NONE; right * delta];
    let mut colors = vec![NONE; edges.len()];
    for (edge, &(l, r)) in edges.iter().enumerate() {
        let a = (0..delta)
            .find(|&c| at_left[l * delta + c] == NONE)
            .expect("left degree within delta");
        let b = (0..delta)
            .find(|&c| at_right[r * delta + c] == NONE)
            .expect("right degree within delta");
        if a != b {
            flip(
                r,
                a,
                b,
                delta,
                edges,
                &mut at_left,
                &mut at_right,
                &mut colors,
            );
        }
        at_left[l * delta + a] = edge;
        at_right[r * delta + a] = edge;
        colors[edge] = a;
    }
    colors
}

/// Swaps colors a and b along the alternating path that starts at right node `r` with color a.
#[allow(clippy::too_many_arguments)]
fn flip(
    r: usize,
    a: usize,
    b: usize,
    delta: usize,
    edges: &[(usize, usize)],
    at_left: &mut [usize],
    at_right: &mut [usize],
    colors: &mut [usize],
) {
    const NONE: usize = usize::MAX;
    let mut path = Vec::new();
    let (mut node, mut on_right, mut want) = (r, true, a);
    loop {
        let edge = if on_right {
            at_right[node * delta + want]
        } else {
            at_left[node * delta + want]
        };
        if edge == NONE {
            break;
        }
        path.push(edge);
        node = if on_right {
            edges[edge].0
        } else {
            edges[edge].1
        };
        on_right = !on_right;
        want = if want == a { b } else { a };
    }
    for &edge in &path {
        let (l, r) = edges[edge];
        at_left[l * delta + colors[edge]] = NONE;
        at_right[r * delta + colors[edge]] = NONE;
    }
    for &edge in &path {
        let (l, r) = edges[edge];
        colors[edge] = if colors[edge] == a { b } else { a };
        at_left[l * delta + colors[edge]] = edge;
        at_right[r * delta + colors[edge]] = edge;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_edges_of_one_color_share_an_end() {
        // Every pair of five and five, twice: degrees of ten.
        let edges: Vec<(usize, usize)> = (0..50).map(|i| (i % 5, i / 5 % 5)).collect();
        let colors = color(&edges, 5, 5, 10);
        assert!(colors.iter().all(|&c| c < 10));
        for (i, &(l, r)) in edges.iter().enumerate() {
            for (j, &(m, s)) in edges.iter().enumerate().take(i) {
                assert!(colors[i] != colors[j] || (l != m && r != s));
            }
        }
    }

    #[test]
    fn colors_are_swapped_along_a_path_where_greedy_fails() {
        let edges = [(0, 0), (1, 1), (0, 1), (1, 0)];
        let colors = color(&edges, 2, 2, 2);
        assert_eq!(colors[0], colors[1]);
        assert_eq!(colors[2], colors[3]);
        assert_ne!(colors[0], colors[2]);
    }
}
