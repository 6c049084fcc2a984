//! What was used last stays.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A map bounded by the weights of its values: the one unused for longest goes first. What goes is handed to the caller, so that it can
/// be dropped outside of a lock.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// By last use.
    order: BTreeMap<u64, K>,
    uses: u64,
    weight: u64,
    capacity: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: u64,
    used: u64,
    used_ms: i64,
}

impl<K: Clone + Eq + Hash, V: Clone> Lru<K, V> {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            uses: 0,
            weight: 0,
            capacity,
        }
    }

    /// The value, used now.
    pub(crate) fn get(&mut self, key: &K, now_ms: i64) -> Option<V> {
        let entry = self.entries.get_mut(key)?;
        self.order.remove(&entry.used);
        self.uses += 1;
        (entry.used, entry.used_ms) = (self.uses, now_ms);
        self.order.insert(self.uses, key.clone());
        Some(entry.value.clone())
    }

    /// Adds a value, and gives those that had to go: also this one, if it alone weighs too much.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: u64, now_ms: i64) -> Vec<V> {
        let mut gone: Vec<V> = self.remove(&key).into_iter().collect();
        self.uses += 1;
        let entry = Entry {
            value,
            weight,
            used: self.uses,
            used_ms: now_ms,
        };
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, entry);
        self.weight += weight;
        while self.weight > self.capacity {
            gone.extend(self.pop_oldest());
        }
        gone
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.used);
        self.weight -= entry.weight;
        Some(entry.value)
    }

    /// The value unused for longest.
    pub(crate) fn pop_oldest(&mut self) -> Option<V> {
        let (_, key) = self.order.first_key_value()?;
        let key = key.clone();
        self.remove(&key)
    }

    /// Removes the values that were last used before a moment.
    pub(crate) fn remove_unused_since(&mut self, before_ms: i64) -> Vec<V> {
        let mut gone = Vec::new();
        while let Some((_, key)) = self.order.first_key_value()
            && self.entries.get(key).is_some_and(|entry| entry.used_ms < before_ms)
        {
            gone.extend(self.pop_oldest());
        }
        gone
    }

    /// Removes the values whose keys are so.
    pub(crate) fn remove_where(&mut self, is_gone: impl Fn(&K) -> bool) -> Vec<V> {
        let keys: Vec<K> = self.entries.keys().filter(|key| is_gone(key)).cloned().collect();
        keys.iter().filter_map(|key| self.remove(key)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_unused_for_longest_goes() {
        let mut lru = Lru::new(10);
        assert!(lru.insert("a", 1, 4, 0).is_empty());
        assert!(lru.insert("b", 2, 4, 1).is_empty());
        assert_eq!(lru.get(&"a", 2), Some(1));
        assert_eq!(lru.insert("c", 3, 4, 3), [2]);
        assert_eq!((lru.get(&"b", 4), lru.len(), lru.weight()), (None, 2, 8));
        assert_eq!(lru.insert("d", 4, 11, 5), [1, 3, 4], "too heavy alone");
        assert_eq!((lru.len(), lru.weight()), (0, 0));
    }

    #[test]
    fn a_value_is_replaced_removed_and_idle() {
        let mut lru = Lru::new(10);
        lru.insert("a", 1, 4, 0);
        assert_eq!(lru.insert("a", 2, 5, 1), [1]);
        lru.insert("b", 3, 1, 2);
        lru.get(&"a", 3);
        assert_eq!(lru.remove_unused_since(3), [3]);
        assert_eq!(lru.remove_where(|key| *key == "a"), [2]);
        assert_eq!((lru.pop_oldest(), lru.weight()), (None, 0));
    }
}
