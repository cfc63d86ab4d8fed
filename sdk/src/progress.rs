//! How far long work has come.

/// Reports a stage, `install` say, with what is done of what there is to do, in any unit.
pub fn report(stage: &str, done: u64, total: Option<u64>) {
    #[cfg(target_arch = "wasm32")]
    crate::bindings::warren::handler::progress::report(stage, done, total);
    #[cfg(not(target_arch = "wasm32"))]
    crate::testing::progress(stage, done, total);
}
