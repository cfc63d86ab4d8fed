//! The one engine: how components are compiled, where instances live, what ticks the epoch.

use std::thread;
use std::time::Duration;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy,
};

/// Length of an epoch: the grain of a guest's CPU limit and of its yields to other tasks.
pub const EPOCH: Duration = Duration::from_millis(10);

/// Stack of one call in bytes, host functions included.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// Part of it that the guest may use.
const WASM_STACK_BYTES: usize = 512 * 1024;

/// Sizes of the instance pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolSize {
    /// Calls that run at the same time; more wait for a slot.
    pub calls: u32,
    /// Most bytes of one linear memory; a plugin's own limit may be lower.
    pub memory_bytes_max: usize,
    /// Most elements of one table.
    pub table_elements_max: usize,
    /// Most bytes of the linear memories of all calls together. One Project never gets more than
    /// half of what all calls share.
    pub memory_bytes_total: usize,
}

impl Default for PoolSize {
    fn default() -> Self {
        Self {
            calls: 64,
            memory_bytes_max: 256 * 1024 * 1024,
            table_elements_max: 20_000,
            memory_bytes_total: 2 * 1024 * 1024 * 1024,
        }
    }
}

/// Core instances in one component: the module, its adapters and shims.
const CORE_INSTANCES_PER_CALL: u32 = 16;

/// Makes the engine and starts its ticker.
///
/// # Errors
///
/// Fails when the pool's address space cannot be reserved or no thread can be started.
pub(crate) fn engine(pool: &PoolSize) -> wasmtime::Result<Engine> {
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(pool)));
    let engine = Engine::new(&config)?;
    start_ticker(&engine)?;
    Ok(engine)
}

/// An engine that only compiles: for the same code, without the pool and the ticker.
///
/// # Errors
///
/// Fails when the machine is not one that can be compiled for.
pub(crate) fn compiler() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        .epoch_interruption(true)
        .memory_init_cow(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(STACK_BYTES)
        // No guest of ours is async in the component model's sense: a store is cheaper without.
        .concurrency_support(false)
        // What std guests do not use is not there to be attacked.
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .gc_support(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .wasm_stack_switching(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
    config
}

fn pooling(pool: &PoolSize) -> PoolingAllocationConfig {
    let mut pooling = PoolingAllocationConfig::new();
    pooling
        .total_component_instances(pool.calls)
        .total_core_instances(pool.calls * CORE_INSTANCES_PER_CALL)
        .max_core_instances_per_component(CORE_INSTANCES_PER_CALL)
        .total_memories(pool.calls)
        .max_memories_per_component(1)
        .total_tables(pool.calls * 2)
        .max_tables_per_component(2)
        .total_stacks(pool.calls)
        .total_gc_heaps(pool.calls)
        .max_memory_size(pool.memory_bytes_max)
        .table_elements(pool.table_elements_max)
        // Small guests are wiped in place, which is faster than returning their pages.
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(16 * 1024)
        .max_unused_warm_slots(8);
    pooling
}

/// Ticks on an OS thread of its own: an executor that is blocked by guests must not stop the clock
/// that interrupts them. The thread ends when the last engine handle is gone.
fn start_ticker(engine: &Engine) -> std::io::Result<()> {
    let weak = engine.weak();
    thread::Builder::new()
        .name("warren-epoch".into())
        .stack_size(64 * 1024)
        .spawn(move || {
            loop {
                thread::sleep(EPOCH);
                let Some(engine) = weak.upgrade() else { break };
                engine.increment_epoch();
            }
        })?;
    Ok(())
}
