//! What wit-bindgen makes of `wit/`. Use the crate's own modules; this one is for the macro.

wit_bindgen::generate!({
    path: "../wit",
    world: "full",
    additional_derives: [PartialEq, Eq],
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "warren_sdk::bindings",
});
