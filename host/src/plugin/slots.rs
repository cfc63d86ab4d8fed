//! Who may run when: slots and memory for all calls, shared fairly between Projects.
//!
//! A Project may have as many as are then still free, never all. A slot that comes free goes to
//! whoever has the fewest. Guests of one Project share the CPU among themselves, see
//! [`Slot::running`].

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::engine::PoolSize;

/// Memory that a call always gets.
const MEMORY_SURE: usize = 16 * 1024 * 1024;

/// The slots of a host.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Memory of a call that is not shared.
    sure: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    memory_free: usize,
    tickets: u64,
    projects: HashMap<String, Project>,
}

#[derive(Debug, Default)]
struct Project {
    running: Arc<AtomicU32>,
    memory: usize,
    waiting: VecDeque<(u64, oneshot::Sender<Slot>)>,
}

impl Project {
    fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed) as usize
    }
}

/// The right to run one call. Dropped, it goes to the next.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Slots,
    project: String,
    running: Arc<AtomicU32>,
    /// Shared memory that the call holds.
    memory: usize,
}

impl Slots {
    pub(crate) fn new(pool: &PoolSize) -> Self {
        let calls = pool.calls as usize;
        let sure = MEMORY_SURE.min(pool.memory_bytes_total / 2 / calls.max(1));
        Self(Arc::new(Inner {
            sure,
            state: Mutex::new(State {
                free: calls,
                memory_free: pool.memory_bytes_total - sure * calls,
                tickets: 0,
                projects: HashMap::new(),
            }),
        }))
    }

    /// Waits for a slot. A wait that is given up loses its place.
    pub(crate) async fn acquire(&self, project: &str) -> Slot {
        let receiver = {
            let mut state = self.state();
            state.tickets += 1;
            let ticket = state.tickets;
            let (sender, receiver) = oneshot::channel();
            let entry = state.projects.entry(project.to_owned()).or_default();
            entry.waiting.push_back((ticket, sender));
            receiver
        };
        self.dispatch();
        match receiver.await {
            Ok(slot) => slot,
            Err(_) => unreachable!("the sender is kept until a slot is sent"),
        }
    }

    /// Gives free slots to those who wait.
    fn dispatch(&self) {
        loop {
            let Some((sender, slot)) = self.next() else {
                return;
            };
            // Given up meanwhile: dropping it gives it back.
            drop(sender.send(slot));
        }
    }

