//! Components that are made to keep a compiler busy, and what becomes of the host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use warren::plugin::{CompileConfig, CompileLimits, LoadFailure, Runtime, RuntimeConfig, Sources};
use wasm_encoder::{
    BlockType, CodeSection, Component, ComponentExportKind, ComponentExportSection,
    ComponentInstanceSection, CustomSection, Function, FunctionSection, Instruction, Module,
    ModuleSection, TypeSection, ValType,
};

const HANDLER: &str = "warren:handler/handler@0.1.0";

const MANIFEST: &str = r#"
manifest = 1
name = "Bomb"
version = "0.0.1"
type = "bomb"
"#;

fn component(functions: &[Function]) -> Vec<u8> {
    let (mut types, mut signatures, mut code) = (
        TypeSection::new(),
        FunctionSection::new(),
        CodeSection::new(),
    );
    types.ty().function([ValType::I32], [ValType::I32]);
    for function in functions {
        signatures.function(0);
        code.function(function);
    }
    let mut module = Module::new();
    module.section(&types).section(&signatures).section(&code);
    let mut instances = ComponentInstanceSection::new();
    instances.export_items(std::iter::empty::<(&str, ComponentExportKind, u32)>());
    let mut exports = ComponentExportSection::new();
    exports.export(HANDLER, ComponentExportKind::Instance, 0, None);
    let mut component = Component::new();
    component
        .section(&CustomSection {
            name: "warren:manifest".into(),
            data: MANIFEST.as_bytes().into(),
        })
        .section(&ModuleSection(&module))
        .section(&instances)
        .section(&exports);
    component.finish()
}

fn function(body: impl FnOnce(&mut Function)) -> Function {
    let mut function = Function::new([(100, ValType::I32)]);
    body(&mut function);
    function.instruction(&Instruction::LocalGet(0));
    function.instruction(&Instruction::End);
    function
}

/// Every block uses what the one before has left.
fn mix(function: &mut Function, steps: u32) {
    for n in 0..steps {
        function
            .instruction(&Instruction::LocalGet(n * 7 % 101))
            .instruction(&Instruction::LocalGet(n * 13 % 101))
            .instruction(&Instruction::I32Mul)
            .instruction(&Instruction::LocalTee(n * 31 % 101))
            .instruction(&Instruction::If(BlockType::Empty))
            .instruction(&Instruction::LocalGet(n % 101))
            .instruction(&Instruction::LocalSet(n * 17 % 101))
            .instruction(&Instruction::End);
    }
}

fn huge_function() -> Vec<u8> {
    component(&[function(|body| mix(body, 400_000))])
}

fn many_functions() -> Vec<u8> {
    let one = function(|body| mix(body, 4));
    component(&vec![one; 300_000])
}

fn deep_nesting() -> Vec<u8> {
    component(&[function(|body| {
        for _ in 0..1_000_000 {
            body.instruction(&Instruction::Block(BlockType::Empty));
        }
        for _ in 0..1_000_000 {
            body.instruction(&Instruction::End);
        }
    })])
}

fn giant_tables() -> Vec<u8> {
    let targets: Vec<u32> = (0..65_000).map(|n| n % 4).collect();
    component(&[function(|body| {
        for _ in 0..100 {
            for _ in 0..4 {
                body.instruction(&Instruction::Block(BlockType::Empty));
            }
            body.instruction(&Instruction::LocalGet(0));
            body.instruction(&Instruction::BrTable(targets.as_slice().into(), 0));
            for _ in 0..4 {
                body.instruction(&Instruction::End);
            }
        }
    })])
}

struct World {
    dir: TempDir,
    compile: CompileConfig,
}

impl World {
    fn new(worker: bool, limits: CompileLimits) -> Self {
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() {
            tempfile::tempdir_in(shm)
        } else {
            tempfile::tempdir()
        }
        .unwrap();
        let worker = worker.then(|| PathBuf::from(env!("CARGO_BIN_EXE_warren")));
        std::fs::create_dir(dir.path().join("plugins")).unwrap();
        std::fs::create_dir(dir.path().join("state")).unwrap();
        let compile = CompileConfig { worker, limits };
        Self { dir, compile }
    }

    fn put(&self, name: &str, component: &[u8]) {
        std::fs::write(self.dir.path().join("plugins").join(name), component).unwrap();
    }

