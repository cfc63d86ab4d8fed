//! Host side of the contract in `wit/`, generated.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::use_self,
    reason = "generated code; the documentation is in `wit/`"
)]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "full",
    imports: { default: async },
    exports: { default: async },
    require_store_data_send: true,
});