    fn next(&self) -> Option<(oneshot::Sender<Slot>, Slot)> {
        let mut state = self.state();
        let free = state.free;
        if free == 0 {
            return None;
        }
        for project in state.projects.values_mut() {
            project.waiting.retain(|(_, sender)| !sender.is_closed());
        }
        state
            .projects
            .retain(|_, project| project.running() > 0 || !project.waiting.is_empty());
        let may = |project: &Project| {
            let running = project.running();
            running == 0 || running + 1 < free
        };
        let (name, _) = state
            .projects
            .iter()
            .filter(|(_, project)| may(project))
            .filter_map(|(name, project)| {
                let (ticket, _) = project.waiting.front()?;
                Some((name, (project.running(), *ticket)))
            })
            .min_by_key(|(_, rank)| *rank)?;
        let name = name.clone();
        let project = state.projects.get_mut(&name)?;
        let (_, sender) = project.waiting.pop_front()?;
        project.running.fetch_add(1, Ordering::Relaxed);
        let running = Arc::clone(&project.running);
        state.free -= 1;
        let slot = Slot {
            slots: self.clone(),
            project: name,
            running,
            memory: 0,
        };
        Some((sender, slot))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// How many calls of the Project run. A guest that has used up its turn lets others go first
    /// that often, so that all guests of a Project together get one Project's share of the CPU.
    pub(crate) fn running(&self) -> u32 {
        self.running.load(Ordering::Relaxed)
    }

    /// Whether the call's memories may become `total` bytes.
    pub(crate) fn grow(&mut self, total: usize) -> bool {
        let wanted = total.saturating_sub(self.slots.0.sure);
        let Some(more) = wanted.checked_sub(self.memory).filter(|more| *more > 0) else {
            return true;
        };
        let mut state = self.slots.state();
        let free = state.memory_free;
        let Some(project) = state.projects.get_mut(&self.project) else {
            return false;
        };
        let held = project.memory.saturating_add(more);
        // As with slots: never more than what is left for the others.
        if held > free.saturating_sub(more) {
            return false;
        }
        project.memory = held;
        state.memory_free -= more;
        self.memory = wanted;
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut state = self.slots.state();
            state.free += 1;
            state.memory_free += self.memory;
            if let Some(project) = state.projects.get_mut(&self.project) {
                project.memory -= self.memory;
                let before = project.running.fetch_sub(1, Ordering::Relaxed);
                if before == 1 && project.waiting.is_empty() {
                    state.projects.remove(&self.project);
                }
            }
        }
        self.slots.dispatch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    fn slots(calls: u32, memory_bytes_total: usize) -> Slots {
        Slots::new(&PoolSize {
            calls,
            memory_bytes_total,
            ..PoolSize::default()
        })
    }

    async fn at_once(slots: &Slots, project: &str) -> Option<Slot> {
        timeout(Duration::from_millis(1), slots.acquire(project))
            .await
            .ok()
    }

    async fn all(slots: &Slots, project: &str) -> Vec<Slot> {
        let mut held = Vec::new();
        while let Some(slot) = at_once(slots, project).await {
            held.push(slot);
        }
        held
    }

    #[tokio::test]
    async fn nobody_takes_all_and_a_newcomer_gets_one() {
        let slots = slots(64, 1 << 30);
        let mut held = Vec::new();
        for (project, expected) in [("a", 32), ("b", 16), ("c", 8), ("d", 4), ("e", 2)] {
            let got = all(&slots, project).await;
            assert_eq!(got.len(), expected, "{project}");
            assert_eq!(got[0].running(), expected as u32);
            held.push(got);
        }
        assert!(at_once(&slots, "f").await.is_some());
        drop(held);
        assert_eq!(all(&slots, "a").await.len(), 32);
    }

    #[tokio::test]
    async fn a_single_slot_goes_round() {
        let slots = slots(1, 1 << 30);
        let first = slots.acquire("a").await;
        let later = {
            let slots = slots.clone();
            tokio::spawn(async move { slots.acquire("a").await })
        };
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(later.await.unwrap().running(), 1);
        assert!(at_once(&slots, "b").await.is_some());
    }

    #[tokio::test]
    async fn who_has_fewest_is_next_and_who_gave_up_is_not() {
        let slots = slots(4, 1 << 30);
        let a = all(&slots, "a").await;
        let b = [slots.acquire("b").await, slots.acquire("c").await];
        assert_eq!(a.len(), 2);
        let wait = |project: &'static str| {
            let slots = slots.clone();
            tokio::spawn(async move {
                let slot = slots.acquire(project).await;
                let project = slot.project.clone();
                (project, slot)
            })
        };
        // `a` asks first, but has one already; `d` gives up.
        let again = wait("a");
        tokio::task::yield_now().await;
        let gave_up = wait("d");
        tokio::task::yield_now().await;
        let fresh = wait("e");
        tokio::task::yield_now().await;
        gave_up.abort();
        assert!(gave_up.await.is_err());
        drop(b);
        let (project, slot) = fresh.await.unwrap();
        assert_eq!(project, "e");
        drop((a, slot));
        assert_eq!(again.await.unwrap().0, "a");
    }

    #[tokio::test]
    async fn memory_ends_for_one_project_and_not_for_the_next() {
        let mib = 1 << 20;
        let slots = slots(4, 128 * mib);
        let mut one = slots.acquire("a").await;
        let mut two = slots.acquire("a").await;
        assert!(one.grow(16 * mib) && one.grow(16 * mib) && !one.grow(64 * mib));
        assert!(one.grow(48 * mib));
        assert!(!two.grow(20 * mib) && two.grow(16 * mib));
        let mut other = slots.acquire("b").await;
        assert!(other.grow(32 * mib) && !other.grow(48 * mib));
        drop(one);
        assert!(two.grow(20 * mib) && other.grow(40 * mib));
    }
}
