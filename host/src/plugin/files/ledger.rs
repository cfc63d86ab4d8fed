//! Who holds what of a RootDir's budget in one call: an account for each file that is open.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use warren_disk::beneath::Stat;
use warren_disk::budget::{Budget, Reserve, Short};

/// What is held for a file at a time: the more, the rarer its size is looked at.
const CHUNK: u64 = 1024 * 1024;

/// No file system that we know gives out less at a time.
const BLOCK: u64 = 4096;

type Inode = (u64, u64);

/// The accounts of a call.
#[derive(Debug)]
pub(crate) struct Ledger {
    budget: Budget,
    open: Mutex<HashMap<Inode, Arc<Account>>>,
    written: AtomicU64,
}

/// The account of one file, however often it is open.
#[derive(Debug)]
pub(crate) struct Account {
    inode: Inode,
    entry: Mutex<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// Allocated bytes that the budget knows of.
    known: u64,
    reserve: Reserve,
    /// What writes may have taken of the reserve since the file was looked at.
    promised: u64,
    /// The handles of the call; a file without a name lives as long as one of them.
    handles: Vec<Weak<File>>,
    unlinked: bool,
}

impl Ledger {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            budget,
            open: Mutex::default(),
            written: AtomicU64::new(0),
        }
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Bytes that were written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn count_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes a file that was opened; none: nothing is counted.
    pub(crate) fn opened(&self, file: &Arc<File>) -> io::Result<Option<Arc<Account>>> {
        if self.budget.is_unlimited() {
            return Ok(None);
        }
        let stat = Stat::of(&**file)?;
        let inode = (stat.dev, stat.ino);
        // One whose last handle went unseen may be of another file by now.
        let before = self.open().get(&inode).cloned();
        if let Some(before) = before {
            self.closed(&before);
        }
        let reserve = self.budget.reserve(0).map_err(io::Error::from)?;
        let account = Arc::clone(self.open().entry(inode).or_insert_with(|| {
            Arc::new(Account {
                inode,
                entry: Mutex::new(Entry {
                    known: stat.bytes_allocated(),
                    reserve,
                    promised: 0,
                    handles: Vec::new(),
                    unlinked: false,
                }),
            })
        }));
        account.entry().handles.push(Arc::downgrade(file));
        Ok(Some(account))
    }

    /// The account of a file that is open.
    pub(crate) fn find(&self, file: &File) -> io::Result<Option<Arc<Account>>> {
        if self.budget.is_unlimited() {
            return Ok(None);
        }
        let stat = Stat::of(file)?;
        Ok(self.open().get(&(stat.dev, stat.ino)).cloned())
    }

    /// A name of a file or directory is gone; `stat` is from before.
    pub(crate) fn removed(&self, stat: &Stat) {
        // Of a directory the links are its subdirectories.
        let is_dir = stat.kind == warren_disk::beneath::Kind::Dir;
        if self.budget.is_unlimited() || (stat.nlink > 1 && !is_dir) {
            return;
        }
        let account = self.open().get(&(stat.dev, stat.ino)).cloned();
        match account {
            Some(account) => {
                account.entry().unlinked = true;
                self.closed(&account);
            }
            None => self.budget.give_back(stat.bytes_allocated(), 1),
        }
    }

    /// Settles the account and lets go of one handle.
    pub(crate) fn close(&self, account: &Account, file: Arc<File>) {
        if let Err(error) = account.settle(&self.budget, &file) {
            tracing::debug!(%error, "cannot see how big a file has become");
        }
        drop(file);
        self.closed(account);
    }

    /// A handle may be gone: ends the account when it was the last.
    fn closed(&self, account: &Account) {
        let mut entry = account.entry();
        entry.handles.retain(|handle| handle.strong_count() > 0);
        if entry.handles.is_empty() {
            if entry.unlinked {
                self.budget.give_back(entry.known, 1);
            }
            drop(entry);
            self.open().remove(&account.inode);
        }
    }

    /// Gives back whatever is held and not needed.
    fn sweep(&self) {
        let accounts: Vec<_> = self.open().values().cloned().collect();
        for account in accounts {
            let file = account.entry().handles.iter().find_map(Weak::upgrade);
            match file {
                // What cannot be looked at keeps what it holds.
                Some(file) => {
                    if account.settle(&self.budget, &file).is_ok() {
                        let mut entry = account.entry();
                        let left = entry.reserve.left();
                        entry.reserve.release(left);
                    }
                }
                None => self.closed(&account),
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Inode, Arc<Account>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds what a write of `length` bytes at `at` may take; `at` none: at the end.
    ///
    /// # Errors
    /// When there is not that much.
    pub(crate) fn hold(
        &self,
        account: &Account,
        file: &File,
        at: Option<u64>,
        length: u64,
    ) -> Result<(), Short> {
        let cost = length.next_multiple_of(BLOCK).saturating_add(BLOCK);
        // Only then is it worth a look at how long the file is.
        let limit = self.budget.quota().bytes.unwrap_or(u64::MAX);
        let is_far = at.is_some_and(|at| at.saturating_add(length) > limit);
        if !is_far {
            let mut entry = account.entry();
            if entry.promised.saturating_add(cost) <= entry.reserve.left() {
                entry.promised += cost;
                return Ok(());
            }
        }
        let stat = account.settle(&self.budget, file).map_err(Short::Space)?;
        self.fits(&stat, at, length)?;
        let growth = growth(&stat, at, length).min(cost);
        if account.more(cost.max(CHUNK), cost).is_ok() || account.more(growth, growth).is_ok() {
            return Ok(());
        }
        self.sweep();
        let held = account.more(growth, growth);
        held.inspect_err(|short| self.budget.note(short))
    }

    /// No file is longer than what the RootDir may hold, however sparse: whoever saves it reads it
    /// all.
    pub(crate) fn fits(&self, stat: &Stat, at: Option<u64>, length: u64) -> Result<(), Short> {
        let end = at.unwrap_or(stat.size).saturating_add(length);
        match self.budget.quota().bytes {
            Some(limit) if end > limit.max(stat.size) => {
                let short = Short::Quota {
                    resource: warren_disk::space::Resource::Bytes,
                    used: stat.size,
                    wanted: end.saturating_sub(stat.size),
                    limit,
                };
                self.budget.note(&short);
                Err(short)
            }
            _ => Ok(()),
        }
    }
}

impl Account {
    fn entry(&self) -> MutexGuard<'_, Entry> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the budget how big the file has become.
    pub(crate) fn settle(&self, budget: &Budget, file: &File) -> io::Result<Stat> {
        let stat = Stat::of(file)?;
        let now = stat.bytes_allocated();
        let mut entry = self.entry();
        match now.checked_sub(entry.known) {
            Some(grown) => entry.reserve.written(grown),
            None => budget.give_back(entry.known - now, 0),
        }
        entry.known = now;
        entry.promised = 0;
        Ok(stat)
    }

    /// Holds `wanted` in all and promises `cost` of it.
    fn more(&self, wanted: u64, cost: u64) -> Result<(), Short> {
        let mut entry = self.entry();
        let missing = wanted.saturating_sub(entry.reserve.left());
        if missing > 0 {
            entry.reserve.more(missing)?;
        }
        entry.promised = cost;
        Ok(())
    }
}

/// Most bytes that a write adds.
fn growth(stat: &Stat, at: Option<u64>, length: u64) -> u64 {
    let start = at.unwrap_or(stat.size);
    let end = start.saturating_add(length).next_multiple_of(BLOCK);
    let full = stat.size.next_multiple_of(BLOCK);
    if stat.bytes_allocated() >= full {
        // Without holes: only what lies behind its end.
        return end.saturating_sub(full.max(start / BLOCK * BLOCK));
    }
    end - start / BLOCK * BLOCK
}
