//! A tournament over runs.
//!
//! Every inner node remembers the loser of its match, so the next winner needs one match a level of the tree (Knuth, The Art of
//! Computer Programming, volume 3, section 5.4.1).

/// The tournament. Runs are numbers below the count given to [`LoserTree::new`]; who wins is the caller's order.
#[derive(Debug, Default)]
pub(crate) struct LoserTree {
    /// `nodes[0]` is the winner, `nodes[1..]` are the losers of the inner matches. Run `r` enters at node `(r + runs) / 2`.
    nodes: Vec<usize>,
}

impl LoserTree {
    /// Plays all matches. `before(a, b)`: whether run `a`'s head comes before run `b`'s; a strict total order.
    pub(crate) fn new(runs: usize, before: impl Fn(usize, usize) -> bool) -> Self {
        let mut nodes = vec![0; runs];
        // Winners of all matches, leaves included, bottom up.
        let mut winners: Vec<usize> = (0..2 * runs).map(|node| node.saturating_sub(runs)).collect();
        for node in (1..runs).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if before(left, right) {
                (left, right)
            } else {
                (right, left)
            };
            winners[node] = winner;
            nodes[node] = loser;
        }
        if runs > 1 {
            nodes[0] = winners[1];
        }
        Self { nodes }
    }

    /// The run whose head comes first; `None` without runs.
    #[inline]
    pub(crate) fn winner(&self) -> Option<usize> {
        self.nodes.first().copied()
    }

    /// Plays the matches of the winner's path again after its head has changed.
    #[inline]
    pub(crate) fn replay(&mut self, before: impl Fn(usize, usize) -> bool) {
        let Some(&(mut winner)) = self.nodes.first() else {
            return;
        };
        let mut node = (winner + self.nodes.len()) / 2;
        while node > 0 {
            let rival = self.nodes[node];
            if before(rival, winner) {
                self.nodes[node] = winner;
                winner = rival;
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }

    /// The run that would win without the winner: the best of those that lost against it.
    pub(crate) fn runner_up(&self, before: impl Fn(usize, usize) -> bool) -> Option<usize> {
        let mut node = (self.winner()? + self.nodes.len()) / 2;
        let mut best = None;
        while node > 0 {
            let rival = self.nodes[node];
            if best.is_none_or(|best| before(rival, best)) {
                best = Some(rival);
            }
            node /= 2;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_runs_in_order_and_knows_the_second(runs in prop::collection::vec(prop::collection::vec(0u32..40, 0..20), 0..9)) {
            let mut runs = runs;
            for run in &mut runs {
                run.sort_unstable_by(|a, b| b.cmp(a)); // the head is the last
            }
            let mut expected: Vec<(u32, usize)> = runs.iter().enumerate().flat_map(|(run, values)| values.iter().map(move |&value| (value, run))).collect();
            expected.sort_unstable();
            let head = |runs: &[Vec<u32>], run: usize| (runs[run].last().copied().unwrap_or(u32::MAX), run);
            let mut tree = LoserTree::new(runs.len(), |a, b| head(&runs, a) < head(&runs, b));
            for (value, run) in expected {
                prop_assert_eq!(tree.winner(), Some(run));
                prop_assert_eq!(runs[run].last(), Some(&value));
                let second = (0..runs.len()).filter(|&other| other != run).min_by_key(|&other| head(&runs, other));
                prop_assert_eq!(tree.runner_up(|a, b| head(&runs, a) < head(&runs, b)), second);
                runs[run].pop();
                tree.replay(|a, b| head(&runs, a) < head(&runs, b));
            }
        }
    }
}
