//! Which calls go wrong, and how.

use std::time::Duration;

/// The calls of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKind {
    /// `read` and `read_all`
    Read,
    /// `size` (HEAD)
    Size,
    /// `create`
    Create,
    /// `write` of a file being made
    Write,
    /// `finish` of a file being made
    Finish,
    /// `put_if_absent`
    PutIfAbsent,
    /// `put`
    Put,
    /// `list`
    List,
    /// `delete`
    Delete,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens; the caller gets `Unavailable` (a 503, a refused connection).
    Fail,
    /// It is done, but the caller gets `Unavailable` (a time-out).
    LoseAnswer,
    /// Nothing happens; the caller gets `Refused` (a 403).
    Refuse,
    /// It is done after this time.
    Delay(Duration),
}

/// A fault for calls of one kind on some paths, a number of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    call: CallKind,
    path: String,
    fault: Fault,
    skip: usize,
    times: usize,
}

impl Rule {
    /// The first such call goes wrong. `*` in `path` stands for any text, `/` included.
    pub fn new(call: CallKind, path: impl Into<String>, fault: Fault) -> Self {
        Self {
            call,
            path: path.into(),
            fault,
            skip: 0,
            times: 1,
        }
    }

    /// The first `calls` such calls go well.
    #[must_use]
    pub fn skip(self, calls: usize) -> Self {
        Self { skip: calls, ..self }
    }

    /// As many calls go wrong (`usize::MAX`: for ever).
    #[must_use]
    pub fn times(self, calls: usize) -> Self {
        Self { times: calls, ..self }
    }

    /// The fault of this call, if the rule has one for it. Counts the call.
    fn fault(&mut self, call: CallKind, path: &str) -> Option<Fault> {
        if call != self.call || !matches(&self.path, path) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.times = self.times.checked_sub(1)?;
        Some(self.fault)
    }
}

/// Scripted faults, and random ones.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    rules: Vec<Rule>,
    random: Option<RandomFaults>,
}

impl FaultPlan {
    /// Nothing goes wrong.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule. Of several that fit a call, the first that still has a fault decides; rules after it do not count the call.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Lets `percent` of all calls that no rule decides fail or lose their answer; the same seed and the same order of calls give
    /// the same faults.
    #[must_use]
    pub fn random(self, seed: u64, percent: u64) -> Self {
        Self {
            random: Some(RandomFaults { state: seed, percent }),
            ..self
        }
    }

    pub(super) fn fault(&mut self, call: CallKind, path: &str) -> Option<Fault> {
        let scripted = self.rules.iter_mut().find_map(|rule| rule.fault(call, path));
        scripted.or_else(|| self.random.as_mut()?.fault())
    }
}

#[derive(Clone, Debug)]
struct RandomFaults {
    state: u64,
    percent: u64,
}

impl RandomFaults {
    fn fault(&mut self) -> Option<Fault> {
        let draw = self.next();
        let fault = if draw & 1 == 0 { Fault::Fail } else { Fault::LoseAnswer };
        ((draw >> 1) % 100 < self.percent).then_some(fault)
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Whether `path` fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, path: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == path;
    };
    let Some(path) = path.strip_prefix(start) else {
        return false;
    };
    (0..=path.len()).any(|skipped| path.get(skipped..).is_some_and(|path| matches(rest, path)))
}