    async fn start(&self) -> (Runtime, Vec<LoadFailure>) {
        let config = RuntimeConfig {
            state_dir: self.dir.path().join("state"),
            sources: Sources {
                dir: Some(self.dir.path().join("plugins")),
                ..Sources::default()
            },
            compile: self.compile.clone(),
            ..RuntimeConfig::default()
        };
        Runtime::start(config).await.unwrap()
    }
}

fn limits(cpu_seconds: u64) -> CompileLimits {
    CompileLimits {
        cpu: Duration::from_secs(cpu_seconds),
        ..CompileLimits::default()
    }
}

fn only(failures: &[LoadFailure]) -> (&'static str, String) {
    assert_eq!(failures.len(), 1, "{failures:?}");
    let error = &failures[0].error;
    (error.code(), error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_ends_at_its_limit_and_is_not_started_again_for_that() {
    for (name, bomb) in [("huge", huge_function()), ("many", many_functions())] {
        let world = World::new(true, limits(1));
        world.put("bomb.wasm", &bomb);
        let (_, failures) = world.start().await;
        let (code, text) = only(&failures);
        assert_eq!(code, "PluginCompile", "{name}: {text}");
        assert!(text.contains("more than 1 s of CPU time"), "{name}: {text}");
        assert!(failures[0].error.hint().is_some());
        let (_, failures) = world.start().await;
        let (code, text) = only(&failures);
        assert_eq!(code, "PluginCompile", "{name}: {text}");
        assert!(text.contains("at an earlier start"), "{name}: {text}");
        // Another binary is another matter.
        world.put("bomb.wasm", &component(&[]));
        let (code, text) = only(&world.start().await.1);
        assert_eq!(code, "PluginIncompatible", "{name}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_bomb_it_is_an_error_of_that_component() {
    for (name, bomb) in [("deep", deep_nesting()), ("tables", giant_tables())] {
        let world = World::new(true, limits(2));
        world.put("bomb.wasm", &bomb);
        let (code, text) = only(&world.start().await.1);
        assert!(
            matches!(
                code,
                "PluginCompile" | "PluginIncompatible" | "PluginMalformed"
            ),
            "{name}: {code}: {text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_has_so_much_memory_and_no_more() {
    let tight = CompileLimits {
        memory_bytes: 32 * 1024 * 1024,
        ..CompileLimits::default()
    };
    let world = World::new(true, tight);
    world.put("bomb.wasm", &huge_function());
    let (code, text) = only(&world.start().await.1);
    assert_eq!(code, "PluginCompile", "{text}");
    assert!(
        text.contains("33554432 bytes of memory") || text.contains("crashed"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_worker_a_thread_is_left_alone() {
    let short = CompileLimits {
        wall: Duration::from_millis(50),
        ..CompileLimits::default()
    };
    let world = World::new(false, short);
    world.put("bomb.wasm", &huge_function());
    let (code, text) = only(&world.start().await.1);
    assert_eq!(code, "PluginCompile", "{text}");
    assert!(text.contains("longer than 50 ms"), "{text}");
    let (_, text) = only(&world.start().await.1);
    assert!(text.contains("at an earlier start"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_makes_what_this_host_can_run() {
    let world = World::new(true, CompileLimits::default());
    world.put("temp.wasm", warren_plugins::TEMP);
    for _ in 0..2 {
        let (runtime, failures) = world.start().await;
        assert!(failures.is_empty(), "{failures:?}");
        assert!(runtime.plugin(&"temp".parse().unwrap()).is_some());
    }
}

fn workers(cpu_seconds: u64) -> usize {
    let wanted = format!("compile-worker\0{cpu_seconds}\0");
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(&wanted))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_is_given_up_leaves_no_worker() {
    let seconds = 7_000_000 + u64::from(std::process::id());
    let world = World::new(true, limits(seconds));
    world.put("bomb.wasm", &many_functions());
    {
        let start = world.start();
        tokio::pin!(start);
        while workers(seconds) == 0 {
            let tick = tokio::time::sleep(Duration::from_millis(5));
            tokio::select! {
                (_, failures) = &mut start => panic!("it has ended: {failures:?}"),
                () = tick => {}
            }
        }
    }
    while workers(seconds) > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
