//! Behaviour through the public face: the program `warren`, real git, real Python.

mod audit;
mod confined;
mod crash;
mod git_faults;
mod git_round_trip;
mod hazards_git;
mod hazards_git_hostile;
mod hazards_git_rounds;
mod hazards_git_secrets;
mod hazards_names;
mod hazards_plugins;
mod hazards_python;
mod hazards_service;
mod hostile_disk;
mod hostile_swaps;
mod lifecycle;
mod mount;
mod names;
mod odd_states;
mod plugins;
mod python;
mod sealed;
mod secrets_everywhere;
mod ssh;
mod stress;
mod trust;
mod world;

/// A file that is not a module above would be tested by nobody.
#[test]
fn no_file_is_forgotten() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let main = std::fs::read_to_string(here.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(here).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") else {
            continue;
        };
        assert!(
            main.contains(&format!("mod {module};")),
            "{name} is not a module of main.rs"
        );
    }
}
