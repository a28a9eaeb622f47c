//! The branches and tips of a store, as of its last durable commit. They are few, so they are held
//! in memory; blocks, keys and blobs stay on disk.

use std::collections::HashMap;

use crate::branch::{Branch, Lineage, Tip};
use crate::error::LogError;
use crate::id::{BranchId, BranchName};
use crate::tables::BranchRecord;

/// What was committed, and is therefore visible.
#[derive(Debug, Default)]
pub(super) struct State {
    records: Vec<BranchRecord>,
    names: HashMap<BranchName, BranchId>,
    tips: Vec<Tip>,
    commits: u64,
}

/// The place of a branch in a list of all branches.
pub(super) fn index(branch: BranchId) -> usize {
    branch.get() as usize
}

impl State {
    /// How many commits there were in the life of the store.
    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    pub(super) fn set_commits(&mut self, commits: u64) {
        assert!(commits >= self.commits, "commits are only added");
        self.commits = commits;
    }

    pub(super) fn branch_count(&self) -> usize {
        self.records.len()
    }

    pub(super) fn record(&self, branch: BranchId) -> Option<&BranchRecord> {
        self.records.get(index(branch))
    }

    pub(super) fn has_branch(&self, name: &BranchName) -> bool {
        self.names.contains_key(name)
    }

    pub(super) fn tip(&self, branch: BranchId) -> Option<&Tip> {
        self.tips.get(index(branch))
    }

    pub(super) fn tips(&self) -> impl Iterator<Item = &Tip> {
        self.tips.iter()
    }

    /// Adds the next branch.
    pub(super) fn push(&mut self, record: BranchRecord, tip: Tip) {
        let number = u32::try_from(self.records.len()).expect("branch numbers have 32 bits");
        self.names.insert(record.name.clone(), BranchId::new(number));
        self.records.push(record);
        self.tips.push(tip);
    }

    pub(super) fn set_tip(&mut self, branch: BranchId, tip: Tip) {
        let known = &mut self.tips[index(branch)];
        assert!(tip.head >= known.head, "a head only grows");
        *known = tip;
    }

    /// The branch as the caller sees it.
    pub(super) fn branch(&self, id: BranchId) -> Result<Branch, LogError> {
        let missing = || LogError::NoBranch { name: id.to_string() };
        let record = self.record(id).ok_or_else(missing)?;
        let tip = *self.tip(id).ok_or_else(missing)?;
        Ok(Branch { id, name: record.name.clone(), fork: record.fork.clone(), tip })
    }

    /// All branches, by number.
    pub(super) fn branches(&self) -> Result<Vec<Branch>, LogError> {
        (0..self.records.len()).map(|number| self.branch(BranchId::new(number as u32))).collect()
    }

    /// The branch and its ancestors.
    pub(super) fn lineage(&self, id: BranchId) -> Result<Lineage, LogError> {
        Lineage::of(id, |id| Ok(self.branch(id)?.fork))
    }
}
