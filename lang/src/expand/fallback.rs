//! What a network with mistakes still becomes: its type, with every constant, so that each mistake makes one error and
//! the code that uses the type makes none.

use proc_macro2::TokenStream;

use super::constants::{NAMES, SUMMARY, put, write_network};
use super::{assemble, write_user_constants};
use crate::Declaration;

/// The type and placeholders for its constants. Nothing of it can ever run: the build has failed.
pub(super) fn network(declaration: &Declaration) -> TokenStream {
    let name = declaration.name.to_string();
    let mut code = format!("#[allow(dead_code)] impl {name} {{\n");
    for constant in NAMES {
        match *constant {
            "LAYERS" => code.push_str("pub const LAYERS: &'static [::plimsoll::LayerRow] = &[];\n"),
            "PEAK_CLASSES" => code.push_str("pub const PEAK_CLASSES: &'static [(&'static str, u64)] = &[];\n"),
            "BATCH" | "MAX_BATCH" => put(&mut code, format_args!("pub const {constant}: usize = 1;\n")),
            "NAME" | "PLAN" => {}
            _ => put(&mut code, format_args!("pub const {constant}: u64 = 0;\n")),
        }
    }
    write_user_constants(&mut code, &declaration.consts);
    code.push_str(SUMMARY);
    code.push_str("}\n");
    write_network(&mut code, &name, &[], None);
    assemble(declaration, "", &format!("#[allow(missing_docs)] const _: () = {{ {code} }};"))
}
